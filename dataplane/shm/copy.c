#include "dataplane/shm/copy.h"

#include "dataplane/base/process.h"
#include "dataplane/status.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { YAMA_RESTRICTED = 1, GENERATIONS_MAX = 64 };

/* A number from the environment may be another process's by now. */
static bool is_ancestor(pid_t process)
{
    pid_t at = getppid();
    for (int i = 0; i < GENERATIONS_MAX && at > 1 && at != process; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/status", at);
        at = cw_process_file_number(path, "PPid:", 0);
    }
    return at == process;
}

pid_t cw_copy_tracer(int scope, const char *told, pid_t parent)
{
    if (scope != YAMA_RESTRICTED) {
        return 0; /* it needs no permission, or none helps */
    }
    long process = told == NULL ? 0 : strtol(told, NULL, 10);
    if (process > 1 && process <= INT_MAX && is_ancestor((pid_t)process)) {
        return (pid_t)process;
    }
    return parent > 1 ? parent : 0; /* all descend from the first process */
}

void cw_copy_allow(const char *told)
{
    int scope = cw_process_file_number("/proc/sys/kernel/yama/ptrace_scope", "", -1);
    pid_t tracer = cw_copy_tracer(scope, told, getppid());
    if (tracer > 0) {
        (void)prctl(PR_SET_PTRACER, (unsigned long)tracer, 0, 0, 0); /* else cw_copy_probe finds out */
    }
}

bool cw_copy_probe(pid_t pid, uint64_t address, uint64_t value)
{
    uint64_t found = ~value;
    return cw_copy_from(pid, &found, address, sizeof(found)) == CW_OK && found == value;
}

bool cw_copy_probe_write(pid_t pid, uint64_t address, uint64_t value)
{
    return cw_copy_to(pid, address, &value, sizeof(value)) == CW_OK;
}

static int copy_status(void)
{
    switch (errno) {
    case ESRCH:
        return CW_ERROR_NOT_FOUND;
    case EFAULT:
        return CW_ERROR_REMOTE_ACCESS;
    case EPERM:
    case EACCES:
    case ENOSYS:
        return CW_ERROR_PERMISSION;
    default:
        return CW_ERROR_SYSTEM;
    }
}

typedef ssize_t copy_call(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
                          unsigned long remote_count, unsigned long flags);

/* The kernel may move less than asked for (2 GiB at most at once). */
static int copy_all(copy_call *call, pid_t pid, void *here, uint64_t there, uint64_t bytes)
{
    while (bytes > 0) {
        struct iovec local = {.iov_base = here, .iov_len = bytes};
        struct iovec remote = {.iov_base = (void *)(uintptr_t)there, .iov_len = bytes};
        ssize_t moved = call(pid, &local, 1, &remote, 1, 0);
        if (moved < 0) {
            return copy_status();
        }
        if (moved == 0) {
            return CW_ERROR_REMOTE_ACCESS;
        }
        here = (uint8_t *)here + moved;
        there += (uint64_t)moved;
        bytes -= (uint64_t)moved;
    }
    return CW_OK;
}

int cw_copy_from(pid_t pid, void *to, uint64_t address, uint64_t bytes)
{
    return copy_all(process_vm_readv, pid, to, address, bytes);
}

int cw_copy_to(pid_t pid, uint64_t address, const void *from, uint64_t bytes)
{
    return copy_all(process_vm_writev, pid, (void *)(uintptr_t)from, address, bytes);
}
