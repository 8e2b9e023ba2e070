/* Several queue pairs of one device, a port each.
 *
 * The NIC chooses the queue of a packet: by rules, where it takes them (offload/steer.c), by a hash of addresses and
 * ports, or by the sender's queue (memif). The UDP port, which an endpoint claims, says which port owns the packet. So
 * each port sorts what its queue brings (ethdev_sort.c): it keeps its own packets and passes the others through a ring,
 * with a wake-up for an owner that sleeps. Packets that no endpoint claims, and groups, belong to the first port. */
#include "dataplane/port/ethdev_private.h"

#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

static void stash_free(struct ethdev_port *port)
{
    rte_pktmbuf_free_bulk(port->stash + port->stash_first, port->stash_count);
    port->stash_count = 0;
}

static int ring_make(struct ethdev_port *port, char *error, size_t error_bytes)
{
    char name[RTE_RING_NAMESIZE];
    snprintf(name, sizeof(name), "cw_handed_%u_%u", port->id, port->queue);
    port->handed = rte_ring_create(name, ETHDEV_HANDED_MAX, rte_eth_dev_socket_id(port->id), RING_F_SC_DEQ);
    return port->handed != NULL ? CW_OK
                                : cw_error_text(error, error_bytes, CW_ERROR_MEMORY,
                                                "port %s: no memory for packets from queue to queue: %s", port->device,
                                                rte_strerror(rte_errno));
}

/* A port next to the first, which has the device. */
static int port_make(struct ethdev_port *first, uint16_t queue)
{
    struct ethdev_port *port = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*port));
    if (port == NULL) {
        return CW_ERROR_MEMORY;
    }
    *port = (struct ethdev_port){.port = {.ops = first->port.ops, .info = first->port.info},
                                 .id = first->id,
                                 .queue = queue,
                                 .queue_count = first->queue_count,
                                 .first = first,
                                 .driver = first->driver,
                                 .needs_dma = first->needs_dma,
                                 .wake.descriptor = -1,
                                 .epoll_descriptor = -1,
                                 .packet_descriptor = -1};
    strcpy(port->device, first->device);
    ethdev_gate_init(port);
    first->queues[queue] = port;
    return CW_OK;
}

int ethdev_queues_make(struct ethdev_port *first, const struct cw_port_ethdev_config *config, char *error,
                       size_t error_bytes)
{
    int status = first->queue_count > 1 ? ring_make(first, error, error_bytes) : CW_OK;
    for (uint16_t i = 1; i < first->queue_count && status == CW_OK; i++) {
        status = port_make(first, i);
        if (status != CW_OK) {
            return cw_error_text(error, error_bytes, status, "port %s: out of memory", first->device);
        }
        status = ring_make(first->queues[i], error, error_bytes);
        status = status == CW_OK ? ethdev_bell_open(first->queues[i], config, error, error_bytes) : status;
    }
    return status;
}

int ethdev_queues_begin(struct ethdev_port *first, char *error, size_t error_bytes)
{
    int status = CW_OK;
    for (uint32_t i = 1; i < first->queue_count && status == CW_OK; i++) {
        struct ethdev_port *port = first->queues[i];
        port->port.info = first->port.info;
        ethdev_offloads_share(port, first);
        status = port->driver.gated ? ethdev_gate_add(port, error, error_bytes) : CW_OK;
        status = status == CW_OK ? ethdev_wait_open(port, error, error_bytes) : status;
    }
    return status;
}

static void handed_free(struct ethdev_port *port)
{
    struct rte_mbuf *buffer;
    while (port->handed != NULL && rte_ring_sc_dequeue(port->handed, (void **)&buffer) == 0) {
        rte_pktmbuf_free(buffer);
    }
}

void ethdev_queues_drain(struct ethdev_port *first)
{
    for (uint32_t i = 0; i < CW_PORT_ETHDEV_QUEUES_MAX; i++) {
        struct ethdev_port *port = first->queues[i];
        if (port != NULL) {
            stash_free(port);
            handed_free(port);
            ethdev_wait_close(port);
        }
    }
}

void ethdev_queues_dispose(struct ethdev_port *first)
{
    for (uint32_t i = CW_PORT_ETHDEV_QUEUES_MAX; i-- > 0;) {
        struct ethdev_port *port = first->queues[i];
        if (port != NULL) {
            ethdev_memory_clear(port);
            cw_doorbell_close(port->bell);
            rte_ring_free(port->handed);
            if (port != first) {
                free(port);
            }
        }
    }
}

struct cw_port *cw_port_ethdev_queue(struct cw_port *base, uint32_t index)
{
    const struct ethdev_port *first = ethdev_of(base);
    return index < first->queue_count ? &first->queues[index]->port : NULL;
}
