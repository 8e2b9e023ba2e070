#include "dataplane/wire/wire.h"

#include "dataplane/wire/sealed.h"
#include "dataplane/wire/tags.h"

#include <sodium.h>
#include <string.h>

enum {
    ETHER_HEADER_BYTES = 14,
    IPV4_HEADER_BYTES = 20,
    UDP_HEADER_BYTES = 8,
    IPV4_TIME_TO_LIVE = 64,
    PROTOCOL_UDP = 17,
    TYPE_IPV4 = 0x0800,
    TYPE_IPV6 = 0x86dd,
    IPV6_HEADER_BYTES = 40,
    IPV6_HOP_LIMIT = 64,
    CLASS_D = 0xe,     /* of an IPv4 multicast address, its first four bits */
    IPV6_GROUP = 0xff, /* ... its first byte */
};

static inline uint32_t read_be16(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 8 | bytes[1];
}

static inline void write_be16(uint8_t *bytes, uint32_t value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

static inline void write_be32(uint8_t *bytes, uint32_t value)
{
    write_be16(bytes, value >> 16);
    write_be16(bytes + 2, value);
}

/* Where the UDP header is, how many bytes there are from it on as the IP header says, and whether it is addressed to a
 * group. The rest of an IP packet's checks; lengths come last, as whoever is not addressed is not asked for more. */
struct datagram {
    const uint8_t *udp;
    uint32_t bytes;
    bool is_to_group;
};

/* The receiver whose packets are searched. */
struct addressee {
    const struct cw_ip *ip;
    uint16_t port;
    uint16_t group_port; /* 0: groups have the own ones */
    uint32_t ports;
};

static inline bool is_ours(const struct datagram *found, const struct addressee *own)
{
    uint32_t port = read_be16(found->udp + 2);
    return found->is_to_group && own->group_port != 0 ? port == own->group_port : port - own->port < own->ports;
}

static inline enum cw_wire_verdict find_v4(const uint8_t *frame, uint32_t length, const struct addressee *own,
                                           struct datagram *found)
{
    if (length < CW_WIRE_NETWORK_BYTES) {
        return length >= ETHER_HEADER_BYTES && read_be16(frame + 12) != TYPE_IPV4 ? CW_WIRE_FOREIGN : CW_WIRE_SHORT;
    }
    const struct cw_wire_network *network = (const struct cw_wire_network *)frame;
    found->udp = network->source_port;
    found->is_to_group = network->destination_ipv4[0] >> 4 == CLASS_D;
    if (read_be16(network->ether_type) != TYPE_IPV4 || network->version_length != 0x45 ||
        network->protocol != PROTOCOL_UDP ||
        (memcmp(network->destination_ipv4, own->ip->bytes + 12, 4) != 0 && !found->is_to_group) ||
        !is_ours(found, own) || (read_be16(network->fragment) & 0x3fff) != 0) {
        return CW_WIRE_FOREIGN;
    }
    uint32_t total = read_be16(network->total_length);
    found->bytes = total - IPV4_HEADER_BYTES;
    return length < CW_WIRE_OVERHEAD_BYTES || total < IPV4_HEADER_BYTES + UDP_HEADER_BYTES + CW_WIRE_HEADER_BYTES ||
                   total > length - ETHER_HEADER_BYTES
               ? CW_WIRE_SHORT
               : CW_WIRE_GOOD;
}

/* Extension headers are for others: no peer sends us any. */
static enum cw_wire_verdict find_v6(const uint8_t *frame, uint32_t length, const struct addressee *own,
                                    struct datagram *found)
{
    if (length < CW_WIRE_NETWORK_V6_BYTES) {
        return length >= ETHER_HEADER_BYTES && read_be16(frame + 12) != TYPE_IPV6 ? CW_WIRE_FOREIGN : CW_WIRE_SHORT;
    }
    const struct cw_wire_network_v6 *network = (const struct cw_wire_network_v6 *)frame;
    found->udp = network->source_port;
    found->bytes = read_be16(network->payload_length);
    found->is_to_group = network->destination[0] == IPV6_GROUP;
    if (read_be16(network->ether_type) != TYPE_IPV6 || network->version_class_label[0] >> 4 != 6 ||
        network->next_header != PROTOCOL_UDP ||
        (memcmp(network->destination, own->ip->bytes, 16) != 0 && !found->is_to_group) || !is_ours(found, own)) {
        return CW_WIRE_FOREIGN;
    }
    return found->bytes < UDP_HEADER_BYTES + CW_WIRE_HEADER_BYTES ||
                   found->bytes > length - ETHER_HEADER_BYTES - IPV6_HEADER_BYTES
               ? CW_WIRE_SHORT
               : CW_WIRE_GOOD;
}

enum cw_wire_verdict cw_wire_parse(const uint8_t *frame, uint32_t length, const struct cw_ip *own, uint16_t own_port,
                                   uint32_t ports, uint16_t group_port, const struct cw_wire_header **header)
{
    const struct addressee addressee = {.ip = own, .port = own_port, .group_port = group_port, .ports = ports};
    struct datagram datagram;
    enum cw_wire_verdict verdict = cw_ip_is_v4(own) ? find_v4(frame, length, &addressee, &datagram)
                                                    : find_v6(frame, length, &addressee, &datagram);
    if (verdict != CW_WIRE_GOOD) {
        return verdict;
    }
    if (read_be16(datagram.udp + 4) != datagram.bytes) {
        return CW_WIRE_MALFORMED;
    }
    const struct cw_wire_header *found = (const struct cw_wire_header *)(datagram.udp + UDP_HEADER_BYTES);
    if (found->version != CW_WIRE_VERSION) {
        return CW_WIRE_OTHER_VERSION;
    }
    if (datagram.is_to_group && (found->type < CW_WIRE_EXTENSION_FIRST || found->type > CW_WIRE_EXTENSION_LAST)) {
        return CW_WIRE_FOREIGN;
    }
    uint32_t behind = datagram.bytes - UDP_HEADER_BYTES - CW_WIRE_HEADER_BYTES;
    bool sealed = (found->flags & CW_WIRE_ENCRYPTED) != 0;
    if ((found->flags & CW_WIRE_SUMMED) != 0 && (sealed || found->type != CW_WIRE_DATA)) {
        return CW_WIRE_MALFORMED;
    }
    bool fits =
        sealed ? behind >= CW_WIRE_MAC_BYTES && found->type < CW_WIRE_EXTENSION_FIRST : found->payload_bytes == behind;
    if (!fits || (found->flags & ~CW_WIRE_FLAGS_KNOWN) != 0) {
        return CW_WIRE_MALFORMED;
    }
    *header = found;
    return CW_WIRE_GOOD;
}

/* ---- outer headers ---- */

void cw_wire_network_init(struct cw_wire_network *network, const uint8_t source_mac[6],
                          const uint8_t destination_mac[6], uint32_t source_ipv4, uint32_t destination_ipv4,
                          uint16_t source_port, uint16_t destination_port)
{
    memset(network, 0, sizeof(*network));
    memcpy(network->destination_mac, destination_mac, 6);
    memcpy(network->source_mac, source_mac, 6);
    write_be16(network->ether_type, 0x0800);
    network->version_length = 0x45;
    write_be16(network->fragment, 0x4000); /* don't fragment */
    network->time_to_live = IPV4_TIME_TO_LIVE;
    network->protocol = PROTOCOL_UDP;
    write_be32(network->source_ipv4, source_ipv4);
    write_be32(network->destination_ipv4, destination_ipv4);
    write_be16(network->source_port, source_port);
    write_be16(network->destination_port, destination_port);
    /* The checksum of everything but the length waits here; cw_wire_network_finish adds the length (RFC 1624). */
    uint32_t sum = 0;
    for (const uint8_t *word = &network->version_length; word < network->source_port; word += 2) {
        sum += read_be16(word);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    write_be16(network->header_checksum, sum);
}

void cw_wire_network_finish(struct cw_wire_network *network, uint32_t payload_bytes)
{
    uint32_t udp = payload_bytes + CW_WIRE_HEADER_BYTES + UDP_HEADER_BYTES;
    uint32_t total = udp + IPV4_HEADER_BYTES;
    assert(total <= 65535);
    write_be16(network->total_length, total);
    write_be16(network->udp_length, udp);
    uint32_t sum = read_be16(network->header_checksum) + total;
    sum = (sum & 0xffff) + (sum >> 16);
    write_be16(network->header_checksum, ~sum);
}

void cw_wire_outer_init(struct cw_wire_outer *outer, const uint8_t mac[6], const struct cw_ip *ip)
{
    static const uint8_t any[6];
    memset(outer, 0, sizeof(*outer));
    if (cw_ip_is_v4(ip)) {
        outer->bytes = CW_WIRE_NETWORK_BYTES;
        cw_wire_network_init(&outer->v4, mac, any, cw_ip_to_v4(ip), 0, 0, 0);
        return;
    }
    outer->bytes = CW_WIRE_NETWORK_V6_BYTES;
    memcpy(outer->v6.source_mac, mac, 6);
    write_be16(outer->v6.ether_type, TYPE_IPV6);
    outer->v6.version_class_label[0] = 6 << 4;
    outer->v6.next_header = PROTOCOL_UDP;
    outer->v6.hop_limit = IPV6_HOP_LIMIT;
    memcpy(outer->v6.source, ip->bytes, 16);
}

static void outer_write_v6(const struct cw_wire_outer *outer, const struct cw_wire_receiver *receiver, uint8_t *at,
                           uint32_t payload_bytes)
{
    uint32_t datagram_bytes = UDP_HEADER_BYTES + CW_WIRE_HEADER_BYTES + payload_bytes;
    struct cw_wire_network_v6 *network = (struct cw_wire_network_v6 *)at;
    memcpy(at, &outer->v6, sizeof(outer->v6));
    memcpy(network->destination_mac, receiver->mac, 6);
    memcpy(network->destination, receiver->ip.bytes, 16);
    write_be16(network->source_port, receiver->own_port);
    write_be16(network->destination_port, receiver->port);
    write_be16(network->payload_length, datagram_bytes);
    write_be16(network->udp_length, datagram_bytes);
}

void cw_wire_outer_write(const struct cw_wire_outer *outer, const struct cw_wire_receiver *receiver, uint8_t *at,
                         uint32_t payload_bytes)
{
    if (outer->bytes != CW_WIRE_NETWORK_BYTES) {
        outer_write_v6(outer, receiver, at, payload_bytes);
        return;
    }
    struct cw_wire_network *network = (struct cw_wire_network *)at;
    const uint8_t *ip = receiver->ip.bytes + 12;
    memcpy(at, &outer->v4, sizeof(outer->v4));
    memcpy(network->destination_mac, receiver->mac, 6);
    memcpy(network->destination_ipv4, ip, 4);
    write_be16(network->source_port, receiver->own_port);
    write_be16(network->destination_port, receiver->port);
    uint32_t udp = payload_bytes + CW_WIRE_HEADER_BYTES + UDP_HEADER_BYTES, total = udp + IPV4_HEADER_BYTES;
    write_be16(network->total_length, total);
    write_be16(network->udp_length, udp);
    uint32_t sum = read_be16(outer->v4.header_checksum) + read_be16(ip) + read_be16(ip + 2) + total;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    write_be16(network->header_checksum, ~sum);
}

/* ---- the Internet checksum ---- */

void cw_wire_sum_add(struct cw_wire_sum *sum, const void *data, size_t bytes)
{
    const uint8_t *at = data, *end = at + bytes;
    uint64_t low = 0, high = 0, word = 0;
    if (bytes > 0 && sum->is_odd) {
        low = (uint64_t)*at++ << 8;
    }
    for (; end - at >= 8; at += 8) {
        memcpy(&word, at, 8);
        low += word & 0xffffffff;
        high += word >> 32;
    }
    word = 0;
    memcpy(&word, at, (size_t)(end - at));
    sum->sum += low + high + (word & 0xffffffff) + (word >> 32);
    sum->is_odd ^= bytes % 2 == 1;
}

uint16_t cw_wire_sum_end(const struct cw_wire_sum *sum)
{
    uint64_t folded = sum->sum;
    while (folded >> 16 != 0) {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    return (uint16_t)~folded;
}

bool cw_wire_udp_checksum_begin(struct cw_wire_sum *sum, const uint8_t *frame, uint32_t length)
{
    const struct cw_wire_network_v6 *network = (const struct cw_wire_network_v6 *)frame;
    const uint8_t *checksum = network->udp_checksum;
    *sum = (struct cw_wire_sum){0};
    if (length < CW_WIRE_NETWORK_V6_BYTES || read_be16(network->ether_type) != TYPE_IPV6 ||
        network->next_header != PROTOCOL_UDP || checksum[0] != 0 || checksum[1] != 0) {
        return false;
    }
    const uint8_t pseudo[4] = {0, PROTOCOL_UDP, network->udp_length[0], network->udp_length[1]}; /* RFC 8200, 8.1 */
    cw_wire_sum_add(sum, pseudo, sizeof(pseudo));
    cw_wire_sum_add(sum, network->source, length - offsetof(struct cw_wire_network_v6, source));
    return true;
}

/* Of a datagram that lies behind its addresses, `bytes` of it in one piece. */
static void datagram_sum(struct cw_wire_sum *sum, const uint8_t *udp, uint32_t bytes, bool is_v4)
{
    uint32_t addresses = is_v4 ? 8 : 32;
    const uint8_t pseudo[4] = {0, PROTOCOL_UDP, udp[4], udp[5]};
    cw_wire_sum_add(sum, pseudo, sizeof(pseudo));
    cw_wire_sum_add(sum, udp - addresses, addresses + bytes);
}

bool cw_wire_udp_checksum_right(const struct cw_wire_header *header, bool is_v4)
{
    struct cw_wire_sum sum = {0};
    datagram_sum(&sum, (const uint8_t *)header - UDP_HEADER_BYTES, cw_wire_datagram_bytes(header), is_v4);
    return cw_wire_sum_end(&sum) == 0;
}

static uint32_t udp_offset(bool is_v4)
{
    return (uint32_t)(is_v4 ? CW_WIRE_NETWORK_BYTES : CW_WIRE_NETWORK_V6_BYTES) - UDP_HEADER_BYTES;
}

uint16_t cw_wire_udp_checksum(const uint8_t *frame, uint32_t length, bool is_v4)
{
    struct cw_wire_sum sum = {0};
    uint16_t stored, checksum;
    const uint8_t *udp = frame + udp_offset(is_v4);
    datagram_sum(&sum, udp, length - udp_offset(is_v4), is_v4);
    memcpy(&stored, udp + 6, sizeof(stored));
    sum.sum += (uint16_t)~stored; /* takes it out again (RFC 1624) */
    checksum = cw_wire_sum_end(&sum);
    return checksum == 0 ? 0xffff : checksum; /* 0 says that there is none */
}

void cw_wire_udp_checksum_store(uint8_t *frame, uint16_t checksum, bool is_v4)
{
    memcpy(frame + udp_offset(is_v4) + 6, &checksum, sizeof(checksum));
}

void cw_wire_udp_checksum_set(const struct cw_wire_sum *sum, uint8_t *frame)
{
    uint16_t checksum = cw_wire_sum_end(sum);
    checksum = checksum == 0 ? 0xffff : checksum; /* 0 says that there is none */
    memcpy(((struct cw_wire_network_v6 *)frame)->udp_checksum, &checksum, sizeof(checksum));
}

/* ---- integrity ---- */

uint64_t cw_wire_tag(const struct cw_wire_header *header, uint32_t number_high, const struct cw_wire_key *key)
{
    uint64_t words[CW_WIRE_TAG_WORDS];
    memcpy(words, header, sizeof(words));
    cw_wire_tag_number(words, number_high);
    return cw_wire_tag_words(words, key);
}

uint64_t cw_wire_setup_tag(const struct cw_wire_header *header, const struct cw_wire_hello *hello,
                           const struct cw_wire_key *key)
{
    static_assert(crypto_shorthash_siphash24_BYTES == sizeof(uint64_t) &&
                      crypto_shorthash_siphash24_KEYBYTES == sizeof(key->bytes),
                  "SipHash-2-4");
    uint8_t input[offsetof(struct cw_wire_header, tag) + sizeof(*hello)];
    uint64_t tag;
    memcpy(input, header, offsetof(struct cw_wire_header, tag));
    memcpy(input + offsetof(struct cw_wire_header, tag), hello, sizeof(*hello));
    (void)crypto_shorthash_siphash24((uint8_t *)&tag, input, sizeof(input), key->bytes);
    return tag;
}

void cw_wire_key_derive(struct cw_wire_key *key, const uint8_t job_key[16], uint64_t sender_session,
                        uint64_t receiver_session)
{
    uint8_t input[32] = "causeway flow 1";
    memcpy(input + 16, &sender_session, 8);
    memcpy(input + 24, &receiver_session, 8);
    /* fails only for lengths out of range, and these are constants */
    int failed = crypto_generichash(key->bytes, sizeof(key->bytes), input, sizeof(input), job_key, 16);
    assert(failed == 0);
    (void)failed;
}
