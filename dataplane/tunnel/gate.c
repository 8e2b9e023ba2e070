#include "dataplane/tunnel/gate.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/port/port.h"

enum {
    SIDE_HERE = 0, /* ports of the bridge */
    SIDE_THERE = 1,
    SIDES = 2,
    ETHERNET_BYTES = 14,
    TAGS_BYTES = 8,
    BURSTS_A_TURN = 4,
};

#define FULL_RETRY_NS 200000ull

struct cw_gate {
    struct cw_endpoint *endpoint;
    struct cw_gate_config config;
    struct cw_tunnel *tunnel;
    struct cw_bridge *bridge;
    struct cw_transmit pending[CW_PORT_BURST_MAX]; /* written for the port */
    uint32_t pending_count;
    uint32_t frame_bytes_max;
    uint64_t now_ns;        /* of this turn */
    uint64_t full_since_ns; /* 0: the port took what there was */
    bool is_short;          /* a frame found no buffer of the port in this turn */
    struct cw_gate_counters counters;
};

/* ---- to the hosts ---- */

/* Hands the burst to the port. False: some of it is still held. */
static bool burst_flush(struct cw_gate *gate)
{
    struct cw_port *port = gate->config.port;
    if (gate->pending_count == 0) {
        return true;
    }
    /* counted first: the port owns what it has taken, its list included */
    uint32_t lengths[CW_PORT_BURST_MAX];
    for (uint32_t i = 0; i < gate->pending_count; i++) {
        lengths[i] = gate->pending[i].length;
    }
    uint32_t taken = cw_port_transmit(port, gate->pending, gate->pending_count);
    for (uint32_t i = 0; i < taken; i++) {
        gate->counters.out_bytes += lengths[i];
    }
    gate->counters.out_frames += taken;
    gate->pending_count -= taken;
    memmove(gate->pending, gate->pending + taken, gate->pending_count * sizeof(gate->pending[0]));
    if (taken > 0 || gate->full_since_ns == 0) {
        gate->full_since_ns = gate->pending_count > 0 ? gate->now_ns : 0;
    }
    if (gate->pending_count > 0 && gate->now_ns - gate->full_since_ns >= CW_GATE_FULL_NS) {
        cw_port_cancel(port, gate->pending, gate->pending_count);
        gate->counters.dropped_port += gate->pending_count;
        gate->pending_count = 0;
        gate->full_since_ns = gate->now_ns - CW_GATE_FULL_NS; /* until it takes some again nothing waits */
    }
    return gate->pending_count == 0;
}

/* Whether the bridge lets a frame from `side` to the other one. */
static bool crosses(struct cw_gate *gate, uint32_t side, const uint8_t *frame, uint32_t length)
{
    uint16_t ports[SIDES];
    return cw_bridge_forward(gate->bridge, gate->now_ns, side, frame, length, ports) > 0;
}

static bool deliver(void *context, const uint8_t *frame, uint32_t length)
{
    struct cw_gate *gate = context;
    if (gate->pending_count == CW_PORT_BURST_MAX && !burst_flush(gate)) {
        return false;
    }
    if (length > gate->frame_bytes_max) {
        gate->counters.dropped_long++;
        return true;
    }
    struct cw_transmit *packet = &gate->pending[gate->pending_count];
    if (cw_port_reserve(gate->config.port, packet, 1) == 0) {
        gate->is_short = true; /* the driver's buffers are on their way */
        return false;
    }
    if (!crosses(gate, SIDE_THERE, frame, length)) {
        cw_port_cancel(gate->config.port, packet, 1);
        return true;
    }
    memcpy(packet->data, frame, length);
    packet->length = length;
    gate->pending_count++;
    return true;
}

/* ---- from the hosts ---- */

static bool is_multicast(const uint8_t *frame)
{
    static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    return (frame[0] & 1) != 0 && memcmp(frame, broadcast, sizeof(broadcast)) != 0;
}

static void frame_accept(struct cw_gate *gate, const uint8_t *frame, uint32_t length)
{
    gate->counters.in_frames++;
    gate->counters.in_bytes += length;
    if (!crosses(gate, SIDE_HERE, frame, length)) {
        return;
    }
    if (gate->config.drops_multicast && is_multicast(frame)) {
        gate->counters.dropped_multicast++;
        return;
    }
    cw_tunnel_send(gate->tunnel, gate->now_ns, frame, length);
}

static uint32_t bursts_receive(struct cw_gate *gate)
{
    struct cw_received packets[CW_PORT_BURST_MAX];
    uint32_t total = 0;
    uint32_t count = CW_PORT_BURST_MAX;
    for (int i = 0; i < BURSTS_A_TURN && count == CW_PORT_BURST_MAX; i++) {
        count = cw_port_receive(gate->config.port, packets, CW_PORT_BURST_MAX);
        for (uint32_t j = 0; j < count; j++) {
            frame_accept(gate, packets[j].data, packets[j].length);
        }
        cw_port_release(gate->config.port, packets, count);
        total += count;
    }
    return total;
}

/* ---- turns ---- */

uint32_t cw_gate_turn(struct cw_gate *gate, uint64_t now_ns)
{
    gate->now_ns = now_ns;
    gate->is_short = false;
    uint32_t work = cw_endpoint_turn(gate->endpoint, now_ns);
    work += bursts_receive(gate);
    work += cw_tunnel_turn(gate->tunnel, now_ns);
    burst_flush(gate);
    return work;
}

uint64_t cw_gate_deadline(const struct cw_gate *gate)
{
    uint64_t deadline_ns = cw_endpoint_deadline(gate->endpoint);
    uint64_t tunnel_ns = cw_tunnel_deadline(gate->tunnel);
    uint64_t retry_ns = gate->pending_count > 0 || gate->is_short ? gate->now_ns + FULL_RETRY_NS : UINT64_MAX;
    deadline_ns = deadline_ns < tunnel_ns ? deadline_ns : tunnel_ns;
    return deadline_ns < retry_ns ? deadline_ns : retry_ns;
}

/* ---- life ---- */

/* When nothing comes from the peer any more, its hosts may be anywhere. */
static void news(void *context, uint32_t stream, bool up, int status)
{
    struct cw_gate *gate = context;
    uint32_t up_count = 0;
    for (uint32_t i = 0; gate->tunnel != NULL && i < cw_tunnel_stream_count(gate->tunnel); i++) {
        up_count += cw_tunnel_is_up(gate->tunnel, i);
    }
    if (up_count == 0) {
        cw_bridge_port_flush(gate->bridge, SIDE_THERE);
    }
    if (gate->config.tunnel.news != NULL) {
        gate->config.tunnel.news(gate->config.context, stream, up, status);
    }
}

void cw_gate_config_init(struct cw_gate_config *config)
{
    *config = (struct cw_gate_config){.port = NULL};
    cw_tunnel_config_init(&config->tunnel);
}

static int bridge_create(struct cw_gate *gate)
{
    struct cw_bridge_config config;
    cw_bridge_config_init(&config);
    config.port_count = SIDES;
    config.hash_seed = gate->config.seed;
    /* the group members at the other site are not known here: reports of IGMP need not cross (RFC 4541) */
    config.snooping = false;
    return cw_bridge_create(&config, &gate->bridge);
}

int cw_gate_create(struct cw_endpoint *endpoint, const struct cw_gate_config *config, uint64_t now_ns,
                   struct cw_gate **gate_out)
{
    struct cw_gate *gate = calloc(1, sizeof(*gate));
    if (gate == NULL) {
        return CW_ERROR_MEMORY;
    }
    gate->endpoint = endpoint;
    gate->config = *config;
    gate->now_ns = now_ns;
    gate->frame_bytes_max = ETHERNET_BYTES + config->port->info.mtu_bytes;
    struct cw_tunnel_config tunnel = config->tunnel;
    tunnel.frame_bytes_max = gate->frame_bytes_max + TAGS_BYTES;
    tunnel.deliver = deliver;
    tunnel.news = news;
    tunnel.context = gate;
    int status = bridge_create(gate);
    if (status == CW_OK) {
        status = cw_tunnel_create(endpoint, &tunnel, now_ns, &gate->tunnel);
    }
    if (status != CW_OK) {
        cw_bridge_destroy(gate->bridge);
        free(gate);
        return status;
    }
    *gate_out = gate;
    return CW_OK;
}

void cw_gate_destroy(struct cw_gate *gate)
{
    if (gate == NULL) {
        return;
    }
    cw_port_cancel(gate->config.port, gate->pending, gate->pending_count);
    cw_tunnel_destroy(gate->tunnel);
    cw_bridge_destroy(gate->bridge);
    free(gate);
}

struct cw_tunnel *cw_gate_tunnel(const struct cw_gate *gate)
{
    return gate->tunnel;
}

const struct cw_gate_counters *cw_gate_counters(const struct cw_gate *gate)
{
    return &gate->counters;
}

const struct cw_bridge_counters *cw_gate_bridge(const struct cw_gate *gate)
{
    return cw_bridge_counters(gate->bridge);
}
