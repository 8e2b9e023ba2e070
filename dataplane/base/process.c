#include "dataplane/base/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAT_BYTES = 512 /* the letter stands behind the name, which has 64 at most */ };

int32_t cw_process_number(void)
{
    char number[16];
    ssize_t length = readlink("/proc/self", number, sizeof(number) - 1);
    number[length > 0 ? length : 0] = '\0';
    return (int32_t)strtol(number, NULL, 10);
}

char cw_process_state(int process)
{
    char path[64], line[STAT_BYTES];
    if (cw_process_number() != getpid()) {
        return 0;
    }
    snprintf(path, sizeof(path), "/proc/%d/stat", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, line, sizeof(line) - 1);
    if (file >= 0) {
        close(file);
    }
    if (length <= 0) {
        return 0;
    }
    line[length] = '\0';
    const char *behind = strrchr(line, ')'); /* of the program's name, which may hold anything */
    return behind != NULL && behind[1] == ' ' ? behind[2] : 0;
}

bool cw_process_is_stopped(int process)
{
    return cw_process_state(process) == 'T';
}
