#include "dataplane/wire/sealed.h"

#include <sodium.h>

enum {
    READABLE_BYTES = offsetof(struct cw_wire_sealed_setup, nonce),
    SECRET_BYTES = offsetof(struct cw_wire_sealed_setup, mac) - offsetof(struct cw_wire_sealed_setup, timestamp),
};

static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == CW_WIRE_SETUP_KEY_BYTES &&
                  crypto_aead_xchacha20poly1305_ietf_NPUBBYTES == CW_WIRE_SETUP_NONCE_BYTES &&
                  crypto_aead_xchacha20poly1305_ietf_ABYTES == CW_WIRE_MAC_BYTES,
              "XChaCha20-Poly1305");

/* BLAKE2b; fails only for lengths out of range, which none of ours is. */
static void hash(void *out, size_t out_bytes, const void *key, size_t key_bytes, const void *input, size_t bytes)
{
    int failed = crypto_generichash(out, out_bytes, input, bytes, key, key_bytes);
    assert(failed == 0);
    (void)failed;
}

uint32_t cw_wire_sealed_bytes(const struct cw_wire_header *header)
{
    return cw_wire_datagram_bytes(header) - 8 - CW_WIRE_READABLE_BYTES - CW_WIRE_MAC_BYTES;
}

void cw_wire_seal_derive(struct cw_wire_seal_key *key, const uint8_t job_key[16], uint64_t sender_session,
                         uint64_t receiver_session)
{
    uint8_t input[32] = "causeway aead 1";
    uint8_t output[sizeof(key->key) + sizeof(key->salt)];
    memcpy(input + 16, &sender_session, 8);
    memcpy(input + 24, &receiver_session, 8);
    hash(output, sizeof(output), job_key, 16, input, sizeof(input));
    memcpy(key->key, output, sizeof(key->key));
    memcpy(key->salt, output + sizeof(key->key), sizeof(key->salt));
    sodium_memzero(output, sizeof(output));
}

void cw_wire_setup_derive(uint8_t key[CW_WIRE_SETUP_KEY_BYTES], const uint8_t job_key[16])
{
    static const uint8_t input[16] = "causeway setup1";
    hash(key, CW_WIRE_SETUP_KEY_BYTES, job_key, 16, input, sizeof(input));
}

void cw_wire_setup_nonce(uint8_t nonce[CW_WIRE_SETUP_NONCE_BYTES], const uint8_t key[CW_WIRE_SETUP_KEY_BYTES],
                         const void *unique, uint32_t bytes)
{
    hash(nonce, CW_WIRE_SETUP_NONCE_BYTES, key, CW_WIRE_SETUP_KEY_BYTES, unique, bytes);
}

void cw_wire_setup_seal(struct cw_wire_sealed_setup *setup, const uint8_t key[CW_WIRE_SETUP_KEY_BYTES])
{
    uint8_t secret[SECRET_BYTES];
    uint8_t *at = (uint8_t *)setup + offsetof(struct cw_wire_sealed_setup, timestamp);
    memcpy(secret, at, sizeof(secret));
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(at, NULL, secret, sizeof(secret), (const uint8_t *)setup,
                                                     READABLE_BYTES, NULL, setup->nonce, key);
}

bool cw_wire_setup_unseal(const struct cw_wire_sealed_setup *sealed, const uint8_t key[CW_WIRE_SETUP_KEY_BYTES],
                          struct cw_wire_sealed_setup *setup)
{
    *setup = *sealed;
    uint8_t *at = (uint8_t *)setup + offsetof(struct cw_wire_sealed_setup, timestamp);
    const uint8_t *from = (const uint8_t *)sealed + offsetof(struct cw_wire_sealed_setup, timestamp);
    return crypto_aead_xchacha20poly1305_ietf_decrypt(at, NULL, NULL, from, SECRET_BYTES + CW_WIRE_MAC_BYTES,
                                                      (const uint8_t *)sealed, READABLE_BYTES, sealed->nonce, key) == 0;
}
