#include "dataplane/flow/compress.h"

#include "dataplane/congestion/bandwidth.h"
#include "dataplane/flow/transmit.h"

/* The rate that is known of the path, without a measurement of its own packets; 0: none is. */
static uint64_t rate_known(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    if (flow->bandwidth != NULL && flow->bandwidth->known_bps > 0) {
        return flow->bandwidth->known_bps;
    }
    return cw_shaper_is_set(&flow->shaping) ? endpoint->shapers[flow->shaping.shaper].rate_bps : flow->timers.rate_bps;
}

static struct cw_compress_path path_of(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    return (struct cw_compress_path){
        .state = cw_compress_of(endpoint, flow),
        .rate_bps = rate_known(endpoint, flow),
        .window_bytes = flow->congestion.window_bytes,
        .part_bytes = cw_transmit_part_bytes(flow),
        .chunk_bytes = flow->session.payload_bytes_max - (uint32_t)sizeof(struct cw_wire_chunk),
    };
}

static struct cw_chunk_data data_from(struct cw_operation *operation, uint64_t position)
{
    return (struct cw_chunk_data){&operation->source, &operation->cursor, position, operation->bytes - position};
}

struct cw_codec_plan cw_flow_compress_plan(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                           struct cw_operation *operation)
{
    const struct cw_compress_path path = path_of(endpoint, flow);
    const struct cw_chunk_data data = data_from(operation, operation->position);
    return cw_compress_plan(endpoint, &path, operation->source.element, &data);
}

uint32_t cw_flow_chunk_fill(struct cw_endpoint *endpoint, struct cw_sent *record, uint8_t *at)
{
    struct cw_operation *operation = record->operation;
    const struct cw_flow *flow = operation->flow;
    const struct cw_chunk_data data = data_from(operation, record->position);
    if (record->transmissions > 0) { /* the path MTU may be smaller now: still the packet is unchanged */
        uint32_t room = flow->session.payload_bytes_agreed - (uint32_t)sizeof(struct cw_wire_chunk);
        return cw_chunk_refill(endpoint, record->plan, &data, at, room, record->bytes);
    }
    uint32_t room = flow->session.payload_bytes_max - (uint32_t)sizeof(struct cw_wire_chunk);
    uint32_t taken = cw_compress_of(endpoint, flow)->kinds[operation->source.element].taken;
    uint32_t bytes = cw_chunk_fill(endpoint, record->plan, &data, at, room, &taken);
    record->bytes = bytes > 0 ? (uint16_t)taken : record->bytes;
    return bytes;
}

/* A packet as the choice counts it. */
static struct cw_compress_packet packet_of(const struct cw_flow *flow, const struct cw_sent *record)
{
    uint32_t headers = cw_flow_overhead(flow) + (uint32_t)sizeof(struct cw_wire_chunk);
    uint32_t mac = flow->session.seal != NULL ? CW_WIRE_MAC_BYTES : 0;
    return (struct cw_compress_packet){
        .element = record->operation->source.element,
        .plan = record->plan,
        .raw_bytes = record->bytes,
        .chunk_bytes = record->frame_bytes - headers - mac,
    };
}

void cw_flow_compress_sent(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_sent *record)
{
    const struct cw_compress_path path = path_of(endpoint, flow);
    const struct cw_compress_packet packet = packet_of(flow, record);
    cw_compress_sent(endpoint, &path, &packet);
}

void cw_flow_compress_acknowledged(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_sent *record)
{
    const struct cw_compress_packet packet = packet_of(flow, record);
    cw_compress_acknowledged(endpoint, cw_compress_of(endpoint, flow), &packet);
}

void cw_flow_compress_reset(struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    if (endpoint->compress != NULL && cw_compress_of(endpoint, flow)->is_used) {
        cw_compress_reset(cw_compress_of(endpoint, flow));
    }
}

void cw_flow_compress_clear(struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    if (endpoint->compress != NULL && cw_compress_of(endpoint, flow)->is_used) {
        *cw_compress_of(endpoint, flow) = (struct cw_compress_flow){.is_used = false};
    }
}

bool cw_peer_compression(const struct cw_endpoint *endpoint, uint32_t peer, enum cw_element element,
                         struct cw_compression_report *report)
{
    const struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL || endpoint->compress == NULL || (unsigned)element >= CW_ELEMENTS ||
        !cw_compress_of(endpoint, flow)->is_used) {
        return false;
    }
    const struct cw_compress_path path = path_of(endpoint, flow);
    cw_compress_report(endpoint, &path, element, report);
    return true;
}
