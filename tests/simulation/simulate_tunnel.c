/* Tunnels in virtual time: accepted frames arrive once, unaltered and in order, or are counted; through faults,
 * restarts and hosts that accept nothing. */
#include "tests/simulation/tunnel_world.h"

#include "tests/simulation/simulation.h"

enum { SEEDS = 40 };

/* Of the test that runs; opened again, the world before ends. */
static struct tunnel_world world;
static struct tunnel_options options;

static int world_end(void **state)
{
    tunnel_world_close(&world);
    return 0;
}

static void world_open(void)
{
    tunnel_world_close(&world);
    tunnel_world_open(&world, &options);
}

static const uint64_t MS = 1000000;
static const uint64_t SECOND = 1000000000;

/* All that a site's tunnel took has come to the other side's hosts, or was dropped from the queue, which the counters
 * tell. */
static void account(const struct tunnel_site *from, const struct tunnel_site *to)
{
    uint64_t dropped =
        tunnel_site_counter(from, CW_TUNNEL_DROPPED_STANDING) + tunnel_site_counter(from, CW_TUNNEL_DROPPED_LATE);
    assert_int_equal(tunnel_site_counter(from, CW_TUNNEL_TAKEN) - dropped, to->received);
    assert_int_equal(tunnel_site_counter(from, CW_TUNNEL_SENT), to->received);
    assert_int_equal(tunnel_site_counter(to, CW_TUNNEL_DELIVERED), to->received);
    assert_int_equal(tunnel_site_counter(from, CW_TUNNEL_IN_DOUBT), 0);
    assert_int_equal(tunnel_site_counter(from, CW_TUNNEL_BROKEN), 0);
    assert_int_equal(tunnel_site_counter(from, CW_TUNNEL_TAKEN) + tunnel_site_counter(from, CW_TUNNEL_DROPPED_FULL),
                     from->sent);
}

static void draw(uint64_t seed)
{
    struct cw_random random;
    tunnel_options_init(&options, seed);
    cw_random_seed(&random, seed);
    options.stream_count = 1 + (uint32_t)cw_random_below(&random, 6);
    options.flow_count = 1 + (uint32_t)cw_random_below(&random, FLOWS_MAX);
    options.rate_bps = cw_random_chance(&random, 0.3) ? 0 : cw_random_between(&random, 2, 300) * 1000000;
    options.line_bps = 500000000;
    options.delay_ns = cw_random_between(&random, 0, 60) * MS;
    options.loss = cw_random_chance(&random, 0.5) ? cw_random_fraction(&random) * 0.1 : 0;
    options.other_faults = cw_random_chance(&random, 0.5) ? cw_random_fraction(&random) * 0.05 : 0;
    options.encrypt = options.encrypt && !cw_random_chance(&random, 0.2);
    options.ring_bytes = cw_random_chance(&random, 0.3) ? cw_random_between(&random, 8000, 300000) : 0;
}

static void each_frame_arrives_once_and_in_order(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        draw(seed);
        world_open();
        assert_true(tunnel_world_connect(&world, 20 * SECOND));
        /* less than the rate, more than the rate, and nothing at all */
        uint64_t rate_bps = options.rate_bps == 0 ? 50000000 : options.rate_bps;
        tunnel_world_traffic(&world, rate_bps / 3, 200 * MS);
        tunnel_world_traffic(&world, rate_bps + rate_bps / 2, 300 * MS);
        tunnel_world_run(&world, 50 * MS);
        tunnel_world_traffic(&world, rate_bps / 10, 100 * MS);
        tunnel_world_heal(&world);
        for (uint32_t i = 0; i < SITES; i++) {
            account(&world.sites[i], &world.sites[1 - i]);
            assert_true(world.sites[i].received > 0);
        }
    }
}

/* A gate that ends and comes back: nothing comes twice or late, the other side counts frames without a known fate, and
 * all continues. */
static void a_peer_that_restarts_is_found_again(void **state)
{
    struct test_seeds seeds = test_seeds(1001, test_count("CW_TEST_SEEDS", SEEDS) / 2);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        draw(seed);
        world_open();
        struct tunnel_site *stays = &world.sites[0];
        struct tunnel_site *goes = &world.sites[1];
        assert_true(tunnel_world_connect(&world, 20 * SECOND));
        tunnel_world_traffic(&world, 20000000, 100 * MS);
        tunnel_site_crash(goes);
        tunnel_world_run(&world, seed % 2 == 0 ? 5 * SECOND : seed % 1000 * MS); /* noticed before it is back, or not */
        uint64_t before = stays->sent;
        if (seed % 2 == 0) {
            assert_true(stays->news_down > 0);
            tunnel_site_send(stays, 0, 100);
            tunnel_world_run(&world, MS);
            assert_true(tunnel_site_counter(stays, CW_TUNNEL_DROPPED_DOWN) > 0);
        }
        tunnel_site_restart(goes);
        assert_true(tunnel_world_connect(&world, 20 * SECOND));
        tunnel_world_traffic(&world, 20000000, 100 * MS);
        tunnel_world_heal(&world);
        assert_true(stays->sent > before);
        assert_int_equal(tunnel_site_counter(goes, CW_TUNNEL_IN_DOUBT), 0);
        /* the new life of the one that went has lost nothing */
        uint64_t dropped =
            tunnel_site_counter(goes, CW_TUNNEL_DROPPED_STANDING) + tunnel_site_counter(goes, CW_TUNNEL_DROPPED_LATE);
        assert_true(tunnel_site_counter(goes, CW_TUNNEL_TAKEN) - dropped > 0);
        assert_int_equal(tunnel_site_counter(stays, CW_TUNNEL_DELIVERED), stays->received);
        /* frames accepted by the other arrived, except those dropped and those of unknown fate */
        uint64_t taken = tunnel_site_counter(stays, CW_TUNNEL_TAKEN);
        uint64_t lost = tunnel_site_counter(stays, CW_TUNNEL_DROPPED_STANDING) +
                        tunnel_site_counter(stays, CW_TUNNEL_DROPPED_LATE) +
                        tunnel_site_counter(stays, CW_TUNNEL_DROPPED_DOWN);
        uint64_t doubt = tunnel_site_counter(stays, CW_TUNNEL_IN_DOUBT);
        assert_true(goes->received <= taken);
        assert_true(goes->received + doubt + lost >= taken);
    }
}

/* Cut off for longer than the failure bound, and healed: both find one another again. */
static void a_cut_is_noticed_and_healed(void **state)
{
    tunnel_options_init(&options, 3);
    world_open();
    assert_true(tunnel_world_connect(&world, SECOND));
    cw_simulator_partition(world.gates.simulator, 1, true);
    tunnel_world_run(&world, 6 * SECOND); /* nothing is sent: they ask one another */
    assert_int_equal(world.sites[0].news_down, 4);
    assert_int_equal(world.sites[1].news_down, 4);
    assert_int_equal(world.sites[0].news_status, CW_ERROR_PEER_FAILED);
    cw_simulator_partition(world.gates.simulator, 1, false);
    assert_true(tunnel_world_connect(&world, 5 * SECOND));
    tunnel_world_traffic(&world, 10000000, 100 * MS);
    tunnel_world_heal(&world);
    account(&world.sites[0], &world.sites[1]);
    account(&world.sites[1], &world.sites[0]);
}

/* More than the rate: the queues keep their bound, CoDel keeps them short, and frames leave at the rate. */
static void queues_are_bounded_and_short(void **state)
{
    tunnel_options_init(&options, 4);
    options.queue_bytes = 200000;
    world_open();
    assert_true(tunnel_world_connect(&world, SECOND));
    tunnel_world_traffic(&world, 2 * options.rate_bps, 2000 * MS);
    for (uint32_t i = 0; i < SITES; i++) {
        const struct tunnel_site *site = &world.sites[i];
        assert_true(site->queue_max_bytes <= options.queue_bytes);
        assert_true(tunnel_site_counter(site, CW_TUNNEL_DROPPED_STANDING) > 0);
        assert_true(tunnel_site_counter(site, CW_TUNNEL_DROPPED_FULL) > 0);
        /* the line is full, of packets with all their headers; most of it is frames */
        uint64_t line_bytes = cw_endpoint_counter(site->endpoint, CW_COUNTER_BYTES_OUT) +
                              24 * cw_endpoint_counter(site->endpoint, CW_COUNTER_PACKETS_OUT);
        uint64_t frame_bytes = tunnel_site_counter(&world.sites[1 - i], CW_TUNNEL_DELIVERED_BYTES);
        assert_in_range(line_bytes, options.rate_bps / 4 * 98 / 100, options.rate_bps / 4 * 101 / 100);
        assert_true(frame_bytes > line_bytes * 3 / 4);
    }
    tunnel_world_heal(&world);
    account(&world.sites[0], &world.sites[1]);
}

/* A frame that is alone leaves at once: it takes no longer than its way. */
static void who_is_alone_does_not_wait(void **state)
{
    tunnel_options_init(&options, 5);
    world_open();
    assert_true(tunnel_world_connect(&world, SECOND));
    for (uint32_t i = 0; i < 8; i++) { /* the first large one travels in pieces, and next to a probe of its size */
        tunnel_site_send(&world.sites[0], i, 1400);
    }
    tunnel_world_run(&world, 20 * MS);
    world.sites[1].delay_max_ns = 0;
    for (uint32_t i = 0; i < 20; i++) {
        tunnel_world_run(&world, 20 * MS);
        tunnel_site_send(&world.sites[0], i % 8, 60 + 70 * i);
    }
    tunnel_world_heal(&world);
    account(&world.sites[0], &world.sites[1]);
    assert_true(world.sites[1].delay_max_ns < options.delay_ns + MS / 5);
}

/* Hosts that accept nothing for a while hold the other side up; nothing overflows except the queues there, and frames
 * dropped at the port are counted. */
static void a_deaf_site_is_waited_for(void **state)
{
    tunnel_options_init(&options, 6);
    world_open();
    assert_true(tunnel_world_connect(&world, SECOND));
    world.sites[1].deaf = true;
    tunnel_world_traffic(&world, 50000000, 100 * MS);
    world.sites[1].deaf = false;
    tunnel_world_traffic(&world, 50000000, 100 * MS);
    tunnel_world_heal(&world);
    const struct cw_gate_counters *gate = cw_gate_counters(world.sites[1].gate);
    assert_true(gate->dropped_port > 0);
    assert_int_equal(tunnel_site_counter(&world.sites[1], CW_TUNNEL_DELIVERED),
                     world.sites[1].received + gate->dropped_port);
    assert_int_equal(gate->out_frames, world.sites[1].received);
    account(&world.sites[1], &world.sites[0]);
}

/* Gates that do not match forward nothing, and each is notified. */
static void wrong_key_and_number_of_streams(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        tunnel_options_init(&options, 7);
        options.key_of_second = kind == 0 ? 0x5b : 0x5a;
        options.streams_of_second = kind == 0 ? 0 : 3;
        world_open();
        assert_false(tunnel_world_connect(&world, 10 * SECOND));
        tunnel_world_traffic(&world, 1000000, 20 * MS);
        assert_int_equal(world.sites[0].received + world.sites[1].received, 0);
        assert_int_equal(tunnel_site_counter(&world.sites[0], CW_TUNNEL_DROPPED_DOWN), world.sites[0].sent);
        assert_true(world.sites[0].news_down > 0);
        if (kind == 1) {
            assert_true(tunnel_site_counter(&world.sites[0], CW_TUNNEL_BROKEN) > 0);
        }
    }
}

/* ---- what crosses ---- */

/* A frame of 60 bytes between addresses that end in these bytes; `to` 0xff: broadcast. The gate counts what comes of
 * it. */
static void frame_between(struct tunnel_site *site, uint8_t from, const uint8_t to[6])
{
    uint8_t frame[60] = {[6] = 2, [11] = from, [12] = 0x88, [13] = 0xb5};
    memcpy(frame, to, 6);
    tunnel_site_inject(site, frame, sizeof(frame));
    tunnel_world_run(site->world, 50 * MS);
}

static const uint8_t BROADCAST[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t GROUP[6] = {1, 0, 0x5e, 1, 2, 3};
static const uint8_t RESERVED[6] = {1, 0x80, 0xc2, 0, 0, 0xe};
static const uint8_t HOST_1[6] = {2, 0, 0, 0, 0, 1};

static void gates_open(bool drops_multicast)
{
    tunnel_options_init(&options, 8);
    options.drops_multicast = drops_multicast;
    world_open();
    assert_true(tunnel_world_connect(&world, SECOND));
    world.sites[0].deaf = world.sites[1].deaf = true; /* the frames are none of the world's own */
}

static void gates_close(void)
{
    for (uint32_t i = 0; i < SITES; i++) {
        struct cw_received packet;
        while (cw_port_receive(world.sites[i].hosts, &packet, 1) == 1) {
            cw_port_release(world.sites[i].hosts, &packet, 1);
        }
    }
}

static uint64_t out_of(const struct tunnel_site *site)
{
    return cw_gate_counters(site->gate)->out_frames;
}

static void what_is_local_stays_local(void **state)
{
    gates_open(false);
    struct tunnel_site *a = &world.sites[0];
    struct tunnel_site *b = &world.sites[1];
    frame_between(a, 2, HOST_1); /* the place of 1 is unknown */
    assert_int_equal(out_of(b), 1);
    frame_between(a, 1, BROADCAST); /* 1 is here */
    assert_int_equal(out_of(b), 2);
    frame_between(a, 2, HOST_1);
    assert_int_equal(out_of(b), 2);
    assert_int_equal(cw_gate_bridge(a->gate)->dropped_home, 1);
    frame_between(b, 3, HOST_1); /* at the other side they know, too */
    assert_int_equal(out_of(a), 1);
    frame_between(b, 1, BROADCAST); /* 1 moves */
    assert_int_equal(out_of(a), 2);
    frame_between(a, 2, HOST_1);
    assert_int_equal(out_of(b), 3);
    frame_between(b, 3, HOST_1);
    assert_int_equal(out_of(a), 2);
    tunnel_world_run(&world, 301 * SECOND); /* forgotten */
    frame_between(b, 3, HOST_1);
    assert_int_equal(out_of(a), 3);
    /* nothing has gone back where it came from */
    assert_int_equal(tunnel_site_counter(a, CW_TUNNEL_TAKEN), out_of(b));
    assert_int_equal(tunnel_site_counter(b, CW_TUNNEL_TAKEN), out_of(a));
    gates_close();
}

static void what_bridges_do_not_forward_does_not_cross(void **state)
{
    for (int drops = 0; drops < 2; drops++) {
        gates_open(drops != 0);
        struct tunnel_site *a = &world.sites[0];
        const struct cw_bridge_counters *bridge = cw_gate_bridge(a->gate);
        frame_between(a, 1, RESERVED);
        assert_int_equal(bridge->dropped_reserved, 1);
        tunnel_site_inject(a, HOST_1, sizeof(HOST_1)); /* six bytes are no frame */
        uint8_t from_group[60] = {2, [6] = 1, [12] = 8};
        tunnel_site_inject(a, from_group, sizeof(from_group));
        tunnel_world_run(&world, 50 * MS);
        assert_int_equal(bridge->dropped_short, 1);
        assert_int_equal(bridge->dropped_source, 1);
        assert_int_equal(tunnel_site_counter(a, CW_TUNNEL_TAKEN), 0);
        frame_between(a, 1, BROADCAST);
        frame_between(a, 1, GROUP);
        assert_int_equal(out_of(&world.sites[1]), 2 - drops);
        assert_int_equal(cw_gate_counters(a->gate)->dropped_multicast, drops);
        gates_close();
    }
}

int main(void)
{
    return TESTS_RUN_EACH(NULL, world_end, each_frame_arrives_once_and_in_order, a_peer_that_restarts_is_found_again,
                          a_cut_is_noticed_and_healed, queues_are_bounded_and_short, who_is_alone_does_not_wait,
                          a_deaf_site_is_waited_for, wrong_key_and_number_of_streams, what_is_local_stays_local,
                          what_bridges_do_not_forward_does_not_cross);
}
