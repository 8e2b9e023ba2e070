/* The port between hosts by an interface of the kernel that others use, too: frames are written and taken past its
 * sockets, with the host's own addresses. The UDP ports are reserved (control/net/reservation.h). */
#include <stdio.h>

#include "control/job/wire_private.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/ethdev.h"

static int reserve(void *context, uint16_t udp_port, uint32_t count, char *error, size_t error_bytes)
{
    struct cw_wire *wire = context;
    return cw_reservation_open(&wire->address.ip, udp_port, count, &wire->reservation, error, error_bytes);
}

#if defined(CW_HAVE_DPDK)

enum { RING_PACKETS = 2048 /* as much as arrives while a core is somebody else's for some milliseconds */ };

void cw_wire_kernel_config(enum cw_net_transport transport, const char *interface, uint32_t mtu_bytes,
                           const struct cw_port_selection *selection, struct cw_wire_kernel *words,
                           struct cw_port_ethdev_config *config)
{
    cw_port_ethdev_config_init(config);
    snprintf(words->device, sizeof(words->device), "net_%s0", cw_net_transport_name(transport));
    snprintf(words->arguments, sizeof(words->arguments), "iface=%s", interface);
    config->device = words->device;
    config->device_arguments = words->arguments;
    config->mtu_bytes = mtu_bytes;
    config->descriptor_count = transport == CW_NET_TRANSPORT_AF_PACKET ? RING_PACKETS : 0;
    config->selection = *selection;
}

int wire_device_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    struct cw_port_ethdev_config config;
    struct cw_wire_kernel words;
    wire->address.ip = request->own->ip; /* its MAC address is the interface's */
    int status = wire_ports_find(request->rank, 1, reserve, wire, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    wire->address.udp_port = wire->reservation.udp_port;
    const struct cw_port_selection selection = {
        .ip = wire->address.ip, .udp_port = wire->address.udp_port, .udp_port_count = 1, .group_port = CW_UDP_PORT};
    cw_wire_kernel_config(request->transport, request->interface, request->own->mtu_bytes, &selection, &words, &config);
    return wire_ethdev_open(&config, &wire->port, request->interface, error, error_bytes);
}

#else

int wire_device_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    (void)wire, (void)reserve; /* cw_net_transport_check has said so, too */
    return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED, "%s: built without DPDK",
                         cw_net_transport_name(request->transport));
}

#endif
