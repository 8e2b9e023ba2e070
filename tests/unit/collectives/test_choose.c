/* The choice of algorithms: the best for a request, the same at all ranks, smooth from P to P + 1. */
#include "built_plans.h"
#include "collectives/choose/choose.h"
#include "dataplane/base/random.h"

static void choose(const struct cw_problem *problem, const char *network_name, bool multicast, struct cw_choice *choice)
{
    struct cw_network network;
    assert_int_equal(cw_network_find(network_name, &network), CW_OK);
    struct cw_choose_request request = {
        .problem = problem, .network = &network, .eager_max_bytes = CW_EAGER_ALL, .multicast = multicast};
    assert_int_equal(cw_choose(&request, choice), CW_OK);
}

static double best_time(enum cw_collective collective, uint32_t ranks, uint64_t count, const char *network)
{
    struct cw_problem_request request = {.collective = collective, .ranks = ranks, .element_bytes = 1, .count = count};
    struct cw_problem *problem = problem_built(&request);
    struct cw_choice choice;
    choose(problem, network, false, &choice);
    cw_problem_destroy(problem);
    return choice.candidates[0].time_ns;
}

/* Never more than twice as long with one rank more. */
static void test_smooth(void **state)
{
    static const uint64_t sizes[] = {1, 4099, 1000000};
    static const char *const networks[] = {"gigabit", "10g"};
    for (uint32_t n = 0; n < 2; n++) {
        for (enum cw_collective c = 0; c < CW_COLLECTIVE_COUNT; c++) {
            for (uint32_t s = 0; s < 3; s++) {
                double before = best_time(c, 2, sizes[s], networks[n]);
                for (uint32_t ranks = 3; ranks <= (n == 0 ? 20u : 9u); ranks++) {
                    double now = best_time(c, ranks, sizes[s], networks[n]);
                    assert_true_msg(now <= 2 * before, "%s of %llu on %s: %.0f ns with %u ranks, %.0f with %u",
                                    cw_collective_name(c), (unsigned long long)sizes[s], networks[n], before, ranks - 1,
                                    now, ranks);
                    before = now;
                }
            }
        }
    }
}

/* The time of a plan, interpreted. */
static double run_ns(struct cw_problem *problem, const struct cw_network *network, const struct cw_algorithm *algorithm,
                     const struct cw_parameters *parameters)
{
    struct cw_plan *plan;
    struct cw_price price;
    char error[200];
    assert_int_equal(cw_plan_build(problem, algorithm, parameters, &plan, error, sizeof(error)), CW_OK);
    assert_int_equal(cw_price_interpret(plan, network, &price, NULL), CW_OK);
    cw_plan_release(plan);
    return price.time_ns;
}

/* The time of an algorithm's formula. */
static double formula_ns(const struct cw_problem *problem, const struct cw_network *network,
                         const struct cw_algorithm *algorithm, const struct cw_parameters *parameters)
{
    struct cw_formula_value value;
    const struct cw_formula *formula = cw_formula_find(algorithm->collective, algorithm->name);
    assert_non_null(formula);
    assert_int_equal(cw_formula_evaluate(formula, problem, parameters, network, &value), CW_OK);
    return value.time_ns;
}

/* Its parameters are nearly as good as any of a grid; one that is priced by running it has a coarse one. */
static void assert_best_of_grid(struct cw_problem *problem, const struct cw_network *network,
                                const struct cw_candidate *candidate)
{
    const bool is_run = candidate->priced == CW_PRICED_INTERPRETER;
    for (uint32_t other = 1; other <= 6; other++) {
        for (uint64_t segment = 2000; segment < problem->count; segment += segment / (is_run ? 4 : 16)) {
            struct cw_parameters parameters = candidate->parameters;
            parameters.degree = parameters.senders = other;
            parameters.segment_bytes = segment;
            const double time_ns = is_run ? run_ns(problem, network, candidate->algorithm, &parameters)
                                          : formula_ns(problem, network, candidate->algorithm, &parameters);
            assert_true_msg(time_ns >= candidate->time_ns * (is_run ? 0.95 : 0.98),
                            "%s: %.0f ns with %u and segments of %llu, found %.0f", candidate->algorithm->name, time_ns,
                            other, (unsigned long long)segment, candidate->time_ns);
        }
    }
}

/* The ranking is complete and in order. */
static void test_best_of_grid(void **state)
{
    struct cw_network network;
    assert_int_equal(cw_network_find("gigabit", &network), CW_OK);
    for (uint32_t ranks = 3; ranks <= 64; ranks += 13) {
        struct cw_problem *problem = problem_built(
            &(struct cw_problem_request){.collective = CW_BCAST, .ranks = ranks, .element_bytes = 1, .count = 1000003});
        struct cw_choice choice;
        choose(problem, "gigabit", true, &choice);
        assert_int_equal(choice.count, 14); /* all but those across clusters */
        for (uint32_t i = 0; i < choice.count; i++) {
            assert_true(i == 0 || choice.candidates[i].time_ns >= choice.candidates[i - 1].time_ns);
            if (choice.candidates[i].priced != CW_PRICED_INTERPRETER) {
                assert_best_of_grid(problem, &network, &choice.candidates[i]);
            }
        }
        cw_problem_destroy(problem);
    }
}

/* Where plans must be run the search leaves out hopeless ones; its result is near the best of a grid nevertheless, also
 * where times jump with eager segments. */
static void test_runs_left_out_do_not_matter(void **state)
{
    static const uint32_t cluster_of[12] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
    static const uint64_t eager[] = {CW_EAGER_ALL, 4096};
    struct cw_network network;
    struct cw_choice choice;
    struct cw_problem *problem = problem_built(&(struct cw_problem_request){.collective = CW_BCAST,
                                                                            .ranks = 12,
                                                                            .element_bytes = 1,
                                                                            .count = 2000000,
                                                                            .cluster_count = 2,
                                                                            .cluster_of = cluster_of});
    assert_int_equal(cw_network_find("wan", &network), CW_OK);
    for (uint32_t e = 0; e < 2; e++) {
        uint32_t compared = 0;
        struct cw_choose_request asked = {.problem = problem, .network = &network, .eager_max_bytes = eager[e]};
        assert_int_equal(cw_choose(&asked, &choice), CW_OK);
        for (uint32_t i = 0; i < choice.count; i++) {
            const char *name = choice.candidates[i].algorithm->name;
            if (strcmp(name, "clusters-overlapped") == 0 || strcmp(name, "d-ary") == 0) {
                assert_int_equal(choice.candidates[i].priced, CW_PRICED_INTERPRETER);
                assert_best_of_grid(problem, &network, &choice.candidates[i]);
                compared++;
            }
        }
        assert_int_equal(compared, 2);
    }
    cw_problem_destroy(problem);
}

/* M/B + L, on the network of Matsuda et al. (2006), with 8 ranks in each of two clusters: 32 MB at 1 Gb/s, and 10 ms.
 * */
static void test_overlapped_stages_are_near_their_bound(void **state)
{
    static const uint32_t cluster_of[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    struct cw_problem *problem = problem_built(&(struct cw_problem_request){.collective = CW_BCAST,
                                                                            .ranks = 16,
                                                                            .element_bytes = 1,
                                                                            .count = 32000000,
                                                                            .cluster_count = 2,
                                                                            .cluster_of = cluster_of});
    struct cw_choice choice;
    choose(problem, "ideal-004", false, &choice);
    assert_string_equal(choice.candidates[0].algorithm->name, "clusters-overlapped");
    assert_true(choice.candidates[0].time_ns <= 1.06 * (256e6 + 10e6));
    cw_problem_destroy(problem);
}

static void test_multicast_only_where_there_is_one(void **state)
{
    struct cw_problem_request request = {.collective = CW_BCAST, .ranks = 16, .element_bytes = 1, .count = 4096};
    struct cw_problem *problem = problem_built(&request);
    struct cw_choice choice;
    choose(problem, "gigabit", true, &choice);
    assert_string_equal(choice.candidates[0].algorithm->name, "multicast");
    choose(problem, "gigabit", false, &choice);
    for (uint32_t i = 0; i < choice.count; i++) {
        assert_true((choice.candidates[i].algorithm->needs & CW_NEEDS_MULTICAST) == 0);
    }
    cw_problem_destroy(problem);
}

/* The choice for a random pattern is the fastest of all when each is built and run in model time. CW_TEST_PATTERNS (40)
 * of them. */
static void test_phases(void **state)
{
    uint32_t pattern_count = (uint32_t)test_count("CW_TEST_PATTERNS", 40);
    struct cw_random random;
    struct cw_network network;
    cw_random_seed(&random, 99);
    assert_int_equal(cw_network_find("gigabit", &network), CW_OK);
    for (uint32_t i = 0; i < pattern_count; i++) {
        uint64_t counts[256];
        for (uint32_t j = 0; j < 256; j++) {
            uint64_t kind = cw_random_below(&random, 240);
            bool table_3 = i % 2 == 0; /* 160 x 64 KB, 20 x 16 KB, 60 x 100 B */
            counts[j] =
                table_3 ? (kind < 160   ? 65536
                           : kind < 180 ? 16384
                                        : 100)
                        : cw_random_below(&random, 2) * cw_random_below(&random, 1ull << cw_random_below(&random, 20));
        }
        struct cw_problem_request request = {
            .collective = CW_ALLTOALL, .ranks = 16, .element_bytes = 1, .counts = counts};
        struct cw_problem *problem = problem_built(&request);
        struct cw_choice choice;
        choose(problem, "gigabit", false, &choice);
        const struct cw_algorithm *algorithm;
        for (uint32_t a = 0; (algorithm = cw_algorithm_at(a)) != NULL; a++) {
            struct cw_parameters parameters = cw_parameters_default();
            char error[200];
            parameters.eager_max_bytes = CW_EAGER_ALL;
            if (cw_algorithm_fits(algorithm, problem, error, sizeof(error)) == CW_OK) {
                assert_true(choice.candidates[0].time_ns <=
                            run_ns(problem, &network, algorithm, &parameters) * 1.000001);
            }
        }
        cw_problem_destroy(problem);
    }
}

int main(void)
{
    return TESTS_RUN(test_smooth, test_best_of_grid, test_runs_left_out_do_not_matter,
                     test_overlapped_stages_are_near_their_bound, test_multicast_only_where_there_is_one, test_phases);
}
