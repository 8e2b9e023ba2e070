#include "dataplane/shm/copy.h"

#include "dataplane/status.h"

#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/uio.h>

void cw_copy_allow(void)
{
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* EINVAL where there is no Yama: nothing to allow */
}

bool cw_copy_probe(pid_t pid, uint64_t address, uint64_t value)
{
    uint64_t found = ~value;
    return cw_copy_from(pid, &found, address, sizeof(found)) == CW_OK && found == value;
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
