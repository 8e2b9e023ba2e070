/* The switch's beginning and end: ports, bridge, links, pool, and the files they leave in the file system. */
#include "apps/switch_fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "apps/apps.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/status.h"

enum {
    POOL_FRAMES_MIN = 1024,
    FRAME_BYTES_TYPICAL = 512,        /* held frames are counted by it: few queues are full of the smallest frames */
    QUEUE_BYTES_UNLIMITED = 16 << 20, /* a queue without limit has room for so much */
    PORT_BUFFERS = 4096,              /* about what a port's rings and bursts take */
};

#define POOL_BYTES_MAX     (1ull << 30) /* address space; only what is used becomes resident */
#define RATE_UNLIMITED_BPS 10000000000ull

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
    /* A switch is there for what is addressed to others; drivers that have no filter let it in anyway. */
    int result = rte_eth_promiscuous_enable(cw_port_ethdev_id(port->port));
    if (result != 0 && result != -ENOTSUP) {
        app_error("the device does not become promiscuous", own->device, strerror(-result));
        return APP_EXIT_MACHINE;
    }
    cw_link_init(&port->link, &own->link, config->seed * SWITCH_PORTS_MAX + index);
    return APP_EXIT_SUCCESS;
}

/* True if some process listens on the socket `path`. The kernel's list is asked, since the connection that would tell as
 * well kills a memif server (see switch_config.c). */
static bool socket_lives(const char *path, const struct stat *file)
{
    FILE *list = fopen("/proc/net/unix", "re");
    char line[512];
    bool lives = false;
    while (list != NULL && !lives && fgets(line, sizeof(line), list) != NULL) {
        line[strcspn(line, "\n")] = 0;
        const char *name = strrchr(line, ' ');
        struct stat other;
        /* the same file may have been named in another way */
        lives = name != NULL &&
                (strcmp(name + 1, path) == 0 ||
                 (stat(name + 1, &other) == 0 && other.st_dev == file->st_dev && other.st_ino == file->st_ino));
    }
    if (list != NULL) {
        fclose(list);
    }
    return lives;
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
    if (socket_lives(path, &status)) {
        app_error("another process serves this socket", path, "end it first, or choose another --memif PATH");
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

/* ---- bridge and pool ---- */

static int bridge_open(struct switch_fabric *fabric)
{
    const struct switch_config *config = fabric->config;
    struct cw_bridge_config bridge;
    cw_bridge_config_init(&bridge);
    bridge.port_count = config->port_count;
    bridge.hash_seed = config->seed;
    bridge.snooping = config->snoops;
    bridge.flood_unregistered = !config->drops_unregistered;
    int status = cw_bridge_create(&bridge, &fabric->bridge);
    for (uint32_t i = 0; i < config->group_count && status == CW_OK; i++) {
        for (uint32_t port = 0; port < config->port_count && status == CW_OK; port++) {
            if ((config->groups[i].ports >> port & 1) != 0) {
                status = cw_bridge_group_join(fabric->bridge, config->groups[i].mac, port);
            }
        }
    }
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "cannot set up the bridge", NULL);
}

/* Frames that can be on their way to a port: what its queue and its line hold. */
static uint64_t link_frames(const struct cw_link_config *link)
{
    if (link->rate_bps == 0 && link->delay_ns == 0) {
        return 0;
    }
    double rate_bps = (double)(link->rate_bps != 0 ? link->rate_bps : RATE_UNLIMITED_BPS);
    double line_bytes = rate_bps / 8e9 * (double)link->delay_ns;
    uint64_t queue_bytes = link->queue_limit_bytes != 0 ? link->queue_limit_bytes : (uint64_t)QUEUE_BYTES_UNLIMITED;
    double frames = (line_bytes + (double)(link->rate_bps != 0 ? queue_bytes : 0)) / FRAME_BYTES_TYPICAL;
    return frames > (double)UINT32_MAX ? UINT32_MAX : (uint64_t)frames;
}

static int pool_open(struct switch_fabric *fabric)
{
    const struct switch_config *config = fabric->config;
    uint64_t count = 0;
    for (uint32_t i = 0; i < config->port_count; i++) {
        count += link_frames(&config->ports[i].link);
    }
    fabric->pool_stride =
        (sizeof(struct switch_held) + CW_BRIDGE_FRAME_MIN_BYTES + (size_t)config->mtu_bytes + 63) & ~(size_t)63;
    uint64_t count_max = POOL_BYTES_MAX / fabric->pool_stride;
    count = count < POOL_FRAMES_MIN ? POOL_FRAMES_MIN : count > count_max ? count_max : count;
    fabric->pool_count = (uint32_t)count;
    fabric->pool = malloc(fabric->pool_stride * count);
    if (fabric->pool == NULL || !cw_heap_init(&fabric->heap, fabric->pool_count)) {
        return app_error_status(CW_ERROR_MEMORY, "no room for frames on their way", "lower --queue or --delay");
    }
    return APP_EXIT_SUCCESS;
}

int switch_fabric_open(struct switch_fabric *fabric, const struct switch_config *config)
{
    *fabric = (struct switch_fabric){.config = config};
    fabric->bell_found = config->path != NULL && access(config->bell_path, F_OK) == 0;
    int code = pool_open(fabric);
    if (code == APP_EXIT_SUCCESS) {
        code = bridge_open(fabric);
    }
    if (code == APP_EXIT_SUCCESS) {
        code = ports_open(fabric);
    }
    if (code != APP_EXIT_SUCCESS) {
        switch_fabric_close(fabric);
    }
    return code;
}

void switch_fabric_close(struct switch_fabric *fabric)
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
    cw_bridge_destroy(fabric->bridge);
    cw_heap_dispose(&fabric->heap);
    free(fabric->pool);
    *fabric = (struct switch_fabric){.config = config};
}
