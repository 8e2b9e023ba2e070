#include "control/job/wire_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/port/error_text.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/port/udp.h"

#if defined(CW_HAVE_DPDK)

enum { LINK_WAIT_S = 10 };

static int link_await(struct cw_port *port, const char *what, char *error, size_t error_bytes)
{
    for (int tries = 0; !cw_port_link_up(port); tries++) {
        if (tries == LINK_WAIT_S * 1000) {
            return cw_error_text(error, error_bytes, CW_ERROR_TIMEOUT,
                                 "the link of %s does not come up: is its cable plugged in, and its other end up?",
                                 what);
        }
        usleep(1000);
    }
    return CW_OK;
}

int wire_ethdev_open(const struct cw_port_ethdev_config *config, struct cw_port **port, const char *what, char *error,
                     size_t error_bytes)
{
    int status = cw_port_ethdev_open(config, port, error, error_bytes);
    if (status != CW_OK) {
        *port = NULL;
        return status;
    }
    return link_await(*port, what, error, error_bytes);
}

/* ---- memif ---- */

static int memif_open(uint32_t rank, const struct wire_emulation *emulation, struct cw_wire *wire, char *error,
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

static int memif_open(uint32_t rank, const struct wire_emulation *emulation, struct cw_wire *wire, char *error,
                      size_t error_bytes)
{
    (void)rank, (void)emulation, (void)wire;
    return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                         "built without DPDK: there are no memif ports between emulated hosts. Fix: --emulate "
                         "HOSTS,veth");
}

#endif

/* ---- veth ---- */

static int address_read(const char *interface, struct cw_ip *ip, char *error, size_t error_bytes)
{
    struct ifreq request = {.ifr_ifindex = 0};
    struct sockaddr_in address;
    int query = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    int failed = query < 0 || ioctl(query, SIOCGIFADDR, &request) != 0 ? errno : 0;
    if (query >= 0) {
        close(query);
    }
    if (failed != 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                             "interface %s has no IPv4 address: %s; let `causeway run --emulate` make it", interface,
                             strerror(failed));
    }
    memcpy(&address, &request.ifr_addr, sizeof(address));
    *ip = cw_ip_v4(ntohl(address.sin_addr.s_addr));
    return CW_OK;
}

static int veth_open(uint32_t rank, const struct wire_emulation *emulation, struct cw_wire *wire, char *error,
                     size_t error_bytes)
{
    struct cw_port_udp_config config = {
        .udp_port = CW_UDP_PORT, .stream_count = 1, .mtu_bytes = emulation->mtu_bytes, .group_port = CW_UDP_PORT};
    char interface[IF_NAMESIZE];
    snprintf(interface, sizeof(interface), CW_WIRE_INTERFACE, rank);
    int status = address_read(interface, &config.ip, error, error_bytes);
    wire->is_socket = true;
    wire->address = (struct cw_address){.ip = config.ip, .udp_port = CW_UDP_PORT};
    return status == CW_OK ? cw_port_udp_open(&config, &wire->port, error, error_bytes) : status;
}

int wire_port_open(uint32_t rank, const struct wire_emulation *emulation, struct cw_wire *wire, char *error,
                   size_t error_bytes)
{
    return emulation->socket[0] != 0 ? memif_open(rank, emulation, wire, error, error_bytes)
                                     : veth_open(rank, emulation, wire, error, error_bytes);
}
