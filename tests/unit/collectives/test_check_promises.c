/* The checker: what plans promise beside the right result: messages per phase, phases, crossings of clusters. */
#include "check_plans.h"
#include "tests/test.h"

enum { NONE = UINT32_MAX };

static const struct cw_promise nothing = {.wan_bytes = UINT64_MAX};

static void test_promise_differs(void **state)
{
    for (uint32_t field = 0; field < 5; field++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_BARRIER, 3, 0);
        for (uint32_t rank = 0; rank < 3; rank++) {
            barrier(&test, rank, 0);
        }
        struct cw_promise *promise = &test.plan.schedules[2].promise;
        promise->fan_in = field == 0 ? 1 : 0;
        promise->fan_out = field == 1 ? 1 : 0;
        promise->phases_apart = field == 2 ? 1 : 0;
        promise->wan_senders = field == 3 ? 1 : 0;
        promise->wan_bytes = field == 4 ? 1 : UINT64_MAX;
        plan_expect(&test, CW_CHECK_PROMISE_DIFFERS, 2, NONE);
    }
}

/* Ranks 1 and 2 send 4 bytes in 4 segments to rank 0, in the same phase or not, and signals. */
static void begin_gather(struct test_plan *test, uint16_t second_phase)
{
    plan_begin_simple(test, CW_GATHER, 3, 4);
    copy(test, 0, SEND(0), RECEIVE(0), 4);
    for (uint32_t rank = 1; rank < 3; rank++) {
        signal_to(test, rank, 0, 50);
        wait_signal(test, 0, rank, 50);
        repeat(test, rank, 1, 4);
        put(test, rank, 0, 1, (struct cw_place){CW_BUFFER_SEND, 0, 1}, NOWHERE, 1);
        plan_last(test, rank)->phase = rank == 1 ? 0 : second_phase;
        repeat(test, 0, 1, 4);
        wait_eager(test, 0, rank, 1, (struct cw_place){CW_BUFFER_RECEIVE, 4 * rank, 1}, 1);
    }
}

static void test_fan_in(void **state)
{
    struct test_plan test;
    struct cw_promise promise = nothing;
    promise.fan_in = 1;
    promise.fan_out = 1;
    begin_gather(&test, 1);
    plan_promise(&test, promise);
    plan_passes(&test);
    begin_gather(&test, 0);
    plan_promise(&test, promise);
    plan_expect(&test, CW_CHECK_FAN_IN, 2, 2);
    promise.fan_in = 2;
    begin_gather(&test, 0);
    plan_promise(&test, promise);
    plan_passes(&test);
}

/* The root multicasts 4 bytes to two and puts the rest of 8 bytes to each. */
static void test_fan_out(void **state)
{
    for (uint32_t promised = 1; promised <= 3; promised++) {
        struct test_plan test;
        struct cw_promise promise = nothing;
        promise.fan_out = promised;
        promise.fan_in = 2;
        plan_begin_simple(&test, CW_BCAST, 3, 8);
        plan_promise(&test, promise);
        multicast(&test, 0, 1, 2, 1, SEND(0), NOWHERE, 4);
        for (uint32_t rank = 1; rank < 3; rank++) {
            signal_to(&test, 0, rank, 2);
            wait_signal(&test, rank, 0, 2);
            put(&test, 0, rank, 3, SEND(4), NOWHERE, 4);
            wait_eager(&test, rank, 0, 1, RECEIVE(0), 4);
            wait_eager(&test, rank, 0, 3, RECEIVE(4), 4);
        }
        bool passes = promised == 3;
        plan_expect(&test, passes ? CW_CHECK_PASSED : CW_CHECK_FAN_OUT, passes ? NONE : 0,
                    passes          ? NONE
                    : promised == 1 ? 2
                                    : 4);
    }
}

/* Rank 0 receives a message of rank 1 in phase 0, of rank 2 in phase 3 and of rank 3 in phase 4. `missing`: whom it
 * does not tell to wait for the one before. */
static void begin_phases(struct test_plan *test, uint32_t missing)
{
    plan_begin_simple(test, CW_GATHER, 4, 4);
    plan_promise(test, (struct cw_promise){.phases_apart = 1, .wan_bytes = UINT64_MAX});
    copy(test, 0, SEND(0), RECEIVE(0), 4);
    uint32_t before = NONE;
    for (uint32_t rank = 1; rank < 4; rank++) {
        uint16_t phase = (uint16_t)(rank == 1 ? 0 : rank + 1);
        signal_to(test, 0, rank, 1);
        if (before != NONE && missing != rank) {
            plan_after(test, 0, before);
        }
        uint32_t told = wait_signal(test, rank, 0, 1);
        put(test, rank, 0, 2, SEND(0), NOWHERE, 4);
        plan_last(test, rank)->phase = phase;
        plan_after(test, rank, told);
        before = wait_eager(test, 0, rank, 2, RECEIVE(4 * rank), 4);
    }
}

static void test_phases(void **state)
{
    for (uint32_t missing = 1; missing <= 3; missing++) {
        struct test_plan test;
        begin_phases(&test, missing);
        if (missing == 1) {
            plan_passes(&test);
        } else {
            plan_expect(&test, CW_CHECK_PHASES, missing, 1);
        }
    }
    struct test_plan test; /* the promise is what makes it a fault */
    begin_phases(&test, 2);
    plan_promise(&test, nothing);
    plan_passes(&test);
}

/* ---- clusters ---- */

/* Clusters {0, 1, 2} and {3, 4, 5}. */
static void begin_clusters(struct test_plan *test, enum cw_collective collective, struct cw_promise promise)
{
    static const uint32_t cluster_of[6] = {0, 0, 0, 1, 1, 1};
    plan_begin(test, &(struct cw_problem_request){.collective = collective,
                                                  .ranks = 6,
                                                  .element_bytes = 1,
                                                  .count = 4,
                                                  .cluster_count = 2,
                                                  .cluster_of = cluster_of});
    plan_promise(test, promise);
}

static void test_wan_bytes(void **state)
{
    for (uint64_t promised = 3; promised <= 20; promised++) {
        for (uint32_t multicasts = 0; multicasts <= 1; multicasts++) {
            struct test_plan test;
            begin_clusters(&test, CW_BCAST, (struct cw_promise){.wan_bytes = promised});
            uint32_t last = 0;
            if (multicasts != 0) { /* all of the other cluster at once: that crosses once */
                last = multicast(&test, 0, 1, 5, 1, SEND(0), NOWHERE, 4);
            }
            for (uint32_t rank = 1; rank < 6; rank++) {
                if (multicasts == 0) {
                    last = put(&test, 0, rank, 1, SEND(0), NOWHERE, 4);
                }
                wait_eager(&test, rank, 0, 1, RECEIVE(0), 4);
            }
            bool passes = promised >= (multicasts != 0 ? 4 : 12);
            uint32_t op = multicasts != 0 ? last : promised < 4 ? 2 : promised < 8 ? 3 : 4;
            plan_expect(&test, passes ? CW_CHECK_PASSED : CW_CHECK_WAN_BYTES, passes ? NONE : 0, passes ? NONE : op);
        }
    }
}

/* All-to-all: of the first cluster each rank sends to the other cluster and tells the next one when its messages are
 * sent (SENT, or complete), except for message `missing`: 3 times the rank plus which of its three. */
static void begin_senders(struct test_plan *test, uint32_t promised, uint16_t flags, uint32_t missing)
{
    begin_clusters(test, CW_ALLTOALL, (struct cw_promise){.wan_senders = promised, .wan_bytes = UINT64_MAX});
    for (uint32_t rank = 0; rank < 6; rank++) {
        uint32_t told = NONE;
        if (rank == 1 || rank == 2) {
            told = wait_signal(test, rank, rank - 1, 90);
        }
        copy(test, rank, SEND(4 * rank), RECEIVE(4 * rank), 4);
        uint32_t crossing[3];
        uint32_t crossings = 0;
        for (uint32_t other = 0; other < 6; other++) {
            if (other == rank) {
                continue;
            }
            uint32_t op = put(test, rank, other, 1, SEND(4 * other), NOWHERE, 4);
            if (told != NONE && other >= 3) {
                plan_after(test, rank, told);
            }
            if (rank < 3 && other >= 3) {
                crossing[crossings++] = op;
            }
        }
        if (rank < 2) {
            signal_to(test, rank, rank + 1, 90);
            for (uint32_t i = 0; i < crossings; i++) {
                if (missing != rank * 3 + i) {
                    plan_after_flags(test, rank, crossing[i], 0, flags);
                }
            }
        }
    }
    for (uint32_t rank = 0; rank < 6; rank++) {
        for (uint32_t other = 0; other < 6; other++) {
            if (other != rank) {
                wait_eager(test, rank, other, 1, RECEIVE(4 * other), 4);
            }
        }
    }
}

static void test_wan_senders(void **state)
{
    for (uint16_t flags = 0; flags <= CW_DEPENDENCY_SENT; flags++) {
        struct test_plan test;
        begin_senders(&test, 3, flags, NONE);
        plan_passes(&test);
        /* Nothing orders the senders of the other cluster: it is at fault as long as fewer than three are promised. */
        begin_senders(&test, 2, flags, NONE);
        plan_expect(&test, CW_CHECK_WAN_SENDERS, 3, 1);
        assert_non_null(strstr(test.report.text, "3 ranks of cluster 1"));
        begin_senders(&test, 2, flags, 4);
        plan_expect(&test, CW_CHECK_WAN_SENDERS, 3, 1);
        begin_senders(&test, 1, flags, 4); /* one of the three messages of rank 1 is not waited for */
        plan_expect(&test, CW_CHECK_WAN_SENDERS, 1, 5);
        assert_non_null(strstr(test.report.text, "2 ranks of cluster 0"));
        assert_non_null(strstr(test.report.text, "of rank 2 (put to rank"));
    }
}

/* A gather to rank 3: ranks 0, 1, 2 send one after another. `proof`: what tells the next one; 0 the put is complete, 1
 * it has been sent, 2 it has arrived, 3 nothing. */
static void begin_sending_gather(struct test_plan *test, uint32_t proof, uint32_t promised)
{
    static const uint32_t cluster_of[4] = {0, 0, 0, 1};
    plan_begin(test, &(struct cw_problem_request){.collective = CW_GATHER,
                                                  .ranks = 4,
                                                  .root = 3,
                                                  .element_bytes = 1,
                                                  .count = 4,
                                                  .cluster_count = 2,
                                                  .cluster_of = cluster_of});
    plan_promise(test, (struct cw_promise){.wan_senders = promised, .wan_bytes = UINT64_MAX});
    copy(test, 3, SEND(0), RECEIVE(12), 4);
    for (uint32_t rank = 0; rank < 3; rank++) {
        uint32_t told = rank > 0 ? wait_signal(test, rank, proof == 2 ? 3 : rank - 1, 5) : NONE;
        uint32_t sent = put(test, rank, 3, 1, SEND(0), NOWHERE, 4);
        if (told != NONE) {
            plan_after(test, rank, told);
        }
        uint32_t got = wait_eager(test, 3, rank, 1, RECEIVE(4 * rank), 4);
        if (rank < 2) {
            signal_to(test, proof == 2 ? 3 : rank, rank + 1, 5);
            if (proof == 2) {
                plan_after(test, 3, got);
            } else if (proof < 2) {
                plan_after_flags(test, rank, sent, 0, proof == 1 ? CW_DEPENDENCY_SENT : 0);
            }
        }
    }
}

static void test_wan_proofs(void **state)
{
    for (uint32_t proof = 0; proof <= 3; proof++) {
        for (uint32_t promised = 1; promised <= 3; promised++) {
            struct test_plan test;
            begin_sending_gather(&test, proof, promised);
            if (proof < 3 || promised == 3) {
                plan_passes(&test);
            } else {
                plan_expect(&test, CW_CHECK_WAN_SENDERS, 0, 0);
            }
        }
    }
}

/* Two senders share a pipeline: the second one begins when all iterations of the first have been sent. */
static void test_wan_pipeline(void **state)
{
    for (uint32_t ordered = 0; ordered <= 1; ordered++) {
        static const uint32_t cluster_of[3] = {0, 0, 1};
        struct test_plan test;
        plan_begin(&test, &(struct cw_problem_request){.collective = CW_GATHER,
                                                       .ranks = 3,
                                                       .root = 2,
                                                       .element_bytes = 1,
                                                       .count = 100,
                                                       .cluster_count = 2,
                                                       .cluster_of = cluster_of});
        plan_promise(&test, (struct cw_promise){.wan_senders = 1, .wan_bytes = 200});
        copy(&test, 2, SEND(0), RECEIVE(200), 100);
        uint32_t told = wait_signal(&test, 1, 0, 500);
        for (uint32_t rank = 0; rank < 2; rank++) {
            repeat(&test, rank, 1, 100);
            if (rank == 1) {
                plan_after(&test, 1, told);
            }
            uint32_t sent = put(&test, rank, 2, 1, (struct cw_place){CW_BUFFER_SEND, 0, 1}, NOWHERE, 1);
            if (rank == 0) {
                signal_to(&test, 0, 1, 500);
                if (ordered != 0) {
                    plan_after_flags(&test, 0, sent, 0, CW_DEPENDENCY_SENT);
                }
            }
            repeat(&test, 2, 1, 100);
            wait_eager(&test, 2, rank, 1, (struct cw_place){CW_BUFFER_RECEIVE, 100 * rank, 1}, 1);
        }
        plan_expect(&test, ordered != 0 ? CW_CHECK_PASSED : CW_CHECK_WAN_SENDERS, ordered != 0 ? NONE : 0,
                    ordered != 0 ? NONE : 1);
    }
}

int main(void)
{
    return TESTS_RUN(test_promise_differs, test_fan_in, test_fan_out, test_phases, test_wan_bytes, test_wan_senders,
                     test_wan_proofs, test_wan_pipeline);
}
