#include "control/launch/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "control/job/key.h"
#include "control/launch/private.h"
#include "control/launch/tree.h"
#include "control/settings/setting.h"
#include "control/settings/settings.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"

enum { EVENTS = 64, READ_BYTES = 65536, QUEUE_MAX = 1 << 20, TEXT_BYTES = 512, FLUSH_MS = 5000 };

struct agent {
    int set;
    int supervisor, signals;
    struct launch_bytes received, waiting; /* from stdin, to stdout */
    bool out_watched, out_broken;
    struct launch_work work;
    uint32_t *hosts; /* NULL: not started yet */
    uint32_t host_count;
    struct launch_tree tree;
    const sigset_t *mask;
    bool pipe_ignored;
    bool is_open; /* the tree */
    bool held_above, held_here;
    bool ending;    /* the launcher has requested it: it wants a report of the end */
    bool is_over;   /* nobody listens */
    bool is_paused; /* the process above has reported that it is stopped: its silence means nothing */
    uint64_t bound_ns, heard_ns, sent_ns;
};

/* ---- up ---- */

static void hold_turn(struct agent *agent)
{
    bool full = launch_bytes_count(&agent->waiting) > QUEUE_MAX;
    if (agent->is_open && full != agent->held_here) {
        agent->held_here = full;
        launch_tree_order(&agent->tree,
                          &(struct launch_frame){.type = LAUNCH_HOLD, .value = full || agent->held_above});
    }
}

static void out_flush(struct agent *agent)
{
    while (!agent->out_broken && launch_bytes_count(&agent->waiting) > 0) {
        ssize_t done = write(STDOUT_FILENO, launch_bytes_front(&agent->waiting), launch_bytes_count(&agent->waiting));
        if (done > 0) {
            launch_bytes_drop(&agent->waiting, (size_t)done);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            agent->out_broken = agent->is_over = true;
        }
    }
    bool blocked = !agent->out_broken && launch_bytes_count(&agent->waiting) > 0;
    if (blocked && !agent->out_watched) {
        launch_watch(agent->set, STDOUT_FILENO, EPOLLOUT, LAUNCH_STDOUT, 0);
    } else if (!blocked && agent->out_watched) {
        launch_unwatch(agent->set, STDOUT_FILENO);
    }
    agent->out_watched = blocked;
}

static void report(void *context, const struct launch_frame *frame)
{
    struct agent *agent = context;
    if (launch_frame_write(&agent->waiting, frame) != CW_OK) {
        agent->is_over = true;
        return;
    }
    agent->sent_ns = cw_clock_ns();
    out_flush(agent);
}

static void fail(struct agent *agent, int code, const char *text)
{
    report(agent, &(struct launch_frame){.type = LAUNCH_FAIL,
                                         .rank = agent->hosts != NULL ? agent->hosts[0] : 0,
                                         .value = code,
                                         .bytes = text,
                                         .count = (uint32_t)strlen(text)});
}

static void ping(struct agent *agent)
{
    if (cw_clock_ns() >= agent->sent_ns + launch_ping_ns(agent->bound_ns)) {
        report(agent, &(struct launch_frame){.type = LAUNCH_PING});
    }
}

/* Reads once. False: the launcher is gone, or there is nothing. */
static bool in_read(struct agent *agent)
{
    char *room = launch_bytes_room(&agent->received, READ_BYTES);
    ssize_t got = room == NULL ? 0 : read(STDIN_FILENO, room, READ_BYTES);
    if (got > 0) {
        launch_bytes_added(&agent->received, (size_t)got);
        agent->heard_ns = cw_clock_ns();
    }
    agent->is_over = agent->is_over || got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    return got > 0;
}

static bool is_silent(const struct agent *agent, uint64_t now_ns)
{
    return agent->bound_ns != 0 && !agent->is_paused && now_ns >= agent->heard_ns + agent->bound_ns;
}

/* Whether an order that waits ends the ranks; notes whether whoever is above has been stopped meanwhile. */
static bool is_called_off(struct agent *agent)
{
    struct launch_bytes rest = agent->received; /* the same bytes, of which we drop in our copy only */
    struct launch_frame frame;
    size_t used;
    bool ends = false;
    while (!ends && launch_frame_read(&rest, &frame, &used) == 1) {
        ends = frame.type == LAUNCH_SIGNAL || frame.type == LAUNCH_END;
        agent->is_paused = frame.type == LAUNCH_PING && frame.value != 0;
        launch_bytes_drop(&rest, used);
    }
    return ends;
}

/* While a program takes its time to start: orders wait until it has, but the job's end does not. */
static bool still(void *context)
{
    struct agent *agent = context;
    ping(agent);
    launch_tree_ping(&agent->tree);
    while (!agent->is_over && launch_bytes_count(&agent->received) < LAUNCH_FRAME_MAX && in_read(agent)) {
        continue; /* it is taken apart when the ranks have started */
    }
    bool is_called = is_called_off(agent);
    agent->is_over = agent->is_over || is_silent(agent, cw_clock_ns());
    return !agent->is_over && !is_called;
}

/* At the end: reports must be sent before more are made. */
static bool relieve(void *context)
{
    struct agent *agent = context;
    while (launch_bytes_count(&agent->waiting) > QUEUE_MAX && !agent->out_broken) {
        struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
        if (poll(&ready, 1, FLUSH_MS) <= 0) {
            return false;
        }
        out_flush(agent);
    }
    return !agent->out_broken;
}

/* ---- the start ---- */

static bool environment_apply(struct agent *agent)
{
    for (char **at = agent->work.variables; *at != NULL; at++) {
        char *value = strchr(*at, '=');
        if (value != NULL) {
            *value = 0;
            bool done = cw_environment_set(*at, value + 1);
            *value = '=';
            if (!done) {
                return false;
            }
        }
    }
    return true;
}

static void start(struct agent *agent, const struct launch_frame *frame)
{
    char error[TEXT_BYTES];
    const char *version = NULL, *origin;
    bool all;
    if (agent->hosts != NULL) {
        agent->is_over = true; /* twice */
        return;
    }
    int status = launch_work_read(frame, &agent->work, &agent->hosts, &agent->host_count, &version);
    if (status != CW_OK) {
        if (status == CW_ERROR_UNSUPPORTED) {
            snprintf(error, sizeof(error), "Causeway %.40s got a job from Causeway %.40s: install the same version",
                     CW_VERSION, version);
        } else {
            snprintf(error, sizeof(error), "the job's description is invalid: %s", cw_status_text(status));
        }
        fail(agent, CW_LAUNCH_EXIT_MACHINE, error);
        agent->hosts = agent->hosts != NULL ? agent->hosts : calloc(1, sizeof(*agent->hosts));
        return;
    }
    if (!environment_apply(agent) ||
        (agent->work.has_key && cw_job_key_keep(agent->work.key, error, sizeof(error)) != CW_OK)) {
        fail(agent, CW_LAUNCH_EXIT_MACHINE, "out of memory or descriptors");
        return;
    }
    if (agent->work.directory != NULL) {
        (void)!chdir(
            agent->work.directory); /* relative paths begin there, as for the launcher; ranks report a failure */
    }
    (void)cw_settings_failure_timeout(&agent->bound_ns, &origin);
    const struct launch_tree_config config = {
        .work = &agent->work,
        .hosts = agent->hosts,
        .host_count = agent->host_count,
        .has_own = true,
        .local =
            {
                .set = agent->set,
                .interrupt = agent->supervisor,
                .deadline_ns = UINT64_MAX,
                .mask = agent->mask,
                .pipe_ignored = agent->pipe_ignored,
                .still = still,
                .relieve = relieve,
                .context = agent,
            },
        .up = {.context = agent, .receive = report},
    };
    agent->is_open = true;
    if (launch_tree_open(&agent->tree, &config, &all) != CW_OK) {
        fail(agent, CW_LAUNCH_EXIT_MACHINE, "out of memory or descriptors before the first rank was started");
    }
    agent->heard_ns = cw_clock_ns(); /* the link was not read meanwhile */
}

/* ---- down ---- */

static void order_apply(struct agent *agent, const struct launch_frame *frame)
{
    struct launch_frame order = *frame;
    agent->is_paused = frame->type == LAUNCH_PING && frame->value != 0;
    if (frame->type == LAUNCH_START) {
        start(agent, frame);
        return;
    }
    if (frame->type == LAUNCH_HOLD) {
        agent->held_above = frame->value != 0;
        order.value = agent->held_above || agent->held_here;
    }
    agent->ending = agent->ending || frame->type == LAUNCH_END;
    if (agent->is_open && frame->type != LAUNCH_PING) {
        launch_tree_order(&agent->tree, &order);
    }
}

static void in_receive(struct agent *agent)
{
    struct launch_frame frame;
    size_t used;
    int status = 0;
    if (!in_read(agent)) {
        return;
    }
    while (!agent->is_over && (status = launch_frame_read(&agent->received, &frame, &used)) == 1) {
        if (!launch_frame_is_order(&frame)) {
            status = CW_ERROR_ARGUMENT;
            break;
        }
        order_apply(agent, &frame);
        launch_bytes_drop(&agent->received, used);
    }
    agent->is_over = agent->is_over || status < 0;
}

/* A signal that is to end us ends the job; without the supervisor no process would end us. */
static void signal_receive(struct agent *agent, bool from_supervisor)
{
    struct launch_notice notice = {.number = 0};
    struct signalfd_siginfo info = {.ssi_signo = 0};
    ssize_t got =
        from_supervisor ? read(agent->supervisor, &notice, sizeof(notice)) : read(agent->signals, &info, sizeof(info));
    if (got <= 0) {
        agent->is_over = agent->is_over || (from_supervisor && got == 0);
        return;
    }
    report(agent, &(struct launch_frame){.type = LAUNCH_SIGNAL,
                                         .rank = agent->hosts != NULL ? agent->hosts[0] : 0,
                                         .value = from_supervisor ? notice.number : (int32_t)info.ssi_signo});
}

static void event_dispatch(struct agent *agent, const struct epoll_event *event)
{
    enum launch_source source = (enum launch_source)(event->data.u64 >> 32);
    switch (source) {
    case LAUNCH_STDIN:
        in_receive(agent);
        break;
    case LAUNCH_STDOUT:
        out_flush(agent);
        break;
    case LAUNCH_SUPERVISOR:
    case LAUNCH_SIGNALS:
        signal_receive(agent, source == LAUNCH_SUPERVISOR);
        break;
    default:
        launch_tree_event(&agent->tree, source, (uint32_t)event->data.u64);
    }
}

/* ---- the loop ---- */

static int timeout_ms(uint64_t due_ns, uint64_t now_ns)
{
    uint64_t left_ms = due_ns > now_ns ? (due_ns - now_ns) / 1000000 + 1 : 0;
    return due_ns == UINT64_MAX ? -1 : left_ms < 1000000 ? (int)left_ms : 1000000;
}

static void turn(struct agent *agent)
{
    struct epoll_event events[EVENTS];
    uint64_t now_ns = cw_clock_ns(), ping_ns = launch_ping_ns(agent->bound_ns);
    uint64_t due_ns = agent->is_open ? launch_tree_turn(&agent->tree, now_ns) : UINT64_MAX;
    if (ping_ns != UINT64_MAX) {
        ping(agent);
        due_ns = due_ns < now_ns + ping_ns ? due_ns : now_ns + ping_ns;
    }
    if (is_silent(agent, now_ns)) {
        agent->is_over = true;
        return;
    }
    int count = epoll_wait(agent->set, events, EVENTS, timeout_ms(due_ns, now_ns));
    for (int i = 0; i < count && !agent->is_over; i++) {
        event_dispatch(agent, &events[i]);
    }
    hold_turn(agent);
}

static void end(struct agent *agent)
{
    uint64_t end_ns = cw_clock_ns() + LAUNCH_END_NS;
    while (!agent->is_over && !launch_tree_is_done(&agent->tree) && cw_clock_ns() < end_ns) {
        turn(agent);
    }
    launch_tree_end_own(&agent->tree); /* kills what is left of the commands to other hosts, too */
    if (!agent->is_over) {
        report(agent, &(struct launch_frame){.type = LAUNCH_DONE});
    }
    while (!agent->out_broken && launch_bytes_count(&agent->waiting) > 0) {
        struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
        if (poll(&ready, 1, FLUSH_MS) <= 0) {
            break;
        }
        out_flush(agent);
    }
}

int launch_agent_run(int supervisor, const sigset_t *handled, const sigset_t *mask_before)
{
    struct agent agent = {.supervisor = supervisor, .mask = mask_before};
    const char *origin;
    char line[TEXT_BYTES], identity[LAUNCH_IDENTITY_BYTES];
    agent.pipe_ignored = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
    agent.set = epoll_create1(EPOLL_CLOEXEC);
    agent.signals = signalfd(-1, handled, SFD_CLOEXEC | SFD_NONBLOCK);
    if (agent.set < 0 || agent.signals < 0) {
        return CW_LAUNCH_EXIT_MACHINE;
    }
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    (void)cw_settings_failure_timeout(&agent.bound_ns, &origin);
    agent.heard_ns = agent.sent_ns = cw_clock_ns();
    launch_machine_identity(identity, sizeof(identity));
    int length = snprintf(line, sizeof(line), "%s %s\n", LAUNCH_AGENT_LINE, identity);
    (void)launch_bytes_add(&agent.waiting, line, (size_t)length);
    out_flush(&agent);
    launch_watch(agent.set, STDIN_FILENO, EPOLLIN, LAUNCH_STDIN, 0);
    launch_watch(agent.set, supervisor, EPOLLIN, LAUNCH_SUPERVISOR, 0);
    launch_watch(agent.set, agent.signals, EPOLLIN, LAUNCH_SIGNALS, 0);
    while (!agent.is_over && !agent.ending) {
        turn(&agent);
    }
    if (agent.is_open) {
        end(&agent);
        launch_tree_close(&agent.tree);
    }
    kill(getppid(), SIGCONT); /* a supervisor that is stopped has nothing to stay for */
    launch_work_dispose(&agent.work);
    free(agent.hosts);
    launch_bytes_dispose(&agent.received);
    launch_bytes_dispose(&agent.waiting);
    return agent.is_over ? CW_LAUNCH_EXIT_FAILED : 0;
}
