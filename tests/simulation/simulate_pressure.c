/* Back-pressure: an application that takes no events, and senders without credit. Nothing is lost and nothing hangs. */
#include "dataplane/state/endpoint.h"
#include "tests/simulation/fixture.h"

enum { SENDERS = 16, MESSAGES = 200, SLOTS = 4, RING = 256 };

static void a_full_event_queue_stops_senders_and_loses_nothing(void **state)
{
    static const uint64_t sizes[] = {0, 40, 1000, 20000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct sim_hosts_config config = sim_hosts_config_of(3);
        config.endpoint.event_count_max = RING;
        config.endpoint.failure_timeout_ns = 500 * SIMULATION_MS;
        config.memory_bytes = 16 << 20;
        config.node.down.loss = 0.01;
        hosts_make(&config);
        struct sim_stream streams[2];
        hosts.list[2].holds_events = true;
        for (uint32_t from = 0; from < 2; from++) {
            sim_stream_start(&hosts, &streams[from], from, 2, sizes[i], 1500);
            streams[from].under_way_max = 600;
            streams[from].space = 8 << 20;
        }
        cw_simulator_run_until(hosts.simulator, 3000 * SIMULATION_MS);
        uint64_t sent = counted(0, CW_COUNTER_PACKETS_OUT);
        cw_simulator_run_until(hosts.simulator, 6000 * SIMULATION_MS);
        uint64_t idle = counted(0, CW_COUNTER_PACKETS_OUT) - sent;
        printf("%d bytes: %d puts notified into a queue of %d, %d packets a second while stopped\n", (int)sizes[i],
               (int)counted(2, CW_COUNTER_PUTS_ARRIVED), RING, (int)(idle / 3));
        assert_true(counted(2, CW_COUNTER_PUTS_ARRIVED) <= RING);
        assert_true(idle / 3 < 1000); /* it asks now and then; it does not send again and again */
        assert_int_equal(hosts.list[0].down + hosts.list[1].down, 0);
        hosts.list[2].holds_events = false;
        sim_host_wake(&hosts.list[2]);
        cw_simulator_run_until(hosts.simulator, 9000 * SIMULATION_MS);
        assert_int_equal(hosts.list[2].arrived_puts, 3000);
        for (uint32_t from = 0; from < 2; from++) {
            assert_completed(from, 1500);
        }
    }
}

struct talker {
    uint32_t peer;
    uint64_t posted;
    uint64_t count;
};

static void talk(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct talker *talker = context;
    while (talker->posted < talker->count) {
        struct cw_message message = {
            .peer = talker->peer,
            .source = {.contiguous = {.data = host->memory, .bytes = talker->posted % 1000}},
            .flags = CW_SIGNAL,
        };
        if (cw_message_send(host->endpoint, &message) != CW_OK) {
            break;
        }
        talker->posted++;
    }
}

/* The first `count` hosts to the one behind them. */
static void talkers_begin(struct talker *talkers, uint32_t count, uint64_t messages)
{
    for (uint32_t i = 0; i < count; i++) {
        talkers[i] = (struct talker){.peer = sim_hosts_peer(&hosts, i, count), .count = messages};
        sim_host_begin(&hosts.list[i], talk, &talkers[i]);
    }
}

/* Near, and far away: a sender that requests more, having a long path, must not keep others waiting. */
static void few_slots_serve_many_senders(void **state)
{
    for (uint64_t delay_ns = 10 * SIMULATION_US; delay_ns <= SIMULATION_MS; delay_ns *= 100) {
        struct sim_hosts_config config = sim_hosts_config_of(SENDERS + 1);
        config.endpoint.pool_slot_count = SLOTS;
        config.endpoint.operation_count_max = 128;
        config.node.down.loss = 0.005;
        config.node.up.delay_ns = config.node.down.delay_ns = delay_ns;
        hosts_make(&config);
        struct talker talkers[SENDERS];
        talkers_begin(talkers, SENDERS, MESSAGES);
        uint64_t least = 0;
        uint64_t most = 0;
        while (hosts.list[SENDERS].arrived_messages < SENDERS * MESSAGES / 2 && cw_simulator_step(hosts.simulator)) {
        }
        for (uint32_t i = 0; i < SENDERS; i++) {
            least = i == 0 || hosts.list[i].completed < least ? hosts.list[i].completed : least;
            most = hosts.list[i].completed > most ? hosts.list[i].completed : most;
        }
        sim_hosts_run(&hosts, 50000 * SIMULATION_MS);
        printf("%d messages through %d slots; half way the senders had sent %d to %d\n", SENDERS * MESSAGES, SLOTS,
               (int)least, (int)most);
        assert_int_equal(hosts.list[SENDERS].arrived_messages, SENDERS * MESSAGES);
        for (uint32_t i = 0; i < SENDERS; i++) {
            assert_completed(i, MESSAGES);
        }
        assert_true(least > MESSAGES / 8); /* nobody starves */
    }
}

/* By CW_CREDIT_MAX slots a round trip, 2,000 messages would take 125 of them. Each sender has the time that it would
 * have alone, and half of the pool stays free for others. */
static void long_paths_are_lent_more(void **state)
{
    enum { FAR_SENDERS = 2, FAR_MESSAGES = 2000, ROUND_TRIPS_MAX = 16, SLOTS_FREE_MIN = 1024 / 2 };
    struct sim_hosts_config config = sim_hosts_config_of(FAR_SENDERS + 1);
    config.endpoint.pool_slot_count = 2 * SLOTS_FREE_MIN;
    config.node.up.delay_ns = config.node.down.delay_ns = 5 * SIMULATION_MS;
    uint64_t round_trip_ns = 2 * (config.node.up.delay_ns + config.node.down.delay_ns);
    hosts_make(&config);
    struct talker talkers[FAR_SENDERS];
    talkers_begin(talkers, FAR_SENDERS, FAR_MESSAGES);
    while (hosts.list[FAR_SENDERS].arrived_messages < FAR_SENDERS * FAR_MESSAGES &&
           cw_simulator_step(hosts.simulator)) {
        assert_true(hosts.list[FAR_SENDERS].endpoint->messages.free_count >= SLOTS_FREE_MIN - CW_CREDIT_MAX * 2);
    }
    printf("%d messages from each of %d senders in %.1f round trips\n", FAR_MESSAGES, FAR_SENDERS,
           (double)sim_hosts_now(&hosts) / (double)round_trip_ns);
    assert_true(sim_hosts_now(&hosts) <= ROUND_TRIPS_MAX * round_trip_ns);
}

/* Two that exchange bursts of messages: each sends its next burst when the other's one has come. */
struct exchanger {
    uint32_t peer;
    uint32_t burst; /* messages */
    uint64_t sent;
};

static void exchange(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct exchanger *exchanger = context;
    while (exchanger->sent < (host->arrived_messages / exchanger->burst + 1) * exchanger->burst) {
        struct cw_message message = {.peer = exchanger->peer,
                                     .source = {.contiguous = {.data = host->memory, .bytes = 1000}},
                                     .flags = CW_SIGNAL};
        assert_int_equal(cw_message_send(host->endpoint, &message), CW_OK);
        exchanger->sent++;
    }
}

/* As two ranks do in the steps of a collective across clusters. However many messages a burst has: once they have
 * seen that the slots they were lent do not suffice, no burst waits for slots to be lent again. */
static void bursts_on_long_paths_find_slots(void **state)
{
    static const uint32_t bursts[] = {1, CW_CREDIT_BATCH - 1, CW_CREDIT_BATCH, CW_CREDIT_BATCH + 1, CW_CREDIT_MAX, 40};
    enum { LEARNING = 12, STEPS = 50 };
    for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
        struct sim_hosts_config config = sim_hosts_config_of(2);
        config.endpoint.pool_slot_count = 1024;
        config.node.up.delay_ns = config.node.down.delay_ns = 5 * SIMULATION_MS;
        uint64_t one_way_ns = config.node.up.delay_ns + config.node.down.delay_ns;
        hosts_make(&config);
        struct exchanger exchangers[2];
        for (uint32_t host = 0; host < 2; host++) {
            exchangers[host] = (struct exchanger){.peer = sim_hosts_peer(&hosts, host, 1 - host), .burst = bursts[i]};
            sim_host_begin(&hosts.list[host], exchange, &exchangers[host]);
        }
        uint64_t learned_ns = 0;
        while (hosts.list[1].arrived_messages < (uint64_t)STEPS * bursts[i] && cw_simulator_step(hosts.simulator)) {
            if (learned_ns == 0 && hosts.list[1].arrived_messages >= (uint64_t)LEARNING * bursts[i]) {
                learned_ns = sim_hosts_now(&hosts);
            }
        }
        double ways = (double)(sim_hosts_now(&hosts) - learned_ns) / (double)one_way_ns / (STEPS - LEARNING);
        printf("bursts of %d messages: %.3f times the way a burst\n", (int)bursts[i], ways);
        assert_true(ways < 1.02);
    }
}

int main(void)
{
    return HOSTS_TESTS_RUN(a_full_event_queue_stops_senders_and_loses_nothing, few_slots_serve_many_senders,
                           long_paths_are_lent_more, bursts_on_long_paths_find_slots);
}
