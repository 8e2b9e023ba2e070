/* The port between hosts that are not emulated: sockets of the kernel; and UDP ports that are free, for any way. */
#include <stdio.h>

#include "control/job/wire_private.h"
#include "control/net/net.h"
#include "dataplane/base/random.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/udp.h"

enum {
    DYNAMIC_FIRST = 49152, /* RFC 6335, 6: nobody else's */
    DYNAMIC_LAST = 65535,
};

int wire_ports_find(uint32_t rank, uint32_t streams, wire_ports_take *take, void *context, char *error,
                    size_t error_bytes)
{
    uint16_t first, last;
    int status = cw_net_ports(&first, &last, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    bool is_bounded = first != 0;
    if (!is_bounded && streams == 1) {
        return take(context, 0, streams, error, error_bytes); /* the kernel knows a free one */
    }
    first = is_bounded ? first : DYNAMIC_FIRST;
    last = is_bounded ? last : DYNAMIC_LAST;
    uint32_t runs = ((uint32_t)last - first + 1) / streams;
    status = CW_ERROR_BUSY;
    for (uint32_t i = 0; i < runs && status == CW_ERROR_BUSY; i++) {
        status = take(context, (uint16_t)(first + (i + rank) % runs * streams), streams, error, error_bytes);
    }
    if (status == CW_ERROR_BUSY) {
        (void)cw_error_text(error, error_bytes, status,
                            "all of the UDP ports %u to %u are taken, or fewer than %u of them lie side by side%s",
                            first, last, streams, is_bounded ? ": give CAUSEWAY_PORTS more (ss -ulpn)" : "");
    }
    return status;
}

struct opening {
    struct cw_port_udp_config config;
    struct cw_wire *wire;
};

static int sockets_open(void *context, uint16_t udp_port, uint32_t streams, char *error, size_t error_bytes)
{
    struct opening *opening = context;
    (void)streams;
    opening->config.udp_port = udp_port;
    return cw_port_udp_open(&opening->config, &opening->wire->port, error, error_bytes);
}

int wire_socket_open(const struct cw_wire_request *request, uint32_t streams, struct cw_wire *wire, char *error,
                     size_t error_bytes)
{
    const struct cw_net_address *own = request->own;
    struct opening opening = {.config = {.ip = own->ip,
                                         .stream_count = streams,
                                         .mtu_bytes = own->mtu_bytes,
                                         .never_segments = request->has_devices,
                                         .group_port = CW_UDP_PORT},
                              .wire = wire};
    int status = wire_ports_find(request->rank, streams, sockets_open, &opening, error, error_bytes);
    if (status != CW_OK) {
        wire->port = NULL;
        return status;
    }
    wire->address = (struct cw_address){.ip = own->ip, .udp_port = cw_port_udp_number(wire->port)};
    return CW_OK;
}
