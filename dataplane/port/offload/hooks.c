/* The offloads of a port, one after the other. */
#include "dataplane/port/ethdev_private.h"

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

static const struct ethdev_offload *const table[CW_PORT_OFFLOADS] = {
    [CW_OFFLOAD_CHECKSUM_OUT] = &ethdev_offload_checksum_out,
    [CW_OFFLOAD_CHECKSUM_IN] = &ethdev_offload_checksum_in,
    [CW_OFFLOAD_STEER] = &ethdev_offload_steer,
    [CW_OFFLOAD_RSS] = &ethdev_offload_rss,
    [CW_OFFLOAD_ARRIVAL] = &ethdev_offload_arrival,
    [CW_OFFLOAD_DEPARTURE] = &ethdev_offload_departure,
    [CW_OFFLOAD_MULTICAST] = &ethdev_offload_multicast,
    [CW_OFFLOAD_SPLIT] = &ethdev_offload_split,
};

enum { LOOKS_A_SECOND = 1000 /* at the link, while packets come */ };

static void use(struct ethdev_offloads *offloads, uint32_t offload, bool is_used)
{
    uint32_t bit = 1u << offload;
    offloads->used = is_used ? offloads->used | bit : offloads->used & ~bit;
    offloads->receivers = offloads->transmitters = 0;
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        bool is_on = (offloads->used >> i & 1) != 0;
        offloads->receivers |= is_on && table[i]->receive != NULL ? 1u << i : 0;
        offloads->transmitters |= is_on && table[i]->transmit != NULL ? 1u << i : 0;
    }
}

void ethdev_offloads_find(struct ethdev_port *port, const struct rte_eth_dev_info *info, uint32_t wanted)
{
    struct ethdev_offloads *offloads = &port->offloads;
    offloads->wanted = wanted;
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        bool has = table[i]->has(port, info, offloads->why[i]);
        if (has && i == CW_OFFLOAD_SPLIT && port->queue_count > 1) {
            snprintf(offloads->why[i], CW_OFFLOAD_WHY_BYTES, "of a port with one queue pair only");
            has = false;
        }
        offloads->has |= has ? 1u << i : 0;
        use(offloads, i, has && (wanted >> i & 1) != 0);
    }
}

void ethdev_offloads_configure(struct ethdev_port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        if (offload_used(&port->offloads, i) && table[i]->configure != NULL) {
            table[i]->configure(port, info, conf);
        }
    }
    port->offloads.link_interrupts =
        offload_used(&port->offloads, CW_OFFLOAD_CHECKSUM_IN) && (*info->dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
    conf->intr_conf.lsc = port->offloads.link_interrupts;
}

void ethdev_offloads_queues(struct ethdev_port *port, struct rte_eth_rxconf *receive)
{
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        if (offload_used(&port->offloads, i) && table[i]->queues != NULL) {
            table[i]->queues(port, receive);
        }
    }
}

void ethdev_offloads_share(struct ethdev_port *port, const struct ethdev_port *first)
{
    port->offloads = first->offloads;
    port->offloads.claim = (struct cw_port_claim){.udp_port_count = 0};
    port->offloads.rule_count = 0;
    port->offloads.heads = NULL;
    port->offloads.link_interrupts = false; /* the first gets notifications of changes; the others poll */
    port->offloads.link_was_up = ethdev_link_is_up(port);
}

void ethdev_offloads_forgo(struct ethdev_port *port)
{
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        if (offload_used(&port->offloads, i) && table[i]->configure != NULL) {
            snprintf(port->offloads.why[i], CW_OFFLOAD_WHY_BYTES, "the driver says so, and does not start with it");
            use(&port->offloads, i, false);
        }
    }
}

/* ---- the link ---- */

static int link_changed(uint16_t id, enum rte_eth_event_type event, void *context, void *result)
{
    struct ethdev_port *port = context;
    (void)id;
    (void)event;
    (void)result;
    atomic_fetch_add_explicit(&port->offloads.link_reported, 1, memory_order_relaxed); /* a count, read by the owner */
    return 0;
}

/* Counts changes of the link: those reported by the driver, and those found by polling. */
static void link_look(struct ethdev_port *port)
{
    struct ethdev_offloads *offloads = &port->offloads;
    uint64_t now = rte_rdtsc();
    if (offloads->link_interrupts) {
        port->port.info.link_changes = atomic_load_explicit(&offloads->link_reported, memory_order_relaxed);
    } else if (now >= offloads->link_look) {
        bool is_up = ethdev_link_is_up(port);
        port->port.info.link_changes += is_up != offloads->link_was_up;
        offloads->link_was_up = is_up;
        offloads->link_look = now + rte_get_tsc_hz() / LOOKS_A_SECOND;
    }
}

/* ---- life ---- */

static void begin_one(struct ethdev_port *port, uint32_t offload)
{
    struct ethdev_offloads *offloads = &port->offloads;
    if (offload_used(offloads, offload) && table[offload]->begin != NULL &&
        table[offload]->begin(port, offloads->why[offload]) != 0) {
        offloads->has &= ~(1u << offload);
        use(offloads, offload, false);
    }
}

void ethdev_offloads_begin(struct ethdev_port *port)
{
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        begin_one(port, i);
    }
    if (port->offloads.link_interrupts) {
        (void)rte_eth_dev_callback_register(port->id, RTE_ETH_EVENT_INTR_LSC, link_changed, port);
    }
}

static void end_one(struct ethdev_port *port, uint32_t offload)
{
    if (offload_used(&port->offloads, offload)) {
        use(&port->offloads, offload, false);
        if (table[offload]->end != NULL) {
            table[offload]->end(port);
        }
    }
}

void ethdev_offloads_end(struct ethdev_port *port)
{
    if (port->offloads.link_interrupts) {
        (void)rte_eth_dev_callback_unregister(port->id, RTE_ETH_EVENT_INTR_LSC, link_changed, port);
    }
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        end_one(port, i);
    }
}

/* ---- bursts ---- */

void ethdev_offloads_receive(struct ethdev_port *port, struct cw_received *packets, uint32_t count)
{
    link_look(port);
    for (uint32_t left = port->offloads.receivers; left != 0; left &= left - 1) {
        table[__builtin_ctz(left)]->receive(port, packets, count);
    }
}

void ethdev_offloads_transmit(struct ethdev_port *port, const struct cw_transmit *packets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ((struct rte_mbuf *)packets[i].handle)->ol_flags = 0; /* as from the pool, except for packets offered again */
    }
    for (uint32_t left = port->offloads.transmitters; left != 0; left &= left - 1) {
        table[__builtin_ctz(left)]->transmit(port, packets, count);
    }
}

/* ---- calls ---- */

void ethdev_doubt(struct cw_port *base, enum cw_port_offload offload)
{
    struct ethdev_port *port = ethdev_of(base);
    if (offload_used(&port->offloads, offload)) {
        snprintf(port->offloads.why[offload], CW_OFFLOAD_WHY_BYTES, "put away: it did not do what it says");
        end_one(port, offload);
    }
}

/* Rules are derived from a claim, so they are made again with it. */
void ethdev_claim(struct cw_port *base, const struct cw_port_claim *claim)
{
    struct ethdev_port *port = ethdev_of(base);
    uint32_t claimed = (uint32_t)claim->udp_port_count << 16 | claim->udp_port;
    atomic_store_explicit(&port->claimed, claimed, memory_order_relaxed); /* see ethdev_queues.c */
    port->offloads.claim = *claim;
    if (offload_used(&port->offloads, CW_OFFLOAD_STEER)) {
        table[CW_OFFLOAD_STEER]->end(port);
        begin_one(port, CW_OFFLOAD_STEER);
    }
}

void cw_port_ethdev_offloads(const struct cw_port *base, struct cw_offload_report reports[CW_PORT_OFFLOADS])
{
    const struct ethdev_offloads *offloads = &((const struct ethdev_port *)base)->offloads;
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        bool has = (offloads->has >> i & 1) != 0, is_wanted = (offloads->wanted >> i & 1) != 0;
        reports[i] = (struct cw_offload_report){.offload = i,
                                                .has = has,
                                                .used = offload_used(offloads, i),
                                                .done = offloads->done[i],
                                                .undone = offloads->undone[i]};
        bool is_unasked = has && !is_wanted;
        snprintf(reports[i].why, sizeof(reports[i].why), "%s", is_unasked ? "not asked for" : offloads->why[i]);
    }
}

int cw_port_ethdev_offload_switch(struct cw_port *base, enum cw_port_offload offload, bool on)
{
    struct ethdev_port *port = ethdev_of(base);
    struct ethdev_offloads *offloads = &port->offloads;
    if ((offloads->has & offloads->wanted & 1u << offload) == 0) {
        return CW_ERROR_UNSUPPORTED;
    }
    if (on && !offload_used(offloads, offload)) {
        use(offloads, offload, true);
        begin_one(port, offload);
    } else if (!on) {
        end_one(port, offload);
    }
    return offload_used(offloads, offload) == on ? CW_OK : CW_ERROR_SYSTEM;
}
