/* prefetch: bytes that will be copied soon. A copy of a packet is too short for the processor's own prefetcher, and the
 * work between two copies stops it. Any address is allowed. */
#pragma once

#include <stdint.h>

enum {
    CW_PREFETCH_LINE = 64,
    CW_PREFETCH_BYTES = 1536, /* as many lines as can be in flight, and a packet at an MTU of 1500 */
};

static inline void cw_prefetch_read(const void *data, uint64_t bytes)
{
    const uint8_t *at = data;
    bytes = bytes < CW_PREFETCH_BYTES ? bytes : CW_PREFETCH_BYTES;
    for (uint64_t i = 0; i < bytes; i += CW_PREFETCH_LINE) {
        __builtin_prefetch(at + i, 0);
    }
}

static inline void cw_prefetch_write(const void *data, uint64_t bytes)
{
    const uint8_t *at = data;
    bytes = bytes < CW_PREFETCH_BYTES ? bytes : CW_PREFETCH_BYTES;
    for (uint64_t i = 0; i < bytes; i += CW_PREFETCH_LINE) {
#if defined(__x86_64__)
        __asm__ volatile("prefetchw %0" : : "m"(at[i]));
#else
        __builtin_prefetch(at + i, 1);
#endif
    }
}
