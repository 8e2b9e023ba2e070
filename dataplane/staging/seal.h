/* Seal: the keys of an encrypted session, the count of packets sent under them, and the counts received.
 *
 * Invariants
 *   - A seal belongs to one session and is destroyed with it. A nonce begins one session only, so no session ever has
 *     the keys of another one, and counts may begin with 0; while the peer's nonce may still change, the next seal
 *     continues the count.
 *   - `sent` only grows, and ends at CW_SEAL_COUNT_MAX: no nonce is used twice, in retransmissions neither.
 *   - A count is taken once (RFC 6479's window). A packet older than the window is dropped, as if the network had lost
 *     it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/crypt/aead.h"
#include "dataplane/wire/sealed.h"

struct cw_endpoint;

enum {
    CW_SEAL_WINDOW_WORDS = 128,                       /* a power of two */
    CW_SEAL_WINDOW = (CW_SEAL_WINDOW_WORDS - 1) * 64, /* counts: 10 ms of full packets at 10 Gb/s */
};

/* Packets under one key. AES-GCM's margin shrinks with the square of the blocks: 2^40 packets of 9,000 bytes leave
 * 2^-30. At 10 Gb/s they last for two weeks. From CW_SEAL_COUNT_SPENT on the session ends, as soon as it has something
 * to do; beyond the maximum nothing is sealed. */
#define CW_SEAL_COUNT_MAX   (1ull << 40)
#define CW_SEAL_COUNT_SPENT (CW_SEAL_COUNT_MAX - (1ull << 20))

struct cw_seal {
    struct cw_aead_key *in;
    struct cw_aead_key *out;
    uint64_t serial; /* of no other seal of the endpoint, nor 0: which one opened a packet, when it may be gone */
    uint64_t sent;   /* the count of the next packet */
    uint64_t below;  /* all counts from here on are new */
    uint64_t seen[CW_SEAL_WINDOW_WORDS];
};

/* A seal for the session of these two nonces. NULL: no room for its keys. */
struct cw_seal *cw_seal_create(struct cw_endpoint *endpoint, uint64_t local, uint64_t peer);

/* Destroys it; packets staged under it are sealed first. NULL is allowed. */
void cw_seal_destroy(struct cw_endpoint *endpoint, struct cw_seal *seal);

/* True if no packet with this count has come before, and none can come after. */
bool cw_seal_fresh(struct cw_seal *seal, uint64_t count);

/* The key of its flow that a packet is for, as the receiver's nonce has chosen. */
static inline uint32_t cw_seal_phase(uint64_t local)
{
    return (uint32_t)(local >> 56);
}

/* The number that the peer is to write into `flow`: which flow, and which of its keys. */
static inline uint32_t cw_seal_flow(uint32_t index, uint64_t local)
{
    return index | cw_seal_phase(local) << CW_WIRE_FLOW_BITS;
}
