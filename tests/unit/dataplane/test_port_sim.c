/* The port of a simulated node: queues that push back, buffers, multicast filters, gather. */
#include "tests/unit/dataplane/simulated_hosts.h"

static void test_send_queue_pushes_back(void **state)
{
    config.send_queue_packets = 16;
    config.up.rate_bps = 100000000; /* slow: a packet takes 9.92 us */
    world_open(1, 2);
    send(0, 1, 200);
    cw_simulator_run_until(world.simulator, 0);
    assert_int_equal(world.hosts[0].to_send, 200 - 16);
    assert_true(cw_simulator_node_counters(world.simulator, 0)->refused > 0);
    cw_simulator_run_until(world.simulator, 50 * MS); /* turned again by itself as packets leave */
    assert_int_equal(world.hosts[0].to_send, 0);
    assert_int_equal(world.hosts[1].received, 200);
    assert_int_equal(world.hosts[1].out_of_order, 0);
    /* The line was never idle. */
    assert_in_range(world.hosts[1].last_ns - world.hosts[1].first_ns, 199 * 9920 - 1000, 199 * 9920 + 1000);
}

static void test_output_queue_limit(void **state)
{
    const struct cw_link *link;
    uint64_t sent = 0;

    config.down.queue_limit_bytes = 20000;
    world_open(1, 9);
    for (uint32_t i = 0; i < 8; i++) {
        world.hosts[i].length = 1000;
        send(i, 8, 200);
    }
    cw_simulator_run_until(world.simulator, 100 * MS);
    link = cw_simulator_link_down(world.simulator, 8);
    for (uint32_t i = 0; i < 8; i++) {
        sent += cw_simulator_node_counters(world.simulator, i)->sent;
    }
    assert_int_equal(sent, 1600);
    assert_true(link->counters.dropped_queue > 1000);
    assert_int_equal(world.hosts[8].received, 1600 - link->counters.dropped_queue);
    assert_in_range(cw_link_queue_bytes_max(link), 20000 - 1024, 20000);
}

static void test_buffers_run_out(void **state)
{
    struct cw_simulator_config of_all;
    struct cw_transmit packets[BURST];
    struct cw_simulator *simulator;
    struct cw_port *port;

    cw_simulator_config_init(&of_all);
    of_all.packet_count_max = 8;
    assert_int_equal(cw_simulator_create(&of_all, &simulator), CW_OK);
    assert_int_equal(cw_simulator_star(simulator, 1, &config), 0);
    assert_int_equal(cw_port_sim_open(simulator, 0, &port), CW_OK);
    assert_int_equal(cw_port_reserve(port, packets, BURST), 8);
    assert_int_equal(cw_simulator_counters(simulator)->refused_reserve, BURST - 8);
    assert_int_equal(cw_simulator_inject(simulator, 0, (const uint8_t[64]){0}, 64), CW_ERROR_LIMIT);
    cw_port_cancel(port, packets, 8);
    assert_int_equal(cw_port_reserve(port, packets, 3), 3);
    cw_port_cancel(port, packets, 3);
    cw_port_close(port);
    cw_simulator_destroy(simulator);
}

static void test_multicast(void **state)
{
    config.group_count_max = 2;
    world_open(1, 10);
    for (uint32_t i = 1; i < 6; i++) {
        assert_int_equal(cw_port_join(world.hosts[i].port, GROUP), CW_OK);
        assert_int_equal(cw_port_join(world.hosts[i].port, GROUP), CW_OK);
    }
    assert_int_equal(cw_port_leave(world.hosts[4].port, GROUP), CW_OK); /* as often as it was joined */
    assert_int_equal(cw_port_leave(world.hosts[5].port, GROUP), CW_OK);
    assert_int_equal(cw_port_leave(world.hosts[5].port, GROUP), CW_OK);
    assert_int_equal(cw_port_leave(world.hosts[5].port, GROUP), CW_ERROR_NOT_FOUND);
    send(0, HOSTS_MAX + 1, 100);
    cw_simulator_run_until(world.simulator, 10 * MS);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(world.hosts[i].received, i >= 1 && i < 5 ? 100 : 0);
        assert_int_equal(cw_simulator_link_down(world.simulator, i)->counters.offered, i >= 1 && i < 5 ? 100 : 0);
    }
    assert_int_equal(cw_simulator_link_up(world.simulator, 0)->counters.offered, 100); /* replicated by the bridge */
    assert_int_equal(cw_port_join(world.hosts[1].port, (const uint8_t[6]){1, 0, 0x5e, 0, 0, 9}), CW_OK);
    assert_int_equal(cw_port_join(world.hosts[1].port, (const uint8_t[6]){1, 0, 0x5e, 0, 0, 8}), CW_ERROR_LIMIT);
    assert_int_equal(cw_port_join(world.hosts[1].port, (const uint8_t[6]){2, 0, 0, 0, 0, 9}), CW_ERROR_ARGUMENT);
}

static void test_gather(void **state)
{
    struct cw_port_memory *memory;
    struct cw_transmit packet;
    uint8_t source[64];

    config.up.rate_bps = 1000000; /* slow, so that the NIC holds the packet for a while */
    world_open(1, 2);
    memset(source, 0, sizeof(source));
    assert_int_equal(cw_port_memory_register(world.hosts[0].port, source, sizeof(source), &memory), CW_OK);
    assert_int_equal(cw_port_reserve(world.hosts[0].port, &packet, 1), 1);
    world.hosts[0].target = 1;
    frame_write(&world.hosts[0], &packet);
    packet.length = 22; /* header here, the rest in two pieces */
    packet.piece_count = 2;
    packet.pieces[0] = (struct cw_piece){.data = source, .length = 40, .memory = memory};
    packet.pieces[1] = (struct cw_piece){.data = source + 50, .length = 14, .memory = memory};
    assert_int_equal(cw_port_transmit(world.hosts[0].port, &packet, 1), 1);
    assert_int_equal(cw_port_memory_unregister(world.hosts[0].port, memory), CW_ERROR_BUSY);
    cw_simulator_run_until(world.simulator, 10 * MS);
    assert_int_equal(world.hosts[1].received, 1);
    assert_int_equal(world.hosts[1].damaged, 0);
    assert_int_equal(cw_simulator_node_counters(world.simulator, 1)->received_bytes, 22 + 54);
    assert_int_equal(cw_port_memory_unregister(world.hosts[0].port, memory), CW_OK);
}

static void test_no_gather(void **state)
{
    struct cw_port_memory *memory;
    uint8_t source[8];

    config.gather = false;
    world_open(1, 1);
    assert_false(world.hosts[0].port->info.gather);
    assert_int_equal(cw_port_memory_register(world.hosts[0].port, source, 8, &memory), CW_ERROR_UNSUPPORTED);
}

int main(void)
{
    return TESTS_RUN_EACH(set_up, tear_down, test_send_queue_pushes_back, test_output_queue_limit, test_buffers_run_out,
                          test_multicast, test_gather, test_no_gather);
}
