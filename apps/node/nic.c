#include "apps/node/nic.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "control/job/wire.h"
#include "control/net/transport.h"
#include "control/settings/setting.h"
#include "dataplane/limits.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/status.h"

enum { TEXT_BYTES = 512 };

/* ---- an interface of the kernel ---- */

enum { RING_PACKETS = 2048 /* the arrivals while another process has the core for some milliseconds */ };

/* An interface of the kernel that others use, too: frames are written and taken past its sockets, with the host's own
 * addresses. */
static int kernel_open(const char *text, uint16_t port_first, uint16_t port_last, struct node_nic *nic, char *error,
                       size_t error_bytes)
{
    const char *what;
    enum cw_net_transport transport = cw_net_transport_read(text, &what);
    struct cw_net_offer offer;
    struct cw_port_ethdev_config config;
    char arguments[96];
    if (transport == CW_NET_TRANSPORT_UDP || transport == CW_NET_TRANSPORT_NODE) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "--transport %.60s: the node wants a NIC: an interface (eth0, af_packet:eth0), or a device: %s", text,
            CW_DEVICE_WORDS);
    }
    (void)cw_setting_set(CW_SETTING_TRANSPORT, text);
    int status = cw_net_offer_make(&offer, error, error_bytes);
    if (status == CW_OK && offer.count == 0) {
        status = cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                               "this host has no address; `ip address` lists its addresses");
    }
    if (status != CW_OK) {
        return status;
    }
    nic->address = offer.addresses[0];
    nic->is_kernels = true;
    cw_net_interface(&nic->address.ip, nic->name, sizeof(nic->name));
    status = cw_net_transport_check(nic->name, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    const struct cw_port_selection selection = {.ip = nic->address.ip,
                                                .udp_port = port_first,
                                                .udp_port_count = (uint16_t)(port_last - port_first + 1),
                                                .group_port = CW_UDP_PORT};
    cw_port_ethdev_config_init(&config);
    snprintf(arguments, sizeof(arguments), "iface=%s", nic->name);
    config.device = "net_af_packet0";
    config.device_arguments = arguments;
    config.mtu_bytes = nic->address.mtu_bytes;
    config.descriptor_count = RING_PACKETS;
    config.selection = selection;
    config.gather = CW_PORT_GATHER_OFF;
    status = cw_port_ethdev_open(&config, &nic->port, error, error_bytes);
    if (status == CW_OK) {
        nic->ports[0] = nic->port;
        nic->port_count = 1;
        memcpy(nic->mac, nic->port->info.mac, sizeof(nic->mac));
    }
    return status;
}

/* ---- a device ---- */

static int device_open(const char *text, uint32_t cores, struct node_nic *nic, char *error, size_t error_bytes)
{
    struct cw_device device;
    struct cw_wire wire = {.port = NULL, .further_count = cores - 1};
    int status = cw_device_read(text, 0, 0, &device, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    nic->address = cw_device_address(&device);
    snprintf(nic->name, sizeof(nic->name), "%s", device.name);
    const struct cw_wire_request request = {.own = &nic->address,
                                            .transport = CW_NET_TRANSPORT_DEVICE,
                                            .interface = nic->name,
                                            .device = &device,
                                            .device_ranks = 1};
    status = cw_wire_nic_open(&request, &wire, error, error_bytes);
    nic->port = nic->ports[0] = wire.port;
    nic->port_count = wire.port != NULL ? 1 : 0;
    for (uint32_t i = 0; i < wire.further_count && wire.port != NULL; i++) {
        nic->ports[nic->port_count++] = wire.further[i].port;
    }
    if (status != CW_OK) {
        return status;
    }
    nic->address.ip = wire.address.ip;
    memcpy(nic->mac, wire.port->info.mac, sizeof(nic->mac));
    nic->neighbours = cw_wire_nic_neighbours(&request, &wire);
    if (nic->neighbours == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the address of %s", nic->name);
    }
    return cw_wire_nic_listen(&request, &wire, error, error_bytes);
}

int node_nic_open(const char *text, uint16_t port_first, uint16_t port_last, uint32_t cores, struct node_nic *nic)
{
    char error[TEXT_BYTES];
    *nic = (struct node_nic){.port = NULL};
    int status = cw_device_is_named(text) ? device_open(text, cores, nic, error, sizeof(error))
                                          : kernel_open(text, port_first, port_last, nic, error, sizeof(error));
    if (status == CW_OK) {
        if (nic->port_count < cores) {
            fprintf(stderr, "causeway node: %s has %u queue pair%s: as many cores are used, and not %u\n", nic->name,
                    nic->port_count, nic->port_count > 1 ? "s" : "", cores);
        }
        return APP_EXIT_SUCCESS;
    }
    node_nic_close(nic);
    return app_error_status(status, error, NULL);
}

void node_nic_close(struct node_nic *nic)
{
    for (uint32_t i = 0; i < nic->port_count; i++) {
        cw_port_close(nic->ports[i]);
    }
    cw_neighbour_destroy(nic->neighbours);
    *nic = (struct node_nic){.port = NULL};
}
