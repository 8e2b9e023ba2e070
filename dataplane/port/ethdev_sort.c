/* Packets of a queue go to the port that has claimed their UDP port. */
#include "dataplane/port/ethdev_private.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

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

void ethdev_wake(struct cw_port *base)
{
    struct ethdev_port *port = ethdev_of(base);
    cw_wake_up(&port->wake);
    if (port->bell != NULL) {
        cw_doorbell_ring_own(port->bell);
    }
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

uint32_t ethdev_queues_pop(struct ethdev_port *port, struct rte_mbuf **buffers, uint32_t count_max)
{
    return rte_ring_sc_dequeue_burst(port->handed, (void **)buffers, count_max, NULL);
}
