/* The NIC hashes each packet, as it does to deal flows among queues (ethdev_queues.c). The hash is compared with
 * software's (toeplitz.h). */
#include "dataplane/port/ethdev_private.h"

#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

static bool rss_has(struct ethdev_port *port, const struct rte_eth_dev_info *info, char *why)
{
    (void)port;
    bool hashes = (info->flow_type_rss_offloads & RTE_ETH_RSS_NONFRAG_IPV4_UDP) != 0;
    bool tells = (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_RSS_HASH) != 0;
    bool has = hashes && tells && info->hash_key_size >= CW_TOEPLITZ_KEY_BYTES;
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "%s",
             !hashes  ? "the driver does not hash UDP"
             : !tells ? "the driver hashes UDP, and does not report the hash"
             : !has   ? "its key is shorter than Toeplitz needs"
                      : "the hash of each packet is held against software's");
    return has;
}

static void rss_configure(struct ethdev_port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
    (void)port;
    conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_RSS_HASH;
    conf->rx_adv_conf.rss_conf.rss_hf =
        info->flow_type_rss_offloads & (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP);
}

static int rss_begin(struct ethdev_port *port, char *why)
{
    uint8_t key[UINT8_MAX] = {0};
    struct rte_eth_rss_conf conf = {.rss_key = key, .rss_key_len = sizeof(key)};
    int result = rte_eth_dev_rss_hash_conf_get(port->id, &conf);
    if (result != 0) {
        snprintf(why, CW_OFFLOAD_WHY_BYTES, "the driver does not report its key: %s", strerror(-result));
        return result;
    }
    memcpy(port->offloads.key, key, sizeof(port->offloads.key));
    return 0;
}

/* True if it is UDP over IPv4 or IPv6, and then what is hashed. */
static bool flow_read(const struct cw_received *packet, struct cw_toeplitz_flow *flow)
{
    const struct rte_ether_hdr *ether = (const struct rte_ether_hdr *)packet->data;
    const struct rte_ipv4_hdr *v4 = (const struct rte_ipv4_hdr *)(ether + 1);
    const struct rte_ipv6_hdr *v6 = (const struct rte_ipv6_hdr *)(ether + 1);
    const struct rte_udp_hdr *udp = NULL;
    if (packet->length >= 42 && ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && v4->version_ihl == 0x45 &&
        v4->next_proto_id == IPPROTO_UDP) {
        flow->source = cw_ip_v4(rte_be_to_cpu_32(v4->src_addr));
        flow->destination = cw_ip_v4(rte_be_to_cpu_32(v4->dst_addr));
        udp = (const struct rte_udp_hdr *)(v4 + 1);
    } else if (packet->length >= 62 && ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && v6->proto == IPPROTO_UDP) {
        memcpy(flow->source.bytes, v6->src_addr, 16);
        memcpy(flow->destination.bytes, v6->dst_addr, 16);
        udp = (const struct rte_udp_hdr *)(v6 + 1);
    }
    if (udp != NULL) {
        flow->source_port = rte_be_to_cpu_16(udp->src_port);
        flow->destination_port = rte_be_to_cpu_16(udp->dst_port);
    }
    return udp != NULL;
}

static void rss_receive(struct ethdev_port *port, struct cw_received *packets, uint32_t count)
{
    struct ethdev_offloads *offloads = &port->offloads;
    for (uint32_t i = 0; i < count; i++) {
        const struct rte_mbuf *buffer = packets[i].handle;
        struct cw_toeplitz_flow flow;
        if (!flow_read(&packets[i], &flow)) {
            continue;
        }
        bool is_told = (buffer->ol_flags & RTE_MBUF_F_RX_RSS_HASH) != 0;
        bool fits = is_told && buffer->hash.rss == cw_toeplitz_flow(offloads->key, &flow, true);
        offloads->done[CW_OFFLOAD_RSS] += fits;
        offloads->undone[CW_OFFLOAD_RSS] += !fits;
    }
}

const struct ethdev_offload ethdev_offload_rss = {
    .has = rss_has,
    .configure = rss_configure,
    .begin = rss_begin,
    .receive = rss_receive,
};
