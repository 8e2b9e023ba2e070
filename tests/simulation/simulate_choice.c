/* What is chosen across clusters is run over puts in virtual time, beside its rivals: the price has to be near what it
 * takes, and nothing else much sooner. So the model knows what limits the dataplane. */
#include <inttypes.h>

#include "tests/simulation/simulation.h"

#include "apps/plan/puts.h"
#include "collectives/algorithms/build.h"
#include "collectives/choose/choose.h"

enum { RANKS = 16, RUNS = 5, RIVALS = 3 };

/* As the network "wan" has it. */
#define RATE_BPS     1000000000ull
#define DELAY_NS     50000ull
#define WAN_RATE_BPS 10000000000ull
#define WAN_DELAY_NS 10000000ull

#define BEHIND_MOST 1.3 /* the chosen one, in times of the best rival */
#define PRICE_LEAST 0.7 /* in times of what it takes: the network's hosts have a TCP, the simulated ones have not */
#define PRICE_MOST  1.6

struct row {
    enum cw_collective collective;
    uint64_t bytes;
    uint32_t clusters;
};

static struct cw_problem *problem_make(const struct row *row)
{
    uint32_t cluster_of[RANKS];
    char error[200];
    struct cw_problem *problem = NULL;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        cluster_of[rank] = rank * row->clusters / RANKS;
    }
    struct cw_problem_request request = {
        .collective = row->collective,
        .ranks = RANKS,
        .element_bytes = 1,
        .count = row->bytes,
        .cluster_count = row->clusters,
        .cluster_of = cluster_of,
    };
    assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_OK);
    return problem;
}

/* Once sessions are set up and receivers know what their senders need. */
static double run_ns(struct cw_problem *problem, const struct cw_candidate *candidate)
{
    uint64_t times[RUNS];
    char error[4096];
    struct cw_plan *plan;
    struct plan_puts_options options;
    struct plan_puts_report report;
    assert_int_equal(cw_plan_build(problem, candidate->algorithm, &candidate->parameters, &plan, error, sizeof(error)),
                     CW_OK);
    plan_puts_options_init(&options);
    options.runs = RUNS;
    options.together = true;
    options.times_ns = times;
    options.rate_bps = RATE_BPS;
    options.delay_ns = DELAY_NS;
    options.wan_rate_bps = WAN_RATE_BPS;
    options.wan_delay_ns = WAN_DELAY_NS;
    if (plan_puts_run(plan, &options, &report, error, sizeof(error)) != 0) {
        fail_msg("%s", error);
    }
    (void)cw_plan_release(plan);
    /* Runs follow each other so closely that every second one waits for credit: the price is of one that has it. */
    uint64_t least_ns = times[1];
    for (uint32_t i = 2; i < RUNS; i++) {
        least_ns = times[i] < least_ns ? times[i] : least_ns;
    }
    return (double)least_ns;
}

static void row_judge(const struct row *row, uint64_t rivals)
{
    struct cw_network network;
    struct cw_choice choice;
    struct cw_problem *problem = problem_make(row);
    assert_int_equal(cw_network_find("wan", &network), CW_OK);
    struct cw_choose_request request = {.problem = problem, .network = &network, .eager_max_bytes = 4096};
    assert_int_equal(cw_choose(&request, &choice), CW_OK);
    double chosen_ns = run_ns(problem, &choice.candidates[0]);
    double best_ns = chosen_ns;
    uint32_t best = 0;
    for (uint32_t i = 1; i < choice.count && i <= rivals; i++) {
        double rival_ns = run_ns(problem, &choice.candidates[i]);
        best = rival_ns < best_ns ? i : best;
        best_ns = rival_ns < best_ns ? rival_ns : best_ns;
    }
    double price = choice.candidates[0].time_ns / chosen_ns;
    printf("%-14s %8" PRIu64 " bytes, %u clusters: %-22s segment %7" PRIu64 " senders %u: priced %7.2f ms, run %7.2f "
           "ms (%.2f); best %7.2f ms, %s (%.2f)\n",
           cw_collective_name(row->collective), row->bytes, row->clusters, choice.candidates[0].algorithm->name,
           choice.candidates[0].parameters.segment_bytes, choice.candidates[0].parameters.senders,
           choice.candidates[0].time_ns / 1e6, chosen_ns / 1e6, price, best_ns / 1e6,
           choice.candidates[best].algorithm->name, chosen_ns / best_ns);
    fflush(stdout);
    assert_true(chosen_ns <= BEHIND_MOST * best_ns);
    assert_true(price >= PRICE_LEAST && price <= PRICE_MOST);
    cw_problem_destroy(problem);
}

static void the_chosen_one_is_as_good_as_it_is_priced(void **state)
{
    static const struct row rows[] = {
        {CW_BCAST, 1 << 20, 2},   {CW_BCAST, 1 << 20, 4},  {CW_BCAST, 65536, 2},          {CW_ALLREDUCE, 1 << 20, 2},
        {CW_ALLREDUCE, 65536, 4}, {CW_REDUCE, 1 << 20, 2}, {CW_ALLGATHER, 65536, 2},      {CW_ALLGATHER, 1024, 4},
        {CW_ALLTOALL, 4096, 2},   {CW_ALLTOALL, 65536, 4}, {CW_REDUCE_SCATTER, 65536, 2},
    };
    uint64_t rivals = test_count("CW_TEST_RIVALS", test_is_short() ? 1 : RIVALS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        row_judge(&rows[i], rivals);
    }
}

/* Pipelines of segments without a handshake, some of more than receivers lend slots for. */
static void credit_is_priced(void **state)
{
    static const struct {
        uint64_t bytes;
        uint64_t segment_bytes;
        uint32_t senders;
    } rows[] = {{1 << 20, 4096, 2}, {4 << 20, 4096, 2}, {1 << 20, 1024, 1}, {1 << 20, 1024, 2}};
    struct cw_network network;
    assert_int_equal(cw_network_find("wan", &network), CW_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct row row = {CW_BCAST, rows[i].bytes, 2};
        struct cw_problem *problem = problem_make(&row);
        struct cw_candidate candidate = {
            .algorithm = cw_algorithm_find(CW_BCAST, "clusters-overlapped"),
            .parameters = cw_parameters_default(),
        };
        struct cw_plan *plan;
        struct cw_price price;
        char error[200];
        candidate.parameters.segment_bytes = rows[i].segment_bytes;
        candidate.parameters.senders = rows[i].senders;
        assert_int_equal(
            cw_plan_build(problem, candidate.algorithm, &candidate.parameters, &plan, error, sizeof(error)), CW_OK);
        assert_int_equal(cw_price_interpret(plan, &network, &price, NULL), CW_OK);
        (void)cw_plan_release(plan);
        double took_ns = run_ns(problem, &candidate);
        printf("%8" PRIu64 " bytes in segments of %" PRIu64 ", %u senders: priced %.2f ms, run %.2f ms\n",
               rows[i].bytes, rows[i].segment_bytes, rows[i].senders, price.time_ns / 1e6, took_ns / 1e6);
        assert_true(price.time_ns >= PRICE_LEAST * took_ns && price.time_ns <= PRICE_MOST * took_ns);
        cw_problem_destroy(problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credit_is_priced),
        cmocka_unit_test(the_chosen_one_is_as_good_as_it_is_priced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
