/* causeway bench plan: what building, checking, pricing and choosing schedules takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "collectives/algorithms/build.h"
#include "collectives/check/check.h"
#include "collectives/choose/choose.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"

static const char usage[] = "bench plan [--rounds N] [--json]\n\n"
                            "Times what collectives/ does before anything is sent: building one rank's schedule, the "
                            "phases of all-to-alls with "
                            "counts,\nchecking, pricing, choosing. Medians and the best of the rounds.";

enum { ROUNDS_MAX = 1000 };

struct settings {
    uint64_t rounds;
    struct app_report report;
};

/* One thing to time: 0, or a code of enum cw_status. */
struct task {
    char name[96];
    uint64_t rounds;
    int (*run)(struct task *task);
    struct cw_problem *problem;
    const struct cw_algorithm *algorithm;
    struct cw_parameters parameters;
    struct cw_plan *plan;
    struct cw_network network;
    struct cw_chooser *chooser;
    uint32_t rank;
};

static int run_build(struct task *task)
{
    struct cw_schedule schedule;
    char error[200];
    int status = cw_schedule_build(task->problem, task->algorithm, &task->parameters, task->rank, &schedule, error,
                                   sizeof(error));
    if (status == CW_OK) {
        cw_schedule_dispose(&schedule);
    }
    return status;
}

static int run_check(struct task *task)
{
    struct cw_check_report report;
    int status = cw_check(task->plan, &report);
    return status == CW_OK && report.fault != CW_CHECK_PASSED ? CW_ERROR_ARGUMENT : status;
}

static int run_price(struct task *task)
{
    struct cw_price price;
    return cw_price_interpret(task->plan, &task->network, &price, NULL);
}

static int run_choose(struct task *task)
{
    struct cw_choose_request request = {
        .problem = task->problem, .network = &task->network, .eager_max_bytes = 4096, .multicast = true};
    struct cw_choice choice;
    return cw_choose(&request, &choice);
}

static int run_ask(struct task *task)
{
    struct cw_candidate best;
    return cw_chooser_ask(task->chooser, task->problem, &best);
}

static int task_time(struct settings *settings, struct task *task)
{
    double times[ROUNDS_MAX];
    uint64_t rounds = task->rounds < settings->rounds ? task->rounds : settings->rounds;
    double best = 0;
    for (uint64_t i = 0; i <= rounds; i++) {
        uint64_t start_ns = cw_clock_ns();
        int status = task->run(task);
        double time_ns = (double)(cw_clock_ns() - start_ns);
        if (status != CW_OK) {
            return app_error_status(status, "the benchmark failed", task->name);
        }
        if (i > 0) { /* the first one warms up */
            times[i - 1] = time_ns;
            best = i == 1 || time_ns < best ? time_ns : best;
        }
    }
    const struct app_cell cells[] = {
        app_text("task", "task", 64, task->name),
        app_number("median_ns", "median us", 2, 1e-3, cw_statistics_median(times, rounds)),
        app_number("best_ns", "best us", 2, 1e-3, best),
        app_count("rounds", "rounds", rounds),
    };
    APP_REPORT(&settings->report, cells);
    return APP_EXIT_SUCCESS;
}

static struct cw_problem *problem_make(enum cw_collective collective, uint32_t ranks, uint64_t count,
                                       const uint64_t *counts)
{
    struct cw_problem_request request = {
        .collective = collective, .ranks = ranks, .element_bytes = 1, .count = count, .counts = counts};
    struct cw_problem *problem = NULL;
    char error[200];
    if (cw_problem_create(&request, &problem, error, sizeof(error)) != CW_OK) {
        app_error(error, cw_collective_name(collective), NULL);
    }
    return problem;
}

/* ---- Broadcasts: one rank's schedule, that of the root and of another ---- */

static int time_bcasts(struct settings *settings)
{
    static const char *const names[] = {"binomial", "segmented-chain", "segmented-binomial", "d-ary",
                                        "flat",     "van-de-geijn"};
    int code = APP_EXIT_SUCCESS;
    for (uint32_t ranks = 16; ranks <= 1024 && code == APP_EXIT_SUCCESS; ranks *= 8) {
        struct cw_problem *problem = problem_make(CW_BCAST, ranks, 1 << 20, NULL);
        for (uint32_t i = 0; problem != NULL && i < 2 * sizeof(names) / sizeof(names[0]) && code == APP_EXIT_SUCCESS;
             i++) {
            struct task task = {
                .rounds = ROUNDS_MAX, .run = run_build, .problem = problem, .rank = i % 2 == 0 ? 0 : ranks / 2};
            task.algorithm = cw_algorithm_find(CW_BCAST, names[i / 2]);
            task.parameters = cw_parameters_default();
            snprintf(task.name, sizeof(task.name), "build bcast %s, %u ranks, %s", names[i / 2], ranks,
                     i % 2 == 0 ? "the root" : "another rank");
            code = task_time(settings, &task);
        }
        code = problem == NULL ? APP_EXIT_MACHINE : code;
        cw_problem_destroy(problem);
    }
    return code;
}

/* ---- All-to-alls with counts ---- */

static uint64_t *counts_make(uint32_t ranks, uint32_t messages)
{
    struct cw_random random;
    uint64_t *counts = calloc((size_t)ranks * ranks, sizeof(*counts));
    cw_random_seed(&random, ranks + messages);
    for (uint32_t from = 0; counts != NULL && from < ranks; from++) {
        uint64_t *row = &counts[(size_t)from * ranks];
        for (uint32_t i = 0; i < messages; i++) {
            row[messages < ranks ? cw_random_below(&random, ranks) : i] = 1 + cw_random_below(&random, 100000);
        }
    }
    return counts;
}

static int time_alltoalls(struct settings *settings)
{
    static const struct {
        uint32_t ranks;
        uint32_t messages;
    } patterns[] = {{1024, 16}, {256, 256}, {1024, 1024}};
    static const char *const names[] = {"greedy", "all-to-all-based", "colouring", "splitting"};
    int code = APP_EXIT_SUCCESS;
    for (uint32_t p = 0; p < 3 && code == APP_EXIT_SUCCESS; p++) {
        uint64_t *counts = counts_make(patterns[p].ranks, patterns[p].messages);
        struct cw_problem *problem = counts != NULL ? problem_make(CW_ALLTOALL, patterns[p].ranks, 0, counts) : NULL;
        /* splitting dense patterns of this size takes seconds */
        uint32_t count = p == 0 ? 4 : 3;
        for (uint32_t i = 0; problem != NULL && i < count && code == APP_EXIT_SUCCESS; i++) {
            struct task task = {.rounds = 5, .run = run_build, .problem = problem, .rank = 1};
            task.algorithm = cw_algorithm_find(CW_ALLTOALL, names[i]);
            task.parameters = cw_parameters_default();
            snprintf(task.name, sizeof(task.name), "phases of alltoall %s, %u ranks, %u messages a rank", names[i],
                     patterns[p].ranks, patterns[p].messages);
            code = task_time(settings, &task);
        }
        code = problem == NULL ? APP_EXIT_MACHINE : code;
        cw_problem_destroy(problem);
        free(counts);
    }
    return code;
}

/* ---- What is done with plans ---- */

static int time_plan(struct settings *settings, enum cw_collective collective, const char *algorithm, uint32_t ranks)
{
    struct task task = {.rounds = 20, .problem = problem_make(collective, ranks, 4096, NULL)};
    char error[200];
    task.algorithm = cw_algorithm_find(collective, algorithm);
    task.parameters = cw_parameters_default();
    if (task.problem == NULL ||
        cw_plan_build(task.problem, task.algorithm, &task.parameters, &task.plan, error, sizeof(error)) != CW_OK ||
        cw_network_find("gigabit", &task.network) != CW_OK) {
        cw_problem_destroy(task.problem);
        return APP_EXIT_MACHINE;
    }
    task.run = run_check;
    snprintf(task.name, sizeof(task.name), "check %s %s, %u ranks", cw_collective_name(collective), algorithm, ranks);
    int code = task_time(settings, &task);
    task.run = run_price;
    snprintf(task.name, sizeof(task.name), "price %s %s, %u ranks", cw_collective_name(collective), algorithm, ranks);
    code = code == APP_EXIT_SUCCESS ? task_time(settings, &task) : code;
    cw_plan_destroy(task.plan);
    return code;
}

static int time_choices(struct settings *settings)
{
    static const enum cw_collective collectives[] = {CW_BCAST, CW_ALLGATHER, CW_ALLREDUCE};
    int code = APP_EXIT_SUCCESS;
    for (uint32_t i = 0; i < 3 && code == APP_EXIT_SUCCESS; i++) {
        struct task task = {.rounds = 200, .problem = problem_make(collectives[i], 64, 100003, NULL)};
        if (task.problem == NULL || cw_network_find("gigabit", &task.network) != CW_OK ||
            cw_chooser_create(&task.network, 4096, true, &task.chooser) != CW_OK) {
            cw_problem_destroy(task.problem);
            return APP_EXIT_MACHINE;
        }
        task.run = run_choose;
        snprintf(task.name, sizeof(task.name), "choose %s, 64 ranks, cold", cw_collective_name(collectives[i]));
        code = task_time(settings, &task);
        task.run = run_ask;
        snprintf(task.name, sizeof(task.name), "choose %s, 64 ranks, warm", cw_collective_name(collectives[i]));
        code = code == APP_EXIT_SUCCESS ? task_time(settings, &task) : code;
        cw_chooser_destroy(task.chooser);
        cw_problem_destroy(task.problem);
    }
    return code;
}

int bench_plan(int argc, char **argv)
{
    struct settings settings = {.rounds = 200};
    int code;
    const struct app_option table[] = {
        OPTION_COUNT("rounds", "of each task, fewer of the long ones (200)", &settings.rounds, 1, ROUNDS_MAX),
        OPTION_JSON(" a task", &settings.report.json),
        {0},
    };
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    code = time_bcasts(&settings);
    code = code == APP_EXIT_SUCCESS ? time_alltoalls(&settings) : code;
    code = code == APP_EXIT_SUCCESS ? time_plan(&settings, CW_BCAST, "binomial", 40) : code;
    code = code == APP_EXIT_SUCCESS ? time_plan(&settings, CW_ALLTOALL, "phased", 128) : code;
    return code == APP_EXIT_SUCCESS ? time_choices(&settings) : code;
}
