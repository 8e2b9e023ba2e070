/* What test_simulator.c uses: hosts that send numbered frames and check what arrives, in a star. */
#pragma once

#include "dataplane/fabric/port_sim.h"
#include "tests/test.h"

enum { HOSTS_MAX = 64, LENGTH = 100, BURST = 32 };

static const uint64_t MS = 1000000u;
static const uint8_t GROUP[6] = {1, 0, 0x5e, 1, 2, 3};

/* ---- a host: sends as requested, and notes arrivals ---- */

struct host {
    struct cw_simulator *simulator;
    struct cw_port *port;
    uint32_t index;
    struct cw_random random;
    uint32_t to_send; /* packets still to be sent ... */
    uint32_t target;  /* ... to this host, HOSTS_MAX: to any, HOSTS_MAX + 1: to the group */
    uint32_t target_count;
    uint32_t length;
    uint32_t take_max; /* packets taken in a turn */
    uint64_t received;
    uint64_t damaged;
    uint32_t number; /* of the next packet sent */
    uint64_t turns;
    uint64_t first_ns, last_ns; /* of arrivals */
    uint64_t deadline_ns;
};

struct world {
    struct cw_simulator *simulator;
    struct host hosts[HOSTS_MAX];
    uint32_t count;
};

/* Of the test that runs: closed at its end. */
static struct world world;
static struct cw_simulator_node_config config;

static inline void frame_write(struct host *host, struct cw_transmit *packet)
{
    uint32_t to = host->target;
    if (to == HOSTS_MAX) { /* any but itself */
        to = (host->index + 1 + (uint32_t)cw_random_below(&host->random, host->target_count - 1)) % host->target_count;
    }
    memcpy(packet->data, to > HOSTS_MAX ? GROUP : cw_simulator_mac(host->simulator, to), 6);
    memcpy(packet->data + 6, host->port->info.mac, 6);
    packet->data[12] = 0x88;
    packet->data[13] = 0xb5;
    memcpy(packet->data + 14, &host->index, 4);
    memcpy(packet->data + 18, &host->number, 4);
    memset(packet->data + 22, (int)(host->number & 0xff), host->length - 22);
    packet->length = host->length;
    host->number++;
}

static inline void host_send(struct host *host)
{
    while (host->to_send > 0) {
        struct cw_transmit packets[BURST];
        uint32_t count = cw_port_reserve(host->port, packets, host->to_send < BURST ? host->to_send : BURST);
        uint32_t number = host->number;
        uint32_t taken;
        for (uint32_t i = 0; i < count; i++) {
            frame_write(host, &packets[i]);
        }
        taken = cw_port_transmit(host->port, packets, count);
        cw_port_cancel(host->port, packets + taken, count - taken);
        host->number = number + taken;
        host->to_send -= taken;
        if (taken < count || count == 0) {
            break;
        }
    }
}

static inline void frame_check(struct host *host, const struct cw_received *packet)
{
    uint32_t number;
    memcpy(&number, packet->data + 18, 4);
    for (uint32_t i = 22; i < packet->length; i++) {
        if (packet->data[i] != (number & 0xff)) {
            host->damaged++;
            return;
        }
    }
}

static inline uint64_t host_turn(void *context, uint64_t now_ns)
{
    struct host *host = context;
    struct cw_received packets[BURST];
    uint32_t count = cw_port_receive(host->port, packets, host->take_max);
    uint64_t deadline_ns = host->deadline_ns;
    assert_int_equal(now_ns, cw_simulator_now(host->simulator));
    for (uint32_t i = 0; i < count; i++) {
        frame_check(host, &packets[i]);
    }
    cw_port_release(host->port, packets, count);
    if (count > 0 && host->received == 0) {
        host->first_ns = now_ns;
    }
    host->last_ns = count > 0 ? now_ns : host->last_ns;
    host->received += count;
    host->turns++;
    host->deadline_ns = CW_SIMULATOR_NEVER;
    host_send(host);
    return deadline_ns;
}

static inline void host_start(uint32_t index)
{
    struct host *host = &world.hosts[index];
    *host = (struct host){
        .simulator = world.simulator,
        .index = index,
        .target_count = world.count,
        .length = LENGTH,
        .take_max = BURST,
        .deadline_ns = CW_SIMULATOR_NEVER,
    };
    cw_random_seed(&host->random, index);
    assert_int_equal(cw_port_sim_open(world.simulator, index, &host->port), CW_OK);
    cw_simulator_attach(world.simulator, index, host_turn, host);
}

static inline void world_open(uint64_t seed, uint32_t count)
{
    struct cw_simulator_config of_all;
    cw_simulator_config_init(&of_all);
    of_all.seed = seed;
    of_all.node_count_max = HOSTS_MAX;
    of_all.packet_count_max = 4096;
    assert_int_equal(cw_simulator_create(&of_all, &world.simulator), CW_OK);
    assert_int_equal(cw_simulator_star(world.simulator, count, &config), 0);
    world.count = count;
    for (uint32_t i = 0; i < count; i++) {
        host_start(i);
    }
}

/* Every buffer must have come back. */
static inline void world_close(void)
{
    assert_int_equal(cw_simulator_counters(world.simulator)->packet_count, 0);
    for (uint32_t i = 0; i < world.count; i++) {
        cw_port_close(world.hosts[i].port);
    }
    cw_simulator_destroy(world.simulator);
    world = (struct world){0};
}

static int set_up(void **state)
{
    cw_simulator_node_config_init(&config);
    return 0;
}

static int tear_down(void **state)
{
    if (world.simulator != NULL) {
        world_close();
    }
    return 0;
}

static inline void send(uint32_t from, uint32_t to, uint32_t count)
{
    world.hosts[from].target = to;
    world.hosts[from].to_send = count;
    cw_port_wake(world.hosts[from].port);
}
