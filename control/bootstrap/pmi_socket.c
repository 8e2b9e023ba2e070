/* The descriptor to a launcher that speaks PMI-1. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/bootstrap/pmi1_line.h"
#include "control/bootstrap/private.h"
#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/process.h"
#include "dataplane/shm/copy.h"
#include "dataplane/status.h"

enum { LOOK_MS = 500 };
#define LOOK_GAP_NS UINT64_C(3000000000) /* between two looks: after a longer one this process was stopped itself */

/* Converts an error of read or write. */
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

/* Whether a process is an agent of our launcher's (`causeway agent`). The launcher itself may be stopped by its user
 * for any time (Ctrl-Z). */
static bool is_agent(int process)
{
    char path[64], words[PATH_MAX] = "";
    snprintf(path, sizeof(path), "/proc/%d/cmdline", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, words, sizeof(words) - 1);
    if (file >= 0) {
        close(file);
    }
    size_t first = strlen(words) + 1;
    return got > 0 && first < (size_t)got && strcmp(words + first, "agent") == 0;
}

/* The agent that all ranks of this host descend from; 0: there is none, or another launcher's. */
static int agent_of(void)
{
    const char *text = cw_setting(CW_SETTING_WORKER);
    long number = 0;
    bool is_known = text != NULL && cw_pmi1_number_read(text, 2, INT_MAX, &number) && is_agent((int)number);
    return is_known ? (int)number : 0;
}

/* Waits until there is something to read. An agent that is stopped for the failure bound counts as dead: by then the
 * launcher has abandoned it, and cannot end this rank without it. */
static int answer_await(struct cw_bootstrap *bootstrap, int descriptor)
{
    struct pollfd ready = {.fd = descriptor, .events = POLLIN};
    const char *origin;
    uint64_t bound_ns = 0, stopped_ns = 0, looked_ns = cw_clock_ns();
    if (poll(&ready, 1, LOOK_MS) != 0) { /* most answers come at once */
        return CW_OK;
    }
    int agent = agent_of();
    (void)cw_settings_failure_timeout(&bound_ns, &origin); /* other code reports an invalid setting */
    while (poll(&ready, 1, agent > 0 && bound_ns > 0 ? LOOK_MS : -1) == 0) {
        uint64_t now_ns = cw_clock_ns();
        bool is_known =
            now_ns - looked_ns < LOOK_GAP_NS && cw_process_is_stopped(agent); /* else we were stopped, too */
        looked_ns = now_ns;
        stopped_ns = !is_known ? 0 : stopped_ns == 0 ? now_ns : stopped_ns;
        if (stopped_ns != 0 && now_ns - stopped_ns >= bound_ns + LOOK_GAP_NS) {
            return FAIL(bootstrap, CW_ERROR_CLOSED,
                        "the launcher's agent on this host (process %d) is stopped by a signal (state T) for %" PRIu64
                        " s (CAUSEWAY_FAILURE_TIMEOUT)",
                        agent, (now_ns - stopped_ns) / 1000000000);
        }
    }
    return CW_OK;
}

int bootstrap_pmi_read(struct cw_bootstrap *bootstrap, int descriptor, char *text, size_t room, size_t *got)
{
    int status = answer_await(bootstrap, descriptor);
    if (status != CW_OK) {
        return status;
    }
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
    const char *text = cw_environment(name);
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
    /* child processes must neither speak to the launcher for this one nor keep the connection open */
    if (fcntl((int)inherited, F_SETFD, FD_CLOEXEC) != 0) {
        return io_fail(bootstrap, (int)inherited, errno);
    }
    *descriptor = (int)inherited;
    bootstrap->info.rank = (uint32_t)rank;
    bootstrap->info.size = (uint32_t)size;
    return CW_OK;
}
