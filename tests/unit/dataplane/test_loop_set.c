/* Several loops as one: two processes with a pair of ports for each loop, with real threads. Nothing asserts a time. */
#include <pthread.h>
#include <stdatomic.h>

#include "dataplane/base/clock.h"
#include "dataplane/loop/loop_set.h"
#include "tests/test.h"
#include "tests/unit/dataplane/pair_port.h"

enum { LOOPS = 3, LANES = 7, PUTS = 2000, ROUNDS = 500, EVENTS = 16, MEMORY_BYTES = 1 << 18 };

struct process {
    struct cw_loop_set set;
    struct cw_endpoint *endpoints[LOOPS];
    struct cw_port *ports[LOOPS];
    pthread_t stand_in; /* at the first loop */
    bool stands_by;
    atomic_bool is_over;
    uint8_t memory[MEMORY_BYTES];
    uint64_t token;
    uint32_t peer;
};

struct world {
    struct process list[2];
};

static void *stand_in(void *argument)
{
    struct process *process = argument;
    while (!atomic_load(&process->is_over)) {
        (void)cw_loop_stand_in(process->set.loops[0], cw_clock_ns() + 50000000);
    }
    return NULL;
}

static struct cw_address address_of(uint32_t process, uint32_t loop)
{
    return (struct cw_address){.ip = cw_ip_v4(0x0a000001 + process), .udp_port = (uint16_t)(CW_UDP_PORT + loop)};
}

static void loop_open(struct process *process, uint32_t number, uint32_t loop, bool spins)
{
    char error[CW_PORT_TEXT_BYTES];
    struct cw_loop_config config;
    struct cw_endpoint_config endpoint;
    cw_loop_config_init(&config);
    bool is_stood_by = loop == 0 && process->stands_by;
    config.mode = is_stood_by ? CW_LOOP_INLINE : CW_LOOP_DEDICATED;
    config.fallback = CW_FALLBACK_CALLER;
    config.stands_by = is_stood_by;
    config.spin = spins && !is_stood_by;
    config.first = loop == 0 ? NULL : process->set.loops[0];
    cw_endpoint_config_init(&endpoint);
    endpoint.address = address_of(number, loop);
    endpoint.seed = 11 + 2 * loop + number;
    endpoint.waiting = cw_loop_waiting(&config, &process->ports[loop]->info);
    assert_int_equal(cw_endpoint_create(&endpoint, process->ports[loop], cw_clock_ns(), &process->endpoints[loop],
                                        error, sizeof(error)),
                     CW_OK);
    assert_int_equal(cw_loop_create(&config, process->endpoints[loop], process->ports[loop], &process->set.loops[loop],
                                    error, sizeof(error)),
                     CW_OK);
    process->set.count = loop + 1;
}

/* With these numbers of loops. */
static struct world *world_open(uint32_t first, uint32_t second, bool stands_by, bool spins)
{
    struct world *world = calloc(1, sizeof(*world));
    const uint32_t counts[2] = {first, second};
    struct cw_address addresses[LOOPS];
    assert_non_null(world);
    for (uint32_t loop = 0; loop < LOOPS; loop++) {
        struct cw_port *ports[2];
        pair_port_open(ports);
        world->list[0].ports[loop] = ports[0];
        world->list[1].ports[loop] = ports[1];
    }
    for (uint32_t i = 0; i < 2; i++) {
        world->list[i].stands_by = stands_by;
        for (uint32_t loop = 0; loop < counts[i]; loop++) {
            loop_open(&world->list[i], i, loop, spins);
        }
        if (stands_by) {
            assert_int_equal(pthread_create(&world->list[i].stand_in, NULL, stand_in, &world->list[i]), 0);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct process *process = &world->list[i];
        for (uint32_t loop = 0; loop < counts[1 - i]; loop++) {
            addresses[loop] = address_of(1 - i, loop);
            memcpy(addresses[loop].mac, world->list[1 - i].ports[loop]->info.mac, 6);
        }
        assert_int_equal(cw_loop_set_peer_add(&process->set, addresses, counts[1 - i], &process->peer), CW_OK);
        assert_int_equal(
            cw_loop_set_register(&process->set, process->memory, MEMORY_BYTES, CW_REGION_WRITE, &process->token),
            CW_OK);
    }
    return world;
}

static void world_close(struct world *world)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct process *process = &world->list[i];
        for (uint32_t loop = process->set.count; loop-- > 0;) {
            if (loop == 0 && process->stands_by) {
                atomic_store(&process->is_over, true);
                cw_loop_recall(process->set.loops[0]);
                pthread_join(process->stand_in, NULL);
            }
            cw_loop_destroy(process->set.loops[loop]);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t loop = 0; loop < LOOPS; loop++) {
            cw_endpoint_destroy(world->list[i].endpoints[loop]);
            cw_port_close(world->list[i].ports[loop]);
        }
    }
    free(world);
}

static uint64_t value_of(uint32_t number)
{
    return (uint64_t)number * 0x9e3779b97f4a7c15ull;
}

/* Puts and messages in turn, on lanes that keep to a loop each. */
static void *post(void *argument)
{
    struct world *world = argument;
    struct process *process = &world->list[0];
    uint32_t common = process->set.count < world->list[1].set.count ? process->set.count : world->list[1].set.count;
    for (uint32_t i = 0; i < PUTS; i++) {
        uint64_t value = value_of(i), until_ns = cw_clock_ns() + TEST_HANG_NS;
        struct cw_loop *loop = process->set.loops[i % LANES % common];
        const struct cw_source source = {.contiguous = {.data = &value, .bytes = sizeof(value)}};
        const struct cw_put put = {.peer = process->peer,
                                   .lane_tag = cw_lane_tag(i % LANES, i),
                                   .region = world->list[1].token,
                                   .offset = 8ull * i,
                                   .source = source};
        const struct cw_message message = {.peer = process->peer, .lane_tag = put.lane_tag, .source = source};
        int status;
        do {
            status = i / LANES % 2 == 0 ? cw_loop_put(loop, &put) : cw_loop_message_send(loop, &message);
        } while (status == CW_ERROR_AGAIN && cw_clock_ns() < until_ns);
        if (status != CW_OK) {
            break;
        }
    }
    return NULL;
}

static void event_check(struct process *process, const struct cw_event *event, uint32_t next[LANES])
{
    uint64_t value;
    if (event->kind != CW_EVENT_PUT && event->kind != CW_EVENT_MESSAGE) {
        return;
    }
    uint32_t lane = cw_lane(event->lane_tag), number = cw_tag(event->lane_tag);
    assert_int_equal(event->peer, process->peer);
    assert_int_equal(number, next[lane]); /* in order */
    next[lane] += LANES;
    const void *at = event->kind == CW_EVENT_PUT ? process->memory + 8 * (size_t)number : event->data;
    memcpy(&value, at, sizeof(value));
    assert_int_equal(value, value_of(number));
    if (event->kind == CW_EVENT_MESSAGE) {
        int status;
        while ((status = cw_loop_set_message_release(&process->set, event->slot)) == CW_ERROR_AGAIN) {
        }
        assert_int_equal(status, CW_OK);
    }
}

static void check_order(uint32_t first, uint32_t second, bool stands_by, bool spins)
{
    struct world *world = world_open(first, second, stands_by, spins);
    struct process *target = &world->list[1];
    struct cw_event events[EVENTS];
    uint32_t next[LANES], arrived = 0;
    pthread_t thread;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        next[lane] = lane;
    }
    assert_int_equal(pthread_create(&thread, NULL, post, world), 0);
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    while (arrived < PUTS && cw_clock_ns() < until_ns) {
        uint32_t count = cw_loop_set_wait(&target->set, events, EVENTS, 1000000000, NULL);
        for (uint32_t i = 0; i < count; i++) {
            arrived += events[i].kind == CW_EVENT_PUT || events[i].kind == CW_EVENT_MESSAGE;
            event_check(target, &events[i], next);
        }
    }
    pthread_join(thread, NULL);
    assert_int_equal(arrived, PUTS);
    world_close(world);
}

static void test_lanes_keep_their_order(void **state)
{
    check_order(LOOPS, LOOPS, false, false);
    check_order(LOOPS, LOOPS, true, true);
    check_order(2, 2, true, false);
}

static void test_processes_with_other_numbers_of_loops(void **state)
{
    check_order(LOOPS, 1, true, false);
    check_order(1, LOOPS, true, false);
    check_order(2, LOOPS, false, false);
}

/* Answers each put on the loop it came by. */
struct answering {
    struct world *world;
    bool stays; /* the end has not come */
};

static int put_small(struct process *process, uint64_t region, uint32_t number)
{
    const struct cw_put put = {.peer = process->peer,
                               .lane_tag = cw_lane_tag(number % process->set.count, number),
                               .region = region,
                               .source = {.contiguous = {.data = &number, .bytes = sizeof(number)}}};
    return cw_loop_put(process->set.loops[number % process->set.count], &put);
}

static bool await_put(struct process *process, uint32_t number)
{
    struct cw_event event;
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    while (cw_clock_ns() < until_ns) {
        if (cw_loop_set_wait(&process->set, &event, 1, TEST_HANG_NS, NULL) == 1 && event.kind == CW_EVENT_PUT) {
            return cw_tag(event.lane_tag) == number;
        }
    }
    return false;
}

static void *answer(void *argument)
{
    struct answering *answering = argument;
    struct process *process = &answering->world->list[1];
    answering->stays = true;
    for (uint32_t i = 0; i < ROUNDS && answering->stays; i++) {
        answering->stays = await_put(process, i) && put_small(process, answering->world->list[0].token, i) == CW_OK;
    }
    return NULL;
}

/* The thread that waits sleeps, and an event of any loop wakes it. */
static void check_sleepers(bool stands_by, bool spins)
{
    struct world *world = world_open(2, 2, stands_by, spins);
    struct answering answering = {.world = world};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, answer, &answering), 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        assert_int_equal(put_small(&world->list[0], world->list[1].token, i), CW_OK);
        assert_true(await_put(&world->list[0], i));
    }
    pthread_join(thread, NULL);
    assert_true(answering.stays);
    world_close(world);
}

static void test_whoever_waits_is_woken_by_any_loop(void **state)
{
    check_sleepers(false, false);
    check_sleepers(true, true);
}

static int nothing(struct cw_endpoint *endpoint, void *context)
{
    return CW_OK;
}

struct registration {
    struct process *process;
    uint64_t token;
};

/* Again, with the same token. */
static int register_again(struct cw_endpoint *endpoint, void *context)
{
    const struct registration *of = context;
    return cw_region_register_as(endpoint, of->process->memory, 100, CW_REGION_LOCAL, of->token);
}

static int deregister_again(struct cw_endpoint *endpoint, void *context)
{
    return cw_region_deregister(endpoint, ((const struct registration *)context)->token);
}

static void test_registrations_are_the_same_in_all_loops(void **state)
{
    struct world *world = world_open(LOOPS, LOOPS, false, false);
    struct process *source = &world->list[0], *target = &world->list[1];
    struct cw_event event;
    struct registration again = {.process = source};
    uint64_t token, until_ns = cw_clock_ns() + TEST_HANG_NS;
    assert_int_equal(cw_loop_set_register(&source->set, source->memory, MEMORY_BYTES, CW_REGION_LOCAL, &token), CW_OK);
    memset(source->memory, 7, MEMORY_BYTES);
    struct cw_put put = {.peer = source->peer,
                         .region = target->token,
                         .source = {.region = token, .contiguous = {.data = source->memory, .bytes = MEMORY_BYTES}},
                         .flags = CW_SIGNAL};
    assert_int_equal(cw_loop_put(source->set.loops[1], &put), CW_OK); /* the middle one holds on to it */
    assert_int_equal(cw_loop_call(source->set.loops[1], nothing, NULL), CW_OK);
    int status = cw_loop_set_deregister(&source->set, token);
    assert_true(status == CW_ERROR_BUSY || status == CW_OK);
    while (status == CW_ERROR_BUSY && cw_clock_ns() < until_ns) {
        (void)cw_loop_set_wait(&source->set, &event, 1, 1000000, NULL);
        status = cw_loop_set_deregister(&source->set, token);
    }
    assert_int_equal(status, CW_OK);
    assert_int_equal(cw_loop_set_deregister(&source->set, token), CW_ERROR_NOT_FOUND);
    for (uint32_t i = 0; i < 1000; i++) { /* places are reused, and are free everywhere */
        assert_int_equal(cw_loop_set_register(&source->set, source->memory, 100, CW_REGION_LOCAL, &again.token), CW_OK);
        assert_int_not_equal(again.token, token);
        assert_int_equal(cw_loop_call(source->set.loops[1], register_again, &again), CW_ERROR_BUSY);
        assert_int_equal(cw_loop_set_deregister(&source->set, again.token), CW_OK);
        assert_int_equal(cw_loop_call(source->set.loops[1], deregister_again, &again), CW_ERROR_NOT_FOUND);
    }
    world_close(world);
}

static void test_a_loop_that_nobody_would_be_woken_for_is_rejected(void **state)
{
    char error[CW_PORT_TEXT_BYTES];
    struct world *world = world_open(1, 1, false, false);
    struct cw_loop_config config;
    struct cw_loop *first = NULL, *second = NULL;
    struct process *process = &world->list[0];
    cw_loop_config_init(&config);
    config.fallback = CW_FALLBACK_NONE;
    assert_int_equal(cw_loop_create(&config, process->endpoints[0], process->ports[0], &first, error, sizeof(error)),
                     CW_OK);
    config.first = first;
    for (int dedicated = 0; dedicated < 2; dedicated++) { /* a thread that waits at the first one sleeps on its port */
        config.mode = dedicated ? CW_LOOP_DEDICATED : config.mode;
        assert_int_equal(
            cw_loop_create(&config, process->endpoints[0], process->ports[0], &second, error, sizeof(error)),
            CW_ERROR_ARGUMENT);
    }
    cw_loop_destroy(first);
    world_close(world);
}

int main(void)
{
    return TESTS_RUN(test_lanes_keep_their_order, test_processes_with_other_numbers_of_loops,
                     test_whoever_waits_is_woken_by_any_loop, test_registrations_are_the_same_in_all_loops,
                     test_a_loop_that_nobody_would_be_woken_for_is_rejected);
}
