/* Files as bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "apps/cli/cli.h"

uint8_t *app_file_read(const char *path, uint64_t most, uint64_t *bytes)
{
    FILE *file = fopen(path, "rbe");
    *bytes = 0;
    if (file == NULL) {
        return NULL;
    }
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    rewind(file);
    uint64_t wanted = size >= 0 && (uint64_t)size > most ? most : (uint64_t)size;
    uint8_t *data = size < 0 ? NULL : malloc(wanted + 1);
    *bytes = data == NULL ? 0 : fread(data, 1, wanted, file);
    if (ferror(file)) {
        free(data);
        data = NULL;
    }
    (void)fclose(file);
    return data;
}
