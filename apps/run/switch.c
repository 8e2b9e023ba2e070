#include "apps/run/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/cli/process.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/process.h"

enum { ARGUMENTS_MAX = 32, LINE_BYTES = 256, LOOK_MS = 100 };

/* The end of the wait for its first line. */
enum outcome { OUTCOME_READY, OUTCOME_ENDED, OUTCOME_LATE, OUTCOME_SIGNAL };

/* In the child: becomes the switch. */
static _Noreturn void switch_exec(const char *socket, const char *const *arguments, int parent, int output)
{
    char owner[16];
    const char *all[ARGUMENTS_MAX] = {"causeway", "switch", "--memif", socket, "--owner", owner};
    for (size_t i = 0; arguments[i] != NULL && i + 7 < ARGUMENTS_MAX; i++) {
        all[6 + i] = arguments[i];
    }
    snprintf(owner, sizeof(owner), "%d", parent);
    prctl(PR_SET_PDEATHSIG, SIGCONT); /* also one that is stopped sees then that it has no owner any more */
    setpgid(0, 0);                    /* Ctrl-C is for the launcher, which ends the rest in order */
    if (getppid() != parent || dup2(output, STDOUT_FILENO) < 0) {
        _exit(APP_EXIT_INTERNAL);
    }
    execv("/proc/self/exe", (char *const *)(uintptr_t)all);
    _exit(APP_EXIT_INTERNAL);
}

/* The time given to the switch since the launcher began to wait for it. */
struct patience {
    struct cw_process_turns first;
    uint64_t looked_ns;
    uint64_t given_ns;
};

static struct patience patience_begin(int process)
{
    return (struct patience){.first = cw_process_turns(process), .looked_ns = cw_clock_ns()};
}

/* Called every LOOK_MS. True: the switch has had `limit_ms`. Time in which it waited for a core does not count; the
 * kernel reports such time when the wait ends. If the machine or the launcher stood still, at most two intervals count.
 * */
static bool patience_is_over(struct patience *patience, int process, int limit_ms)
{
    struct cw_process_turns turns = cw_process_turns(process);
    uint64_t now_ns = cw_clock_ns(), elapsed_ns = now_ns - patience->looked_ns, most_ns = LOOK_MS * UINT64_C(2000000);
    uint64_t waited_ns = turns.waited_ns > patience->first.waited_ns ? turns.waited_ns - patience->first.waited_ns : 0;
    patience->given_ns += elapsed_ns < most_ns ? elapsed_ns : most_ns;
    patience->looked_ns = now_ns;
    return patience->given_ns >= waited_ns + (uint64_t)limit_ms * 1000000;
}

/* Reads its first line, or learns why there is none; `number`: of the signal that came. */
static enum outcome line_await(int process, int output, int signals, char line[LINE_BYTES], int *number)
{
    struct patience patience = patience_begin(process);
    size_t length = 0;
    line[0] = '\0';
    while (strchr(line, '\n') == NULL && length + 1 < LINE_BYTES) {
        struct pollfd wait[2] = {{.fd = output, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
        struct signalfd_siginfo info;
        if (poll(wait, 2, LOOK_MS) == 0) {
            if (patience_is_over(&patience, process, RUN_SWITCH_READY_MS)) {
                return OUTCOME_LATE;
            }
            continue;
        }
        if (wait[1].revents != 0 && read(signals, &info, sizeof(info)) == sizeof(info)) {
            *number = (int)info.ssi_signo;
            return OUTCOME_SIGNAL;
        }
        if (wait[0].revents == 0) {
            continue;
        }
        ssize_t got = read(output, line + length, LINE_BYTES - 1 - length);
        if (got <= 0) {
            return OUTCOME_ENDED;
        }
        length += (size_t)got;
        line[length] = '\0';
    }
    return strncmp(line, "ready:", 6) == 0 ? OUTCOME_READY : OUTCOME_ENDED;
}

/* False: it has not ended within the time. */
static bool end_await(const struct run_switch *made, int limit_ms)
{
    struct patience patience = patience_begin(made->process);
    for (;;) {
        struct pollfd gone = {.fd = made->handle, .events = POLLIN};
        int count = poll(&gone, 1, LOOK_MS);
        if (count != 0 && !(count < 0 && errno == EINTR)) {
            return true;
        }
        if (patience_is_over(&patience, made->process, limit_ms)) {
            return false;
        }
    }
}

/* The signal that has ended the switch; NULL: none has. It stays to be waited for. */
static const char *signal_of(const struct run_switch *made)
{
    siginfo_t ended = {0};
    bool is_known = made->handle >= 0 && end_await(made, RUN_SWITCH_END_MS) &&
                    waitid(P_PIDFD, (id_t)made->handle, &ended, WEXITED | WNOHANG | WNOWAIT) == 0;
    bool is_signal = is_known && (ended.si_code == CLD_KILLED || ended.si_code == CLD_DUMPED);
    return is_signal ? sigabbrev_np(ended.si_status) : NULL;
}

/* Says why there is no switch; the exit code. */
static int failure_report(const struct run_switch *made, enum outcome outcome, int number)
{
    char text[160];
    if (outcome == OUTCOME_SIGNAL) {
        return app_signal_report(number);
    }
    if (outcome == OUTCOME_LATE) {
        char state = cw_process_state(made->process);
        snprintf(text, sizeof(text),
                 "the switch between the emulated hosts does not start within %d s (process %d, state %c, %.1f s of "
                 "computing)",
                 RUN_SWITCH_READY_MS / 1000, made->process, state != 0 ? state : '?',
                 (double)cw_process_turns(made->process).ran_ns / 1e9);
    } else {
        const char *signal = signal_of(made);
        snprintf(text, sizeof(text), "the switch between the emulated hosts does not start%s%s",
                 signal != NULL ? ": it was ended by SIG" : "", signal != NULL ? signal : "");
    }
    app_error(text, made->folder, "alone: causeway switch --memif /tmp/s");
    return APP_EXIT_MACHINE;
}

int run_switch_start(struct run_switch *made, const char *const *arguments, const sigset_t *handled)
{
    char socket[RUN_FOLDER_BYTES + 8], line[LINE_BYTES];
    int ends[2];
    int number = 0;
    int parent = getpid();
    *made = (struct run_switch){.handle = -1};
    int code = run_folder_name(made->folder);
    if (code != 0) {
        return code;
    }
    run_folder_sweep(made->folder);
    snprintf(socket, sizeof(socket), "%s/s", made->folder);
    int signals = signalfd(-1, handled, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0 || pipe2(ends, O_CLOEXEC) != 0) {
        app_error("cannot make a pipe", strerror(errno), NULL);
        return APP_EXIT_MACHINE;
    }
    made->process = fork();
    if (made->process == 0) {
        switch_exec(socket, arguments, parent, ends[1]);
    }
    close(ends[1]);
    made->handle = made->process > 0 ? pidfd_open(made->process, 0) : -1;
    enum outcome outcome =
        made->handle < 0 ? OUTCOME_ENDED : line_await(made->process, ends[0], signals, line, &number);
    close(ends[0]); /* its counters are nobody's here */
    close(signals);
    return outcome == OUTCOME_READY ? 0 : failure_report(made, outcome, number);
}

int run_switch_stop(struct run_switch *made)
{
    siginfo_t ended = {0};
    if (made->process > 0 && made->handle >= 0) {
        pidfd_send_signal(made->handle, SIGTERM, NULL, 0);
        pidfd_send_signal(made->handle, SIGCONT, NULL, 0); /* a stopped one receives it, too */
        if (!end_await(made, RUN_SWITCH_END_MS)) {
            char text[128];
            snprintf(text, sizeof(text),
                     "the switch between the emulated hosts (process %d, state %c) did not end within %d s: killed",
                     made->process, cw_process_state(made->process), RUN_SWITCH_END_MS / 1000);
            app_error(text, NULL, "the last of its statistics may be missing");
            pidfd_send_signal(made->handle, SIGKILL, NULL, 0);
            (void)end_await(made, RUN_SWITCH_END_MS);
        }
        (void)waitid(P_PIDFD, (id_t)made->handle, &ended, WEXITED | WNOHANG);
        close(made->handle);
    }
    if (made->folder[0] != '\0') {
        run_folder_remove(made->folder);
    }
    *made = (struct run_switch){.handle = -1};
    return ended.si_code == CLD_EXITED ? ended.si_status : 0;
}
