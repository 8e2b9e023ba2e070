/* A loop with three neighbours, one of which stops: what waits for it holds up nobody else. Real threads and clock,
 * no time is asserted. */
#include <stdlib.h>

#include "dataplane/loop/loop_private.h"
#include "tests/unit/dataplane/pair_host.h"

enum { EVENTS = 32, MEMORY_BYTES = 1 << 16 };

static int add(struct cw_endpoint *endpoint, void *context)
{
    uint32_t *number = context;
    return (int)++*number;
}

enum { NEIGHBOURS = 3, STOPPED = 1, LIVE = 2, LIVE_PUTS = 40, WORD_BYTES = 4 };

struct neighbour {
    struct pair_host own;
    uint32_t peers[NEIGHBOURS];
    uint32_t memory[MEMORY_BYTES / WORD_BYTES];
    uint32_t arrived; /* puts, in order */
    uint32_t complete;
};

static struct neighbour list[NEIGHBOURS];

static void neighbours_open(void)
{
    struct cw_port *ports[NEIGHBOURS];
    pair_ports_open(ports, NEIGHBOURS);
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        pair_host_init(&list[i].own, i, ports[i]);
        list[i].own.endpoint_config.failure_timeout_ns =
            UINT64_MAX / 4; /* nobody fails, however long it stands still */
        pair_host_open(&list[i].own, list[i].memory, MEMORY_BYTES);
        pair_host_begin(&list[i].own);
    }
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        for (uint32_t k = 0; k < NEIGHBOURS; k++) {
            list[i].peers[k] = k == i ? 0 : pair_host_peer(&list[i].own, &list[k].own);
        }
    }
}

static void neighbours_close(void)
{
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        pair_host_end(&list[i].own);
    }
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        cw_port_close(list[i].own.port);
    }
}

/* Puts of a lane carry how many came before as their tag, and have a place of their own. */
static int word_put(uint32_t at, uint32_t number)
{
    struct cw_put put = {.peer = list[0].peers[at],
                         .lane_tag = cw_lane_tag(1, number),
                         .region = list[at].own.token,
                         .offset = (uint64_t)number * WORD_BYTES,
                         .source = {.contiguous = {.data = &number, .bytes = sizeof(number)}},
                         .flags = CW_SIGNAL};
    return cw_loop_put(list[0].own.loop, &put);
}

static void neighbour_poll(struct neighbour *at)
{
    struct cw_event events[EVENTS];
    uint32_t count = cw_loop_poll(at->own.loop, events, EVENTS);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(events[i].status >= 0);
        if (events[i].kind == CW_EVENT_PUT) {
            assert_int_equal(cw_tag(events[i].lane_tag), at->arrived);
            assert_int_equal(at->memory[at->arrived], at->arrived);
            at->arrived++;
        }
        at->complete += events[i].kind == CW_EVENT_COMPLETE;
    }
}

/* Turns the first and, of the others, those of `set`, until `at` has seen `arrived` puts and the first `complete`
 * completions. */
static bool neighbours_run(uint32_t set, uint32_t at, uint32_t arrived, uint32_t complete)
{
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    while ((list[at].arrived < arrived || list[0].complete < complete) && cw_clock_ns() < until_ns) {
        for (uint32_t i = 0; i < NEIGHBOURS; i++) {
            if ((set >> i & 1) != 0) {
                neighbour_poll(&list[i]);
            }
        }
    }
    return list[at].arrived == arrived && list[0].complete >= complete;
}

/* Posts to a peer until there is no room; returns how many it took. */
static uint32_t fill(uint32_t at, uint32_t number)
{
    uint32_t count = 0;
    while (word_put(at, number + count) == CW_OK) {
        count++;
    }
    return count;
}

/* One peer stops, with all that it takes and all that may be queued for it; puts to another one and calls go on. Then
 * it comes back, and has all of it, in order. */
static void test_peer_that_stops_holds_up_nobody_else(void **state)
{
    neighbours_open();
    struct neighbour *first = &list[0];
    struct cw_loop *loop = list[0].own.loop;
    for (uint32_t at = STOPPED; at <= LIVE; at++) { /* sessions are up */
        assert_int_equal(word_put(at, 0), CW_OK);
        assert_true(neighbours_run(7, at, 1, at));
    }
    uint32_t posted = 1 + fill(STOPPED, 1);
    /* with the token taken all that is posted is queued */
    assert_true(cw_token_take(&loop->token));
    uint32_t queued = fill(STOPPED, posted);
    assert_true(queued > 0);
    posted += queued;
    uint32_t live = 1;
    while (live <= LIVE_PUTS && word_put(LIVE, live) == CW_OK) {
        live++;
    }
    assert_true(live > 1); /* the stopped one has not taken all of the queue */
    cw_loop_give(loop);
    assert_true(neighbours_run(1 | 1 << LIVE, LIVE, live, 1 + live));
    uint32_t calls = 0;
    assert_int_equal(cw_loop_call(loop, add, &calls), 1);
    assert_int_equal(word_put(STOPPED, posted), CW_ERROR_AGAIN);
    assert_int_equal(word_put(LIVE, live), CW_OK);
    assert_true(neighbours_run(1 | 1 << LIVE, LIVE, live + 1, 2 + live));
    /* gets have a limit of their own, and share it as well */
    uint32_t gets = 0;
    struct cw_get get = {.region = list[STOPPED].own.token, .bytes = 4, .local_region = first->own.token};
    for (get.peer = first->peers[STOPPED]; cw_loop_get(loop, &get) == CW_OK; gets++) {
    }
    get.peer = first->peers[LIVE];
    get.region = list[LIVE].own.token;
    assert_int_equal(cw_loop_get(loop, &get), CW_OK);
    assert_true(neighbours_run(7, STOPPED, posted, posted + live));
    neighbours_close();
}

int main(void)
{
    return TESTS_RUN(test_peer_that_stops_holds_up_nobody_else);
}
