/* Tunnel hash: which frames belong together? Those of one flow of the inner network have the same hash, go by the same
 * stream, and keep their order.
 *
 * A flow is, with its VLAN (the identifier of up to two tags; the priority does not count),
 *   - for IPv4 and IPv6 the two addresses, the protocol, and the ports of TCP, UDP, UDP-Lite, SCTP and DCCP. A fragment
 *     has no ports, so that all fragments of a packet go together (RFC 6438, 3); extension headers of IPv6 are passed
 *     over;
 *   - for all else (ARP, ...) the two MAC addresses and the type. Nothing is read beyond the length of the frame; of a
 * truncated frame the present part counts. */
#pragma once

#include <stdint.h>

/* 64 bits, the same at each call, on any machine of one byte order. A frame of less than 14 bytes hashes by nothing.
 * Any thread. */
uint64_t cw_tunnel_hash(const uint8_t *frame, uint32_t length);

/* One of `stream_count` > 0 streams. */
static inline uint32_t cw_tunnel_stream_of(uint64_t hash, uint32_t stream_count)
{
    return (uint32_t)(((unsigned __int128)hash * stream_count) >> 64);
}
