/* The port between hosts by a NIC of the rank's own: huge pages where there are free ones, an address that no kernel
 * has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/job/wire_private.h"
#include "control/net/device.h"
#include "control/settings/setting.h"
#include "dataplane/flow/owned.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/ethdev.h"

enum { LINK_LOCAL_BITS = 64 };

#if defined(CW_HAVE_DPDK)

enum {
    HUGE_BYTES = 48 << 20, /* that a process's port takes, with room */
    SMALL_MB = 128,        /* without huge pages: vfio pins all of it, used or not */
};

/* The words of CAUSEWAY_EAL, in a copy of it that they point into. */
static int eal_read(struct cw_wire_nic *nic, struct cw_eal_config *config, char *error, size_t error_bytes)
{
    const char *text = cw_setting(CW_SETTING_EAL), *telemetry = cw_setting(CW_SETTING_TELEMETRY);
    char *place = NULL;
    config->argument_count = 0;
    config->arguments = nic->eal_words;
    if (text != NULL && strlen(text) >= sizeof(nic->eal_text)) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "CAUSEWAY_EAL is longer than %d bytes",
                             CW_WIRE_EAL_BYTES - 1);
    }
    snprintf(nic->eal_text, sizeof(nic->eal_text), "%s", text == NULL ? "" : text);
    for (char *word = strtok_r(nic->eal_text, " \t\n", &place); word != NULL; word = strtok_r(NULL, " \t\n", &place)) {
        if (config->argument_count == CW_EAL_ARGUMENTS_MAX) {
            return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "CAUSEWAY_EAL has more than %d words",
                                 CW_EAL_ARGUMENTS_MAX);
        }
        nic->eal_words[config->argument_count++] = word;
    }
    if (telemetry != NULL && telemetry[0] != '\0' && strcmp(telemetry, "on") != 0 && strcmp(telemetry, "off") != 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "CAUSEWAY_TELEMETRY is '%.40s': it knows 'on' and 'off'", telemetry);
    }
    config->telemetry = telemetry != NULL && strcmp(telemetry, "on") == 0;
    return CW_OK;
}

int cw_wire_nic_config(const struct cw_device *device, uint32_t device_ranks, struct cw_wire_nic *nic,
                       struct cw_port_ethdev_config *config, char *error, size_t error_bytes)
{
    struct cw_device_access *access = &nic->access;
    int status = cw_device_check(device, "", access, error, error_bytes);
    cw_port_ethdev_config_init(config);
    status = status == CW_OK ? eal_read(nic, &config->eal, error, error_bytes) : status;
    if (status != CW_OK) {
        return status;
    }
    snprintf(nic->arguments, sizeof(nic->arguments), "%s", device->arguments);
    if (strcmp(access->driver, "mana") == 0) { /* its one PCI device has all of the interfaces */
        size_t used = strlen(nic->arguments);
        snprintf(nic->arguments + used, sizeof(nic->arguments) - used, "%smac=%02x:%02x:%02x:%02x:%02x:%02x",
                 used > 0 ? "," : "", device->mac[0], device->mac[1], device->mac[2], device->mac[3], device->mac[4],
                 device->mac[5]);
    }
    config->device = access->pci[0] != '\0' ? access->pci : device->name;
    config->device_arguments = nic->arguments[0] != '\0' ? nic->arguments : NULL;
    config->mac = device->is_by_mac ? device->mac : NULL;
    config->eal.physical = access->physical;
    config->eal.huge_pages = access->physical || cw_device_huge_bytes("") >= (uint64_t)HUGE_BYTES * (device_ranks + 1);
    config->eal.memory_mb = access->pci[0] != '\0' && !config->eal.huge_pages ? SMALL_MB : 0;
    return CW_OK;
}

/* A loop for each queue pair. */
static void further_open(struct cw_wire *wire)
{
    uint32_t taken = 0;
    while (taken < wire->further_count &&
           (wire->further[taken].port = cw_port_ethdev_queue(wire->port, taken + 1)) != NULL) {
        taken++;
    }
    if (taken < wire->further_count) {
        snprintf(wire->undivided, sizeof(wire->undivided), "the device has %u queue pair%s", taken + 1,
                 taken > 0 ? "s" : "");
        wire->further_count = taken;
    }
}

int cw_wire_nic_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    const struct cw_device *device = request->device;
    struct cw_wire_nic nic;
    struct cw_port_ethdev_config config;
    uint16_t first, last;
    int status = cw_wire_nic_config(device, request->device_ranks, &nic, &config, error, error_bytes);
    status = status == CW_OK ? cw_net_ports(&first, &last, error, error_bytes) : status;
    if (status != CW_OK) {
        return status;
    }
    config.mtu_bytes = request->own->mtu_bytes;
    config.queue_count = 1 + wire->further_count;
    wire->address.udp_port = first != 0 ? first : CW_UDP_PORT;
    status = wire_ethdev_open(&config, &wire->port, config.device, error, error_bytes);
    if (wire->port != NULL) {
        further_open(wire); /* with it they are closed, also when it has failed */
    }
    if (status == CW_OK) {
        wire->address.ip = cw_ip_is_none(&device->ip) ? cw_device_link_local(wire->port->info.mac) : device->ip;
        memcpy(wire->address.mac, wire->port->info.mac, sizeof(wire->address.mac));
    }
    return status;
}

#else

int cw_wire_nic_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    (void)wire;
    return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                         "--transport %s: this Causeway was built without DPDK, which it needs: use --transport udp",
                         request->interface);
}

#endif

struct cw_neighbour_cache *cw_wire_nic_neighbours(const struct cw_wire_request *request, const struct cw_wire *wire)
{
    struct cw_neighbour_config config = {
        .ip = wire->address.ip,
        .bits = cw_ip_is_none(&request->device->ip) ? LINK_LOCAL_BITS : request->device->bits,
        .gateway = request->device->gateway,
        .frame_bytes_max = 14 + request->own->mtu_bytes,
    };
    memcpy(config.mac, wire->port->info.mac, sizeof(config.mac));
    return cw_neighbour_create(&config);
}

static int multicast_reject(int status, const struct cw_wire_request *request, char *error, size_t error_bytes)
{
    return cw_error_text(
        error, error_bytes, status,
        "--transport %s: the device lets no multicast in, which neighbour discovery takes: give it an IPv4 "
        "address (ip=10.9.0.5/24)",
        request->interface);
}

int cw_wire_nic_listen(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    uint8_t group[6];
    int status = cw_neighbour_group(&wire->address.ip, group) ? cw_port_join(wire->port, group) : CW_OK;
    return status == CW_OK ? CW_OK : multicast_reject(status, request, error, error_bytes);
}

int wire_nic_own(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    wire->neighbours = cw_wire_nic_neighbours(request, wire);
    if (wire->neighbours == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the address of %s",
                             request->interface);
    }
    int status = cw_endpoint_own(wire->endpoint, wire->neighbours);
    return status == CW_OK ? CW_OK : multicast_reject(status, request, error, error_bytes);
}
