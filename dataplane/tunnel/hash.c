#include "dataplane/tunnel/hash.h"

#include <stdbool.h>
#include <string.h>

#include <xxhash.h>

enum {
    ETHERNET_BYTES = 14,
    TAG_BYTES = 4,
    TAGS_MAX = 2,
    TYPE_VLAN = 0x8100,
    TYPE_SERVICE_VLAN = 0x88a8,
    TYPE_IPV4 = 0x0800,
    TYPE_IPV6 = 0x86dd,
    IPV4_BYTES = 20,
    IPV6_BYTES = 40,
    EXTENSIONS_MAX = 8,
    EXTENSION_HOP_BY_HOP = 0,
    EXTENSION_ROUTING = 43,
    EXTENSION_FRAGMENT = 44,
    EXTENSION_DESTINATION = 60,
    FRAGMENT_BYTES = 8,
};

/* What is hashed; all of it is set, so that no padding counts. */
struct key {
    uint8_t addresses[32]; /* from, to: IPv6, or the first 8 or 12 bytes */
    uint8_t ports[4];
    uint16_t vlans[TAGS_MAX];
    uint16_t type;
    uint8_t protocol;
    uint8_t reserved;
};

static uint16_t number_at(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static bool has_ports(uint8_t protocol)
{
    return protocol == 6 || protocol == 17 || protocol == 33 || protocol == 132 || protocol == 136;
}

static void ports_parse(struct key *key, const uint8_t *at, uint32_t length)
{
    if (has_ports(key->protocol) && length >= sizeof(key->ports)) {
        memcpy(key->ports, at, sizeof(key->ports));
    }
}

static bool ipv4_parse(struct key *key, const uint8_t *packet, uint32_t length)
{
    uint32_t header_bytes = length > 0 ? 4u * (packet[0] & 15u) : 0;
    if (length < IPV4_BYTES || packet[0] >> 4 != 4 || header_bytes < IPV4_BYTES || header_bytes > length) {
        return false;
    }
    memcpy(key->addresses, packet + 12, 8);
    key->protocol = packet[9];
    bool is_fragment = (number_at(packet + 6) & 0x3fff) != 0; /* an offset, or more to follow */
    if (!is_fragment) {
        ports_parse(key, packet + header_bytes, length - header_bytes);
    }
    return true;
}

static bool ipv6_parse(struct key *key, const uint8_t *packet, uint32_t length)
{
    if (length < IPV6_BYTES || packet[0] >> 4 != 6) {
        return false;
    }
    memcpy(key->addresses, packet + 8, 32);
    uint32_t at = IPV6_BYTES;
    uint8_t next = packet[6];
    bool is_fragment = false;
    for (int i = 0; i < EXTENSIONS_MAX && at + 8 <= length; i++) {
        if (next == EXTENSION_FRAGMENT) {
            /* an atomic one (RFC 6946) has no brothers, but its sender may send others */
            is_fragment = true;
            next = packet[at];
            at += FRAGMENT_BYTES;
        } else if (next == EXTENSION_HOP_BY_HOP || next == EXTENSION_ROUTING || next == EXTENSION_DESTINATION) {
            next = packet[at];
            at += 8u * (1u + packet[at + 1]);
        } else {
            break;
        }
    }
    key->protocol = next;
    if (!is_fragment && at <= length) {
        ports_parse(key, packet + at, length - at);
    }
    return true;
}

uint64_t cw_tunnel_hash(const uint8_t *frame, uint32_t length)
{
    struct key key = {.type = 0};
    if (length < ETHERNET_BYTES) {
        return XXH3_64bits(&key, sizeof(key));
    }
    uint32_t at = ETHERNET_BYTES;
    key.type = number_at(frame + 12);
    for (int i = 0;
         i < TAGS_MAX && (key.type == TYPE_VLAN || key.type == TYPE_SERVICE_VLAN) && at + TAG_BYTES <= length; i++) {
        key.vlans[i] = (uint16_t)((number_at(frame + at) & 0x0fff) + 1); /* VLAN 0 is not no VLAN */
        key.type = number_at(frame + at + 2);
        at += TAG_BYTES;
    }
    bool known = (key.type == TYPE_IPV4 && ipv4_parse(&key, frame + at, length - at)) ||
                 (key.type == TYPE_IPV6 && ipv6_parse(&key, frame + at, length - at));
    if (!known) {
        memcpy(key.addresses, frame, 12);
    }
    return XXH3_64bits(&key, sizeof(key));
}
