/* nic: the NIC that `causeway node` serves: an interface of the kernel, whose addresses stay the kernel's, too, or a
 * device of its own (control/net/device.h). Order of calls: node_nic_open, node_nic_close. Thread: one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/node/handoff.h"
#include "control/net/device.h"
#include "control/net/net.h"
#include "dataplane/neighbour/neighbour.h"
#include "dataplane/port/port.h"

struct node_nic {
    struct cw_port *port;
    struct cw_port *ports[NODE_CORES_MAX]; /* one for each core: its queue pairs; the first is `port` */
    uint32_t port_count;
    struct cw_net_address address;
    uint8_t mac[6];
    bool is_kernels;                       /* its address is */
    char name[64];                         /* "eth0", "0000:03:00.0" */
    struct cw_neighbour_cache *neighbours; /* of a device's address */
};

/* `text`: as --transport of `causeway run` has it: "eth0", "af_packet:eth0", "10.1.0.0/16",
 * "0000:03:00.0,ip=10.9.0.1/24". Of a kernel's interface, packets to these UDP ports come in. `cores`: queue pairs that
 * are wanted; a kernel's interface has one, a device may have fewer, which a line says. APP_EXIT_SUCCESS, or an exit
 * code after reporting the error. */
int node_nic_open(const char *text, uint16_t port_first, uint16_t port_last, uint32_t cores, struct node_nic *nic);
void node_nic_close(struct node_nic *nic);
