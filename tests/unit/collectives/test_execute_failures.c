/* What the executor says when the transport fails, when something arrives that must not, and what it refuses to begin
 * with. */
#include "execute_script.h"
#include "tests/test.h"

enum { SIGNAL = ((1 << 17) << 2) + CW_TAG_SIGNAL }; /* of barrier 0, round 0 */

/* It fails with `status`, says why, and stays so. */
static void fails(struct bench *bench, int status, const char *words)
{
    assert_int_equal(bench_poll(bench), status);
    says(bench, "failed: ");
    says(bench, words);
    uint32_t puts = bench->script.put_count;
    assert_int_equal(bench_poll(bench), status);
    assert_int_equal(bench->script.put_count, puts);
}

static void test_put_fails(void **state)
{
    struct bench *bench = bench_begin(3);
    put(&bench->test, 0, 1, 2, SEND(0), NOWHERE, 1);
    bench_create(bench);
    bench->script.put_status = CW_ERROR_PEER_FAILED;
    fails(bench, CW_ERROR_PEER_FAILED, "op 0 (put) with tag 8 to rank 1: ");
    assert_int_equal(bench->script.tries, 1);
    bench_end(bench);

    bench = bench_begin(3);
    multicast(&bench->test, 0, 1, 2, 2, SEND(0), NOWHERE, 1);
    bench_create(bench);
    bench->script.put_status = CW_ERROR_CLOSED;
    fails(bench, CW_ERROR_CLOSED, "op 0 (multicast) with tag 8 to group 0: ");
    bench_end(bench);

    bench = bench_begin(3);
    barrier(&bench->test, 0, 0);
    bench_create(bench);
    bench->script.put_status = CW_ERROR_PEER_FAILED;
    fails(bench, CW_ERROR_PEER_FAILED, "op 0 (barrier): signal to rank 1: ");
    bench_end(bench);
}

/* Buffers that it holds go back. */
static void test_transport_fails(void **state)
{
    struct bench *bench = bench_begin(3);
    uint32_t gate = wait_eager(&bench->test, 0, 2, 0, NOWHERE, 0);
    repeat(&bench->test, 0, 1, 100);
    plan_after(&bench->test, 0, gate);
    wait_eager(&bench->test, 0, 1, 0, SCRATCH(0), 1);
    bench_create(bench);
    for (uint32_t i = 40; i < 80; i++) {
        arrive(bench, 1, i * CW_TAG_STEP, true, "x", 1, i);
    }
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.release_count, 0);
    event_add(bench, CW_TRANSPORT_FAILED)->status = CW_ERROR_SYSTEM;
    fails(bench, CW_ERROR_SYSTEM, "the transport: ");
    assert_int_equal(bench->script.release_count, 40);
    bench_end(bench);
}

/* What arrives, and what is said of it. */
struct intruder {
    const char *words;
    uint32_t peer;
    uint32_t tag;
    uint64_t bytes;
    bool eager;
};

static void test_intruders(void **state)
{
    static const struct intruder intruders[] = {
        {"eager put of 4 bytes with tag 4 of rank 1: no wait is for it", 1, 4, 4, true},
        {"direct put of 4 bytes with tag 0 of rank 2: no wait is for it", 2, 0, 4, false},
        {"with tag 1 of rank 1: no wait is for it", 1, 1, 4, true},
        {"with tag 199 of rank 3: no wait is for it", 3, 199, 2, false},
        {"with tag 180 of rank 3: no wait is for it", 3, 180, 2, false},
        {"with tag 76 of rank 3: no wait is for it", 3, 76, 2, false},
        {"with tag 1048575 of rank 4294967295: no wait is for it", UINT32_MAX, (1 << 20) - 1, 2, false},
        {"eager put of 5 bytes with tag 0 of rank 1: its wait is for another size", 1, 0, 5, true},
        {"direct put of 1 bytes with tag 80 of rank 3: its wait is for another size", 3, 80, 1, false},
        {"direct put of 2 bytes with tag 176 of rank 3: its wait is for another size", 3, 176, 2, false},
        {"direct put of 4 bytes with tag 0 of rank 1: its wait is for an eager one", 1, 0, 4, false},
        {"eager put of 2 bytes with tag 80 of rank 3: its wait is for a direct one", 3, 80, 2, true},
        {"eager put of 4 bytes with tag 12 of rank 1: it came before", 1, 12, 4, true},
        {"direct put of 2 bytes with tag 100 of rank 3: it came before", 3, 100, 2, false},
        {"signal of rank 1 for round 0 of barrier 0: not due at all", 1, SIGNAL, 0, true},
        {"signal of rank 3 for round 0 of barrier 0: not due at all", 3, SIGNAL, 1, true},
        {"signal of rank 3 for round 0 of barrier 0: not due at all", 3, SIGNAL, 0, false},
        {"signal of rank 3 for round 2 of barrier 0: not due at all", 3, SIGNAL + 2 * CW_TAG_STEP, 0, true},
        {"signal of rank 3 for round 0 of barrier 1: not due at all", 3, SIGNAL + 32 * CW_TAG_STEP, 0, true},
        {"signal of rank 2 for round 1 of barrier 0: it came before", 2, SIGNAL + CW_TAG_STEP, 0, true},
    };
    for (size_t i = 0; i < sizeof(intruders) / sizeof(intruders[0]); i++) {
        const struct intruder *intruder = &intruders[i];
        struct bench *bench = bench_begin(4);
        wait_eager(&bench->test, 0, 1, 0, RECEIVE(0), 4);
        wait_eager(&bench->test, 0, 1, 3, RECEIVE(0), 4);
        plan_after(&bench->test, 0, 0);
        repeat(&bench->test, 0, 1, 25);
        plan_after(&bench->test, 0, 0);
        wait_direct(&bench->test, 0, 3, 20, RECEIVE(8), 2);
        plan_last(&bench->test, 0)->last_bytes = 1;
        barrier(&bench->test, 0, 0);
        plan_after(&bench->test, 0, 0);
        bench_create(bench);
        arrive(bench, 1, 12, true, "abcd", 4, 900);
        arrive(bench, 3, 100, false, NULL, 2, 0);
        arrive(bench, 2, SIGNAL + CW_TAG_STEP, true, NULL, 0, 901);
        assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
        assert_int_equal(bench->script.release_count, 1); /* the signal's */
        arrive(bench, intruder->peer, intruder->tag, intruder->eager, "0123456", intruder->bytes, 902);
        arrive(bench, 1, 0, true, "abcd", 4, 903); /* too late */
        fails(bench, CW_ERROR_ARGUMENT, intruder->words);
        assert_int_equal(bench->script.release_count, intruder->eager ? 4 : 3);
        bench_end(bench);
    }
}

/* What comes a second time after its wait is complete. */
static void test_again_after_completion(void **state)
{
    struct bench *bench = bench_begin(4);
    wait_eager(&bench->test, 0, 1, 0, RECEIVE(0), 4);
    wait_eager(&bench->test, 0, 1, 1, RECEIVE(0), 4);
    plan_after(&bench->test, 0, 0);
    bench_create(bench);
    arrive(bench, 1, 0, true, "abcd", 4, 1);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    arrive(bench, 1, 0, true, "efgh", 4, 2);
    fails(bench, CW_ERROR_ARGUMENT, "it came before");
    assert_int_equal(bench->script.release_count, 2);
    assert_memory_equal(bench->buffers[CW_BUFFER_RECEIVE], "abcd", 4);
    bench_end(bench);
}

/* ---- What create refuses ---- */

static void refuses(struct bench *bench, void (*spoil)(struct cw_execution_request *request))
{
    struct cw_execution_request request = bench_request(bench);
    struct cw_execution *untouched = (struct cw_execution *)&request;
    if (spoil != NULL) {
        spoil(&request);
    }
    bench->execution = untouched;
    assert_int_equal(cw_execution_create(&request, &bench->execution), CW_ERROR_ARGUMENT);
    assert_ptr_equal(bench->execution, untouched);
    bench->execution = NULL;
    bench_end(bench);
}

static void without_transport(struct cw_execution_request *request)
{
    request->transport = NULL;
}

static void without_schedule(struct cw_execution_request *request)
{
    request->schedule = NULL;
}

static void without_reduce(struct cw_execution_request *request)
{
    request->reduce = NULL;
}

static void with_long_elements(struct cw_execution_request *request)
{
    request->element_bytes = 8;
}

static void with_no_elements(struct cw_execution_request *request)
{
    request->element_bytes = 0;
}

static void with_fewer_ranks(struct cw_execution_request *request)
{
    request->ranks = 0;
}

static void test_create_refuses(void **state)
{
    static void (*const spoilers[])(struct cw_execution_request *) = {
        without_transport, without_schedule, without_reduce, with_long_elements, with_no_elements, with_fewer_ranks};
    for (size_t i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++) {
        struct bench *bench = bench_begin(2);
        reduce(&bench->test, 0, SEND(0), RECEIVE(0), 12, false);
        refuses(bench, spoilers[i]);
    }
}

/* Two waits of which both would have to match one put: alone or in bodies, in any mixture. */
static void test_create_refuses_two_waits_for_one_put(void **state)
{
    static const struct {
        uint32_t iterations, number, other_iterations, other_number;
        bool refused;
    } pairs[] = {
        {1, 5, 1, 5, true},    {1, 5, 1, 6, false},      {8, 5, 1, 12, true},       {8, 5, 1, 13, false},
        {9, 5, 1, 13, true},   {9, 5, 1, 14, false},     {9, 5, 1, 4, false},       {9, 5, 8, 13, true},
        {9, 5, 8, 14, false},  {100, 5, 100, 104, true}, {100, 5, 100, 105, false}, {1, 200, 1000, 100, true},
        {9, 60, 9, 69, false}, {9, 60, 9, 68, true},     {64, 64, 64, 128, false},  {65, 64, 64, 128, true},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct bench *bench = bench_begin(3);
        repeat(&bench->test, 0, 1, pairs[i].iterations);
        wait_eager(&bench->test, 0, 1, pairs[i].number, SCRATCH(0), 1);
        repeat(&bench->test, 0, 1, pairs[i].other_iterations);
        wait_eager(&bench->test, 0, 1, pairs[i].other_number, SCRATCH(0), 1);
        wait_eager(&bench->test, 0, 2, 5, SCRATCH(0), 1); /* another rank's tags are others */
        if (pairs[i].refused) {
            refuses(bench, NULL);
        } else {
            bench_create(bench);
            bench_end(bench);
        }
    }
}

int main(void)
{
    return TESTS_RUN(test_put_fails, test_transport_fails, test_intruders, test_again_after_completion,
                     test_create_refuses, test_create_refuses_two_waits_for_one_put);
}
