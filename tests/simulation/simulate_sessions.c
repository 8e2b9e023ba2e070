/* Sessions: restarts, the failure bound, and packets of the past. */
#include "tests/simulation/attack.h"
#include "tests/simulation/fixture.h"

#include "dataplane/flow/setup.h"
#include "dataplane/state/endpoint.h"

enum { FRAMES_MAX = 20000, SMALL_COUNT = 200, SEALED_VARIANTS = 2 };

/* Puts, messages and gets both ways between hosts 0 and 1, of which all must come through. */
static void converse(void)
{
    for (uint32_t from = 0; from < 2; from++) {
        (void)sim_stream_send(&hosts, from, 1 - from, 5000, SMALL_COUNT, 1000 * SIMULATION_MS);
        assert_int_equal(hosts.list[from].completed, SMALL_COUNT);
        messages_and_gets(from, 1 - from, SMALL_COUNT / 4);
    }
}

static struct recording *conversation_record(void)
{
    struct recording *recording = calloc(1, sizeof(*recording));
    recording->kind = CW_SIMULATOR_ARRIVAL;
    recording_begin(recording, &hosts, FRAMES_MAX);
    converse();
    recording->is_off = true;
    return recording;
}

static void hosts_of_two(uint64_t failure_timeout_ns, enum cw_encryption encryption)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.seed = 5;
    config.endpoint.failure_timeout_ns = failure_timeout_ns;
    config.endpoint.encryption = encryption;
    hosts_make(&config);
}

struct standing {
    uint64_t puts, messages, got, down, up, completed;
};

static struct standing standing_of(const struct sim_host *host)
{
    return (struct standing){host->arrived_puts, host->arrived_messages, host->got, host->down,
                             host->up,           host->completed};
}

/* Injects all that was recorded, in its order or backwards; nothing may come of it. */
static void replay(const struct recording *recording, bool backwards)
{
    struct standing before[2] = {standing_of(&hosts.list[0]), standing_of(&hosts.list[1])};
    uint8_t *memory[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct sim_host *host = &hosts.list[i];
        memset(host->memory, 0x77, host->memory_bytes);
        memory[i] = malloc(host->memory_bytes);
        memcpy(memory[i], host->memory, host->memory_bytes);
    }
    for (uint32_t i = 0; i < recording->count; i++) {
        uint32_t at = backwards ? recording->count - 1 - i : i;
        assert_int_equal(cw_simulator_inject(hosts.simulator, recording->frames[at].node, recording->frames[at].bytes,
                                             recording->frames[at].length),
                         CW_OK);
        if (i % 16 == 0) {
            sim_hosts_run(&hosts, 100 * SIMULATION_US);
        }
    }
    sim_hosts_run(&hosts, 3000 * SIMULATION_MS);
    for (uint32_t i = 0; i < 2; i++) {
        struct standing after = standing_of(&hosts.list[i]);
        assert_memory_equal(&before[i], &after, sizeof(after));
        assert_memory_equal(memory[i], hosts.list[i].memory, hosts.list[i].memory_bytes);
        free(memory[i]);
    }
    converse();
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(hosts.list[i].down, before[i].down);
        assert_int_equal(hosts.list[i].up, before[i].up);
    }
}

static void packets_of_the_past_do_nothing(void **state)
{
    for (uint32_t sealed = 0; sealed < SEALED_VARIANTS; sealed++) {
        hosts_of_two(1000 * SIMULATION_MS, sealed != 0 ? CW_ENCRYPTION_REQUIRED : CW_ENCRYPTION_OFF);
        struct recording *recording = conversation_record();
        printf("%d packets recorded\n", (int)recording->count);
        assert_true(recording->count > 1000);
        /* of this session */
        replay(recording, false);
        replay(recording, true);
        /* of the session before, and before that: the nonces of host 0's side must not help */
        for (uint32_t round = 0; round < 2; round++) {
            host_restart(1);
            recording->is_off = round > 0; /* a set-up request of host 1 and later packets: the next round's past */
            /* the new incarnation speaks first, so that host 0 learns of it */
            (void)sim_stream_send(&hosts, 1, 0, 100, 1, 3000 * SIMULATION_MS);
            assert_int_equal(hosts.list[1].completed, 1);
            converse();
            recording->is_off = true;
            replay(recording, false);
            replay(recording, true);
        }
        recording_free(recording);
    }
}

static void a_restarted_peer_is_a_new_one(void **state)
{
    hosts_of_two(1000 * SIMULATION_MS, CW_ENCRYPTION_OFF);
    converse();
    struct cw_peer_info before = peer_info(0, 0);
    uint64_t old_token = hosts.list[1].token;
    host_restart(1);
    /* the new one speaks, and so the other finds out at once, and not by the failure bound */
    (void)sim_stream_send(&hosts, 1, 0, 100, 1, 1000 * SIMULATION_MS);
    assert_int_equal(hosts.list[1].completed, 1);
    converse();
    struct cw_peer_info after = peer_info(0, 0);
    assert_true(before.incarnation != after.incarnation);
    assert_int_equal(after.state, CW_PEER_ESTABLISHED);
    assert_int_equal(hosts.list[0].down, 1);
    /* a token of the old process reaches nothing */
    struct cw_put put = {
        .peer = 0, .region = old_token, .source = {.contiguous = {.data = hosts.list[0].memory, .bytes = 10}}};
    uint64_t failed = hosts.list[0].failed;
    assert_int_equal(cw_put(hosts.list[0].endpoint, &put), CW_OK);
    host_run(0, 10 * SIMULATION_MS);
    assert_int_equal(hosts.list[0].failed, failed + 1);
}

static void a_silent_peer_fails_within_the_bound(void **state)
{
    static const uint64_t bounds_ms[] = {50, 400, 2000};
    for (size_t i = 0; i < sizeof(bounds_ms) / sizeof(bounds_ms[0]); i++) {
        hosts_of_two(bounds_ms[i] * SIMULATION_MS, CW_ENCRYPTION_OFF);
        converse();
        sim_hosts_run(&hosts, 5000 * SIMULATION_MS);
        assert_int_equal(hosts.list[0].down + hosts.list[1].down, 0); /* idle peers are not given up */
        cw_simulator_partition(hosts.simulator, 1, true);
        uint64_t start_ns = sim_hosts_now(&hosts);
        struct sim_stream stream;
        sim_stream_start(&hosts, &stream, 0, 1, 2000, 10);
        (void)sim_stream_finish(&hosts, 0, 10000 * SIMULATION_MS);
        assert_int_equal(hosts.list[0].failed, 10);
        assert_int_equal(hosts.list[0].down, 1);
        uint64_t took_ns = hosts.list[0].down_ns - start_ns;
        printf("bound %d ms: reported after %.1f ms\n", (int)bounds_ms[i], (double)took_ns / 1e6);
        assert_true(took_ns >= bounds_ms[i] * SIMULATION_MS);
        assert_true(took_ns <= bounds_ms[i] * SIMULATION_MS + 260 * SIMULATION_MS); /* the longest interval of probes */
        /* and later puts are rejected until it is tried again */
        struct cw_put put = {.peer = stream.peer, .region = stream.token};
        assert_int_equal(cw_put(hosts.list[0].endpoint, &put), CW_ERROR_PEER_FAILED);
        cw_simulator_partition(hosts.simulator, 1, false);
        assert_int_equal(cw_peer_reset(hosts.list[0].endpoint, stream.peer), CW_OK);
        hosts.list[0].work = NULL;
        converse();
    }
}

/* Multicast needs no session with its members: a probed peer may never have been heard. */
static void a_peer_that_was_never_there_is_reported_once(void **state)
{
    for (int is_asked = 0; is_asked < 2; is_asked++) {
        hosts_of_two(400 * SIMULATION_MS, CW_ENCRYPTION_OFF);
        cw_simulator_partition(hosts.simulator, 1, true);
        uint32_t peer = sim_hosts_peer(&hosts, 0, 1);
        for (int second = 0; second < 3; second++) { /* a call that waits asks again and again */
            int status = is_asked != 0 ? cw_peer_check(hosts.list[0].endpoint, peer)
                                       : cw_peer_connect(hosts.list[0].endpoint, peer);
            assert_int_equal(status, second == 0 ? CW_OK : CW_ERROR_PEER_FAILED);
            host_run(0, 1000 * SIMULATION_MS);
            assert_int_equal(hosts.list[0].down, 1);
        }
        assert_true(hosts.list[0].down_ns >= 400 * SIMULATION_MS && hosts.list[0].down_ns <= 660 * SIMULATION_MS);
        cw_simulator_partition(hosts.simulator, 1, false);
        assert_int_equal(cw_peer_reset(hosts.list[0].endpoint, peer), CW_OK);
        converse();
    }
}

/* Timestamps repeat after 69 s, and the later of two is known as such up to half of that. */
static void what_is_lost_after_a_long_rest_is_sent_again(void **state)
{
    static const uint64_t rests_s[] = {1, 20, 40, 60, 70, 100, 170};
    for (size_t i = 0; i < sizeof(rests_s) / sizeof(rests_s[0]); i++) {
        hosts_of_two(2000 * SIMULATION_MS, CW_ENCRYPTION_OFF);
        converse();
        sim_hosts_run(&hosts, rests_s[i] * 1000 * SIMULATION_MS);
        cw_simulator_partition(hosts.simulator, 1, true);
        struct sim_stream stream;
        sim_stream_start(&hosts, &stream, 0, 1, 2000, 10);
        sim_hosts_run(&hosts, SIMULATION_MS);
        cw_simulator_partition(hosts.simulator, 1, false);
        sim_hosts_run(&hosts, 100 * SIMULATION_MS);
        assert_true_msg(hosts.list[0].completed == 10, "after %d s of rest: %d of 10", (int)rests_s[i],
                        (int)hosts.list[0].completed);
        assert_int_equal(hosts.list[0].failed + hosts.list[0].down + hosts.list[1].down, 0);
    }
}

/* No packet arrived for longer than the bound because no probe was sent. */
static void a_stopped_peer_declares_nobody_failed(void **state)
{
    hosts_of_two(1000 * SIMULATION_MS, CW_ENCRYPTION_OFF);
    converse();
    cw_simulator_partition(hosts.simulator, 1, true);
    struct sim_stream stream;
    sim_stream_start(&hosts, &stream, 0, 1, 2000, 10);
    sim_hosts_run(&hosts, SIMULATION_MS);
    cw_simulator_stop(hosts.simulator, 0);
    cw_simulator_partition(hosts.simulator, 1, false);
    sim_hosts_run(&hosts, 5000 * SIMULATION_MS);
    cw_simulator_resume(hosts.simulator, 0);
    sim_hosts_run(&hosts, 100 * SIMULATION_MS);
    assert_int_equal(hosts.list[0].completed, 10);
    assert_int_equal(hosts.list[0].failed + hosts.list[0].down + hosts.list[1].down, 0);
}

struct answering {
    uint64_t answered;
    uint64_t most;
    uint32_t peer;
    bool begins;
};

/* One message to and one fro, in turn. */
static void answer(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct answering *answering = context;
    while (answering->answered < answering->most &&
           answering->answered < host->arrived_messages + (answering->begins ? 1 : 0)) {
        struct cw_message message = {.peer = answering->peer,
                                     .source = {.contiguous = {.data = host->memory, .bytes = 8}}};
        assert_int_equal(cw_message_send(host->endpoint, &message), CW_OK);
        answering->answered++;
    }
}

static void messages_to_and_fro_cost_a_packet_each(void **state)
{
    enum { TRIPS = 1000, SET_UP = 40 };
    hosts_of_two(1000 * SIMULATION_MS, CW_ENCRYPTION_OFF);
    struct answering answering[2];
    for (uint32_t i = 0; i < 2; i++) {
        answering[i] = (struct answering){.most = TRIPS, .peer = sim_hosts_peer(&hosts, i, 1 - i), .begins = i == 0};
        hosts.list[i].work = answer;
        hosts.list[i].context = &answering[i];
    }
    host_run(0, 1000 * SIMULATION_MS);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t packets = counted(i, CW_COUNTER_PACKETS_OUT);
        assert_int_equal(hosts.list[i].arrived_messages, TRIPS);
        printf("%d messages, %d packets\n", (int)TRIPS, (int)packets);
        assert_true(packets < TRIPS + SET_UP);
        hosts.list[i].work = NULL;
    }
}

/* Numbers of packets begin anywhere, also where the first one below would be negative. */
static void sessions_receive_from_their_first_number_on(void **state)
{
    static const uint32_t numbers[] = {0, 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        hosts_of_two(1000 * SIMULATION_MS, CW_ENCRYPTION_OFF);
        for (uint32_t node = 0; node < 2; node++) {
            struct sim_host *host = &hosts.list[node];
            struct cw_flow *flow = cw_endpoint_flow(host->endpoint, sim_hosts_peer(&hosts, node, 1 - node));
            flow->session.next = (uint64_t)numbers[i] << 29 | (node + 1);
            assert_int_equal(cw_setup_control_number(flow->session.next), numbers[i]);
        }
        struct cw_link *link = cw_simulator_link_down(hosts.simulator, 1);
        sim_link_lose(link, 0.05); /* only acknowledgements report missing packets */
        uint64_t took_ns = sim_stream_send(&hosts, 0, 1, 5000, SMALL_COUNT, 1000 * SIMULATION_MS);
        assert_int_equal(hosts.list[0].completed, SMALL_COUNT);
        assert_int_equal(hosts.list[0].failed + hosts.list[0].down, 0);
        assert_true(took_ns < 50 * SIMULATION_MS);
        sim_link_lose(link, 0);
        converse();
    }
}

int main(void)
{
    return HOSTS_TESTS_RUN(messages_to_and_fro_cost_a_packet_each, a_silent_peer_fails_within_the_bound,
                           a_peer_that_was_never_there_is_reported_once, what_is_lost_after_a_long_rest_is_sent_again,
                           a_stopped_peer_declares_nobody_failed, sessions_receive_from_their_first_number_on,
                           a_restarted_peer_is_a_new_one, packets_of_the_past_do_nothing);
}
