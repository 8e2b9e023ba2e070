/* Tunnel records: several frames one behind the other, as they lie in a batch.
 *
 *    { length, 2 bytes, little-endian | the frame from its Ethernet header on, without check sequence }, once or more
 *
 * A batch is taken as a whole or not at all: cw_tunnel_records_check comes first, and nothing is read beyond the bytes
 * that it was given. */
#pragma once

#include <stdint.h>
#include <string.h>

enum {
    CW_TUNNEL_RECORD_BYTES = 2, /* in front of each frame */
    CW_TUNNEL_FRAME_MIN_BYTES = 14,
};

/* Writes a frame at `to`; returns the bytes that it takes. */
static inline uint32_t cw_tunnel_record_write(uint8_t *to, const uint8_t *frame, uint32_t length)
{
    to[0] = (uint8_t)length;
    to[1] = (uint8_t)(length >> 8);
    memcpy(to + CW_TUNNEL_RECORD_BYTES, frame, length);
    return CW_TUNNEL_RECORD_BYTES + length;
}

/* The length of the frame whose record is at `at`, which was checked. */
static inline uint32_t cw_tunnel_record_length(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

/* The number of frames in `bytes` at `batch`, each of CW_TUNNEL_FRAME_MIN_BYTES to `frame_bytes_max`; 0: it is no
 * batch. */
uint32_t cw_tunnel_records_check(const uint8_t *batch, uint64_t bytes, uint32_t frame_bytes_max);
