#include "dataplane/fabric/port_sim.h"

#include <string.h>

#include "dataplane/fabric/nic_sim.h"
#include "dataplane/fabric/simulator_state.h"

enum { ETHERNET_BYTES = 14 };

static struct sim_node *node_of(struct cw_port *port)
{
    return (struct sim_node *)port; /* port is its first member */
}

uint64_t sim_mac_key(const uint8_t mac[6])
{
    uint64_t key = 0;

    for (int i = 0; i < 6; i++) {
        key = key << 8 | mac[i];
    }
    return key;
}

/* ---- in ---- */

bool sim_port_accepts(const struct sim_node *node, const struct sim_packet *packet)
{
    static const uint8_t broadcast[6] = {255, 255, 255, 255, 255, 255};
    const uint8_t *frame = packet->frame;
    uint64_t key;

    if (packet->length < sizeof(broadcast)) {
        return false;
    }
    if (memcmp(frame, node->port.info.mac, 6) == 0) {
        return true;
    }
    if ((frame[0] & 1) == 0) {
        return false;
    }
    if (memcmp(frame, broadcast, 6) == 0) {
        return true;
    }
    key = sim_mac_key(frame);
    for (uint32_t i = 0; i < node->group_count; i++) {
        if (node->groups[i] == key) {
            return true;
        }
    }
    return false;
}

/* A packet for the receiver alone: copies in flight, and those of a multicast, share their bytes. NULL: there is no
 * room for it. */
static struct sim_packet *own_packet(struct cw_simulator *simulator, struct sim_packet *packet)
{
    struct sim_packet *own = packet;

    if (packet->references > 1) {
        own = sim_packet_acquire(simulator);
        if (own) {
            own->length = packet->length;
            memcpy(own->frame, packet->frame, packet->length);
        } else {
            simulator->counters.dropped_packets++;
        }
        sim_packet_drop(simulator, packet);
    }
    return own;
}

static uint32_t port_receive(struct cw_port *port, struct cw_received *packets, uint32_t count_max)
{
    struct sim_node *node = node_of(port);
    uint32_t count = 0;

    assert(node->open && count_max <= CW_PORT_BURST_MAX);
    while (count < count_max && node->ring_head != node->ring_tail) {
        struct sim_packet *packet =
            own_packet(node->simulator, node->ring[node->ring_head++ & (node->config.receive_ring_packets - 1)]);

        if (!packet) {
            continue;
        }
        packets[count] = (struct cw_received){.data = packet->frame, .length = packet->length, .handle = packet};
        if (!node->nic.is_plain && !sim_nic_receive(node, packet, &packets[count])) {
            sim_packet_drop(node->simulator, packet);
            continue;
        }
        count++;
    }
    if (node->ring_head == node->ring_tail) {
        node->ring_head = node->ring_tail = 0; /* a ring that runs empty again and again stays in the cache */
    }
    return count;
}

static void port_release(struct cw_port *port, struct cw_received *packets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sim_packet_drop(node_of(port)->simulator, packets[i].handle);
    }
}

/* ---- out ---- */

static uint32_t port_reserve(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    struct cw_simulator *simulator = node_of(port)->simulator;

    assert(node_of(port)->open && count <= CW_PORT_BURST_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct sim_packet *packet = sim_packet_acquire(simulator);

        if (!packet) {
            simulator->counters.refused_reserve += count - i;
            return i;
        }
        packets[i].data = packet->frame;
        packets[i].length = 0;
        packets[i].piece_count = 0;
        packets[i].departure_ns = 0;
        packets[i].alone = false;
        packets[i].checksum = false;
        packets[i].handle = packet;
    }
    return count;
}

static void port_cancel(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sim_packet_drop(node_of(port)->simulator, packets[i].handle);
    }
}

/* Copies the pieces behind the header, as the NIC would gather them on the line. */
static void frame_complete(const struct sim_node *node, const struct cw_transmit *transmit, struct sim_packet *packet)
{
    uint32_t frame_bytes_max = ETHERNET_BYTES + node->port.info.mtu_bytes;

    assert(transmit->data == packet->frame && packet->references == 1);
    assert(transmit->length >= ETHERNET_BYTES && transmit->length <= frame_bytes_max);
    assert(transmit->piece_count == 0 || (node->port.info.gather && transmit->piece_count <= CW_PORT_PIECES_MAX));
    packet->length = transmit->length;
    for (uint32_t i = 0; i < transmit->piece_count; i++) {
        const struct cw_piece *piece = &transmit->pieces[i];
        const struct cw_port_memory *memory = piece->memory;

        assert((const uint8_t *)piece->data >= memory->base && piece->length <= memory->bytes &&
               (size_t)((const uint8_t *)piece->data - memory->base) <= memory->bytes - piece->length);
        assert(piece->length <= frame_bytes_max - packet->length);
        memcpy(packet->frame + packet->length, piece->data, piece->length);
        packet->length += piece->length;
    }
}

static void packet_send(struct sim_node *node, const struct cw_transmit *transmit)
{
    struct cw_simulator *simulator = node->simulator;
    struct sim_packet *packet = transmit->handle;
    uint64_t time_ns, departure_ns;

    frame_complete(node, transmit, packet);
    time_ns = sim_nic_transmit(node, transmit, packet);
    sim_packet_digest(packet);
    departure_ns = sim_wire_send(simulator, &node->up, packet, time_ns);
    node->departures[node->departure_tail++ & (node->config.send_queue_packets - 1)] = departure_ns;
    for (uint32_t i = 0; i < transmit->piece_count; i++) {
        if (transmit->pieces[i].memory->busy_until_ns < departure_ns) {
            transmit->pieces[i].memory->busy_until_ns = departure_ns;
        }
    }
    node->counters.sent++;
    node->counters.sent_bytes += packet->length;
    if (simulator->tap) {
        simulator->tap(simulator->tap_context, CW_SIMULATOR_DEPARTURE, departure_ns, node->index, packet->frame,
                       packet->length);
    }
    sim_packet_drop(simulator, packet);
}

/* Packets handed over and not yet out. */
static uint32_t send_queue_packets(struct sim_node *node)
{
    uint32_t mask = node->config.send_queue_packets - 1;

    while (node->departure_head != node->departure_tail &&
           node->departures[node->departure_head & mask] <= node->simulator->now_ns) {
        node->departure_head++;
    }
    if (node->departure_head == node->departure_tail) {
        node->departure_head = node->departure_tail = 0; /* stays in the cache */
    }
    return node->departure_tail - node->departure_head;
}

/* When half of the packets in the send queue, which is not empty, are out. */
static uint64_t half_out_ns(const struct sim_node *node)
{
    uint32_t waiting = node->departure_tail - node->departure_head;

    return node->departures[(node->departure_head + (waiting - 1) / 2) & (node->config.send_queue_packets - 1)];
}

static uint32_t port_transmit(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    struct sim_node *node = node_of(port);
    uint32_t taken = 0;

    assert(node->open);
    if (node->state == SIM_NODE_CRASHED) {
        port_cancel(port, packets, count);
        return count;
    }
    for (; taken < count; taken++) {
        /* Counted each time, since a packet may leave at once (no rate, or the link is down). */
        if (send_queue_packets(node) == node->config.send_queue_packets) {
            node->counters.refused += count - taken;
            sim_node_wake(node, half_out_ns(node));
            break;
        }
        packet_send(node, &packets[taken]);
    }
    return taken;
}

/* ---- groups, memory, waiting ---- */

static uint32_t group_find(const struct sim_node *node, uint64_t key)
{
    uint32_t i = 0;

    while (i < node->group_count && node->groups[i] != key) {
        i++;
    }
    return i;
}

static int port_join(struct cw_port *port, const uint8_t mac[6])
{
    struct sim_node *node = node_of(port);
    uint64_t key = sim_mac_key(mac);

    if ((mac[0] & 1) == 0) {
        return CW_ERROR_ARGUMENT;
    }
    uint32_t i = group_find(node, key);
    if (i < node->group_count) {
        node->group_joins[i]++;
        return CW_OK;
    }
    if (node->group_count == node->config.group_count_max) {
        return CW_ERROR_LIMIT;
    }
    node->group_joins[node->group_count] = 1;
    node->groups[node->group_count++] = key;
    sim_group_joined(node, mac);
    return CW_OK;
}

static int port_leave(struct cw_port *port, const uint8_t mac[6])
{
    struct sim_node *node = node_of(port);
    uint32_t i = group_find(node, sim_mac_key(mac));

    if (i == node->group_count) {
        return CW_ERROR_NOT_FOUND;
    }
    if (--node->group_joins[i] > 0) {
        return CW_OK;
    }
    node->groups[i] = node->groups[--node->group_count];
    node->group_joins[i] = node->group_joins[node->group_count];
    sim_group_left(node, mac);
    return CW_OK;
}

static void groups_leave(struct sim_node *node)
{
    while (node->group_count > 0) {
        uint64_t key = node->groups[--node->group_count];
        uint8_t mac[6];

        for (int i = 0; i < 6; i++) {
            mac[i] = (uint8_t)(key >> (40 - 8 * i));
        }
        sim_group_left(node, mac);
    }
}

static int port_memory_register(struct cw_port *port, void *base, size_t bytes, struct cw_port_memory **memory_out)
{
    struct sim_node *node = node_of(port);
    struct cw_port_memory *memory;

    if (!node->port.info.gather) {
        return CW_ERROR_UNSUPPORTED;
    }
    memory = malloc(sizeof(*memory));
    if (!memory) {
        return CW_ERROR_SYSTEM;
    }
    *memory = (struct cw_port_memory){.next = node->memories, .base = base, .bytes = bytes};
    node->memories = memory;
    *memory_out = memory;
    return CW_OK;
}

static int port_memory_unregister(struct cw_port *port, struct cw_port_memory *memory)
{
    struct sim_node *node = node_of(port);
    struct cw_port_memory **link = &node->memories;

    if (memory->busy_until_ns > node->simulator->now_ns) {
        return CW_ERROR_BUSY;
    }
    while (*link != memory) {
        assert(*link); /* registered with this port */
        link = &(*link)->next;
    }
    *link = memory->next;
    free(memory);
    return CW_OK;
}

static bool port_link_up(struct cw_port *port)
{
    const struct sim_node *node = node_of(port);

    return node->state != SIM_NODE_CRASHED && !node->up.link.down && !node->down.link.down;
}

static void port_sleep(struct cw_port *port, uint64_t timeout_ns)
{
    (void)port;
    (void)timeout_ns; /* virtual time passes only in the simulator */
}

static void port_wake(struct cw_port *port)
{
    sim_node_wake(node_of(port), node_of(port)->simulator->now_ns);
}

static void port_close(struct cw_port *port)
{
    struct sim_node *node = node_of(port);

    assert(node->open);
    sim_node_ring_clear(node);
    groups_leave(node);
    while (node->memories) {
        struct cw_port_memory *next = node->memories->next;

        free(node->memories);
        node->memories = next;
    }
    node->open = false;
    node->turn = NULL;
    sim_node_rest(node);
}

void sim_port_init(struct sim_node *node)
{
    static const struct cw_port_ops ops = {
        .receive = port_receive,
        .release = port_release,
        .reserve = port_reserve,
        .transmit = port_transmit,
        .cancel = port_cancel,
        .join = port_join,
        .leave = port_leave,
        .memory_register = port_memory_register,
        .memory_unregister = port_memory_unregister,
        .link_up = port_link_up,
        .sleep = port_sleep,
        .wake = port_wake,
        .close = port_close,
        .claim = sim_nic_claim,
        .doubt = sim_nic_doubt,
    };

    node->port.ops = &ops;
    node->port.info = (struct cw_port_info){
        .mtu_bytes = node->simulator->config.mtu_bytes,
        .rate_bps = node->config.up.rate_bps,
        .gather = node->config.gather,
        .wait = CW_PORT_WAIT_NONE,
        .driver = "sim",
    };
    memcpy(node->port.info.mac, node->config.mac, 6);
}

void cw_port_sim_nic(struct cw_simulator *simulator, uint32_t node, const struct cw_simulator_nic *nic)
{
    assert(node < simulator->node_count);
    sim_nic_set(&simulator->nodes[node], nic);
}

struct cw_port *cw_port_sim(struct cw_simulator *simulator, uint32_t node)
{
    assert(node < simulator->node_count);
    return &simulator->nodes[node].port;
}

int cw_port_sim_open(struct cw_simulator *simulator, uint32_t node_index, struct cw_port **port)
{
    struct sim_node *node;

    if (node_index >= simulator->node_count) {
        return CW_ERROR_ARGUMENT;
    }
    node = &simulator->nodes[node_index];
    if (node->open) {
        return CW_ERROR_BUSY;
    }
    if (node->state == SIM_NODE_CRASHED) {
        return CW_ERROR_CLOSED;
    }
    node->open = true;
    *port = &node->port;
    return CW_OK;
}
