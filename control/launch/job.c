#include "control/launch/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "control/job/key.h"
#include "control/settings/settings.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"

enum { EVENTS = 64, SIGNAL_BASE = 128 };

static void hurry(struct launch_job *job)
{
    job->hurried = true;
    job->kill_ns = 0;
}

static void signal_end(struct launch_job *job, int number, const char *host)
{
    const char *name = sigabbrev_np(number);
    launch_fail(job, SIGNAL_BASE + number, "SIG%s%s%s: ending all ranks", name != NULL ? name : "?",
                host != NULL ? " for the agent on " : "", host != NULL ? host : "");
}

static void helper_fail(struct launch_job *job, const struct launch_notice *notice)
{
    const struct cw_launch_helper *helper = &job->config->helper;
    if (notice->kind == LAUNCH_NOTICE_HELPER_STOPPED) {
        launch_fail(job, CW_LAUNCH_EXIT_FAILED,
                    "%s (process %d) is stopped by a signal (state T) for %" PRIu64 " s: ending all ranks",
                    helper->name, helper->process, job->stopped_bound_ns / 1000000000);
        return;
    }
    const char *name = notice->number == 0 ? NULL : sigabbrev_np(notice->number);
    launch_fail(job, CW_LAUNCH_EXIT_FAILED, "%s (process %d) has ended%s%s: ending all ranks", helper->name,
                helper->process, notice->number == 0 ? "" : " by SIG",
                notice->number == 0 ? "" : (name != NULL ? name : "?"));
}

/* The supervisor passes signals on: the second one means that there is no time. Without a supervisor no process waits
 * for the result. */
static void supervisor_receive(struct launch_job *job)
{
    struct launch_notice notice;
    ssize_t got = read(job->supervisor, &notice, sizeof(notice));
    if (got == 0) {
        launch_unwatch(job->set, job->supervisor);
        job->orphaned = true;
        launch_fail(job, SIGNAL_BASE + SIGKILL, NULL);
        hurry(job);
    } else if (got == sizeof(notice) && notice.kind != LAUNCH_NOTICE_SIGNAL) {
        helper_fail(job, &notice);
    } else if (got == sizeof(notice) && job->ending) {
        hurry(job);
    } else if (got == sizeof(notice)) {
        signal_end(job, notice.number, NULL);
    }
}

/* Ctrl-Z: agents are notified first. The kernel then handles it as for any process: it stops it, unless it has been
 * continued meanwhile, or no process could continue it (an orphaned process group). */
static void pause_apply(struct launch_job *job)
{
    sigset_t pending, stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    if (sigpending(&pending) == 0 && sigismember(&pending, SIGTSTP) == 1) {
        launch_tree_pause(&job->tree, true);
        sigprocmask(SIG_UNBLOCK, &stop, NULL);
        sigprocmask(SIG_BLOCK, &stop, NULL);
        launch_tree_pause(&job->tree, false);
    }
}

/* The terminal sends them to us, too; the supervisor has passed on the same. */
static void signal_receive(struct launch_job *job)
{
    struct signalfd_siginfo info;
    pause_apply(job);
    if (read(job->signals, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGTSTP) {
        signal_end(job, (int)info.ssi_signo, NULL);
    }
}

/* ---- what is reported ---- */

static void started_apply(struct launch_job *job, const struct launch_frame *frame)
{
    struct launch_rank *at = &job->ranks[frame->rank];
    if (at->process == 0) {
        at->process = frame->value;
        at->is_alive = true;
        job->started++;
        job->alive++;
        launch_output_add(job, frame->rank);
    }
}

static void client_apply(struct launch_job *job, const struct launch_frame *frame)
{
    struct launch_rank *at = &job->ranks[frame->rank];
    bool waits = (frame->value & LAUNCH_CLIENT_WAITS) != 0;
    uint32_t state = (uint32_t)frame->value & 3;
    job->states[at->state]--;
    job->states[state]++;
    at->state = (enum cw_pmi1_client_state)state;
    job->waiting += (uint32_t)waits - (uint32_t)at->waits;
    at->waits = waits;
}

/* A machine that has two names would run twice as much as it was to. */
static void identity_apply(struct launch_job *job, const struct launch_frame *frame)
{
    char *own = job->identities[frame->rank];
    snprintf(own, LAUNCH_IDENTITY_BYTES, "%.*s", (int)frame->count, frame->bytes);
    for (uint32_t host = 0; host < job->work.host_count; host++) {
        if (host != frame->rank && strcmp(job->identities[host], own) == 0) {
            launch_fail(job, CW_LAUNCH_EXIT_USAGE,
                        "hosts %.100s and %.100s are the same machine: name it once, with as "
                        "many slots as it is to have (%.100s:N)",
                        job->work.host_names[host], job->work.host_names[frame->rank], job->work.host_names[host]);
            return;
        }
    }
}

static void text_apply(struct launch_job *job, const struct launch_frame *frame, bool is_end)
{
    const char *host = job->work.host_names[frame->rank];
    bool names_it = !launch_work_is_spread(&job->work) || (frame->count >= 5 && memcmp(frame->bytes, "host ", 5) == 0);
    char text[LAUNCH_TEXT_BYTES];
    snprintf(text, sizeof(text), "%s%.200s%s%.*s", names_it ? "" : "host ", names_it ? "" : host, names_it ? "" : ": ",
             (int)(frame->count < LAUNCH_TEXT_BYTES ? frame->count : LAUNCH_TEXT_BYTES - 1), frame->bytes);
    if (is_end) {
        launch_fail(job, frame->value, "%s", text);
    } else {
        launch_output_print(job, "%s", text);
    }
}

static void rank_dispatch(struct launch_job *job, const struct launch_frame *frame)
{
    struct launch_rank *at = &job->ranks[frame->rank];
    switch ((enum launch_frame_type)frame->type) {
    case LAUNCH_STARTED:
        started_apply(job, frame);
        break;
    case LAUNCH_OUTPUT:
        launch_output_receive(job, frame);
        break;
    case LAUNCH_CLIENT:
        client_apply(job, frame);
        break;
    case LAUNCH_ENDED:
        if (at->is_alive) {
            launch_watch_end(job, frame->rank, frame->value);
        }
        break;
    case LAUNCH_HANGUP:
        job->given_up = true;
        at->given_up_ns = cw_clock_ns(); /* a process that dies closes its descriptors first: its end is a better
                                          * report */
        break;
    case LAUNCH_ABORT:
        job->abort_code = job->abort_rank < 0 ? frame->value : job->abort_code;
        job->abort_rank = job->abort_rank < 0 ? (int64_t)frame->rank : job->abort_rank;
        break;
    case LAUNCH_STOPPED:
        launch_stopped_apply(job, frame);
        break;
    case LAUNCH_ANSWER:
        launch_query_receive(job, frame);
        break;
    case LAUNCH_TAKEN:
        launch_input_acknowledge(job, frame);
        break;
    default:
        break;
    }
}

static void report_dispatch(void *context, const struct launch_frame *frame)
{
    struct launch_job *job = context;
    bool is_host = frame->rank < job->work.host_count;
    switch ((enum launch_frame_type)frame->type) {
    case LAUNCH_FENCE:
        launch_tree_order(&job->tree, frame); /* all have what all have put */
        break;
    case LAUNCH_LOOKED:
        launch_stopped_apply(job, frame);
        break;
    case LAUNCH_SIGNAL:
        if (is_host) {
            signal_end(job, frame->value, job->work.host_names[frame->rank]);
        }
        break;
    case LAUNCH_FAIL:
    case LAUNCH_SAY:
        if (is_host) {
            text_apply(job, frame, frame->type == LAUNCH_FAIL);
        }
        break;
    case LAUNCH_HERE:
        if (is_host) {
            identity_apply(job, frame);
        }
        break;
    default:
        if (frame->rank < job->rank_count) {
            rank_dispatch(job, frame);
        }
    }
}

/* ---- the loop ---- */

static void event_dispatch(struct launch_job *job, const struct epoll_event *event)
{
    enum launch_source source = (enum launch_source)(event->data.u64 >> 32);
    switch (source) {
    case LAUNCH_SIGNALS:
        signal_receive(job);
        break;
    case LAUNCH_SUPERVISOR:
        supervisor_receive(job);
        break;
    case LAUNCH_STDOUT:
    case LAUNCH_STDERR:
        launch_output_flush(job);
        break;
    case LAUNCH_STDIN:
        launch_input_read(job);
        break;
    default:
        launch_tree_event(&job->tree, source, (uint32_t)event->data.u64);
    }
}

/* Milliseconds for epoll_wait, never too few. */
static int timeout_ms(const struct launch_job *job, uint64_t deadline_ns, uint64_t now_ns)
{
    if (job->input.active && job->input.always_ready && job->input.owed == 0) {
        return 0;
    }
    if (deadline_ns == UINT64_MAX) {
        return -1;
    }
    uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / 1000000 + 1 : 0;
    return left_ms < 1000000 ? (int)left_ms : 1000000;
}

/* `end_ns`: wait no longer. */
static void job_turn(struct launch_job *job, uint64_t end_ns)
{
    struct epoll_event events[EVENTS];
    uint64_t now_ns = cw_clock_ns();
    uint64_t tree_ns = launch_tree_turn(&job->tree, now_ns), prompt_ns = launch_output_turn(job, now_ns);
    launch_output_flush(job); /* launch_output_print only queues its message; an error here can end the job */
    uint64_t check_ns = launch_watch_deadline(job), due_ns = tree_ns < check_ns ? tree_ns : check_ns;
    due_ns = prompt_ns < due_ns ? prompt_ns : due_ns;
    int count = epoll_wait(job->set, events, EVENTS, timeout_ms(job, due_ns < end_ns ? due_ns : end_ns, now_ns));
    for (int i = 0; i < count; i++) {
        event_dispatch(job, &events[i]);
    }
    launch_output_flush(job);
    launch_input_turn(job);
    if (job->input.always_ready) {
        launch_input_read(job);
    }
    if (!job->is_over) {
        launch_watch_check(job, cw_clock_ns());
    }
}

/* Whether a process is left to wait for: unreachable ones do not count. */
static bool is_going_on(const struct launch_job *job)
{
    if (!job->ending) {
        return job->alive > 0 || job->started < job->rank_count;
    }
    bool any = false;
    for (uint32_t rank = 0; rank < job->rank_count && !any && job->alive > 0; rank++) {
        any = job->ranks[rank].is_alive && launch_tree_reaches(&job->tree, job->work.host_of[rank]);
    }
    return any && cw_clock_ns() < job->give_up_ns;
}

/* Waits until other hosts report that no process is left. */
static void hosts_end(struct launch_job *job)
{
    job->is_over = true;
    launch_order_all(job, LAUNCH_END, 0);
    uint64_t end_ns = cw_clock_ns() + (job->hurried ? LAUNCH_GRACE_NS : LAUNCH_END_NS);
    while (!launch_tree_is_done(&job->tree) && cw_clock_ns() < end_ns) {
        job_turn(job, end_ns);
    }
}

/* ---- from start to end ---- */

/* Signals that end the job, and Ctrl-Z, which is passed on to agents: they would treat a stopped launcher as lost. */
static int signals_open(const struct launch_work *work, const sigset_t *handled)
{
    sigset_t all = *handled;
    struct sigaction action;
    if (launch_work_is_spread(work) && sigaction(SIGTSTP, NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
        sigaddset(&all, SIGTSTP);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    return signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool job_open(struct launch_job *job, const sigset_t *handled, uint32_t *self)
{
    if (launch_place(job->config, &job->work, self) != CW_OK) {
        return false;
    }
    job->rank_count = job->work.rank_count;
    job->set = epoll_create1(EPOLL_CLOEXEC);
    job->signals = signals_open(&job->work, handled);
    job->ranks = calloc(job->rank_count, sizeof(*job->ranks));
    job->identities = calloc(job->work.host_count, sizeof(*job->identities));
    if (job->set < 0 || job->signals < 0 || job->ranks == NULL || job->identities == NULL) {
        return false;
    }
    job->states[CW_PMI1_CLIENT_NEW] = job->rank_count;
    launch_watch(job->set, job->signals, EPOLLIN, LAUNCH_SIGNALS, 0);
    launch_watch(job->set, job->supervisor, EPOLLIN, LAUNCH_SUPERVISOR, 0);
    launch_output_open(job);
    job->pipe_ignored = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
    signal(SIGTTIN, SIG_IGN); /* reading from a terminal that another job has is an error then, and no stop */
    if (*self != UINT32_MAX) {
        launch_machine_identity(job->identities[*self], LAUNCH_IDENTITY_BYTES);
    }
    return true;
}

/* Ranks of several hosts have a key. */
static bool key_make(struct launch_job *job, char *error, size_t error_bytes)
{
    if (job->work.host_count == 1) {
        return true;
    }
    job->work.has_key = cw_job_key_make(job->work.key, error, error_bytes) == CW_OK &&
                        cw_job_key_keep(job->work.key, error, error_bytes) == CW_OK;
    return job->work.has_key;
}

/* A program of this host starts slowly: agents, whose ranks may run by now, must not treat that as silence. */
static bool still(void *context)
{
    struct launch_job *job = context;
    launch_tree_ping(&job->tree);
    launch_output_flush(job);
    return true;
}

static bool tree_open(struct launch_job *job, uint32_t self, const sigset_t *mask)
{
    uint32_t *hosts = calloc(job->work.host_count, sizeof(*hosts));
    uint32_t count = 0;
    bool all, has_own = self != UINT32_MAX;
    if (hosts == NULL) {
        return false;
    }
    if (has_own) {
        hosts[count++] = self;
    }
    for (uint32_t host = 0; host < job->work.host_count; host++) {
        if (host != self) {
            hosts[count++] = host;
        }
    }
    const struct launch_tree_config config = {
        .work = &job->work,
        .hosts = hosts,
        .host_count = count,
        .has_own = has_own,
        .local =
            {
                .set = job->set,
                .interrupt = job->supervisor,
                .deadline_ns = job->deadline_ns,
                .mask = mask,
                .pipe_ignored = job->pipe_ignored,
                .shares_input = launch_input_is_shared(job, self),
                .still = still,
                .relieve = launch_output_relieve,
                .context = job,
            },
        .up = {.context = job, .receive = report_dispatch},
    };
    int status = launch_tree_open(&job->tree, &config, &all);
    free(hosts);
    return status == CW_OK;
}

int launch_job_run(const struct cw_launch_config *config, int supervisor, const sigset_t *handled,
                   const sigset_t *mask_before)
{
    char error[LAUNCH_TEXT_BYTES] = "out of memory or descriptors before the first rank was started";
    const char *origin;
    uint32_t self;
    struct launch_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return CW_LAUNCH_EXIT_MACHINE;
    }
    job->config = config;
    job->supervisor = supervisor;
    job->kill_ns = job->give_up_ns = UINT64_MAX;
    job->stopped_look_ns = UINT64_MAX;
    job->abort_rank = -1;
    (void)cw_settings_failure_timeout(&job->stopped_bound_ns, &origin); /* the ranks report an invalid value */
    job->deadline_ns = config->timeout_ns > 0 ? cw_clock_ns() + config->timeout_ns : UINT64_MAX;
    if (!job_open(job, handled, &self) || !key_make(job, error, sizeof(error)) || !tree_open(job, self, mask_before)) {
        launch_output_flush(job);
        fprintf(stderr, "%s: %s\n", config->name, error);
        return CW_LAUNCH_EXIT_MACHINE; /* the process ends: nothing is freed */
    }
    launch_input_start(job, self);
    while (is_going_on(job)) { /* handles a signal that interrupted the start */
        job_turn(job, UINT64_MAX);
    }
    hosts_end(job);
    launch_tree_end_own(&job->tree);
    if (self == UINT32_MAX) {
        launch_sweep(0); /* the commands that have started agents */
    }
    launch_output_finish(job);
    if (job->orphaned && config->helper.orphaned != NULL) {
        config->helper.orphaned(config->helper.caller);
    }
    int code = job->code;
    launch_tree_close(&job->tree);
    launch_work_dispose(&job->work);
    free(job->answers);
    free(job->first_answers);
    free(job->input.bytes);
    free(job->identities);
    free(job->ranks);
    free(job);
    return code;
}
