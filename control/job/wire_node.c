/* The port between hosts by the host's dataplane: it has the NIC and the address, this process UDP ports of it. */
#include "control/job/wire_private.h"
#include "control/lease/lease.h"

int wire_node_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    const struct cw_lease_config config = {
        .socket = request->node, .ports = 1, .rank = request->rank, .job = request->job};
    int status = cw_lease_open(&config, &wire->lease, &wire->port, error, error_bytes);
    if (status != CW_OK) {
        wire->lease = NULL;
        wire->port = NULL;
        return status;
    }
    wire->address.ip = request->own->ip; /* its MAC address is the NIC's */
    wire->address.udp_port = cw_lease_first(wire->lease);
    return CW_OK;
}
