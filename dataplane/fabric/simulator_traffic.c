#include <string.h>
#include <xxhash.h>

#include "dataplane/fabric/nic_sim.h"
#include "dataplane/fabric/simulator_state.h"

/* ---- packets ---- */

struct sim_packet *sim_packet_acquire(struct cw_simulator *simulator)
{
    struct sim_packet *packet = simulator->packet_free;

    if (packet) {
        simulator->packet_free = packet->next;
    } else if (simulator->packet_fresh < simulator->config.packet_count_max) {
        packet =
            (struct sim_packet *)(void *)(simulator->packets + simulator->packet_bytes * simulator->packet_fresh++);
    } else {
        return NULL;
    }
    packet->references = 1;
    packet->length = 0;
    packet->hashed = false;
    packet->corrupt = false;
    simulator->counters.packet_count++;
    if (simulator->counters.packet_count > simulator->counters.packet_count_seen_max) {
        simulator->counters.packet_count_seen_max = simulator->counters.packet_count;
    }
    return packet;
}

void sim_packet_drop(struct cw_simulator *simulator, struct sim_packet *packet)
{
    assert(packet->references > 0);
    if (--packet->references == 0) {
        packet->next = simulator->packet_free;
        simulator->packet_free = packet;
        simulator->counters.packet_count--;
    }
}

static struct sim_packet *packet_corrupt(struct cw_simulator *simulator, struct cw_link *link,
                                         const struct sim_packet *packet)
{
    struct sim_packet *copy = sim_packet_acquire(simulator);

    if (copy) {
        copy->length = packet->length;
        memcpy(copy->frame, packet->frame, packet->length);
        cw_link_corrupt(link, copy->frame, copy->length);
        copy->corrupt = true;
    } else {
        simulator->counters.dropped_packets++;
    }
    return copy;
}

/* ---- links ---- */

static struct sim_delivery *delivery_acquire(struct cw_simulator *simulator)
{
    struct sim_delivery *delivery = simulator->delivery_free;

    if (delivery) {
        simulator->delivery_free = delivery->next;
    } else if (simulator->delivery_fresh < simulator->config.delivery_count_max) {
        delivery = &simulator->delivery_records[simulator->delivery_fresh++];
    }
    return delivery;
}

static struct cw_heap_entry delivery_entry(struct sim_delivery *delivery)
{
    return (struct cw_heap_entry){.time_ns = delivery->arrival_ns, .sequence = delivery->sequence, .object = delivery};
}

/* Takes over the reference. */
static void delivery_plan(struct cw_simulator *simulator, struct sim_wire *wire, uint64_t arrival_ns,
                          struct sim_packet *packet)
{
    struct sim_delivery *delivery = delivery_acquire(simulator);
    struct cw_heap_entry entry;

    if (!delivery) {
        simulator->counters.dropped_deliveries++;
        sim_packet_drop(simulator, packet);
        return;
    }
    *delivery = (struct sim_delivery){
        .packet = packet,
        .wire = wire,
        .arrival_ns = arrival_ns,
        .sequence = simulator->sequence++,
        .in_line = !wire->first || wire->last->arrival_ns <= arrival_ns,
    };
    if (delivery->in_line && wire->first) {
        wire->last->next = delivery;
        wire->last = delivery;
        return;
    }
    if (delivery->in_line) {
        wire->first = wire->last = delivery;
    }
    entry = delivery_entry(delivery);
    cw_heap_push(&simulator->deliveries, &entry, false); /* there is room for every record */
}

uint64_t sim_wire_send(struct cw_simulator *simulator, struct sim_wire *wire, struct sim_packet *packet,
                       uint64_t time_ns)
{
    struct cw_link_verdict verdict;

    cw_link_offer(&wire->link, time_ns, packet->length, &verdict);
    for (uint32_t i = 0; i < verdict.delivery_count; i++) {
        struct sim_packet *delivered = packet;

        if (verdict.deliveries[i].corrupt) {
            delivered = packet_corrupt(simulator, &wire->link, packet);
        } else {
            packet->references++;
        }
        if (delivered) {
            delivery_plan(simulator, wire, verdict.deliveries[i].arrival_ns, delivered);
        }
    }
    return verdict.fate == CW_LINK_DELIVERED || verdict.fate == CW_LINK_DROP_LOSS ? verdict.departure_ns : time_ns;
}

/* ---- arrivals ---- */

/* Bytes in the queues of all ports of a bridge, if they share a buffer. */
static uint64_t buffer_used(const struct cw_simulator *simulator, const struct sim_bridge *bridge)
{
    uint64_t bytes = 0;

    for (uint32_t port = 0; port < bridge->port_used && bridge->buffer_bytes > 0; port++) {
        const struct sim_wire *wire = bridge->wires[port];

        bytes += wire ? cw_link_queue_bytes(&wire->link, simulator->now_ns) : 0;
    }
    return bytes;
}

static void bridge_arrive(struct cw_simulator *simulator, const struct sim_wire *wire, struct sim_packet *packet)
{
    struct sim_bridge *bridge = &simulator->bridges[wire->bridge];
    uint32_t count = cw_bridge_forward(bridge->bridge, simulator->now_ns, wire->bridge_port, packet->frame,
                                       packet->length, simulator->ports);
    uint64_t used = buffer_used(simulator, bridge);

    for (uint32_t i = 0; i < count; i++) {
        struct sim_wire *out = bridge->wires[simulator->ports[i]];

        if (!out) {
            continue; /* a port that nothing is connected to swallows what is flooded */
        }
        if (bridge->buffer_bytes > 0 && !out->link.down && used + packet->length > bridge->buffer_bytes) {
            cw_link_reject(&out->link, packet->length);
            continue;
        }
        used -= cw_link_queue_bytes(&out->link, simulator->now_ns);
        sim_wire_send(simulator, out, packet, simulator->now_ns);
        used += cw_link_queue_bytes(&out->link, simulator->now_ns);
    }
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

void sim_packet_digest(struct sim_packet *packet)
{
    if (!packet->hashed) {
        packet->hash = XXH3_64bits(packet->frame, packet->length);
        packet->hashed = true;
    }
}

static void arrival_digest(struct cw_simulator *simulator, const struct sim_node *node, struct sim_packet *packet)
{
    sim_packet_digest(packet);
    simulator->hash =
        mix(mix(mix(simulator->hash, simulator->now_ns), (uint64_t)node->index << 32 | packet->length), packet->hash);
}

/* True if the node has taken over the reference. */
static bool node_arrive(struct cw_simulator *simulator, struct sim_node *node, struct sim_packet *packet)
{
    uint32_t waiting = node->ring_tail - node->ring_head;

    if (!node->open || node->state == SIM_NODE_CRASHED) {
        node->counters.dropped_closed++;
        return false;
    }
    if (!sim_port_accepts(node, packet)) {
        node->counters.dropped_filter++;
        return false;
    }
    if (!sim_nic_accepts(node, packet)) {
        return false;
    }
    if (waiting == node->config.receive_ring_packets) {
        node->counters.dropped_overflow++;
        return false;
    }
    node->ring[node->ring_tail++ & (node->config.receive_ring_packets - 1)] = packet;
    node->counters.received++;
    node->counters.received_bytes += packet->length;
    arrival_digest(simulator, node, packet);
    if (simulator->tap) {
        simulator->tap(simulator->tap_context, CW_SIMULATOR_ARRIVAL, simulator->now_ns, node->index, packet->frame,
                       packet->length);
    }
    sim_node_wake(node, simulator->now_ns + node->config.processing_delay_ns + sim_nic_delay_ns(node));
    return true;
}

/* A frame has come to the end of a wire; takes over the reference. */
static void wire_arrive(struct cw_simulator *simulator, struct sim_wire *wire, struct sim_packet *packet)
{
    simulator->counters.packet_events++;
    wire->link.counters.arrived++;
    wire->link.counters.arrived_bytes += packet->length;
    if (!wire->node) {
        bridge_arrive(simulator, wire, packet);
        sim_packet_drop(simulator, packet);
    } else if (!node_arrive(simulator, wire->node, packet)) {
        sim_packet_drop(simulator, packet);
    }
}

/* Has the cache fetch what the events after this one will touch: with many nodes each of them is elsewhere in memory.
 * */
static void upcoming_prefetch(const struct cw_heap *deliveries)
{
    if (deliveries->count > 0) {
        const struct sim_delivery *delivery = deliveries->entries[0].object;

        __builtin_prefetch(delivery->packet);
        __builtin_prefetch(delivery->wire);
    }
    for (uint32_t i = 1; i < 5 && i < deliveries->count; i++) {
        __builtin_prefetch(deliveries->entries[i].object);
    }
}

void sim_delivery_run(struct cw_simulator *simulator)
{
    struct cw_heap *heap = &simulator->deliveries;
    struct sim_delivery *delivery = heap->entries[0].object;
    struct sim_delivery *next = delivery->in_line ? delivery->next : NULL;
    struct sim_packet *packet = delivery->packet;
    struct sim_wire *wire = delivery->wire;

    if (delivery->in_line) {
        wire->first = next;
    }
    if (next) {
        struct cw_heap_entry entry = delivery_entry(next);

        cw_heap_down(heap, 0, &entry, false); /* in its predecessor's place */
    } else {
        cw_heap_remove(heap, 0, false);
    }
    delivery->next = simulator->delivery_free;
    simulator->delivery_free = delivery;
    upcoming_prefetch(heap);
    wire_arrive(simulator, wire, packet);
}

void sim_node_ring_clear(struct sim_node *node)
{
    while (node->ring_head != node->ring_tail) {
        sim_packet_drop(node->simulator, node->ring[node->ring_head++ & (node->config.receive_ring_packets - 1)]);
    }
}

int cw_simulator_inject(struct cw_simulator *simulator, uint32_t node, const uint8_t *frame, uint32_t length)
{
    struct sim_packet *packet;

    if (node >= simulator->node_count || length == 0 || length > 14 + simulator->config.mtu_bytes) {
        return CW_ERROR_ARGUMENT;
    }
    packet = sim_packet_acquire(simulator);
    if (!packet) {
        return CW_ERROR_LIMIT;
    }
    packet->length = length;
    memcpy(packet->frame, frame, length);
    sim_wire_send(simulator, &simulator->nodes[node].down, packet, simulator->now_ns);
    sim_packet_drop(simulator, packet);
    return CW_OK;
}
