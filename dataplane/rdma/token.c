#include <sodium.h>

#include "dataplane/rdma/rdma_state.h"

enum {
    HALF_BITS = 24,
    ROUNDS = 6,
    MARK = 0xb, /* in the top four bits: the device knows the region */
};

static_assert(crypto_shorthash_KEYBYTES == 16, "token_key");

/* A Feistel network over two halves of 24 bits, with SipHash-2-4 as round function (Luby and Rackoff 1988). */
static uint32_t round_of(const struct rdma *rdma, uint32_t half, uint32_t number)
{
    const uint32_t text[2] = {half, number};
    unsigned char hash[crypto_shorthash_BYTES];
    crypto_shorthash(hash, (const unsigned char *)text, sizeof(text), rdma->token_key);
    return ((uint32_t)hash[0] | (uint32_t)hash[1] << 8 | (uint32_t)hash[2] << 16);
}

uint64_t rdma_token_key(const struct rdma *rdma, uint32_t remote_key, uint64_t remote_base)
{
    uint64_t plain = (uint64_t)MARK << 44 | remote_base << 32 | remote_key;
    uint32_t left = (uint32_t)(plain >> HALF_BITS);
    uint32_t right = (uint32_t)plain & ((1u << HALF_BITS) - 1);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t next = left ^ round_of(rdma, right, i);
        left = right;
        right = next;
    }
    return (uint64_t)left << HALF_BITS | right;
}

bool rdma_token_read(const struct rdma *rdma, uint64_t token, uint32_t *remote_key, uint64_t *remote_base)
{
    uint64_t key = token >> 16;
    uint32_t left = (uint32_t)(key >> HALF_BITS);
    uint32_t right = (uint32_t)key & ((1u << HALF_BITS) - 1);
    for (uint32_t i = ROUNDS; i-- > 0;) {
        uint32_t before = right ^ round_of(rdma, left, i);
        right = left;
        left = before;
    }
    uint64_t plain = (uint64_t)left << HALF_BITS | right;
    *remote_key = (uint32_t)plain;
    *remote_base = plain >> 32 & (RDMA_BASE_MAX - 1);
    return plain >> 44 == MARK;
}
