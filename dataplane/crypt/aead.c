#include "dataplane/crypt/aead.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "dataplane/crypt/device.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

struct cw_aead_key {
    struct cw_aead *aead;
    void *session;
    enum cw_aead_direction direction;
    uint32_t readable_bytes;
    uint8_t salt[CW_AEAD_SALT_BYTES];
};

/* ---- drivers ---- */

/* Without AES instructions the ipsec_mb library emulates them, and OpenSSL is faster. */
static uint32_t nth_best(uint32_t rank)
{
    return crypt_has_aes() ? rank : CRYPT_SOFTWARE - 1 - rank;
}

static int open_named(const char *driver, struct cw_aead **aead, char *error, size_t error_bytes)
{
    for (uint32_t i = 0; i < CW_AEAD_DRIVERS; i++) {
        if (strcmp(driver, cw_aead_driver_name(i)) == 0) {
            return crypt_device_open(i, aead, error, error_bytes);
        }
    }
    return cw_error_text(
        error, error_bytes, CW_ERROR_UNSUPPORTED, "encryption by %s: no such driver; there are %s, %s, %s and %s",
        driver, cw_aead_driver_name(0), cw_aead_driver_name(1), cw_aead_driver_name(2), cw_aead_driver_name(3));
}

int cw_aead_open(const char *driver, struct cw_aead **aead, char *error, size_t error_bytes)
{
    if (driver != NULL) {
        return open_named(driver, aead, error, error_bytes);
    }
    int status = CW_ERROR_UNSUPPORTED;
    for (uint32_t rank = 0; rank < CRYPT_SOFTWARE && status != CW_OK; rank++) {
        status = crypt_device_open(nth_best(rank), aead, error, error_bytes);
    }
    return status;
}

const char *cw_aead_driver(const struct cw_aead *aead)
{
    return aead->name;
}

void cw_aead_why(const struct cw_aead *aead, char *text, size_t text_bytes)
{
    const char *how = aead->direct ? "called directly" : "through its queue, at several times the cost";
    uint32_t rank = 0;
    if (aead->is_lookaside) {
        snprintf(text, text_bytes, "%s: asked for; a device beside the core, which waits for it", aead->name);
        return;
    }
    while (strcmp(cw_aead_driver_name(nth_best(rank)), aead->name) != 0) {
        rank++;
    }
    if (rank == 0) {
        snprintf(text, text_bytes, "%s: the best one %s AES instructions; %s", aead->name,
                 crypt_has_aes() ? "on processors with" : "without", how);
    } else {
        snprintf(text, text_bytes, "%s: for want of %s; %s", aead->name, cw_aead_driver_name(nth_best(rank - 1)), how);
    }
}

/* ---- keys ---- */

int cw_aead_key_create(struct cw_aead *aead, enum cw_aead_direction direction, const uint8_t bytes[CW_AEAD_KEY_BYTES],
                       const uint8_t salt[CW_AEAD_SALT_BYTES], uint32_t readable_bytes, struct cw_aead_key **key)
{
    if (readable_bytes > CW_AEAD_READABLE_MAX) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_aead_key *made = malloc(sizeof(*made));
    if (made == NULL) {
        return CW_ERROR_MEMORY;
    }
    struct rte_crypto_sym_xform transform = {
        .type = RTE_CRYPTO_SYM_XFORM_AEAD,
        .aead = {.op = direction == CW_AEAD_SEAL ? RTE_CRYPTO_AEAD_OP_ENCRYPT : RTE_CRYPTO_AEAD_OP_DECRYPT,
                 .algo = RTE_CRYPTO_AEAD_AES_GCM,
                 .key = {.data = bytes, .length = CW_AEAD_KEY_BYTES},
                 .iv = {.offset = sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_sym_op),
                        .length = CRYPT_NONCE_BYTES},
                 .digest_length = CW_AEAD_MAC_BYTES,
                 .aad_length = (uint16_t)readable_bytes},
    };
    *made = (struct cw_aead_key){.aead = aead, .direction = direction, .readable_bytes = readable_bytes};
    memcpy(made->salt, salt, sizeof(made->salt));
    made->session = crypt_session_create(aead, &transform);
    if (made->session == NULL) {
        free(made);
        return CW_ERROR_MEMORY;
    }
    *key = made;
    return CW_OK;
}

void cw_aead_key_destroy(struct cw_aead_key *key)
{
    if (key != NULL) {
        crypt_session_destroy(key->aead, key->session);
        sodium_memzero(key, sizeof(*key));
        free(key);
    }
}

/* ---- packets ---- */

static inline void nonce_write(const struct cw_aead_key *key, uint64_t count, uint8_t *nonce)
{
    memcpy(nonce, key->salt, CW_AEAD_SALT_BYTES);
    memcpy(nonce + CW_AEAD_SALT_BYTES, &count, sizeof(count));
}

/* A driver that is called directly: the whole burst in one call. */
static void process_directly(const struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count)
{
    uint8_t nonces[CW_AEAD_BURST][16];
    struct rte_crypto_vec data[CW_AEAD_BURST];
    struct rte_crypto_sgl lists[CW_AEAD_BURST];
    struct rte_crypto_va_iova_ptr nonce[CW_AEAD_BURST];
    struct rte_crypto_va_iova_ptr mac[CW_AEAD_BURST];
    struct rte_crypto_va_iova_ptr readable[CW_AEAD_BURST];
    int32_t status[CW_AEAD_BURST];
    for (uint32_t i = 0; i < count; i++) {
        const struct cw_aead_packet *packet = &packets[i];
        nonce_write(key, packet->count, nonces[i]);
        data[i] = (struct rte_crypto_vec){.base = packet->data, .len = packet->bytes, .tot_len = packet->bytes};
        lists[i] = (struct rte_crypto_sgl){.vec = &data[i], .num = 1};
        nonce[i] = (struct rte_crypto_va_iova_ptr){.va = nonces[i]};
        mac[i] = (struct rte_crypto_va_iova_ptr){.va = packet->data + packet->bytes};
        readable[i] = (struct rte_crypto_va_iova_ptr){.va = packet->readable};
        status[i] = -1;
    }
    struct rte_crypto_sym_vec burst = {
        .num = count, .src_sgl = lists, .iv = nonce, .digest = mac, .aad = readable, .status = status};
    union rte_crypto_sym_ofs offsets = {0};
    (void)rte_cryptodev_sym_cpu_crypto_process(key->aead->id, key->session, offsets, &burst);
    for (uint32_t i = 0; i < count; i++) {
        packets[i].good = status[i] == 0;
    }
}

static void operation_fill(const struct cw_aead_key *key, const struct cw_aead_packet *packet,
                           struct rte_crypto_op *operation, struct rte_mbuf *buffer)
{
    /* a device that reads memory itself uses virtual addresses, too: others are not taken */
    buffer->buf_addr = packet->data;
    buffer->buf_iova = (rte_iova_t)(uintptr_t)packet->data;
    buffer->data_off = 0;
    buffer->buf_len = buffer->data_len = (uint16_t)packet->bytes;
    buffer->pkt_len = packet->bytes;
    __rte_crypto_op_reset(operation, RTE_CRYPTO_OP_TYPE_SYMMETRIC);
    rte_crypto_op_attach_sym_session(operation, key->session);
    operation->sym->m_src = buffer;
    operation->sym->aead.data.offset = 0;
    operation->sym->aead.data.length = packet->bytes;
    operation->sym->aead.digest.data = packet->data + packet->bytes;
    operation->sym->aead.digest.phys_addr = (rte_iova_t)(uintptr_t)(packet->data + packet->bytes);
    operation->sym->aead.aad.data = packet->readable;
    operation->sym->aead.aad.phys_addr = (rte_iova_t)(uintptr_t)packet->readable;
    nonce_write(key, packet->count,
                rte_crypto_op_ctod_offset(operation, uint8_t *,
                                          sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_sym_op)));
}

/* A driver with a queue; those that are software do the work in one of the two calls, a device takes its time. The
 * queue is the process's: one burst at a time. */
static void process_queued(const struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count)
{
    struct cw_aead *aead = key->aead;
    struct rte_crypto_op *done[CW_AEAD_BURST];
    pthread_mutex_lock(&aead->lock);
    for (uint32_t i = 0; i < count; i++) {
        packets[i].good = false;
        operation_fill(key, &packets[i], aead->operations[i], aead->packets[i]);
    }
    uint32_t taken = rte_cryptodev_enqueue_burst(aead->id, 0, aead->operations, (uint16_t)count);
    uint32_t come = 0;
    for (uint32_t more = 1; come < taken && (more > 0 || aead->is_lookaside); come += more) {
        more = rte_cryptodev_dequeue_burst(aead->id, 0, done, (uint16_t)(taken - come));
    }
    assert(come == taken);
    for (uint32_t i = 0; i < taken; i++) {
        packets[i].good = aead->operations[i]->status == RTE_CRYPTO_OP_STATUS_SUCCESS;
    }
    pthread_mutex_unlock(&aead->lock);
}

static void process(const struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count)
{
    assert(count <= CW_AEAD_BURST);
    if (key->aead->direct) {
        process_directly(key, packets, count);
    } else {
        process_queued(key, packets, count);
    }
}

void cw_aead_seal(struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count)
{
    assert(key->direction == CW_AEAD_SEAL);
    process(key, packets, count);
    for (uint32_t i = 0; i < count; i++) {
        if (!packets[i].good) {
            memset(packets[i].data, 0, packets[i].bytes + CW_AEAD_MAC_BYTES);
        }
    }
}

void cw_aead_unseal(struct cw_aead_key *key, struct cw_aead_packet *packets, uint32_t count)
{
    assert(key->direction == CW_AEAD_UNSEAL);
    process(key, packets, count);
}
