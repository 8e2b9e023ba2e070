#include "apps/offload/device.h"

#include <stdio.h>
#include <string.h>

#include "dataplane/port/error_text.h"
#include "dataplane/port/udp.h"
#include "dataplane/status.h"

static int sim_open(struct offload_device *device, uint32_t offloads, uint32_t mtu_bytes)
{
    struct cw_simulator_config config;
    struct cw_simulator_node_config node;
    struct cw_simulator_nic nic = {0};
    cw_simulator_config_init(&config);
    cw_simulator_node_config_init(&node);
    config.mtu_bytes = mtu_bytes;
    config.node_count_max = 2;
    config.bridge_count_max = 1;
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        nic.offloads[i] = (offloads >> i & 1) != 0 ? CW_SIMULATOR_OFFLOAD_HONEST : CW_SIMULATOR_OFFLOAD_ABSENT;
    }
    int status = cw_simulator_create(&config, &device->simulator);
    int first = status == CW_OK ? cw_simulator_star(device->simulator, 2, &node) : status;
    for (uint32_t i = 0; first >= 0 && i < 2; i++) {
        cw_port_sim_nic(device->simulator, i, &nic);
    }
    status = first < 0 ? first : cw_port_sim_open(device->simulator, 0, &device->port);
    return status != CW_OK ? status : cw_port_sim_open(device->simulator, 1, &device->mate);
}

static int udp_open(struct offload_device *device, const char *text, uint32_t mtu_bytes, char *error,
                    size_t error_bytes)
{
    struct cw_port_udp_config config = {.stream_count = 1, .mtu_bytes = mtu_bytes};
    if (!cw_ip_read(text, &config.ip)) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "udp:%s: wanted is an address of this host", text);
    }
    device->is_socket = true;
    return cw_port_udp_open(&config, &device->port, error, error_bytes);
}

/* "memif:SOCKET,role=server" is net_memif0 with these arguments. */
static int words_read(const char *text, char name[CW_PORT_ETHDEV_ARGUMENTS_BYTES],
                      char arguments[CW_PORT_ETHDEV_ARGUMENTS_BYTES])
{
    bool is_memif = strncmp(text, "memif:", 6) == 0;
    const char *at = text + (is_memif ? 6 : 0);
    size_t length = strcspn(at, ",");
    const char *more = at[length] == ',' ? at + length + 1 : "";
    if (length == 0 || strlen(text) + 64 > CW_PORT_ETHDEV_ARGUMENTS_BYTES) {
        return CW_ERROR_ARGUMENT;
    }
    if (is_memif) {
        snprintf(name, CW_PORT_ETHDEV_ARGUMENTS_BYTES, "net_memif0");
        snprintf(arguments, CW_PORT_ETHDEV_ARGUMENTS_BYTES, "%s,id=0,socket=%.*s,socket-abstract=no", more, (int)length,
                 at);
    } else {
        snprintf(name, CW_PORT_ETHDEV_ARGUMENTS_BYTES, "%.*s", (int)length, at);
        snprintf(arguments, CW_PORT_ETHDEV_ARGUMENTS_BYTES, "%s", more);
    }
    return CW_OK;
}

int offload_device_open(struct offload_device *device, const char *text, uint32_t offloads, uint32_t mtu_bytes,
                        char *error, size_t error_bytes)
{
    char name[CW_PORT_ETHDEV_ARGUMENTS_BYTES], arguments[CW_PORT_ETHDEV_ARGUMENTS_BYTES];
    *device = (struct offload_device){.port = NULL};
    if (strcmp(text, "sim") == 0) {
        int status = sim_open(device, offloads, mtu_bytes);
        return status == CW_OK ? CW_OK : cw_error_text(error, error_bytes, status, "no memory for a simulated NIC");
    }
    if (strncmp(text, "udp:", 4) == 0) {
        return udp_open(device, text + 4, mtu_bytes, error, error_bytes);
    }
    if (words_read(text, name, arguments) != CW_OK) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "device '%s': wanted is DEVICE[,ARGUMENTS]", text);
    }
    struct cw_port_ethdev_config config;
    cw_port_ethdev_config_init(&config);
    config.device = name;
    config.device_arguments = arguments[0] != 0 ? arguments : NULL;
    config.mtu_bytes = mtu_bytes;
    config.offloads = offloads;
    return cw_port_ethdev_open(&config, &device->port, error, error_bytes);
}

void offload_device_close(struct offload_device *device)
{
    if (device->port != NULL) {
        cw_port_close(device->port);
    }
    if (device->mate != NULL) {
        cw_port_close(device->mate);
    }
    cw_simulator_destroy(device->simulator);
    *device = (struct offload_device){.port = NULL};
}

/* The abilities of a simulated NIC, and those that a socket leaves to its kernel. */
static void plain_report(const struct offload_device *device, struct cw_offload_report *report)
{
    const struct cw_port_info *info = &device->port->info;
    const bool has[CW_PORT_OFFLOADS] = {
        [CW_OFFLOAD_CHECKSUM_OUT] = info->checksum_out,
        [CW_OFFLOAD_CHECKSUM_IN] = info->checksum_in,
        [CW_OFFLOAD_STEER] = info->steers,
        [CW_OFFLOAD_ARRIVAL] = info->arrivals,
        [CW_OFFLOAD_DEPARTURE] = info->departure_ahead_ns > 0,
        [CW_OFFLOAD_MULTICAST] = !device->is_socket,
    };
    bool is_kept = device->is_socket && report->offload <= CW_OFFLOAD_CHECKSUM_IN;
    report->has = report->used = has[report->offload];
    snprintf(report->why, sizeof(report->why), "%s",
             has[report->offload] ? "simulated"
             : is_kept            ? "the kernel's own, which it says nothing of"
             : device->is_socket  ? "sockets do not show it"
                                  : "not simulated, or not asked for");
}

void offload_device_reports(const struct offload_device *device, struct cw_offload_report reports[CW_PORT_OFFLOADS])
{
    if (device->simulator == NULL && !device->is_socket) {
        cw_port_ethdev_offloads(device->port, reports);
        return;
    }
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        reports[i] = (struct cw_offload_report){.offload = i};
        plain_report(device, &reports[i]);
    }
}
