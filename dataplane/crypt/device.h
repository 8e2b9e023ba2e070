/* Devices of DPDK's cryptodev, as aead.c uses them: found or plugged, given a queue pair, and with room for sessions
 * that grows.
 *
 * They are EAL's, and so the process's: this is where their state is kept. Private to crypt/. */
#pragma once

#define ALLOW_EXPERIMENTAL_API /* calls without a queue, pools of sessions: in DPDK since 20.05 and 19.02 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_crypto.h>
#include <rte_cryptodev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "dataplane/crypt/aead.h"

enum {
    CRYPT_POOLS_MAX = 12,      /* each has twice the sessions of the one before */
    CRYPT_POOL_SESSIONS = 256, /* of the first */
    CRYPT_NONCE_BYTES = 12,
    CRYPT_SOFTWARE = 3, /* drivers that are software, the first ones */
};

struct cw_aead {
    const char *name;
    bool opened;
    bool direct;          /* is called for a burst and returns when it is done; else it has a queue */
    bool is_lookaside;    /* does its work by itself, while the core waits */
    uint8_t id;           /* of the device */
    pthread_mutex_t lock; /* guards what follows; a queue also while a burst is in it */
    uint32_t pool_count;
    struct rte_mempool *pools[CRYPT_POOLS_MAX];
    /* a queue's: one of each for each packet of a burst, never given back */
    struct rte_crypto_op *operations[CW_AEAD_BURST];
    struct rte_mbuf *packets[CW_AEAD_BURST];
};

/* The device of driver number `index`, opened. Errors as cw_aead_open. */
int crypt_device_open(uint32_t index, struct cw_aead **device, char *error, size_t error_bytes);

/* True if AES instructions are there, which the ipsec_mb library needs to be fast. */
bool crypt_has_aes(void);

/* A session of the device. NULL: EAL's memory is used up, or the driver refuses. */
void *crypt_session_create(struct cw_aead *device, struct rte_crypto_sym_xform *transform);
void crypt_session_destroy(struct cw_aead *device, void *session);
