#include "dataplane/staging/stage.h"

#include <string.h>

#include "dataplane/state/rdma.h"

enum { RESERVE_AT_ONCE = 16 /* buffers of the port */ };

/* Seals the staged packets from `first` on that have the same seal as that one. */
static void seal_alike(struct cw_endpoint *endpoint, uint32_t first)
{
    struct cw_aead_packet packets[CW_BURST];
    struct cw_seal *seal = endpoint->departures[first].seal;
    uint32_t count = 0;
    for (uint32_t i = first; i < endpoint->staged_count; i++) {
        if (endpoint->departures[i].seal != seal) {
            continue;
        }
        endpoint->departures[i].seal = NULL;
        const struct cw_transmit *staged = &endpoint->staged[i];
        struct cw_wire_sealed *header = (struct cw_wire_sealed *)cw_staged_header(endpoint, staged);
        packets[count] = (struct cw_aead_packet){
            .readable = (uint8_t *)header,
            .data = header->fields,
            .bytes = staged->length - endpoint->overhead_bytes + CW_WIRE_FIELDS_BYTES - CW_WIRE_MAC_BYTES,
            .count = header->count,
        };
        count++;
    }
    cw_aead_seal(seal->out, packets, count);
}

void cw_sign(struct cw_endpoint *endpoint)
{
    struct cw_wire_tags *tags = &endpoint->tags;
    for (uint32_t i = 0; i < endpoint->staged_count && endpoint->config.encryption != CW_ENCRYPTION_OFF; i++) {
        if (endpoint->departures[i].seal != NULL) {
            seal_alike(endpoint, i);
        }
    }
    cw_wire_tags_compute(tags);
    for (uint32_t i = 0; i < tags->count; i++) {
        cw_staged_header(endpoint, &endpoint->staged[endpoint->tag_places[i]])->tag = tags->value[i];
    }
    tags->count = 0;
}

/* Over IPv6 each UDP datagram has a checksum (RFC 8200, 8.1), unless the port writes it. Packets that are passed on
 * have theirs. */
static void checksums_write(struct cw_endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->staged_count; i++) {
        struct cw_transmit *packet = &endpoint->staged[i];
        struct cw_wire_sum sum;
        if (packet->checksum || !cw_wire_udp_checksum_begin(&sum, packet->data, packet->length)) {
            continue;
        }
        for (uint32_t piece = 0; piece < packet->piece_count; piece++) {
            cw_wire_sum_add(&sum, packet->pieces[piece].data, packet->pieces[piece].length);
        }
        cw_wire_udp_checksum_set(&sum, packet->data);
    }
}

void cw_falsify(struct cw_endpoint *endpoint, uint32_t count)
{
    endpoint->departures[endpoint->staged_count - 1].error = (uint16_t)(1u << (count % 16));
    endpoint->false_count++;
}

/* Writes deliberately wrong checksums. */
static __attribute__((noinline)) void errors_write(struct cw_endpoint *endpoint)
{
    if (endpoint->false_count == 0) {
        return;
    }
    bool is_v4 = endpoint->overhead_bytes == CW_WIRE_OVERHEAD_BYTES;
    for (uint32_t i = 0; i < endpoint->staged_count; i++) {
        struct cw_departure *departing = &endpoint->departures[i];
        const struct cw_transmit *packet = &endpoint->staged[i];
        if (departing->error != 0) {
            uint16_t wrong = cw_wire_udp_checksum(packet->data, packet->length, is_v4) ^ departing->error;
            wrong = wrong == 0 ? (uint16_t)(departing->error ^ UINT16_MAX) : wrong; /* 0 says that there is none */
            cw_wire_udp_checksum_store(packet->data, wrong, is_v4);
            departing->error = 0;
        }
    }
    endpoint->false_count = 0;
}

/* Clears the port's requests of packets that have left these places, before others use them. */
static __attribute__((noinline)) void requests_clear(struct cw_endpoint *endpoint, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        endpoint->staged[i].checksum = false;
        endpoint->staged[i].departure_ns = 0;
    }
}

/* Hands the RDMA device what is its own; the others close up. */
static __attribute__((noinline)) void datagrams_send(struct cw_endpoint *endpoint)
{
    uint32_t count = endpoint->staged_count, kept = 0;
    bool is_v4 = endpoint->overhead_bytes == CW_WIRE_OVERHEAD_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        struct cw_transmit *packet = &endpoint->staged[i];
        if (!endpoint->departures[i].by_device) {
            endpoint->staged[kept++] = *packet;
            continue;
        }
        struct cw_ip group = cw_wire_destination(packet->data, is_v4);
        endpoint->departures[i].by_device = false;
        endpoint->rdma->ops->datagram_send(endpoint->rdma, &group, packet->data, packet->length);
        cw_port_cancel(endpoint->port, packet, 1);
    }
    if (endpoint->offloads_out) {
        requests_clear(endpoint, kept, count);
    }
    endpoint->staged_count = kept;
    endpoint->datagram_count = 0;
}

bool cw_flush(struct cw_endpoint *endpoint)
{
    if (endpoint->staged_count == 0) {
        endpoint->port_full = false;
        return true;
    }
    cw_sign(endpoint);
    if (endpoint->offloads_out) {
        errors_write(endpoint);
    }
    if (endpoint->overhead_bytes != CW_WIRE_OVERHEAD_BYTES && !endpoint->port->info.writes_checksums) {
        checksums_write(endpoint);
    }
    if (endpoint->datagram_count > 0) {
        datagrams_send(endpoint);
    }
    uint32_t taken = cw_port_transmit(endpoint->port, endpoint->staged, endpoint->staged_count);
    if (endpoint->offloads_out) {
        requests_clear(endpoint, 0, taken);
    }
    cw_count(endpoint, CW_COUNTER_PACKETS_OUT, taken);
    endpoint->staged_count -= taken;
    endpoint->port_full = endpoint->staged_count > 0;
    if (endpoint->port_full) {
        cw_count(endpoint, CW_COUNTER_PORT_FULL, 1);
        memmove(&endpoint->staged[0], &endpoint->staged[taken], endpoint->staged_count * sizeof(endpoint->staged[0]));
        if (endpoint->offloads_out) {
            requests_clear(endpoint, endpoint->staged_count, endpoint->staged_count + taken);
        }
    }
    return !endpoint->port_full;
}

struct cw_transmit *cw_stage(struct cw_endpoint *endpoint)
{
    if (endpoint->staged_count == CW_BURST) {
        cw_flush(endpoint);
        if (endpoint->staged_count == CW_BURST) {
            return NULL;
        }
    }
    if (endpoint->spare_count == 0) {
        endpoint->spare_count = cw_port_reserve(endpoint->port, endpoint->spare, RESERVE_AT_ONCE);
        endpoint->is_out_of_buffers = endpoint->spare_count == 0;
        if (endpoint->spare_count == 0) {
            return NULL;
        }
    }
    endpoint->departures[endpoint->staged_count].seal = NULL;
    endpoint->departures[endpoint->staged_count].by_device = false;
    struct cw_transmit *packet = &endpoint->staged[endpoint->staged_count++];
    const struct cw_transmit *spare = &endpoint->spare[--endpoint->spare_count];
    packet->data = spare->data;
    packet->handle = spare->handle;
    packet->length = 0;
    packet->piece_count = 0;
    packet->alone = false;
    return packet;
}
