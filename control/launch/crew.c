#include "control/launch/crew.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
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
/* Looks for answers; control threads look twice a second, and those who sleep wake up ten times. */
#define LOOK_NS UINT64_C(20000000)
/* How long the ranks have to say what they wait for. */
#define ANSWER_NS UINT64_C(1500000000)

bool launch_watch(int set, int descriptor, uint32_t events, enum launch_source source, uint32_t index)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)source << 32 | index};
    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0 || errno == EEXIST;
}

void launch_unwatch(int set, int descriptor)
{
    epoll_ctl(set, EPOLL_CTL_DEL, descriptor, NULL);
}

/* ---- reports ---- */

void launch_crew_report(struct launch_crew *crew, enum launch_frame_type type, uint32_t rank, int32_t value,
                        const void *bytes, size_t count)
{
    const struct launch_frame frame = {
        .type = type, .rank = rank, .value = value, .bytes = bytes, .count = (uint32_t)count};
    crew->config.up.take(crew->config.up.context, &frame);
}

void launch_crew_fail(struct launch_crew *crew, int code, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    if (crew->failed) {
        return;
    }
    crew->failed = true;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    launch_crew_report(crew, LAUNCH_FAIL, crew->config.host, code, text, strlen(text));
}

uint32_t launch_crew_index(const struct launch_crew *crew, const struct launch_member *member)
{
    return (uint32_t)(member - crew->members);
}

/* ---- ends ---- */

static void process_take(struct launch_crew *crew, struct launch_member *member)
{
    siginfo_t info = {.si_pid = 0};
    if (member->handle < 0 || waitid(P_PID, (id_t)member->process, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
        return;
    }
    if (member->pmi >= 0) {
        launch_crew_pmi_take(crew, member); /* its last words come before its end */
    }
    launch_unwatch(crew->config.set, member->handle);
    close(member->handle);
    member->handle = -1;
    crew->alive--;
    int32_t value = info.si_code == CLD_EXITED ? info.si_status : LAUNCH_ENDED_SIGNAL + info.si_status;
    value += info.si_code == CLD_DUMPED ? LAUNCH_ENDED_CORE : 0;
    launch_crew_report(crew, LAUNCH_ENDED, member->rank, value, NULL, 0);
}

static void signal_all(const struct launch_crew *crew, int number)
{
    for (uint32_t i = 0; i < crew->count; i++) {
        /* ended ones are not reaped: the number is still theirs, and of what they have left behind */
        if (crew->members[i].process > 0) {
            kill(-crew->members[i].process, number);
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

static void look(struct launch_crew *crew)
{
    for (uint32_t i = 0; i < crew->count; i++) {
        const struct launch_member *member = &crew->members[i];
        int stopped =
            member->handle >= 0 && !cw_pmi1_server_waits(crew->server, i) ? stopped_find(member->process, 0) : 0;
        if (stopped != 0) {
            launch_crew_report(crew, LAUNCH_STOPPED, member->rank, stopped, NULL, 0);
        }
    }
    launch_crew_report(crew, LAUNCH_LOOKED, 0, 0, NULL, 0);
}

/* ---- what they wait for ---- */

static void ask(struct launch_crew *crew)
{
    if (crew->watch != NULL) {
        cw_watch_ask(crew->watch);
    }
    for (uint32_t i = 0; i < crew->count; i++) {
        crew->members[i].answered = false;
    }
    crew->asked_ns = cw_clock_ns();
}

static void silence_report(struct launch_crew *crew, struct launch_member *member)
{
    int process = member->process;
    bool is_open = crew->watch != NULL && cw_watch_is_open(crew->watch, member->rank, &process);
    struct launch_silence silence = {
        .is_open = is_open,
        .letter = member->handle >= 0 ? cw_process_state(is_open ? process : member->process) : 0,
    };
    launch_crew_report(crew, LAUNCH_ANSWER, member->rank, 0, &silence, sizeof(silence));
}

/* Whether a rank may still answer. */
static bool is_awaited(const struct launch_crew *crew, const struct launch_member *member)
{
    int process;
    return crew->watch != NULL && member->handle >= 0 && cw_watch_is_open(crew->watch, member->rank, &process);
}

static void answers_look(struct launch_crew *crew, uint64_t now_ns)
{
    bool late = now_ns >= crew->asked_ns + ANSWER_NS, all = true;
    for (uint32_t i = 0; i < crew->count; i++) {
        struct launch_member *member = &crew->members[i];
        if (member->answered) {
            continue;
        }
        if (crew->watch != NULL && cw_watch_has_answered(crew->watch, member->rank)) {
            struct cw_watch_answer answer;
            cw_watch_read(crew->watch, member->rank, &answer);
            launch_crew_report(crew, LAUNCH_ANSWER, member->rank, 1, &answer, sizeof(answer));
        } else if (late || !is_awaited(crew, member)) {
            silence_report(crew, member);
        } else {
            all = false;
            continue;
        }
        member->answered = true;
    }
    crew->asked_ns = all ? 0 : crew->asked_ns;
}

uint64_t launch_crew_turn(struct launch_crew *crew, uint64_t now_ns)
{
    if (crew->asked_ns != 0) {
        answers_look(crew, now_ns);
    }
    return crew->asked_ns != 0 ? now_ns + LOOK_NS : UINT64_MAX;
}

/* ---- orders, events ---- */

struct launch_member *launch_crew_find(const struct launch_crew *crew, uint32_t rank)
{
    uint32_t low = 0, high = crew->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (crew->members[middle].rank < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < crew->count && crew->members[low].rank == rank ? &crew->members[low] : NULL;
}

void launch_crew_order(struct launch_crew *crew, const struct launch_frame *order)
{
    struct launch_member *member;
    switch ((enum launch_frame_type)order->type) {
    case LAUNCH_FENCE:
        launch_crew_fence_release(crew, order);
        break;
    case LAUNCH_SIGNAL:
        signal_all(crew, order->value);
        break;
    case LAUNCH_INPUT:
        member = launch_crew_find(crew, order->rank);
        if (member != NULL) {
            launch_crew_input(crew, member, order);
        }
        break;
    case LAUNCH_HOLD:
        launch_crew_output_hold(crew, order->value != 0);
        break;
    case LAUNCH_ASK:
        ask(crew);
        break;
    case LAUNCH_LOOK:
        look(crew);
        break;
    default:
        break; /* no order for a crew */
    }
}

void launch_crew_event(struct launch_crew *crew, enum launch_source source, uint32_t index)
{
    switch (source) {
    case LAUNCH_OUTPUTS:
        launch_crew_output_take(crew);
        break;
    case LAUNCH_PMI:
        launch_crew_pmi_take(crew, &crew->members[index]);
        break;
    case LAUNCH_PROCESS:
        process_take(crew, &crew->members[index]);
        break;
    case LAUNCH_MEMBER_INPUT:
        launch_crew_input_turn(crew, &crew->members[index]);
        break;
    case LAUNCH_NODE:
        launch_crew_node_ended(crew);
        break;
    default:
        break; /* nothing of ours */
    }
}

/* ---- from start to end ---- */

static int members_fill(struct launch_crew *crew)
{
    const struct launch_work *work = crew->config.work;
    uint32_t index = 0;
    crew->count = launch_work_count(work, crew->config.host);
    crew->members = calloc((size_t)crew->count + 1, sizeof(*crew->members));
    if (crew->members == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t rank = 0; rank < work->rank_count; rank++) {
        if (work->host_of[rank] == crew->config.host) {
            crew->members[index++] = (struct launch_member){
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
static void files_raise(struct launch_crew *crew)
{
    getrlimit(RLIMIT_NOFILE, &crew->files_before);
    struct rlimit raised = {.rlim_cur = crew->files_before.rlim_max, .rlim_max = crew->files_before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);
}

int launch_crew_open(struct launch_crew *crew, const struct launch_crew_config *config)
{
    *crew = (struct launch_crew){.config = *config, .node.handle = -1, .outputs = epoll_create1(EPOLL_CLOEXEC)};
    int status = crew->outputs < 0 ? CW_ERROR_SYSTEM : members_fill(crew);
    if (status != CW_OK) {
        return status;
    }
    files_raise(crew);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    launch_watch(config->set, crew->outputs, EPOLLIN, LAUNCH_OUTPUTS, 0);
    crew->watch = cw_watch_create(config->work->rank_count);
    return launch_crew_pmi_start(crew);
}

/* Whether this machine lets us have the ranks of this host; else says what to raise. */
static bool limits_allow(struct launch_crew *crew)
{
    struct rlimit limit;
    uint64_t each = DESCRIPTORS_A_RANK + (crew->config.work->stdin_rank == CW_LAUNCH_STDIN_ALL);
    uint64_t wanted = crew->count * each + DESCRIPTORS_MORE;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted) {
        launch_crew_fail(crew, CW_LAUNCH_EXIT_USAGE,
                         "%" PRIu32 " ranks take %" PRIu64 " open files, and %" PRIu64
                         " are allowed (raise `ulimit -Hn`, or ask for fewer)",
                         crew->count, wanted, (uint64_t)limit.rlim_max);
        return false;
    }
    if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur < crew->count) {
        launch_crew_fail(crew, CW_LAUNCH_EXIT_USAGE,
                         "%" PRIu32 " ranks, and %" PRIu64
                         " processes are allowed (raise `ulimit -u`, or ask for fewer)",
                         crew->count, (uint64_t)limit.rlim_cur);
        return false;
    }
    return true;
}

bool launch_crew_start(struct launch_crew *crew)
{
    char error[TEXT_BYTES];
    const char *nic = cw_setting(CW_SETTING_NODE);
    if (!limits_allow(crew)) {
        return false;
    }
    const struct launch_binding_wish wish = {.word = crew->config.work->binding,
                                             .by_numa = crew->config.work->by_numa,
                                             .dedicated = cw_setting(CW_SETTING_DEDICATED),
                                             .transport =
                                                 nic != NULL && nic[0] != 0 ? nic : cw_setting(CW_SETTING_TRANSPORT),
                                             .count = crew->count};
    if (!launch_binding_make(&wish, &crew->binding, error, sizeof(error))) {
        launch_crew_fail(crew, CW_LAUNCH_EXIT_USAGE, "%s", error);
        return false;
    }
    if (!launch_crew_node_start(crew)) {
        return false;
    }
    for (uint32_t i = 0; i < crew->count; i++) {
        if (!launch_crew_spawn(crew, &crew->members[i])) {
            return false;
        }
    }
    return true;
}

void launch_crew_end(struct launch_crew *crew)
{
    signal_all(crew, SIGKILL);
    launch_crew_node_end(crew);
    launch_sweep(0); /* only then are their numbers given back */
    launch_crew_output_end(crew);
}

void launch_crew_close(struct launch_crew *crew)
{
    cw_pmi1_server_destroy(crew->server);
    cw_watch_close(crew->watch);
    for (uint32_t i = 0; crew->members != NULL && i < crew->count; i++) {
        launch_bytes_dispose(&crew->members[i].pending);
    }
    launch_binding_dispose(&crew->binding);
    free(crew->members);
    if (crew->outputs >= 0) {
        close(crew->outputs);
    }
    crew->members = NULL;
    crew->count = 0;
}
