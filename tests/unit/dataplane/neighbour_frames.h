/* Frames that request an address and answer, written byte by byte as in RFC 826, 791, 792, 4443 and 4861, with a
 * checksum of their own (RFC 1071): the reference for dataplane/neighbour/. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "dataplane/ip.h"

enum {
    FRAME_ROOM = 2048,
    ARP_BYTES = 42,
    ND_BYTES = 78, /* without options; the one for a MAC address has 8 */
    ND_OPTION_BYTES = 8,
    V4_ECHO_BYTES = 42, /* without data */
    V6_ECHO_BYTES = 62,
};

/* A host, on the wire. */
struct party {
    uint8_t mac[6];
    struct cw_ip ip;
};

static const uint8_t everybody_mac[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static inline void be16_put(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* Adds 16-bit words, an odd byte in front of a 0. */
static inline uint32_t words_add(uint32_t sum, const uint8_t *at, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        sum += i % 2 == 0 ? (uint32_t)at[i] << 8 : at[i];
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static inline void ethernet_put(uint8_t *frame, const uint8_t to[6], const uint8_t from[6], uint32_t type)
{
    memcpy(frame, to, 6);
    memcpy(frame + 6, from, 6);
    be16_put(frame + 12, type);
}

/* `to`: of the Ethernet header; `target` has the target's MAC address. */
static inline uint32_t arp_put(uint8_t *frame, const uint8_t to[6], uint32_t operation, const struct party *sender,
                               const struct party *target)
{
    static const uint8_t head[6] = {0, 1, 8, 0, 6, 4};
    ethernet_put(frame, to, sender->mac, 0x0806);
    memcpy(frame + 14, head, 6);
    be16_put(frame + 20, operation);
    memcpy(frame + 22, sender->mac, 6);
    memcpy(frame + 28, sender->ip.bytes + 12, 4);
    memcpy(frame + 32, target->mac, 6);
    memcpy(frame + 38, target->ip.bytes + 12, 4);
    return ARP_BYTES;
}

/* ---- IPv4 ---- */

static inline void v4_sign_header(uint8_t *frame)
{
    be16_put(frame + 24, 0);
    be16_put(frame + 24, ~words_add(0, frame + 14, 20) & 0xffff);
}

static inline void v4_sign(uint8_t *frame, uint32_t bytes)
{
    v4_sign_header(frame);
    be16_put(frame + 36, 0);
    be16_put(frame + 36, ~words_add(0, frame + 34, bytes - 34) & 0xffff);
}

/* A host's answer except its type: the data counts up from `sequence`. */
static inline void echo_put(uint8_t *at, uint32_t type, uint32_t identifier, uint32_t sequence, uint32_t data_bytes)
{
    at[0] = (uint8_t)type;
    at[1] = 0;
    be16_put(at + 4, identifier);
    be16_put(at + 6, sequence);
    for (uint32_t i = 0; i < data_bytes; i++) {
        at[8 + i] = (uint8_t)(sequence + 7 * i);
    }
}

static inline uint32_t v4_echo_put(uint8_t *frame, uint32_t type, uint32_t ttl, const struct party *to,
                                   const struct party *from, uint32_t sequence, uint32_t data_bytes)
{
    uint32_t bytes = V4_ECHO_BYTES + data_bytes;
    ethernet_put(frame, to->mac, from->mac, 0x0800);
    memset(frame + 14, 0, 20);
    frame[14] = 0x45;
    be16_put(frame + 16, bytes - 14);
    be16_put(frame + 18, 0x1234);
    be16_put(frame + 20, 0x4000); /* not to be cut to pieces */
    frame[22] = (uint8_t)ttl;
    frame[23] = 1;
    memcpy(frame + 26, from->ip.bytes + 12, 4);
    memcpy(frame + 30, to->ip.bytes + 12, 4);
    echo_put(frame + 34, type, 0xbeef, sequence, data_bytes);
    v4_sign(frame, bytes);
    return bytes;
}

/* ---- IPv6 ---- */

/* Over the pseudo header and the message: 0xffff if its checksum is right. */
static inline uint32_t v6_sum(const uint8_t *frame, uint32_t bytes)
{
    uint8_t pseudo[8] = {0, 0, 0, 0, 0, 0, 0, 58};
    be16_put(pseudo + 2, bytes - 54);
    return words_add(words_add(words_add(0, frame + 22, 32), pseudo, 8), frame + 54, bytes - 54);
}

static inline void v6_sign(uint8_t *frame, uint32_t bytes)
{
    be16_put(frame + 56, 0);
    be16_put(frame + 56, ~v6_sum(frame, bytes) & 0xffff);
}

static inline void v6_put(uint8_t *frame, uint32_t bytes, uint32_t hops, const struct party *to,
                          const struct party *from)
{
    ethernet_put(frame, to->mac, from->mac, 0x86dd);
    memset(frame + 14, 0, 4);
    frame[14] = 0x60;
    be16_put(frame + 18, bytes - 54);
    frame[20] = 58;
    frame[21] = (uint8_t)hops;
    memcpy(frame + 22, from->ip.bytes, 16);
    memcpy(frame + 38, to->ip.bytes, 16);
}

static inline uint32_t v6_echo_put(uint8_t *frame, uint32_t type, uint32_t hops, const struct party *to,
                                   const struct party *from, uint32_t sequence, uint32_t data_bytes)
{
    uint32_t bytes = V6_ECHO_BYTES + data_bytes;
    v6_put(frame, bytes, hops, to, from);
    echo_put(frame + 54, type, 0xbeef, sequence, data_bytes);
    v6_sign(frame, bytes);
    return bytes;
}

/* A solicitation (135) or an advertisement (136), which opens with its flags; with a MAC address, if there is one. */
static inline uint32_t nd_put(uint8_t *frame, uint32_t type, uint32_t flags, const struct party *to,
                              const struct party *from, const struct cw_ip *target, const uint8_t *mac)
{
    uint32_t bytes = ND_BYTES + (mac != NULL ? ND_OPTION_BYTES : 0);
    v6_put(frame, bytes, 255, to, from);
    memset(frame + 54, 0, 8);
    frame[54] = (uint8_t)type;
    frame[58] = (uint8_t)flags;
    memcpy(frame + 62, target->bytes, 16);
    if (mac != NULL) {
        frame[78] = type == 135 ? 1 : 2;
        frame[79] = 1;
        memcpy(frame + 80, mac, 6);
    }
    v6_sign(frame, bytes);
    return bytes;
}

/* The solicited-node group of an address: ff02::1:ff and its last three bytes (RFC 4291, 2.7.1; RFC 2464, 7). */
static inline struct party solicited_of(const struct cw_ip *ip)
{
    struct party group = {.mac = {0x33, 0x33, 0xff}, .ip = {{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}}};
    memcpy(group.mac + 3, ip->bytes + 13, 3);
    memcpy(group.ip.bytes + 13, ip->bytes + 13, 3);
    return group;
}
