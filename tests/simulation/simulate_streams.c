/* Streams by way of relays, across a wide area: what is put arrives, once and unaltered; relays keep their rates, pass
 * on nothing else, and may die; streams do not hold one another up. */
#include "tests/simulation/simulation.h"

enum {
    SIDE = 8,          /* hosts of a cluster */
    FIRST_RELAY = 4,   /* hosts 4 .. 7 of the first cluster pass on what 0 .. 3 send */
    STREAMS_MAX = 4,   /* stream s goes by way of host FIRST_RELAY + s - 1 */
    PUT_BYTES = 32768, /* some 4 ms of a relay's rate */
    PLACES = 64,
    UNDER_WAY = 16, /* puts, on each stream */
};

#define WIDE_BPS      250000000ull
#define WIDE_DELAY_NS (10 * SIMULATION_MS)

struct sender {
    struct sim_host *host;
    struct sim_host *target;
    uint32_t streams;
    uint32_t peers[STREAMS_MAX];
    uint64_t posted[STREAMS_MAX];
    uint64_t done[STREAMS_MAX]; /* puts */
    uint64_t failed;
};

/* The k-th put of a stream goes to a place of that stream's: no two under way overlap. */
static uint64_t place_of(const struct sender *sender, uint32_t stream, uint64_t put)
{
    uint64_t places = PLACES / sender->streams;
    return (put % places * sender->streams + stream) * PUT_BYTES;
}

static void send_more(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct sender *sender = context;
    struct cw_event event;
    (void)now_ns;
    while (cw_endpoint_events(host->endpoint, &event, 1) == 1) {
        if (event.kind == CW_EVENT_COMPLETE) {
            sender->done[event.context] += event.status == CW_OK;
            sender->failed += event.status != CW_OK;
        }
    }
    for (uint32_t s = 0; s < sender->streams; s++) {
        while (sender->posted[s] - sender->done[s] - sender->failed < UNDER_WAY) {
            uint64_t offset = place_of(sender, s, sender->posted[s]);
            struct cw_put put = {
                .peer = sender->peers[s],
                .region = sender->target->token,
                .offset = offset,
                .source = {.region = host->token, .contiguous = {.data = host->memory + offset, .bytes = PUT_BYTES}},
                .context = s,
                .flags = CW_SIGNAL | CW_MORE,
            };
            if (cw_put(host->endpoint, &put) != CW_OK) {
                break;
            }
            sender->posted[s]++;
        }
    }
}

static uint64_t done_bytes(const struct sender *sender)
{
    uint64_t puts = 0;
    for (uint32_t s = 0; s < sender->streams; s++) {
        puts += sender->done[s];
    }
    return puts * PUT_BYTES;
}

static void mac_of(const struct sim_hosts *hosts, uint32_t node, uint8_t mac[6])
{
    memcpy(mac, cw_simulator_mac(hosts->simulator, node), 6);
}

static uint32_t ipv4_of(const struct sim_hosts *hosts, uint32_t node)
{
    struct cw_address address = cw_endpoint_address(hosts->list[node].endpoint);
    return cw_ip_to_v4(&address.ip);
}

static void two_clusters(struct sim_hosts *hosts, uint32_t relays, bool encrypt)
{
    struct sim_hosts_config config;
    sim_hosts_config_init(&config, 2 * SIDE);
    config.memory_bytes = PLACES * PUT_BYTES;
    config.switches = 2;
    config.node.up.rate_bps = config.node.down.rate_bps = 1000000000ull;
    config.trunk = config.node.down;
    config.trunk.rate_bps = WIDE_BPS;
    config.trunk.delay_ns = WIDE_DELAY_NS;
    config.trunk.queue_limit_bytes = 16 * 1600; /* what paced senders need, and no more */
    config.endpoint.stream_count = STREAMS_MAX + 1;
    config.endpoint.peer_count_max = 200;
    config.endpoint.window_block_count = 512;
    config.endpoint.failure_timeout_ns = 5000 * SIMULATION_MS;
    config.endpoint.encryption = encrypt ? CW_ENCRYPTION_REQUIRED : CW_ENCRYPTION_OFF;
    simulation_hosts(hosts, &config);
    for (uint32_t i = 0; i < relays; i++) {
        simulation_relay(hosts, FIRST_RELAY + i, WIDE_BPS / relays);
    }
    struct cw_random random;
    cw_random_seed(&random, 77);
    for (uint32_t i = 0; i < SIDE; i++) {
        for (uint64_t at = 0; at < config.memory_bytes; at += 8) {
            uint64_t word = cw_random_next(&random);
            memcpy(hosts->list[i].memory + at, &word, 8);
        }
    }
}

/* Host `from` of the first cluster sends to the one beside it in the second, on `streams` streams by as many relays. */
static void sender_start(struct sim_hosts *hosts, struct sender *sender, uint32_t from, uint32_t streams)
{
    *sender = (struct sender){.host = &hosts->list[from], .target = &hosts->list[SIDE + from], .streams = streams};
    struct cw_endpoint *endpoint = sender->host->endpoint;
    uint32_t peer = sim_hosts_peer(hosts, from, SIDE + from);
    for (uint32_t s = 0; s < streams; s++) {
        struct cw_stream how = {.traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = CW_SHAPER_NONE}};
        mac_of(hosts, FIRST_RELAY + s, how.next_hop);
        assert_int_equal(cw_stream_set(endpoint, s + 1, &how), CW_OK);
        assert_int_equal(cw_peer_stream(endpoint, peer, s + 1, &sender->peers[s]), CW_OK);
        uint32_t again;
        assert_int_equal(cw_peer_stream(endpoint, peer, s + 1, &again), CW_OK);
        assert_int_equal(again, sender->peers[s]);
    }
    sender->host->holds_events = true;
    sim_host_begin(sender->host, send_more, sender);
}

static double measured_bps(struct sim_hosts *hosts, const struct sender *senders, uint32_t count, uint64_t duration_ns)
{
    uint64_t before = 0, after = 0;
    for (uint32_t i = 0; i < count; i++) {
        before += done_bytes(&senders[i]);
    }
    sim_hosts_run(hosts, duration_ns);
    for (uint32_t i = 0; i < count; i++) {
        after += done_bytes(&senders[i]);
    }
    return (double)(after - before) * 8e9 / (double)duration_ns;
}

/* All places that were written through hold what the sender has. */
static void assert_arrived(const struct sender *sender)
{
    for (uint32_t s = 0; s < sender->streams; s++) {
        uint64_t puts = sender->done[s] < PLACES / sender->streams ? sender->done[s] : PLACES / sender->streams;
        assert_true(puts > 0);
        for (uint64_t put = 0; put < puts; put++) {
            uint64_t at = place_of(sender, s, put);
            assert_memory_equal(sender->target->memory + at, sender->host->memory + at, PUT_BYTES);
        }
    }
}

/* ---- what is seen on the way ---- */

struct watch {
    const struct sim_hosts *hosts;
    uint64_t relayed;      /* frames that a relay sent to the other cluster */
    uint64_t straight;     /* ... that anybody else of the first cluster did */
    uint64_t bad_checksum; /* of IPv4 headers */
    uint64_t bad_life;     /* a time to live that is not one less */
    double level_bytes[2 * SIDE];
    double level_max_bytes;
    uint64_t last_ns[2 * SIDE];
    double relay_bps;
};

/* RFC 791: the one's complement sum of all words of a good header is 0xffff. */
static bool checksum_is_good(const uint8_t *ip)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 20; i += 2) {
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    }
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum == 0xffff;
}

static void watch_tap(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                      const uint8_t *frame, uint32_t length)
{
    struct watch *watch = context;
    bool across = false;
    for (uint32_t i = SIDE; i < 2 * SIDE; i++) {
        across = across || memcmp(frame, cw_simulator_mac(watch->hosts->simulator, i), 6) == 0;
    }
    if (kind != CW_SIMULATOR_DEPARTURE || node >= SIDE) {
        return;
    }
    bool relays = node >= FIRST_RELAY;
    watch->bad_checksum += !checksum_is_good(frame + 14);
    watch->bad_life += frame[14 + 8] != (relays ? 63 : 64);
    watch->relayed += across && relays;
    watch->straight += across && !relays;
    if (relays) {
        double drained = (double)(time_ns - watch->last_ns[node]) * watch->relay_bps / 8e9;
        double *level = &watch->level_bytes[node];
        *level = (*level > drained ? *level - drained : 0) + length + CW_ETHERNET_OVERHEAD_BYTES;
        watch->level_max_bytes = *level > watch->level_max_bytes ? *level : watch->level_max_bytes;
        watch->last_ns[node] = time_ns;
    }
}

static uint64_t trunk_drops(const struct sim_hosts *hosts)
{
    return cw_simulator_link_trunk(hosts->simulator, 0, 0)->counters.dropped_queue;
}

/* ---- tests ---- */

static void relays_carry_all_and_keep_their_rates(struct sim_hosts *hosts, bool encrypt)
{
    two_clusters(hosts, STREAMS_MAX, encrypt);
    static struct watch watch;
    watch = (struct watch){.hosts = hosts, .relay_bps = (double)WIDE_BPS / STREAMS_MAX};
    static struct sender senders[4];
    cw_simulator_tap_set(hosts->simulator, watch_tap, &watch);
    sender_start(hosts, &senders[0], 0, STREAMS_MAX);
    sim_hosts_run(hosts, 1000 * SIMULATION_MS);
    double alone = measured_bps(hosts, senders, 1, 3000 * SIMULATION_MS);
    for (uint32_t i = 1; i < 4; i++) {
        sender_start(hosts, &senders[i], i, STREAMS_MAX);
    }
    sim_hosts_run(hosts, 1000 * SIMULATION_MS);
    double together = measured_bps(hosts, senders, 4, 5000 * SIMULATION_MS);
    double full_bps = (double)WIDE_BPS * simulation_payload_share(encrypt);
    printf("by four relays%s: one sender %.3f of what the rate leaves, four %.3f; %llu frames relayed, %llu straight, "
           "%llu dropped at the link; %.1f bytes above a relay's rate and one frame\n",
           encrypt ? ", sealed" : "", alone / full_bps, together / full_bps, (unsigned long long)watch.relayed,
           (unsigned long long)watch.straight, (unsigned long long)trunk_drops(hosts),
           watch.level_max_bytes - 1514 - CW_ETHERNET_OVERHEAD_BYTES);
    assert_true(alone >= 0.92 * full_bps);
    assert_true(together >= 0.92 * full_bps);
    assert_int_equal(trunk_drops(hosts), 0);
    assert_int_equal(watch.straight, 0);
    assert_int_equal(watch.bad_checksum, 0);
    assert_int_equal(watch.bad_life, 0);
    assert_true(watch.relayed > 0);
    assert_true(watch.level_max_bytes <= 1514 + CW_ETHERNET_OVERHEAD_BYTES + 2);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(senders[i].failed, 0);
        assert_arrived(&senders[i]);
        uint64_t posted = senders[i].target->arrived_puts;
        assert_true(posted >= done_bytes(&senders[i]) /
                                  PUT_BYTES); /* each is told of once: those done, and some not yet known to be */
        assert_true(posted <= done_bytes(&senders[i]) / PUT_BYTES + STREAMS_MAX * UNDER_WAY);
    }
}

static void relays_carry_all(void **state)
{
    struct sim_hosts hosts;
    relays_carry_all_and_keep_their_rates(&hosts, false);
    sim_hosts_destroy(&hosts);
}

#if defined(CW_HAVE_DPDK) /* whose drivers seal */
static void relays_carry_sealed_packets(void **state)
{
    struct sim_hosts hosts;
    relays_carry_all_and_keep_their_rates(&hosts, true);
    struct cw_peer_info info;
    uint32_t sealed = 0;
    for (uint32_t peer = 0; cw_peer_query(hosts.list[SIDE].endpoint, peer, &info) == CW_OK; peer++) {
        assert_true(info.encrypted || info.state != CW_PEER_ESTABLISHED);
        sealed += info.encrypted && info.stream > 0;
    }
    assert_int_equal(sealed, STREAMS_MAX);
    sim_hosts_destroy(&hosts);
}
#endif

/* One of two relays loses a fifth of what it sends: the other stream has its rate all the same. */
static void a_lossy_stream_holds_up_no_other(void **state)
{
    struct sim_hosts hosts;
    struct sender sender;
    two_clusters(&hosts, 2, false);
    sim_link_lose(cw_simulator_link_up(hosts.simulator, FIRST_RELAY), 0.2);
    sender_start(&hosts, &sender, 0, 2);
    sim_hosts_run(&hosts, 1000 * SIMULATION_MS);
    uint64_t before[2] = {sender.done[0], sender.done[1]};
    sim_hosts_run(&hosts, 4000 * SIMULATION_MS);
    double shares[2];
    for (uint32_t s = 0; s < 2; s++) {
        shares[s] = (double)((sender.done[s] - before[s]) * PUT_BYTES) * 8 / 4 /
                    ((double)WIDE_BPS / 2 * simulation_payload_share(false));
    }
    printf("a stream that loses 20 %%: %.3f of its rate; the one beside it: %.3f\n", shares[0], shares[1]);
    assert_true(shares[1] > 0.95);
    assert_true(shares[0] > 0.03);
    sim_hosts_destroy(&hosts);
}

static uint64_t counter(const struct sim_hosts *hosts, uint32_t node, enum cw_counter which)
{
    return cw_endpoint_counter(hosts->list[node].endpoint, which);
}

/* A relay dies: what went by it goes straight, and by it again when it has come back. */
static void a_relay_that_dies_is_gone_round(void **state)
{
    struct sim_hosts hosts;
    struct sender sender;
    char error[200];
    two_clusters(&hosts, 2, false);
    struct watch watch = {.hosts = &hosts, .relay_bps = (double)WIDE_BPS / 2};
    sender_start(&hosts, &sender, 0, 2);
    sim_hosts_run(&hosts, 1000 * SIMULATION_MS);
    cw_simulator_tap_set(hosts.simulator, watch_tap, &watch);
    sim_hosts_crash(&hosts, FIRST_RELAY);
    sim_hosts_run(&hosts, 3000 * SIMULATION_MS);
    uint64_t before = sender.done[0];
    sim_hosts_run(&hosts, 2000 * SIMULATION_MS);
    uint64_t straight = watch.straight;
    printf("without its relay: %.3f of the stream's rate, %llu frames straight\n",
           (double)((sender.done[0] - before) * PUT_BYTES) * 8 / 2 /
               ((double)WIDE_BPS / 2 * simulation_payload_share(false)),
           (unsigned long long)straight);
    assert_true(sender.done[0] > before);
    assert_true(straight > 100);
    assert_int_equal(counter(&hosts, 0, CW_COUNTER_DETOURS), 1);
    assert_int_equal(sim_hosts_restart(&hosts, FIRST_RELAY, error, sizeof(error)), CW_OK);
    simulation_relay(&hosts, FIRST_RELAY, WIDE_BPS / 2);
    sim_hosts_run(&hosts, 10000 * SIMULATION_MS);
    straight = watch.straight;
    uint64_t relayed = counter(&hosts, FIRST_RELAY, CW_COUNTER_RELAYED);
    sim_hosts_run(&hosts, 2000 * SIMULATION_MS);
    assert_int_equal(watch.straight, straight);
    assert_true(counter(&hosts, FIRST_RELAY, CW_COUNTER_RELAYED) > relayed + 1000);
    assert_int_equal(sender.failed, 0);
    assert_arrived(&sender);
    sim_hosts_destroy(&hosts);
}

/* A relay that is dead from the start: sessions are set up all the same. */
static void a_relay_that_never_was_is_gone_round(void **state)
{
    struct sim_hosts hosts;
    struct sender sender;
    two_clusters(&hosts, 1, false);
    sim_hosts_crash(&hosts, FIRST_RELAY);
    sender_start(&hosts, &sender, 0, 1);
    sim_hosts_run(&hosts, 3000 * SIMULATION_MS);
    assert_true(sender.done[0] > 0);
    assert_int_equal(sender.failed, 0);
    sim_hosts_destroy(&hosts);
}

/* An Ethernet frame with an IPv4 packet of `bytes` bytes, UDP. */
static uint32_t frame_write(const struct sim_hosts *hosts, uint8_t *frame, uint32_t to_node, uint32_t from_ipv4,
                            uint32_t to_ipv4, uint8_t life)
{
    uint8_t mac[6];
    struct cw_wire_network network;
    mac_of(hosts, to_node, mac);
    cw_wire_network_init(&network, cw_simulator_mac(hosts->simulator, 0), mac, from_ipv4, to_ipv4, 4000, 4000);
    memcpy(frame, &network, sizeof(network));
    cw_wire_network_finish((struct cw_wire_network *)frame, 100);
    frame[14 + 8] = life;
    memset(frame + sizeof(network), 0, CW_WIRE_HEADER_BYTES + 100);
    return (uint32_t)sizeof(network) + CW_WIRE_HEADER_BYTES + 100;
}

static void nothing_else_is_passed_on(void **state)
{
    struct sim_hosts hosts;
    two_clusters(&hosts, 1, false);
    uint32_t inside = ipv4_of(&hosts, 1), other = ipv4_of(&hosts, 2), outside = ipv4_of(&hosts, SIDE + 1);
    const struct {
        uint32_t from, to;
        uint8_t life;
        bool is_passed;
    } table[] = {
        {inside, outside, 64, true},      {inside, outside, 2, true},      {inside, outside, 1, false},
        {inside, outside, 0, false},      {outside, inside, 64, false},    {inside, other, 64, false},
        {0x0b000001, outside, 64, false}, {inside, 0x0b000001, 64, false}, {outside, outside, 64, false},
    };
    uint8_t frame[2048];
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        uint64_t relayed = counter(&hosts, FIRST_RELAY, CW_COUNTER_RELAYED);
        uint64_t dropped = counter(&hosts, FIRST_RELAY, CW_COUNTER_DROP_RELAY);
        uint32_t length = frame_write(&hosts, frame, FIRST_RELAY, table[i].from, table[i].to, table[i].life);
        assert_int_equal(cw_simulator_inject(hosts.simulator, FIRST_RELAY, frame, length), CW_OK);
        for (uint32_t cut = 0; cut < length; cut++) { /* cut off: not passed on, and nobody reads beyond it */
            if (cut > 0) {
                assert_int_equal(cw_simulator_inject(hosts.simulator, FIRST_RELAY, frame, cut), CW_OK);
            }
            sim_hosts_run(&hosts, SIMULATION_MS);
        }
        assert_int_equal(counter(&hosts, FIRST_RELAY, CW_COUNTER_RELAYED) - relayed, table[i].is_passed);
        assert_int_equal(counter(&hosts, FIRST_RELAY, CW_COUNTER_DROP_RELAY) - dropped, !table[i].is_passed);
    }
    /* the same to a MAC address that is not the relay's, as a bridge floods it */
    uint64_t relayed = counter(&hosts, FIRST_RELAY, CW_COUNTER_RELAYED);
    uint32_t length = frame_write(&hosts, frame, 3, inside, outside, 64);
    assert_int_equal(cw_simulator_inject(hosts.simulator, FIRST_RELAY, frame, length), CW_OK);
    sim_hosts_run(&hosts, SIMULATION_MS);
    assert_int_equal(counter(&hosts, FIRST_RELAY, CW_COUNTER_RELAYED), relayed);
    sim_hosts_destroy(&hosts);
}

static void bad_calls_are_refused(void **state)
{
    struct sim_hosts hosts;
    two_clusters(&hosts, 0, false);
    struct cw_endpoint *endpoint = hosts.list[0].endpoint;
    struct cw_stream how = {.traffic = {.shaper = CW_SHAPER_NONE}};
    struct cw_relay_host host = {.ip = cw_ip_v4(1), .shaper = CW_SHAPER_NONE};
    uint32_t peer = sim_hosts_peer(&hosts, 0, SIDE), number;
    assert_int_equal(cw_relay_host_set(endpoint, &host), CW_ERROR_ARGUMENT); /* no relay yet */
    assert_int_equal(cw_relay_open(endpoint, 100), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_relay_open(endpoint, CW_RELAY_QUEUE_MAX + 1ull), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_relay_open(endpoint, 1 << 20), CW_OK);
    assert_int_equal(cw_relay_open(endpoint, 1 << 20), CW_ERROR_ARGUMENT);
    host.shaper = CW_SHAPERS_MAX;
    assert_int_equal(cw_relay_host_set(endpoint, &host), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_stream_set(endpoint, 0, &how), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_stream_set(endpoint, STREAMS_MAX + 1, &how), CW_ERROR_ARGUMENT);
    how.traffic.rate_bps = 5;
    assert_int_equal(cw_stream_set(endpoint, 1, &how), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_peer_stream(endpoint, peer, STREAMS_MAX + 1, &number), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_peer_stream(endpoint, peer + 1000, 1, &number), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_peer_stream(endpoint, peer, 1, &number), CW_OK);
    assert_int_equal(cw_peer_stream(endpoint, number, 1, &number), CW_ERROR_ARGUMENT); /* a stream of a stream */
    assert_int_equal(cw_peer_next_hop(endpoint, peer + 1000, how.next_hop), CW_ERROR_ARGUMENT);
    sim_hosts_destroy(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relays_carry_all),
#if defined(CW_HAVE_DPDK)
        cmocka_unit_test(relays_carry_sealed_packets),
#endif
        cmocka_unit_test(a_lossy_stream_holds_up_no_other),
        cmocka_unit_test(a_relay_that_dies_is_gone_round),
        cmocka_unit_test(a_relay_that_never_was_is_gone_round),
        cmocka_unit_test(nothing_else_is_passed_on),
        cmocka_unit_test(bad_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
