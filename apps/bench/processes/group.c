/* The first process of a group: starts the others, watches them, ends them. */
#include "apps/bench/processes/group.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apps/bench/processes/group_shared.h"
#include "apps/cli/cli.h"
#include "dataplane/base/clock.h"

#define WATCH_INTERVAL_NS 5000000

static void stop_all(struct bench_group *group)
{
    for (uint32_t i = 0; i < BENCH_MEMBERS; i++) {
        if (group->processes[i] > 0) {
            kill(group->processes[i], SIGKILL);
            while (waitpid(group->processes[i], NULL, 0) < 0 && errno == EINTR) {
            }
            group->processes[i] = 0;
        }
    }
    group->running = 0;
}

static uint32_t steps_of(const struct bench_group *group, uint32_t member)
{
    return atomic_load(&group->shared->members[member].steps);
}

/* How a member has ended; one that returned an error has reported it. */
static int end_report(const struct bench_group *group, uint32_t member, int status)
{
    char where[64];
    snprintf(where, sizeof(where), "process %u, at step %u", member, steps_of(group, member));
    if (WIFSIGNALED(status)) {
        char what[64];
        snprintf(what, sizeof(what), "a process was ended by signal %d", WTERMSIG(status));
        app_error(what, where, "out of memory? `dmesg` may say why");
        return APP_EXIT_INTERNAL;
    }
    if (WEXITSTATUS(status) == APP_EXIT_SUCCESS && steps_of(group, member) < BENCH_STEP_COUNT) {
        app_error("a process ended before its work was done", where, "this is a bug: please report it");
        return APP_EXIT_INTERNAL;
    }
    return WEXITSTATUS(status);
}

/* Takes note of members that have ended; the first failure among them. */
static int reap(struct bench_group *group)
{
    int code = APP_EXIT_SUCCESS;
    for (uint32_t i = 0; i < BENCH_MEMBERS; i++) {
        int status;
        if (group->processes[i] > 0 && waitpid(group->processes[i], &status, WNOHANG) == group->processes[i]) {
            group->processes[i] = 0;
            group->running--;
            int end = end_report(group, i, status);
            code = code == APP_EXIT_SUCCESS ? end : code;
        }
    }
    return code;
}

static int report_late(const struct bench_group *group)
{
    static const char *const waiting_for[BENCH_STEP_COUNT] = {
        [BENCH_STEP_PORT] = "to open its port",
        [BENCH_STEP_LINK] = "to find its link up",
        [BENCH_STEP_REFERENCE] = "to measure bare frames",
        [BENCH_STEP_KNOWN] = "to learn its peer",
        [BENCH_STEP_CONNECTED] = "to connect to the other process",
        [BENCH_STEP_LEAVE] = "to tell its result",
    };
    for (uint32_t i = 0; i < BENCH_MEMBERS; i++) {
        uint32_t steps = steps_of(group, i);
        if (group->processes[i] > 0 && steps < BENCH_STEP_COUNT) {
            char where[64];
            snprintf(where, sizeof(where), "process %u has still %s", i, waiting_for[steps]);
            app_error("the time is over", where, "is the machine busy otherwise?");
        }
    }
    return APP_EXIT_FAILURE;
}

/* Checks all processes once. */
static int watch(struct bench_group *group)
{
    bool stopped = group->config.stop != NULL && *group->config.stop != 0; /* before others receive the signal, too */
    int code = stopped ? APP_EXIT_FAILURE : reap(group);
    if (code == APP_EXIT_SUCCESS && group->running > 0 && !bench_fabric_lives(group->fabric)) {
        app_error("causeway switch has ended during the measurement", group->fabric->socket, NULL);
        code = APP_EXIT_INTERNAL;
    }
    if (code == APP_EXIT_SUCCESS && group->running > 0 && cw_clock_ns() > group->limit_ns) {
        code = report_late(group);
    }
    if (code != APP_EXIT_SUCCESS) {
        stop_all(group);
    }
    return code;
}

static void pause_watching(void)
{
    struct timespec time = {.tv_nsec = WATCH_INTERVAL_NS};
    nanosleep(&time, NULL);
}

int bench_group_finish(struct bench_group *group)
{
    for (;;) {
        int code = watch(group);
        if (code != APP_EXIT_SUCCESS || group->running == 0) {
            return code;
        }
        pause_watching();
    }
}

const void *bench_group_result(const struct bench_group *group, uint32_t member)
{
    return bench_group_result_at(group, member);
}

int bench_group_start(struct bench_group *group, struct bench_fabric *fabric, const struct bench_group_config *config)
{
    *group = (struct bench_group){
        .config = *config, .fabric = fabric, .limit_ns = cw_clock_ns() + config->limit_ns, .running = 0};
    group->shared_bytes = sizeof(*group->shared) + BENCH_MEMBERS * bench_group_result_stride(group);
    void *shared = mmap(NULL, group->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        app_error("no shared memory for the results", strerror(errno), "free memory");
        return APP_EXIT_MACHINE;
    }
    group->shared = shared;
    pid_t parent = getpid();
    fflush(stdout);
    for (uint32_t i = 0; i < BENCH_MEMBERS; i++) {
        pid_t process = fork();
        if (process < 0) {
            app_error("no process for a member", strerror(errno), "raise `ulimit -u`");
            stop_all(group);
            return APP_EXIT_MACHINE;
        }
        if (process == 0) {
            /* no process is left behind when the first one is killed */
            bool alone = prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent;
            _exit(alone ? APP_EXIT_INTERNAL : bench_member_run(group, i));
        }
        group->processes[i] = process;
        group->running++;
    }
    return APP_EXIT_SUCCESS;
}

void bench_group_free(struct bench_group *group)
{
    stop_all(group);
    if (group->shared != NULL) {
        munmap(group->shared, group->shared_bytes);
        group->shared = NULL;
    }
}
