#include "dataplane/flow/setup.h"

#include <string.h>

#include "dataplane/flow/integrity.h"
#include "dataplane/flow/stream.h"
#include "dataplane/flow/table.h"
#include "dataplane/staging/seal.h"
#include "dataplane/staging/stage.h"

static void setup_fill(const struct cw_endpoint *endpoint, const struct cw_flow *flow, enum cw_wire_type type,
                       const struct cw_setup_content *content, struct cw_setup *setup)
{
    const struct cw_address *own = &endpoint->config.address;
    const struct cw_setup *echo = content->echo;
    setup->hello = (struct cw_wire_hello){
        .session = content->local,
        .peer_session = content->peer,
        .incarnation = endpoint->incarnation,
        .pool_token = endpoint->messages.region == NULL ? 0 : endpoint->messages.region->token,
        .pool_slot_bytes = endpoint->config.pool_slot_bytes,
        .flow = content->sealed ? cw_seal_flow(flow->index, content->local) : flow->index,
        .data_number = cw_setup_data_number(content->local),
        .control_number = cw_setup_control_number(content->local),
        .sender_ip = own->ip,
        .receiver_ip = flow->address.ip,
        .sender_port = cw_flow_port(endpoint, flow),
        .receiver_port = flow->address.udp_port,
        .payload_bytes_max = content->sealed && endpoint->config.encryption == CW_ENCRYPTION_OFF
                                 ? 0
                                 : (uint16_t)endpoint->payload_bytes_max,
        .packet_window = (uint32_t)cw_window_span(),
        .put_window = CW_PUT_WINDOW,
        .medium = cw_integrity_medium(endpoint),
    };
    memcpy(setup->hello.sender_mac, own->mac, 6);
    setup->header = (struct cw_wire_header){
        .version = CW_WIRE_VERSION,
        .type = (uint8_t)type,
        .flags = endpoint->packet_flags | (endpoint->rdma != NULL ? CW_WIRE_RDMA : 0),
        .timestamp = cw_wire_timestamp(endpoint->now_ns),
        .echo = echo == NULL ? 0 : echo->header.timestamp,
        .echo_delay = echo == NULL ? CW_WIRE_DELAY_UNKNOWN : 0,
        .payload_bytes = sizeof(setup->hello),
    };
}

static void sign_setup(const struct cw_endpoint *endpoint, struct cw_setup *setup)
{
    struct cw_wire_key key;
    memcpy(key.bytes, endpoint->config.job_key, sizeof(key.bytes));
    setup->header.checksum = cw_wire_checksum(0, &setup->hello, sizeof(setup->hello));
    setup->header.tag = cw_wire_setup_tag(&setup->header, &setup->hello, &key);
}

/* A keyed hash of a unique input: even processes that were given the same seed, by mistake, have other addresses or
 * begin at other times. */
static void draw_unique(struct cw_endpoint *endpoint, uint8_t nonce[CW_WIRE_SETUP_NONCE_BYTES])
{
    struct {
        uint64_t incarnation, count, now_ns;
        struct cw_ip ip;
        uint64_t udp_port;
    } unique = {.incarnation = endpoint->incarnation,
                .count = ++endpoint->setup_count,
                .now_ns = endpoint->now_ns,
                .ip = endpoint->config.address.ip,
                .udp_port = endpoint->config.address.udp_port};
    cw_wire_setup_nonce(nonce, endpoint->setup_key, &unique, sizeof(unique));
}

uint64_t cw_setup_session(struct cw_endpoint *endpoint)
{
    uint64_t session = cw_random_next(&endpoint->random);
    /* under keys that are made from it no count may come twice */
    if (endpoint->config.encryption != CW_ENCRYPTION_OFF) {
        uint8_t nonce[CW_WIRE_SETUP_NONCE_BYTES];
        draw_unique(endpoint, nonce);
        memcpy(&session, nonce, sizeof(session));
    }
    return session != 0 ? session : 1;
}

static void seal_setup(struct cw_endpoint *endpoint, const struct cw_setup *plain, struct cw_wire_sealed_setup *sealed)
{
    *sealed = (struct cw_wire_sealed_setup){
        .version = plain->header.version,
        .type = plain->header.type,
        .flags = plain->header.flags | CW_WIRE_ENCRYPTED,
        .timestamp = plain->header.timestamp,
        .echo = plain->header.echo,
        .hello = plain->hello,
    };
    draw_unique(endpoint, sealed->nonce);
    cw_wire_setup_seal(sealed, endpoint->setup_key);
}

void cw_setup_send(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_wire_type type,
                   const struct cw_setup_content *content)
{
    struct cw_transmit *packet = cw_stage(endpoint);
    if (packet == NULL) {
        return; /* the timer tries again */
    }
    struct cw_setup setup;
    setup_fill(endpoint, flow, type, content, &setup);
    uint8_t *at = packet->data;
    uint32_t payload_bytes = sizeof(setup.hello) + (content->sealed ? CW_WIRE_MAC_BYTES : 0);
    struct cw_wire_receiver receiver;
    cw_flow_receiver(endpoint, flow, &receiver);
    cw_wire_outer_write(&endpoint->outer, &receiver, at, payload_bytes);
    if (content->echo != NULL && flow->mac_learned) {
        memcpy(at, content->echo->hello.sender_mac, 6); /* back to the requester */
    }
    if (content->sealed) {
        seal_setup(endpoint, &setup, (struct cw_wire_sealed_setup *)(at + endpoint->outer.bytes));
    } else {
        sign_setup(endpoint, &setup);
        memcpy(at + endpoint->outer.bytes, &setup, sizeof(setup));
    }
    packet->length = endpoint->overhead_bytes + payload_bytes;
}

bool cw_setup_verified(struct cw_endpoint *endpoint, const struct cw_wire_header *header, struct cw_setup *setup)
{
    if ((header->flags & CW_WIRE_ENCRYPTED) != 0) {
        struct cw_wire_sealed_setup opened;
        if (cw_wire_sealed_bytes(header) + CW_WIRE_READABLE_BYTES + CW_WIRE_MAC_BYTES != sizeof(opened)) {
            cw_count(endpoint, CW_COUNTER_DROP_MALFORMED, 1);
            return false;
        }
        if (!cw_wire_setup_unseal((const struct cw_wire_sealed_setup *)header, endpoint->setup_key, &opened)) {
            cw_count(endpoint, CW_COUNTER_DROP_SEAL, 1);
            return false;
        }
        setup->header = (struct cw_wire_header){
            .type = opened.type, .flags = opened.flags, .timestamp = opened.timestamp, .echo = opened.echo};
        setup->header.echo_delay = opened.type == CW_WIRE_HELLO ? CW_WIRE_DELAY_UNKNOWN : 0;
        setup->hello = opened.hello;
        return true;
    }
    if (header->payload_bytes != sizeof(struct cw_wire_hello)) {
        cw_count(endpoint, CW_COUNTER_DROP_MALFORMED, 1);
        return false;
    }
    struct cw_wire_key key;
    memcpy(key.bytes, endpoint->config.job_key, sizeof(key.bytes));
    const struct cw_wire_hello *hello = (const struct cw_wire_hello *)(header + 1);
    if (header->flow != 0 || header->number != 0 || cw_wire_setup_tag(header, hello, &key) != header->tag) {
        cw_count(endpoint, CW_COUNTER_DROP_TAG, 1);
        return false;
    }
    if (cw_wire_checksum(0, header + 1, header->payload_bytes) != header->checksum) {
        cw_count(endpoint, CW_COUNTER_DROP_CHECKSUM, 1);
        return false;
    }
    memcpy(setup, header, sizeof(*setup));
    return true;
}

/* A flow for a request on a further stream, if the process that asks is known. */
static struct cw_flow *stream_add(struct cw_endpoint *endpoint, const struct cw_wire_hello *hello, uint32_t stream)
{
    if (hello->sender_port <= stream) {
        return NULL;
    }
    struct cw_flow *first = cw_flow_find(endpoint, &hello->sender_ip, (uint16_t)(hello->sender_port - stream));
    return first != NULL && first->stream == 0 ? cw_stream_add(endpoint, first, stream) : NULL;
}

struct cw_flow *cw_setup_flow(struct cw_endpoint *endpoint, const struct cw_setup *setup)
{
    const struct cw_wire_hello *hello = &setup->hello;
    uint32_t stream = cw_setup_stream(endpoint, hello);
    if (hello->sender_port == 0) {
        return NULL;
    }
    struct cw_flow *flow = cw_flow_find(endpoint, &hello->sender_ip, hello->sender_port);
    if (flow != NULL && flow->stream != stream) {
        return NULL;
    }
    if (flow == NULL && stream > 0 && setup->header.type == CW_WIRE_HELLO) {
        flow = stream_add(endpoint, hello, stream);
    }
    bool may_add = endpoint->config.accept_unknown && setup->header.type == CW_WIRE_HELLO &&
                   (cw_setup_is_sealed(setup) || endpoint->config.encryption != CW_ENCRYPTION_REQUIRED);
    if (flow == NULL && may_add) {
        struct cw_address address = {.ip = hello->sender_ip, .udp_port = hello->sender_port};
        memcpy(address.mac, hello->sender_mac, 6);
        uint32_t index;
        if (cw_flow_add(endpoint, &address, stream, &index) == CW_OK) {
            flow = cw_endpoint_flow(endpoint, index);
            flow->mac_learned = true;
        }
    }
    return flow;
}
