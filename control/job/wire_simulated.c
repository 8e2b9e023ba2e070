/* The port of a rank on a simulated network: a shared-memory port whose server is the simulator. */
#include <string.h>

#include "control/job/wire_private.h"
#include "dataplane/base/virtual.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/shm_port.h"

/* Frames that a port has room for while its rank computes, in each direction: as many as a NIC's ring, in small jobs.
 * */
static uint32_t frames_for(uint32_t hosts)
{
    return hosts <= 128 ? 1024 : hosts <= 512 ? 256 : 128;
}

int wire_simulated_open(uint32_t rank, const struct wire_emulation *emulation, struct cw_wire *wire, char *error,
                        size_t error_bytes)
{
    const struct cw_shm_port_config config = {
        .mac = CW_VIRTUAL_MAC(rank),
        .mtu_bytes = emulation->mtu_bytes,
        .rate_bps = emulation->rate_bps,
        .frames = frames_for(emulation->hosts),
        .driver = "simulated",
    };
    wire->address = (struct cw_address){.ip = cw_ip_v4(0x0a000001u + rank), .udp_port = CW_UDP_PORT};
    int status = cw_shm_port_create(&config, &wire->port, error, error_bytes);
    if (status != CW_OK) {
        wire->port = NULL;
        return status;
    }
    int failed = cw_virtual_join(emulation->socket, rank, cw_shm_port_memory(wire->port));
    if (failed != 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM,
                             "the simulator at %s is not reached: %s (it ends with `causeway run --simulate`)",
                             emulation->socket, strerror(failed));
    }
    cw_shm_port_offloads(wire->port, cw_virtual_page->offloads);
    cw_shm_port_connect(wire->port, -1);
    return CW_OK;
}
