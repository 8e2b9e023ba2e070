#include "apps/bench/control.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "dataplane/status.h"

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Waits until the descriptor is ready for `events` or the deadline has passed. */
static int ready_wait(int descriptor, short events, uint64_t end_ns)
{
    uint64_t now_ns = clock_ns();
    uint64_t left_ns = now_ns < end_ns ? end_ns - now_ns : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left_ns / 1000000000), .tv_nsec = (long)(left_ns % 1000000000)};
    struct pollfd set = {.fd = descriptor, .events = events};
    int count = ppoll(&set, 1, &timeout, NULL);
    if (count < 0) {
        return errno == EINTR ? CW_OK : CW_ERROR_SYSTEM;
    }
    return count == 0 ? CW_ERROR_TIMEOUT : CW_OK;
}

/* Moves `bytes` bytes one way or the other. */
static int transfer(int descriptor, char *data, size_t bytes, bool sending, uint64_t timeout_ns)
{
    uint64_t now_ns = clock_ns();
    uint64_t end_ns = timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;
    while (bytes > 0) {
        ssize_t moved = sending ? send(descriptor, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL)
                                : recv(descriptor, data, bytes, MSG_DONTWAIT);
        if (moved > 0) {
            data += moved;
            bytes -= (size_t)moved;
            continue;
        }
        if (moved == 0 || errno == EPIPE || errno == ECONNRESET) {
            return CW_ERROR_CLOSED;
        }
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            return CW_ERROR_SYSTEM;
        }
        int status = ready_wait(descriptor, sending ? POLLOUT : POLLIN, end_ns);
        if (status != CW_OK) {
            return status;
        }
    }
    return CW_OK;
}

int bench_control_send(int descriptor, const void *message, size_t bytes, uint64_t timeout_ns)
{
    return transfer(descriptor, (char *)(uintptr_t)message, bytes, true, timeout_ns);
}

int bench_control_receive(int descriptor, void *message, size_t bytes, uint64_t timeout_ns)
{
    return transfer(descriptor, message, bytes, false, timeout_ns);
}

int bench_control_barrier(int descriptor, uint32_t phase, uint64_t timeout_ns)
{
    int status = bench_control_send(descriptor, &phase, sizeof(phase), timeout_ns);
    uint32_t other = 0;
    if (status == CW_OK) {
        status = bench_control_receive(descriptor, &other, sizeof(other), timeout_ns);
    }
    return status == CW_OK && other != phase ? CW_ERROR_ARGUMENT : status;
}

int bench_control_sides(int (*side)(void *context, bool initiator, int control), void *context)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        app_error("no socket pair", strerror(errno), NULL);
        return APP_EXIT_MACHINE;
    }
    fflush(stdout);
    pid_t other = fork();
    if (other < 0) {
        app_error("no process for the other side", strerror(errno), NULL);
        return APP_EXIT_MACHINE;
    }
    if (other == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody is left behind when the first side is killed */
    }
    close(ends[other != 0 ? 1 : 0]);
    int code = side(context, other != 0, ends[other != 0 ? 0 : 1]);
    if (other == 0) {
        _exit(code);
    }
    close(ends[0]);
    int status = 0;
    while (waitpid(other, &status, 0) < 0 && errno == EINTR) {
    }
    return code != APP_EXIT_SUCCESS ? code : WIFEXITED(status) ? WEXITSTATUS(status) : APP_EXIT_INTERNAL;
}
