/* The port between hosts that are not emulated: sockets of the kernel, at free UDP ports. */
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

/* A port for each loop, side by side from `udp_port` on (0: any, for one), or none. */
static int sockets_open(struct cw_port_udp_config config, uint16_t udp_port, struct cw_wire *wire, char *error,
                        size_t error_bytes)
{
    uint32_t open = 0, count = 1 + wire->further_count;
    int status = CW_OK;
    for (; open < count && status == CW_OK; open += status == CW_OK) {
        config.udp_port = (uint16_t)(udp_port + open);
        status = cw_port_udp_open(&config, wire_port_of(wire, open), error, error_bytes);
        config.group_port = 0;
    }
    while (status != CW_OK && open > 0) {
        cw_port_close(*wire_port_of(wire, --open));
    }
    for (uint32_t i = 0; status != CW_OK && i < count; i++) {
        *wire_port_of(wire, i) = NULL;
    }
    return status;
}

/* By UDP ports of CAUSEWAY_PORTS, or by such as are nobody's. */
static int ports_find(uint32_t rank, const struct cw_port_udp_config *config, struct cw_wire *wire, char *error,
                      size_t error_bytes)
{
    uint16_t first, last;
    uint32_t count = 1 + wire->further_count;
    int status = cw_net_ports(&first, &last, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    bool is_bounded = first != 0;
    if (!is_bounded && count == 1) {
        return sockets_open(*config, 0, wire, error, error_bytes); /* the kernel knows a free one */
    }
    first = is_bounded ? first : DYNAMIC_FIRST;
    last = is_bounded ? last : DYNAMIC_LAST;
    uint32_t runs = ((uint32_t)last - first + 1) / count;
    status = CW_ERROR_BUSY;
    for (uint32_t i = 0; i < runs && status == CW_ERROR_BUSY; i++) {
        status = sockets_open(*config, (uint16_t)(first + (i + rank) % runs * count), wire, error, error_bytes);
    }
    if (status == CW_ERROR_BUSY) {
        char more[96] = "";
        if (is_bounded) {
            snprintf(more, sizeof(more),
                     ": each rank of a host needs %u: give --ports (CAUSEWAY_PORTS) more (ss -ulpn)", count);
        }
        (void)cw_error_text(error, error_bytes, status, "the UDP ports %u to %u are taken%s%s", first, last,
                            count > 1 ? ", or too few of them that are not lie side by side" : "", more);
    }
    return status;
}

int wire_socket_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    const struct cw_net_address *own = request->own;
    const struct cw_port_udp_config config = {.ip = own->ip,
                                              .stream_count = 1,
                                              .mtu_bytes = own->mtu_bytes,
                                              .never_segments = request->has_devices,
                                              .group_port = CW_UDP_PORT};
    wire->is_socket = true;
    int status = ports_find(request->rank, &config, wire, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    wire->address = (struct cw_address){.ip = own->ip, .udp_port = cw_port_udp_number(wire->port)};
    return CW_OK;
}
