/* Headers and payloads arrive in buffers of their own. The endpoint reads packets in one piece, so that a port that
 * splits them must join them: it is for experiments, and off unless requested. */
#include "dataplane/port/ethdev_private.h"

static bool split_has(struct ethdev_port *port, const struct rte_eth_dev_info *info, char *why)
{
    (void)port;
    bool has = (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT) != 0 && info->rx_seg_capa.multi_pools != 0 &&
               info->rx_seg_capa.max_nseg >= 2;
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "%s",
             has ? "each packet is joined again: a copy" : "the driver splits no buffers");
    return has;
}

static void split_configure(struct ethdev_port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
    (void)info;
    char name[RTE_MEMPOOL_NAMESIZE];
    snprintf(name, sizeof(name), "cw_heads_%u", port->id);
    if (port->offloads.heads == NULL) {
        port->offloads.heads = rte_pktmbuf_pool_create(
            name, port->pool->size, 0, 0, RTE_PKTMBUF_HEADROOM + OFFLOAD_SPLIT_BYTES, rte_eth_dev_socket_id(port->id));
    }
    if (port->offloads.heads != NULL) {
        conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER;
    }
}

static void split_queues(struct ethdev_port *port, struct rte_eth_rxconf *receive)
{
    static const uint16_t lengths[2] = {OFFLOAD_SPLIT_BYTES, 0};
    struct rte_mempool *pools[2] = {port->offloads.heads, port->pool};
    for (uint32_t i = 0; i < 2; i++) {
        port->offloads.segments[i] =
            (union rte_eth_rxseg){.split = {.mp = pools[i], .length = lengths[i], .offset = 0}};
    }
    receive->rx_seg = port->offloads.segments;
    receive->rx_nseg = 2;
}

static int split_begin(struct ethdev_port *port, char *why)
{
    if (port->offloads.heads == NULL) {
        snprintf(why, CW_OFFLOAD_WHY_BYTES, "no memory for buffers of headers");
        return -1;
    }
    return 0;
}

const struct ethdev_offload ethdev_offload_split = {
    .has = split_has,
    .configure = split_configure,
    .queues = split_queues,
    .begin = split_begin,
};
