/* The data path of the switch at its ports: in and out; what is between them: switch/wan.c. */
#include <string.h>

#include "apps/switch/fabric.h"
#include "apps/switch/wan.h"
#include "dataplane/base/clock.h"

enum { PREFETCH_AHEAD = 4 };

/* ---- out ---- */

static void pending_drop(struct switch_port *port, uint64_t *counter)
{
    *counter += port->pending_count;
    port->down->dropped_port += port->pending_count;
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

void switch_port_send(struct switch_port *port, uint64_t now_ns, const uint8_t *data, uint32_t length)
{
    /* A port that is stuck is tried once a turn, not once a frame. */
    if (port->pending_count == CW_PORT_BURST_MAX && port->full_since_ns == 0) {
        port_flush(port, now_ns);
    }
    if (port->pending_count == CW_PORT_BURST_MAX ||
        cw_port_reserve(port->port, &port->pending[port->pending_count], 1) == 0) {
        port->counters.dropped_port_full++;
        port->down->dropped_port++;
        return;
    }
    struct cw_transmit *packet = &port->pending[port->pending_count++];
    memcpy(packet->data, data, length);
    packet->length = length;
}

/* ---- in ---- */

/* fabric->now_ns becomes the time at which the frames were taken: one that came after the turn began must not leave as
 * if it had come before. */
static uint32_t port_forward(struct switch_fabric *fabric, uint32_t index)
{
    struct switch_port *port = &fabric->ports[index];
    struct cw_received frames[CW_PORT_BURST_MAX];
    uint32_t count = cw_port_receive(port->port, frames, CW_PORT_BURST_MAX);
    if (count == 0) {
        return 0;
    }
    fabric->now_ns = cw_clock_ns();
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_AHEAD < count) {
            __builtin_prefetch(frames[i + PREFETCH_AHEAD].data);
        }
        port->counters.in_bytes += frames[i].length;
        switch_wan_enter(fabric, index, frames[i].data, frames[i].length);
    }
    port->counters.in_frames += count;
    cw_port_release(port->port, frames, count);
    return count;
}

bool switch_fabric_is_behind(const struct switch_fabric *fabric, uint64_t now_ns)
{
    return fabric->heap.count > 0 && fabric->heap.entries[0].time_ns <= now_ns;
}

uint32_t switch_fabric_turn(struct switch_fabric *fabric, uint64_t now_ns)
{
    fabric->now_ns = now_ns;
    uint32_t moved = switch_wan_release(fabric);
    bool is_behind = switch_fabric_is_behind(fabric, now_ns);
    for (uint32_t i = 0; i < fabric->config->port_count && !is_behind; i++) {
        moved += port_forward(fabric, i);
    }
    for (uint32_t i = 0; i < fabric->config->port_count; i++) {
        port_flush(&fabric->ports[i], fabric->now_ns);
    }
    return moved;
}
