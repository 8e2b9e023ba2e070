/* The supervisor, while the launcher works: it passes signals on, and watches the launcher and the helper. */
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

#define LOOK_NS UINT64_C(1000000000) /* between checks for stopped ranks: no event reports them */
/* How long the launcher has to end after the second signal. */
#define HURRY_NS UINT64_C(5000000000)
/* ... after the time of the job, its ranks' answers, and their grace, before it is looked at whether it is stopped. */
#define LATE_NS UINT64_C(8000000000)

struct supervisor {
    const struct cw_launch_config *config;
    pid_t launcher;
    int control;
    uint32_t signals;             /* that have come */
    uint64_t kill_ns;             /* of the launcher; UINT64_MAX: it is in order */
    uint64_t late_ns;             /* when a stopped launcher is too late for --timeout; UINT64_MAX: none */
    uint64_t helper_bound_ns;     /* for how long it may be stopped; 0: forever */
    uint64_t launcher_stopped_ns; /* since when it is, if that matters; 0: it is not */
    uint64_t helper_stopped_ns;   /* since when it is; 0: it is not */
    bool helper_told;             /* its result */
};

static void notify(const struct supervisor *supervisor, enum launch_notice_kind kind, int number)
{
    struct launch_notice notice = {.kind = (uint8_t)kind, .number = (uint8_t)number};
    ssize_t done = write(supervisor->control, &notice, sizeof(notice)); /* a pipe that is full has enough of them */
    (void)done;
}

static void signal_pass(struct supervisor *supervisor, int number)
{
    notify(supervisor, LAUNCH_NOTICE_SIGNAL, number);
    kill(supervisor->launcher, SIGCONT); /* a stopped one receives it, too */
    if (++supervisor->signals == 2) {
        supervisor->kill_ns = cw_clock_ns() + HURRY_NS;
    }
}

/* Whether the helper runs: one that has ended, or is stopped for too long, ends the job. */
static void helper_look(struct supervisor *supervisor, uint64_t now_ns)
{
    const struct cw_launch_helper *helper = &supervisor->config->helper;
    siginfo_t info = {.si_pid = 0};
    if (helper->process == 0 || supervisor->helper_told) {
        return;
    }
    if (waitid(P_PID, (id_t)helper->process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        supervisor->helper_told = true;
        notify(supervisor, LAUNCH_NOTICE_HELPER_ENDED, info.si_code == CLD_EXITED ? 0 : info.si_status);
        return;
    }
    if (!cw_process_is_stopped(helper->process)) {
        supervisor->helper_stopped_ns = 0;
        return;
    }
    supervisor->helper_stopped_ns = supervisor->helper_stopped_ns == 0 ? now_ns : supervisor->helper_stopped_ns;
    if (supervisor->helper_bound_ns != 0 && now_ns - supervisor->helper_stopped_ns >= supervisor->helper_bound_ns) {
        supervisor->helper_told = true;
        notify(supervisor, LAUNCH_NOTICE_HELPER_STOPPED, 0);
    }
}

/* A launcher that does not end in its time cannot be waited for. */
static void launcher_look(struct supervisor *supervisor, uint64_t now_ns)
{
    if (now_ns >= supervisor->late_ns && supervisor->kill_ns == UINT64_MAX &&
        cw_process_is_stopped(supervisor->launcher)) {
        kill(supervisor->launcher, SIGCONT);
        supervisor->kill_ns = now_ns + HURRY_NS;
    }
    if (supervisor->config->guards_launcher && supervisor->helper_bound_ns != 0) {
        bool is_stopped = cw_process_is_stopped(supervisor->launcher);
        supervisor->launcher_stopped_ns = !is_stopped                            ? 0
                                          : supervisor->launcher_stopped_ns == 0 ? now_ns
                                                                                 : supervisor->launcher_stopped_ns;
        supervisor->kill_ns = is_stopped && now_ns - supervisor->launcher_stopped_ns >= supervisor->helper_bound_ns
                                  ? now_ns
                                  : supervisor->kill_ns;
    }
    if (now_ns >= supervisor->kill_ns) {
        fprintf(stderr, "%s: its main process (process %d, state %c) did not end within %d s: killed\n",
                supervisor->config->name, supervisor->launcher, cw_process_state(supervisor->launcher),
                (int)(HURRY_NS / 1000000000));
        kill(supervisor->launcher, SIGKILL);
        supervisor->kill_ns = UINT64_MAX;
        supervisor->late_ns = UINT64_MAX;
    }
}

/* The launcher's end gives the job's exit code. */
static int launcher_code(const struct cw_launch_config *config, int status)
{
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status);
    }
    const char *name = sigabbrev_np(WTERMSIG(status));
    fprintf(stderr, "%s: its main process was ended by signal %d (SIG%s): all ranks have been ended\n", config->name,
            WTERMSIG(status), name != NULL ? name : "?");
    return SIGNAL_BASE + WTERMSIG(status);
}

/* Whether there is something to look at by and by. */
static bool is_watchful(const struct supervisor *supervisor)
{
    return supervisor->kill_ns != UINT64_MAX || supervisor->late_ns != UINT64_MAX ||
           supervisor->config->guards_launcher ||
           (supervisor->config->helper.process != 0 && !supervisor->helper_told && supervisor->helper_bound_ns != 0);
}

int launch_supervisor_wait(const struct cw_launch_config *config, pid_t launcher, int control, const sigset_t *handled)
{
    struct supervisor supervisor = {.config = config, .launcher = launcher, .control = control, .kill_ns = UINT64_MAX};
    const struct timespec look = {.tv_sec = LOOK_NS / 1000000000};
    const char *origin;
    sigset_t all = *handled;
    int status;
    sigaddset(&all, SIGCHLD);
    signal(SIGPIPE, SIG_IGN);                                                /* a launcher that was killed */
    (void)cw_settings_failure_timeout(&supervisor.helper_bound_ns, &origin); /* the ranks report an invalid value */
    supervisor.late_ns = config->timeout_ns == 0
                             ? UINT64_MAX
                             : cw_clock_ns() + config->timeout_ns + LAUNCH_QUERY_NS + LAUNCH_GRACE_NS + LATE_NS;
    for (;;) {
        pid_t ended = waitpid(launcher, &status, WNOHANG);
        if (ended == launcher || (ended < 0 && errno != EINTR)) {
            break;
        }
        helper_look(&supervisor, cw_clock_ns());
        launcher_look(&supervisor, cw_clock_ns());
        int number = is_watchful(&supervisor) ? sigtimedwait(&all, NULL, &look) : sigwaitinfo(&all, NULL);
        if (number > 0 && number != SIGCHLD) {
            signal_pass(&supervisor, number);
        }
    }
    launch_sweep(config->helper.process); /* no process is left, unless the launcher was killed */
    return launcher_code(config, status);
}
