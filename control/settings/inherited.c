#include "control/settings/inherited.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DIGITS_MAX = 9 };

int cw_inherited_find(enum cw_setting variable, size_t bytes)
{
    const char *word = cw_setting(variable);
    struct stat status;
    char *end;
    if (word == NULL || *word < '0' || *word > '9' || strlen(word) > DIGITS_MAX) {
        return -1;
    }
    int descriptor = (int)strtol(word, &end, 10);
    /* a memfd is a file without a name */
    bool fits = *end == '\0' && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0 &&
                (size_t)status.st_size == bytes;
    return fits ? descriptor : -1;
}
