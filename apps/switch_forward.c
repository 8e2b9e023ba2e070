/* The data path of the switch: in, across the bridge, through a link, out. */
#include "apps/switch_fabric.h"

#include <assert.h>
#include <string.h>

#include "dataplane/core/clock.h"

enum { RELEASE_MAX = 256, PREFETCH_AHEAD = 4 };

/* ---- frames on their way ---- */

static struct switch_held *held_take(struct switch_fabric *fabric)
{
    struct switch_held *held = fabric->pool_free;
    if (held != NULL) {
        fabric->pool_free = held->next;
        return held;
    }
    if (fabric->pool_used == fabric->pool_count) {
        return NULL;
    }
    return (struct switch_held *)(fabric->pool + fabric->pool_stride * fabric->pool_used++);
}

static void held_give(struct switch_fabric *fabric, struct switch_held *held)
{
    held->next = fabric->pool_free;
    fabric->pool_free = held;
}

static void frame_hold(struct switch_fabric *fabric, uint32_t index, uint64_t arrival_ns,
                       const struct cw_received *frame)
{
    struct switch_held *held = held_take(fabric);
    if (held == NULL) {
        fabric->ports[index].counters.dropped_pool++;
        return;
    }
    held->port = index;
    held->length = frame->length;
    memcpy(held->data, frame->data, frame->length);
    struct cw_heap_entry entry = {.time_ns = arrival_ns, .sequence = fabric->held_sequence++, .object = held};
    bool pushed = cw_heap_push(&fabric->heap, &entry, false);
    assert(pushed && "the heap has room for the whole pool");
    (void)pushed;
}

/* ---- out ---- */

static void pending_drop(struct switch_port *port, uint64_t *counter)
{
    *counter += port->pending_count;
    cw_port_cancel(port->port, port->pending, port->pending_count);
    port->pending_count = 0;
    port->full_since_ns = 0;
}

static void port_flush(struct switch_port *port, uint64_t now_ns)
{
    if (port->pending_count == 0) {
        return;
    }
    uint32_t sent = cw_port_transmit(port->port, port->pending, port->pending_count);
    for (uint32_t i = 0; i < sent; i++) {
        port->counters.out_bytes += port->pending[i].length;
    }
    port->counters.out_frames += sent;
    port->pending_count -= sent;
    if (port->pending_count == 0) {
        port->full_since_ns = 0;
        return;
    }
    memmove(port->pending, port->pending + sent, port->pending_count * sizeof(port->pending[0]));
    if (sent != 0 || port->full_since_ns == 0) {
        port->full_since_ns = now_ns;
    }
    if (!cw_port_link_up(port->port)) {
        pending_drop(port, &port->counters.dropped_port_down);
    } else if (now_ns - port->full_since_ns > SWITCH_FULL_NS) {
        pending_drop(port, &port->counters.dropped_port_full);
    }
}

static void frame_send(struct switch_port *port, uint64_t now_ns, const uint8_t *data, uint32_t length)
{
    /* A port that is stuck is tried once a turn, not once a frame. */
    if (port->pending_count == CW_PORT_BURST_MAX && port->full_since_ns == 0) {
        port_flush(port, now_ns);
    }
    if (port->pending_count == CW_PORT_BURST_MAX ||
        cw_port_reserve(port->port, &port->pending[port->pending_count], 1) == 0) {
        port->counters.dropped_port_full++;
        return;
    }
    struct cw_transmit *packet = &port->pending[port->pending_count++];
    memcpy(packet->data, data, length);
    packet->length = length;
}

static uint32_t frames_release(struct switch_fabric *fabric, uint64_t now_ns)
{
    uint32_t count = 0;
    while (count < RELEASE_MAX && fabric->heap.count > 0 && fabric->heap.entries[0].time_ns <= now_ns) {
        struct switch_held *held = cw_heap_take(&fabric->heap, 0, false).object;
        frame_send(&fabric->ports[held->port], now_ns, held->data, held->length);
        held_give(fabric, held);
        count++;
    }
    return count;
}

/* ---- in ---- */

static void frame_offer(struct switch_fabric *fabric, uint32_t index, uint64_t now_ns, const struct cw_received *frame)
{
    struct switch_port *port = &fabric->ports[index];
    if (frame->length > CW_BRIDGE_FRAME_MIN_BYTES + port->port->info.mtu_bytes) {
        port->counters.dropped_oversize++;
        return;
    }
    struct cw_link_verdict verdict;
    cw_link_offer(&port->link, now_ns, frame->length, &verdict);
    for (uint32_t i = 0; i < verdict.delivery_count; i++) {
        if (verdict.deliveries[i].arrival_ns <= now_ns) {
            frame_send(port, now_ns, frame->data, frame->length);
        } else {
            frame_hold(fabric, index, verdict.deliveries[i].arrival_ns, frame);
        }
    }
}

/* *now_ns becomes the time at which the frames were taken: one that came after the turn began must not leave as if it had
 * come before. */
static uint32_t port_forward(struct switch_fabric *fabric, uint32_t index, uint64_t *now_ns)
{
    struct switch_port *port = &fabric->ports[index];
    struct cw_received frames[CW_PORT_BURST_MAX];
    uint32_t count = cw_port_receive(port->port, frames, CW_PORT_BURST_MAX);
    if (count == 0) {
        return 0;
    }
    *now_ns = cw_clock_ns();
    for (uint32_t i = 0; i < count; i++) {
        uint16_t outputs[SWITCH_PORTS_MAX];
        if (i + PREFETCH_AHEAD < count) {
            __builtin_prefetch(frames[i + PREFETCH_AHEAD].data);
        }
        port->counters.in_bytes += frames[i].length;
        uint32_t output_count =
            cw_bridge_forward(fabric->bridge, *now_ns, index, frames[i].data, frames[i].length, outputs);
        for (uint32_t j = 0; j < output_count; j++) {
            frame_offer(fabric, outputs[j], *now_ns, &frames[i]);
        }
    }
    port->counters.in_frames += count;
    cw_port_release(port->port, frames, count);
    return count;
}

uint32_t switch_fabric_turn(struct switch_fabric *fabric, uint64_t now_ns)
{
    uint32_t moved = frames_release(fabric, now_ns);
    for (uint32_t i = 0; i < fabric->config->port_count; i++) {
        moved += port_forward(fabric, i, &now_ns);
    }
    for (uint32_t i = 0; i < fabric->config->port_count; i++) {
        port_flush(&fabric->ports[i], now_ns);
    }
    return moved;
}
