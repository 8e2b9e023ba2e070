#include "dataplane/shm/process.h"

#include <stdlib.h>
#include <unistd.h>

int32_t cw_process_number(void)
{
    char number[16];
    ssize_t length = readlink("/proc/self", number, sizeof(number) - 1);
    number[length > 0 ? length : 0] = '\0';
    return (int32_t)strtol(number, NULL, 10);
}
