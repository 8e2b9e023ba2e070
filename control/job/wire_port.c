#include "control/job/wire_private.h"

#include <stdio.h>
#include <string.h>

#include "dataplane/port/error_text.h"
#include "dataplane/port/ethdev.h"

#if defined(CW_HAVE_DPDK)

enum { LINK_WAIT_MS = 10000 };

int wire_ethdev_open(const struct cw_port_ethdev_config *config, struct cw_port **port, const char *what, char *error,
                     size_t error_bytes)
{
    int status = cw_port_ethdev_open(config, port, error, error_bytes);
    if (status != CW_OK) {
        *port = NULL;
        return status;
    }
    return cw_port_link_await(*port, LINK_WAIT_MS)
               ? CW_OK
               : cw_error_text(error, error_bytes, CW_ERROR_TIMEOUT,
                               "the link of %s does not come up: is its cable plugged in, and its other end up?", what);
}

int wire_port_open(uint32_t rank, const struct wire_emulation *emulation, struct cw_wire *wire, char *error,
                   size_t error_bytes)
{
    struct cw_port_ethdev_config config;
    char arguments[sizeof(emulation->socket) + 128];
    char bell[sizeof(emulation->socket) + 16];
    cw_port_ethdev_config_init(&config);
    snprintf(arguments, sizeof(arguments), "role=client,id=%u,socket=%s,socket-abstract=no,mac=02:00:0a:00:00:%02x",
             rank, emulation->socket, rank + 1);
    snprintf(bell, sizeof(bell), "%s.bell", emulation->socket);
    config.device = "net_memif0";
    config.device_arguments = arguments;
    config.doorbell_path = bell;
    config.doorbell_own = 1 + rank;
    config.doorbell_peer = 0;
    wire->address =
        (struct cw_address){.ip = cw_ip_v4(0x0a000001u + rank), .udp_port = CW_UDP_PORT}; /* the port's own MAC */
    return wire_ethdev_open(&config, &wire->port, emulation->socket, error, error_bytes);
}

#else

int wire_port_open(uint32_t rank, const struct wire_emulation *emulation, struct cw_wire *wire, char *error,
                   size_t error_bytes)
{
    (void)rank, (void)emulation, (void)wire;
    return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                         "built without DPDK: there are no memif ports between emulated hosts. Fix: --simulate");
}

#endif
