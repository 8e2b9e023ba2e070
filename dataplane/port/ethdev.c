#include "dataplane/port/ethdev.h"

#include "dataplane/port/ethdev_private.h"

#include "dataplane/base/machine.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DIAL_ATTEMPTS = 8,
    DIAL_INTERVAL_MS = 100,   /* from a refusal to the next attempt, at least */
    DIAL_PATIENCE_MS = 20000, /* with a server that says nothing */
};

/* `port`: of the first queue pair; the device, and the shared parts of further pairs, are freed with it. */
static void ethdev_free(struct ethdev_port *port)
{
    ethdev_filter_close(port);
    ethdev_queues_drain(port);
    ethdev_gate_hold(port);
    ethdev_device_close(port);
    ethdev_gate_remove(port);
    ethdev_gate_let_go(port);
    /* After the device: it no longer holds pieces then. */
    ethdev_queues_dispose(port);
    pthread_mutex_destroy(&port->cache_lock);
    free(port);
}

static void ethdev_close(struct cw_port *base)
{
    struct ethdev_port *first = ethdev_of(base)->first;
    atomic_store_explicit(&ethdev_of(base)->claimed, 0, memory_order_relaxed); /* nothing more is for it */
    /* the last one sees the work of the others */
    if (atomic_fetch_sub_explicit(&first->open_count, 1, memory_order_acq_rel) == 1) {
        ethdev_free(first);
    }
}

static const struct cw_port_ops ethdev_ops = {
    .receive = ethdev_receive,
    .release = ethdev_release,
    .reserve = ethdev_reserve,
    .transmit = ethdev_transmit,
    .cancel = ethdev_cancel,
    .join = ethdev_join,
    .leave = ethdev_leave,
    .memory_register = ethdev_memory_register,
    .memory_unregister = ethdev_memory_unregister,
    .link_up = ethdev_link_up,
    .sleep = ethdev_sleep,
    .wake = ethdev_wake,
    .close = ethdev_close,
    .claim = ethdev_claim,
    .doubt = ethdev_doubt,
    .descriptor = ethdev_descriptor,
    .arm = ethdev_arm,
    .disarm = ethdev_disarm,
};

static int config_check(const struct cw_port_ethdev_config *config, struct ethdev_driver *driver, char *error,
                        size_t error_bytes)
{
    if (config->device == NULL || config->device[0] == '\0' || strlen(config->device) >= RTE_ETH_NAME_MAX_LEN) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "port: no device given, or its name is longer than %d; give net_memif0 or a PCI address",
                             RTE_ETH_NAME_MAX_LEN - 1);
    }
    ethdev_driver_find(config->device, driver);
    uint32_t most = driver->memory ? CW_PORT_MTU_MAX : CW_PORT_MTU_ETHERNET_MAX;
    if (config->mtu_bytes < CW_PORT_MTU_MIN || config->mtu_bytes > most) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "port %s: MTU %u; allowed are %d to %u",
                             config->device, config->mtu_bytes, CW_PORT_MTU_MIN, most);
    }
    return CW_OK;
}

/* A memif server rejects a client whose number is not served, is taken, or is not served yet: it listens before it
 * knows its numbers. The client's driver then hangs up permanently. CW_ERROR_BUSY: rejected; to retry, open the device
 * again. A server that is only slow must be waited for. If its client hangs up before it has been greeted (22.11), the
 * server frees memory that EAL's interrupt thread still uses, and dies or hangs for all clients.
 *
 * `before`: connections to that server before this one. */
static int client_await(struct ethdev_port *port, const struct cw_port_ethdev_config *config, uint32_t before,
                        char *error, size_t error_bytes)
{
    if (!ethdev_driver_dials(&port->driver, config->device_arguments)) {
        return CW_OK;
    }
    for (uint32_t waited_ms = 0; waited_ms < DIAL_PATIENCE_MS; waited_ms++) {
        if (ethdev_link_up(&port->port)) {
            return CW_OK;
        }
        if (waited_ms >= DIAL_INTERVAL_MS && waited_ms % DIAL_INTERVAL_MS == 0 &&
            ethdev_driver_connections(config->device_arguments) <= before) {
            break;
        }
        usleep(1000);
    }
    return cw_error_text(error, error_bytes, CW_ERROR_BUSY,
                         "port %s: the memif server does not take this client (%.100s): its id is not served or is "
                         "taken, it has fewer queue pairs, or the server is gone",
                         port->device, config->device_arguments);
}

static int ethdev_open(struct ethdev_port *port, const struct cw_port_ethdev_config *config, char *error,
                       size_t error_bytes)
{
    int status = ethdev_bell_open(port, config, error, error_bytes);
    if (status == CW_OK) {
        status = ethdev_device_open(port, config, error, error_bytes);
    }
    if (status == CW_OK && port->driver.gated) {
        status = ethdev_gate_add(port, error, error_bytes);
    }
    status = status == CW_OK ? ethdev_wait_open(port, error, error_bytes) : status;
    status = status == CW_OK ? ethdev_queues_begin(port, error, error_bytes) : status;
    return status == CW_OK ? ethdev_selection_apply(port, error, error_bytes) : status;
}

/* Opens the device once. *refused: it is a client that its server does not take, which another attempt may change. */
static int port_create(const struct cw_port_ethdev_config *config, const struct ethdev_driver *driver,
                       struct cw_port **port, bool *refused, char *error, size_t error_bytes)
{
    *refused = false;
    struct ethdev_port *created = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*created));
    if (created == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "port %s: out of memory", config->device);
    }
    *created = (struct ethdev_port){.port.ops = &ethdev_ops,
                                    .port.info.mtu_bytes = config->mtu_bytes,
                                    .port.info.rate_bps = config->rate_bps,
                                    .port.info.medium = driver->memory ? cw_machine_memory() : CW_PORT_MEDIUM_NONE,
                                    .wake.descriptor = -1,
                                    .epoll_descriptor = -1,
                                    .packet_descriptor = -1,
                                    .selection = config->selection,
                                    .driver = *driver};
    strcpy(created->device, config->device);
    created->first = created->queues[0] = created;
    pthread_mutex_init(&created->cache_lock, NULL);
    ethdev_gate_init(created);
    uint32_t connections =
        ethdev_driver_dials(driver, config->device_arguments) ? ethdev_driver_connections(config->device_arguments) : 0;
    int status = ethdev_open(created, config, error, error_bytes);
    if (status == CW_OK) {
        status = client_await(created, config, connections, error, error_bytes);
        *refused = status != CW_OK;
    }
    if (status != CW_OK) {
        ethdev_free(created);
        return status;
    }
    atomic_init(&created->open_count, created->queue_count);
    *port = &created->port;
    return CW_OK;
}

int cw_port_ethdev_open(const struct cw_port_ethdev_config *config, struct cw_port **port, char *error,
                        size_t error_bytes)
{
    struct ethdev_driver driver;
    int status = config_check(config, &driver, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    /* Before EAL starts: a feature that the kernel lacks is reported in our own words. */
    status = ethdev_driver_check(&driver, config, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_eal_config eal = config->eal;
    if (eal.pci_only == NULL && ethdev_is_pci(config->device)) {
        eal.pci_only = config->device;
    }
    status = cw_eal_start(&eal, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    for (uint32_t attempt = 0; attempt < DIAL_ATTEMPTS; attempt++) {
        bool refused;
        status = port_create(config, &driver, port, &refused, error, error_bytes);
        if (!refused) {
            return status;
        }
    }
    return CW_ERROR_NOT_FOUND;
}

uint16_t cw_port_ethdev_id(const struct cw_port *port)
{
    return ((const struct ethdev_port *)port)->id;
}

uint64_t cw_port_ethdev_dropped(const struct cw_port *port)
{
    return ((const struct ethdev_port *)port)->dropped;
}

int cw_port_ethdev_promiscuous(struct cw_port *port)
{
    int result = rte_eth_promiscuous_enable(((struct ethdev_port *)port)->id);
    return result == 0 || result == -ENOTSUP ? CW_OK : CW_ERROR_SYSTEM;
}
