/* Registered memory: the target of external pieces, counted while the driver holds them. */
#define ALLOW_EXPERIMENTAL_API /* rte_dev_dma_map: in DPDK since 19.05 */
#include "dataplane/port/ethdev_private.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_memory.h>

/* Never called: the count's first 1 is the registration itself, which cw_port_memory_unregister takes back. */
static void memory_released(void *address, void *context)
{
    (void)address;
    (void)context;
    assert(false && "the driver released more pieces than it was given");
}

static struct rte_device *port_device(const struct ethdev_port *port)
{
    struct rte_eth_dev_info info;
    return rte_eth_dev_info_get(port->id, &info) == 0 ? info.device : NULL;
}

/* DPDK's table of external memory is the process's, and so is this one: two ports may register the same pages. */
static pthread_mutex_t extmem_lock = PTHREAD_MUTEX_INITIALIZER;

static int extmem_map(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below)
{
    (void)context;
    (void)below;
    if (rte_extmem_register((void *)first, end - first, NULL, 0, (size_t)sysconf(_SC_PAGESIZE)) != 0) {
        return rte_errno == ENOSPC ? CW_ERROR_LIMIT : CW_ERROR_SYSTEM; /* EEXIST: not ours, and so not ours to keep */
    }
    return CW_OK;
}

static void extmem_unmap(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below)
{
    (void)context;
    (void)below;
    rte_extmem_unregister((void *)first, end - first);
}

static struct cw_mappings extmem = {.map = extmem_map, .unmap = extmem_unmap};

static void extmem_release(struct cw_pages *pages)
{
    pthread_mutex_lock(&extmem_lock);
    cw_mappings_remove(&extmem, pages);
    pthread_mutex_unlock(&extmem_lock);
}

/* Makes pages known to DPDK and to the device's IOMMU. */
static int device_map(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below)
{
    struct rte_device *device = port_device(context);
    if (device == NULL) {
        return CW_ERROR_SYSTEM;
    }
    pthread_mutex_lock(&extmem_lock);
    int status = cw_mappings_add(&extmem, below, first, end);
    pthread_mutex_unlock(&extmem_lock);
    if (status != CW_OK) {
        return status;
    }
    /* A device that knows no mapping of its own reads through DPDK's tables. */
    if (rte_dev_dma_map(device, (void *)first, first, end - first) != 0 && rte_errno != ENOTSUP) {
        extmem_release(below);
        return CW_ERROR_SYSTEM;
    }
    return CW_OK;
}

static void device_unmap(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below)
{
    struct rte_device *device = port_device(context);
    if (device != NULL) {
        rte_dev_dma_unmap(device, (void *)first, first, end - first);
    }
    extmem_release(below);
}

/* With the first registration: most devices need none. */
static void cache_open(struct ethdev_port *port)
{
    port->mappings = (struct cw_mappings){.map = device_map, .unmap = device_unmap, .context = port};
    if (cw_memory_watch_open(&port->watch, port->unwatched, sizeof(port->unwatched)) == CW_OK) {
        port->unwatched[0] = 0;
    }
    cw_cache_init(&port->cache, cw_registrar_of_mappings(&port->mappings), &port->watch,
                  (uintptr_t)sysconf(_SC_PAGESIZE));
    port->has_cache = true;
}

/* The device has one cache for all of its queue pairs. */
static int memory_map(struct ethdev_port *port, struct cw_port_memory *memory)
{
    struct ethdev_port *first = port->first;
    pthread_mutex_lock(&first->cache_lock);
    if (!first->has_cache) {
        cache_open(first);
    }
    int status = cw_cache_get(&first->cache, memory->base, memory->bytes, 0, &memory->mapped);
    pthread_mutex_unlock(&first->cache_lock);
    port->port.info.registrations = &first->cache.counters;
    port->port.info.unwatched = first->unwatched;
    return status;
}

static void memory_unmap(struct ethdev_port *port, struct cw_port_memory *memory)
{
    if (memory->mapped != NULL) {
        pthread_mutex_lock(&port->first->cache_lock);
        cw_cache_put(&port->first->cache, memory->mapped);
        pthread_mutex_unlock(&port->first->cache_lock);
    }
}

int ethdev_memory_register(struct cw_port *base, void *address, size_t bytes, struct cw_port_memory **memory)
{
    struct ethdev_port *port = ethdev_of(base);
    if (!base->info.gather) {
        return CW_ERROR_UNSUPPORTED;
    }
    if (address == NULL || bytes == 0) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_port_memory *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return CW_ERROR_MEMORY;
    }
    created->base = address;
    created->bytes = bytes;
    created->shared.free_cb = memory_released;
    rte_mbuf_ext_refcnt_set(&created->shared, 1);
    int status = port->needs_dma ? memory_map(port, created) : CW_OK;
    if (status != CW_OK) {
        free(created);
        return status;
    }
    created->next = port->memories;
    port->memories = created;
    *memory = created;
    return CW_OK;
}

int ethdev_memory_unregister(struct cw_port *base, struct cw_port_memory *memory)
{
    struct ethdev_port *port = ethdev_of(base);
    if (rte_mbuf_ext_refcnt_read(&memory->shared) != 1) {
        /* Drivers free sent packets when they send the next ones; those with a clean-up call do it now. */
        rte_eth_tx_done_cleanup(port->id, port->queue, 0);
        if (rte_mbuf_ext_refcnt_read(&memory->shared) != 1) {
            return CW_ERROR_BUSY;
        }
    }
    struct cw_port_memory **link = &port->memories;
    while (*link != NULL && *link != memory) {
        link = &(*link)->next;
    }
    assert(*link == memory && "memory of another port, or unregistered twice");
    *link = memory->next;
    memory_unmap(port, memory);
    free(memory);
    return CW_OK;
}

void ethdev_memory_clear(struct ethdev_port *port)
{
    while (port->memories != NULL) {
        struct cw_port_memory *memory = port->memories;
        port->memories = memory->next;
        memory_unmap(port, memory);
        free(memory);
    }
    if (port->has_cache) {
        cw_cache_dispose(&port->cache);
        cw_memory_watch_close(&port->watch);
    }
}
