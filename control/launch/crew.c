#include "control/launch/crew.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/bootstrap/pmi1_line.h"
#include "control/launch/binding.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/process.h"
#include "dataplane/status.h"

enum {
    PMI_READ_BYTES = CW_PMI1_BATCH_BYTES,
    TEXT_BYTES = 512,
    STOPPED_DEPTH_MAX = 8 /* of wrappers around a program */
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

static uint32_t index_of(const struct launch_crew *crew, const struct launch_member *member)
{
    return (uint32_t)(member - crew->members);
}

/* What the server knows of a rank, if it is news. */
static void client_report(struct launch_crew *crew, struct launch_member *member)
{
    uint32_t index = index_of(crew, member);
    int32_t value = (int32_t)cw_pmi1_server_state(crew->server, index) |
                    (cw_pmi1_server_waits(crew->server, index) ? LAUNCH_CLIENT_WAITS : 0);
    if (value != member->told) {
        member->told = value;
        launch_crew_report(crew, LAUNCH_CLIENT, member->rank, value, NULL, 0);
    }
}

/* ---- PMI ---- */

static void pmi_close(struct launch_crew *crew, struct launch_member *member)
{
    launch_unwatch(crew->config.set, member->pmi);
    close(member->pmi);
    member->pmi = -1;
    if (member->handle >= 0 && cw_pmi1_server_state(crew->server, index_of(crew, member)) == CW_PMI1_CLIENT_ACTIVE) {
        launch_crew_report(crew, LAUNCH_HANGUP, member->rank, 0, NULL, 0);
    }
}

/* Sends what it can; while something is left nothing is read from this rank. */
static void pmi_send(struct launch_crew *crew, struct launch_member *member)
{
    uint32_t index = index_of(crew, member);
    const char *bytes;
    size_t count;
    while (member->pmi >= 0 && (count = cw_pmi1_server_pending(crew->server, index, &bytes)) > 0) {
        ssize_t sent = send(member->pmi, bytes, count, MSG_NOSIGNAL);
        if (sent > 0) {
            cw_pmi1_server_sent(crew->server, index, (size_t)sent);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            pmi_close(crew, member);
        }
    }
    if (member->pmi < 0) {
        return;
    }
    bool blocked = cw_pmi1_server_pending(crew->server, index, &bytes) > 0;
    if (blocked != member->pmi_blocked) {
        member->pmi_blocked = blocked;
        launch_unwatch(crew->config.set, member->pmi);
        launch_watch(crew->config.set, member->pmi, blocked ? EPOLLOUT : EPOLLIN, LAUNCH_PMI, index);
    }
}

static void entry_write(void *context, const char *key, const char *value)
{
    struct launch_bytes *entries = context;
    (void)launch_put_text(entries, key); /* what there is no memory for, nobody finds */
    (void)launch_put_text(entries, value);
}

/* Our part of a fence of the whole job. */
static void fence_report(struct launch_crew *crew)
{
    struct launch_bytes entries = {.start = NULL};
    cw_pmi1_server_fresh(crew->server, entry_write, &entries);
    launch_crew_report(crew, LAUNCH_FENCE, crew->config.host, 0, launch_bytes_front(&entries),
                       launch_bytes_count(&entries));
    launch_bytes_dispose(&entries);
}

static void answers_send(struct launch_crew *crew)
{
    uint32_t index;
    while (cw_pmi1_server_next(crew->server, &index)) {
        pmi_send(crew, &crew->members[index]);
        client_report(crew, &crew->members[index]);
    }
}

static void fence_release(struct launch_crew *crew, const struct launch_frame *order)
{
    struct launch_reader reader = launch_reader_of(order);
    while (reader.at < reader.end && !reader.failed) {
        const char *key = launch_get_text(&reader);
        const char *value = launch_get_text(&reader);
        if (key == NULL || value == NULL || cw_pmi1_server_add(crew->server, key, value) != CW_OK) {
            launch_crew_fail(crew, CW_LAUNCH_EXIT_MACHINE, "out of memory for the other ranks' addresses");
            return;
        }
    }
    cw_pmi1_server_release(crew->server);
    answers_send(crew);
}

static void pmi_judge(struct launch_crew *crew)
{
    uint32_t index;
    int code;
    if (!crew->abort_told && cw_pmi1_server_aborted(crew->server, &index, &code)) {
        crew->abort_told = true;
        launch_crew_report(crew, LAUNCH_ABORT, crew->members[index].rank, code, NULL, 0);
    }
}

static void pmi_take(struct launch_crew *crew, struct launch_member *member)
{
    char bytes[PMI_READ_BYTES];
    uint32_t index = index_of(crew, member);
    if (member->pmi_blocked) {
        pmi_send(crew, member);
    }
    if (member->pmi < 0 || member->pmi_blocked) {
        return;
    }
    bool was_held = cw_pmi1_server_is_held(crew->server);
    ssize_t got = recv(member->pmi, bytes, sizeof(bytes), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        pmi_close(crew, member);
    } else if (got > 0 && cw_pmi1_server_take(crew->server, index, bytes, (size_t)got) != CW_OK) {
        launch_crew_fail(crew, CW_LAUNCH_EXIT_FAILED, "rank %" PRIu32 " (process %d) %s", member->rank, member->process,
                         cw_pmi1_server_failure(crew->server));
        pmi_close(crew, member);
    }
    client_report(crew, member);
    answers_send(crew);
    pmi_judge(crew);
    if (!was_held && cw_pmi1_server_is_held(crew->server)) {
        fence_report(crew);
    }
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
        pmi_take(crew, member); /* its last words come before its end */
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
        fence_release(crew, order);
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
        pmi_take(crew, &crew->members[index]);
        break;
    case LAUNCH_PROCESS:
        process_take(crew, &crew->members[index]);
        break;
    case LAUNCH_MEMBER_INPUT:
        launch_crew_input_turn(crew, &crew->members[index]);
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

static int server_start(struct launch_crew *crew)
{
    const struct launch_work *work = crew->config.work;
    char mapping[CW_PMI1_SERVER_VALUE_BYTES];
    uint32_t *app_numbers = calloc((size_t)crew->count + 1, sizeof(*app_numbers));
    if (app_numbers == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < crew->count; i++) {
        app_numbers[i] = (uint32_t)(crew->members[i].program - work->programs);
    }
    if (!launch_work_mapping(work, mapping, sizeof(mapping))) {
        snprintf(mapping, sizeof(mapping), "(vector,(0,%u,1))", work->rank_count); /* nobody is taken for near */
    }
    int status = cw_pmi1_server_create(&(struct cw_pmi1_server_config){.client_count = crew->count,
                                                                       .job_size = work->rank_count,
                                                                       .universe_size = work->rank_count,
                                                                       .job = work->name,
                                                                       .process_mapping = mapping,
                                                                       .app_numbers = app_numbers},
                                       &crew->server);
    free(app_numbers);
    return status;
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
    *crew = (struct launch_crew){.config = *config, .outputs = epoll_create1(EPOLL_CLOEXEC)};
    int status = crew->outputs < 0 ? CW_ERROR_SYSTEM : members_fill(crew);
    if (status != CW_OK) {
        return status;
    }
    files_raise(crew);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    launch_watch(config->set, crew->outputs, EPOLLIN, LAUNCH_OUTPUTS, 0);
    crew->watch = cw_watch_create(config->work->rank_count);
    return server_start(crew);
}

bool launch_crew_start(struct launch_crew *crew)
{
    char error[TEXT_BYTES];
    if (!launch_binding_make(crew->config.work->binding, crew->config.work->by_numa, crew->count, &crew->cores, error,
                             sizeof(error))) {
        launch_crew_fail(crew, CW_LAUNCH_EXIT_USAGE, "%s", error);
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
    free(crew->cores);
    free(crew->members);
    if (crew->outputs >= 0) {
        close(crew->outputs);
    }
    crew->members = NULL;
    crew->count = 0;
}
