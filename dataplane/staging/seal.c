#include "dataplane/staging/seal.h"

#include <string.h>

#include <sodium.h>

#include "dataplane/staging/stage.h"
#include "dataplane/state/endpoint.h"

static_assert((CW_SEAL_WINDOW_WORDS & (CW_SEAL_WINDOW_WORDS - 1)) == 0, "words are found by a mask");
static_assert(CW_PEERS_MAX <= 1 << CW_WIRE_FLOW_BITS, "a flow's number leaves room for the phase");

static struct cw_aead_key *key_create(struct cw_endpoint *endpoint, enum cw_aead_direction direction, uint64_t sender,
                                      uint64_t receiver)
{
    struct cw_wire_seal_key derived;
    struct cw_aead_key *key = NULL;
    cw_wire_seal_derive(&derived, endpoint->config.job_key, sender, receiver);
    int status = cw_aead_key_create(direction, derived.key, derived.salt, CW_WIRE_READABLE_BYTES, &key);
    sodium_memzero(&derived, sizeof(derived));
    return status == CW_OK ? key : NULL;
}

struct cw_seal *cw_seal_create(struct cw_endpoint *endpoint, uint64_t local, uint64_t peer)
{
    struct cw_seal *seal = cw_pool_acquire(&endpoint->seals);
    if (seal == NULL) {
        return NULL;
    }
    memset(seal, 0, sizeof(*seal));
    seal->serial = ++endpoint->seal_serial;
    seal->out = key_create(endpoint, CW_AEAD_SEAL, local, peer);
    seal->in = key_create(endpoint, CW_AEAD_UNSEAL, peer, local);
    if (seal->out == NULL || seal->in == NULL) {
        cw_seal_destroy(endpoint, seal);
        return NULL;
    }
    return seal;
}

void cw_seal_destroy(struct cw_endpoint *endpoint, struct cw_seal *seal)
{
    if (seal != NULL) {
        cw_sign(endpoint);
        cw_aead_key_destroy(seal->in);
        cw_aead_key_destroy(seal->out);
        cw_pool_release(&endpoint->seals, seal);
    }
}

bool cw_seal_fresh(struct cw_seal *seal, uint64_t count)
{
    uint64_t word = count / 64;
    if (count >= CW_SEAL_COUNT_MAX) {
        return false;
    }
    if (count >= seal->below) {
        uint64_t last = (seal->below + 63) / 64; /* words from here on hold counts of long ago */
        uint64_t first = word >= last + CW_SEAL_WINDOW_WORDS ? word + 1 - CW_SEAL_WINDOW_WORDS : last;
        for (; first <= word; first++) {
            seal->seen[first % CW_SEAL_WINDOW_WORDS] = 0;
        }
        seal->below = count + 1;
    } else if (seal->below - count > CW_SEAL_WINDOW) {
        return false;
    }
    uint64_t bit = 1ull << (count % 64);
    bool fresh = (seal->seen[word % CW_SEAL_WINDOW_WORDS] & bit) == 0;
    seal->seen[word % CW_SEAL_WINDOW_WORDS] |= bit;
    return fresh;
}
