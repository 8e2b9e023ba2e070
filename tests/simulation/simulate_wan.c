/* Across the wide area: shapers keep the sum of flows to a rate, flows find the rate of their path, keep it under loss,
 * share it and follow it when it changes. */
#include "tests/simulation/fixture.h"

#include "dataplane/congestion/bandwidth.h"
#include "dataplane/state/endpoint.h"

#define LINE_BYTES(length) ((length) + CW_ETHERNET_OVERHEAD_BYTES)

/* ---- streams from several hosts, or of one host to several ---- */

enum { STREAMS_MAX = 8 };

static void stream_start(struct sim_stream *stream, uint32_t from, uint32_t to, uint64_t put_bytes,
                         const struct cw_traffic *traffic)
{
    sim_stream_watch(&hosts, stream, from, to, put_bytes);
    assert_int_equal(cw_peer_traffic(hosts.list[from].endpoint, stream->peer, traffic), CW_OK);
}

/* Bits per second that arrive at each stream's target in `duration_ns` from now on. */
static void measure(const struct sim_stream *streams, uint32_t count, uint64_t duration_ns, double *goodput_bps)
{
    uint64_t before[STREAMS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        before[i] = streams[i].to->arrived_bytes;
    }
    sim_hosts_run(&hosts, duration_ns);
    for (uint32_t i = 0; i < count; i++) {
        goodput_bps[i] = (double)(streams[i].to->arrived_bytes - before[i]) * 8e9 / (double)duration_ns;
    }
}

static double sum(const double *numbers, uint32_t count)
{
    double total = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += numbers[i];
    }
    return total;
}

/* Jain's index: 1 if all are alike, 1 / count if one has all. */
static double fairness(const double *numbers, uint32_t count)
{
    double squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        squares += numbers[i] * numbers[i];
    }
    return sum(numbers, count) * sum(numbers, count) / (count * squares);
}

/* ---- shapers ---- */

/* The bytes that have left node 0 for all, or, in a row of buckets, data for each node, as a bucket that drains at the
 * rate. */
struct bucket {
    bool is_of_one;
    double rate_bps;
    double level_bytes;
    double level_max_bytes;
    uint64_t last_ns;
    uint64_t bytes;
};

static void bucket_tap(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                       const uint8_t *frame, uint32_t length)
{
    struct bucket *bucket = context;
    uint8_t type = frame[CW_WIRE_NETWORK_BYTES + offsetof(struct cw_wire_header, type)];
    bool is_paced = bucket->is_of_one ? type == CW_WIRE_DATA : type > CW_WIRE_HELLO_REPLY;
    if (kind != CW_SIMULATOR_DEPARTURE || node != 0 || !is_paced) {
        return; /* set-up packets leave at any time */
    }
    bucket += bucket->is_of_one ? frame[5] : 0; /* the simulator's addresses end in the node's number */
    double drained = (double)(time_ns - bucket->last_ns) * bucket->rate_bps / 8e9;
    bucket->level_bytes = (bucket->level_bytes > drained ? bucket->level_bytes - drained : 0) + LINE_BYTES(length);
    bucket->level_max_bytes =
        bucket->level_bytes > bucket->level_max_bytes ? bucket->level_bytes : bucket->level_max_bytes;
    bucket->last_ns = time_ns;
    bucket->bytes += LINE_BYTES(length);
}

/* One host sends to seven through one shaper, long and short puts, and gets data from one of them, which it has to
 * acknowledge: in no interval T does more leave its port than rate x T and one frame. */
static void a_shaper_keeps_the_sum(void **state)
{
    static const uint64_t rates_bps[] = {20000000, 250000000, 2500000000};
    enum { TARGETS = 7 };
    for (size_t r = 0; r < sizeof(rates_bps) / sizeof(rates_bps[0]); r++) {
        struct sim_stream streams[TARGETS];
        struct sim_stream back;
        double goodput[TARGETS];
        struct bucket bucket = {.rate_bps = (double)rates_bps[r]};
        struct sim_hosts_config config = sim_hosts_config_of(TARGETS + 1);
        config.memory_bytes = 1 << 20;
        config.node.up.rate_bps = config.node.down.rate_bps =
            100000000000ull; /* no frame waits for another one in front of the port */
        config.node.up.delay_ns = config.node.down.delay_ns = 2000000;
        hosts_make(&config);
        cw_simulator_tap_set(hosts.simulator, bucket_tap, &bucket);
        const struct cw_traffic traffic = {.control = CW_TRAFFIC_RATE, .shaper = 3, .rate_bps = rates_bps[r]};
        const struct cw_traffic other = {.control = CW_TRAFFIC_RATE, .shaper = CW_SHAPER_NONE, .rate_bps = 5000000};
        assert_int_equal(cw_shaper_set(hosts.list[0].endpoint, 3, rates_bps[r], 0), CW_OK);
        for (uint32_t i = 0; i < TARGETS; i++) {
            stream_start(&streams[i], 0, i + 1, i == 2 ? 4096 : 65536, &traffic);
        }
        stream_start(&back, 1, 0, 4096, &other);
        measure(streams, TARGETS, 500 * SIMULATION_MS, goodput); /* until all are set up */
        uint64_t bytes_before = bucket.bytes;
        measure(streams, TARGETS, 3000 * SIMULATION_MS, goodput);
        double used = (double)(bucket.bytes - bytes_before) * 8 / 3 / (double)rates_bps[r];
        double excess = bucket.level_max_bytes - LINE_BYTES(1514);
        printf("shaper at %llu Mb/s: %.4f of the rate used, Jain %.4f, %.1f bytes above rate x T + one frame\n",
               (unsigned long long)rates_bps[r] / 1000000, used, fairness(goodput, TARGETS), excess);
        /* a frame may be counted whose time began before */
        assert_true(used > 0.99 && used < 1.0001 + (double)LINE_BYTES(1514) * 8 / 3 / (double)rates_bps[r]);
        assert_true(fairness(goodput, TARGETS) > 0.95);
        /* a turn comes at most 100 ns late: that share of the rate */
        assert_true(excess <= (double)rates_bps[r] / 8e9 * 200 + 1);
        assert_int_equal(cw_shaper_set(hosts.list[0].endpoint, 3, 2 * rates_bps[r], 0), CW_OK);
        assert_int_equal(cw_shaper_set(hosts.list[0].endpoint, CW_SHAPERS_MAX, 1, 0), CW_ERROR_ARGUMENT);
        double twice[TARGETS];
        measure(streams, TARGETS, 1000 * SIMULATION_MS, twice);
        assert_true(sum(twice, TARGETS) > 1.5 * sum(goodput, TARGETS));
    }
}

/* Many flows of one host, each with a rate of its own, on a line that holds none of them up. */
static void flows_keep_their_rates(void **state)
{
    enum { FLOWS = 200, WARM_MS = 500, LONG_MS = 2500 };
    static struct sim_stream streams[FLOWS + 1];
    static struct bucket buckets[FLOWS + 1];
    static uint64_t before[FLOWS + 1];
    struct sim_hosts_config config = sim_hosts_config_of(FLOWS + 1);
    config.node.up.rate_bps = config.node.down.rate_bps = 400000000000ull;
    config.memory_bytes = 1 << 18;
    hosts_make(&config);
    buckets[0].is_of_one = true;
    cw_simulator_tap_set(hosts.simulator, bucket_tap, buckets);
    for (uint32_t i = 1; i <= FLOWS; i++) {
        const struct cw_traffic traffic = {
            .control = CW_TRAFFIC_RATE, .shaper = CW_SHAPER_NONE, .rate_bps = 5000000 + 25000 * i};
        buckets[i].rate_bps = (double)traffic.rate_bps;
        stream_start(&streams[i], 0, i, 16 * cw_wire_part_bytes(1500), &traffic);
    }
    sim_hosts_run(&hosts, WARM_MS * SIMULATION_MS);
    for (uint32_t i = 1; i <= FLOWS; i++) {
        before[i] = buckets[i].bytes;
        buckets[i].level_max_bytes = 0;
    }
    sim_hosts_run(&hosts, LONG_MS * SIMULATION_MS);
    for (uint32_t i = 1; i <= FLOWS; i++) {
        double used = (double)(buckets[i].bytes - before[i]) * 8e3 / LONG_MS / buckets[i].rate_bps;
        assert_true(used >= 0.99 && used <= 1.01);
        /* frames of other flows on the same line shift one by a small part of a frame */
        assert_true(buckets[i].level_max_bytes <= LINE_BYTES(1514) + 64);
    }
}

/* A flow that has nothing to send, has failed, or has a lost peer does not keep the turn. */
static void the_turn_moves_on(void **state)
{
    struct sim_stream streams[3];
    double goodput[3];
    struct sim_hosts_config config = sim_hosts_config_of(4);
    config.memory_bytes = 1 << 20;
    config.endpoint.failure_timeout_ns = 300 * SIMULATION_MS;
    hosts_make(&config);
    const struct cw_traffic traffic = {.control = CW_TRAFFIC_RATE, .shaper = 0, .rate_bps = 100000000};
    assert_int_equal(cw_shaper_set(hosts.list[0].endpoint, 0, 100000000, 0), CW_OK);
    for (uint32_t i = 0; i < 3; i++) {
        stream_start(&streams[i], 0, i + 1, 32768, &traffic);
    }
    measure(streams, 3, 400 * SIMULATION_MS, goodput);
    assert_true(fairness(goodput, 3) > 0.98);
    streams[0].count = 0; /* nothing more */
    hosts.list[2].work = NULL;
    sim_hosts_crash(&hosts, 2);
    measure(streams, 1, 1000 * SIMULATION_MS, goodput);
    measure(&streams[2], 1, 1000 * SIMULATION_MS, goodput);
    assert_int_equal(hosts.list[0].down, 1);
    printf("two of three gone: %.3f of the rate for the third\n", goodput[0] / (1e8 * simulation_payload_share(false)));
    assert_true(goodput[0] > 0.97e8 * simulation_payload_share(false));
    const struct cw_traffic none = {.control = CW_TRAFFIC_DELAY, .shaper = CW_SHAPER_NONE};
    assert_int_equal(cw_peer_traffic(hosts.list[0].endpoint, streams[2].peer, &none), CW_OK);
    measure(&streams[2], 1, 100 * SIMULATION_MS, goodput);
    assert_true(goodput[0] > 1e9);
}

/* ---- finding the rate ---- */

/* `count` senders to as many receivers on the other side of one link. */
static void two_sides(uint32_t count, uint64_t rate_bps, uint64_t delay_ns, double loss)
{
    struct sim_hosts_config config = sim_hosts_config_of(2 * count);
    config.memory_bytes = 16 << 20;
    config.switches = 2;
    config.node.up.rate_bps = config.node.down.rate_bps = 10000000000ull;
    config.trunk = config.node.down;
    config.trunk.rate_bps = rate_bps;
    config.trunk.delay_ns = delay_ns;
    config.trunk.loss = loss;
    config.trunk.queue_limit_bytes = rate_bps / 8 * 2 * delay_ns / 1000000000; /* bytes in flight, there and back */
    config.endpoint.window_block_count = 512;
    hosts_make(&config);
}

static void a_flow_finds_its_rate(void **state)
{
    static const struct {
        uint64_t rate_bps;
        uint64_t delay_ns;
        double loss;
        double share_least;
    } table[] = {
        {100000000, 10000000, 0, 0.93},      {1000000000, 10000000, 0, 0.93},   {250000000, 50000000, 0.01, 0.90},
        {250000000, 50000000, 0.0098, 0.90}, /* got stuck, since the application waited for lost data */
        {1000000000, 50000000, 0, 0.92},     {100000000, 10000000, 0.02, 0.90}, {1000000000, 100000, 0, 0.90},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct sim_stream stream;
        double goodput;
        two_sides(1, table[i].rate_bps, table[i].delay_ns, table[i].loss);
        const struct cw_traffic traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = CW_SHAPER_NONE};
        stream_start(&stream, 0, 1, 1 << 20, &traffic);
        measure(&stream, 1, 30 * table[i].delay_ns + 100 * SIMULATION_MS, &goodput); /* 15 round trips to find it */
        measure(&stream, 1, 5000 * SIMULATION_MS, &goodput);
        double share = goodput / ((double)table[i].rate_bps * simulation_payload_share(false) * (1 - table[i].loss));
        const struct cw_link *link = cw_simulator_link_trunk(hosts.simulator, 0, 0);
        printf("%llu Mb/s, %.1f ms, loss %.0f %%: %.3f of what the rate leaves, %llu frames found the queue full\n",
               (unsigned long long)table[i].rate_bps / 1000000, (double)table[i].delay_ns / 1e6, table[i].loss * 100,
               share, (unsigned long long)link->counters.dropped_queue);
        assert_true(share >= table[i].share_least);
    }
}

/* The shares must not depend on the exact times at which flows began. */
static void flows_share_a_link(void **state)
{
    enum { FLOWS = 4 };
    static const uint64_t apart_ms[] = {1500, 1507, 1513, 1550};
    const struct cw_traffic traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = CW_SHAPER_NONE};
    for (size_t k = 0; k < (test_is_short() ? 1 : sizeof(apart_ms) / sizeof(apart_ms[0])); k++) {
        struct sim_stream streams[FLOWS];
        double goodput[FLOWS];
        two_sides(FLOWS, 400000000, 10000000, 0);
        for (uint32_t i = 0; i < FLOWS; i++) { /* one after the other, so that the last ones find the link full */
            stream_start(&streams[i], i, FLOWS + i, 1 << 20, &traffic);
            measure(streams, i + 1, apart_ms[k] * SIMULATION_MS, goodput);
        }
        measure(streams, FLOWS, 20000 * SIMULATION_MS, goodput);
        const struct cw_link *link = cw_simulator_link_trunk(hosts.simulator, 0, 0);
        printf("four flows, %llu ms apart: %.3f of the link, Jain %.3f, %llu of %llu frames found the queue full\n",
               (unsigned long long)apart_ms[k], sum(goodput, FLOWS) / (4e8 * simulation_payload_share(false)),
               fairness(goodput, FLOWS), (unsigned long long)link->counters.dropped_queue,
               (unsigned long long)link->counters.offered);
        assert_true(sum(goodput, FLOWS) > 0.93 * 4e8 * simulation_payload_share(false));
        assert_true(fairness(goodput, FLOWS) > 0.8);
    }
}

/* The link loses three quarters of its rate, and gets it back. */
static void a_flow_follows_its_path(void **state)
{
    struct sim_stream stream;
    double goodput;
    two_sides(1, 400000000, 10000000, 0);
    const struct cw_traffic traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = CW_SHAPER_NONE};
    stream_start(&stream, 0, 1, 1 << 20, &traffic);
    measure(&stream, 1, 1000 * SIMULATION_MS, &goodput);
    struct cw_link *link = cw_simulator_link_trunk(hosts.simulator, 0, 0);
    struct cw_link_config config = link->config;
    config.rate_bps = 100000000;
    cw_link_configure(link, &config);
    measure(&stream, 1, 2000 * SIMULATION_MS, &goodput);
    uint64_t dropped_before = link->counters.dropped_queue;
    measure(&stream, 1, 3000 * SIMULATION_MS, &goodput);
    double slow = goodput / (1e8 * simulation_payload_share(false));
    printf("at a quarter of the rate: %.3f of it, %llu frames found the queue full in 3 s\n", slow,
           (unsigned long long)(link->counters.dropped_queue - dropped_before));
    assert_true(slow > 0.9);
    assert_true(link->counters.dropped_queue - dropped_before < 100);
    config.rate_bps = 400000000;
    cw_link_configure(link, &config);
    measure(&stream, 1, 3000 * SIMULATION_MS, &goodput);
    measure(&stream, 1, 2000 * SIMULATION_MS, &goodput);
    printf("back at the whole rate: %.3f of it\n", goodput / (4e8 * simulation_payload_share(false)));
    assert_true(goodput > 0.9 * 4e8 * simulation_payload_share(false));
}

/* ---- a path without a description ---- */

static void trunk_delay(uint64_t delay_ns)
{
    for (uint32_t direction = 0; direction < 2; direction++) {
        struct cw_link *link = cw_simulator_link_trunk(hosts.simulator, 0, direction);
        struct cw_link_config config = link->config;
        config.delay_ns = delay_ns;
        cw_link_configure(link, &config);
    }
}

/* A flow without settings takes up bandwidth control where the path turns out to be long, leaves it where it becomes
 * short, and takes it up again; its settings stay unchanged. */
static void a_flow_finds_that_its_path_is_long(void **state)
{
    struct sim_stream stream;
    double goodput;
    two_sides(1, 250000000, 10000000, 0.001);
    const struct cw_traffic traffic = {.control = CW_TRAFFIC_DELAY, .shaper = CW_SHAPER_NONE};
    static const struct {
        uint64_t delay_ns;
        uint64_t settle_ms; /* a smallest round trip that has grown is believed after a while */
        bool is_long;
    } table[] = {{10000000, 2000, true}, {10000, 200, false}, {10000000, 25000, true}};
    stream_start(&stream, 0, 1, 1 << 20, &traffic);
    const struct cw_flow *flow = cw_endpoint_flow(hosts.list[0].endpoint, stream.peer);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        trunk_delay(table[i].delay_ns);
        measure(&stream, 1, table[i].settle_ms * SIMULATION_MS, &goodput);
        measure(&stream, 1, 3000 * SIMULATION_MS, &goodput);
        double share = goodput / (2.5e8 * simulation_payload_share(false) * 0.999);
        printf("told nothing, %.2f ms: %s, %.3f of what the rate leaves\n", (double)table[i].delay_ns / 1e6,
               flow->bandwidth != NULL ? "bandwidth" : "delay", share);
        assert_int_equal(flow->bandwidth != NULL, table[i].is_long);
        assert_int_equal(flow->timers.rate_bps != 0, table[i].is_long); /* paced, or not */
        assert_int_equal(cw_bandwidth_traffic(flow).control, CW_TRAFFIC_DELAY);
        /* packets overtook each other when the path became shorter: each loss waits for that long */
        assert_true(share > (table[i].is_long ? 0.9 : 0.85));
    }
}

/* From host 0 to host 1, at 250 Mb/s and 10 ms. */
static void one_that_finds_its_rate(void)
{
    const struct cw_traffic traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = CW_SHAPER_NONE};
    two_sides(1, 250000000, 10000000, 0);
    assert_int_equal(cw_peer_traffic(hosts.list[0].endpoint, sim_hosts_peer(&hosts, 0, 1), &traffic), CW_OK);
}

/* A flow with little to send now and then does not lower its estimate of the path. */
static void a_flow_with_little_to_send_stays_fast(void **state)
{
    one_that_finds_its_rate();
    uint64_t early_ns = 0;
    uint64_t late_ns = 0;
    for (uint32_t i = 0; i < 400; i++) {
        uint64_t took_ns = sim_stream_send(&hosts, 0, 1, 65536, 2, 10000 * SIMULATION_MS);
        assert_int_equal(hosts.list[0].completed, 2);
        early_ns = i == 20 ? took_ns : early_ns;
        late_ns = took_ns;
        sim_hosts_run(&hosts, 20 * SIMULATION_MS);
    }
    printf("128 KiB now and then: %.1f ms, the 400th time %.1f ms\n", (double)early_ns / 1e6, (double)late_ns / 1e6);
    assert_true(late_ns <= early_ns + early_ns / 4);
    assert_true(late_ns <= 40 * SIMULATION_MS); /* the round trip, and 128 KiB on the link, and half of that again */
}

/* A flow with little to send at first begins like any other when there is much. */
static void a_few_bytes_are_no_measure(void **state)
{
    one_that_finds_its_rate();
    for (uint32_t i = 0; i < 30; i++) {
        (void)sim_stream_send(&hosts, 0, 1, i < 5 ? 8 : 1300, i < 5 ? 1 : 6, 1000 * SIMULATION_MS);
        sim_hosts_run(&hosts, i * SIMULATION_MS);
    }
    uint64_t took_ns = sim_stream_send(&hosts, 0, 1, 8 << 20, 1, 100000 * SIMULATION_MS);
    printf("8 MiB after a few bytes: %.1f ms\n", (double)took_ns / 1e6);
    assert_int_equal(hosts.list[0].completed, 1);
    assert_true(took_ns <= 600 * SIMULATION_MS); /* 300 on the link, and ten round trips to find that out */
}

/* Losses on the way to one host delay nothing to another one, of the same shaper. */
static void loss_stays_where_it_is(void **state)
{
    struct sim_stream streams[2];
    double goodput[2];
    two_sides(2, 1000000000, 10000000, 0);
    sim_link_lose(cw_simulator_link_down(hosts.simulator, 3), 0.2);
    const struct cw_traffic traffic = {.control = CW_TRAFFIC_RATE, .shaper = 0, .rate_bps = 200000000};
    assert_int_equal(cw_shaper_set(hosts.list[0].endpoint, 0, 200000000, 0), CW_OK);
    stream_start(&streams[0], 0, 2, 1 << 20, &traffic);
    stream_start(&streams[1], 0, 3, 1 << 20, &traffic);
    measure(streams, 2, 500 * SIMULATION_MS, goodput);
    measure(streams, 2, 3000 * SIMULATION_MS, goodput);
    printf("beside a stream that loses 20 %%: %.3f of half the rate; that one %.3f\n",
           goodput[0] / (1e8 * simulation_payload_share(false)), goodput[1] / (1e8 * simulation_payload_share(false)));
    assert_true(goodput[0] >= 0.97e8 * simulation_payload_share(false));
    assert_true(goodput[1] > 0.05e8 * simulation_payload_share(false));
}

int main(void)
{
    return HOSTS_TESTS_RUN(a_shaper_keeps_the_sum, flows_keep_their_rates, the_turn_moves_on, a_flow_finds_its_rate,
                           flows_share_a_link, a_flow_follows_its_path, a_flow_finds_that_its_path_is_long,
                           loss_stays_where_it_is, a_flow_with_little_to_send_stays_fast, a_few_bytes_are_no_measure);
}
