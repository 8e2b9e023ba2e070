/* A loop with three neighbours, one of which stops: what waits for it holds up nobody else. Real threads and clock,
 * no time is asserted. */
#include <stdlib.h>

#include "dataplane/base/clock.h"
#include "dataplane/loop/loop_private.h"
#include "tests/test.h"
#include "tests/unit/dataplane/pair_port.h"

enum { EVENTS = 32, MEMORY_BYTES = 1 << 16 };

static int add(struct cw_endpoint *endpoint, void *context)
{
    uint32_t *number = context;
    return (int)++*number;
}

enum { NEIGHBOURS = 3, STOPPED = 1, LIVE = 2, LIVE_PUTS = 40, WORD_BYTES = 4 };

struct neighbour {
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    struct cw_loop *loop;
    uint64_t token;
    uint32_t peers[NEIGHBOURS];
    uint32_t memory[MEMORY_BYTES / WORD_BYTES];
    uint32_t arrived; /* puts, in order */
    uint32_t complete;
};

static void neighbours_open(struct neighbour *list)
{
    struct cw_port *ports[NEIGHBOURS];
    char error[CW_PORT_TEXT_BYTES];
    struct cw_loop_config loop;
    pair_ports_open(ports, NEIGHBOURS);
    cw_loop_config_init(&loop);
    loop.fallback = CW_FALLBACK_NONE;
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        struct cw_endpoint_config config;
        cw_endpoint_config_init(&config);
        config.address = (struct cw_address){.ip = cw_ip_v4(0x0a000001 + i), .udp_port = 4792};
        config.seed = 11 + i;
        config.failure_timeout_ns = UINT64_MAX / 4; /* nobody fails, however long it stands still */
        list[i].port = ports[i];
        assert_int_equal(cw_endpoint_create(&config, ports[i], cw_clock_ns(), &list[i].endpoint, error, sizeof(error)),
                         CW_OK);
        assert_int_equal(cw_region_register(list[i].endpoint, list[i].memory, MEMORY_BYTES,
                                            CW_REGION_WRITE | CW_REGION_READ, &list[i].token),
                         CW_OK);
        assert_int_equal(cw_loop_create(&loop, list[i].endpoint, list[i].port, &list[i].loop, error, sizeof(error)),
                         CW_OK);
    }
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        for (uint32_t k = 0; k < NEIGHBOURS; k++) {
            struct cw_address address = cw_endpoint_address(list[k].endpoint);
            if (k != i) {
                assert_int_equal(cw_peer_add(list[i].endpoint, &address, &list[i].peers[k]), CW_OK);
            }
        }
    }
}

static void neighbours_close(struct neighbour *list)
{
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        cw_loop_destroy(list[i].loop);
        cw_endpoint_destroy(list[i].endpoint);
    }
    for (uint32_t i = 0; i < NEIGHBOURS; i++) {
        cw_port_close(list[i].port);
    }
}

/* Puts of a lane carry how many came before as their tag, and have a place of their own. */
static int word_put(struct neighbour *from, const struct neighbour *to, uint32_t peer, uint32_t number)
{
    struct cw_put put = {.peer = peer,
                         .lane_tag = cw_lane_tag(1, number),
                         .region = to->token,
                         .offset = (uint64_t)number * WORD_BYTES,
                         .source = {.contiguous = {.data = &number, .bytes = sizeof(number)}},
                         .flags = CW_SIGNAL};
    return cw_loop_put(from->loop, &put);
}

static void neighbour_poll(struct neighbour *at)
{
    struct cw_event events[EVENTS];
    uint32_t count = cw_loop_poll(at->loop, events, EVENTS);
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
static bool neighbours_run(struct neighbour *list, uint32_t set, uint32_t at, uint32_t arrived, uint32_t complete)
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
static uint32_t fill(struct neighbour *list, uint32_t at, uint32_t number)
{
    uint32_t count = 0;
    while (word_put(&list[0], &list[at], list[0].peers[at], number + count) == CW_OK) {
        count++;
    }
    return count;
}

/* One peer stops, with all that it takes and all that may be queued for it; puts to another one and calls go on. Then
 * it comes back, and has all of it, in order. */
static void test_peer_that_stops_holds_up_nobody_else(void **state)
{
    struct neighbour *list = calloc(NEIGHBOURS, sizeof(*list));
    assert_non_null(list);
    neighbours_open(list);
    struct neighbour *own = &list[0];
    for (uint32_t at = STOPPED; at <= LIVE; at++) { /* sessions are up */
        assert_int_equal(word_put(own, &list[at], own->peers[at], 0), CW_OK);
        assert_true(neighbours_run(list, 7, at, 1, at));
    }
    uint32_t posted = 1 + fill(list, STOPPED, 1);
    /* with the token taken all that is posted is queued */
    assert_true(cw_token_take(&own->loop->token));
    uint32_t queued = fill(list, STOPPED, posted);
    assert_true(queued > 0);
    posted += queued;
    uint32_t live = 1;
    while (live <= LIVE_PUTS && word_put(own, &list[LIVE], own->peers[LIVE], live) == CW_OK) {
        live++;
    }
    assert_true(live > 1); /* the stopped one has not taken all of the queue */
    cw_loop_give(own->loop);
    assert_true(neighbours_run(list, 1 | 1 << LIVE, LIVE, live, 1 + live));
    uint32_t calls = 0;
    assert_int_equal(cw_loop_call(own->loop, add, &calls), 1);
    assert_int_equal(word_put(own, &list[STOPPED], own->peers[STOPPED], posted), CW_ERROR_AGAIN);
    assert_int_equal(word_put(own, &list[LIVE], own->peers[LIVE], live), CW_OK);
    assert_true(neighbours_run(list, 1 | 1 << LIVE, LIVE, live + 1, 2 + live));
    /* gets have a limit of their own, and share it as well */
    uint32_t gets = 0;
    struct cw_get get = {.region = list[STOPPED].token, .bytes = 4, .local_region = own->token};
    for (get.peer = own->peers[STOPPED]; cw_loop_get(own->loop, &get) == CW_OK; gets++) {
    }
    get.peer = own->peers[LIVE];
    get.region = list[LIVE].token;
    assert_int_equal(cw_loop_get(own->loop, &get), CW_OK);
    assert_true(neighbours_run(list, 7, STOPPED, posted, posted + live));
    neighbours_close(list);
    free(list);
}

int main(void)
{
    return TESTS_RUN(test_peer_that_stops_holds_up_nobody_else);
}
