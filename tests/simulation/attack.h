/* Shared by tests of hostile packets: frames recorded in flight, packets signed or sealed by hand and injected. */
#pragma once

#include "tests/simulation/simulation.h"

#include "dataplane/crypt/aead.h"
#include "dataplane/flow/receive.h"
#include "dataplane/flow/table.h"
#include "dataplane/staging/seal.h"
#include "dataplane/state/endpoint.h"
#include "dataplane/wire/sealed.h"
#include "dataplane/wire/wire.h"

enum { FRAME_BYTES = 2048 };

struct frame {
    uint32_t node; /* that it left, or came to */
    uint32_t length;
    uint8_t bytes[FRAME_BYTES];
};

struct recording {
    enum cw_simulator_tap_kind kind;
    bool is_off;
    bool (*wants)(uint32_t node, const uint8_t *frame, uint32_t length); /* NULL: all */
    struct frame *frames;                                                /* [most] */
    uint32_t count;
    uint32_t most;
};

static inline struct cw_wire_header *header_of(uint8_t *frame)
{
    return (struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
}

static inline bool is_setup(const uint8_t *frame)
{
    return frame[CW_WIRE_NETWORK_BYTES + offsetof(struct cw_wire_header, type)] <= CW_WIRE_HELLO_REPLY;
}

static inline void record(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                          const uint8_t *frame, uint32_t length)
{
    struct recording *recording = context;
    if (kind == recording->kind && !recording->is_off && recording->count < recording->most && length <= FRAME_BYTES &&
        (recording->wants == NULL || recording->wants(node, frame, length))) {
        struct frame *kept = &recording->frames[recording->count++];
        kept->node = node;
        kept->length = length;
        memcpy(kept->bytes, frame, length);
    }
}

/* From now on; earlier recordings stay. */
static inline void recording_begin(struct recording *recording, struct sim_hosts *hosts, uint32_t most)
{
    if (recording->frames == NULL) {
        recording->frames = calloc(most, sizeof(*recording->frames));
        recording->most = most;
    }
    cw_simulator_tap_set(hosts->simulator, record, recording);
}

/* After the hosts' end. */
static inline void recording_free(struct recording *recording)
{
    free(recording->frames);
    free(recording);
}

/* The headers before a packet's own, for the bytes behind them. */
static inline void network_write(uint8_t *frame, const struct cw_endpoint *target, uint32_t from_ipv4, uint32_t behind)
{
    struct cw_address to = cw_endpoint_address(target);
    struct cw_wire_network *network = (struct cw_wire_network *)frame;
    cw_wire_network_init(network, to.mac, to.mac, from_ipv4, cw_ip_to_v4(&to.ip), CW_UDP_PORT, to.udp_port);
    cw_wire_network_finish(network, behind);
}

/* The target's flow for a host; NULL: it has none. */
static inline struct cw_flow *flow_from(const struct cw_endpoint *target, uint32_t ipv4)
{
    struct cw_ip ip = cw_ip_v4(ipv4);
    return cw_flow_find(target, &ip, CW_UDP_PORT);
}

/* ---- packets that the madman makes ---- */

enum { TARGET = 0, MADMAN = 1, BYSTANDER = 2 };

#define MADMAN_IPV4 (0x0a000001u + MADMAN)

/* Of the next data packet that the other end of a flow may send. */
static inline struct cw_wire_header header_next(const struct cw_flow *flow, uint32_t payload_bytes)
{
    return (struct cw_wire_header){.version = CW_WIRE_VERSION,
                                   .type = CW_WIRE_DATA,
                                   .flow = flow->index,
                                   .number = (uint32_t)flow->receiver.packets.base,
                                   .acknowledged = (uint32_t)flow->sender.sent.base,
                                   .timestamp = flow->receiver.echo,
                                   .payload_bytes = (uint16_t)payload_bytes};
}

/* A set-up request, or the answer to one. */
static inline struct cw_wire_hello hello_next(const struct cw_endpoint *target, uint64_t session, uint64_t peer_session)
{
    return (struct cw_wire_hello){.session = session,
                                  .peer_session = peer_session,
                                  .sender_ip = cw_ip_v4(MADMAN_IPV4),
                                  .receiver_ip = target->config.address.ip,
                                  .sender_port = CW_UDP_PORT,
                                  .receiver_port = CW_UDP_PORT,
                                  .payload_bytes_max = 1400,
                                  .packet_window = 1000,
                                  .put_window = 1000};
}

/* Writes what is in front of a payload: the header with the CRC of the first `covered` bytes, and with the tag of
 * packet `number`. Returns the length of the frame. */
static inline uint32_t packet_sign(uint8_t *frame, const struct cw_endpoint *target, struct cw_wire_header *header,
                                   uint64_t number, uint32_t covered, const struct cw_wire_key *key)
{
    const uint8_t *payload = frame + CW_WIRE_OVERHEAD_BYTES;
    header->checksum = cw_wire_checksum(0, payload, covered);
    header->tag = header->type <= CW_WIRE_HELLO_REPLY
                      ? cw_wire_setup_tag(header, (const struct cw_wire_hello *)payload, key)
                      : cw_wire_tag(header, (uint32_t)(number >> 32), key);
    network_write(frame, target, MADMAN_IPV4, header->payload_bytes);
    memcpy(frame + CW_WIRE_NETWORK_BYTES, header, sizeof(*header));
    return CW_WIRE_OVERHEAD_BYTES + header->payload_bytes;
}

/* Seals, or opens, a whole frame by the key that the target has for a session of the job with this key. */
static inline bool packet_crypt(const struct cw_flow *flow, const uint8_t *job_key, enum cw_aead_direction direction,
                                uint64_t count, uint8_t *frame, uint32_t length)
{
    struct cw_wire_seal_key derived;
    struct cw_aead_key *key;
    struct cw_wire_sealed *header = (struct cw_wire_sealed *)(frame + CW_WIRE_NETWORK_BYTES);
    cw_wire_seal_derive(&derived, job_key, flow->session.peer, flow->session.local);
    assert_int_equal(cw_aead_key_create(direction, derived.key, derived.salt, CW_WIRE_READABLE_BYTES, &key), CW_OK);
    struct cw_aead_packet packet = {.readable = (uint8_t *)header,
                                    .data = header->fields,
                                    .bytes =
                                        length - CW_WIRE_NETWORK_BYTES - CW_WIRE_READABLE_BYTES - CW_WIRE_MAC_BYTES,
                                    .count = count};
    (direction == CW_AEAD_SEAL ? cw_aead_seal : cw_aead_unseal)(key, &packet, 1);
    cw_aead_key_destroy(key);
    return packet.good;
}

/* As packet_sign, for a sealed session; its payload has `payload_bytes`, independent of the header. */
static inline uint32_t packet_seal(uint8_t *frame, const struct cw_endpoint *target, const struct cw_flow *flow,
                                   struct cw_wire_header *header, uint32_t payload_bytes, uint64_t count,
                                   const uint8_t *job_key)
{
    uint32_t length = CW_WIRE_OVERHEAD_BYTES + payload_bytes + CW_WIRE_MAC_BYTES;
    header->flow = cw_seal_flow(flow->index, flow->session.local);
    network_write(frame, target, MADMAN_IPV4, length - CW_WIRE_OVERHEAD_BYTES);
    cw_wire_sealed_write((struct cw_wire_sealed *)header_of(frame), header, count);
    assert_true(packet_crypt(flow, job_key, CW_AEAD_SEAL, count, frame, length));
    return length;
}

/* A sealed set-up packet of the job with this key. Returns the length of the frame. */
static inline uint32_t setup_seal(uint8_t *frame, const struct cw_endpoint *target, struct cw_wire_sealed_setup *setup,
                                  const uint8_t *setup_key)
{
    setup->version = CW_WIRE_VERSION;
    setup->flags = CW_WIRE_ENCRYPTED;
    cw_wire_setup_seal(setup, setup_key);
    memcpy(frame + CW_WIRE_NETWORK_BYTES, setup, sizeof(*setup));
    network_write(frame, target, MADMAN_IPV4, sizeof(*setup) - CW_WIRE_HEADER_BYTES);
    return CW_WIRE_NETWORK_BYTES + sizeof(*setup);
}

/* ---- letting in ---- */

static inline void frame_let_in(struct cw_endpoint *target, const uint8_t *bytes, uint32_t length)
{
    struct cw_received packet = {.data = bytes, .length = length};
    cw_receive_frames(target, &packet, 1);
}

/* On their way in together, each in exactly as much memory as it has, so that a sanitizer sees a read beyond it. */
struct burst {
    struct cw_received packets[CW_BURST];
    uint32_t count;
};

static inline void burst_add(struct burst *burst, const uint8_t *bytes, uint32_t length)
{
    uint8_t *exact = malloc(length == 0 ? 1 : length);
    memcpy(exact, bytes, length);
    burst->packets[burst->count++] = (struct cw_received){.data = exact, .length = length};
}

static inline void burst_let_in(struct burst *burst, struct cw_endpoint *target)
{
    cw_receive_frames(target, burst->packets, burst->count);
    for (uint32_t i = 0; i < burst->count; i++) {
        free((void *)(uintptr_t)burst->packets[i].data);
    }
    burst->count = 0;
}

static inline uint64_t rejected_count(const struct cw_endpoint *endpoint)
{
    uint64_t count = 0;
    for (enum cw_counter counter = CW_COUNTER_DROP_SHORT; counter <= CW_COUNTER_DROP_HELLO; counter++) {
        count += cw_endpoint_counter(endpoint, counter);
    }
    return count;
}
