/* AEAD: seals and opens packets by AES-128-GCM (NIST SP 800-38D), a burst at a time, in place.
 *
 * Purpose
 *   One interface to the software drivers of DPDK's cryptodev: crypto_aesni_gcm and crypto_aesni_mb (both of the
 *   ipsec_mb library), which are called directly, and crypto_openssl, which has a queue but does its work in the call
 *   as well. Which of them is used decides what a byte costs, and nothing else. A fourth, "lookaside", is whatever
 *   device beside the core DPDK has found that knows AES-GCM; it is taken by its name alone, and reads packets itself:
 *   they must lie in buffers of a port of DPDK's.
 *
 * Invariants
 *   - A nonce is the key's salt and the packet's count. Whoever seals never gives a count twice under one key: GCM
 *     reveals the data of both packets, and its authentication key, if that happens.
 *   - What could not be opened is not to be read: its bytes are undefined, whatever they look like.
 *   - Keys belong to whoever has made them, one thread at a time; drivers are the process's, as EAL is, and stay until
 *     it ends.
 *
 * Order of calls
 *   cw_aead_open, { cw_aead_key_create, { cw_aead_seal | cw_aead_unseal }*, cw_aead_key_destroy }*
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
    CW_AEAD_BURST = 64,        /* packets of one call */
    CW_AEAD_DRIVERS = 4,
};

struct cw_aead;
struct cw_aead_key;

/* The names of the drivers that cw_aead_open knows, best first where the processor has AES instructions; NULL beyond
 * the last one. */
const char *cw_aead_driver_name(uint32_t index);

/* Opens a driver, by name, or the best one there is (`driver` NULL). Starts EAL if nobody has yet, with its defaults: a
 * port that needs other settings must be opened before. CW_OK; CW_ERROR_UNSUPPORTED (no such driver here, or a build
 * without DPDK); as cw_eal_start; CW_ERROR_MEMORY. `error` gets one line. Any thread. */
int cw_aead_open(const char *driver, struct cw_aead **aead, char *error, size_t error_bytes);

/* The driver's name, and in one line why it was taken (for the best one) and how it is called. */
const char *cw_aead_driver(const struct cw_aead *aead);
void cw_aead_why(const struct cw_aead *aead, char *text, size_t text_bytes);

enum cw_aead_direction { CW_AEAD_SEAL, CW_AEAD_UNSEAL };

/* Sets up a key for one direction. `readable_bytes`: of each of its packets, authenticated and not encrypted. CW_OK,
 * CW_ERROR_MEMORY (EAL has none left), CW_ERROR_ARGUMENT (readable_bytes), CW_ERROR_SYSTEM (the driver refuses). */
int cw_aead_key_create(struct cw_aead *aead, enum cw_aead_direction direction, const uint8_t bytes[CW_AEAD_KEY_BYTES],
                       const uint8_t salt[CW_AEAD_SALT_BYTES], uint32_t readable_bytes, struct cw_aead_key **key);

/* Forgets it: its bytes are overwritten. NULL is allowed. */
void cw_aead_key_destroy(struct cw_aead_key *key);

/* A packet: `bytes` bytes at `data` are encrypted or decrypted where they are, the MAC stands behind them. */
struct cw_aead_packet {
    uint8_t *readable; /* the key's readable_bytes of them */
    uint8_t *data;
    uint32_t bytes; /* up to 65519 */
    uint64_t count; /* the nonce is the key's salt and this, little-endian */
    bool good;      /* set by both calls */
};

/* Seals up to CW_AEAD_BURST packets and writes the MAC behind each. A packet that the driver fails to seal is not
 * `good`, and its data is overwritten by zeros: nothing leaves unencrypted. */
void cw_aead_seal(struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count);

/* Opens up to CW_AEAD_BURST packets; those whose MAC fits are `good`. */
void cw_aead_unseal(struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count);
