/* The hot path of the ethdev port: a burst costs one call into the driver and one into the pool. */
#include "dataplane/port/ethdev_private.h"

#include <rte_lcore.h>
#include <rte_prefetch.h>

/* A packet in several pieces, as some drivers deliver jumbo frames: copied into one buffer. NULL: dropped. */
static __rte_noinline struct rte_mbuf *packet_linearise(struct ethdev_port *port, struct rte_mbuf *chain)
{
    struct rte_mbuf *whole = rte_pktmbuf_copy(chain, port->pool, 0, UINT32_MAX);
    rte_pktmbuf_free(chain);
    if (whole != NULL && whole->nb_segs != 1) {
        rte_pktmbuf_free(whole);
        whole = NULL;
    }
    port->dropped += whole == NULL;
    return whole;
}

static inline uint32_t packets_describe(struct ethdev_port *port, struct rte_mbuf **buffers, uint32_t count,
                                        struct cw_received *packets)
{
    uint32_t filled = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct rte_mbuf *buffer = buffers[i];
        if (unlikely(buffer->nb_segs != 1)) {
            buffer = packet_linearise(port, buffer);
            if (buffer == NULL) {
                continue;
            }
        }
        packets[filled].data = rte_pktmbuf_mtod(buffer, const uint8_t *);
        packets[filled].length = buffer->data_len;
        packets[filled].checksum = CW_PORT_CHECKSUM_UNKNOWN;
        packets[filled].handle = buffer;
        rte_prefetch0(packets[filled].data);
        filled++;
    }
    if (unlikely(port->offloads.receivers != 0)) {
        ethdev_offloads_receive(port, packets, filled);
    }
    return filled;
}

static __rte_noinline uint32_t stash_receive(struct ethdev_port *port, struct cw_received *packets, uint32_t count_max)
{
    uint32_t count = RTE_MIN(port->stash_count, count_max);
    uint32_t filled = packets_describe(port, port->stash + port->stash_first, count, packets);
    port->stash_first += count;
    port->stash_count -= count;
    port->nap_ns = ETHDEV_NAP_MIN_NS;
    return filled;
}

uint32_t ethdev_receive(struct cw_port *base, struct cw_received *packets, uint32_t count_max)
{
    struct ethdev_port *port = ethdev_of(base);
    struct rte_mbuf *buffers[CW_PORT_BURST_MAX];
    if (unlikely(rte_lcore_id() == LCORE_ID_ANY)) {
        cw_eal_thread_register();
    }
    count_max = RTE_MIN(count_max, (uint32_t)CW_PORT_BURST_MAX);
    if (unlikely(port->stash_count != 0)) {
        return stash_receive(port, packets, count_max);
    }
    if (!ethdev_gate_enter(port)) {
        ethdev_gate_barred(port);
        return 0;
    }
    /* packets that others have handed over come first: the own queue may have a burst each time */
    uint32_t handed = unlikely(port->queue_count > 1) ? ethdev_queues_pop(port, buffers, (count_max + 1) / 2) : 0;
    uint32_t count = rte_eth_rx_burst(port->id, port->queue, buffers + handed, (uint16_t)(count_max - handed));
    ethdev_gate_leave(port);
    if (unlikely(port->queue_count > 1)) {
        count = handed + ethdev_queues_sort(port, buffers + handed, count);
    }
    if (count == 0) {
        return 0;
    }
    port->nap_ns = ETHDEV_NAP_MIN_NS;
    port->refusals = 0;
    return packets_describe(port, buffers, count, packets);
}

enum ethdev_peek ethdev_peek(struct ethdev_port *port)
{
    if (port->stash_count == 0) {
        if (!ethdev_gate_enter(port)) {
            return ethdev_gate_barred(port) ? ETHDEV_PEEK_BARRED : ETHDEV_PEEK_NOTHING;
        }
        port->stash_first = 0;
        port->stash_count = rte_eth_rx_burst(port->id, port->queue, port->stash, CW_PORT_BURST_MAX);
        ethdev_gate_leave(port);
        if (port->queue_count > 1) {
            port->stash_count = ethdev_queues_sort(port, port->stash, port->stash_count);
            port->stash_count +=
                ethdev_queues_pop(port, port->stash + port->stash_count, CW_PORT_BURST_MAX - port->stash_count);
        }
    }
    return port->stash_count != 0 ? ETHDEV_PEEK_PACKETS : ETHDEV_PEEK_NOTHING;
}

/* True for a buffer that goes back to our pool as it is. All it looks at lies in the buffer's first cache line; a
 * single segment has no next one. */
static inline bool buffer_plain(const struct ethdev_port *port, const struct rte_mbuf *buffer)
{
    return buffer->pool == port->pool && rte_mbuf_refcnt_read(buffer) == 1 && buffer->nb_segs == 1 &&
           RTE_MBUF_DIRECT(buffer);
}

void ethdev_release(struct cw_port *base, struct cw_received *packets, uint32_t count)
{
    struct ethdev_port *port = ethdev_of(base);
    while (count > 0) {
        void *buffers[CW_PORT_BURST_MAX];
        uint32_t burst = RTE_MIN(count, (uint32_t)CW_PORT_BURST_MAX);
        uint32_t plain = 0;
        for (uint32_t i = 0; i < burst; i++) {
            struct rte_mbuf *buffer = packets[i].handle;
            if (likely(buffer_plain(port, buffer))) {
                buffers[plain++] = buffer;
            } else {
                rte_pktmbuf_free(buffer);
            }
        }
        rte_mempool_put_bulk(port->pool, buffers, plain);
        packets += burst;
        count -= burst;
    }
}

uint32_t ethdev_reserve(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct ethdev_port *port = ethdev_of(base);
    struct rte_mbuf *buffers[CW_PORT_BURST_MAX];
    count = RTE_MIN(count, (uint32_t)CW_PORT_BURST_MAX);
    /* The pool gives all or nothing. */
    while (count > 0 && unlikely(rte_pktmbuf_alloc_bulk(port->pool, buffers, count) != 0)) {
        count /= 2;
    }
    for (uint32_t i = 0; i < count; i++) {
        packets[i].data = rte_pktmbuf_mtod(buffers[i], uint8_t *);
        packets[i].length = 0;
        packets[i].piece_count = 0;
        packets[i].handle = buffers[i];
        packets[i].departure_ns = 0;
        packets[i].alone = false;
        packets[i].checksum = false;
    }
    return count;
}

/* Chains the pieces of one packet behind its header, each in the next of `heads`. */
static void pieces_chain(const struct cw_transmit *packet, struct rte_mbuf **heads)
{
    struct rte_mbuf *first = packet->handle;
    struct rte_mbuf *last = first;
    for (uint32_t i = 0; i < packet->piece_count; i++) {
        const struct cw_piece *piece = &packet->pieces[i];
        struct rte_mbuf *head = heads[i];
        /* Devices that read memory themselves use virtual addresses, too: gather is off otherwise. */
        rte_pktmbuf_attach_extbuf(head, (void *)(uintptr_t)piece->data, (rte_iova_t)(uintptr_t)piece->data,
                                  (uint16_t)piece->length, &piece->memory->shared);
        rte_mbuf_ext_refcnt_update(&piece->memory->shared, 1);
        head->data_len = (uint16_t)piece->length;
        last->next = head;
        last = head;
        first->pkt_len += piece->length;
    }
    first->nb_segs = (uint16_t)(1 + packet->piece_count);
}

/* Chains the pieces of a burst; returns how many packets are ready: fewer than `count` when the pool of heads is
 * low. */
static __rte_noinline uint32_t pieces_attach(struct ethdev_port *port, const struct cw_transmit *packets,
                                             uint32_t count)
{
    struct rte_mbuf *heads[CW_PORT_BURST_MAX * CW_PORT_PIECES_MAX];
    uint32_t total = 0;
    assert(port->piece_pool != NULL && "pieces without info.gather");
    for (uint32_t i = 0; i < count; i++) {
        assert(packets[i].piece_count <= CW_PORT_PIECES_MAX);
        total += packets[i].piece_count;
    }
    while (unlikely(rte_pktmbuf_alloc_bulk(port->piece_pool, heads, total) != 0)) {
        count--;
        total -= packets[count].piece_count;
    }
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (packets[i].piece_count != 0) {
            pieces_chain(&packets[i], heads + used);
            used += packets[i].piece_count;
        }
    }
    return count;
}

/* Takes the pieces off packets that the driver did not take: their caller may change or cancel them. */
static __rte_noinline void pieces_detach(struct cw_transmit *packets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct rte_mbuf *first = packets[i].handle;
        if (first->nb_segs > 1) {
            rte_pktmbuf_free(first->next);
            first->next = NULL;
            first->nb_segs = 1;
        }
    }
}

uint32_t ethdev_transmit(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct ethdev_port *port = ethdev_of(base);
    struct rte_mbuf *buffers[CW_PORT_BURST_MAX];
    uint32_t pieces = 0;
    count = RTE_MIN(count, (uint32_t)CW_PORT_BURST_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct rte_mbuf *buffer = packets[i].handle;
        buffers[i] = buffer;
        buffer->data_len = (uint16_t)packets[i].length;
        buffer->pkt_len = packets[i].length;
        pieces |= packets[i].piece_count;
    }
    if (unlikely(port->offloads.transmitters != 0)) {
        ethdev_offloads_transmit(port, packets, count);
    }
    uint32_t ready = pieces == 0 ? count : pieces_attach(port, packets, count);
    uint32_t sent = 0;
    if (ethdev_gate_enter(port)) {
        sent = rte_eth_tx_burst(port->id, port->queue, buffers, (uint16_t)ready);
        ethdev_gate_leave(port);
    } else {
        ethdev_gate_barred(port);
    }
    if (unlikely(port->ring.slots != NULL)) {
        ethdev_ring_turn(port, sent);
    }
    if (unlikely(sent < ready && pieces != 0)) {
        pieces_detach(packets + sent, ready - sent);
    }
    if (port->bell != NULL && sent > 0) {
        cw_doorbell_ring(port->bell, port->bell_peer);
    }
    return sent;
}

void ethdev_cancel(struct cw_port *base, struct cw_transmit *packets, uint32_t count)
{
    struct ethdev_port *port = ethdev_of(base);
    while (count > 0) {
        void *buffers[CW_PORT_BURST_MAX];
        uint32_t burst = RTE_MIN(count, (uint32_t)CW_PORT_BURST_MAX);
        for (uint32_t i = 0; i < burst; i++) {
            buffers[i] = packets[i].handle;
        }
        rte_mempool_put_bulk(port->pool, buffers, burst);
        packets += burst;
        count -= burst;
    }
}
