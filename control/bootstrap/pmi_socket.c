/* The descriptor to a launcher that speaks PMI-1 or PMI-2. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/bootstrap/pmi1_line.h"
#include "control/bootstrap/private.h"
#include "dataplane/status.h"

/* What an error of read or write means. */
static int io_fail(struct cw_bootstrap *bootstrap, int descriptor, int error)
{
    if (error == EPIPE || error == ECONNRESET || error == ENOTCONN) {
        return FAIL(bootstrap, CW_ERROR_CLOSED,
                    "the launcher has closed the connection: it has ended, or ends the job");
    }
    return FAIL(bootstrap, CW_ERROR_SYSTEM, "cannot talk to the launcher over descriptor %d: %s%s", descriptor,
                strerror(error),
                error == EBADF ? " (PMI_FD comes from an environment that is not ours: unset it)" : "");
}

int bootstrap_pmi_write(struct cw_bootstrap *bootstrap, int descriptor, const char *text, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t sent = send(descriptor, text + done, length - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == ENOTSOCK) {
            sent = write(descriptor, text + done, length - done);
        }
        if (sent < 0 && errno != EINTR) {
            return io_fail(bootstrap, descriptor, errno);
        }
        done += sent > 0 ? (size_t)sent : 0;
    }
    bootstrap->traffic.bytes += length;
    return CW_OK;
}

int bootstrap_pmi_read(struct cw_bootstrap *bootstrap, int descriptor, char *text, size_t room, size_t *got)
{
    ssize_t length = read(descriptor, text, room);
    if (length == 0 || (length < 0 && errno != EINTR)) {
        return io_fail(bootstrap, descriptor, length == 0 ? EPIPE : errno);
    }
    *got = length > 0 ? (size_t)length : 0;
    bootstrap->traffic.bytes += *got;
    return CW_OK;
}

bool bootstrap_pmi_is_cut(int descriptor)
{
    struct pollfd cut = {.fd = descriptor, .events = POLLRDHUP};
    return poll(&cut, 1, 0) > 0 && (cut.revents & (POLLRDHUP | POLLHUP)) != 0;
}

int bootstrap_pmi_number(struct cw_bootstrap *bootstrap, const char *name, long low, long high, long *number)
{
    const char *text = getenv(name);
    if (text == NULL || !cw_pmi1_number_read(text, low, high, number)) {
        return FAIL(bootstrap, CW_ERROR_UNSUPPORTED,
                    "%s is %s%.40s, but PMI_FD or PMI_PORT is set: start by a launcher, or unset the PMI_ variables",
                    name, text == NULL ? "not set" : "no number that makes sense: ", text == NULL ? "" : text);
    }
    return CW_OK;
}

int bootstrap_pmi_inherit(struct cw_bootstrap *bootstrap, int *descriptor)
{
    long inherited = 0;
    long rank = 0;
    long size = 0;
    int status = bootstrap_pmi_number(bootstrap, "PMI_FD", 0, 1 << 20, &inherited);
    if (status == CW_OK) {
        status = bootstrap_pmi_number(bootstrap, "PMI_SIZE", 1, BOOTSTRAP_RANKS_MAX, &size);
    }
    if (status == CW_OK) {
        status = bootstrap_pmi_number(bootstrap, "PMI_RANK", 0, size - 1, &rank);
    }
    if (status != CW_OK) {
        return status;
    }
    /* what this process starts must neither talk to the launcher in its name nor keep the connection open */
    if (fcntl((int)inherited, F_SETFD, FD_CLOEXEC) != 0) {
        return io_fail(bootstrap, (int)inherited, errno);
    }
    *descriptor = (int)inherited;
    bootstrap->info.rank = (uint32_t)rank;
    bootstrap->info.size = (uint32_t)size;
    return CW_OK;
}
