/* Frames of ARP (RFC 826), ICMPv6 and Neighbour Discovery (RFC 4443, 4861): the places of their fields, for requests
 * (request.c) and answers (answer.c). Private to neighbour/. Offsets are from the Ethernet header on. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "dataplane/neighbour/request.h"
#include "dataplane/wire/wire.h"

enum {
    ETHERNET = 14,
    AT_SENDER_MAC = 6, /* of Ethernet */
    AT_ETHER_TYPE = 12,
    GROUP_BIT = 1, /* of a MAC address's first byte */
    /* ARP, of IPv4 over Ethernet */
    ARP_REQUEST = 1,
    ARP_REPLY = 2,
    ARP_AT_OPERATION = 20,
    ARP_AT_SENDER_MAC = 22,
    ARP_AT_SENDER = 28,
    ARP_AT_TARGET_MAC = 32,
    ARP_AT_TARGET = 38,
    /* IPv6 */
    V6_AT_VERSION = 14,
    V6_AT_LENGTH = 18,
    V6_AT_NEXT = 20,
    V6_AT_HOPS = 21,
    V6_AT_SOURCE = 22,
    V6_AT_DESTINATION = 38,
    V6_AT_MESSAGE = 54,
    V6_AT_CHECKSUM = 56,
    ICMPV6 = 58,
    /* Neighbour Discovery */
    ND_SOLICITATION = 135,
    ND_ADVERTISEMENT = 136,
    ND_AT_FLAGS = 58,
    ND_SOLICITED = 0x40,
    ND_OVERRIDE = 0x20,
    ND_AT_TARGET = 62,
    ND_AT_OPTIONS = 78,
    ND_HOPS = 255, /* a router would have decremented it: the sender is on the link */
    ND_SOURCE_MAC = 1,
    ND_TARGET_MAC = 2,
    ND_OPTION_UNIT = 8, /* bytes that the length of an option counts in */
};

static const uint8_t frames_arp_head[6] = {0, 1 /* Ethernet */, 0x08, 0x00 /* IPv4 */, 6, 4};

static inline uint32_t frames_be16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* The checksum of an ICMPv6 message of `bytes`, with the pseudo-header (RFC 4443, 2.3); of one that has its own: 0, if
 * it is right. */
static inline uint16_t frames_v6_sum(const uint8_t *frame, size_t bytes)
{
    const uint8_t pseudo[8] = {0, 0, (uint8_t)(bytes >> 8), (uint8_t)bytes, 0, 0, 0, ICMPV6};
    struct cw_wire_sum sum = {0};
    cw_wire_sum_add(&sum, frame + V6_AT_SOURCE, 32);
    cw_wire_sum_add(&sum, pseudo, sizeof(pseudo));
    cw_wire_sum_add(&sum, frame + V6_AT_MESSAGE, bytes);
    return cw_wire_sum_end(&sum);
}

static inline void frames_v6_sum_write(uint8_t *frame, size_t bytes)
{
    memset(frame + V6_AT_CHECKSUM, 0, 2);
    uint16_t sum = frames_v6_sum(frame, bytes);
    memcpy(frame + V6_AT_CHECKSUM, &sum, sizeof(sum));
}

/* The first MAC address of a kind (ND_SOURCE_MAC, ND_TARGET_MAC) among the options of a message of `bytes`; NULL: there
 * is none. *is_broken: they are no options. */
static inline const uint8_t *frames_nd_option(const uint8_t *frame, size_t bytes, uint8_t kind, bool *is_broken)
{
    const uint8_t *found = NULL;
    *is_broken = false;
    for (size_t at = ND_AT_OPTIONS, end = V6_AT_MESSAGE + bytes; at < end;) {
        size_t length = end - at < ND_OPTION_UNIT ? 0 : frame[at + 1] * (size_t)ND_OPTION_UNIT;
        if (length == 0 || length > end - at) {
            *is_broken = true;
            return NULL;
        }
        found = frame[at] == kind && length == ND_OPTION_UNIT && found == NULL ? frame + at + 2 : found;
        at += length;
    }
    return found;
}

/* A solicitation or advertisement to `to`, except its MAC address, its flags and its checksum. */
static inline void frames_nd_write(uint8_t frame[CW_ND_BYTES], uint8_t kind, const struct cw_ip *own,
                                   const uint8_t own_mac[6], const struct cw_ip *to, const struct cw_ip *target)
{
    memset(frame, 0, CW_ND_BYTES);
    memcpy(frame + AT_SENDER_MAC, own_mac, 6);
    frame[AT_ETHER_TYPE] = 0x86;
    frame[AT_ETHER_TYPE + 1] = 0xdd;
    frame[V6_AT_VERSION] = 0x60;
    frame[V6_AT_LENGTH + 1] = CW_ND_BYTES - V6_AT_MESSAGE;
    frame[V6_AT_NEXT] = ICMPV6;
    frame[V6_AT_HOPS] = ND_HOPS;
    memcpy(frame + V6_AT_SOURCE, own->bytes, sizeof(own->bytes));
    memcpy(frame + V6_AT_DESTINATION, to->bytes, sizeof(to->bytes));
    frame[V6_AT_MESSAGE] = kind;
    memcpy(frame + ND_AT_TARGET, target->bytes, sizeof(target->bytes));
    frame[ND_AT_OPTIONS] = kind == ND_SOLICITATION ? ND_SOURCE_MAC : ND_TARGET_MAC;
    frame[ND_AT_OPTIONS + 1] = 1;
    memcpy(frame + ND_AT_OPTIONS + 2, own_mac, 6);
}
