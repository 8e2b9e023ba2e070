/* An application's own event loop: the descriptor and the time-out of a loop. No time is asserted. A wake-up that is
 * lost shows as a test that does not end: the wait has no other bound than the one that cw_loop_arm returns. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "dataplane/loop/loop_private.h"
#include "tests/unit/dataplane/pair_host.h"

enum { HOSTS = 2, POSTERS = 2, PUTS = 3000, EVENTS = 8, WORD_BYTES = 8 };

struct host {
    struct pair_host own;
    int descriptor;
    uint32_t peer;
    uint64_t words[POSTERS][PUTS];
};

static struct host hosts[HOSTS];

static void hosts_open(uint32_t lose_one_in)
{
    struct cw_port *ports[HOSTS];
    char error[CW_PORT_TEXT_BYTES];
    pair_port_open(ports);
    memset(hosts, 0, sizeof(hosts));
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct pair_host *own = &hosts[i].own;
        pair_host_init(own, i, ports[i]);
        own->endpoint_config.failure_timeout_ns = UINT64_MAX / 4; /* sessions never fail */
        own->loop_config.command_count = 64;                      /* small, so that it fills */
        pair_port_lose(ports[i], lose_one_in);
        pair_host_open(own, hosts[i].words, sizeof(hosts[i].words));
        pair_host_begin(own);
    }
    for (uint32_t i = 0; i < HOSTS; i++) {
        hosts[i].peer = pair_host_peer(&hosts[i].own, &hosts[1 - i].own);
        assert_int_equal(cw_loop_descriptor(hosts[i].own.loop, &hosts[i].descriptor, error, sizeof(error)), CW_OK);
    }
}

static void hosts_close(void)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        pair_host_end(&hosts[i].own);
        cw_port_close(hosts[i].own.port);
    }
}

static bool is_readable(const struct host *host)
{
    struct pollfd at = {.fd = host->descriptor, .events = POLLIN};
    return poll(&at, 1, 0) == 1;
}

/* As an application waits: for the descriptor, at most for the given time. */
static void application_wait(const struct host *host, uint64_t timeout_ns)
{
    struct pollfd at = {.fd = host->descriptor, .events = POLLIN};
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000)};
    (void)ppoll(&at, 1, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
}

static int put_post(uint32_t from, uint32_t poster, uint32_t number)
{
    uint64_t value = (uint64_t)poster << 32 | number;
    const struct cw_put put = {.peer = hosts[from].peer,
                               .lane_tag = cw_lane_tag(poster, number),
                               .region = hosts[1 - from].own.token,
                               .offset = ((uint64_t)poster * PUTS + number) * WORD_BYTES,
                               .source = {.contiguous = {.data = &value, .bytes = sizeof(value)}}};
    return cw_loop_put(hosts[from].own.loop, &put);
}

/* Turns one host until it would wait; returns how many puts have arrived at it. */
static uint32_t turn_all(struct host *host, uint64_t *timeout_ns)
{
    struct cw_event events[EVENTS];
    uint32_t arrived = 0;
    do {
        uint32_t count = cw_loop_poll(host->own.loop, events, EVENTS);
        for (uint32_t i = 0; i < count; i++) {
            arrived += events[i].kind == CW_EVENT_PUT;
        }
        *timeout_ns = cw_loop_arm(host->own.loop);
    } while (*timeout_ns == 0);
    return arrived;
}

/* Both hosts in turn, until a put has arrived at the second. */
static void exchange(void)
{
    uint64_t timeouts_ns[HOSTS];
    for (uint32_t arrived = 0; arrived == 0;) {
        (void)turn_all(&hosts[0], &timeouts_ns[0]);
        arrived += turn_all(&hosts[1], &timeouts_ns[1]);
    }
}

/* ---- tests ---- */

static void test_loops_with_threads_have_none(void **state)
{
    static const struct {
        enum cw_loop_mode mode;
        enum cw_loop_fallback fallback;
    } configs[] = {{CW_LOOP_DEDICATED, CW_FALLBACK_NONE},
                   {CW_LOOP_INLINE, CW_FALLBACK_THREAD},
                   {CW_LOOP_INLINE, CW_FALLBACK_CALLER}};
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        struct cw_loop loop = {.config = {.mode = configs[i].mode, .fallback = configs[i].fallback}};
        char error[CW_ERROR_TEXT_BYTES] = "";
        int descriptor = 77;
        assert_int_equal(cw_loop_descriptor(&loop, &descriptor, error, sizeof(error)), CW_ERROR_ARGUMENT);
        assert_int_equal(descriptor, 77);
        assert_non_null(strstr(error, "Fix: mode CW_LOOP_INLINE"));
    }
}

/* The race of every event loop: a packet comes after the last poll, before the wait is prepared and after that. */
static void test_a_packet_before_the_wait_ends_it(void **state)
{
    hosts_open(0);
    struct cw_event event;
    uint64_t timeout_ns;
    assert_int_equal(cw_loop_poll(hosts[1].own.loop, &event, 1), 0);
    assert_int_equal(put_post(0, 0, 0), CW_OK); /* the request to set up a session leaves */
    assert_true(cw_loop_arm(hosts[1].own.loop) == 0);
    exchange();
    while (is_readable(&hosts[1])) { /* acknowledgements of before */
        (void)turn_all(&hosts[1], &timeout_ns);
    }
    assert_int_equal(put_post(0, 0, 1), CW_OK);
    assert_true(is_readable(&hosts[1]));
    exchange();
    assert_true(hosts[1].words[0][1] == 1);
    hosts_close();
}

/* No descriptor that is readable for ever, or an application would spin. */
static void test_nothing_to_do_is_not_readable(void **state)
{
    hosts_open(0);
    uint64_t timeout_ns;
    assert_int_equal(turn_all(&hosts[0], &timeout_ns), 0);
    assert_true(timeout_ns == UINT64_MAX); /* no peer, no deadline */
    assert_false(is_readable(&hosts[0]));
    assert_int_equal(put_post(0, 0, 0), CW_OK);
    exchange();
    for (uint32_t quiet = 0; quiet < HOSTS;) { /* all that was under way is acknowledged */
        uint64_t longest_ns = 0;
        quiet = 0;
        for (uint32_t i = 0; i < HOSTS; i++) {
            (void)turn_all(&hosts[i], &timeout_ns);
            longest_ns = timeout_ns > longest_ns ? timeout_ns : longest_ns;
        }
        for (uint32_t i = 0; i < HOSTS; i++) {
            quiet += !is_readable(&hosts[i]);
        }
        assert_true(longest_ns > 0);
    }
    hosts_close();
}

static void *put_thread(void *argument)
{
    assert_int_equal(put_post(0, 0, 0), CW_OK);
    return NULL;
}

/* The application waits, without a deadline; another thread's put has one, for it may be lost. */
static void test_a_call_of_another_thread_brings_a_deadline(void **state)
{
    hosts_open(1); /* all is lost */
    pthread_t thread;
    uint64_t timeout_ns;
    assert_int_equal(turn_all(&hosts[0], &timeout_ns), 0);
    assert_true(timeout_ns == UINT64_MAX);
    assert_int_equal(pthread_create(&thread, NULL, put_thread, NULL), 0);
    pthread_join(thread, NULL);
    assert_true(is_readable(&hosts[0]));
    assert_int_equal(turn_all(&hosts[0], &timeout_ns), 0);
    assert_true(timeout_ns != UINT64_MAX);
    pair_port_lose(hosts[0].own.port, 0);
    pair_port_lose(hosts[1].own.port, 0);
    for (uint32_t arrived = 0; arrived == 0;) { /* by these deadlines alone */
        (void)turn_all(&hosts[0], &timeout_ns);
        application_wait(&hosts[0], timeout_ns);
        arrived = turn_all(&hosts[1], &timeout_ns);
    }
    hosts_close();
}

struct holder {
    struct cw_loop *loop;
    atomic_bool is_inside;
    atomic_bool is_over;
};

static int hold(struct cw_endpoint *endpoint, void *context)
{
    struct holder *holder = context;
    atomic_store(&holder->is_inside, true);
    while (!atomic_load(&holder->is_over)) {
        sched_yield();
    }
    return CW_OK;
}

static void *hold_thread(void *argument)
{
    struct holder *holder = argument;
    assert_int_equal(cw_loop_call(holder->loop, hold, holder), CW_OK);
    return NULL;
}

/* A call that had to be queued, since a third thread was inside, and has failed: its event ends the wait. */
static void test_an_event_of_a_queued_call_ends_the_wait(void **state)
{
    hosts_open(0);
    struct holder holder = {.loop = hosts[0].own.loop};
    const struct cw_put wrong = {.peer = 77, .region = 1, .context = 5};
    struct cw_event event;
    pthread_t thread;
    uint64_t timeout_ns;
    assert_int_equal(turn_all(&hosts[0], &timeout_ns), 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_thread, &holder), 0);
    while (!atomic_load(&holder.is_inside)) {
        sched_yield();
    }
    assert_int_equal(cw_loop_put(hosts[0].own.loop, &wrong), CW_OK);
    assert_true(cw_loop_arm(hosts[0].own.loop) == 0); /* it cannot look now */
    atomic_store(&holder.is_over, true);
    pthread_join(thread, NULL);
    assert_true(is_readable(&hosts[0]));
    assert_int_equal(cw_loop_poll(hosts[0].own.loop, &event, 1), 1);
    assert_int_equal(event.kind, CW_EVENT_COMPLETE);
    assert_int_equal(event.context, 5);
    hosts_close();
}

static void test_a_port_without_descriptor_is_looked_at(void **state)
{
    hosts_open(0);
    struct cw_port_ops plain = *hosts[1].own.port->ops;
    plain.descriptor = NULL;
    hosts[1].own.port->ops = &plain;
    cw_loop_watch_close(hosts[1].own.loop);
    assert_int_equal(cw_loop_descriptor(hosts[1].own.loop, &hosts[1].descriptor, NULL, 0), CW_OK);
    uint64_t timeout_ns;
    assert_int_equal(turn_all(&hosts[1], &timeout_ns), 0);
    assert_true(timeout_ns == CW_LOOP_LOOK_NS);
    assert_int_equal(put_post(0, 0, 0), CW_OK);
    assert_false(is_readable(&hosts[1]));
    for (uint32_t arrived = 0; arrived == 0;) {
        (void)turn_all(&hosts[0], &timeout_ns);
        arrived = turn_all(&hosts[1], &timeout_ns);
        application_wait(&hosts[1], timeout_ns);
    }
    hosts_close();
}

struct application {
    pthread_t thread;
    uint32_t number;
    atomic_uint *arrived; /* at both */
};

/* Runs until all puts have arrived at both, and ends by a call, as whoever waits has no other bound. */
static void *application_run(void *argument)
{
    struct application *application = argument;
    struct host *host = &hosts[application->number];
    while (atomic_load(application->arrived) < HOSTS * POSTERS * PUTS) {
        uint64_t timeout_ns;
        uint32_t arrived = turn_all(host, &timeout_ns);
        if (arrived > 0 && atomic_fetch_add(application->arrived, arrived) + arrived == HOSTS * POSTERS * PUTS) {
            cw_loop_watch_ring(hosts[1 - application->number].own.loop);
        } else if (atomic_load(application->arrived) < HOSTS * POSTERS * PUTS) {
            application_wait(host, timeout_ns);
        }
    }
    return NULL;
}

struct poster {
    pthread_t thread;
    uint32_t from;
    uint32_t number;
};

static void *post_run(void *argument)
{
    struct poster *poster = argument;
    for (uint32_t i = 0; i < PUTS; i++) {
        int status;
        while ((status = put_post(poster->from, poster->number, i)) == CW_ERROR_AGAIN) {
            sched_yield();
        }
        assert_int_equal(status, CW_OK);
    }
    return NULL;
}

static void check_posters(uint32_t lose_one_in)
{
    hosts_open(lose_one_in);
    struct application applications[HOSTS];
    struct poster posters[HOSTS][POSTERS];
    atomic_uint arrived = 0;
    for (uint32_t i = 0; i < HOSTS; i++) {
        applications[i] = (struct application){.number = i, .arrived = &arrived};
        assert_int_equal(pthread_create(&applications[i].thread, NULL, application_run, &applications[i]), 0);
        for (uint32_t k = 0; k < POSTERS; k++) {
            posters[i][k] = (struct poster){.from = i, .number = k};
            assert_int_equal(pthread_create(&posters[i][k].thread, NULL, post_run, &posters[i][k]), 0);
        }
    }
    for (uint32_t i = 0; i < HOSTS; i++) {
        for (uint32_t k = 0; k < POSTERS; k++) {
            pthread_join(posters[i][k].thread, NULL);
        }
        pthread_join(applications[i].thread, NULL);
    }
    for (uint32_t i = 0; i < HOSTS; i++) {
        for (uint32_t k = 0; k < POSTERS * PUTS; k++) {
            assert_true(hosts[i].words[k / PUTS][k % PUTS] == ((uint64_t)(k / PUTS) << 32 | k % PUTS));
        }
    }
    hosts_close();
}

static void test_many_threads_post_to_waiting_applications(void **state)
{
    check_posters(0);
    check_posters(50);
}

int main(void)
{
    return TESTS_RUN(test_loops_with_threads_have_none, test_a_packet_before_the_wait_ends_it,
                     test_nothing_to_do_is_not_readable, test_a_call_of_another_thread_brings_a_deadline,
                     test_an_event_of_a_queued_call_ends_the_wait, test_a_port_without_descriptor_is_looked_at,
                     test_many_threads_post_to_waiting_applications);
}
