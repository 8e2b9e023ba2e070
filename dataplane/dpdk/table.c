/* The inside of libcauseway_dpdk.so: its table (dpdk.h). */
#include "dataplane/dpdk/dpdk.h"

#include <rte_version.h>

extern const struct cw_dpdk cw_dpdk_table;
const struct cw_dpdk cw_dpdk_table = {
    .module = {.build = CW_DPDK_BUILD},
    .version = rte_version,
    .ethdev_open = cw_port_ethdev_open,
    .ethdev_queue = cw_port_ethdev_queue,
    .ethdev_arguments = cw_port_ethdev_arguments,
    .ethdev_promiscuous = cw_port_ethdev_promiscuous,
    .ethdev_multicast = cw_port_ethdev_multicast,
    .ethdev_dropped = cw_port_ethdev_dropped,
    .ethdev_id = cw_port_ethdev_id,
    .ethdev_offloads = cw_port_ethdev_offloads,
    .ethdev_offload_switch = cw_port_ethdev_offload_switch,
};
