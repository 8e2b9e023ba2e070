#include "dataplane/port/offload/toeplitz.h"

#include <stddef.h>
#include <string.h>

enum { INPUT_MAX = 36 };

/* The hash of `bytes`, at most INPUT_MAX, under a key that is shifted bit by bit. */
static uint32_t hash_compute(const uint8_t key[CW_TOEPLITZ_KEY_BYTES], const uint8_t *input, size_t bytes)
{
    uint32_t window = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
    uint32_t hash = 0;
    for (size_t i = 0; i < bytes; i++) {
        for (int bit = 7; bit >= 0; bit--) {
            hash ^= (input[i] >> bit & 1) != 0 ? window : 0;
            window = window << 1 | (key[i + 4] >> bit & 1);
        }
    }
    return hash;
}

uint32_t cw_toeplitz_flow(const uint8_t key[CW_TOEPLITZ_KEY_BYTES], const struct cw_toeplitz_flow *flow,
                          bool with_ports)
{
    bool is_v4 = cw_ip_is_v4(&flow->source);
    size_t address = is_v4 ? 4 : 16;
    uint8_t input[INPUT_MAX];
    memcpy(input, flow->source.bytes + 16 - address, address);
    memcpy(input + address, flow->destination.bytes + 16 - address, address);
    uint8_t *ports = input + 2 * address;
    ports[0] = (uint8_t)(flow->source_port >> 8);
    ports[1] = (uint8_t)flow->source_port;
    ports[2] = (uint8_t)(flow->destination_port >> 8);
    ports[3] = (uint8_t)flow->destination_port;
    return hash_compute(key, input, 2 * address + (with_ports ? 4 : 0));
}
