/* The NIC writes the UDP checksum of packets that ask for it. It requires the sum of the pseudo-header in its place,
 * and the end of the headers. */
#include "dataplane/port/ethdev_private.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

static bool out_has(struct ethdev_port *port, const struct rte_eth_dev_info *info, char *why)
{
    (void)port;
    bool has = (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "%s",
             has ? "proved by 64 packets of each session that have a CRC, too" : "the driver writes no UDP checksums");
    return has;
}

static void out_configure(struct ethdev_port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
    (void)port;
    (void)info;
    conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
}

static int out_begin(struct ethdev_port *port, char *why)
{
    (void)why;
    port->port.info.checksum_out = true;
    return 0;
}

static void out_end(struct ethdev_port *port)
{
    port->port.info.checksum_out = false;
}

static void out_transmit(struct ethdev_port *port, const struct cw_transmit *packets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!packets[i].checksum) {
            continue;
        }
        struct rte_mbuf *buffer = packets[i].handle;
        const struct rte_ether_hdr *ether = rte_pktmbuf_mtod(buffer, const struct rte_ether_hdr *);
        const void *ip = ether + 1;
        bool is_v4 = ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4);
        uint32_t ip_bytes = is_v4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
        struct rte_udp_hdr *udp =
            rte_pktmbuf_mtod_offset(buffer, struct rte_udp_hdr *, sizeof(struct rte_ether_hdr) + ip_bytes);
        buffer->l2_len = sizeof(struct rte_ether_hdr);
        buffer->l3_len = ip_bytes & 0x1ff;
        buffer->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM | (is_v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6);
        udp->dgram_cksum =
            is_v4 ? rte_ipv4_phdr_cksum(ip, buffer->ol_flags) : rte_ipv6_phdr_cksum(ip, buffer->ol_flags);
        port->offloads.done[CW_OFFLOAD_CHECKSUM_OUT]++;
    }
}

const struct ethdev_offload ethdev_offload_checksum_out = {
    .has = out_has,
    .configure = out_configure,
    .begin = out_begin,
    .transmit = out_transmit,
    .end = out_end,
};
