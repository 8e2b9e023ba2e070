/* Device: a port by the text that people give, for commands that look at what a NIC takes over.
 *
 * Order of calls: offload_device_open; offload_device_reports; cw_port_* with device.port; offload_device_close */
#pragma once

#include "dataplane/fabric/port_sim.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/port/offload/offload.h"

struct offload_device {
    struct cw_port *port;
    struct cw_simulator *simulator; /* NULL: a real one */
    struct cw_port *mate;           /* of a simulated one: at the other end of its cable */
    bool is_socket;                 /* of the kernel */
};

#define OFFLOAD_DEVICE_HELP                                                                                   \
    "DEVICE[,ARGUMENTS] is the argument of DPDK's --vdev or -a (net_tap0,iface=x or 0000:03:00.0), "          \
    "udp:ADDRESS a socket\nof the kernel, memif:SOCKET,role=server an end of two processes, sim a simulated " \
    "NIC that has everything."

/* Opens what the text names, and asks its NIC for `offloads` (bits by enum cw_port_offload). CW_OK, or as
 * cw_port_ethdev_open and cw_port_udp_open with a line in `error`. */
int offload_device_open(struct offload_device *device, const char *text, uint32_t offloads, uint32_t mtu_bytes,
                        char *error, size_t error_bytes);
void offload_device_close(struct offload_device *device);

void offload_device_reports(const struct offload_device *device, struct cw_offload_report reports[CW_PORT_OFFLOADS]);
