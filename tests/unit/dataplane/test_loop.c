/* The loop: the token, the queue of commands, waiting and the three ways of turning, with real threads. Nothing asserts
 * a time. A lost wake-up of the port shows as a test that does not end: pair_port does not poll on its own. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "dataplane/loop/loop_private.h"
#include "tests/unit/dataplane/pair_host.h"

enum {
    THREADS = 4,
    PUTS = 2000,
    EVENTS = 32,
    MEMORY_BYTES = 1 << 16,
    LANE_BYTES = MEMORY_BYTES / THREADS,
    MEETINGS = 100000
};

struct host {
    struct pair_host own;
    pthread_t stand_in; /* with CW_FALLBACK_CALLER */
    bool has_stand_in;
    atomic_bool is_over;
    uint8_t memory[MEMORY_BYTES];
    uint32_t peer;
};

static struct host hosts[2];

struct mode {
    const char *name;
    enum cw_loop_mode mode[2];
    enum cw_loop_fallback fallback[2];
    uint32_t lose_one_in;
    bool stands_by[2];
};

static void *stand_in(void *argument)
{
    struct host *host = argument;
    while (!atomic_load(&host->is_over)) {
        cw_loop_stand_in(host->own.loop, cw_clock_ns() + 50000000);
    }
    return NULL;
}

static void hosts_open(const struct mode *mode)
{
    struct cw_port *ports[2];
    pair_port_open(ports);
    memset(hosts, 0, sizeof(hosts));
    for (uint32_t i = 0; i < 2; i++) {
        struct pair_host *own = &hosts[i].own;
        pair_host_init(own, i, ports[i]);
        own->loop_config.mode = mode->mode[i];
        own->loop_config.fallback = mode->fallback[i];
        own->loop_config.stands_by = mode->stands_by[i];
        own->loop_config.command_count = 64; /* small, so that it fills */
        pair_port_lose(ports[i], mode->lose_one_in);
        pair_host_open(own, hosts[i].memory, MEMORY_BYTES);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct host *host = &hosts[i];
        host->peer = pair_host_peer(&host->own, &hosts[1 - i].own);
        pair_host_begin(&host->own);
        host->has_stand_in = mode->fallback[i] == CW_FALLBACK_CALLER;
        if (host->has_stand_in) {
            assert_int_equal(pthread_create(&host->stand_in, NULL, stand_in, host), 0);
        }
    }
}

static void hosts_close(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct host *host = &hosts[i];
        if (host->has_stand_in) {
            atomic_store(&host->is_over, true);
            cw_loop_recall(host->own.loop);
            pthread_join(host->stand_in, NULL);
        }
        cw_loop_destroy(host->own.loop);
    }
    for (uint32_t i = 0; i < 2; i++) {
        cw_endpoint_destroy(hosts[i].own.endpoint);
        cw_port_close(hosts[i].own.port);
    }
}

/* A put from the first host into the memory of the second. */
static struct cw_put put_of(const void *data, uint64_t bytes)
{
    return (struct cw_put){
        .peer = hosts[0].peer, .region = hosts[1].own.token, .source = {.contiguous = {.data = data, .bytes = bytes}}};
}

/* Waits at a host for an event of this kind. */
static struct cw_event event_await(struct host *host, enum cw_event_kind kind)
{
    struct cw_event event = {.kind = kind};
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    while (cw_clock_ns() < until_ns) {
        if (cw_loop_wait(host->own.loop, &event, 1, 1000000000) == 1 && event.kind == kind) {
            return event;
        }
    }
    fail_msg("no event of kind %d", (int)kind);
    return event;
}

/* One of several threads that post to the same loop. */
struct poster {
    pthread_t thread;
    uint32_t number;
    atomic_uint *failures;
};

static void *post(void *argument)
{
    struct poster *poster = argument;
    struct host *host = &hosts[0];
    for (uint32_t i = 0; i < PUTS; i++) {
        uint64_t value = (uint64_t)poster->number << 32 | i;
        struct cw_put put = put_of(&value, sizeof(value)); /* the call copies it */
        put.lane_tag = cw_lane_tag(poster->number, i);
        put.offset = poster->number * LANE_BYTES + i * 8ull;
        uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
        int status;
        while ((status = cw_loop_put(host->own.loop, &put)) == CW_ERROR_AGAIN && cw_clock_ns() < until_ns) {
            struct cw_event event;
            if (poster->number == 0) {
                (void)cw_loop_poll(host->own.loop, &event, 1);
            }
        }
        if (status != CW_OK) {
            atomic_fetch_add(poster->failures, 1);
            return NULL;
        }
    }
    return NULL;
}

/* Takes the notifications of all posters, each lane in order. */
static uint32_t all_receive(void)
{
    struct host *host = &hosts[1];
    uint32_t next[THREADS] = {0};
    uint32_t total = 0;
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    while (total < THREADS * PUTS && cw_clock_ns() < until_ns) {
        struct cw_event events[EVENTS];
        uint32_t count = cw_loop_wait(host->own.loop, events, EVENTS, 1000000000);
        for (uint32_t i = 0; i < count; i++) {
            if (events[i].kind != CW_EVENT_PUT) {
                continue;
            }
            uint32_t lane = cw_lane(events[i].lane_tag);
            assert_true(lane < THREADS);
            assert_int_equal(cw_tag(events[i].lane_tag), next[lane]);
            next[lane]++;
            total++;
        }
    }
    return total;
}

static void check_many_threads(const struct mode *mode)
{
    hosts_open(mode);
    struct poster posters[THREADS];
    atomic_uint failures = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){.number = i, .failures = &failures};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post, &posters[i]), 0);
    }
    uint32_t total = all_receive();
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(posters[i].thread, NULL);
    }
    assert_int_equal(atomic_load(&failures), 0);
    assert_true_msg(total == THREADS * PUTS, "%s: %u of %u notifications", mode->name, total, THREADS * PUTS);
    /* each put has a place of its own: puts in flight must not overlap */
    for (uint32_t lane = 0; lane < THREADS; lane++) {
        uint64_t value;
        memcpy(&value, hosts[1].memory + lane * LANE_BYTES + (PUTS - 1) * 8, sizeof(value));
        assert_true(value == ((uint64_t)lane << 32 | (PUTS - 1)));
    }
    hosts_close();
}

static const struct mode modes[] = {
    {.name = "dedicated both", .mode = {CW_LOOP_DEDICATED, CW_LOOP_DEDICATED}},
    {.name = "dedicated, loss", .mode = {CW_LOOP_DEDICATED, CW_LOOP_DEDICATED}, .lose_one_in = 50},
    {.name = "inline with fallback", .fallback = {CW_FALLBACK_THREAD, CW_FALLBACK_THREAD}},
    {.name = "others stand in, loss", .fallback = {CW_FALLBACK_CALLER, CW_FALLBACK_CALLER}, .lose_one_in = 50},
    {.name = "others stand by, loss",
     .fallback = {CW_FALLBACK_CALLER, CW_FALLBACK_CALLER},
     .lose_one_in = 50,
     .stands_by = {true, true}},
    {.name = "fallback at the sender, loss",
     .mode = {CW_LOOP_INLINE, CW_LOOP_DEDICATED},
     .fallback = {CW_FALLBACK_THREAD, CW_FALLBACK_NONE},
     .lose_one_in = 50},
};

static void test_many_threads_post(void **state)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        check_many_threads(&modes[i]);
    }
}

static void fallback_acknowledges(enum cw_loop_fallback fallback, bool stands_by)
{
    const struct mode mode = {.fallback = {fallback, fallback}, .stands_by = {false, stands_by}};
    hosts_open(&mode);
    static uint8_t source[20000];
    memset(source, 7, sizeof(source));
    struct cw_put put = put_of(source, sizeof(source));
    put.context = 99;
    put.flags = CW_SIGNAL;
    assert_int_equal(cw_loop_put(hosts[0].own.loop, &put), CW_OK);
    struct cw_event event = event_await(&hosts[0], CW_EVENT_COMPLETE);
    assert_int_equal(event.status, CW_OK);
    assert_int_equal(event.context, 99);
    assert_memory_equal(hosts[1].memory, source, sizeof(source));
    assert_true(cw_loop_counters(hosts[1].own.loop).fallback_turns > 0);
    hosts_close();
}

/* The application of the target never polls: the fallback thread receives and acknowledges, so the sender completes. */
static void test_fallback_acknowledges_for_an_application_that_computes(void **state)
{
    fallback_acknowledges(CW_FALLBACK_THREAD, false);
    fallback_acknowledges(CW_FALLBACK_CALLER, false);
    fallback_acknowledges(CW_FALLBACK_CALLER, true);
}

/* A thread that assists is notified of events that the application, which is away, does not take; and turns for one
 * that sleeps in a call, which takes them itself. */
static void test_who_stands_by_knows_of_events(void **state)
{
    const struct mode mode = {.fallback = {CW_FALLBACK_THREAD, CW_FALLBACK_NONE}, .stands_by = {false, true}};
    hosts_open(&mode);
    struct host *host = &hosts[0], *target = &hosts[1];
    uint64_t value = 77;
    struct cw_put put = put_of(&value, sizeof(value));
    assert_int_equal(cw_loop_put(host->own.loop, &put), CW_OK);
    struct cw_event event;
    uint32_t count = 0;
    while (count == 0) { /* the first is that the other host has come */
        assert_true(cw_loop_stand_in(target->own.loop, cw_clock_ns() + TEST_HANG_NS));
        while (cw_endpoint_events(target->own.endpoint, &event, 1) > 0) {
            count += event.kind == CW_EVENT_PUT;
        }
    }
    assert_int_equal(count, 1);
    assert_false(cw_loop_stand_in(target->own.loop, cw_clock_ns() + 1000)); /* nothing more: until its time */
    cw_loop_recall(target->own.loop);
    assert_false(cw_loop_stand_in(target->own.loop, UINT64_MAX)); /* called off before */
    target->has_stand_in = true;
    assert_int_equal(pthread_create(&target->stand_in, NULL, stand_in, target), 0);
    value++;
    put.offset = sizeof(value); /* the first may be in flight: debug builds refuse an overlap */
    assert_int_equal(cw_loop_put(host->own.loop, &put), CW_OK);
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    for (count = 0; count == 0 && cw_clock_ns() < until_ns;) {
        count = cw_loop_wait(target->own.loop, &event, 1, TEST_HANG_NS);
    }
    assert_int_equal(count, 1);
    assert_int_equal(event.kind, CW_EVENT_PUT);
    assert_memory_equal(target->memory + put.offset, &value, sizeof(value));
    hosts_close();
}

static int add(struct cw_endpoint *endpoint, void *context)
{
    uint32_t *number = context;
    ++*number; /* without a lock: the owner alone runs it */
    return (int)*number;
}

struct caller {
    pthread_t thread;
    struct cw_loop *loop;
    uint32_t *number;
};

static void *call(void *argument)
{
    struct caller *caller = argument;
    for (uint32_t i = 0; i < PUTS; i++) {
        (void)cw_loop_call(caller->loop, add, caller->number);
    }
    return NULL;
}

static void test_calls_run_one_at_a_time(void **state)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        hosts_open(&modes[i]);
        uint32_t number = 0;
        struct caller callers[THREADS];
        for (uint32_t k = 0; k < THREADS; k++) {
            callers[k] = (struct caller){.loop = hosts[0].own.loop, .number = &number};
            assert_int_equal(pthread_create(&callers[k].thread, NULL, call, &callers[k]), 0);
        }
        for (uint32_t k = 0; k < THREADS; k++) {
            pthread_join(callers[k].thread, NULL);
        }
        assert_int_equal(number, THREADS * PUTS);
        hosts_close();
    }
}

static void test_errors_of_queued_commands_become_events(void **state)
{
    const struct mode mode = {.mode = {CW_LOOP_DEDICATED, CW_LOOP_DEDICATED}};
    hosts_open(&mode);
    struct cw_put put = {.peer = 77, .region = 1, .context = 5, .lane_tag = cw_lane_tag(1, 2)};
    int status = cw_loop_put(hosts[0].own.loop, &put);
    if (status == CW_OK) {
        struct cw_event event;
        assert_int_equal(cw_loop_wait(hosts[0].own.loop, &event, 1, TEST_HANG_NS), 1);
        assert_int_equal(event.kind, CW_EVENT_COMPLETE);
        assert_int_equal(event.status, CW_ERROR_ARGUMENT);
        assert_int_equal(event.context, 5);
    } else {
        assert_int_equal(status, CW_ERROR_ARGUMENT); /* the token happened to be free */
    }
    hosts_close();
}

/* Two threads meet again and again in calls; one of them pushes while the other gives the token back. */
struct meeting {
    struct cw_loop *loop;
    atomic_uint round;
    atomic_uint done;
};

static void *meet(void *argument)
{
    struct meeting *meeting = argument;
    for (unsigned round = 1; round <= MEETINGS; round++) {
        while (atomic_load(&meeting->round) < round) {
            sched_yield();
        }
        for (uint32_t i = 0; i < 3; i++) {
            (void)cw_loop_message_release(meeting->loop, 0); /* a command that changes nothing */
        }
        atomic_store(&meeting->done, round);
    }
    return NULL;
}

static void test_no_command_is_left_behind(void **state)
{
    hosts_open(&(struct mode){.name = "inline"});
    struct meeting meeting = {.loop = hosts[0].own.loop};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, meet, &meeting), 0);
    uint32_t left_behind = 0;
    for (unsigned round = 1; round <= MEETINGS; round++) {
        atomic_store(&meeting.round, round);
        for (uint32_t i = 0; i < 3; i++) {
            (void)cw_loop_message_release(meeting.loop, 0);
        }
        while (atomic_load(&meeting.done) != round) {
        }
        if (!cw_commands_empty(&meeting.loop->commands)) {
            struct cw_event event;
            left_behind++;
            (void)cw_loop_poll(meeting.loop, &event, 1);
        }
    }
    pthread_join(thread, NULL);
    assert_int_equal(left_behind, 0);
    hosts_close();
}

/* An application that computes for longer than the failure bound before it posts, with more to follow. */
static void test_a_first_put_after_a_long_time_does_not_fail_its_peer(void **state)
{
    hosts_open(&(struct mode){.name = "inline"});
    struct host *host = &hosts[0];
    host->own.endpoint->now_ns -=
        2 * host->own.endpoint->config.failure_timeout_ns; /* as if the last turn were so long ago */
    uint64_t value = 7;
    struct cw_put put = put_of(&value, sizeof(value));
    put.flags = CW_MORE;
    assert_int_equal(cw_loop_put(host->own.loop, &put), CW_OK);
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    bool arrived = false;
    while (!arrived && cw_clock_ns() < until_ns) {
        struct cw_event events[8];
        uint32_t count = cw_loop_poll(host->own.loop, events, 8);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(events[i].status >= 0);
        }
        count = cw_loop_poll(hosts[1].own.loop, events, 8);
        for (uint32_t i = 0; i < count; i++) {
            arrived = arrived || events[i].kind == CW_EVENT_PUT;
        }
    }
    assert_true(arrived);
    hosts_close();
}

static void test_bad_configuration_is_rejected(void **state)
{
    struct cw_loop_config config;
    cw_loop_config_init(&config);
    struct cw_loop *loop = NULL;
    char error[CW_PORT_TEXT_BYTES];
    static const uint32_t counts[] = {0, 1, 3, 1000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        config.command_count = counts[i];
        error[0] = 0;
        assert_int_equal(cw_loop_create(&config, NULL, NULL, &loop, error, sizeof(error)), CW_ERROR_ARGUMENT);
        assert_non_null(strstr(error, "command_count"));
        assert_null(loop);
    }
}

/* A wish for the token that came when the fallback thread had just released it stays, and keeps no thread awake. */
static void test_stale_wish_lets_sleep(void **state)
{
    struct cw_event event;
    hosts_open(&(struct mode){.name = "inline"});
    atomic_store(&hosts[0].own.loop->wanted, 1);
    uint64_t until_ns = cw_clock_ns() + TEST_HANG_NS;
    while (cw_loop_counters(hosts[0].own.loop).sleeps == 0 && cw_clock_ns() < until_ns) {
        assert_int_equal(cw_loop_wait(hosts[0].own.loop, &event, 1, 10000000), 0);
    }
    assert_true(cw_loop_counters(hosts[0].own.loop).sleeps > 0);
    hosts_close();
}

/* ---- three neighbours, one of which stops: commands that wait for it delay no other ---- */

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
        list[i].own.endpoint_config.failure_timeout_ns = UINT64_MAX / 4; /* sessions never fail */
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

/* Posts to the one that is stopped until there is no room; returns how many it took. */
static uint32_t fill(uint32_t number)
{
    uint32_t count = 0;
    while (word_put(STOPPED, number + count) == CW_OK) {
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
    uint32_t posted = 1 + fill(1);
    /* with the token taken all that is posted is queued */
    assert_true(cw_token_acquire(&loop->token));
    uint32_t queued = fill(posted);
    assert_true(queued > 0);
    posted += queued;
    uint32_t live = 1;
    while (live <= LIVE_PUTS && word_put(LIVE, live) == CW_OK) {
        live++;
    }
    assert_true(live > 1); /* the stopped one has not taken all of the queue */
    cw_loop_release(loop);
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
    return TESTS_RUN(test_many_threads_post, test_fallback_acknowledges_for_an_application_that_computes,
                     test_who_stands_by_knows_of_events, test_calls_run_one_at_a_time,
                     test_errors_of_queued_commands_become_events, test_no_command_is_left_behind,
                     test_a_first_put_after_a_long_time_does_not_fail_its_peer, test_stale_wish_lets_sleep,
                     test_bad_configuration_is_rejected, test_peer_that_stops_holds_up_nobody_else);
}
