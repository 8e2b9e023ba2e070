#include "apps/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool app_csv_open(const char *what, const char *path, FILE **file)
{
    char text[80];
    *file = path == NULL ? NULL : fopen(path, "we");
    if (path != NULL && *file == NULL) {
        snprintf(text, sizeof(text), "%s cannot be written there", what);
        app_error(text, path, strerror(errno));
        return false;
    }
    return true;
}

bool app_csv_close(const char *what, const char *path, FILE *file)
{
    char text[80];
    if (file == NULL) {
        return true;
    }
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        snprintf(text, sizeof(text), "not all of %s could be written", what);
        app_error(text, path, "is the disk full?");
        return false;
    }
    return true;
}
