#include "control/launch/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control/settings/settings.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"

enum { EVENTS = 64, PMI_READ_BYTES = 4096, SIGNAL_BASE = 128, JOB_NAME_BYTES = 64 };

bool launch_watch(int set, int descriptor, uint32_t events, enum launch_source source, uint32_t rank)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)source << 32 | rank};
    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0 || errno == EEXIST;
}

void launch_unwatch(int set, int descriptor)
{
    epoll_ctl(set, EPOLL_CTL_DEL, descriptor, NULL);
}

/* ---- the end of a job ---- */

void launch_signal_all(struct launch_job *job, int number)
{
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        /* ended ones are not reaped: the number is still theirs, and of what they have left behind */
        if (job->ranks[rank].process > 0) {
            kill(-job->ranks[rank].process, number);
        }
    }
}

void launch_fail(struct launch_job *job, int code, const char *format, ...)
{
    if (job->ending) {
        return;
    }
    job->ending = true;
    job->code = code;
    job->kill_ns = cw_clock_ns() + LAUNCH_GRACE_NS;
    if (format != NULL) {
        char text[LAUNCH_TEXT_BYTES];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        launch_output_say(job, "%s", text);
    }
    launch_signal_all(job, SIGTERM);
    launch_signal_all(job, SIGCONT); /* those that were stopped hear of it, too */
}

static void hurry(struct launch_job *job)
{
    job->hurried = true;
    job->kill_ns = 0;
}

static void signal_end(struct launch_job *job, int number)
{
    const char *name = sigabbrev_np(number);
    launch_fail(job, SIGNAL_BASE + number, "SIG%s: ending all ranks", name != NULL ? name : "?");
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

/* The front passes signals on: the second one means that there is no time. Without a front nobody waits for anything.
 * */
static void front_take(struct launch_job *job)
{
    struct launch_notice notice;
    ssize_t got = read(job->front, &notice, sizeof(notice));
    if (got == 0) {
        launch_unwatch(job->set, job->front);
        job->orphaned = true;
        launch_fail(job, SIGNAL_BASE + SIGKILL, NULL);
        hurry(job);
    } else if (got == sizeof(notice) && notice.kind != LAUNCH_NOTICE_SIGNAL) {
        helper_fail(job, &notice);
    } else if (got == sizeof(notice) && job->ending) {
        hurry(job);
    } else if (got == sizeof(notice)) {
        signal_end(job, notice.number);
    }
}

/* The terminal sends them to us, too; the front has passed on the same. */
static void signal_take(struct launch_job *job)
{
    struct signalfd_siginfo info;
    if (read(job->signals, &info, sizeof(info)) == sizeof(info)) {
        signal_end(job, (int)info.ssi_signo);
    }
}

/* ---- PMI ---- */

static void pmi_close(struct launch_job *job, uint32_t rank)
{
    struct launch_rank *at = &job->ranks[rank];
    launch_unwatch(job->set, at->pmi);
    close(at->pmi);
    at->pmi = -1;
    launch_watch_hangup(job, rank);
}

/* Sends what it can; while something is left nothing is read from this rank. */
static void pmi_send(struct launch_job *job, uint32_t rank)
{
    struct launch_rank *at = &job->ranks[rank];
    const char *bytes;
    size_t count;
    while (at->pmi >= 0 && (count = cw_pmi1_server_pending(job->server, rank, &bytes)) > 0) {
        ssize_t sent = send(at->pmi, bytes, count, MSG_NOSIGNAL);
        if (sent > 0) {
            cw_pmi1_server_sent(job->server, rank, (size_t)sent);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            pmi_close(job, rank);
        }
    }
    if (at->pmi < 0) {
        return;
    }
    bool blocked = cw_pmi1_server_pending(job->server, rank, &bytes) > 0;
    if (blocked != at->pmi_blocked) {
        at->pmi_blocked = blocked;
        launch_unwatch(job->set, at->pmi);
        launch_watch(job->set, at->pmi, blocked ? EPOLLOUT : EPOLLIN, LAUNCH_PMI, rank);
    }
}

static void pmi_answers_send(struct launch_job *job)
{
    uint32_t rank;
    while (cw_pmi1_server_next(job->server, &rank)) {
        pmi_send(job, rank);
    }
}

static void pmi_take(struct launch_job *job, uint32_t rank)
{
    char bytes[PMI_READ_BYTES];
    struct launch_rank *at = &job->ranks[rank];
    if (at->pmi_blocked) {
        pmi_send(job, rank);
    }
    if (at->pmi < 0 || at->pmi_blocked) {
        return;
    }
    ssize_t got = recv(at->pmi, bytes, sizeof(bytes), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        pmi_close(job, rank);
    } else if (got > 0 && cw_pmi1_server_take(job->server, rank, bytes, (size_t)got) != CW_OK) {
        launch_fail(job, CW_LAUNCH_EXIT_FAILED, "rank %" PRIu32 " (process %d) %s", rank, at->process,
                    cw_pmi1_server_failure(job->server));
        pmi_close(job, rank);
    }
    pmi_answers_send(job);
}

/* ---- the loop ---- */

static void process_take(struct launch_job *job, uint32_t rank)
{
    struct launch_rank *at = &job->ranks[rank];
    siginfo_t info = {.si_pid = 0};
    if (at->handle < 0 || waitid(P_PID, (id_t)at->process, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
        return;
    }
    if (at->pmi >= 0) {
        pmi_take(job, rank); /* its last words come before its end */
    }
    launch_watch_end(job, rank, &info);
}

static void event_take(struct launch_job *job, const struct epoll_event *event)
{
    uint32_t rank = (uint32_t)event->data.u64;
    switch ((enum launch_source)(event->data.u64 >> 32)) {
    case LAUNCH_SIGNAL:
        signal_take(job);
        break;
    case LAUNCH_FRONT:
        front_take(job);
        break;
    case LAUNCH_OUTPUTS:
        launch_output_take(job);
        break;
    case LAUNCH_SINK_OUT:
    case LAUNCH_SINK_ERR:
        launch_output_flush(job);
        break;
    case LAUNCH_PMI:
        pmi_take(job, rank);
        break;
    case LAUNCH_PROCESS:
        process_take(job, rank);
        break;
    case LAUNCH_INPUT:
        launch_input_take(job);
        break;
    case LAUNCH_INPUT_RANK:
        launch_input_turn(job);
        break;
    case LAUNCH_OUT:
    case LAUNCH_ERR:
        break; /* in the set of outputs only */
    }
}

/* Milliseconds for epoll_wait, never too few. */
static int timeout_ms(const struct launch_job *job, uint64_t now_ns)
{
    uint64_t deadline_ns = launch_watch_deadline(job);
    if (job->input.active && job->input.always_ready && job->input.count == 0) {
        return 0;
    }
    if (deadline_ns == UINT64_MAX) {
        return -1;
    }
    uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / 1000000 + 1 : 0;
    return left_ms < 1000000 ? (int)left_ms : 1000000;
}

static void job_turn(struct launch_job *job)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(job->set, events, EVENTS, timeout_ms(job, cw_clock_ns()));
    for (int i = 0; i < count; i++) {
        event_take(job, &events[i]);
    }
    if (job->input.always_ready) {
        launch_input_take(job);
    }
    launch_watch_judge(job, cw_clock_ns());
}

/* ---- from start to end ---- */

static void ranks_fill(struct launch_job *job)
{
    uint32_t rank = 0;
    for (size_t i = 0; i < job->config->program_count; i++) {
        for (uint32_t j = 0; j < job->config->programs[i].count; j++, rank++) {
            job->ranks[rank] = (struct launch_rank){
                .handle = -1,
                .pmi = -1,
                .outputs = {-1, -1},
                .input = -1,
                .program = &job->config->programs[i],
            };
        }
    }
}

static bool server_start(struct launch_job *job)
{
    char name[JOB_NAME_BYTES];
    uint32_t *app_numbers = calloc(job->rank_count, sizeof(*app_numbers));
    int status = CW_ERROR_MEMORY;
    snprintf(name, sizeof(name), "causeway-%d", getpid());
    if (app_numbers != NULL) {
        for (uint32_t rank = 0; rank < job->rank_count; rank++) {
            app_numbers[rank] = (uint32_t)(job->ranks[rank].program - job->config->programs);
        }
        status = cw_pmi1_server_create(&(struct cw_pmi1_server_config){.client_count = job->rank_count,
                                                                       .universe_size = job->rank_count,
                                                                       .job = name,
                                                                       .app_numbers = app_numbers},
                                       &job->server);
    }
    free(app_numbers);
    return status == CW_OK;
}

/* As many descriptors as the ranks need; the ranks themselves get the limit that was. */
static void files_raise(struct launch_job *job)
{
    getrlimit(RLIMIT_NOFILE, &job->files_before);
    struct rlimit raised = {.rlim_cur = job->files_before.rlim_max, .rlim_max = job->files_before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);
}

static bool job_open(struct launch_job *job, const sigset_t *handled)
{
    job->set = epoll_create1(EPOLL_CLOEXEC);
    job->output.set = epoll_create1(EPOLL_CLOEXEC);
    job->signals = signalfd(-1, handled, SFD_CLOEXEC | SFD_NONBLOCK);
    job->ranks = calloc(job->rank_count, sizeof(*job->ranks));
    if (job->set < 0 || job->output.set < 0 || job->signals < 0 || job->ranks == NULL) {
        return false;
    }
    ranks_fill(job);
    launch_watch(job->set, job->signals, EPOLLIN, LAUNCH_SIGNAL, 0);
    launch_watch(job->set, job->front, EPOLLIN, LAUNCH_FRONT, 0);
    launch_output_open(job);
    files_raise(job);
    job->pipe_ignored = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
    signal(SIGTTIN, SIG_IGN); /* reading from a terminal that another job has is an error then, and no stop */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    job->watch = cw_watch_create(job->rank_count);
    return server_start(job);
}

/* Kills what the ranks have left behind, only then gives their numbers back. */
static void ranks_sweep(struct launch_job *job)
{
    launch_signal_all(job, SIGKILL);
    launch_sweep(0);
}

int launch_job_run(const struct cw_launch_config *config, int front, const sigset_t *handled,
                   const sigset_t *mask_before)
{
    const char *origin;
    struct launch_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return CW_LAUNCH_EXIT_MACHINE;
    }
    job->config = config;
    job->front = front;
    job->mask_before = *mask_before;
    job->kill_ns = UINT64_MAX;
    job->stopped_look_ns = UINT64_MAX;
    (void)cw_settings_failure_timeout(&job->stopped_bound_ns, &origin); /* the ranks say if it makes no sense */
    job->deadline_ns = config->timeout_ns > 0 ? cw_clock_ns() + config->timeout_ns : UINT64_MAX;
    for (size_t i = 0; i < config->program_count; i++) {
        job->rank_count += config->programs[i].count;
    }
    if (!job_open(job, handled)) {
        fprintf(stderr, "%s: out of memory or descriptors before the first rank was started\n", config->name);
        return CW_LAUNCH_EXIT_MACHINE; /* the process ends: nothing is freed */
    }
    uint32_t started = 0;
    while (started < job->rank_count && launch_spawn(job, started)) {
        started++;
    }
    launch_input_start(job);
    /* what has interrupted the start is taken here */
    while (job->alive > 0 || (started < job->rank_count && !job->ending)) {
        job_turn(job);
    }
    ranks_sweep(job);
    launch_output_finish(job);
    if (job->orphaned && config->helper.orphaned != NULL) {
        config->helper.orphaned(config->helper.caller);
    }
    int code = job->code;
    cw_pmi1_server_destroy(job->server);
    cw_watch_close(job->watch);
    free(job->first_answers);
    free(job->input.bytes);
    free(job->ranks);
    free(job);
    return code;
}
