/* Registered memory: what external pieces may point into, counted while the driver holds them. */
#define ALLOW_EXPERIMENTAL_API /* rte_dev_dma_map: in DPDK since 19.05 */
#include "dataplane/port/ethdev_private.h"

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

/* Makes the whole pages around the memory known to DPDK and to the device's IOMMU. Pages that an earlier registration brought
 * along stay its own (page_bytes is 0 then): two regions in one page are legal as long as the first outlives the second. */
static int memory_map(const struct ethdev_port *port, struct cw_port_memory *memory)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = RTE_ALIGN_FLOOR((uintptr_t)memory->base, page);
    size_t bytes = RTE_ALIGN_CEIL((uintptr_t)memory->base + memory->bytes, page) - first;
    if (rte_extmem_register((void *)first, bytes, NULL, 0, page) != 0) {
        return rte_errno == EEXIST ? CW_OK : rte_errno == ENOSPC ? CW_ERROR_LIMIT : CW_ERROR_SYSTEM;
    }
    struct rte_device *device = port_device(port);
    /* A device that knows no mapping of its own reads through DPDK's tables. */
    if (device == NULL || (rte_dev_dma_map(device, (void *)first, first, bytes) != 0 && rte_errno != ENOTSUP)) {
        rte_extmem_unregister((void *)first, bytes);
        return CW_ERROR_SYSTEM;
    }
    memory->page_base = (void *)first;
    memory->page_bytes = bytes;
    return CW_OK;
}

static void memory_unmap(const struct ethdev_port *port, struct cw_port_memory *memory)
{
    if (memory->page_bytes == 0) {
        return;
    }
    struct rte_device *device = port_device(port);
    if (device != NULL) {
        rte_dev_dma_unmap(device, memory->page_base, (uint64_t)(uintptr_t)memory->page_base, memory->page_bytes);
    }
    rte_extmem_unregister(memory->page_base, memory->page_bytes);
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
        /* Drivers free sent packets when they send the next ones; those that can be asked are. */
        rte_eth_tx_done_cleanup(port->id, 0, 0);
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

void ethdev_memory_forget(struct ethdev_port *port)
{
    while (port->memories != NULL) {
        struct cw_port_memory *memory = port->memories;
        port->memories = memory->next;
        memory_unmap(port, memory);
        free(memory);
    }
}
