/* Waiting by the application: it polls a descriptor of the loop in its own event loop, and no thread holds the token
 * meanwhile. So calls of all threads run at once. Each of them ends with cw_loop_release, which rings the bell if the
 * call has brought an event or an earlier deadline. */
#include "dataplane/loop/loop_private.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dataplane/base/clock.h"
#include "dataplane/endpoint/turn.h"
#include "dataplane/port/error_text.h"

void cw_loop_watch_ring(const struct cw_loop *loop)
{
    const uint64_t one = 1;
    ssize_t written = write(loop->watch.bell, &one, sizeof(one));
    (void)written; /* fails only if the bell is readable anyway */
}

/* ---- opening ---- */

static bool set_add(const struct loop_watch *watch, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(watch->set, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

/* As owner: CW_OK, or -errno. */
static int watch_open(struct cw_endpoint *endpoint, void *context)
{
    struct cw_loop *loop = context;
    (void)endpoint;
    if (loop->watch.is_open) {
        return CW_OK;
    }
    int descriptor = cw_port_descriptor(loop->port);
    struct loop_watch watch = {.is_open = true, .has_port = descriptor >= 0};
    watch.set = epoll_create1(EPOLL_CLOEXEC);
    watch.bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (watch.set >= 0 && watch.bell >= 0 && set_add(&watch, watch.bell) &&
        (!watch.has_port || set_add(&watch, descriptor))) {
        loop->watch = watch;
        return CW_OK;
    }
    int failed = -errno;
    close(watch.set);
    close(watch.bell);
    return failed;
}

int cw_loop_descriptor(struct cw_loop *loop, int *descriptor, char *error, size_t error_bytes)
{
    if (loop->config.mode != CW_LOOP_INLINE || loop->config.fallback != CW_FALLBACK_NONE) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "loop: a thread of its own turns it, so it has no descriptor. Fix: mode CW_LOOP_INLINE "
                             "and fallback CW_FALLBACK_NONE in struct cw_loop_config");
    }
    if (loop->endpoint->rdma != NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                             "loop: its endpoint has an RDMA device, and no descriptor shows the device's completions. "
                             "Fix: cw_loop_wait instead of an own event loop, or no RDMA device");
    }
    int failed = cw_loop_call(loop, watch_open, loop);
    if (failed != 0) {
        return cw_error_text(error, error_bytes, cw_status_of_errno(-failed), "loop: no descriptor: %s%s",
                             strerror(-failed), cw_errno_remedy(-failed));
    }
    *descriptor = loop->watch.set;
    return CW_OK;
}

void cw_loop_watch_close(struct cw_loop *loop)
{
    if (loop->watch.is_open) {
        close(loop->watch.set);
        close(loop->watch.bell);
        loop->watch = (struct loop_watch){.is_open = false};
    }
}

/* ---- waiting ---- */

void cw_loop_watch_disarm(struct cw_loop *loop)
{
    struct loop_watch *watch = &loop->watch;
    uint64_t rings;
    watch->is_armed = false;
    watch->until_ns = 0;
    if (watch->has_port) {
        cw_port_disarm(loop->port);
    }
    /* A ring that comes after this read ends the next wait early, and is read then. */
    ssize_t taken = read(watch->bell, &rings, sizeof(rings));
    (void)taken;
}

void cw_loop_watch_look(struct cw_loop *loop)
{
    struct loop_watch *watch = &loop->watch;
    if (cw_events_count(&loop->endpoint->events) > 0 || cw_endpoint_deadline(loop->endpoint) < watch->until_ns) {
        watch->until_ns = 0; /* one ring is enough */
        cw_loop_watch_ring(loop);
    }
}

uint64_t cw_loop_arm(struct cw_loop *loop)
{
    struct loop_watch *watch = &loop->watch;
    assert(watch->is_open);
    if (!cw_token_acquire(&loop->token)) {
        sched_yield(); /* a call of another thread, which is short */
        return 0;
    }
    if (watch->is_armed) {
        cw_loop_watch_disarm(loop);
    }
    watch->is_armed = true;
    bool has_packets = watch->has_port && cw_port_arm(loop->port);
    bool has_events = cw_events_count(&loop->endpoint->events) > 0;
    uint64_t now_ns = cw_clock_ns(), deadline_ns = cw_endpoint_deadline(loop->endpoint), timeout_ns = 0;
    if (has_packets || has_events || deadline_ns <= now_ns) {
        cw_loop_watch_disarm(loop);
    } else {
        watch->until_ns = deadline_ns;
        timeout_ns = deadline_ns == UINT64_MAX ? UINT64_MAX : deadline_ns - now_ns;
        timeout_ns = watch->has_port || timeout_ns < CW_LOOP_LOOK_NS ? timeout_ns : CW_LOOP_LOOK_NS;
        loop->counters.sleeps++;
    }
    cw_loop_release(loop); /* it runs what other threads have queued meanwhile, and looks */
    return timeout_ns;
}
