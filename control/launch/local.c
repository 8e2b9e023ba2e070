#include "control/launch/local.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/launch/binding.h"
#include "control/settings/setting.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/process.h"
#include "dataplane/status.h"

enum {
    TEXT_BYTES = 512,
    STOPPED_DEPTH_MAX = 8,  /* of wrappers around a program */
    DESCRIPTORS_A_RANK = 4, /* PMI, process, stdout, stderr; one more if all get our stdin */
    DESCRIPTORS_MORE = 192, /* among them those of links */
};
/* Polls for answers; control threads poll twice a second, and sleeping ranks wake up ten times. */
#define LOOK_NS UINT64_C(20000000)
/* Time that ranks have to report their waits. */
#define ANSWER_NS UINT64_C(1500000000)

/* ---- ends ---- */

static void process_reap(struct launch_local *local, struct launch_member *member)
{
    siginfo_t info = {.si_pid = 0};
    if (member->handle < 0 || waitid(P_PID, (id_t)member->process, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
        return;
    }
    if (member->pmi >= 0) {
        launch_local_pmi_receive(local, member); /* its last words come before its end */
    }
    launch_unwatch(local->config.set, member->handle);
    close(member->handle);
    member->handle = -1;
    local->alive--;
    int32_t value = info.si_code == CLD_EXITED ? info.si_status : LAUNCH_ENDED_SIGNAL + info.si_status;
    value += info.si_code == CLD_DUMPED ? LAUNCH_ENDED_CORE : 0;
    launch_local_report(local, LAUNCH_ENDED, member->rank, value, NULL, 0);
}

static void signal_all(const struct launch_local *local, int number)
{
    for (uint32_t i = 0; i < local->count; i++) {
        /* ended ones are not reaped: the number still belongs to them and to processes that they left behind */
        if (local->members[i].process > 0) {
            kill(-local->members[i].process, number);
        }
    }
}

/* ---- who is stopped ---- */

/* Whether a process or one that it has started is stopped: the program may be the child of a script. The first such,
 * or 0. */
static int stopped_find(int process, int depth)
{
    char path[64];
    int child, found = 0;
    if (cw_process_is_stopped(process)) {
        return process;
    }
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", process, process);
    FILE *list = depth < STOPPED_DEPTH_MAX ? fopen(path, "re") : NULL;
    while (list != NULL && found == 0 && fscanf(list, "%d", &child) == 1) {
        found = stopped_find(child, depth + 1);
    }
    if (list != NULL) {
        fclose(list);
    }
    return found;
}

static void look(struct launch_local *local)
{
    for (uint32_t i = 0; i < local->count; i++) {
        const struct launch_member *member = &local->members[i];
        int stopped =
            member->handle >= 0 && !cw_pmi1_server_waits(local->server, i) ? stopped_find(member->process, 0) : 0;
        if (stopped != 0) {
            launch_local_report(local, LAUNCH_STOPPED, member->rank, stopped, NULL, 0);
        }
    }
    launch_local_report(local, LAUNCH_LOOKED, 0, 0, NULL, 0);
}

/* ---- what they wait for ---- */

static void query(struct launch_local *local)
{
    if (local->watch != NULL) {
        cw_watch_query(local->watch);
    }
    for (uint32_t i = 0; i < local->count; i++) {
        local->members[i].answered = false;
    }
    local->queried_ns = cw_clock_ns();
}

static void silence_report(struct launch_local *local, struct launch_member *member)
{
    int process = member->process;
    bool is_open = local->watch != NULL && cw_watch_is_open(local->watch, member->rank, &process);
    struct launch_silence silence = {
        .is_open = is_open,
        .letter = member->handle >= 0 ? cw_process_state(is_open ? process : member->process) : 0,
    };
    launch_local_report(local, LAUNCH_ANSWER, member->rank, 0, &silence, sizeof(silence));
}

/* Whether a rank may still answer. */
static bool is_awaited(const struct launch_local *local, const struct launch_member *member)
{
    int process;
    return local->watch != NULL && member->handle >= 0 && cw_watch_is_open(local->watch, member->rank, &process);
}

static void answers_look(struct launch_local *local, uint64_t now_ns)
{
    bool late = now_ns >= local->queried_ns + ANSWER_NS, all = true;
    for (uint32_t i = 0; i < local->count; i++) {
        struct launch_member *member = &local->members[i];
        if (member->answered) {
            continue;
        }
        if (local->watch != NULL && cw_watch_has_answered(local->watch, member->rank)) {
            struct cw_watch_answer answer;
            cw_watch_read(local->watch, member->rank, &answer);
            launch_local_report(local, LAUNCH_ANSWER, member->rank, 1, &answer, sizeof(answer));
        } else if (late || !is_awaited(local, member)) {
            silence_report(local, member);
        } else {
            all = false;
            continue;
        }
        member->answered = true;
    }
    local->queried_ns = all ? 0 : local->queried_ns;
}

uint64_t launch_local_turn(struct launch_local *local, uint64_t now_ns)
{
    if (local->queried_ns != 0) {
        answers_look(local, now_ns);
    }
    return local->queried_ns != 0 ? now_ns + LOOK_NS : UINT64_MAX;
}

/* ---- orders, events ---- */

/* The member that has this rank; NULL: none. */
static struct launch_member *member_find(const struct launch_local *local, uint32_t rank)
{
    uint32_t low = 0, high = local->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (local->members[middle].rank < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < local->count && local->members[low].rank == rank ? &local->members[low] : NULL;
}

void launch_local_order(struct launch_local *local, const struct launch_frame *order)
{
    struct launch_member *member;
    switch ((enum launch_frame_type)order->type) {
    case LAUNCH_FENCE:
        launch_local_fence_release(local, order);
        break;
    case LAUNCH_SIGNAL:
        signal_all(local, order->value);
        break;
    case LAUNCH_INPUT:
        member = member_find(local, order->rank);
        if (member != NULL) {
            launch_local_input(local, member, order);
        }
        break;
    case LAUNCH_HOLD:
        launch_local_output_hold(local, order->value != 0);
        break;
    case LAUNCH_QUERY:
        query(local);
        break;
    case LAUNCH_LOOK:
        look(local);
        break;
    default:
        break; /* no order for local ranks */
    }
}

void launch_local_event(struct launch_local *local, enum launch_source source, uint32_t index)
{
    switch (source) {
    case LAUNCH_OUTPUTS:
        launch_local_output_read(local);
        break;
    case LAUNCH_PMI:
        launch_local_pmi_receive(local, &local->members[index]);
        break;
    case LAUNCH_PROCESS:
        process_reap(local, &local->members[index]);
        break;
    case LAUNCH_MEMBER_INPUT:
        launch_local_input_turn(local, &local->members[index]);
        break;
    default:
        break; /* nothing of ours */
    }
}

/* ---- from start to end ---- */

static int members_fill(struct launch_local *local)
{
    const struct launch_work *work = local->config.work;
    uint32_t index = 0;
    local->count = launch_work_count(work, local->config.host);
    local->members = calloc((size_t)local->count + 1, sizeof(*local->members));
    if (local->members == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t rank = 0; rank < work->rank_count; rank++) {
        if (work->host_of[rank] == local->config.host) {
            local->members[index++] = (struct launch_member){
                .rank = rank,
                .handle = -1,
                .pmi = -1,
                .outputs = {-1, -1},
                .input = -1,
                .program = launch_work_program(work, rank),
            };
        }
    }
    return CW_OK;
}

/* As many descriptors as the ranks need; the ranks themselves get the limit that was. */
static void files_raise(struct launch_local *local)
{
    getrlimit(RLIMIT_NOFILE, &local->files_before);
    struct rlimit raised = {.rlim_cur = local->files_before.rlim_max, .rlim_max = local->files_before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);
}

int launch_local_open(struct launch_local *local, const struct launch_local_config *config)
{
    *local = (struct launch_local){.config = *config, .outputs = epoll_create1(EPOLL_CLOEXEC)};
    int status = local->outputs < 0 ? CW_ERROR_SYSTEM : members_fill(local);
    if (status != CW_OK) {
        return status;
    }
    files_raise(local);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    launch_watch(config->set, local->outputs, EPOLLIN, LAUNCH_OUTPUTS, 0);
    local->watch = cw_watch_create(config->work->rank_count);
    return launch_local_pmi_start(local);
}

/* Whether this machine lets us have the ranks of this host; else says what to raise. */
static bool limits_allow(struct launch_local *local)
{
    struct rlimit limit;
    uint64_t each = DESCRIPTORS_A_RANK + (local->config.work->stdin_rank == CW_LAUNCH_STDIN_ALL);
    uint64_t wanted = local->count * each + DESCRIPTORS_MORE;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted) {
        launch_local_fail(local, CW_LAUNCH_EXIT_USAGE,
                          "%" PRIu32 " ranks take %" PRIu64 " open files, and %" PRIu64
                          " are allowed (raise `ulimit -Hn`, or ask for fewer)",
                          local->count, wanted, (uint64_t)limit.rlim_max);
        return false;
    }
    if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur < local->count) {
        launch_local_fail(local, CW_LAUNCH_EXIT_USAGE,
                          "%" PRIu32 " ranks, and %" PRIu64
                          " processes are allowed (raise `ulimit -u`, or ask for fewer)",
                          local->count, (uint64_t)limit.rlim_cur);
        return false;
    }
    return true;
}

bool launch_local_start(struct launch_local *local)
{
    char error[TEXT_BYTES];
    if (!limits_allow(local)) {
        return false;
    }
    const struct launch_binding_wish wish = {.word = local->config.work->binding,
                                             .by_numa = local->config.work->by_numa,
                                             .dedicated = cw_setting(CW_SETTING_DEDICATED),
                                             .transport = cw_setting(CW_SETTING_TRANSPORT),
                                             .count = local->count};
    if (!launch_binding_make(&wish, &local->binding, error, sizeof(error))) {
        launch_local_fail(local, CW_LAUNCH_EXIT_USAGE, "%s", error);
        return false;
    }
    for (uint32_t i = 0; i < local->count; i++) {
        if (!launch_local_spawn(local, &local->members[i])) {
            return false;
        }
    }
    return true;
}

void launch_local_end(struct launch_local *local)
{
    signal_all(local, SIGKILL);
    launch_sweep(0); /* only then are their numbers given back */
    launch_local_output_end(local);
}

void launch_local_close(struct launch_local *local)
{
    cw_pmi1_server_destroy(local->server);
    cw_watch_close(local->watch);
    for (uint32_t i = 0; local->members != NULL && i < local->count; i++) {
        launch_bytes_dispose(&local->members[i].pending);
    }
    launch_binding_dispose(&local->binding);
    free(local->members);
    if (local->outputs >= 0) {
        close(local->outputs);
    }
    local->members = NULL;
    local->count = 0;
}
