/* The interpreter: multicasts, barriers, links between clusters, and plans that are built. */
#include "tests/test.h"
#include "tests/unit/collectives/interpret_plans.h"

/* ---- Multicast and barrier ---- */

static void multicast_is_sent_once(void **state)
{
    struct cw_network network = network_make(10, 1);
    for (uint32_t direct = 0; direct < 2; direct++) {
        struct test_plan test;
        struct cw_price price;
        struct cw_trace trace;
        plan_begin_simple(&test, CW_BCAST, 4, 90);
        multicast(&test, 0, 1, 3, 0, SEND(0), direct != 0 ? RECEIVE(0) : NOWHERE, 90);
        for (uint32_t rank = 1; rank < 4; rank++) {
            wait_kind(&test, rank, 0, 0, RECEIVE(0), 90, direct != 0 ? 0 : CW_OP_EAGER);
        }
        assert_int_equal(cw_price_interpret(&test.plan, &network, &price, &trace), CW_OK);
        assert_int_equal(price.messages, 1);
        assert_time(price.time_ns, direct != 0 ? 2100 : 1100);
        assert_int_equal(trace.message_count, 3);
        assert_time(trace.events[0].end_ns, direct != 0 ? 2100 : 100);
        cw_trace_dispose(&trace);
        plan_end(&test);
    }
}

static void barrier_waits_for_the_last(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(10, 1);
    network.copy_ns_per_byte = 1;
    plan_begin_simple(&test, CW_BCAST, 5, 500);
    copy(&test, 3, SCRATCH(0), SCRATCH(500), 500);
    for (uint32_t rank = 0; rank < 5; rank++) {
        barrier(&test, rank, 0);
        if (rank == 3) {
            plan_after(&test, rank, 0);
        }
        barrier(&test, rank, 1);
        plan_after(&test, rank, rank == 3 ? 1 : 0);
    }
    expect(&test, &network, 500 + 2 * 3 * 1010); /* 3 rounds of g(0) + L */
}

/* ---- Clusters ---- */

static const uint32_t halves[] = {0, 0, 0, 0, 1, 1, 1, 1};

static void clusters_begin(struct test_plan *test, uint32_t ranks, uint32_t clusters, const uint32_t *cluster_of,
                           const uint32_t *via)
{
    plan_begin(test, &(struct cw_problem_request){.collective = CW_BCAST,
                                                  .ranks = ranks,
                                                  .element_bytes = 1,
                                                  .count = 1000,
                                                  .cluster_count = clusters,
                                                  .cluster_of = cluster_of,
                                                  .cluster_via = via});
}

/* Four messages of 1000 bytes at once, each 1 byte/ns. A link of 4 bytes/ns carries all; one of 2 takes 2000 for all,
 * the first two being through at 1000; one of 0.5: 2000 each. */
static void link_is_shared(void **state)
{
    static const struct {
        double rate;
        double through[4];
    } cases[] = {
        {0, {1000, 1000, 1000, 1000}},
        {4, {1000, 1000, 1000, 1000}},
        {2, {1000, 1000, 1500, 2000}},
        {0.5, {2000, 4000, 6000, 8000}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_plan test;
        struct cw_network network = network_make(0, 1);
        struct cw_trace trace;
        struct cw_price price;
        network.wan_bytes_per_ns = cases[i].rate;
        clusters_begin(&test, 8, 2, halves, NULL);
        for (uint32_t rank = 0; rank < 4; rank++) {
            message(&test, rank, rank + 4, 0, 1000);
        }
        message(&test, 4, 0, 0, 1000); /* the other direction has its own */
        assert_int_equal(cw_price_interpret(&test.plan, &network, &price, &trace), CW_OK);
        assert_int_equal(price.wan_bytes, 5000);
        double back = cases[i].rate > 0 && cases[i].rate < 1 ? 2000 : 1000;
        for (uint32_t j = 0; j < trace.message_count; j++) {
            const struct cw_trace_message *found = &trace.messages[j];
            double through = found->source == 4 ? back : cases[i].through[found->source];
            assert_time(found->arrived_ns, through + 5000);
        }
        cw_trace_dispose(&trace);
        plan_end(&test);
    }
}

/* Clusters 0 and 2 meet in cluster 1: two legs, and the second is shared with what comes from cluster 1. */
static void two_legs(void **state)
{
    static const uint32_t cluster_of[] = {0, 1, 2, 2};
    static const uint32_t via[] = {CW_DIRECT, CW_DIRECT, 1, CW_DIRECT, CW_DIRECT, CW_DIRECT, 1, CW_DIRECT, CW_DIRECT};
    struct test_plan test;
    struct cw_network network = network_make(0, 1);
    network.wan_bytes_per_ns = 0.5;
    network.copy_ns_per_byte = 1;
    clusters_begin(&test, 4, 3, cluster_of, via);
    message(&test, 0, 2, 0,
            1000); /* enters the first link at 0, is through at 2000, enters the second at 6000 at the earliest */
    message(&test, 0, 2, 1, 0); /* nothing to carry, but at the end of the line */
    copy(&test, 1, SCRATCH(0), SCRATCH(3000), 5900);
    put(&test, 1, 3, 0, SEND(0), NOWHERE, 1000); /* has the second link from 5900 to 7900 */
    plan_after(&test, 1, 0);
    wait_eager(&test, 3, 1, 0, RECEIVE(0), 1000);
    network.copy_ns_per_byte = 1;
    struct cw_price price = interpret(&test, &network);
    assert_int_equal(price.wan_bytes, 3000); /* 1000 over two links, 1000 over one */
    /* through at 7900 + 2000, and copied out */
    assert_time(price.time_ns, 9900 + 5000 + 1000);
    plan_end(&test);
}

static void multicast_crosses_once(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(0, 1);
    struct cw_trace trace;
    struct cw_price price;
    network.wan_bytes_per_ns = 0.5;
    clusters_begin(&test, 8, 2, halves, NULL);
    multicast(&test, 0, 1, 7, 0, SEND(0), RECEIVE(0), 1000);
    for (uint32_t rank = 1; rank < 8; rank++) {
        wait_direct(&test, rank, 0, 0, RECEIVE(0), 1000);
    }
    assert_int_equal(cw_price_interpret(&test.plan, &network, &price, &trace), CW_OK);
    assert_int_equal(price.wan_bytes, 1000);
    assert_int_equal(trace.message_count, 7);
    for (uint32_t i = 0; i < 7; i++) {
        assert_time(trace.messages[i].arrived_ns, trace.messages[i].target < 4 ? 2000 : 2000 + 5000);
    }
    assert_time(price.time_ns, 7000 + 5000);
    cw_trace_dispose(&trace);
    plan_end(&test);
}

/* ---- Plans that are built ---- */

static double built(enum cw_collective collective, const char *name, uint32_t ranks, uint64_t bytes,
                    const struct cw_parameters *parameters, const struct cw_network *network)
{
    struct cw_problem_request request = {.collective = collective, .ranks = ranks, .element_bytes = 1, .count = bytes};
    const struct cw_algorithm *algorithm = cw_algorithm_find(collective, name);
    struct cw_problem *problem = NULL;
    struct cw_plan *plan = NULL;
    struct cw_price price;
    char error[200] = "";
    assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_OK);
    assert_int_equal(cw_plan_build(problem, algorithm, parameters, &plan, error, sizeof(error)), CW_OK);
    assert_int_equal(cw_price_interpret(plan, network, &price, NULL), CW_OK);
    cw_plan_destroy(plan);
    return price.time_ns;
}

/* A question (g(0) + L), its answer (the same), then the message, whose arrival is known L later. All handshakes but
 * the first are hidden: Table 1 of Barchet-Estefanel and Mounie counts one per hop of a chain, and no
 * acknowledgement. */
static void handshakes(void **state)
{
    struct cw_network network = network_make(0, 1);
    struct cw_parameters eager = {.eager_max_bytes = CW_EAGER_ALL};
    struct cw_parameters asked = {0};
    assert_time(built(CW_BCAST, "flat", 5, 100, &eager, &network), 4 * 100 + 1000);
    assert_time(built(CW_BCAST, "flat", 5, 100, &asked, &network), 1000 + 4 * 100 + 1000 + 1000);
    assert_time(built(CW_BCAST, "flat-rendezvous", 5, 100, &asked, &network), 2000 + 4 * 100 + 1000 + 1000);
    assert_time(built(CW_BCAST, "chain", 5, 100, &eager, &network), 4 * 1100);
    assert_time(built(CW_BCAST, "chain", 5, 100, &asked, &network), 1000 + 4 * 1100 + 1000);
    assert_time(built(CW_BCAST, "chain-rendezvous", 5, 100, &asked, &network), 2000 + 4 * 1100 + 1000);
    assert_time(built(CW_BCAST, "binomial", 8, 100, &eager, &network), 3 * 1100);
    assert_time(built(CW_BCAST, "binomial-rendezvous", 8, 100, &asked, &network), 2000 + 3 * 1100 + 1000);
}

static void one_rank_takes_no_time(void **state)
{
    struct cw_network network = network_make(10, 1);
    struct cw_parameters eager = {.eager_max_bytes = CW_EAGER_ALL};
    assert_time(built(CW_BCAST, "flat", 1, 100, &eager, &network), 0);
    assert_time(built(CW_ALLGATHER, "ring", 1, 100, &eager, &network), 0);
    assert_time(built(CW_BARRIER, "dissemination", 1, 0, &eager, &network), 0);
}

/* A table of ways that has none through a third cluster is as good as no table: algorithms that have another way for
 * hubs would take it. */
static void direct_ways_count_as_none(void **state)
{
    uint32_t via[9];
    struct cw_problem *problem;
    char error[200];
    static const uint32_t thirds[] = {0, 1, 2};
    for (int hub = 0; hub < 2; hub++) {
        for (int i = 0; i < 9; i++) {
            via[i] = CW_DIRECT;
        }
        via[0 * 3 + 2] = via[2 * 3 + 0] = hub != 0 ? 1 : CW_DIRECT;
        const struct cw_problem_request request = {.collective = CW_ALLREDUCE,
                                                   .ranks = 3,
                                                   .element_bytes = 8,
                                                   .count = 10,
                                                   .cluster_count = 3,
                                                   .cluster_of = thirds,
                                                   .cluster_via = via};
        assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_OK);
        assert_int_equal(problem->cluster_via != NULL, hub);
        assert_int_equal(cw_problem_via(problem, 0, 2), hub != 0 ? 1 : CW_DIRECT);
        cw_problem_destroy(problem);
    }
}

int main(void)
{
    return TESTS_RUN(multicast_is_sent_once, barrier_waits_for_the_last, link_is_shared, two_legs,
                     multicast_crosses_once, handshakes, one_rank_takes_no_time, direct_ways_count_as_none);
}
