/* The packet format, byte by byte as in WIRE.md, and nothing else: no state, no decision.
 *
 * Invariants
 *   - All numbers of our own header are little-endian, Ethernet, IPv4 and UDP big-endian as everywhere.
 *   - cw_wire_parse reads no byte beyond the length it is given and believes no length field before it has been
 *     checked.
 *   - The lengths of a parsed packet are consistent. Only its tag proves that it is authentic. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dataplane/ip.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the wire format is written by plain stores on little-endian machines");

enum {
    CW_WIRE_VERSION = 9,
    CW_WIRE_NETWORK_BYTES = 42,    /* Ethernet 14, IPv4 20, UDP 8 */
    CW_WIRE_NETWORK_V6_BYTES = 62, /* ... IPv6 40 */
    CW_WIRE_HEADER_BYTES = 40,
    CW_WIRE_OVERHEAD_BYTES = CW_WIRE_NETWORK_BYTES + CW_WIRE_HEADER_BYTES, /* over IPv4 */
    CW_WIRE_TIMESTAMP_SHIFT = 4,   /* timestamps count 16 ns: 2^32 of them are 68 s */
    CW_WIRE_DELAY_SHIFT = 8,       /* echo delays count 256 ns: up to 16.7 ms */
    CW_WIRE_DELAY_UNKNOWN = 65535, /* longer, or nothing to echo: not a measurement of the round trip */
    CW_WIRE_KEPT_DATA = 16,        /* data bytes that always have a CRC: an MPI message begins with its envelope */
    CW_WIRE_KEPT_MIN = 256,        /* shorter payloads have a CRC of all bytes, at almost no cost */
};

enum cw_wire_type {
    CW_WIRE_HELLO = 1,
    CW_WIRE_HELLO_REPLY = 2,
    CW_WIRE_DATA = 3,
    CW_WIRE_ACK = 4,
    CW_WIRE_PROBE = 5,
    CW_WIRE_REJECT = 6,
    CW_WIRE_BYE = 7,
    CW_WIRE_TRIAL = 8,            /* its UDP checksum is wrong on purpose: a port that accepts it is not trusted */
    CW_WIRE_EXTENSION_FIRST = 16, /* an extension's (flow/extension.h) */
    CW_WIRE_EXTENSION_LAST = 31,
};

/* The payload of a BYE, one byte, if the session does not end in order. */
enum cw_wire_bye {
    CW_WIRE_BYE_NARROW = 1, /* the path carries small packets, and none as large as before */
};

enum cw_wire_flags {
    CW_WIRE_WAITING_MASK = 3, /* enum cw_waiting of the sender */
    CW_WIRE_ACK_NOW = 4,      /* the sender pauses: acknowledge at once */
    CW_WIRE_ENCRYPTED = 8,    /* the packet is sealed: wire/sealed.h has its form */
    CW_WIRE_SUMMED =
        16, /* DATA whose UDP checksum covers the data: the CRC is of the frame's header, see cw_wire_kept_bytes */
    CW_WIRE_RDMA = 32, /* set-up: the sender has an RDMA device */
    CW_WIRE_KEPT = 64, /* ... payload protected by the medium */
    CW_WIRE_FLAGS_KNOWN = 127,
};

struct cw_wire_network {
    uint8_t destination_mac[6];
    uint8_t source_mac[6];
    uint8_t ether_type[2];
    uint8_t version_length; /* 0x45 */
    uint8_t service;
    uint8_t total_length[2];
    uint8_t identification[2];
    uint8_t fragment[2];
    uint8_t time_to_live;
    uint8_t protocol;
    uint8_t header_checksum[2];
    uint8_t source_ipv4[4];
    uint8_t destination_ipv4[4];
    uint8_t source_port[2];
    uint8_t destination_port[2];
    uint8_t udp_length[2];
    uint8_t udp_checksum[2]; /* 0: none; the payload checksum and the tag do more */
};
static_assert(sizeof(struct cw_wire_network) == CW_WIRE_NETWORK_BYTES, "Ethernet, IPv4 and UDP headers");

struct cw_wire_network_v6 {
    uint8_t destination_mac[6];
    uint8_t source_mac[6];
    uint8_t ether_type[2];
    uint8_t version_class_label[4]; /* 0x60000000 */
    uint8_t payload_length[2];      /* of all bytes after this header */
    uint8_t next_header;
    uint8_t hop_limit;
    uint8_t source[16];
    uint8_t destination[16];
    uint8_t source_port[2];
    uint8_t destination_port[2];
    uint8_t udp_length[2];
    uint8_t udp_checksum[2]; /* never 0 (RFC 8200, 8.1) */
};
static_assert(sizeof(struct cw_wire_network_v6) == CW_WIRE_NETWORK_V6_BYTES, "Ethernet, IPv6 and UDP headers");

/* The outer headers of one sender's packets, as far as they are the same for all receivers. */
struct cw_wire_outer {
    union {
        struct cw_wire_network v4;
        struct cw_wire_network_v6 v6;
    };
    uint8_t bytes; /* which of the two */
};

/* The receiver of a packet, and the sender's port. */
struct cw_wire_receiver {
    struct cw_ip ip; /* of the sender's kind */
    uint8_t mac[6];  /* of the next hop */
    uint16_t port;
    uint16_t own_port;
    bool by_device; /* a group, by datagrams of the RDMA device */
};

struct __attribute__((packed)) cw_wire_header {
    uint8_t version;
    uint8_t type;
    uint16_t flags;
    uint32_t flow;         /* the receiver's number for this connection; 0 in set-up packets */
    uint32_t number;       /* low half of the packet number, see WIRE.md */
    uint32_t timestamp;    /* sender's clock when this transmission left */
    uint32_t acknowledged; /* all data packets below this number have arrived */
    uint32_t echo;         /* timestamp of the latest packet that the sender has received */
    uint16_t echo_delay;   /* how long ago that was */
    uint16_t payload_bytes;
    uint32_t checksum; /* CRC-32C of the payload; with CW_WIRE_SUMMED or CW_WIRE_KEPT see cw_wire_kept_bytes */
    uint64_t tag;
};
static_assert(sizeof(struct cw_wire_header) == CW_WIRE_HEADER_BYTES, "fixed header");
static_assert(offsetof(struct cw_wire_header, tag) == 32, "the tag covers the 32 bytes before it");
static_assert(offsetof(struct cw_wire_header, flow) == 4 && offsetof(struct cw_wire_header, number) == 8 &&
                  offsetof(struct cw_wire_header, acknowledged) == 16 &&
                  offsetof(struct cw_wire_header, echo_delay) == 24 && offsetof(struct cw_wire_header, checksum) == 28,
              "as cw_wire_header_words has them");

/* Set-up, both directions. */
struct __attribute__((packed)) cw_wire_hello {
    uint64_t session;      /* of the sender: random for each attempt to connect */
    uint64_t peer_session; /* of the receiver: proves that the sender knows it; 0: a request */
    uint64_t incarnation;  /* of the sending endpoint: random at its creation */
    uint64_t pool_token;   /* region of the sender's message pool, 0: accepts no messages */
    uint32_t pool_slot_bytes;
    uint32_t flow;        /* the receiver must write it into `flow` from now on */
    uint32_t data_number; /* first data packet number of the sender */
    uint32_t control_number;
    struct cw_ip sender_ip;
    struct cw_ip receiver_ip;
    uint16_t sender_port;
    uint16_t receiver_port;
    uint8_t sender_mac[6];
    uint16_t payload_bytes_max; /* largest payload_bytes the sender of this can receive */
    uint32_t packet_window;
    uint32_t put_window;
    uint32_t
        medium; /* of the sender's port (struct cw_port_info); 0: none protects payloads, or none may be relied on */
};
static_assert(sizeof(struct cw_wire_hello) == 104, "set-up");

enum cw_wire_frame_kind {
    CW_FRAME_PUT = 1,  /* a whole put */
    CW_FRAME_PART = 2, /* some bytes of a put */
    CW_FRAME_VOID = 3, /* the put of this number is cancelled; `length` is its predecessor distance */
    CW_FRAME_GET = 4,
    CW_FRAME_ASK = 5,         /* `length` message slots wanted */
    CW_FRAME_GRANT = 6,       /* `length` slot numbers follow, 16 bits each */
    CW_FRAME_RECALL = 7,      /* return unused slots */
    CW_FRAME_RETURN = 8,      /* `length` slot numbers follow, 16 bits each */
    CW_FRAME_RDMA = 9,        /* `length` bytes of struct cw_wire_rdma follow */
    CW_FRAME_CHUNK = 10,      /* some bytes of a put, or all, compressed; alone in its packet */
    CW_FRAME_VOID_REPLY = 11, /* as VOID, and the get fails that it would have answered */
};

/* The prefix of every frame of a DATA packet; each frame, its data included, is padded to 8 bytes. */
struct __attribute__((packed)) cw_wire_frame {
    uint8_t kind;
    uint8_t flags;   /* 0 in this version */
    uint16_t length; /* PUT, PART, CHUNK: data bytes that follow; ASK, GRANT, RETURN: count; VOID: see above; GET: the
                            type of the elements, enum cw_element; else 0 */
    uint32_t put_number; /* low half */
};
static_assert(sizeof(struct cw_wire_frame) == 8, "frame prefix");

struct __attribute__((packed)) cw_wire_void_reply {
    struct cw_wire_frame frame;
    uint16_t reply;       /* number of the get */
    uint16_t reserved[3]; /* 0 */
};
static_assert(sizeof(struct cw_wire_void_reply) == 16, "an answer that is given up");

struct __attribute__((packed)) cw_wire_put {
    struct cw_wire_frame frame;
    uint16_t predecessor; /* the put before it in its lane is this many numbers back; 0: none in progress */
    uint16_t reply;       /* answers the get with this number, 0: none */
    uint32_t lane_tag;
    uint64_t token;
    uint64_t offset; /* of the whole put's first byte in the region */
};
static_assert(sizeof(struct cw_wire_put) == 32, "a whole put");

struct __attribute__((packed)) cw_wire_part {
    struct cw_wire_put put;
    uint64_t position; /* of this frame's first byte in the put */
    uint64_t total;    /* bytes of the whole put */
};
static_assert(sizeof(struct cw_wire_part) == 48, "part of a put");

struct __attribute__((packed)) cw_wire_chunk {
    struct cw_wire_put put;
    uint64_t position;  /* of its first byte in the put */
    uint64_t total;     /* bytes of the whole put */
    uint16_t raw_bytes; /* that it represents, more than its length */
    uint8_t codec;      /* enum cw_codec */
    uint8_t parameter;
    uint32_t reserved; /* 0 */
};
static_assert(sizeof(struct cw_wire_chunk) == 56, "a compressed part of a put");

struct __attribute__((packed)) cw_wire_get {
    struct cw_wire_put put; /* token and offset to read from; reply: number for the answer */
    uint64_t bytes;
    uint64_t local_token; /* the place of the answer */
    uint64_t local_offset;
};
static_assert(sizeof(struct cw_wire_get) == 56, "get");

enum cw_wire_rdma_kind {
    CW_WIRE_RDMA_OFFER = 1,  /* a queue pair, to be connected with the receiver's of the same incarnation */
    CW_WIRE_RDMA_ACCEPT = 2, /* the sender's queue pair of this incarnation is connected */
    CW_WIRE_RDMA_NONE = 3,   /* the sender has no device, or has stopped trying: packets carry all of this session */
};

/* The set-up data of a queue pair, from either end. */
struct __attribute__((packed)) cw_wire_rdma {
    uint8_t kind;
    uint8_t reads; /* OFFER: reads that the sender's device answers at a time */
    uint16_t lid;  /* OFFER, like all fields from here on except `incarnation` */
    uint32_t incarnation;
    uint64_t received; /* notified writes and messages received by the pair `previous`: the others are sent again */
    uint8_t gid[16];
    uint32_t number;
    uint32_t first; /* packet number */
    uint32_t mtu_bytes;
    uint32_t previous; /* incarnation of the sender's last connected pair; 0: none */
};
static_assert(sizeof(struct cw_wire_rdma) == 48, "a queue pair");

struct __attribute__((packed)) cw_wire_run {
    uint16_t missing;
    uint16_t received;
};

enum cw_wire_ack_flags {
    CW_WIRE_ACK_STOP = 1,        /* the receiver's queues are full: send no new data until this flag is cleared */
    CW_WIRE_ACK_END = 2,         /* nothing at or above the end of the last run has arrived */
    CW_WIRE_ACK_SUMS = 4,        /* the receiver accepts packets with CW_WIRE_SUMMED */
    CW_WIRE_ACK_TRY = 8,         /* ... and requests a TRIAL */
    CW_WIRE_ACK_PROBE_SHIFT = 4, /* from this bit on: of the latest PROBE with a payload (cw_wire_probe_word) */
    CW_WIRE_PROBE_WORD = 0xfff,  /* its bits */
};

/* The packet numbers that have and have not arrived, from `from` on, to the end of the runs. */
struct __attribute__((packed)) cw_wire_ack {
    uint32_t from;
    uint16_t run_count;
    uint16_t flags;
    uint32_t duplicates; /* repeated data packets, in total */
    uint32_t busy_ns;    /* duration of a busy turn of the receiver: time of the host, not of a queue in the network */
};
static_assert(sizeof(struct cw_wire_ack) == 16 && sizeof(struct cw_wire_run) == 4, "acknowledgement");

struct __attribute__((packed)) cw_wire_reject {
    uint32_t number; /* of the rejected data packet */
    uint32_t put_number;
    uint64_t reserved;
};
static_assert(sizeof(struct cw_wire_reject) == 16, "refusal");

/* The key of one direction of one connection (or the job key, for set-up packets). */
struct cw_wire_key {
    uint8_t bytes[16];
};

/* The reason why a packet was dropped; 0: it was accepted. Callers map the values to counters. */
enum cw_wire_verdict {
    CW_WIRE_GOOD = 0,
    CW_WIRE_SHORT,
    CW_WIRE_FOREIGN,
    CW_WIRE_OTHER_VERSION,
    CW_WIRE_MALFORMED,
};

/* Finds our header in a received Ethernet frame of `length` bytes. Our packets are addressed to `own`, at
 * the `ports` ports from `own_port` on. An extension's packet may also be addressed to any multicast group, at
 * `group_port` (0: at those ports). All others are CW_WIRE_FOREIGN. *header points into the frame, its payload follows
 * it and lies within the frame. Of a packet with the flag CW_WIRE_ENCRYPTED only version, type, flags and flow may be
 * read before it has been opened (wire/sealed.h); it is as long as its headers and its MAC at least. */
enum cw_wire_verdict cw_wire_parse(const uint8_t *frame, uint32_t length, const struct cw_ip *own, uint16_t own_port,
                                   uint32_t ports, uint16_t group_port, const struct cw_wire_header **header);

/* Bytes of the UDP datagram of a header that cw_wire_parse has accepted, the UDP header included. */
static inline uint32_t cw_wire_datagram_bytes(const struct cw_wire_header *header)
{
    const uint8_t *length = (const uint8_t *)header - 4;
    return (uint32_t)length[0] << 8 | length[1];
}

/* A multicast group, by its IPv4 address, host byte order. Over IPv6 it is ff15::, an unregistered
 * group of the site (RFC 4291, 2.7), with these 32 bits at its end. */
static inline struct cw_ip cw_wire_group(uint32_t ipv4, bool is_v6)
{
    struct cw_ip group = cw_ip_v4(ipv4);
    if (is_v6) {
        memset(group.bytes, 0, 12);
        group.bytes[0] = 0xff;
        group.bytes[1] = 0x15;
    }
    return group;
}

/* The MAC address of a multicast group (RFC 1112, 6.4; RFC 2464, 7). */
static inline void cw_wire_group_mac(const struct cw_ip *group, uint8_t mac[6])
{
    bool is_v4 = cw_ip_is_v4(group);
    mac[0] = is_v4 ? 0x01 : 0x33;
    mac[1] = is_v4 ? 0x00 : 0x33;
    memcpy(mac + 2, group->bytes + 12, 4);
    if (is_v4) {
        mac[2] = 0x5e;
        mac[3] &= 0x7f;
    }
}

/* Ethernet, IPv4 and UDP headers for one receiver, lengths still open. Addresses in host byte order. */
void cw_wire_network_init(struct cw_wire_network *network, const uint8_t source_mac[6],
                          const uint8_t destination_mac[6], uint32_t source_ipv4, uint32_t destination_ipv4,
                          uint16_t source_port, uint16_t destination_port);
/* Completes a copy of such headers in front of a packet: lengths and the IPv4 checksum for `payload_bytes` after our
 * header. */
void cw_wire_network_finish(struct cw_wire_network *network, uint32_t payload_bytes);

/* The same for many receivers, over IPv4 or IPv6. */
void cw_wire_outer_init(struct cw_wire_outer *outer, const uint8_t mac[6], const struct cw_ip *ip);
/* Writes the headers in front of a packet with `payload_bytes` after our header. Over IPv6 cw_wire_udp_checksum_set
 * must follow, unless the port writes the checksum. */
void cw_wire_outer_write(const struct cw_wire_outer *outer, const struct cw_wire_receiver *receiver, uint8_t *at,
                         uint32_t payload_bytes);

/* The destination of one of our frames. */
static inline struct cw_ip cw_wire_destination(const uint8_t *frame, bool is_v4)
{
    struct cw_ip ip;
    if (is_v4) {
        const uint8_t *at = ((const struct cw_wire_network *)frame)->destination_ipv4;
        return cw_ip_v4((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
    }
    memcpy(ip.bytes, ((const struct cw_wire_network_v6 *)frame)->destination, sizeof(ip.bytes));
    return ip;
}

/* The Internet checksum (RFC 1071) of bytes that lie in several pieces; begin with zeros. */
struct cw_wire_sum {
    uint64_t sum;
    bool is_odd; /* bytes so far */
};
void cw_wire_sum_add(struct cw_wire_sum *sum, const void *data, size_t bytes);
/* As it is stored. */
uint16_t cw_wire_sum_end(const struct cw_wire_sum *sum);

/* Begins the UDP checksum of a packet over IPv6, with the pseudo-header and the first `length` bytes of the frame;
 * false: not over IPv6, or with a checksum. Add the other pieces after it; cw_wire_udp_checksum_set ends it. */
bool cw_wire_udp_checksum_begin(struct cw_wire_sum *sum, const uint8_t *frame, uint32_t length);
void cw_wire_udp_checksum_set(const struct cw_wire_sum *sum, uint8_t *frame);

/* True: a packet that cw_wire_parse has accepted has a UDP checksum; the checksum is that of the received bytes:
 * pseudo-header, UDP header and all bytes after it. `is_v4`: the packet's kind of IP. */
static inline bool cw_wire_udp_checksum_present(const struct cw_wire_header *header)
{
    const uint8_t *checksum = (const uint8_t *)header - 2;
    return (checksum[0] | checksum[1]) != 0;
}
bool cw_wire_udp_checksum_right(const struct cw_wire_header *header, bool is_v4);

/* The UDP checksum of a frame in one piece, as it is stored. */
uint16_t cw_wire_udp_checksum(const uint8_t *frame, uint32_t length, bool is_v4);
/* Stores one, right or wrong. */
void cw_wire_udp_checksum_store(uint8_t *frame, uint16_t checksum, bool is_v4);

/* CRC-32C (RFC 3720, appendix B.4) of `bytes` more bytes; start with 0. */
uint32_t cw_wire_checksum(uint32_t checksum, const void *data, size_t bytes);
/* As cw_wire_checksum, and copies the data to `target`, which must not overlap them. One pass over the data if the
 * processor has VPCLMULQDQ. */
uint32_t cw_wire_checksum_copy(uint32_t checksum, void *target, const void *data, size_t bytes);

/* Implementations: the library, a loop over words (SSE 4.2), carry-less vector products (VPCLMULQDQ). */
enum cw_wire_checksum_way { CW_WIRE_CHECKSUM_LIBRARY, CW_WIRE_CHECKSUM_WORDS, CW_WIRE_CHECKSUM_VECTORS };

/* As the two functions above, with the given implementation; `target` NULL: no copy. False: this processor lacks it. */
bool cw_wire_checksum_as(enum cw_wire_checksum_way way, uint32_t *checksum, void *target, const void *data,
                         size_t bytes);

/* The tag of a header: SipHash-1-3 of its first 32 bytes, with the high half of the packet number in place of
 * `flow`. */
uint64_t cw_wire_tag(const struct cw_wire_header *header, uint32_t number_high, const struct cw_wire_key *key);

/* The tag of a set-up packet, under the job's key: SipHash-2-4 of the header's first 32 bytes and of all bytes after
 * the header. With a CRC only, others could alter the packets that make and end sessions. */
uint64_t cw_wire_setup_tag(const struct cw_wire_header *header, const struct cw_wire_hello *hello,
                           const struct cw_wire_key *key);

/* The first 32 bytes of a header as four words. Packets are written in these: if a header were stored field by field
 * and read back in wider pieces, for its tag, the core would wait for its own stores. */
static inline void cw_wire_header_words(const struct cw_wire_header *header, uint64_t words[4])
{
    words[0] =
        header->version | (uint64_t)header->type << 8 | (uint64_t)header->flags << 16 | (uint64_t)header->flow << 32;
    words[1] = header->number | (uint64_t)header->timestamp << 32;
    words[2] = header->acknowledged | (uint64_t)header->echo << 32;
    words[3] = header->echo_delay | (uint64_t)header->payload_bytes << 16 | (uint64_t)header->checksum << 32;
}

/* The key for packets from the holder of `sender_session` to the holder of `receiver_session`: BLAKE2b under the job
 * key. */
void cw_wire_key_derive(struct cw_wire_key *key, const uint8_t job_key[16], uint64_t sender_session,
                        uint64_t receiver_session);

/* The 64-bit number with these low 32 bits that lies nearest to `expected`. */
static inline uint64_t cw_wire_number_expand(uint64_t expected, uint32_t low)
{
    return expected + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)expected);
}

/* The answer of an ACK to a PROBE, whose first payload byte is the turn (0, 1): its size, in units of 8 bytes below 8
 * KiB and of 64 from there on, and the turn. 12 bits. */
static inline uint16_t cw_wire_probe_word(uint32_t payload_bytes, uint8_t turn)
{
    uint32_t units = payload_bytes < 8192 ? payload_bytes / 8 : 1024 + (payload_bytes - 8192) / 64;
    return (uint16_t)(units | (uint32_t)(turn & 1) << 11);
}

static inline uint32_t cw_wire_probe_bytes(uint32_t word)
{
    uint32_t units = word & 2047;
    return units < 1024 ? units * 8 : 8192 + (units - 1024) * 64;
}

/* The largest size of a PROBE up to this one that an ACK can express. */
static inline uint32_t cw_wire_probe_round(uint32_t payload_bytes)
{
    return cw_wire_probe_bytes(cw_wire_probe_word(payload_bytes, 0));
}

static inline uint32_t cw_wire_probe_round_up(uint32_t payload_bytes)
{
    return cw_wire_probe_round(payload_bytes + (payload_bytes < 8192 ? 7 : 63));
}

/* Payload bytes of the largest packet over IPv4 at this MTU. */
static inline uint32_t cw_wire_payload_bytes(uint32_t mtu_bytes)
{
    return mtu_bytes - (CW_WIRE_OVERHEAD_BYTES - 14);
}

/* Data bytes of a full packet of a long put, in frames of this MTU. */
static inline uint32_t cw_wire_part_bytes(uint32_t mtu_bytes)
{
    return (cw_wire_payload_bytes(mtu_bytes) - (uint32_t)sizeof(struct cw_wire_part)) & ~7u;
}

/* How much of the payload of a packet with CW_WIRE_SUMMED or CW_WIRE_KEPT has a CRC-32C, by the kind of its only frame:
 * the frame's header, and as much of its data as a message's own header has. */
static inline uint32_t cw_wire_kept_bytes(uint8_t kind)
{
    return CW_WIRE_KEPT_DATA +
           (uint32_t)(kind == CW_FRAME_PART ? sizeof(struct cw_wire_part) : sizeof(struct cw_wire_put));
}

/* Whether the checksum of such a packet is right. */
static inline bool cw_wire_kept_right(const struct cw_wire_header *header)
{
    const uint8_t *payload = (const uint8_t *)(header + 1);
    return header->payload_bytes >= CW_WIRE_KEPT_MIN &&
           cw_wire_checksum(0, payload, cw_wire_kept_bytes(payload[0])) == header->checksum;
}

static inline uint32_t cw_wire_timestamp(uint64_t now_ns)
{
    return (uint32_t)(now_ns >> CW_WIRE_TIMESTAMP_SHIFT);
}

static inline uint32_t cw_wire_pad(uint32_t bytes)
{
    return (bytes + 7u) & ~7u;
}
