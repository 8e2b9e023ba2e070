#include "dataplane/wire/wire.h"

#include "dataplane/wire/sealed.h"
#include "dataplane/wire/tags.h"

#include <isa-l/crc.h>
#include <sodium.h>
#include <string.h>

enum {
    ETHER_HEADER_BYTES = 14,
    IPV4_HEADER_BYTES = 20,
    UDP_HEADER_BYTES = 8,
    IPV4_TIME_TO_LIVE = 64,
    PROTOCOL_UDP = 17,
    CLASS_D = 0xe, /* of an IPv4 multicast address, its first four bits */
};

static inline uint32_t read_be16(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 8 | bytes[1];
}

static inline uint32_t read_be32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
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

enum cw_wire_verdict cw_wire_parse(const uint8_t *frame, uint32_t length, uint32_t own_ipv4, uint16_t own_port,
                                   uint32_t ports, uint16_t group_port, const struct cw_wire_header **header)
{
    if (length < CW_WIRE_NETWORK_BYTES) {
        return length >= ETHER_HEADER_BYTES && read_be16(frame + 12) != 0x0800 ? CW_WIRE_FOREIGN : CW_WIRE_SHORT;
    }
    const struct cw_wire_network *network = (const struct cw_wire_network *)frame;
    uint32_t destination = read_be32(network->destination_ipv4);
    uint32_t port = read_be16(network->destination_port);
    bool is_to_group = destination >> 28 == CLASS_D;
    bool is_our_port = is_to_group && group_port != 0 ? port == group_port : port - own_port < ports;
    if (read_be16(network->ether_type) != 0x0800 || network->version_length != 0x45 ||
        network->protocol != PROTOCOL_UDP || (destination != own_ipv4 && !is_to_group) || !is_our_port ||
        (read_be16(network->fragment) & 0x3fff) != 0) {
        return CW_WIRE_FOREIGN;
    }
    uint32_t total = read_be16(network->total_length);
    uint32_t udp = read_be16(network->udp_length);
    if (length < CW_WIRE_OVERHEAD_BYTES || total < IPV4_HEADER_BYTES + UDP_HEADER_BYTES + CW_WIRE_HEADER_BYTES ||
        total > length - ETHER_HEADER_BYTES) {
        return CW_WIRE_SHORT;
    }
    if (udp != total - IPV4_HEADER_BYTES) {
        return CW_WIRE_MALFORMED;
    }
    const struct cw_wire_header *found = (const struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
    if (found->version != CW_WIRE_VERSION) {
        return CW_WIRE_OTHER_VERSION;
    }
    if (is_to_group && (found->type < CW_WIRE_EXTENSION_FIRST || found->type > CW_WIRE_EXTENSION_LAST)) {
        return CW_WIRE_FOREIGN;
    }
    uint32_t behind = udp - UDP_HEADER_BYTES - CW_WIRE_HEADER_BYTES;
    bool sealed = (found->flags & CW_WIRE_ENCRYPTED) != 0;
    bool fits =
        sealed ? behind >= CW_WIRE_MAC_BYTES && found->type < CW_WIRE_EXTENSION_FIRST : found->payload_bytes == behind;
    if (!fits || (found->flags & ~CW_WIRE_FLAGS_KNOWN) != 0) {
        return CW_WIRE_MALFORMED;
    }
    *header = found;
    return CW_WIRE_GOOD;
}

uint32_t cw_wire_network_bytes(const uint8_t *frame, uint32_t length)
{
    const struct cw_wire_network *network = (const struct cw_wire_network *)frame;
    if (length < CW_WIRE_NETWORK_BYTES || read_be16(network->ether_type) != 0x0800 || network->version_length != 0x45 ||
        read_be32(network->destination_ipv4) >> 28 == CLASS_D) {
        return 0;
    }
    uint32_t total = read_be16(network->total_length);
    return total < CW_WIRE_NETWORK_BYTES - ETHER_HEADER_BYTES || total > length - ETHER_HEADER_BYTES
               ? 0
               : ETHER_HEADER_BYTES + total;
}

uint32_t cw_wire_network_source(const struct cw_wire_network *network)
{
    return read_be32(network->source_ipv4);
}

uint32_t cw_wire_network_destination(const struct cw_wire_network *network)
{
    return read_be32(network->destination_ipv4);
}

void cw_wire_network_hop(struct cw_wire_network *network)
{
    /* The word of time to live and protocol becomes less by 0x0100: HC' = ~(~HC + ~m + m') (RFC 1624). */
    uint32_t before = (uint32_t)network->time_to_live << 8 | network->protocol;
    network->time_to_live--;
    uint32_t after = (uint32_t)network->time_to_live << 8 | network->protocol;
    uint32_t sum = (~read_be16(network->header_checksum) & 0xffffu) + (~before & 0xffffu) + after;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    write_be16(network->header_checksum, (uint16_t)~sum);
}

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

uint32_t cw_wire_checksum(uint32_t checksum, const void *data, size_t bytes)
{
    return ~crc32_iscsi((unsigned char *)(uintptr_t)data, (int)bytes, ~checksum);
}

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
