/* The front, while the worker works: it passes signals on, and looks after the worker and the helper. */
#include "control/launch/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control/settings/settings.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/process.h"

enum { SIGNAL_BASE = 128 };

#define LOOK_NS UINT64_C(1000000000) /* at who is stopped: nothing tells when one that was continued is stopped again */
/* How long the worker has to end after the second signal. */
#define HURRY_NS UINT64_C(5000000000)
/* ... after the time of the job, its ranks' answers, and their grace, before it is looked at whether it is stopped. */
#define LATE_NS UINT64_C(8000000000)

struct front {
    const struct cw_launch_config *config;
    pid_t worker;
    int control;
    uint32_t signals;           /* that have come */
    uint64_t kill_ns;           /* of the worker; UINT64_MAX: it is in order */
    uint64_t late_ns;           /* when a stopped worker is too late for --timeout; UINT64_MAX: none */
    uint64_t helper_bound_ns;   /* for how long it may be stopped; 0: for ever */
    uint64_t worker_stopped_ns; /* since when it is, if that matters; 0: it is not */
    uint64_t helper_stopped_ns; /* since when it is; 0: it is not */
    bool helper_told;           /* what became of it */
};

static void tell(const struct front *front, enum launch_notice_kind kind, int number)
{
    struct launch_notice notice = {.kind = (uint8_t)kind, .number = (uint8_t)number};
    ssize_t done = write(front->control, &notice, sizeof(notice)); /* a pipe that is full has enough of them */
    (void)done;
}

static void signal_pass(struct front *front, int number)
{
    tell(front, LAUNCH_NOTICE_SIGNAL, number);
    kill(front->worker, SIGCONT); /* one that was stopped hears of it, too */
    if (++front->signals == 2) {
        front->kill_ns = cw_clock_ns() + HURRY_NS;
    }
}

/* Whether the helper runs: one that has ended, or is stopped for too long, ends the job. */
static void helper_look(struct front *front, uint64_t now_ns)
{
    const struct cw_launch_helper *helper = &front->config->helper;
    siginfo_t info = {.si_pid = 0};
    if (helper->process == 0 || front->helper_told) {
        return;
    }
    if (waitid(P_PID, (id_t)helper->process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        front->helper_told = true;
        tell(front, LAUNCH_NOTICE_HELPER_ENDED, info.si_code == CLD_EXITED ? 0 : info.si_status);
        return;
    }
    if (!cw_process_is_stopped(helper->process)) {
        front->helper_stopped_ns = 0;
        return;
    }
    front->helper_stopped_ns = front->helper_stopped_ns == 0 ? now_ns : front->helper_stopped_ns;
    if (front->helper_bound_ns != 0 && now_ns - front->helper_stopped_ns >= front->helper_bound_ns) {
        front->helper_told = true;
        tell(front, LAUNCH_NOTICE_HELPER_STOPPED, 0);
    }
}

/* A worker that does not end in its time cannot be waited for. */
static void worker_look(struct front *front, uint64_t now_ns)
{
    if (now_ns >= front->late_ns && front->kill_ns == UINT64_MAX && cw_process_is_stopped(front->worker)) {
        kill(front->worker, SIGCONT);
        front->kill_ns = now_ns + HURRY_NS;
    }
    if (front->config->guards_worker && front->helper_bound_ns != 0) {
        bool is_stopped = cw_process_is_stopped(front->worker);
        front->worker_stopped_ns = !is_stopped ? 0 : front->worker_stopped_ns == 0 ? now_ns : front->worker_stopped_ns;
        front->kill_ns =
            is_stopped && now_ns - front->worker_stopped_ns >= front->helper_bound_ns ? now_ns : front->kill_ns;
    }
    if (now_ns >= front->kill_ns) {
        fprintf(stderr, "%s: its worker (process %d, state %c) did not end within %d s: killed\n", front->config->name,
                front->worker, cw_process_state(front->worker), (int)(HURRY_NS / 1000000000));
        kill(front->worker, SIGKILL);
        front->kill_ns = UINT64_MAX;
        front->late_ns = UINT64_MAX;
    }
}

/* The worker's end tells the job's exit code. */
static int worker_code(const struct cw_launch_config *config, int status)
{
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status);
    }
    const char *name = sigabbrev_np(WTERMSIG(status));
    fprintf(stderr, "%s: its worker was ended by signal %d (SIG%s): all ranks have been ended\n", config->name,
            WTERMSIG(status), name != NULL ? name : "?");
    return SIGNAL_BASE + WTERMSIG(status);
}

/* Whether there is something to look at by and by. */
static bool is_watchful(const struct front *front)
{
    return front->kill_ns != UINT64_MAX || front->late_ns != UINT64_MAX || front->config->guards_worker ||
           (front->config->helper.process != 0 && !front->helper_told && front->helper_bound_ns != 0);
}

int launch_front_wait(const struct cw_launch_config *config, pid_t worker, int control, const sigset_t *handled)
{
    struct front front = {.config = config, .worker = worker, .control = control, .kill_ns = UINT64_MAX};
    const struct timespec look = {.tv_sec = LOOK_NS / 1000000000};
    const char *origin;
    sigset_t all = *handled;
    int status;
    sigaddset(&all, SIGCHLD);
    signal(SIGPIPE, SIG_IGN);                                           /* a worker that was killed */
    (void)cw_settings_failure_timeout(&front.helper_bound_ns, &origin); /* the ranks say if it makes no sense */
    front.late_ns = config->timeout_ns == 0
                        ? UINT64_MAX
                        : cw_clock_ns() + config->timeout_ns + LAUNCH_ASK_NS + LAUNCH_GRACE_NS + LATE_NS;
    for (;;) {
        pid_t ended = waitpid(worker, &status, WNOHANG);
        if (ended == worker || (ended < 0 && errno != EINTR)) {
            break;
        }
        helper_look(&front, cw_clock_ns());
        worker_look(&front, cw_clock_ns());
        int number = is_watchful(&front) ? sigtimedwait(&all, NULL, &look) : sigwaitinfo(&all, NULL);
        if (number > 0 && number != SIGCHLD) {
            signal_pass(&front, number);
        }
    }
    launch_sweep(config->helper.process); /* nobody, unless the worker was killed */
    return worker_code(config, status);
}
