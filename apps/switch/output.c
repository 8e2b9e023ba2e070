/* Frames that leave the switch at a port. */
#include <string.h>

#include "apps/switch/fabric.h"

static void pending_drop(struct switch_port *port, uint64_t *counter)
{
    *counter += port->pending_count;
    port->down->dropped_port += port->pending_count;
    cw_port_cancel(port->port, port->pending, port->pending_count);
    port->pending_count = 0;
    port->full_since_ns = 0;
}

void switch_port_flush(struct switch_port *port, uint64_t now_ns)
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
        switch_port_flush(port, now_ns);
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
