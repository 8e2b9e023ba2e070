/* Several queue pairs of one device, a port each.
 *
 * Which queue a packet comes by is the NIC's choice: by rules, where it takes them (offload/steer.c), by a hash of
 * addresses and ports, or by that of the other end (memif: as it left). Whose it is its UDP port says, which an
 * endpoint claims. So each owner looks at what its queue brings, keeps its own, and hands over the rest: through a ring, with a
 * wake-up for an owner that sleeps. What nobody claims, and groups, are the first's. */
#include "dataplane/port/ethdev_private.h"

#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

/* ---- whose it is ---- */

/* The UDP port that a packet is sent to, of one to an address of a single host; 0: none. */
static inline uint32_t port_of(const struct rte_mbuf *buffer)
{
    const struct rte_ether_hdr *ether = rte_pktmbuf_mtod(buffer, const struct rte_ether_hdr *);
    const struct rte_ipv4_hdr *v4 = (const struct rte_ipv4_hdr *)(ether + 1);
    const struct rte_ipv6_hdr *v6 = (const struct rte_ipv6_hdr *)(ether + 1);
    const struct rte_udp_hdr *udp = NULL;
    uint32_t length = buffer->data_len;
    if (length < sizeof(*ether) + sizeof(*v4) + sizeof(*udp) || (ether->dst_addr.addr_bytes[0] & 1) != 0) {
        return 0;
    }
    if (ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && v4->version_ihl == 0x45 &&
        v4->next_proto_id == IPPROTO_UDP) {
        udp = (const struct rte_udp_hdr *)(v4 + 1);
    } else if (ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && v6->proto == IPPROTO_UDP &&
               length >= sizeof(*ether) + sizeof(*v6) + sizeof(*udp)) {
        udp = (const struct rte_udp_hdr *)(v6 + 1);
    }
    return udp != NULL ? rte_be_to_cpu_16(udp->dst_port) : 0;
}

static inline bool is_claimed(const struct ethdev_port *port, uint32_t udp_port)
{
    /* relaxed: a packet that comes before its endpoint has claimed it is sent again */
    uint32_t claimed = atomic_load_explicit(&port->claimed, memory_order_relaxed);
    return udp_port - (claimed & UINT16_MAX) < claimed >> 16;
}

static inline struct ethdev_port *owner_of(struct ethdev_port *port, const struct rte_mbuf *buffer)
{
    uint32_t udp_port = port_of(buffer);
    if (likely(udp_port != 0 && is_claimed(port, udp_port))) {
        return port;
    }
    struct ethdev_port *first = port->first;
    for (uint32_t i = 1; i < first->queue_count && udp_port != 0; i++) {
        if (is_claimed(first->queues[i], udp_port)) {
            return first->queues[i];
        }
    }
    return first;
}

uint32_t ethdev_queues_sort(struct ethdev_port *port, struct rte_mbuf **buffers, uint32_t count)
{
    uint32_t kept = 0, handed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct ethdev_port *owner = owner_of(port, buffers[i]);
        if (likely(owner == port)) {
            buffers[kept++] = buffers[i];
        } else if (rte_ring_mp_enqueue(owner->handed, buffers[i]) == 0) {
            handed |= 1u << owner->queue;
        } else {
            rte_pktmbuf_free(buffers[i]);
            port->dropped++;
        }
    }
    for (; handed != 0; handed &= handed - 1) {
        ethdev_wake(&port->first->queues[__builtin_ctz(handed)]->port);
    }
    return kept;
}

uint32_t ethdev_queues_take(struct ethdev_port *port, struct rte_mbuf **buffers, uint32_t count_max)
{
    return rte_ring_sc_dequeue_burst(port->handed, (void **)buffers, count_max, NULL);
}

/* ---- their life ---- */

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

/* A port beside the first, which has the device. */
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
            ethdev_stash_free(port);
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
            ethdev_memory_forget(port);
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
