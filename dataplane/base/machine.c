#include "dataplane/base/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RESERVED = 16 /* numbers of other media */ };

bool cw_machine_boot(char text[CW_MACHINE_BOOT_BYTES])
{
    int file = open(CW_MACHINE_BOOT_PATH, O_RDONLY | O_CLOEXEC);
    ssize_t got = file >= 0 ? read(file, text, CW_MACHINE_BOOT_BYTES - 1) : -1;
    int error = got == 0 ? ENODATA : errno;
    if (file >= 0) {
        close(file);
    }
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    errno = error;
    return got > 0;
}

uint32_t cw_machine_memory(void)
{
    char boot[CW_MACHINE_BOOT_BYTES];
    if (!cw_machine_boot(boot)) {
        return 0;
    }
    uint32_t number = (uint32_t)strtoul(boot, NULL, 16); /* random up to the first '-' */
    return number < RESERVED ? number + RESERVED : number;
}
