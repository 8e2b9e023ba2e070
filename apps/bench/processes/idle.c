/* causeway bench idle: what processes cost that have nothing to do.
 *
 * Processes connect, exchange puts, and then do nothing: those with an even index wait for events in one long
 * cw_loop_wait, the others sleep outside of every call, so that only the fallback thread looks after their endpoints.
 * CPU time is that of all threads of a process. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "apps/bench/bench.h"
#include "apps/bench/processes/group.h"
#include "apps/cli/cli.h"
#include "dataplane/base/clock.h"

#define SETTLE_NS \
    200000000ull /* before and after the measurement: nobody is disturbed by one who is still busy, or is leaving */
#define LOOK_NS 1000000ull

enum { MTU_BYTES = 1500, PUTS = 1000, PUT_BYTES = 8, LANE = 1, EVENTS = 64, REGION_BYTES = 4096 };

struct idle_settings {
    uint64_t duration_ns;
};

/* Of one process. */
struct idle_result {
    uint64_t cpu_ns;
    uint64_t elapsed_ns;
    uint64_t sleeps; /* of its loop, while it idled */
    uint64_t fallback_turns;
};

struct idle_case {
    const char *name;
    const char *what; /* for people */
    enum bench_fabric_kind kind;
    bool doorbell;
    uint32_t processes;
};

static const struct idle_case cases[] = {
    {"memif-nap", "memif, whose ports nap", BENCH_FABRIC_MEMIF, false, 2},
    {"memif-doorbell", "memif with a doorbell", BENCH_FABRIC_MEMIF, true, 2},
    {"switch", "eight ports of a switch, with doorbells", BENCH_FABRIC_SWITCH, true, 8},
};

/* ---- one process ---- */

static bool waits_in_call(uint32_t index)
{
    return index % 2 == 0;
}

static int post(const struct bench_member *member, const uint64_t *number)
{
    uint32_t next = (member->index + 1) % member->count;
    struct cw_put put = {
        .peer = member->peers[next],
        .lane_tag = cw_lane_tag(LANE, (uint32_t)*number),
        .region = member->tokens[next],
        .offset = *number * PUT_BYTES % REGION_BYTES,
        .source = {.kind = CW_SOURCE_CONTIGUOUS, .contiguous = {.data = number, .bytes = PUT_BYTES}},
    };
    return cw_loop_put(member->loop, &put);
}

/* Puts round the ring of processes, until all have sent and got theirs. */
static int exchange(struct bench_member *member)
{
    uint64_t posted = 0;
    uint64_t arrived = 0;
    bool done = false;
    while (!done || !bench_member_all(member, BENCH_STEP_TRAFFIC)) {
        struct cw_event events[EVENTS];
        /* a few ahead of what has come, so that all work at the same time */
        if (posted < PUTS && posted < arrived + EVENTS && bench_member_all(member, BENCH_STEP_CONNECTED)) {
            int status = post(member, &posted);
            posted += status == CW_OK;
            if (status != CW_OK && status != CW_ERROR_AGAIN) {
                return bench_member_fail(member, status, "a put fails");
            }
        }
        uint32_t count = cw_loop_wait(member->loop, events, EVENTS, posted < PUTS ? 0 : LOOK_NS);
        for (uint32_t i = 0; i < count; i++) {
            arrived += events[i].kind == CW_EVENT_PUT;
            if (events[i].status < 0 && events[i].status != CW_ERROR_PEER_RESTARTED) {
                return bench_member_fail(member, events[i].status, "another process is gone");
            }
        }
        if (!done && posted == PUTS && arrived == PUTS) {
            done = true;
            bench_member_reach(member, BENCH_STEP_TRAFFIC);
        }
    }
    return APP_EXIT_SUCCESS;
}

/* Does nothing until a time, in one way or the other. */
static int idle_until(const struct bench_member *member, uint64_t until_ns)
{
    if (!waits_in_call(member->index)) {
        struct timespec end = {.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) {
        }
        return APP_EXIT_SUCCESS;
    }
    for (uint64_t now_ns = cw_clock_ns(); now_ns < until_ns; now_ns = cw_clock_ns()) {
        struct cw_event event;
        if (cw_loop_wait(member->loop, &event, 1, until_ns - now_ns) == 1 && event.status < 0) {
            return bench_member_fail(member, event.status, "another process is gone");
        }
    }
    return APP_EXIT_SUCCESS;
}

static int idle_run(struct bench_member *member)
{
    const struct idle_settings *settings = member->settings;
    struct idle_result *result = member->result;
    int code = exchange(member);
    uint64_t begin_ns = cw_clock_ns() + SETTLE_NS;
    uint64_t end_ns = begin_ns + settings->duration_ns;
    code = code == APP_EXIT_SUCCESS ? idle_until(member, begin_ns) : code;
    struct cw_loop_counters before = cw_loop_counters(member->loop);
    uint64_t cpu_ns = bench_member_cpu_ns();
    uint64_t start_ns = cw_clock_ns();
    code = code == APP_EXIT_SUCCESS ? idle_until(member, end_ns) : code;
    result->elapsed_ns = cw_clock_ns() - start_ns;
    result->cpu_ns = bench_member_cpu_ns() - cpu_ns;
    struct cw_loop_counters after = cw_loop_counters(member->loop);
    result->sleeps = after.sleeps - before.sleeps;
    result->fallback_turns = after.fallback_turns - before.fallback_turns;
    code = code == APP_EXIT_SUCCESS ? idle_until(member, end_ns + SETTLE_NS) : code;
    if (code == APP_EXIT_SUCCESS) {
        bench_member_leave(member);
    }
    return code;
}

static void result_report(struct app_report *report, const struct idle_case *which, const char *who, uint32_t processes,
                          const struct idle_result *worst)
{
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "idle"),
        app_text("network", NULL, 0, which->name),
        app_text(NULL, "network", 37, which->what),
        app_text("who", "who", 32, who),
        app_count("processes", "processes", processes),
        app_count("duration_ns", NULL, worst->elapsed_ns),
        app_count("cpu_ns", NULL, worst->cpu_ns),
        app_number("ratio_core", "% of a core", 3, 100, (double)worst->cpu_ns / (double)worst->elapsed_ns),
        app_count("sleeps", "sleeps", worst->sleeps),
        app_count("fallback_turns", "fallback turns", worst->fallback_turns),
    };
    APP_REPORT(report, cells);
}

/* The one of each kind that took most. */
static void members_report(struct app_report *report, const struct idle_case *which, const struct bench_group *group)
{
    static const char *const who[2] = {"process outside of every call", "process that waits for events"};
    for (int in_call = 1; in_call >= 0; in_call--) {
        struct idle_result worst = {.elapsed_ns = 1};
        uint32_t processes = 0;
        for (uint32_t i = 0; i < group->config.count; i++) {
            const struct idle_result *result = bench_group_result(group, i);
            if (waits_in_call(i) == (in_call == 1)) {
                processes++;
                worst = result->cpu_ns >= worst.cpu_ns ? *result : worst;
            }
        }
        result_report(report, which, who[in_call], processes, &worst);
    }
}

static void pause_for(uint64_t duration_ns)
{
    struct timespec time = {.tv_sec = (time_t)(duration_ns / 1000000000), .tv_nsec = (long)(duration_ns % 1000000000)};
    nanosleep(&time, NULL);
}

/* The switch, while all its processes idle. */
static void measure_switch(const struct bench_fabric *fabric, uint64_t duration_ns, struct idle_result *result)
{
    pause_for(SETTLE_NS);
    uint64_t start_ns = cw_clock_ns();
    uint64_t cpu_ns = bench_process_cpu_ns(fabric->switch_process);
    pause_for(duration_ns);
    result->cpu_ns = bench_process_cpu_ns(fabric->switch_process) - cpu_ns;
    result->elapsed_ns = cw_clock_ns() - start_ns;
}

static int run_case(const struct idle_case *which, const struct idle_settings *settings, struct app_report *report)
{
    struct bench_fabric fabric;
    struct bench_group group = {.running = 0};
    struct idle_result of_switch = {.elapsed_ns = 1};
    struct bench_group_config config = {
        .count = which->processes,
        .doorbell = which->doorbell,
        .region_bytes = REGION_BYTES,
        .result_bytes = sizeof(struct idle_result),
        .limit_ns = BENCH_HANG_NS + settings->duration_ns,
        .settings = settings,
        .run = idle_run,
    };
    int code = bench_fabric_create(&fabric, which->kind, which->processes, MTU_BYTES);
    code = code == APP_EXIT_SUCCESS ? bench_group_start(&group, &fabric, &config) : code;
    code = code == APP_EXIT_SUCCESS ? bench_group_await(&group, BENCH_STEP_TRAFFIC) : code;
    if (code == APP_EXIT_SUCCESS && fabric.switch_process > 0) {
        measure_switch(&fabric, settings->duration_ns, &of_switch);
    }
    code = code == APP_EXIT_SUCCESS ? bench_group_finish(&group) : code;
    if (code == APP_EXIT_SUCCESS) {
        members_report(report, which, &group);
    }
    if (code == APP_EXIT_SUCCESS && fabric.switch_process > 0) {
        result_report(report, which, "causeway switch itself", 1, &of_switch);
    }
    bench_group_free(&group);
    bench_fabric_destroy(&fabric);
    return code;
}

static const char usage[] =
    "bench idle [OPTION...]\n\n"
    "What a process takes of a core that has nothing to do: its endpoint is open and connected and has exchanged puts\n"
    "before. One kind of process waits for events in one long call, the other is in no call at all, so that its "
    "fallback\n"
    "thread looks after the endpoint. Over memif whose ports nap, over memif with a doorbell, and at a `causeway "
    "switch`\n"
    "with eight ports, which is measured too. Of several processes of a kind the one that took most is shown.";

int bench_idle(int argc, char **argv)
{
    struct idle_settings settings = {.duration_ns = 5000000000ull};
    struct app_report report = {.json = false};
    const struct app_option table[] = {
        OPTION_TIME("duration", "of each of the three measurements (5s)", &settings.duration_ns, 1000000,
                    600000000000ull),
        OPTION_JSON(" for each kind of process", &report.json),
        {0},
    };
    int code = APP_EXIT_SUCCESS;
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && code == APP_EXIT_SUCCESS; i++) {
        code = run_case(&cases[i], &settings, &report);
    }
    return code;
}
