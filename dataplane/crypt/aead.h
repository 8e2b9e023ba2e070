/* AEAD: seals and opens packets by AES-128-GCM (NIST SP 800-38D), a burst at a time, in place.
 *
 * Purpose
 *   The way to libcrypto (OpenSSL 3), which uses the AES instructions of the processor. The library is loaded when the
 *   first endpoint wants encryption: to load it takes some milliseconds, and most processes never need it.
 *
 * Invariants
 *   - A nonce is the key's salt and the packet's count. A sealer never uses a count twice under one key: otherwise GCM
 *     reveals the data of both packets, and its authentication key.
 *   - The bytes of a packet that could not be opened are undefined and must not be read.
 *   - A key belongs to its creator, one thread at a time.
 *
 * Order of calls
 *   cw_aead_load, { cw_aead_key_create, { cw_aead_seal | cw_aead_unseal }*, cw_aead_key_destroy }*
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_AEAD_KEY_BYTES = 16,
    CW_AEAD_SALT_BYTES = 4,
    CW_AEAD_MAC_BYTES = 16,
    CW_AEAD_READABLE_MAX = 64, /* bytes that are authenticated and not encrypted */
};

struct cw_aead_key;

/* Loads libcrypto, if it is not loaded yet. CW_OK, or CW_ERROR_UNSUPPORTED with one line in `error`: it is not
 * installed, or has no AES-GCM. Any thread. */
int cw_aead_load(char *error, size_t error_bytes);

/* The library's name and version; after cw_aead_load has returned CW_OK. */
const char *cw_aead_version(void);

enum cw_aead_direction { CW_AEAD_SEAL, CW_AEAD_UNSEAL };

/* Sets up a key for one direction; after cw_aead_load has returned CW_OK. `readable_bytes`: of each of its packets,
 * authenticated and not encrypted. CW_OK, CW_ERROR_MEMORY, CW_ERROR_ARGUMENT (readable_bytes). */
int cw_aead_key_create(enum cw_aead_direction direction, const uint8_t bytes[CW_AEAD_KEY_BYTES],
                       const uint8_t salt[CW_AEAD_SALT_BYTES], uint32_t readable_bytes, struct cw_aead_key **key);

/* Forgets it: its bytes are overwritten. NULL is allowed. */
void cw_aead_key_destroy(struct cw_aead_key *key);

/* A packet: `bytes` bytes at `data` are encrypted or decrypted where they are, the MAC stands behind them. */
struct cw_aead_packet {
    uint8_t *readable; /* the key's readable_bytes of them */
    uint8_t *data;
    uint32_t bytes;
    uint64_t count; /* the nonce is the key's salt and this, little-endian */
    bool good;      /* set by both calls */
};

/* Seals the packets and writes the MAC behind each. One that libcrypto fails to seal is not `good`, and its data
 * and MAC are overwritten by zeros: nothing leaves unencrypted. */
void cw_aead_seal(struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count);

/* Opens the packets; those whose MAC fits are `good`. */
void cw_aead_unseal(struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count);
