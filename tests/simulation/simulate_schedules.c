/* Plans over the dataplane between simulated hosts: every algorithm gives every rank the right bytes over links that
 * lose, duplicate and reorder, run after run without a barrier in between, with pools and tables of any size; a crash
 * ends in errors and never in silence. */
#include "tests/simulation/simulation.h"

#include "apps/plan/puts.h"
#include "collectives/algorithms/build.h"
#include "dataplane/base/random.h"

enum { RANKS_MAX = 16, SLOT_BYTES = 1024, RUNS = 3 };

/* ---- What a seed draws ---- */

struct draw {
    struct cw_random random;
    uint64_t counts[RANKS_MAX * RANKS_MAX];
    uint32_t cluster_of[RANKS_MAX];
};

static uint64_t draw_below(struct draw *draw, uint64_t bound)
{
    return cw_random_below(&draw->random, bound);
}

static bool draw_chance(struct draw *draw, uint32_t percent)
{
    return draw_below(draw, 100) < percent;
}

/* Elements: some fit a packet, some a slot, some neither. */
static uint64_t draw_count(struct draw *draw, bool blocks)
{
    static const uint64_t counts[] = {0, 1, 7, 250, 1024, 1500, 5000, 40000};
    return counts[draw_below(draw, blocks ? 7 : 8)];
}

static uint32_t draw_clusters(struct draw *draw, uint32_t ranks)
{
    uint32_t clusters = 2 + (uint32_t)draw_below(draw, ranks > 3 ? 2 : 1);
    for (uint32_t i = 0; i < ranks; i++) {
        draw->cluster_of[i] = i < clusters ? i : (uint32_t)draw_below(draw, clusters);
    }
    return clusters;
}

static struct cw_problem *draw_problem(struct draw *draw, const struct cw_algorithm *algorithm, uint32_t ranks)
{
    char error[200];
    struct cw_problem *problem = NULL;
    bool blocks = cw_collective_takes_counts(algorithm->collective);
    bool reduces = cw_collective_reduces(algorithm->collective);
    struct cw_problem_request request = {
        .collective = algorithm->collective,
        .ranks = ranks,
        .root = cw_collective_rooted(algorithm->collective) ? (uint32_t)draw_below(draw, ranks) : 0,
        .element_bytes = reduces && draw_chance(draw, 50) ? 8 : 1,
        .ordered = reduces && (algorithm->needs & CW_NEEDS_COMMUTATIVE) == 0 && draw_chance(draw, 50),
    };
    request.count = algorithm->collective == CW_BARRIER ? 0 : draw_count(draw, blocks) / request.element_bytes;
    if (blocks && (algorithm->needs & CW_NEEDS_EQUAL) == 0 && draw_chance(draw, 60)) {
        uint32_t entries = algorithm->collective == CW_ALLTOALL ? ranks * ranks : ranks;
        for (uint32_t i = 0; i < entries; i++) {
            draw->counts[i] = draw_count(draw, true) / request.element_bytes;
        }
        request.counts = draw->counts;
        request.count = 0;
    }
    if ((algorithm->needs & CW_NEEDS_CLUSTERS) != 0 || draw_chance(draw, 20)) {
        request.cluster_count = draw_clusters(draw, ranks);
        request.cluster_of = draw->cluster_of;
    }
    if (cw_problem_create(&request, &problem, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }
    return problem;
}

/* NULL: the algorithm does not fit what was drawn. */
static struct cw_plan *draw_plan(struct draw *draw, const struct cw_algorithm *algorithm, uint32_t ranks)
{
    static const uint64_t eager[] = {0, 100, SLOT_BYTES};
    static const uint64_t segments[] = {100, 1000, 8192};
    char error[300];
    struct cw_plan *plan = NULL;
    struct cw_problem *problem = draw_problem(draw, algorithm, ranks);
    struct cw_parameters parameters = {
        .segment_bytes = segments[draw_below(draw, 3)],
        .eager_max_bytes = eager[draw_below(draw, 3)],
        .threshold_bytes = draw_below(draw, 2) * 1000,
        .degree = 1 + (uint32_t)draw_below(draw, 3),
        .concurrency = 1 + (uint32_t)draw_below(draw, 3),
        .senders = (uint32_t)draw_below(draw, 3),
    };
    if (cw_algorithm_fits(algorithm, problem, error, sizeof(error)) != CW_OK) {
        cw_problem_destroy(problem);
        return NULL;
    }
    if (cw_plan_build(problem, algorithm, &parameters, &plan, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }
    assert_int_equal(cw_plan_validate(plan, error, sizeof(error)), CW_OK);
    return plan;
}

static void draw_options(struct draw *draw, uint64_t seed, struct plan_puts_options *options)
{
    static const double losses[] = {0, 0.001, 0.02};
    static const uint32_t slots[] = {4, 16, 64};
    static const uint32_t kept[] = {0, 1, UINT32_MAX};
    static const uint32_t tables[] = {1, 5, 0};
    plan_puts_options_init(options);
    options->seed = seed;
    options->runs = RUNS;
    options->loss = losses[draw_below(draw, 3)];
    options->duplicate = losses[draw_below(draw, 3)];
    options->reorder = losses[draw_below(draw, 3)];
    options->wan_delay_ns = 500000;
    options->enter_delay_max_ns = draw_below(draw, 3) * 300000;
    options->endpoint.pool_slot_bytes = SLOT_BYTES;
    options->endpoint.pool_slot_count = slots[draw_below(draw, 3)];
    options->slots_kept_max = kept[draw_below(draw, 3)];
    if (options->slots_kept_max == UINT32_MAX) { /* all but one */
        options->slots_kept_max = options->endpoint.pool_slot_count - 1;
    }
    options->put_count_max = tables[draw_below(draw, 3)];
    options->endpoint.event_count_max = draw_chance(draw, 50) ? 256 : 4096;
    options->endpoint.operation_count_max = draw_chance(draw, 30) ? 128 : 8192;
}

/* ---- Tests ---- */

static void run_right(const struct cw_plan *plan, const struct plan_puts_options *options,
                      struct plan_puts_report *report)
{
    static char error[4096];
    if (plan_puts_run(plan, options, report, error, sizeof(error)) != 0) {
        fail_msg("%u ranks: %s", plan->problem->ranks, error);
    }
    assert_int_equal(report->ranks_done, plan->problem->ranks);
}

static void every_algorithm_is_right_over_bad_links(void **state)
{
    static const uint32_t ranks[] = {2, 3, 4, 5, 6, 7, 8, 9, 16};
    struct test_seeds seeds = test_seeds(1, (test_count("CW_TEST_SEEDS", 300) + 99) / 100);
    uint64_t runs = 0;
    const struct cw_algorithm *algorithm;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
            for (uint32_t j = 0; j < sizeof(ranks) / sizeof(ranks[0]); j++) {
                struct draw draw;
                struct plan_puts_options options;
                struct plan_puts_report report;
                cw_random_seed(&draw.random, cw_random_derive(seed, i << 8 | j));
                struct cw_plan *plan = draw_plan(&draw, algorithm, ranks[j]);
                if (plan == NULL) {
                    continue;
                }
                draw_options(&draw, seed, &options);
                run_right(plan, &options, &report);
                cw_plan_destroy(plan);
                runs++;
            }
        }
    }
    printf("%llu plans, each run %d times in a row\n", (unsigned long long)runs, RUNS);
    assert_true(!seeds.is_all || runs > 100);
}

static void the_same_seed_gives_the_same_run(void **state)
{
    const struct cw_algorithm *algorithm;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i += 5) {
        struct draw draw;
        struct plan_puts_options options;
        struct plan_puts_report reports[2];
        cw_random_seed(&draw.random, i);
        struct cw_plan *plan = draw_plan(&draw, algorithm, 6);
        if (plan == NULL) {
            continue;
        }
        draw_options(&draw, i, &options);
        for (uint32_t j = 0; j < 2; j++) {
            run_right(plan, &options, &reports[j]);
        }
        assert_memory_equal(&reports[0], &reports[1], sizeof(reports[0]));
        cw_plan_destroy(plan);
    }
}

static struct cw_plan *plan_of(enum cw_collective collective, const char *name, uint32_t ranks, uint64_t count,
                               uint64_t eager_max_bytes)
{
    char error[300];
    struct cw_problem *problem = NULL;
    struct cw_plan *plan = NULL;
    struct cw_problem_request request = {.collective = collective, .ranks = ranks, .element_bytes = 1, .count = count};
    struct cw_parameters parameters = cw_parameters_default();
    const struct cw_algorithm *algorithm = cw_algorithm_find(collective, name);
    parameters.eager_max_bytes = eager_max_bytes;
    parameters.segment_bytes = 1000;
    assert_non_null(algorithm);
    if (cw_problem_create(&request, &problem, error, sizeof(error)) != CW_OK ||
        cw_plan_build(problem, algorithm, &parameters, &plan, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }
    return plan;
}

/* One slot would be enough to hand everything on; what comes early must not keep it. */
static void runs_follow_each_other_through_few_slots(void **state)
{
    static const struct {
        enum cw_collective collective;
        const char *name;
        uint64_t count;
    } plans[] = {
        {CW_BCAST, "binomial", 1000}, {CW_BCAST, "flat", 1},       {CW_BCAST, "segmented-chain", 5000},
        {CW_GATHER, "binomial", 50},  {CW_ALLGATHER, "ring", 300}, {CW_REDUCE, "binomial", 700},
        {CW_SCAN, "chain", 900},
    };
    for (uint32_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        if (cw_algorithm_find(plans[i].collective, plans[i].name) == NULL) {
            print_message("no %s %s\n", cw_collective_name(plans[i].collective), plans[i].name);
            continue;
        }
        struct cw_plan *plan = plan_of(plans[i].collective, plans[i].name, 7, plans[i].count, SLOT_BYTES);
        for (uint32_t kept = 0; kept < 2; kept++) {
            struct plan_puts_options options;
            struct plan_puts_report report;
            plan_puts_options_init(&options);
            options.seed = i;
            options.runs = 40;
            options.loss = 0.005;
            options.enter_delay_max_ns = 1000000;
            options.endpoint.pool_slot_bytes = SLOT_BYTES;
            options.endpoint.pool_slot_count = 2;
            options.slots_kept_max = kept;
            run_right(plan, &options, &report);
        }
        cw_plan_destroy(plan);
    }
}

/* 1 MiB at 10 Gb/s takes 0.89 ms a step with all headers. If what a rank sends to its children shared the link, all of
 * them would get it when the last one does: a binomial tree of 16 ranks would take 4 + 3 + 2 + 1 steps instead of 4,
 * and the scatter of van de Geijn as well. */
static void children_are_served_one_after_the_other(void **state)
{
    static const struct {
        enum cw_collective collective;
        const char *name;
        uint64_t bytes;
        uint64_t bound_ns;
    } rows[] = {
        {CW_BCAST, "binomial", 1 << 20, 5 * SIMULATION_MS},
        {CW_BCAST, "van-de-geijn", 1 << 20, 3 * SIMULATION_MS},
        {CW_SCATTER, "binomial", 1 << 18, 5 * SIMULATION_MS},
    };
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_plan *plan = plan_of(rows[i].collective, rows[i].name, 16, rows[i].bytes, SLOT_BYTES);
        struct plan_puts_options options;
        struct plan_puts_report report;
        plan_puts_options_init(&options);
        options.runs = 2; /* the first one sets the connections up */
        options.together = true;
        run_right(plan, &options, &report);
        assert_in_range(report.last_ns, SIMULATION_MS, rows[i].bound_ns);
        cw_plan_destroy(plan);
    }
}

static void a_crash_ends_in_errors_for_all_who_wait(void **state)
{
    static char error[4096];
    const struct cw_algorithm *algorithm;
    struct test_seeds seeds = test_seeds(1, (test_count("CW_TEST_SEEDS", 300) + 299) / 300);
    uint64_t gave_up = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
            struct draw draw;
            struct plan_puts_options options;
            struct plan_puts_report report;
            cw_random_seed(&draw.random, cw_random_derive(seed, 1000 + i));
            struct cw_plan *plan = draw_plan(&draw, algorithm, 7);
            if (plan == NULL) {
                continue;
            }
            draw_options(&draw, seed, &options);
            options.endpoint.failure_timeout_ns = 100 * SIMULATION_MS;
            options.crash_rank = (uint32_t)draw_below(&draw, 7);
            options.crash_ns = draw_below(&draw, 2 * SIMULATION_MS);
            (void)plan_puts_run(plan, &options, &report, error, sizeof(error));
            if (report.ranks_hanging > 0) {
                fail_msg("rank %u crashes at %llu ns: %s", options.crash_rank, (unsigned long long)options.crash_ns,
                         error);
            }
            assert_in_range(report.ranks_done + report.ranks_failed, 6, 7);
            gave_up += report.ranks_failed;
            cw_plan_destroy(plan);
        }
    }
    printf("%llu ranks gave up\n", (unsigned long long)gave_up);
    assert_true(!seeds.is_all || gave_up > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_right_over_bad_links),
        cmocka_unit_test(the_same_seed_gives_the_same_run),
        cmocka_unit_test(runs_follow_each_other_through_few_slots),
        cmocka_unit_test(children_are_served_one_after_the_other),
        cmocka_unit_test(a_crash_ends_in_errors_for_all_who_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
