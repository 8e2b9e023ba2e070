#include "dataplane/crypt/device.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_errno.h>

#include "dataplane/port/eal.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

/* A thousand endpoints may share these: they are what EAL has, once in a process. */
static struct cw_aead devices[CW_AEAD_DRIVERS] = {
    {.name = "crypto_aesni_gcm", .lock = PTHREAD_MUTEX_INITIALIZER},
    {.name = "crypto_aesni_mb", .lock = PTHREAD_MUTEX_INITIALIZER},
    {.name = "crypto_openssl", .lock = PTHREAD_MUTEX_INITIALIZER},
    {.name = "lookaside", .is_lookaside = true, .lock = PTHREAD_MUTEX_INITIALIZER},
};

const char *cw_aead_driver_name(uint32_t index)
{
    return index < CW_AEAD_DRIVERS ? devices[index].name : NULL;
}

bool crypt_has_aes(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#else
    return true; /* the library asks for itself */
#endif
}

/* ---- sessions ---- */

/* One more pool, twice as large as the one before. With the lock. */
static bool pool_add(struct cw_aead *device)
{
    if (device->pool_count == CRYPT_POOLS_MAX) {
        return false;
    }
    char name[RTE_MEMPOOL_NAMESIZE];
    snprintf(name, sizeof(name), "cw_%s_%u", device->name, device->pool_count);
    struct rte_mempool *pool = rte_cryptodev_sym_session_pool_create(
        name, (uint32_t)CRYPT_POOL_SESSIONS << device->pool_count,
        rte_cryptodev_sym_get_private_session_size(device->id), 0, 0, SOCKET_ID_ANY);
    if (pool == NULL) {
        return false;
    }
    device->pools[device->pool_count++] = pool;
    return true;
}

void *crypt_session_create(struct cw_aead *device, struct rte_crypto_sym_xform *transform)
{
    void *session = NULL;
    pthread_mutex_lock(&device->lock);
    struct rte_mempool *pool = NULL;
    for (uint32_t i = device->pool_count; i-- > 0 && pool == NULL;) {
        pool = rte_mempool_avail_count(device->pools[i]) > 0 ? device->pools[i] : NULL;
    }
    if (pool == NULL && pool_add(device)) {
        pool = device->pools[device->pool_count - 1];
    }
    if (pool != NULL) {
        session = rte_cryptodev_sym_session_create(device->id, transform, pool);
    }
    pthread_mutex_unlock(&device->lock);
    return session;
}

void crypt_session_destroy(struct cw_aead *device, void *session)
{
    pthread_mutex_lock(&device->lock);
    (void)rte_cryptodev_sym_session_free(device->id, session); /* overwrites it, too */
    pthread_mutex_unlock(&device->lock);
}

/* ---- devices ---- */

/* What a queue needs for a burst: operations, and packets that point at data elsewhere. */
static bool queue_open(struct cw_aead *device)
{
    struct rte_mempool *operations = rte_crypto_op_pool_create("cw_crypto_ops", RTE_CRYPTO_OP_TYPE_SYMMETRIC,
                                                               CW_AEAD_BURST, 0, CRYPT_NONCE_BYTES, SOCKET_ID_ANY);
    struct rte_mempool *packets = rte_pktmbuf_pool_create("cw_crypto_packets", CW_AEAD_BURST, 0, 0, 0, SOCKET_ID_ANY);
    if (operations == NULL || packets == NULL ||
        rte_crypto_op_bulk_alloc(operations, RTE_CRYPTO_OP_TYPE_SYMMETRIC, device->operations, CW_AEAD_BURST) !=
            CW_AEAD_BURST ||
        rte_pktmbuf_alloc_bulk(packets, device->packets, CW_AEAD_BURST) != 0) {
        rte_mempool_free(operations);
        rte_mempool_free(packets);
        return false;
    }
    return true;
}

/* Drivers want a queue pair before they make a session (aesni_gcm of 22.11 crashes without), and all want to be
 * started. */
static int device_start(const struct cw_aead *device)
{
    struct rte_cryptodev_config config = {
        .socket_id = SOCKET_ID_ANY, .nb_queue_pairs = 1, .ff_disable = RTE_CRYPTODEV_FF_ASYMMETRIC_CRYPTO};
    struct rte_cryptodev_qp_conf queue = {.nb_descriptors = 2 * CW_AEAD_BURST};
    int result = rte_cryptodev_configure(device->id, &config);
    result = result < 0 ? result : rte_cryptodev_queue_pair_setup(device->id, 0, &queue, SOCKET_ID_ANY);
    return result < 0 ? result : rte_cryptodev_start(device->id);
}

static int failed(const struct cw_aead *device, int status, const char *what, char *error, size_t error_bytes)
{
    char cause[128];
    cw_eal_log_first(cause, sizeof(cause));
    return cw_error_text(error, error_bytes, status, "encryption by %s: %s%s%s", device->name, what,
                         cause[0] == 0 ? "" : ": ", cause);
}

static bool knows_gcm(uint8_t id)
{
    struct rte_cryptodev_sym_capability_idx index = {.type = RTE_CRYPTO_SYM_XFORM_AEAD,
                                                     .algo.aead = RTE_CRYPTO_AEAD_AES_GCM};
    return rte_cryptodev_sym_capability_get(id, &index) != NULL;
}

/* A device that is no software; negative: there is none, or it could not read the memory of packets. */
static int lookaside_find(void)
{
    for (uint8_t id = 0; id < RTE_CRYPTO_MAX_DEVS && rte_eal_iova_mode() == RTE_IOVA_VA; id++) {
        struct rte_cryptodev_info info;
        if (!rte_cryptodev_is_valid_dev(id)) {
            continue;
        }
        rte_cryptodev_info_get(id, &info);
        if ((info.feature_flags & RTE_CRYPTODEV_FF_HW_ACCELERATED) != 0 && knows_gcm(id)) {
            return id;
        }
    }
    return -1;
}

static int software_find(const struct cw_aead *device)
{
    int id = rte_cryptodev_get_dev_id(device->name);
    if (id < 0) {
        (void)rte_eal_hotplug_add("vdev", device->name, "");
        id = rte_cryptodev_get_dev_id(device->name);
    }
    return id;
}

/* With the lock. */
static int device_open(struct cw_aead *device, char *error, size_t error_bytes)
{
    struct cw_eal_config eal = {.core = CW_EAL_CORE_CALLER};
    int status = cw_eal_start(&eal, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    cw_eal_log_clear();
    int id = device->is_lookaside ? lookaside_find() : software_find(device);
    if (id < 0) {
        return failed(device, CW_ERROR_UNSUPPORTED,
                      device->is_lookaside ? "DPDK sees no device that seals, or its IOVA mode is not VA"
                                           : "DPDK has no such driver here, or it does not start",
                      error, error_bytes);
    }
    device->id = (uint8_t)id;
    struct rte_cryptodev_info info;
    rte_cryptodev_info_get(device->id, &info);
    if (!knows_gcm(device->id)) {
        return failed(device, CW_ERROR_UNSUPPORTED, "it does not know AES-GCM", error, error_bytes);
    }
    if (device_start(device) < 0) {
        return failed(device, CW_ERROR_SYSTEM, "the device cannot be started", error, error_bytes);
    }
    device->direct = (info.feature_flags & RTE_CRYPTODEV_FF_SYM_CPU_CRYPTO) != 0;
    if (!device->direct && !queue_open(device)) {
        return failed(device, CW_ERROR_MEMORY, "no EAL memory for its queue", error, error_bytes);
    }
    device->opened = true;
    return CW_OK;
}

int crypt_device_open(uint32_t index, struct cw_aead **device, char *error, size_t error_bytes)
{
    assert(index < CW_AEAD_DRIVERS);
    struct cw_aead *found = &devices[index];
    pthread_mutex_lock(&found->lock);
    int status = found->opened ? CW_OK : device_open(found, error, error_bytes);
    pthread_mutex_unlock(&found->lock);
    if (status == CW_OK) {
        *device = found;
    }
    return status;
}
