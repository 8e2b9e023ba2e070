/* The NIC lets a packet out at a given time: the shaper hands packets over ahead, and the core need not be there. */
#include "dataplane/port/ethdev_private.h"

#include <errno.h>

#include <rte_mbuf_dyn.h>

#include "dataplane/limits.h"

static bool departure_has(struct ethdev_port *port, const struct rte_eth_dev_info *info, char *why)
{
    (void)port;
    bool has = (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP) != 0;
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "%s",
             has ? "packets that a shaper holds back, up to 50 us ahead" : "the driver cannot send at a time");
    return has;
}

static void departure_configure(struct ethdev_port *port, const struct rte_eth_dev_info *info,
                                struct rte_eth_conf *conf)
{
    (void)port;
    (void)info;
    conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
}

static int departure_begin(struct ethdev_port *port, char *why)
{
    struct ethdev_offloads *offloads = &port->offloads;
    if (rte_mbuf_dyn_tx_timestamp_register(&offloads->departure_offset, &offloads->departure_flag) != 0) {
        snprintf(why, CW_OFFLOAD_WHY_BYTES, "DPDK has no room for the field in its buffers");
        return -ENOSPC;
    }
    if (!offload_clock_read(port)) {
        snprintf(why, CW_OFFLOAD_WHY_BYTES, "the driver's clock cannot be read, so no time can be given to it");
        return -ENOTSUP;
    }
    port->port.info.departure_ahead_ns = CW_DEPARTURE_AHEAD_NS;
    return 0;
}

static void departure_end(struct ethdev_port *port)
{
    port->port.info.departure_ahead_ns = 0;
}

static void departure_transmit(struct ethdev_port *port, const struct cw_transmit *packets, uint32_t count)
{
    struct ethdev_offloads *offloads = &port->offloads;
    (void)offload_clock_read(port);
    for (uint32_t i = 0; i < count; i++) {
        struct rte_mbuf *buffer = packets[i].handle;
        uint64_t device =
            packets[i].departure_ns == 0 ? 0 : offload_clock_device(&offloads->clock, packets[i].departure_ns);
        if (device != 0) {
            *offload_field(buffer, offloads->departure_offset) = device;
            buffer->ol_flags |= offloads->departure_flag;
        }
        offloads->done[CW_OFFLOAD_DEPARTURE] += device != 0;
        offloads->undone[CW_OFFLOAD_DEPARTURE] += device == 0 && packets[i].departure_ns != 0;
    }
}

const struct ethdev_offload ethdev_offload_departure = {
    .has = departure_has,
    .configure = departure_configure,
    .begin = departure_begin,
    .transmit = departure_transmit,
    .end = departure_end,
};
