/* Code that uses DPDK is a library of its own, libcauseway_dpdk.so, which is loaded when the first port is opened.
 *
 * A process without a port needs none of DPDK's libraries: nodes without them run jobs on shared memory, and processes
 * start faster. The functions of ethdev.h are defined twice under the same names. Inside the library they do the work
 * (ethdev.c); everywhere else dpdk.c loads it and calls them by the table below. Bursts go by struct cw_port_ops, as to
 * any port. */
#pragma once

#include "dataplane/base/module.h"
#include "dataplane/port/ethdev.h"

struct cw_dpdk {
    struct cw_module module; /* of CW_DPDK_BUILD */
    const char *(*version)(void);
    int (*ethdev_open)(const struct cw_port_ethdev_config *config, struct cw_port **port, char *error,
                       size_t error_bytes);
    struct cw_port *(*ethdev_queue)(struct cw_port *first, uint32_t index);
    int (*ethdev_arguments)(const struct cw_port_ethdev_config *config, char *arguments, size_t arguments_bytes);
    int (*ethdev_promiscuous)(struct cw_port *port);
    const char *(*ethdev_multicast)(const struct cw_port *port);
    uint64_t (*ethdev_dropped)(const struct cw_port *port);
    uint16_t (*ethdev_id)(const struct cw_port *port);
    void (*ethdev_offloads)(const struct cw_port *port, struct cw_offload_report reports[CW_PORT_OFFLOADS]);
    int (*ethdev_offload_switch)(struct cw_port *port, enum cw_port_offload offload, bool on);
};

#define CW_DPDK_LIBRARY "libcauseway_dpdk.so"
#define CW_DPDK_TABLE   "cw_dpdk_table"
#define CW_DPDK_BUILD   "causeway " CW_VERSION " dpdk 5" /* another number for another table */

/* The library's table, loaded if it is not yet; NULL, with one line in `error`: it cannot be. Any thread. */
const struct cw_dpdk *cw_dpdk_load(char *error, size_t error_bytes);

/* DPDK's own name and version; NULL: the library cannot be loaded. Any thread. */
const char *cw_dpdk_version(void);
