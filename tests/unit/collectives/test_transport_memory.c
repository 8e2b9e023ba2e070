/* The memory transport as an execution sees it: all that transport.h allows does happen, and nothing else. What it is
 * good for: test_transport_races.c. */
#include <string.h>

#include "collectives/execute/transport_memory.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { SEEDS = 1000 };

/* What a rank has been told. */
struct tally {
    uint32_t sent, complete, arrived;
    uint32_t complete_contexts; /* a bit each */
    struct cw_transport_event last_arrival;
};

static bool tally_event(void *context, const struct cw_transport_event *event)
{
    struct tally *tally = context;
    if (event->kind == CW_TRANSPORT_ARRIVED) {
        tally->arrived++;
        tally->last_arrival = *event;
        return true;
    }
    uint32_t bit = 1u << event->context;
    assert_int_equal(tally->complete_contexts & bit, 0); /* nothing comes after COMPLETE */
    bool complete = event->kind == CW_TRANSPORT_COMPLETE;
    *(complete ? &tally->complete : &tally->sent) += 1;
    tally->complete_contexts |= complete ? bit : 0;
    return false;
}

struct pair {
    struct cw_memory_fabric *fabric;
    const struct cw_transport *from; /* rank 0 */
    const struct cw_transport *to;   /* rank 1 */
    struct tally tallies[2];
    uint8_t memory[2][64];
};

static void pair_begin(struct pair *pair, uint64_t seed, uint32_t eager_buffers)
{
    struct cw_memory_fabric_request request = {.ranks = 2, .seed = seed, .eager_buffers = eager_buffers};
    assert_int_equal(cw_memory_fabric_create(&request, &pair->fabric), CW_OK);
    memset(pair->tallies, 0, sizeof(pair->tallies));
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct cw_transport *transport = cw_memory_fabric_transport(pair->fabric, rank);
        transport->serve(transport->state, &(struct cw_transport_sink){&pair->tallies[rank], tally_event});
        void *buffers[4] = {NULL, NULL, pair->memory[rank], NULL};
        memset(pair->memory[rank], (int)rank, sizeof(pair->memory[rank]));
        cw_memory_fabric_enter(pair->fabric, rank, buffers, (uint64_t[4]){0, 0, sizeof(pair->memory[rank]), 0});
    }
    pair->from = cw_memory_fabric_transport(pair->fabric, 0);
    pair->to = cw_memory_fabric_transport(pair->fabric, 1);
}

static void pair_put(struct pair *pair, uint32_t tag, bool eager, const void *data, uint64_t bytes)
{
    uint32_t peer = 1;
    struct cw_transport_put put = {.peers = &peer,
                                   .peer_count = 1,
                                   .tag = tag,
                                   .eager = eager,
                                   .data = data,
                                   .bytes = bytes,
                                   .buffer = CW_BUFFER_RECEIVE,
                                   .context = tag};
    int status = CW_ERROR_AGAIN;
    for (int i = 0; i < 4 && status == CW_ERROR_AGAIN; i++) { /* not more than three refusals in a row */
        status = pair->from->put(pair->from->state, &put);
    }
    assert_int_equal(status, CW_OK);
}

/* What seeds can be told apart by. */
struct seen {
    uint32_t complete_first, arrived_first, partly, spoilt, sent, unsent;
};

static void see_direct_put(uint64_t seed, struct seen *seen)
{
    struct pair pair;
    pair_begin(&pair, seed, 0);
    uint8_t data[64];
    memset(data, 2, sizeof(data));
    pair_put(&pair, 4, false, data, sizeof(data));
    const struct tally *from = &pair.tallies[0], *to = &pair.tallies[1];
    bool partly = false;
    bool spoilt = false;
    do {
        bool begun = false;
        bool ended = true;
        for (uint32_t i = 0; i < sizeof(data); i++) {
            begun = begun || pair.memory[1][i] == 2;
            ended = ended && pair.memory[1][i] == 2;
            spoilt = spoilt || (pair.memory[1][i] != 1 && pair.memory[1][i] != 2);
        }
        partly = partly || (begun && !ended);
        assert_true(ended || to->arrived == 0);
        seen->complete_first += from->complete == 1 && to->arrived == 0 ? 1 : 0;
        seen->arrived_first += from->complete == 0 && to->arrived == 1 ? 1 : 0;
    } while (cw_memory_fabric_step(pair.fabric));
    assert_int_equal(from->complete, 1);
    assert_int_equal(to->arrived, 1);
    assert_true(to->last_arrival.peer == 0 && to->last_arrival.tag == 4 && to->last_arrival.bytes == 64 &&
                !to->last_arrival.eager);
    seen->partly += partly ? 1 : 0;
    seen->spoilt += spoilt ? 1 : 0;
    *(from->sent == 1 ? &seen->sent : &seen->unsent) += 1;
    assert_true(from->sent <= 1);
    assert_null(cw_memory_fabric_fault(pair.fabric));
    cw_memory_fabric_destroy(pair.fabric);
}

static void test_direct_puts(void **state)
{
    struct seen seen = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        see_direct_put(seed, &seen);
    }
    assert_true(seen.complete_first > 100 && seen.arrived_first > 100 && seen.partly > 100 && seen.spoilt > 100);
    assert_true(seen.sent > 100 && seen.unsent > 100);
}

enum { EAGER_PUTS = 10 };

static void eager_begin(struct pair *pair, uint64_t seed, uint32_t buffers)
{
    pair_begin(pair, seed, buffers);
    for (uint32_t i = 0; i < EAGER_PUTS; i++) {
        pair_put(pair, i, true, "payload", i % 2 == 0 ? 7 : 0);
    }
}

/* Lets happen what can, and checks how many puts have come. */
static void eager_have_come(struct pair *pair, uint32_t expected)
{
    const struct tally *from = &pair->tallies[0], *to = &pair->tallies[1];
    while (cw_memory_fabric_step(pair->fabric)) {
    }
    assert_int_equal(to->arrived, expected);
    assert_int_equal(from->complete, expected);
    if (expected > 0 && to->last_arrival.bytes > 0) {
        assert_memory_equal(to->last_arrival.data, "payload", 7);
    }
}

/* Without buffers each comes when its wait has been announced, before the put or after it. */
static void test_eager_puts_wait_for_their_wait(void **state)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct pair pair;
        eager_begin(&pair, seed, 0);
        for (uint32_t i = 0; i < EAGER_PUTS; i++) {
            eager_have_come(&pair, i);
            pair.to->expect(pair.to->state, 0, i);
        }
        pair.to->expect(pair.to->state, 0, EAGER_PUTS);
        eager_have_come(&pair, EAGER_PUTS);
        pair_put(&pair, EAGER_PUTS, true, "payload", 7);
        eager_have_come(&pair, EAGER_PUTS + 1);
        assert_null(cw_memory_fabric_fault(pair.fabric));
        cw_memory_fabric_destroy(pair.fabric);
    }
}

/* As many come as there are buffers; each that is given back lets one more come. */
static void test_eager_buffers_are_bounded(void **state)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint32_t buffers = 1 + (uint32_t)(seed % 12);
        struct pair pair;
        eager_begin(&pair, seed, buffers);
        for (uint32_t come = buffers; come < EAGER_PUTS; come++) {
            eager_have_come(&pair, come);
            pair.to->release(pair.to->state, pair.tallies[1].last_arrival.buffer);
        }
        eager_have_come(&pair, EAGER_PUTS);
        assert_null(cw_memory_fabric_fault(pair.fabric));
        cw_memory_fabric_destroy(pair.fabric);
    }
}

static void test_faults(void **state)
{
    struct pair pair;
    uint32_t peer = 1;
    pair_begin(&pair, 1, 0);
    struct cw_transport_put put = {.peers = &peer, .peer_count = 1, .data = "12345678", .bytes = 8};
    put.buffer = CW_BUFFER_RECEIVE;
    static const uint64_t offsets[] = {57, 64, 65, UINT64_MAX - 3};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        put.offset = offsets[i];
        int status = CW_ERROR_AGAIN;
        while (status == CW_ERROR_AGAIN) {
            status = pair.from->put(pair.from->state, &put);
        }
        assert_int_equal(status, CW_ERROR_REMOTE_ACCESS);
        assert_non_null(strstr(cw_memory_fabric_fault(pair.fabric), "direct put with tag 0 of 8 bytes to byte 57"));
    }
    cw_memory_fabric_reset(pair.fabric, 2, 0);
    assert_null(cw_memory_fabric_fault(pair.fabric));
    pair.to->release(pair.to->state, 3);
    assert_non_null(strstr(cw_memory_fabric_fault(pair.fabric), "buffer 3 released"));
    cw_memory_fabric_destroy(pair.fabric);
    struct cw_memory_fabric *fabric = NULL;
    assert_int_equal(cw_memory_fabric_create(&(struct cw_memory_fabric_request){0}, &fabric), CW_ERROR_ARGUMENT);
    assert_null(fabric);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct_puts),
        cmocka_unit_test(test_eager_puts_wait_for_their_wait),
        cmocka_unit_test(test_eager_buffers_are_bounded),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
