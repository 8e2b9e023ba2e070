/* The NIC says when a packet has arrived. The endpoint believes it between the last time it found the port empty and
 * now, so that a clock that jumps cannot spoil a round trip by more than that. */
#include "dataplane/port/ethdev_private.h"

#include <errno.h>

#include <rte_mbuf_dyn.h>

static bool arrival_has(struct ethdev_port *port, const struct rte_eth_dev_info *info, char *why)
{
    (void)port;
    bool has = (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0;
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "%s", has ? "by the NIC's clock" : "the driver has no receive timestamps");
    return has;
}

static void arrival_configure(struct ethdev_port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
    (void)port;
    (void)info;
    conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_TIMESTAMP;
}

static int arrival_begin(struct ethdev_port *port, char *why)
{
    struct ethdev_offloads *offloads = &port->offloads;
    if (rte_mbuf_dyn_rx_timestamp_register(&offloads->arrival_offset, &offloads->arrival_flag) != 0) {
        snprintf(why, CW_OFFLOAD_WHY_BYTES, "DPDK has no room for the field in its buffers");
        return -ENOSPC;
    }
    if (!offload_clock_read(port)) {
        snprintf(why, CW_OFFLOAD_WHY_BYTES, "the driver's clock cannot be read, so its times mean nothing here");
        return -ENOTSUP;
    }
    port->port.info.arrivals = true;
    return 0;
}

static void arrival_end(struct ethdev_port *port)
{
    port->port.info.arrivals = false;
}

static void arrival_receive(struct ethdev_port *port, struct cw_received *packets, uint32_t count)
{
    struct ethdev_offloads *offloads = &port->offloads;
    (void)offload_clock_read(port);
    for (uint32_t i = 0; i < count; i++) {
        struct rte_mbuf *buffer = packets[i].handle;
        bool is_told = (buffer->ol_flags & offloads->arrival_flag) != 0;
        uint64_t device = is_told ? *offload_field(buffer, offloads->arrival_offset) : 0;
        packets[i].arrival_ns = is_told ? offload_clock_host_ns(&offloads->clock, device) : 0;
        offloads->done[CW_OFFLOAD_ARRIVAL] += is_told;
        offloads->undone[CW_OFFLOAD_ARRIVAL] += !is_told;
    }
}

const struct ethdev_offload ethdev_offload_arrival = {
    .has = arrival_has,
    .configure = arrival_configure,
    .begin = arrival_begin,
    .receive = arrival_receive,
    .end = arrival_end,
};
