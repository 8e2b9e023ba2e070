#include "control/launch/agent.h"
#include "control/launch/private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- what is checked before anything starts ---- */

static uint64_t ranks_count(const struct cw_launch_config *config)
{
    uint64_t count = 0;
    for (size_t i = 0; i < config->program_count; i++) {
        count += config->programs[i].count;
    }
    return count;
}

static int config_check(const struct cw_launch_config *config)
{
    uint64_t count = ranks_count(config);
    if (count == 0 || count > CW_LAUNCH_RANKS_MAX) {
        fprintf(stderr, "%s: %" PRIu64 " ranks: a job has 1 to %d\n", config->name, count, CW_LAUNCH_RANKS_MAX);
        return CW_LAUNCH_EXIT_USAGE;
    }
    if (config->stdin_rank >= (int64_t)count) {
        fprintf(stderr, "%s: there is no rank %" PRId64 " for the standard input: the last one is %" PRIu64 "\n",
                config->name, config->stdin_rank, count - 1);
        return CW_LAUNCH_EXIT_USAGE;
    }
    return 0;
}

/* Descriptors 0 to 2 are there, so that no pipe of ours gets their numbers. */
static void standard_files_open(void)
{
    int descriptor;
    do {
        descriptor = open("/dev/null", O_RDWR);
    } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor >= 0) {
        close(descriptor);
    }
}

/* ---- start ---- */

/* The signals that end the job, except those that we were started to ignore (nohup, jobs in the background). */
static void signals_choose(sigset_t *handled)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigemptyset(handled);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
            sigaddset(handled, numbers[i]);
        }
    }
}

void cw_launch_hold(sigset_t *handled, sigset_t *before)
{
    signals_choose(handled);
    sigprocmask(SIG_BLOCK, handled, before);
}

/* The launcher's work; `control` receives notices of the supervisor. */
struct life {
    const struct cw_launch_config *config;
    int (*run)(const struct life *life, int control, const sigset_t *handled, const sigset_t *before);
};

static int life_start(const struct life *life)
{
    const struct cw_launch_config *config = life->config;
    int control[2];
    sigset_t handled;
    sigset_t blocked;
    sigset_t before;
    int code;
    standard_files_open();
    fflush(NULL); /* or the launcher has it, too */
    if (pipe2(control, O_CLOEXEC) != 0) {
        fprintf(stderr, "%s: no pipe: %s\n", config->name, strerror(errno));
        return CW_LAUNCH_EXIT_MACHINE;
    }
    fcntl(control[1], F_SETFL, O_NONBLOCK);
    signal(SIGCHLD, SIG_DFL);
    signals_choose(&handled);
    blocked = handled;
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t launcher = fork();
    if (launcher == 0) {
        close(control[1]);
        prctl(PR_SET_PDEATHSIG, SIGCONT); /* a stopped one also notices the supervisor's end, by its pipe */
        _exit(life->run(life, control[0], &handled, config->mask != NULL ? config->mask : &before));
    }
    close(control[0]);
    if (launcher < 0) {
        fprintf(stderr, "%s: cannot start: %s (`ulimit -u`)\n", config->name, strerror(errno));
        code = CW_LAUNCH_EXIT_MACHINE;
    } else {
        code = launch_supervisor_wait(config, launcher, control[1], &handled);
    }
    close(control[1]);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

static int launcher_run(const struct life *life, int control, const sigset_t *handled, const sigset_t *before)
{
    return launch_job_run(life->config, control, handled, before);
}

static int agent_run(const struct life *life, int control, const sigset_t *handled, const sigset_t *before)
{
    (void)life;
    return launch_agent_run(control, handled, before);
}

int cw_launch_run(const struct cw_launch_config *config)
{
    const struct life life = {.config = config, .run = launcher_run};
    int code = config_check(config);
    return code != 0 ? code : life_start(&life);
}

int cw_launch_agent(void)
{
    const struct cw_launch_config config = {.name = "causeway agent", .guards_launcher = true};
    const struct life life = {.config = &config, .run = agent_run};
    return life_start(&life);
}
