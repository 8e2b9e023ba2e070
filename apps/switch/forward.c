/* The data path of the switch at its ports: frames come in, cross the links (wan.c) and leave (output.c). */
#include "apps/switch/fabric.h"
#include "apps/switch/wan.h"
#include "dataplane/base/clock.h"

enum { PREFETCH_AHEAD = 4 };

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
        switch_port_flush(&fabric->ports[i], fabric->now_ns);
    }
    return moved;
}
