#include "dataplane/flow/extension.h"

#include <assert.h>
#include <string.h>

#include "dataplane/congestion/congestion.h"
#include "dataplane/flow/table.h"
#include "dataplane/staging/stage.h"
#include "dataplane/state/endpoint.h"
#include "dataplane/state/rdma.h"

int cw_endpoint_invite(struct cw_endpoint *endpoint, struct cw_extension *extension)
{
    if (extension != NULL && endpoint->extension != NULL) {
        return CW_ERROR_BUSY;
    }
    endpoint->extension = extension;
    return CW_OK;
}

uint8_t *cw_extension_stage(struct cw_endpoint *endpoint)
{
    struct cw_transmit *packet = cw_stage(endpoint);
    return packet == NULL ? NULL : packet->data + endpoint->overhead_bytes;
}

void cw_extension_finish(struct cw_endpoint *endpoint, const struct cw_wire_receiver *receiver,
                         const struct cw_extension_header *said, uint32_t payload_bytes, const struct cw_wire_key *key)
{
    assert(endpoint->staged_count > 0 && payload_bytes <= endpoint->payload_bytes_max);
    struct cw_transmit *packet = &endpoint->staged[endpoint->staged_count - 1];
    uint8_t *at = packet->data;
    packet->alone = said->is_repeated;
    cw_wire_outer_write(&endpoint->outer, receiver, at, payload_bytes);
    struct cw_wire_header header = {
        .version = CW_WIRE_VERSION,
        .type = said->type,
        .flags = endpoint->packet_flags | said->flags,
        .flow = said->flow,
        .number = (uint32_t)said->number,
        .timestamp = cw_wire_timestamp(endpoint->now_ns),
        .acknowledged = (uint32_t)said->acknowledged,
        .echo = said->echo,
        .echo_delay = cw_echo_delay(endpoint->now_ns, said->has_echo, said->echo_ns),
        .payload_bytes = (uint16_t)payload_bytes,
        .checksum = said->checksum,
    };
    cw_header_signed(endpoint, packet, &header, said->number, key, payload_bytes);
    endpoint->departures[endpoint->staged_count - 1].by_device = receiver->by_device;
    endpoint->datagram_count += receiver->by_device;
    cw_count(endpoint, CW_COUNTER_BYTES_OUT, packet->length);
}

bool cw_extension_pass_on(struct cw_endpoint *endpoint, const struct cw_wire_receiver *receiver,
                          const struct cw_wire_header *header)
{
    struct cw_transmit *packet = cw_stage(endpoint);
    if (packet == NULL) {
        return false;
    }
    cw_wire_outer_write(&endpoint->outer, receiver, packet->data, header->payload_bytes);
    memcpy(packet->data + endpoint->outer.bytes, header, CW_WIRE_HEADER_BYTES + header->payload_bytes);
    packet->length = endpoint->overhead_bytes + header->payload_bytes;
    cw_count(endpoint, CW_COUNTER_BYTES_OUT, packet->length);
    return true;
}

bool cw_extension_is_to_group(const struct cw_endpoint *endpoint, const struct cw_wire_header *header)
{
    /* cw_wire_parse has checked both, which are the same except for their lengths */
    const uint8_t *frame = (const uint8_t *)header + CW_WIRE_HEADER_BYTES - endpoint->overhead_bytes;
    return endpoint->overhead_bytes == CW_WIRE_OVERHEAD_BYTES
               ? ((const struct cw_wire_network *)frame)->destination_ipv4[0] >> 4 == 0xe
               : ((const struct cw_wire_network_v6 *)frame)->destination[0] == 0xff;
}

bool cw_extension_frame(struct cw_endpoint *endpoint, const uint8_t *frame, uint32_t bytes)
{
    struct cw_transmit *packet = cw_stage(endpoint);
    if (packet == NULL) {
        return false;
    }
    memcpy(packet->data, frame, bytes);
    packet->length = bytes;
    cw_count(endpoint, CW_COUNTER_BYTES_OUT, bytes);
    return true;
}

void cw_extension_flush(struct cw_endpoint *endpoint)
{
    if (!endpoint->port_full) {
        (void)cw_flush(endpoint);
    }
}

bool cw_extension_event(struct cw_endpoint *endpoint, const struct cw_event *event, uint32_t waiting_max)
{
    struct cw_event *at =
        cw_events_count(&endpoint->events) < waiting_max ? cw_events_reserve(&endpoint->events) : NULL;
    if (at == NULL) {
        return false;
    }
    *at = *event;
    cw_events_publish(&endpoint->events);
    return true;
}

void cw_extension_event_orphan(struct cw_endpoint *endpoint, uint64_t region)
{
    const struct cw_events *events = &endpoint->events;
    uint32_t end = atomic_load_explicit(&events->produced, memory_order_relaxed);
    for (uint32_t i = atomic_load_explicit(&events->consumed, memory_order_relaxed); i != end; i++) {
        struct cw_event *event = &events->ring[i & events->mask];
        event->region = event->kind == CW_EVENT_EXTENSION && event->region == region ? 0 : event->region;
    }
}

uint32_t cw_extension_payload_max(const struct cw_endpoint *endpoint)
{
    return endpoint->payload_bytes_max;
}

uint32_t cw_extension_payload_at(const struct cw_endpoint *endpoint, uint32_t mtu_bytes)
{
    uint32_t bytes = mtu_bytes + 14 - endpoint->overhead_bytes;
    return bytes < endpoint->payload_bytes_max ? bytes : endpoint->payload_bytes_max;
}

uint32_t cw_extension_payload_by_device(const struct cw_endpoint *endpoint)
{
    uint32_t bytes = endpoint->rdma != NULL ? endpoint->rdma->ops->datagram_bytes(endpoint->rdma) : 0;
    uint32_t payload = bytes > endpoint->overhead_bytes ? bytes - endpoint->overhead_bytes : 0;
    return payload < endpoint->payload_bytes_max ? payload : endpoint->payload_bytes_max;
}

bool cw_extension_device_has_room(const struct cw_endpoint *endpoint)
{
    return endpoint->rdma->ops->datagram_room(endpoint->rdma) > endpoint->datagram_count;
}

uint64_t cw_extension_round_trip_target(const struct cw_endpoint *endpoint, uint64_t min_ns)
{
    return cw_congestion_target(endpoint, min_ns, endpoint->overhead_bytes + endpoint->payload_bytes_max,
                                endpoint->config.waiting == CW_WAITING_SPIN);
}

uint64_t cw_extension_line_packets(const struct cw_endpoint *endpoint)
{
    uint32_t frame_bytes = endpoint->overhead_bytes + endpoint->payload_bytes_max;
    uint64_t rate_bps = endpoint->port->info.rate_bps;
    uint64_t target_ns = cw_extension_round_trip_target(endpoint, 0);
    return rate_bps > 0 ? rate_bps / 1000000 * target_ns / 8000 / frame_bytes : UINT64_MAX;
}

uint64_t cw_extension_now(const struct cw_endpoint *endpoint)
{
    return endpoint->now_ns;
}

uint64_t cw_extension_random(struct cw_endpoint *endpoint)
{
    return cw_random_next(&endpoint->random);
}

bool cw_extension_peer(const struct cw_endpoint *endpoint, uint32_t peer, struct cw_wire_receiver *receiver)
{
    const struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    if (flow == NULL) {
        return false;
    }
    cw_flow_receiver(endpoint, flow, receiver);
    return true;
}

bool cw_extension_knows(const struct cw_endpoint *endpoint, uint32_t peer)
{
    return peer < endpoint->flows.fresh;
}

static struct cw_ip group_of(const struct cw_endpoint *endpoint, uint32_t ipv4)
{
    return cw_wire_group(ipv4, !cw_ip_is_v4(&endpoint->config.address.ip));
}

void cw_extension_group(const struct cw_endpoint *endpoint, uint32_t ipv4, enum cw_extension_carrier carrier,
                        struct cw_wire_receiver *receiver)
{
    uint16_t own_port = endpoint->config.address.udp_port, group_port = endpoint->config.group_port;
    *receiver = (struct cw_wire_receiver){
        .ip = group_of(endpoint, ipv4),
        .port = group_port != 0 ? group_port : own_port,
        .own_port = own_port,
        .by_device = carrier == CW_CARRIER_DEVICE,
    };
    cw_wire_group_mac(&receiver->ip, receiver->mac);
}

int cw_extension_join(struct cw_endpoint *endpoint, uint32_t ipv4, enum cw_extension_carrier carrier)
{
    struct cw_ip group = group_of(endpoint, ipv4);
    uint8_t mac[6];
    if (carrier == CW_CARRIER_DEVICE) {
        return endpoint->rdma != NULL ? endpoint->rdma->ops->group_join(endpoint->rdma, &group) : CW_ERROR_UNSUPPORTED;
    }
    cw_wire_group_mac(&group, mac);
    return cw_port_join(endpoint->port, mac);
}

bool cw_extension_is_joined(const struct cw_endpoint *endpoint, uint32_t ipv4, enum cw_extension_carrier carrier)
{
    struct cw_ip group = group_of(endpoint, ipv4);
    return carrier == CW_CARRIER_PORT || endpoint->rdma->ops->group_is_joined(endpoint->rdma, &group);
}

int cw_extension_leave(struct cw_endpoint *endpoint, uint32_t ipv4, enum cw_extension_carrier carrier)
{
    struct cw_ip group = group_of(endpoint, ipv4);
    uint8_t mac[6];
    if (carrier == CW_CARRIER_DEVICE) {
        return endpoint->rdma != NULL ? endpoint->rdma->ops->group_leave(endpoint->rdma, &group) : CW_ERROR_UNSUPPORTED;
    }
    cw_wire_group_mac(&group, mac);
    return cw_port_leave(endpoint->port, mac);
}

bool cw_extension_reports(const struct cw_endpoint *endpoint, enum cw_extension_carrier carrier)
{
    return carrier == CW_CARRIER_DEVICE || endpoint->port->info.reports;
}

void cw_extension_key(const struct cw_endpoint *endpoint, uint64_t id, uint64_t author, struct cw_wire_key *key)
{
    cw_wire_key_derive(key, endpoint->config.job_key, id, author);
}
