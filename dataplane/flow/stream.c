/* Streams: several sessions with one process, each on its own way, straight or by way of a relay. */
#include "dataplane/flow/stream.h"

#include <string.h>

#include "dataplane/congestion/bandwidth.h"
#include "dataplane/flow/shaper.h"
#include "dataplane/flow/table.h"

enum { DETOURS_MAX = 6 /* doublings */, DETOURS_APART = 4 /* times as long as the next one would be */ };

/* ---- ways ---- */

static bool is_relayed(const struct cw_flow *flow)
{
    static const uint8_t none[6] = {0};
    return memcmp(flow->way.relay, none, 6) != 0;
}

static void way_take(struct cw_flow *flow)
{
    bool straight = !is_relayed(flow) || flow->way.detour_until_ns != 0;
    memcpy(flow->next_hop, straight ? flow->address.mac : flow->way.relay, 6);
}

static void way_set(struct cw_flow *flow, const uint8_t next_hop[6])
{
    flow->way = (struct cw_way){.detours = 0};
    memcpy(flow->way.relay, next_hop, 6);
    way_take(flow);
}

void cw_way_address(struct cw_flow *flow, const uint8_t mac[6])
{
    memcpy(flow->address.mac, mac, 6);
    way_take(flow);
}

int cw_peer_next_hop(struct cw_endpoint *endpoint, uint32_t peer, const uint8_t mac[6])
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL) {
        return CW_ERROR_ARGUMENT;
    }
    way_set(flow, mac);
    return CW_OK;
}

void cw_way_detour(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (!is_relayed(flow) || flow->way.detour_until_ns != 0) {
        return;
    }
    if (endpoint->now_ns - flow->way.returned_ns > DETOURS_APART * (CW_DETOUR_NS << flow->way.detours)) {
        flow->way.detours = 0; /* it has been well for long: not the same trouble */
    }
    flow->way.detour_until_ns = endpoint->now_ns + (CW_DETOUR_NS << flow->way.detours);
    flow->way.detours = (uint8_t)(flow->way.detours + (flow->way.detours < DETOURS_MAX));
    way_take(flow);
    cw_count(endpoint, CW_COUNTER_DETOURS, 1);
}

void cw_way_return(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (flow->way.detour_until_ns != 0 && endpoint->now_ns >= flow->way.detour_until_ns) {
        flow->way.detour_until_ns = 0;
        flow->way.returned_ns = endpoint->now_ns;
        way_take(flow);
    }
}

/* ---- streams ---- */

int cw_stream_set(struct cw_endpoint *endpoint, uint32_t stream, const struct cw_stream *how)
{
    if (stream == 0 || stream >= endpoint->config.stream_count || !cw_traffic_is_valid(&how->traffic)) {
        return CW_ERROR_ARGUMENT;
    }
    endpoint->streams[stream] = *how;
    endpoint->stream_is_set[stream] = true;
    return CW_OK;
}

struct cw_flow *cw_stream_add(struct cw_endpoint *endpoint, const struct cw_flow *first, uint32_t stream)
{
    struct cw_stream how = {.traffic = cw_bandwidth_traffic(first)};
    if (endpoint->stream_is_set[stream]) {
        how = endpoint->streams[stream];
    }
    struct cw_address address = first->address;
    address.udp_port = (uint16_t)(address.udp_port + stream);
    uint32_t index;
    if (cw_flow_add(endpoint, &address, stream, &index) != CW_OK) {
        return NULL;
    }
    struct cw_flow *flow = cw_endpoint_flow(endpoint, index);
    flow->encrypt = first->encrypt;
    flow->shaping.shaper = (uint8_t)how.traffic.shaper;
    way_set(flow, how.next_hop);
    (void)cw_bandwidth_set(endpoint, flow, &how.traffic); /* there is one for each flow */
    return flow;
}

int cw_peer_stream(struct cw_endpoint *endpoint, uint32_t peer, uint32_t stream, uint32_t *number)
{
    const struct cw_flow *first = cw_endpoint_flow(endpoint, peer);
    if (first == NULL || first->stream != 0 || stream >= endpoint->config.stream_count ||
        first->address.udp_port + stream > UINT16_MAX) {
        return CW_ERROR_ARGUMENT;
    }
    const struct cw_flow *flow =
        cw_flow_find(endpoint, &first->address.ip, (uint16_t)(first->address.udp_port + stream));
    if (flow == NULL) {
        flow = cw_stream_add(endpoint, first, stream);
    }
    if (flow == NULL) {
        return CW_ERROR_LIMIT;
    }
    if (flow->stream != stream) {
        return CW_ERROR_ARGUMENT; /* another process that was added has that port */
    }
    *number = flow->index;
    return CW_OK;
}
