/* The switch's beginning and end: ports, and the files that it leaves in the file system. */
#include "apps/switch/fabric.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/cli/pcap.h"
#include "apps/switch/command.h"
#include "apps/switch/stats.h"
#include "apps/switch/wan.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/process.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/status.h"

enum { PORT_BUFFERS = 4096 /* about the room of a port's rings and bursts */ };

/* ---- ports ---- */

/* EAL is started by the first port and can be given one PCI device then; all ports must ask for the same. */
static const char *find_pci(const struct switch_config *config)
{
    for (uint32_t i = 0; i < config->port_count; i++) {
        if (strchr(config->ports[i].device, ':') != NULL) {
            return config->ports[i].device;
        }
    }
    return NULL;
}

static int port_open(struct switch_fabric *fabric, uint32_t index)
{
    const struct switch_config *config = fabric->config;
    const struct switch_port_config *own = &config->ports[index];
    struct switch_port *port = &fabric->ports[index];
    struct cw_port_ethdev_config device;
    char error[CW_PORT_TEXT_BYTES];
    cw_port_ethdev_config_init(&device);
    device.device = own->device;
    device.device_arguments = own->arguments[0] != 0 ? own->arguments : NULL;
    device.mtu_bytes = (uint32_t)config->mtu_bytes;
    device.rate_bps = own->link.rate_bps;
    device.gather = CW_PORT_GATHER_OFF;
    device.eal.pci_only = find_pci(config);
    uint64_t memory_mb = config->port_count * ((PORT_BUFFERS * (config->mtu_bytes + 1024)) >> 20);
    device.eal.memory_mb =
        memory_mb > CW_EAL_MEMORY_DEFAULT_MB ? (uint32_t)memory_mb : (uint32_t)CW_EAL_MEMORY_DEFAULT_MB;
    if (own->memif) {
        device.doorbell_path = config->bell_path;
        device.doorbell_own = 0;
        device.doorbell_peer = 1 + index;
    }
    int status = cw_port_ethdev_open(&device, &port->port, error, sizeof(error));
    if (status != CW_OK) {
        port->port = NULL;
        return app_error_status(status, error, NULL);
    }
    fabric->socket_owned = fabric->socket_owned || own->memif;
    fabric->naps = fabric->naps || !own->memif;
    /* A switch receives frames to other addresses; drivers without a filter receive them anyway. */
    if (cw_port_ethdev_promiscuous(port->port) != CW_OK) {
        app_error("the device does not become promiscuous", own->device, NULL);
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

/* A switch that was killed leaves its socket's file behind, and memif does not start while one is there. */
static int socket_clean(const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0) {
        return APP_EXIT_SUCCESS;
    }
    if (!S_ISSOCK(status.st_mode)) {
        app_error("there is a file that is no socket", path, "remove it, or choose another --memif PATH");
        return APP_EXIT_USAGE;
    }
    if (cw_process_socket_lives(path, &status)) {
        app_error("another process serves this socket, or /proc/net/unix cannot be read", path,
                  "end it first, or choose another --memif PATH");
        return APP_EXIT_MACHINE;
    }
    if (unlink(path) != 0) {
        app_error("cannot remove a socket that is left over", path, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

static int ports_open(struct switch_fabric *fabric)
{
    const struct switch_config *config = fabric->config;
    if (config->path != NULL) {
        int code = socket_clean(config->path);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
    }
    for (uint32_t i = 0; i < config->port_count; i++) {
        int code = port_open(fabric, i);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
    }
    if (config->path == NULL) {
        return APP_EXIT_SUCCESS;
    }
    /* All memif ports share word 0; the ports' own sleep would look at one of them only. */
    char error[CW_PORT_TEXT_BYTES];
    int status = cw_doorbell_open(config->bell_path, 0, &fabric->bell, error, sizeof(error));
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, error, NULL);
}

/* ---- requests other than forwarding ---- */

static int tap_open(struct switch_fabric *fabric)
{
    const struct switch_config *config = fabric->config;
    struct switch_line *lines[2];
    char error[2 * CW_TOPOLOGY_ERROR_BYTES];
    if (switch_wan_find(fabric, config->pcap_at, lines, error, sizeof(error)) != CW_OK) {
        app_error(error, "--pcap-at", NULL);
        return APP_EXIT_USAGE;
    }
    fabric->tap = app_pcap_open(config->pcap_path);
    if (fabric->tap == NULL) {
        app_error("the packets cannot be written there", config->pcap_path, strerror(errno));
        return errno == ENOMEM ? APP_EXIT_MACHINE : APP_EXIT_USAGE;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fabric->tap_epoch_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - cw_clock_ns();
    for (int i = 0; i < 2 && lines[i] != NULL; i++) {
        lines[i]->tapped = true;
    }
    return APP_EXIT_SUCCESS;
}

static int stats_open(struct switch_fabric *fabric)
{
    const struct switch_config *config = fabric->config;
    int status = config->topology != NULL
                     ? switch_streams_open(&fabric->streams, config->topology, &fabric->lines[2 * fabric->host_count])
                     : CW_OK;
    if (status != CW_OK) {
        return app_error_status(status, "no room for the statistics", config->stats_path);
    }
    return switch_stats_open(config->stats_path, fabric->lines, fabric->line_count, &fabric->streams, &fabric->stats);
}

static int extras_open(struct switch_fabric *fabric)
{
    const struct switch_config *config = fabric->config;
    int code = config->pcap_path != NULL ? tap_open(fabric) : APP_EXIT_SUCCESS;
    return code == APP_EXIT_SUCCESS && config->stats_path != NULL ? stats_open(fabric) : code;
}

int switch_fabric_open(struct switch_fabric *fabric, const struct switch_config *config)
{
    *fabric = (struct switch_fabric){.config = config};
    fabric->bell_found = config->path != NULL && access(config->bell_path, F_OK) == 0;
    int code = switch_wan_open(fabric);
    if (code == APP_EXIT_SUCCESS) {
        code = ports_open(fabric);
    }
    if (code == APP_EXIT_SUCCESS) {
        code = extras_open(fabric);
    }
    if (code == APP_EXIT_SUCCESS && config->topology != NULL) {
        code = switch_command_open(config->path, &fabric->command);
    }
    if (code != APP_EXIT_SUCCESS) {
        (void)switch_fabric_close(fabric);
    }
    return code;
}

int switch_fabric_close(struct switch_fabric *fabric)
{
    const struct switch_config *config = fabric->config;
    cw_doorbell_close(fabric->bell);
    for (uint32_t i = 0; i < config->port_count; i++) {
        struct switch_port *port = &fabric->ports[i];
        if (port->port != NULL) {
            cw_port_cancel(port->port, port->pending, port->pending_count);
            cw_port_close(port->port);
        }
    }
    /* A socket and a bell that another switch serves stay. */
    if (fabric->socket_owned) {
        unlink(config->path);
    }
    if (config->path != NULL && (fabric->socket_owned || !fabric->bell_found)) {
        unlink(config->bell_path);
    }
    switch_command_close(fabric->command);
    int code = switch_stats_close(fabric->stats);
    switch_streams_close(&fabric->streams);
    bool is_tap_whole = app_pcap_close(fabric->tap);
    if (!is_tap_whole) {
        app_error("not all packets could be written", config->pcap_path, "is the disk full?");
    }
    switch_wan_close(fabric);
    *fabric = (struct switch_fabric){.config = config};
    return code == APP_EXIT_SUCCESS && !is_tap_whole ? APP_EXIT_MACHINE : code;
}
