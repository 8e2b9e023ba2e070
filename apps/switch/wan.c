#include "apps/switch/wan.h"
#include "apps/cli/pcap.h"

#include <string.h>

enum { RELEASE_MAX = 1024 };

/* A frame between two lines. */
struct passing {
    const uint8_t *data;
    uint32_t length;
    struct switch_frame *frame; /* the slot that it lies in; NULL: it is a port's, and still to be copied */
    uint64_t time_ns;           /* it has come so far */
    uint16_t port;              /* it came in by; from the last bridge on: it goes to */
    uint8_t clusters[2];
    uint8_t hop;
};

static void arrive(struct switch_fabric *fabric, struct switch_line *line, const struct passing *passing);

static void passing_end(struct switch_fabric *fabric, const struct passing *passing)
{
    if (passing->frame != NULL) {
        switch_pool_release(&fabric->pool, passing->frame);
    }
}

/* ---- onto a line ---- */

static void hold(struct switch_fabric *fabric, struct switch_line *line, const struct passing *passing,
                 uint64_t arrival_ns)
{
    struct switch_frame *frame = passing->frame;
    if (frame == NULL) {
        frame = switch_pool_acquire(&fabric->pool, passing->length);
        if (frame == NULL) {
            line->dropped_pool++;
            fabric->ports[passing->port].counters.dropped_pool += line->kind == SWITCH_LINE_DOWN;
            return;
        }
        memcpy(frame->data, passing->data, passing->length);
    }
    frame->arrival_ns = arrival_ns;
    frame->port = passing->port;
    memcpy(frame->clusters, passing->clusters, sizeof(frame->clusters));
    frame->hop = passing->hop;
    switch_line_hold(line, frame, &fabric->heap);
}

static void drop_count(struct switch_counters *counters, enum cw_link_fate fate)
{
    counters->dropped_loss += fate == CW_LINK_DROP_LOSS;
    counters->dropped_queue += fate == CW_LINK_DROP_QUEUE;
    counters->dropped_link_down += fate == CW_LINK_DROP_DOWN;
}

/* Whether nothing that is still held comes before that time. */
static bool is_next(const struct switch_fabric *fabric, uint64_t time_ns)
{
    return fabric->heap.count == 0 || fabric->heap.entries[0].time_ns > time_ns;
}

/* The host that has sent a frame which is between sites. */
static uint32_t host_from(const struct switch_fabric *fabric, const struct passing *passing)
{
    return fabric->ports[passing->port].up->index - fabric->host_count;
}

/* Offers a frame to a line. A slot that it lies in is the line's from then on. */
static void pass(struct switch_fabric *fabric, struct switch_line *line, struct passing *passing)
{
    bool is_down = line->kind == SWITCH_LINE_DOWN;
    struct switch_counters *counters = &fabric->ports[passing->port].counters;
    uint64_t arrival_ns;
    enum cw_link_fate fate;
    bool is_wan = line->kind == SWITCH_LINE_WAN;
    counters->offered_frames += is_down;
    uint64_t mtu_bytes = is_down ? fabric->ports[passing->port].port->info.mtu_bytes : fabric->config->mtu_bytes;
    if (passing->length > CW_BRIDGE_FRAME_MIN_BYTES + mtu_bytes) {
        line->dropped_oversize++;
        counters->dropped_oversize += is_down;
        passing_end(fabric, passing);
        return;
    }
    bool is_delivered = switch_line_offer(line, passing->time_ns, passing->length, &fate, &arrival_ns);
    if (is_wan) {
        switch_streams_offered(&fabric->streams, line, host_from(fabric, passing), passing->length, fate);
    }
    if (!is_delivered) {
        if (is_down) {
            drop_count(counters, fate);
        }
        passing_end(fabric, passing);
    } else if (arrival_ns <= fabric->now_ns && !is_wan && is_next(fabric, arrival_ns)) {
        passing->time_ns = arrival_ns;
        arrive(fabric, line, passing);
    } else {
        hold(fabric, line, passing, arrival_ns);
    }
}

/* ---- at a bridge ---- */

/* The line of a route's hop. */
static struct switch_line *route_line(struct switch_fabric *fabric, const struct passing *passing, bool *is_last)
{
    uint32_t count;
    const struct cw_topology_hop *hops =
        cw_topology_route(fabric->config->topology, passing->clusters[0], passing->clusters[1], &count);
    *is_last = passing->hop + 1u == count;
    return &fabric->lines[2 * fabric->host_count + 2u * hops[passing->hop].link + hops[passing->hop].direction];
}

/* Sends a frame out of a port of a cluster's bridge. */
static void leave(struct switch_fabric *fabric, uint32_t cluster, uint32_t bridge_port, struct passing *passing)
{
    const struct switch_cluster *own = &fabric->clusters[cluster];
    bool is_last;
    if (bridge_port < own->port_count) {
        passing->port = (uint16_t)(own->port_first + bridge_port);
        pass(fabric, fabric->ports[passing->port].down, passing);
        return;
    }
    uint32_t other = bridge_port - own->port_count;
    passing->clusters[0] = (uint8_t)cluster;
    passing->clusters[1] = (uint8_t)(other + (other >= cluster));
    passing->hop = 0;
    pass(fabric, route_line(fabric, passing, &is_last), passing);
}

static void bridge_cross(struct switch_fabric *fabric, uint32_t cluster, uint32_t bridge_port,
                         const struct passing *passing)
{
    uint16_t outputs[SWITCH_PORTS_MAX + SWITCH_CLUSTERS_MAX];
    uint32_t count = cw_bridge_forward(fabric->clusters[cluster].bridge, fabric->now_ns, bridge_port, passing->data,
                                       passing->length, outputs);
    for (uint32_t i = 0; i < count; i++) {
        struct passing copy = *passing;
        copy.frame = i + 1 == count ? passing->frame : NULL; /* the last one takes the slot */
        leave(fabric, cluster, outputs[i], &copy);
    }
    if (count == 0) {
        passing_end(fabric, passing);
    }
}

/* ---- at the end of a line ---- */

static void wan_arrive(struct switch_fabric *fabric, const struct passing *passing)
{
    bool is_last;
    (void)route_line(fabric, passing, &is_last);
    if (is_last) {
        uint32_t from = passing->clusters[0], to = passing->clusters[1];
        bridge_cross(fabric, to, fabric->clusters[to].port_count + from - (from > to), passing);
        return;
    }
    struct passing next = *passing;
    next.hop++;
    pass(fabric, route_line(fabric, &next, &is_last), &next);
}

static void arrive(struct switch_fabric *fabric, struct switch_line *line, const struct passing *passing)
{
    struct switch_port *port = &fabric->ports[passing->port];
    line->link.counters.arrived++;
    line->link.counters.arrived_bytes += passing->length;
    if (line->tapped) {
        app_pcap_write(fabric->tap, fabric->tap_epoch_ns + passing->time_ns, passing->data, passing->length);
    }
    switch (line->kind) {
    case SWITCH_LINE_DOWN:
        switch_port_send(port, fabric->now_ns, passing->data, passing->length);
        passing_end(fabric, passing);
        break;
    case SWITCH_LINE_UP:
        bridge_cross(fabric, port->cluster, port->bridge_port, passing);
        break;
    case SWITCH_LINE_WAN:
        switch_streams_delivered(&fabric->streams, line, host_from(fabric, passing), passing->length);
        wan_arrive(fabric, passing);
        break;
    }
}

void switch_wan_enter(struct switch_fabric *fabric, uint32_t port, const uint8_t *data, uint32_t length)
{
    const struct switch_port *own = &fabric->ports[port];
    struct passing passing = {.data = data, .length = length, .time_ns = fabric->now_ns, .port = (uint16_t)port};
    if (own->up != NULL) {
        pass(fabric, own->up, &passing);
    } else {
        bridge_cross(fabric, own->cluster, own->bridge_port, &passing);
    }
}

uint32_t switch_wan_release(struct switch_fabric *fabric)
{
    uint32_t count = 0;
    while (count < RELEASE_MAX && fabric->heap.count > 0 && fabric->heap.entries[0].time_ns <= fabric->now_ns) {
        struct switch_line *line;
        struct switch_frame *frame = switch_line_next(&fabric->heap, &line);
        struct passing passing = {.data = frame->data,
                                  .length = frame->length,
                                  .frame = frame,
                                  .time_ns = frame->arrival_ns,
                                  .port = frame->port,
                                  .clusters = {frame->clusters[0], frame->clusters[1]},
                                  .hop = frame->hop};
        arrive(fabric, line, &passing);
        count++;
    }
    return count;
}
