/* Streams: several sessions with one process, each with windows and losses of its own. */
#include "dataplane/flow/stream.h"

#include "dataplane/congestion/bandwidth.h"
#include "dataplane/flow/shaper.h"
#include "dataplane/flow/table.h"

struct cw_flow *cw_stream_add(struct cw_endpoint *endpoint, const struct cw_flow *first, uint32_t stream)
{
    struct cw_traffic traffic = cw_bandwidth_traffic(first);
    struct cw_address address = first->address;
    address.udp_port = (uint16_t)(address.udp_port + stream);
    uint32_t index;
    if (cw_flow_add(endpoint, &address, stream, &index) != CW_OK) {
        return NULL;
    }
    struct cw_flow *flow = cw_endpoint_flow(endpoint, index);
    flow->encrypt = first->encrypt;
    flow->shaping.shaper = (uint8_t)traffic.shaper;
    (void)cw_bandwidth_set(endpoint, flow, &traffic); /* there is one for each flow */
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
