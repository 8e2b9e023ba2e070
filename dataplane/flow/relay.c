#include "dataplane/flow/relay.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/staging/stage.h"
#include "dataplane/state/endpoint.h"

enum { HOSTS_FIRST = 16, LENGTH_BYTES = 4, ETHER_BYTES = 14 };

/* ---- hosts ---- */

/* The host's place, or the free one where it would be. */
static struct cw_relay_host *host_place(struct cw_relay_host *hosts, uint32_t mask, const struct cw_ip *ip)
{
    uint64_t words[2];
    memcpy(words, ip->bytes, sizeof(words));
    uint32_t at = (uint32_t)(((words[0] * 0xbf58476d1ce4e5b9ull + words[1]) * 0x9e3779b97f4a7c15ull) >> 32);
    while (!cw_ip_is_none(&hosts[at & mask].ip) && !cw_ip_is_equal(&hosts[at & mask].ip, ip)) {
        at++;
    }
    return &hosts[at & mask];
}

static int hosts_grow(struct cw_relay *relay)
{
    uint32_t mask = 2 * (relay->host_mask + 1) - 1;
    struct cw_relay_host *grown = calloc(mask + 1ull, sizeof(*grown));
    if (grown == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i <= relay->host_mask; i++) {
        if (!cw_ip_is_none(&relay->hosts[i].ip)) {
            *host_place(grown, mask, &relay->hosts[i].ip) = relay->hosts[i];
        }
    }
    free(relay->hosts);
    relay->hosts = grown;
    relay->host_mask = mask;
    return CW_OK;
}

static const struct cw_relay_host *host_find(const struct cw_relay *relay, const struct cw_ip *ip)
{
    const struct cw_relay_host *host = host_place(relay->hosts, relay->host_mask, ip);
    return cw_ip_is_none(&host->ip) ? NULL : host;
}

int cw_relay_open(struct cw_endpoint *endpoint, uint64_t queue_bytes)
{
    if (endpoint->relay != NULL || queue_bytes < LENGTH_BYTES + ETHER_BYTES + CW_PORT_MTU_MAX ||
        queue_bytes > CW_RELAY_QUEUE_MAX) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_relay *relay = calloc(1, sizeof(*relay));
    if (relay == NULL || (relay->hosts = calloc(HOSTS_FIRST, sizeof(*relay->hosts))) == NULL) {
        free(relay);
        return CW_ERROR_MEMORY;
    }
    relay->queue_bytes = queue_bytes;
    relay->host_mask = HOSTS_FIRST - 1;
    for (uint32_t i = 0; i < CW_SHAPERS_MAX; i++) {
        relay->queues[i].shaping = (struct cw_shaping){.shaper = (uint8_t)i, .relays = true};
    }
    endpoint->relay = relay;
    return CW_OK;
}

int cw_relay_host_set(struct cw_endpoint *endpoint, const struct cw_relay_host *host)
{
    struct cw_relay *relay = endpoint->relay;
    if (relay == NULL || cw_ip_is_none(&host->ip) ||
        (host->shaper >= CW_SHAPERS_MAX && host->shaper != CW_SHAPER_NONE)) {
        return CW_ERROR_ARGUMENT;
    }
    if (2 * relay->host_count > relay->host_mask && hosts_grow(relay) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    struct cw_relay_host *place = host_place(relay->hosts, relay->host_mask, &host->ip);
    relay->host_count += cw_ip_is_none(&place->ip);
    *place = *host;
    return CW_OK;
}

void cw_relay_dispose(struct cw_endpoint *endpoint)
{
    struct cw_relay *relay = endpoint->relay;
    for (uint32_t i = 0; relay != NULL && i < CW_SHAPERS_MAX; i++) {
        free(relay->queues[i].ring);
    }
    if (relay != NULL) {
        free(relay->hosts);
    }
    free(relay);
    endpoint->relay = NULL;
}

/* ---- frames ---- */

/* Puts a frame among those that leave, for its next hop. False: the port has no room. */
static bool forward(struct cw_endpoint *endpoint, const struct cw_relay_host *host, const uint8_t *frame,
                    uint32_t length)
{
    struct cw_transmit *packet = cw_stage(endpoint);
    if (packet == NULL) {
        return false;
    }
    memcpy(packet->data, frame, length);
    packet->length = length;
    struct cw_wire_network *network = (struct cw_wire_network *)packet->data;
    memcpy(network->destination_mac, host->mac, 6);
    memcpy(network->source_mac, endpoint->config.address.mac, 6);
    cw_wire_passage_hop(packet->data);
    cw_count(endpoint, CW_COUNTER_RELAYED, 1);
    cw_count(endpoint, CW_COUNTER_BYTES_OUT, length);
    return true;
}

/* Copies from or to the ring, around its end. */
static void ring_copy(uint8_t *ring, uint64_t ring_bytes, uint64_t at, uint8_t *outside, uint32_t bytes, bool in)
{
    uint64_t place = at % ring_bytes;
    uint32_t first = bytes < ring_bytes - place ? bytes : (uint32_t)(ring_bytes - place);
    if (in) {
        memcpy(ring + place, outside, first);
        memcpy(ring, outside + first, bytes - first);
    } else {
        memcpy(outside, ring + place, first);
        memcpy(outside + first, ring, bytes - first);
    }
}

static bool enqueue(struct cw_endpoint *endpoint, struct cw_relay_queue *queue, const uint8_t *frame, uint32_t length)
{
    uint64_t ring_bytes = endpoint->relay->queue_bytes;
    if (queue->ring == NULL) {
        queue->ring = malloc(ring_bytes);
    }
    if (queue->ring == NULL || queue->tail - queue->head + LENGTH_BYTES + length > ring_bytes) {
        return false;
    }
    ring_copy(queue->ring, ring_bytes, queue->tail, (uint8_t *)&length, LENGTH_BYTES, true);
    ring_copy(queue->ring, ring_bytes, queue->tail + LENGTH_BYTES, (uint8_t *)(uintptr_t)frame, length, true);
    queue->tail += LENGTH_BYTES + length;
    cw_shaper_relay(endpoint, &queue->shaping);
    return true;
}

bool cw_relay_send(struct cw_endpoint *endpoint, struct cw_shaping *shaping, bool *port_full)
{
    struct cw_relay_queue *queue = (struct cw_relay_queue *)shaping; /* its first member */
    uint64_t ring_bytes = endpoint->relay->queue_bytes;
    uint8_t frame[ETHER_BYTES + CW_PORT_MTU_MAX];
    for (uint32_t sent = 0; queue->head != queue->tail && sent < CW_FLOW_BURST; sent++) {
        if (!cw_shaper_is_open(endpoint, shaping)) {
            return true;
        }
        uint32_t length = 0;
        ring_copy(queue->ring, ring_bytes, queue->head, (uint8_t *)&length, LENGTH_BYTES, false);
        ring_copy(queue->ring, ring_bytes, queue->head + LENGTH_BYTES, frame, length, false);
        struct cw_wire_passage passage;
        (void)cw_wire_passage_read(frame, length, &passage); /* it was good when it came */
        const struct cw_relay_host *host = host_find(endpoint->relay, &passage.destination);
        if (!forward(endpoint, host, frame, length)) {
            *port_full = true;
            return true;
        }
        if (endpoint->offloads_out) {
            uint64_t departure_ns = cw_shaper_departure(endpoint, shaping);
            endpoint->staged[endpoint->staged_count - 1].departure_ns =
                departure_ns > endpoint->now_ns ? departure_ns : 0;
        }
        cw_shaper_sent(endpoint, shaping, length);
        queue->head += LENGTH_BYTES + length;
    }
    return queue->head != queue->tail;
}

bool cw_relay_take(struct cw_endpoint *endpoint, const uint8_t *frame, uint32_t length)
{
    struct cw_relay *relay = endpoint->relay;
    struct cw_wire_passage passage;
    if (relay == NULL || !cw_wire_passage_read(frame, length, &passage) ||
        memcmp(frame, endpoint->config.address.mac, 6) != 0 ||
        cw_ip_is_equal(&passage.destination, &endpoint->config.address.ip)) {
        return false;
    }
    uint32_t bytes = passage.bytes;
    const struct cw_relay_host *from = host_find(relay, &passage.source);
    const struct cw_relay_host *to = host_find(relay, &passage.destination);
    bool may = from != NULL && from->sends && to != NULL && !to->sends && passage.hops > 1 &&
               bytes <= ETHER_BYTES + endpoint->port->info.mtu_bytes;
    if (!may) {
        cw_count(endpoint, CW_COUNTER_DROP_RELAY, 1);
        return true;
    }
    bool shaped = to->shaper != CW_SHAPER_NONE;
    bool taken =
        shaped ? enqueue(endpoint, &relay->queues[to->shaper], frame, bytes) : forward(endpoint, to, frame, bytes);
    cw_count(endpoint, CW_COUNTER_DROP_RELAY_FULL, !taken);
    return true;
}
