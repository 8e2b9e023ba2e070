/* The interpreter: plans whose time is found by hand. test_formulas compares it with closed forms, over many more. */
#include <math.h>

#include "built_plans.h"
#include "collectives/price/price.h"

enum { ALL = -1, CLUSTERS_MAX = 8 };

/* A plan in model time. A message of m bytes takes a port for overhead + m ns, and a processor at each end for the
 * overhead; L = 1000, between clusters 5000. */
struct row {
    enum cw_collective collective;
    const char *algorithm;
    uint32_t ranks, clusters;
    uint64_t bytes;
    int64_t eager; /* bytes at most, or ALL */
    double overhead_ns, copy_ns_per_byte, wan_bytes_per_ns;
    uint32_t ports;
    double time_ns;
    uint64_t messages, wan_bytes;
};

static const struct row rows[] = {
    {CW_BCAST, "flat", 1, 1, 100, ALL, 10, 0, 0, 1, 0, 0, 0},
    {CW_BCAST, "flat", 2, 1, 90, ALL, 10, 0, 0, 1, 1100, 1, 0},
    {CW_BCAST, "flat", 2, 1, 90, ALL, 10, 2, 0, 1, 1100 + 180, 1, 0}, /* copied out of a buffer of the transport */
    /* one port: messages leave at 0, 100, 200, or come at 1100, 1200, 1300; two: the processor is between the first two
     * */
    {CW_BCAST, "flat", 4, 1, 90, ALL, 10, 0, 0, 1, 1300, 3, 0},
    {CW_BCAST, "flat", 4, 1, 90, ALL, 10, 0, 0, 2, 1200, 3, 0},
    {CW_GATHER, "flat", 4, 1, 90, ALL, 10, 0, 0, 1, 1300, 3, 0},
    {CW_GATHER, "flat", 4, 1, 90, ALL, 10, 0, 0, 2, 1200, 3, 0},
    /* A request (g(0) + L), its answer (the same), then the message, with its arrival known L later. All handshakes but
     * the first are hidden: Table 1 of Barchet-Estefanel and Mounie counts one per hop of a chain, and no
     * acknowledgement. */
    {CW_BCAST, "flat", 5, 1, 100, 0, 0, 0, 0, 1, 1000 + 400 + 1000 + 1000, 4, 0},
    {CW_BCAST, "flat-rendezvous", 5, 1, 100, 0, 0, 0, 0, 1, 2000 + 400 + 1000 + 1000, 4, 0},
    {CW_BCAST, "chain", 5, 1, 100, ALL, 0, 0, 0, 1, 4400, 4, 0},
    {CW_BCAST, "chain", 5, 1, 100, 0, 0, 0, 0, 1, 1000 + 4400 + 1000, 4, 0},
    {CW_BCAST, "chain-rendezvous", 5, 1, 100, 0, 0, 0, 0, 1, 2000 + 4400 + 1000, 4, 0},
    {CW_BCAST, "binomial-rendezvous", 8, 1, 100, 0, 0, 0, 0, 1, 2000 + 3300 + 1000, 7, 0},
    /* segments of 90, 90 and 40 arrive at rank 1 at 1100, 1200 and 1250, which passes the last one on at 1300 */
    {CW_BCAST, "segmented-chain", 3, 1, 220, ALL, 10, 0, 0, 1, 1300 + 50 + 1000, 6, 0},
    /* 200 segments without buffers: number 64 starts when number 0 is complete, and so on */
    {CW_BCAST, "segmented-chain", 2, 1, 200 * 90, 0, 0, 0, 0, 1, 1000 + 200 * 90 + 2000, 200, 0},
    {CW_BCAST, "multicast", 4, 1, 90, ALL, 10, 0, 0, 1, 1100, 1, 0},
    /* The root puts 1000 bytes each to two ranks of its cluster, and then to three others. Their link carries all, or
     * two of them at a time, or is slower than the root's port. */
    {CW_BCAST, "flat", 6, 2, 1000, ALL, 0, 0, 0, 1, 5000 + 5000, 5, 3000},
    {CW_BCAST, "flat", 6, 2, 1000, ALL, 0, 0, 4, 1, 5000 + 5000, 5, 3000},
    {CW_BCAST, "flat", 6, 2, 1000, ALL, 0, 0, 0.5, 1, 2000 + 3 * 2000 + 5000, 5, 3000},
    {CW_GATHER, "flat", 8, 2, 1000, ALL, 0, 0, 2, 4, 2000 + 5000, 7, 4000},
    {CW_BCAST, "multicast", 8, 2, 1000, ALL, 0, 0, 0.5, 1, 2000 + 5000, 1, 1000},
    /* Clusters 0 and 2 meet in cluster 1: the message to rank 2 has the first link after that to rank 1, until 4000. It
     * begins to enter the second link 1000, the time of a port, before its end is through the first. */
    {CW_BCAST, "flat", 3, 3, 1000, ALL, 0, 0, 0.5, 1, 4000 - 1000 + 5000 + 2000 + 5000, 2, 3000},
    /* the same over two legs, without buffers: rank 2 is ready, gets the message, and acknowledges it */
    {CW_BCAST, "flat", 3, 3, 1000, 0, 0, 0, 0, 1, 10000 + 1000 + 10000 + 10000, 2, 3000},
    /* two steps with two blocks each, and copies of 19 blocks before, between and after them */
    {CW_ALLTOALL, "bruck", 4, 1, 100, ALL, 0, 1, 0, 1, 2 * (200 + 1000) + 1900, 8, 0},
};

static struct cw_network network_of(const struct row *row)
{
    return (struct cw_network){
        .paths = {cw_plogp_linear(1000, row->overhead_ns, 1), cw_plogp_linear(5000, row->overhead_ns, 1)},
        .ports = row->ports,
        .copy_ns_per_byte = row->copy_ns_per_byte,
        .wan_bytes_per_ns = row->wan_bytes_per_ns,
        .reduce_ns_per_byte = 1,
    };
}

static struct cw_plan *plan_of(const struct row *row)
{
    static const uint32_t via[] = {CW_DIRECT, CW_DIRECT, 1, CW_DIRECT, CW_DIRECT, CW_DIRECT, 1, CW_DIRECT, CW_DIRECT};
    uint32_t cluster_of[CLUSTERS_MAX];
    for (uint32_t rank = 0; rank < row->ranks; rank++) {
        cluster_of[rank] = rank * row->clusters / row->ranks;
    }
    const struct cw_problem_request request = {.collective = row->collective,
                                               .ranks = row->ranks,
                                               .element_bytes = 1,
                                               .count = row->bytes,
                                               .cluster_count = row->clusters,
                                               .cluster_of = cluster_of,
                                               .cluster_via = row->clusters == 3 ? via : NULL};
    const struct cw_parameters parameters = {.eager_max_bytes = row->eager == ALL ? CW_EAGER_ALL : 0,
                                             .multicast_eager_max_bytes = CW_EAGER_ALL,
                                             .segment_bytes = 90};
    return plan_built(&request, row->algorithm, &parameters);
}

static void test_times(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct cw_network network = network_of(&rows[i]);
        struct cw_plan *plan = plan_of(&rows[i]);
        struct cw_price price;
        assert_int_equal(cw_price_interpret(plan, &network, &price, NULL), CW_OK);
        if (fabs(price.time_ns - rows[i].time_ns) > 1e-6 || price.messages != rows[i].messages ||
            price.wan_bytes != rows[i].wan_bytes) {
            fail_msg("row %zu: %s: %.9g ns, %llu messages, %llu bytes between clusters", i, rows[i].algorithm,
                     price.time_ns, (unsigned long long)price.messages, (unsigned long long)price.wan_bytes);
        }
        cw_plan_destroy(plan);
    }
}

/* The second row: one message. */
static void test_trace(void **state)
{
    const struct cw_network network = network_of(&rows[1]);
    struct cw_plan *plan = plan_of(&rows[1]);
    struct cw_trace trace;
    struct cw_price price;
    assert_int_equal(cw_price_interpret(plan, &network, &price, &trace), CW_OK);
    assert_int_equal(price.last_rank, 1);
    assert_int_equal(trace.event_count, 2);
    assert_true(trace.events[0].end_ns == 100 && trace.events[1].start_ns == 0 && trace.events[1].end_ns == 1100);
    assert_int_equal(trace.message_count, 1);
    assert_int_equal(trace.messages[0].target, 1);
    assert_int_equal(trace.messages[0].bytes, 90);
    assert_true(trace.messages[0].sent_ns == 100 && trace.messages[0].arrived_ns == 1100);
    cw_trace_dispose(&trace);
    cw_plan_destroy(plan);
}

/* A put or a wait is missing, or there is no port. */
static void test_endless_plans_are_rejected(void **state)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct cw_network network = network_of(&rows[1]);
        struct cw_plan *plan = plan_of(&rows[1]);
        struct cw_price price = {.messages = 77};
        struct cw_trace trace = {.event_count = 77};
        plan->schedules[i % 2].op_count = i < 2 ? 0 : plan->schedules[i % 2].op_count;
        network.ports = i < 2 ? 1 : 0;
        assert_int_equal(cw_price_interpret(plan, &network, &price, &trace), CW_ERROR_ARGUMENT);
        assert_int_equal(price.messages, 77);
        assert_int_equal(trace.event_count, 77);
        cw_plan_destroy(plan);
    }
}

/* A table of routes that has none through a third cluster is as good as no table: algorithms that have another route
 * for hubs would take it. */
static void test_direct_routes_count_as_none(void **state)
{
    static const uint32_t thirds[] = {0, 1, 2};
    for (uint32_t hub = 0; hub < 2; hub++) {
        const uint32_t far = hub != 0 ? 1 : CW_DIRECT;
        const uint32_t via[] = {CW_DIRECT, CW_DIRECT, far, CW_DIRECT, CW_DIRECT, CW_DIRECT, far, CW_DIRECT, CW_DIRECT};
        struct cw_problem *problem = problem_built(&(struct cw_problem_request){.collective = CW_ALLREDUCE,
                                                                                .ranks = 3,
                                                                                .element_bytes = 8,
                                                                                .count = 10,
                                                                                .cluster_count = 3,
                                                                                .cluster_of = thirds,
                                                                                .cluster_via = via});
        assert_int_equal(problem->cluster_via != NULL, hub);
        assert_int_equal(cw_problem_via(problem, 0, 2), far);
        cw_problem_destroy(problem);
    }
}

int main(void)
{
    return TESTS_RUN(test_times, test_trace, test_endless_plans_are_rejected, test_direct_routes_count_as_none);
}
