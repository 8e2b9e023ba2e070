/* The NIC verifies UDP checksums. Upper layers trust its result once it has proved itself (dataplane/WIRE.md, "Who
 * verifies a payload"). */
#include "dataplane/port/ethdev_private.h"

static bool in_has(struct ethdev_port *port, const struct rte_eth_dev_info *info, char *why)
{
    (void)port;
    bool has = (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_UDP_CKSUM) != 0;
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "%s",
             has ? "believed while it calls trials wrong" : "the driver verifies no UDP checksums");
    return has;
}

static void in_configure(struct ethdev_port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
    (void)port;
    (void)info;
    conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
}

static int in_begin(struct ethdev_port *port, char *why)
{
    (void)why;
    port->port.info.checksum_in = true;
    return 0;
}

static void in_end(struct ethdev_port *port)
{
    port->port.info.checksum_in = false;
}

static void in_receive(struct ethdev_port *port, struct cw_received *packets, uint32_t count)
{
    uint64_t judged = 0;
    /* packets not marked as wrong count as right then, as far as trials of every length have shown that wrong ones are
     * marked */
    uint8_t untold = port->driver.good_untold ? CW_PORT_CHECKSUM_GOOD : CW_PORT_CHECKSUM_UNKNOWN;
    for (uint32_t i = 0; i < count; i++) {
        const struct rte_mbuf *buffer = packets[i].handle;
        uint64_t said = buffer->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
        packets[i].checksum = said == RTE_MBUF_F_RX_L4_CKSUM_GOOD  ? CW_PORT_CHECKSUM_GOOD
                              : said == RTE_MBUF_F_RX_L4_CKSUM_BAD ? CW_PORT_CHECKSUM_BAD
                                                                   : untold;
        judged += packets[i].checksum != CW_PORT_CHECKSUM_UNKNOWN;
    }
    port->offloads.done[CW_OFFLOAD_CHECKSUM_IN] += judged;
    port->offloads.undone[CW_OFFLOAD_CHECKSUM_IN] += count - judged;
}

const struct ethdev_offload ethdev_offload_checksum_in = {
    .has = in_has,
    .configure = in_configure,
    .begin = in_begin,
    .receive = in_receive,
    .end = in_end,
};
