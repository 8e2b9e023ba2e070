/* The simulator: order, deadlines, several bridges, taps, limits. Faults and replay: simulate_correctness. */
#include "tests/unit/dataplane/simulated_hosts.h"

#include "dataplane/fabric/bridge.h"

/* ---- time, order ---- */

static void test_time_of_one_packet(void **state)
{
    config.up.overhead_bytes = config.down.overhead_bytes = 0;
    config.up.rate_bps = config.down.rate_bps = 8000000000; /* 1 byte/ns */
    world_open(1, 2);
    cw_simulator_run_until(world.simulator, 1000);
    send(0, 1, 1);
    cw_simulator_run_until(world.simulator, MS);
    assert_int_equal(world.hosts[1].received, 1);
    assert_int_equal(world.hosts[1].first_ns, 1000 + 2 * (LENGTH + 5000) + 500);
    assert_int_equal(cw_simulator_now(world.simulator), MS);
    assert_false(cw_simulator_step(world.simulator));
    assert_int_equal(cw_simulator_node_counters(world.simulator, 0)->sent_bytes, LENGTH);
    assert_int_equal(cw_simulator_node_counters(world.simulator, 1)->received_bytes, LENGTH);
}

static void mark(void *context)
{
    uint32_t *marks = context;
    *marks = *marks * 10 + 1;
}

static void mark_two(void *context)
{
    uint32_t *marks = context;
    *marks = *marks * 10 + 2;
}

static void test_scripted_events(void **state)
{
    uint32_t marks = 0;
    world_open(1, 2);
    assert_int_equal(cw_simulator_at(world.simulator, 500, mark_two, &marks), CW_OK);
    assert_int_equal(cw_simulator_at(world.simulator, 300, mark, &marks), CW_OK);
    assert_int_equal(cw_simulator_at(world.simulator, 500, mark, &marks), CW_OK); /* after the first one at 500 */
    cw_simulator_run_until(world.simulator, 499);
    assert_int_equal(marks, 1);
    cw_simulator_run_until(world.simulator, 500);
    assert_int_equal(marks, 121);
    cw_simulator_at(world.simulator, 0, mark, &marks); /* past: at once */
    cw_simulator_run_until(world.simulator, 500);
    assert_int_equal(marks, 1211);
    for (int i = 0; i < 4096; i++) {
        assert_int_equal(cw_simulator_at(world.simulator, 600, mark, &marks), CW_OK);
    }
    assert_int_equal(cw_simulator_at(world.simulator, 600, mark, &marks), CW_ERROR_LIMIT);
}

static void test_deadlines(void **state)
{
    uint64_t turns;
    world_open(1, 2);
    cw_simulator_run_until(world.simulator, 1000);
    turns = world.hosts[0].turns;
    world.hosts[0].deadline_ns = 0; /* long past: still, time passes between two turns */
    cw_port_wake(world.hosts[0].port);
    cw_simulator_run_until(world.simulator, 1099);
    assert_int_equal(world.hosts[0].turns, turns + 1);
    cw_simulator_run_until(world.simulator, 1100);
    assert_int_equal(world.hosts[0].turns, turns + 2);
    world.hosts[0].deadline_ns = 5000;
    cw_port_wake(world.hosts[0].port);
    cw_simulator_run_until(world.simulator, 4999);
    assert_int_equal(world.hosts[0].turns, turns + 3);
    cw_simulator_run_until(world.simulator, 9999);
    assert_int_equal(world.hosts[0].turns, turns + 4);
}

static void test_crash_and_restart(void **state)
{
    struct cw_transmit packet;
    struct cw_port *port;
    world_open(1, 2);
    world.hosts[1].take_max = 1;
    send(0, 1, 50);
    cw_simulator_run_until(world.simulator, 12000); /* some have arrived, some are on their way */
    assert_true(world.hosts[1].received > 0 && world.hosts[1].received < 50);
    cw_simulator_crash(world.simulator, 1);
    cw_simulator_crash(world.simulator, 1);
    /* Its packets now are lost. */
    assert_int_equal(cw_port_reserve(world.hosts[1].port, &packet, 1), 1);
    world.hosts[1].target = 0;
    frame_write(&world.hosts[1], &packet);
    assert_int_equal(cw_port_transmit(world.hosts[1].port, &packet, 1), 1);
    cw_port_close(world.hosts[1].port);
    assert_int_equal(cw_port_sim_open(world.simulator, 1, &port), CW_ERROR_CLOSED);
    cw_simulator_run_until(world.simulator, MS);
    assert_int_equal(world.hosts[0].received, 0);
    assert_true(cw_simulator_node_counters(world.simulator, 1)->dropped_closed > 0);
    assert_int_equal(cw_simulator_counters(world.simulator)->packet_count, 0);
    cw_simulator_restart(world.simulator, 1);
    host_start(1);
    assert_int_equal(cw_port_sim_open(world.simulator, 1, &port), CW_ERROR_BUSY);
    send(0, 1, 5);
    cw_simulator_run_until(world.simulator, 2 * MS);
    assert_int_equal(world.hosts[1].received, 5);
}

static void test_inject(void **state)
{
    uint8_t frame[2000] = {0};
    world_open(1, 2);
    memcpy(frame, cw_simulator_mac(world.simulator, 1), 6);
    assert_int_equal(cw_simulator_inject(world.simulator, 1, frame, 64), CW_OK);
    assert_int_equal(cw_simulator_inject(world.simulator, 1, frame, 3), CW_OK); /* the NIC's filter stops it */
    assert_int_equal(cw_simulator_inject(world.simulator, 1, frame, 1515), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_simulator_inject(world.simulator, 1, frame, 0), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_simulator_inject(world.simulator, 2, frame, 64), CW_ERROR_ARGUMENT);
    cw_simulator_run_until(world.simulator, MS);
    assert_int_equal(world.hosts[1].received, 1);
    assert_int_equal(cw_simulator_node_counters(world.simulator, 1)->dropped_filter, 1);
}

/* ---- several bridges ---- */

static void test_switches(void **state)
{
    enum { SWITCHES = 3, NODES = 7 }; /* in blocks of 3, 2, 2 */
    struct cw_link_config trunk = {.rate_bps = 10000000000, .delay_ns = 1000};
    struct cw_simulator_config of_all;
    world.count = NODES;
    cw_simulator_config_init(&of_all);
    assert_int_equal(cw_simulator_create(&of_all, &world.simulator), CW_OK);
    assert_int_equal(cw_simulator_switches(world.simulator, 2, 1, &config, &trunk), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_simulator_switches(world.simulator, 0, 1, &config, &trunk), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_simulator_switches(world.simulator, SWITCHES, NODES, &config, &trunk), 0);
    for (uint32_t i = 0; i < NODES; i++) {
        host_start(i);
        cw_port_join(world.hosts[i].port, GROUP);
    }
    send(6, HOSTS_MAX + 1, 10); /* the group */
    send(3, 5, 5);
    cw_simulator_run_until(world.simulator, 10 * MS);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(world.hosts[i].received, (i == 6 ? 0 : 10) + (i == 5 ? 5 : 0));
    }
    /* the group once over each trunk; frames from the second switch to the third pass through the first */
    assert_int_equal(cw_simulator_link_trunk(world.simulator, 0, 0)->counters.offered, 10);
    assert_int_equal(cw_simulator_link_trunk(world.simulator, 0, 1)->counters.offered, 5);
    assert_int_equal(cw_simulator_link_trunk(world.simulator, 1, 0)->counters.offered, 5);
    assert_int_equal(cw_simulator_link_trunk(world.simulator, 1, 1)->counters.offered, 10);
}

static void test_tree_of_bridges_learns(void **state)
{
    struct cw_link_config trunk = {.rate_bps = 10000000000, .delay_ns = 1000};
    struct cw_simulator_config of_all;
    cw_simulator_config_init(&of_all);
    of_all.learning = true;
    assert_int_equal(cw_simulator_create(&of_all, &world.simulator), CW_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cw_simulator_bridge_add(world.simulator, 4), i);
    }
    assert_int_equal(cw_simulator_bridges_join(world.simulator, 0, 1, &trunk, false), 0);
    assert_int_equal(cw_simulator_bridges_join(world.simulator, 1, 2, &trunk, false), 1);
    assert_int_equal(cw_simulator_bridges_join(world.simulator, 2, 0, &trunk, false), CW_ERROR_ARGUMENT); /* a loop */
    assert_int_equal(cw_simulator_bridges_join(world.simulator, 2, 0, &trunk, true), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_simulator_bridges_join(world.simulator, 2, 7, &trunk, false), CW_ERROR_ARGUMENT);
    world.count = 5;
    for (uint32_t i = 0; i < world.count; i++) {
        assert_int_equal(cw_simulator_node_add(world.simulator, i < 2 ? 0 : 2, &config), i);
        host_start(i);
    }
    assert_int_equal(cw_simulator_node_add(world.simulator, 2, &config), CW_ERROR_LIMIT);
    assert_int_equal(cw_simulator_node_add(world.simulator, 3, &config), CW_ERROR_ARGUMENT);
    send(0, 4, 1); /* flooded */
    cw_simulator_run_until(world.simulator, MS);
    send(4, 0, 1); /* known */
    cw_simulator_run_until(world.simulator, 2 * MS);
    assert_int_equal(world.hosts[4].received, 1);
    assert_int_equal(world.hosts[0].received, 1);
    assert_int_equal(cw_simulator_node_counters(world.simulator, 1)->dropped_filter, 1);
    assert_int_equal(cw_simulator_node_counters(world.simulator, 2)->dropped_filter, 1);
    assert_int_equal(cw_bridge_counters(cw_simulator_bridge(world.simulator, 1))->flooded_unknown, 1);
}

/* Two ports are sent more than their links carry. */
static void test_shared_buffer(void **state)
{
    enum { HOSTS = 8, FRAMES = 400, BUFFER = 20000 };
    uint64_t most = 0, dropped = 0, arrived = 0;
    config.down.rate_bps = config.up.rate_bps / 10;
    world_open(1, HOSTS);
    cw_simulator_bridge_buffer(world.simulator, 0, BUFFER);
    for (uint32_t i = 2; i < HOSTS; i++) {
        send(i, i % 2, FRAMES);
    }
    while (cw_simulator_now(world.simulator) < 10 * MS && cw_simulator_step(world.simulator)) {
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < 2; i++) {
            const struct cw_link *link = cw_simulator_link_down(world.simulator, i);
            bytes += cw_link_queue_bytes(link, cw_simulator_now(world.simulator));
        }
        most = bytes > most ? bytes : most;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct cw_link_counters *counters = &cw_simulator_link_down(world.simulator, i)->counters;
        assert_int_equal(counters->offered, counters->arrived + counters->dropped_queue);
        dropped += counters->dropped_queue;
        arrived += counters->arrived;
    }
    assert_int_equal(arrived + dropped, (HOSTS - 2) * FRAMES);
    assert_in_range(most, BUFFER - LENGTH, BUFFER + config.down.overhead_bytes); /* both ports together */
    assert_true(dropped > 0);
}

/* ---- taps, limits ---- */

struct tap_log {
    uint64_t departures, arrivals, bytes;
    uint64_t last_departure_ns;
};

static void tap_note(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                     const uint8_t *frame, uint32_t length)
{
    struct tap_log *log = context;
    assert_int_equal(node, kind == CW_SIMULATOR_DEPARTURE ? 0 : 1);
    assert_int_equal(frame[12], 0x88);
    if (kind == CW_SIMULATOR_DEPARTURE) {
        assert_true(time_ns >= log->last_departure_ns + 99); /* (100 + 24) bytes at 10 Gb/s */
        log->last_departure_ns = time_ns;
        log->departures++;
    } else {
        log->arrivals++;
        log->bytes += length;
    }
}

static void test_tap(void **state)
{
    struct tap_log log = {0};
    config.down.loss = 0.5;
    world_open(1, 2);
    cw_simulator_tap_set(world.simulator, tap_note, &log);
    send(0, 1, 1000);
    cw_simulator_run_until(world.simulator, 10 * MS);
    assert_int_equal(log.departures, 1000);
    assert_int_equal(log.arrivals, world.hosts[1].received);
    assert_int_equal(log.bytes, LENGTH * log.arrivals);
}

static void test_bad_configurations(void **state)
{
    struct cw_simulator_config of_all;
    struct cw_simulator *simulator = NULL;
    struct cw_port *port;
    cw_simulator_config_init(&of_all);
    of_all.mtu_bytes = 20;
    assert_int_equal(cw_simulator_create(&of_all, &simulator), CW_ERROR_ARGUMENT);
    cw_simulator_config_init(&of_all);
    of_all.turn_ns = 0;
    assert_int_equal(cw_simulator_create(&of_all, &simulator), CW_ERROR_ARGUMENT);
    assert_null(simulator);
    cw_simulator_config_init(&of_all);
    of_all.bridge_count_max = 1;
    of_all.node_count_max = 2;
    assert_int_equal(cw_simulator_create(&of_all, &simulator), CW_OK);
    assert_int_equal(cw_simulator_node_add(simulator, 0, &config), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_simulator_star(simulator, 3, &config), CW_ERROR_LIMIT);
    assert_int_equal(cw_simulator_star(simulator, 1, &config), CW_ERROR_LIMIT);
    assert_int_equal(cw_port_sim_open(simulator, 2, &port), CW_ERROR_ARGUMENT);
    config.send_queue_packets = 100;
    assert_int_equal(cw_simulator_node_add(simulator, 0, &config), CW_ERROR_ARGUMENT);
    cw_simulator_destroy(simulator);
}

static void test_memory_of_a_node(void **state)
{
    assert_true(cw_simulator_node_bytes(&config) <= 12 * 1024); /* what simulator.h says */
}

int main(void)
{
    return TESTS_RUN_EACH(set_up, tear_down, test_time_of_one_packet, test_scripted_events, test_deadlines,
                          test_crash_and_restart, test_inject, test_switches, test_tree_of_bridges_learns,
                          test_shared_buffer, test_tap, test_bad_configurations, test_memory_of_a_node);
}
