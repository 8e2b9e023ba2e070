/* Random loss is only repaired: it costs the lost packets and next to nothing else. */
#include "tests/simulation/fixture.h"

#define RATE_BPS   10000000000.0
#define PUT_BYTES  (1u << 20)
#define PUT_COUNT  192
#define WARM_COUNT 16

struct outcome {
    double goodput_bps;
    uint64_t lost;
    uint64_t retransmitted;
};

static struct outcome measure(double loss, uint64_t seed)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.seed = seed;
    config.memory_bytes = 8 << 20;
    config.node.down.loss = loss;
    hosts_make(&config);
    (void)sim_stream_send(&hosts, 0, 1, PUT_BYTES, WARM_COUNT, 10000 * SIMULATION_MS);
    const struct cw_link *link = cw_simulator_link_down(hosts.simulator, 1);
    uint64_t lost_before = link->counters.lost;
    uint64_t again_before = counted(0, CW_COUNTER_RETRANSMITTED);
    uint64_t took_ns = sim_stream_send(&hosts, 0, 1, PUT_BYTES, PUT_COUNT, 10000 * SIMULATION_MS);
    assert_completed(0, PUT_COUNT);
    struct outcome outcome = {
        .goodput_bps = (double)PUT_COUNT * PUT_BYTES * 8 * 1e9 / (double)took_ns,
        .lost = link->counters.lost - lost_before,
        .retransmitted = counted(0, CW_COUNTER_RETRANSMITTED) - again_before,
    };
    return outcome;
}

static void loss_costs_what_is_lost(void **state)
{
    static const struct {
        double loss;
        double share_least;
    } table[] = {{0.001, 0.99}, {0.01, 0.96}};
    struct test_seeds seeds = test_seeds(1, 3);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct outcome clean = measure(0, seed);
        assert_true(clean.goodput_bps > 0.85 * RATE_BPS);
        assert_int_equal(clean.retransmitted, 0);
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
            struct outcome got = measure(table[i].loss, seed);
            double share = got.goodput_bps / ((1 - table[i].loss) * clean.goodput_bps);
            double again = (double)got.retransmitted / (double)got.lost;
            printf("seed %d, loss %.1f %%: goodput %.4f of (1 - loss) x %.3f Gb/s, retransmitted %.4f of lost\n",
                   (int)seed, table[i].loss * 100, share, clean.goodput_bps / 1e9, again);
            assert_true(share >= table[i].share_least);
            assert_true(again <= 1.05);
        }
    }
}

/* From one host to the other, until it has arrived. */
static void put_await(uint32_t from, uint32_t to, uint64_t offset, uint64_t bytes)
{
    struct sim_host *source = &hosts.list[from];
    uint64_t before = hosts.list[to].arrived_puts;
    struct cw_put put = {.peer = sim_hosts_peer(&hosts, from, to),
                         .region = hosts.list[to].token,
                         .offset = offset,
                         .source = {.region = source->token, .contiguous = {.data = source->memory, .bytes = bytes}}};
    cw_endpoint_clock(source->endpoint, sim_hosts_now(&hosts));
    assert_int_equal(cw_put(source->endpoint, &put), CW_OK);
    sim_host_wake(source);
    while (hosts.list[to].arrived_puts == before && cw_simulator_step(hosts.simulator)) {
    }
}

/* The mean time of a put of this size, one after the other, there and back, between processes that sleep while they
 * wait. */
static double put_ns(double loss, uint64_t bytes, uint64_t seed, uint64_t *again)
{
    enum { PUTS = 400 };
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.seed = seed;
    config.endpoint.waiting = CW_WAITING_SLEEP;
    config.memory_bytes = 1 << 20;
    config.node.down.loss = loss;
    hosts_make(&config);
    uint64_t begin_ns = 0;
    for (uint32_t i = 0; i <= PUTS; i++) {
        begin_ns = i == 1 ? sim_hosts_now(&hosts) : begin_ns; /* the first one sets the session up */
        put_await(i % 2, 1 - i % 2, 0, bytes);
    }
    *again = counted(0, CW_COUNTER_RETRANSMITTED) + counted(1, CW_COUNTER_RETRANSMITTED);
    return (double)(sim_hosts_now(&hosts) - begin_ns) / PUTS;
}

/* Packets that leave in one turn have one timestamp: that one of them is missing while a later one is there is known
 * without a time-out. */
static void loss_within_a_burst_is_found_without_a_probe(void **state)
{
    static const struct {
        double loss;
        uint64_t bytes;
        double times_most;
    } table[] = {{0.01, 65536, 2.5}, {0.05, 65536, 4}, {0.01, 262144, 2}, {0.05, 262144, 2.5}, {0.05, 64, 7}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct test_seeds seeds = test_seeds(1, 3);
        for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
            uint64_t again;
            double clean_ns = put_ns(0, table[i].bytes, seed, &again);
            assert_int_equal(again, 0);
            double lossy_ns = put_ns(table[i].loss, table[i].bytes, seed, &again);
            printf("seed %d, %d bytes, loss %.0f %%: %.0f us instead of %.0f (%.1f), %d packets sent again\n",
                   (int)seed, (int)table[i].bytes, table[i].loss * 100, lossy_ns / 1e3, clean_ns / 1e3,
                   lossy_ns / clean_ns, (int)again);
            assert_true(lossy_ns <= table[i].times_most * clean_ns);
        }
    }
}

/* Packets per acknowledgement, of puts of 1 MiB one way, to a process with this wait mode. */
static double packets_each(enum cw_waiting waiting, uint64_t seed)
{
    enum { PUTS = 50, BYTES = 1 << 20, PLACES = 4 /* the last ones may not be acknowledged yet */ };
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.seed = seed;
    config.endpoint.waiting = waiting;
    config.memory_bytes = PLACES * BYTES;
    hosts_make(&config);
    hosts.list[0].port->info.rate_bps = hosts.list[1].port->info.rate_bps = 0; /* as a socket, which does not know */
    for (uint32_t i = 0; i < PUTS; i++) {
        put_await(0, 1, (uint64_t)(i % PLACES) * BYTES, BYTES);
    }
    assert_int_equal(counted(0, CW_COUNTER_RETRANSMITTED), 0);
    return (double)counted(0, CW_COUNTER_DATA_OUT) / (double)counted(1, CW_COUNTER_ACKNOWLEDGEMENTS_OUT);
}

/* One costs a process that is woken for it, by calls of the kernel, as much as a message. */
static void acknowledgements_are_few_where_they_wake_somebody(void **state)
{
    struct test_seeds seeds = test_seeds(1, 3);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        double spins = packets_each(CW_WAITING_SPIN, seed), sleeps = packets_each(CW_WAITING_SLEEP, seed);
        printf("seed %d: %.1f packets to an acknowledgement of a process that spins, %.1f of one that sleeps\n",
               (int)seed, spins, sleeps);
        assert_true(sleeps >= 1.5 * spins);
    }
}

/* Slots for messages are lent in separate frames, for which no peer waits: of two that send each other messages, each
 * acknowledges by its own. */
static void slots_are_acknowledged_by_messages(void **state)
{
    enum { MESSAGES = 1000, PAUSE_NS = 100000 };
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.endpoint.waiting = CW_WAITING_SLEEP;
    hosts_make(&config);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        cw_endpoint_clock(hosts.list[i % 2].endpoint, sim_hosts_now(&hosts));
        assert_int_equal(message_post(i % 2, 1 - i % 2, 40), CW_OK);
        sim_hosts_run(&hosts, PAUSE_NS);
    }
    assert_int_equal(hosts.list[0].arrived_messages + hosts.list[1].arrived_messages, MESSAGES);
    uint64_t few = counted(0, CW_COUNTER_ACKNOWLEDGEMENTS_OUT) + counted(1, CW_COUNTER_ACKNOWLEDGEMENTS_OUT);
    printf("%d messages there and back, %d acknowledgements\n", MESSAGES, (int)few);
    assert_true(few < MESSAGES / 100);
}

/* Share of the lines that frames with data take, of long puts both ways at once. */
static double two_ways(uint64_t rate_bps, uint64_t delay_ns, double loss, bool knows_rate, enum cw_waiting waiting,
                       double *acks)
{
    enum { BYTES = 1 << 20, PLACES = 16, WARM_MS = 100, MTU_PROBES = 4 };
    const uint64_t long_ms = rate_bps < 1000000000 ? 1000 : 100;
    struct sim_stream streams[2];
    uint64_t before[2], data = 0, acknowledgements = 0, probes = 0;
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.node.up.rate_bps = config.node.down.rate_bps = rate_bps;
    config.node.up.delay_ns = config.node.down.delay_ns = delay_ns / 2;
    config.node.down.loss = loss;
    config.endpoint.waiting = waiting;
    config.memory_bytes = PLACES * BYTES;
    hosts_make(&config);
    for (uint32_t i = 0; i < 2; i++) {
        hosts.list[i].port->info.rate_bps = knows_rate ? rate_bps : 0;
        sim_stream_start(&hosts, &streams[i], i, 1 - i, BYTES, UINT64_MAX);
        streams[i].under_way_max = PLACES;
    }
    sim_hosts_run(&hosts, WARM_MS * SIMULATION_MS);
    for (uint32_t i = 0; i < 2; i++) {
        before[i] = counted(i, CW_COUNTER_DATA_OUT);
        acknowledgements -= counted(i, CW_COUNTER_ACKNOWLEDGEMENTS_OUT);
    }
    sim_hosts_run(&hosts, long_ms * SIMULATION_MS);
    for (uint32_t i = 0; i < 2; i++) {
        data += counted(i, CW_COUNTER_DATA_OUT) - before[i];
        acknowledgements += counted(i, CW_COUNTER_ACKNOWLEDGEMENTS_OUT);
        assert_true(loss > 0 || counted(i, CW_COUNTER_RETRANSMITTED) == 0);
        probes += counted(i, CW_COUNTER_PROBES_OUT);
    }
    assert_true(loss > 0 || probes <= MTU_PROBES); /* no probe was sent for waiting data */
    *acks = (double)acknowledgements / (double)data;
    return (double)data * (1500 + 14 + CW_ETHERNET_OVERHEAD_BYTES) * 8 / 2 / ((double)rate_bps * (double)long_ms / 1e3);
}

static void traffic_both_ways_fills_the_line(void **state)
{
    static const uint64_t rates[] = {100000000, 1000000000, 10000000000},
                          delays[] = {20 * SIMULATION_US, 2 * SIMULATION_MS};
    for (uint32_t variant = 0; variant < 24; variant++) {
        double acks, acks_lossy;
        uint64_t rate_bps = rates[variant / 8], delay_ns = delays[variant / 4 % 2];
        bool knows_rate = variant % 2 == 1;
        enum cw_waiting waiting = variant / 2 % 2 == 1 ? CW_WAITING_SLEEP : CW_WAITING_SPIN;
        double share = two_ways(rate_bps, delay_ns, 0, knows_rate, waiting, &acks);
        double lossy = two_ways(rate_bps, delay_ns, 0.002, knows_rate, waiting, &acks_lossy);
        printf(
            "%5.0f Mb/s, %4.0f us, rate %sknown, %s: %.3f of the line, %.3f acknowledgements a packet; %.3f and %.3f "
            "with a loss of 0.2 %%\n",
            (double)rate_bps / 1e6, (double)delay_ns / 1e3, knows_rate ? "" : "not ",
            waiting == CW_WAITING_SLEEP ? "sleeps" : "spins", share, acks, lossy, acks_lossy);
        assert_true(share > 0.99 && lossy > 0.8);
        assert_true(acks < 0.1);
    }
}

/* A sender of 1 Gb/s and a receiver of 100 Mb/s, with a buffer of 64 KB between. */
static void hosts_of_2003(enum cw_congestion_control congestion)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.memory_bytes = 8 << 20;
    config.node.up.rate_bps = 1000000000;
    config.node.down.rate_bps = 100000000;
    config.node.down.queue_limit_bytes = 64000;
    config.endpoint.congestion = congestion;
    hosts_make(&config);
}

static void by_loss_the_buffer_is_filled(void **state)
{
    for (enum cw_congestion_control congestion = CW_CONGESTION_DELAY; congestion <= CW_CONGESTION_LOSS; congestion++) {
        hosts_of_2003(congestion);
        uint64_t took_ns = sim_stream_send(&hosts, 0, 1, PUT_BYTES, 16, 60000 * SIMULATION_MS);
        const struct cw_link *link = cw_simulator_link_down(hosts.simulator, 1);
        double share = 16.0 * PUT_BYTES * 8 * 1e9 / (double)took_ns / 100e6;
        printf("by %s: %.3f of the link, queue up to %lu bytes, %lu dropped\n",
               congestion == CW_CONGESTION_LOSS ? "loss" : "delay", share, (unsigned long)cw_link_queue_bytes_max(link),
               (unsigned long)link->counters.dropped_queue);
        assert_int_equal(hosts.list[0].completed, 16);
        assert_true(share > 0.8);
        assert_true((cw_link_queue_bytes_max(link) > 60000) == (congestion == CW_CONGESTION_LOSS));
        assert_true((link->counters.dropped_queue > 0) == (congestion == CW_CONGESTION_LOSS));
    }
}

/* All packets under way are lost: a sender by loss notices after 200 ms, or when the receiver sends something, and
 * sends half as much at a time from then on. */
static void by_loss_a_time_out_is_long(void **state)
{
    for (enum cw_congestion_control congestion = CW_CONGESTION_DELAY; congestion <= CW_CONGESTION_LOSS; congestion++) {
        struct cw_peer_info before, after;
        hosts_of_2003(congestion);
        (void)sim_stream_send(&hosts, 0, 1, PUT_BYTES, 2, 10000 * SIMULATION_MS);
        cw_simulator_partition(hosts.simulator, 1, true);
        struct sim_stream stream;
        sim_stream_start(&hosts, &stream, 0, 1, 8192, 1);
        before = peer_info(0, stream.peer);
        sim_hosts_run(&hosts, 5 * SIMULATION_MS);
        cw_simulator_partition(hosts.simulator, 1, false);
        uint64_t took_ns = sim_stream_finish(&hosts, 0, 10000 * SIMULATION_MS);
        assert_int_equal(hosts.list[0].completed, 1);
        printf("by %s: %.1f ms\n", congestion == CW_CONGESTION_LOSS ? "loss" : "delay", (double)took_ns / 1e6);
        assert_true((took_ns > 100 * SIMULATION_MS) == (congestion == CW_CONGESTION_LOSS));
        after = peer_info(0, stream.peer);
        assert_true(congestion == CW_CONGESTION_DELAY ||
                    after.congestion_window_bytes <= before.congestion_window_bytes / 2);
    }
}

/* Eight streams into one line of 100 Mb/s: packets of each stream are a millisecond apart. A separate acknowledgement
 * of each took a twelfth of the other direction. */
static void streams_that_share_a_slow_line_are_acknowledged_seldom(void **state)
{
    enum { SENDERS = 8, BYTES = 64 << 10, PLACES = 4, WARM_MS = 100, LONG_MS = 500 };
    struct sim_stream streams[SENDERS];
    struct sim_hosts_config config = sim_hosts_config_of(1 + SENDERS);
    config.node.up.rate_bps = config.node.down.rate_bps = 100000000;
    config.memory_bytes = (SENDERS * PLACES) * BYTES;
    hosts_make(&config);
    for (uint32_t i = 0; i < SENDERS; i++) {
        hosts.list[i].port->info.rate_bps = hosts.list[SENDERS].port->info.rate_bps = 100000000;
        sim_stream_start(&hosts, &streams[i], 1 + i, 0, BYTES, UINT64_MAX);
        streams[i].under_way_max = PLACES;
    }
    sim_hosts_run(&hosts, WARM_MS * SIMULATION_MS);
    uint64_t acknowledgements = counted(0, CW_COUNTER_ACKNOWLEDGEMENTS_OUT);
    uint64_t bytes = cw_simulator_link_down(hosts.simulator, 0)->counters.delivered_bytes;
    sim_hosts_run(&hosts, LONG_MS * SIMULATION_MS);
    acknowledgements = counted(0, CW_COUNTER_ACKNOWLEDGEMENTS_OUT) - acknowledgements;
    bytes = cw_simulator_link_down(hosts.simulator, 0)->counters.delivered_bytes - bytes;
    double packets = (double)bytes / 1514, share = (double)bytes * 8 / (100e6 * LONG_MS / 1e3);
    printf("%.3f of the line, %.2f acknowledgements a packet\n", share, (double)acknowledgements / packets);
    assert_true(share > 0.95);
    assert_true((double)acknowledgements < 0.8 * packets);
}

int main(void)
{
    return HOSTS_TESTS_RUN(by_loss_the_buffer_is_filled, by_loss_a_time_out_is_long,
                           acknowledgements_are_few_where_they_wake_somebody, loss_costs_what_is_lost,
                           loss_within_a_burst_is_found_without_a_probe, slots_are_acknowledged_by_messages,
                           streams_that_share_a_slow_line_are_acknowledged_seldom, traffic_both_ways_fills_the_line);
}
