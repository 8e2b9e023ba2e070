/* One turn of the loop: packets in, what is due, packets out. */
#include "dataplane/core/turn.h"

#include <assert.h>
#include <string.h>

#include "dataplane/core/endpoint.h"
#include "dataplane/flow/ack_send.h"
#include "dataplane/flow/receive.h"
#include "dataplane/flow/session.h"
#include "dataplane/flow/timers.h"
#include "dataplane/flow/transmit.h"

enum {
    RESERVE_AT_ONCE = 16,
    PORT_RETRY_NS = 1000, /* a full port is offered packets again after this */
};

/* ---- packets out ---- */

static inline void write_tag(const struct cw_transmit *packet, uint64_t tag)
{
    memcpy(packet->data + CW_WIRE_NETWORK_BYTES + offsetof(struct cw_wire_header, tag), &tag, sizeof(tag));
}

/* Seals the staged packets from `first` on that have the same seal as that one. */
static void seal_alike(struct cw_endpoint *endpoint, uint32_t first)
{
    struct cw_aead_packet packets[CW_BURST];
    struct cw_seal *seal = endpoint->signatures[first].seal;
    uint32_t count = 0;
    for (uint32_t i = first; i < endpoint->staged_count; i++) {
        struct cw_signature *signature = &endpoint->signatures[i];
        if (!signature->wanted || signature->seal != seal) {
            continue;
        }
        signature->wanted = false;
        const struct cw_transmit *staged = &endpoint->staged[i];
        struct cw_wire_sealed *header = (struct cw_wire_sealed *)(staged->data + CW_WIRE_NETWORK_BYTES);
        packets[count] = (struct cw_aead_packet){
            .readable = (uint8_t *)header,
            .data = header->fields,
            .bytes = staged->length - CW_WIRE_NETWORK_BYTES - CW_WIRE_READABLE_BYTES - CW_WIRE_MAC_BYTES,
            .count = header->count,
        };
        count++;
    }
    cw_aead_seal(seal->out, packets, count);
}

void cw_sign(struct cw_endpoint *endpoint)
{
    struct cw_wire_tags tags;
    uint32_t places[CW_BURST];
    tags.count = 0;
    for (uint32_t i = 0; i < endpoint->staged_count; i++) {
        struct cw_signature *signature = &endpoint->signatures[i];
        bool wanted = signature->wanted;
        if (wanted && signature->seal != NULL) {
            seal_alike(endpoint, i);
            continue;
        }
        signature->wanted = false;
        if (wanted && endpoint->staged_count <= CW_WIRE_TAGS_FEW) {
            write_tag(&endpoint->staged[i], cw_wire_tag_words(signature->words, &signature->key));
        } else if (wanted) {
            places[tags.count] = i;
            cw_wire_tags_add(&tags, signature->words, &signature->key);
        }
    }
    cw_wire_tags_compute(&tags);
    for (uint32_t i = 0; i < tags.count; i++) {
        write_tag(&endpoint->staged[places[i]], tags.value[i]);
    }
}

bool cw_flush(struct cw_endpoint *endpoint)
{
    if (endpoint->staged_count == 0) {
        endpoint->port_full = false;
        return true;
    }
    cw_sign(endpoint);
    uint32_t taken = cw_port_transmit(endpoint->port, endpoint->staged, endpoint->staged_count);
    cw_count(endpoint, CW_COUNTER_PACKETS_OUT, taken);
    endpoint->staged_count -= taken;
    endpoint->port_full = endpoint->staged_count > 0;
    if (endpoint->port_full) {
        cw_count(endpoint, CW_COUNTER_PORT_FULL, 1);
        memmove(&endpoint->staged[0], &endpoint->staged[taken], endpoint->staged_count * sizeof(endpoint->staged[0]));
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
        if (endpoint->spare_count == 0) {
            return NULL;
        }
    }
    endpoint->signatures[endpoint->staged_count].wanted = false;
    endpoint->signatures[endpoint->staged_count].seal = NULL;
    struct cw_transmit *packet = &endpoint->staged[endpoint->staged_count++];
    const struct cw_transmit *spare = &endpoint->spare[--endpoint->spare_count];
    packet->data = spare->data;
    packet->handle = spare->handle;
    packet->length = 0;
    packet->piece_count = 0;
    return packet;
}

void cw_endpoint_push(struct cw_endpoint *endpoint, uint32_t flags)
{
    if ((flags & CW_MORE) != 0 || endpoint->port_full) {
        return;
    }
    cw_transmit_turn(endpoint);
    cw_flush(endpoint);
}

/* ---- packets in ---- */

uint32_t cw_endpoint_fetch(struct cw_endpoint *endpoint)
{
    if (!endpoint->has_fetched) {
        endpoint->has_fetched = true;
        endpoint->fetched_count = cw_port_receive(endpoint->port, endpoint->fetched, CW_BURST);
    }
    return endpoint->fetched_count;
}

static uint32_t receive_burst(struct cw_endpoint *endpoint)
{
    uint32_t count = cw_endpoint_fetch(endpoint);
    endpoint->has_fetched = false;
    if (count == 0) {
        return 0;
    }
    struct cw_received *packets = endpoint->fetched;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += packets[i].length;
    }
    cw_receive_frames(endpoint, packets, count);
    cw_count(endpoint, CW_COUNTER_PACKETS_IN, count);
    cw_count(endpoint, CW_COUNTER_BYTES_IN, bytes);
    endpoint->fetched_count = 0;
    cw_port_release(endpoint->port, packets, count);
    return count;
}

/* ---- the turn ---- */

static uint32_t deliver(struct cw_endpoint *endpoint)
{
    uint32_t count = 0;
    if (endpoint->reassemblies.ready_first != NULL) {
        count += cw_reassemblies_deliver(endpoint);
    }
    if (endpoint->undelivered.first != NULL) {
        count += cw_operations_deliver(endpoint);
    }
    if (endpoint->event_first != NULL) {
        count += cw_session_deliver(endpoint);
    }
    return count;
}

uint32_t cw_endpoint_turn(struct cw_endpoint *endpoint, uint64_t now_ns)
{
    assert(now_ns >= endpoint->now_ns);
    endpoint->now_ns = now_ns;
    uint32_t work = deliver(endpoint);
    work += receive_burst(endpoint);
    if (cw_wheel_due(&endpoint->wheel, now_ns)) {
        work += cw_timers_turn(endpoint);
    }
    if (endpoint->messages.waiting_first != NULL) {
        work += cw_messages_turn(endpoint);
    }
    if (endpoint->extension != NULL) {
        work += endpoint->extension->turn(endpoint->extension, now_ns);
        if (endpoint->extension_has_news) {
            cw_extension_deliver(endpoint);
        }
    }
    if (endpoint->staged_count > 0) {
        cw_flush(endpoint);
    }
    work += cw_ack_turn(endpoint);
    work += cw_transmit_turn(endpoint);
    cw_flush(endpoint);
    return work;
}

void cw_endpoint_clock(struct cw_endpoint *endpoint, uint64_t now_ns)
{
    if (now_ns > endpoint->now_ns) {
        endpoint->now_ns = now_ns;
    }
}

void cw_endpoint_busy(struct cw_endpoint *endpoint, uint64_t duration_ns)
{
    uint32_t busy_ns = duration_ns < CW_BUSY_MAX_NS ? (uint32_t)duration_ns : CW_BUSY_MAX_NS;
    /* up at once, down slowly: batches come and go */
    endpoint->busy_ns = busy_ns > endpoint->busy_ns ? busy_ns : endpoint->busy_ns - (endpoint->busy_ns - busy_ns) / 64;
}

bool cw_endpoint_idle(const struct cw_endpoint *endpoint)
{
    return endpoint->active_first == NULL && endpoint->report_first == NULL && endpoint->staged_count == 0 &&
           endpoint->reassemblies.ready_first == NULL && endpoint->undelivered.first == NULL &&
           endpoint->event_first == NULL && endpoint->messages.waiting_first == NULL && endpoint->stop_count == 0;
}

uint64_t cw_endpoint_deadline(const struct cw_endpoint *endpoint)
{
    if (endpoint->port_full) {
        return endpoint->now_ns + PORT_RETRY_NS;
    }
    bool stuck = endpoint->reassemblies.ready_first != NULL || endpoint->undelivered.first != NULL ||
                 endpoint->event_first != NULL || endpoint->messages.waiting_first != NULL ||
                 endpoint->stop_count > 0 || endpoint->extension_has_news;
    if (endpoint->active_first != NULL || endpoint->report_first != NULL) {
        return stuck ? endpoint->now_ns + PORT_RETRY_NS : 0;
    }
    uint64_t next_ns = cw_wheel_next(&endpoint->wheel);
    if (endpoint->extension != NULL) {
        uint64_t extension_ns = endpoint->extension->deadline(endpoint->extension);
        next_ns = extension_ns < next_ns ? extension_ns : next_ns;
    }
    /* what waits for the application or for a slot is looked at now and then; taking events also ends it */
    uint64_t stuck_ns = endpoint->now_ns + CW_ACK_DELAY_NS;
    return stuck && stuck_ns < next_ns ? stuck_ns : next_ns;
}
