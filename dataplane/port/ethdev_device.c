/* The device under an ethdev port: found or plugged, given its pools, configured, started; and all of it undone. */
#include "dataplane/port/ethdev_private.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>

enum { LOG_LINE_BYTES = 160 };

struct opening {
    struct ethdev_port *port;
    const struct cw_port_ethdev_config *config;
    struct rte_eth_dev_info info;
    char arguments[CW_PORT_ETHDEV_ARGUMENTS_BYTES];
    uint16_t receive_descriptors;
    uint16_t transmit_descriptors;
    bool is_refused; /* by before_start */
    char *error;
    size_t error_bytes;
};

/* An error with the driver's log lines and the fix. */
static int opening_failed(const struct opening *opening, int status, const char *what, int code, const char *remedy)
{
    char logged[LOG_LINE_BYTES];
    cw_eal_log_first(logged, sizeof(logged));
    if (logged[0] == '\0') {
        snprintf(logged, sizeof(logged), "%s", rte_strerror(code < 0 ? -code : code));
    }
    return cw_error_text(opening->error, opening->error_bytes, status, "port %s: %s: %s%s%s", opening->port->device,
                         what, logged, remedy != NULL ? "; " : "", remedy != NULL ? remedy : "");
}

/* ---- the device ---- */

/* "0000:03:00.0" or "03:00.0" */
bool ethdev_is_pci(const char *device)
{
    size_t digits = strspn(device, "0123456789abcdefABCDEF:");
    return digits >= 5 && device[digits] == '.' && isdigit((unsigned char)device[digits + 1]) &&
           device[digits + 2] == '\0' && strchr(device, ':') != NULL;
}

static int device_plug(struct opening *opening)
{
    struct ethdev_port *port = opening->port;
    bool pci = ethdev_is_pci(port->device);
    if (!pci && strncmp(port->device, "net_", 4) != 0 && strncmp(port->device, "eth_", 4) != 0 &&
        strncmp(port->device, "virtio_user", 11) != 0) {
        return cw_error_text(opening->error, opening->error_bytes, CW_ERROR_NOT_FOUND,
                             "port %s: no such device. Fix: udp:ADDRESS, memif:SOCKET,port=N, a PCI address, or a DPDK "
                             "driver's name with a "
                             "number (net_af_packet0)",
                             port->device);
    }
    cw_eal_log_clear();
    mode_t before =
        umask(0177); /* of sockets that the driver makes: a memif server would admit every user that the umask allows */
    int result = port->driver.packet_socket
                     ? ethdev_fanout_plug(port->device, opening->arguments)
                     : rte_eal_hotplug_add(pci ? "pci" : "vdev", port->device, opening->arguments);
    umask(before);
    if (result == -EEXIST) {
        return opening_failed(opening, CW_ERROR_BUSY, "exists already", result,
                              "close it first, or choose another number");
    }
    if (result != 0) {
        const char *remedy = port->driver.probe_remedy;
        if (remedy == NULL) {
            remedy = pci ? "lspci lists the devices; most must be bound to vfio-pci (dpdk-devbind.py) before EAL starts"
                         : "is there such a driver, and are its arguments right? dpdk-testpmd --vdev takes the same";
        }
        /* Not -EPERM: that is -1, which drivers return for anything. */
        int status = result == -EACCES ? CW_ERROR_PERMISSION : result == -ENOMEM ? CW_ERROR_MEMORY : CW_ERROR_NOT_FOUND;
        return opening_failed(opening, status, "the driver does not take the device", result, remedy);
    }
    port->plugged = true;
    return CW_OK;
}

/* Claims the device for this port: two ports on one queue would take each other's packets. */
static int device_claim(struct opening *opening)
{
    struct ethdev_port *port = opening->port;
    struct rte_eth_dev_owner owner = {.name = "causeway"};
    if (rte_eth_dev_owner_new(&owner.id) != 0 || rte_eth_dev_owner_set(port->id, &owner) != 0) {
        return cw_error_text(opening->error, opening->error_bytes, CW_ERROR_BUSY,
                             "port %s: in use by another port of this process; close that one first", port->device);
    }
    port->owner = owner.id;
    return CW_OK;
}

/* The number of the device's port: by its MAC address, if that is given, among unused ones. */
static int device_number(const struct opening *opening, uint16_t *id)
{
    struct rte_ether_addr address;
    if (opening->config->mac == NULL) {
        return rte_eth_dev_get_port_by_name(opening->port->device, id);
    }
    for (uint16_t each = 0; each < RTE_MAX_ETHPORTS; each++) {
        if (rte_eth_dev_is_valid_port(each) && rte_eth_macaddr_get(each, &address) == 0 &&
            memcmp(address.addr_bytes, opening->config->mac, RTE_ETHER_ADDR_LEN) == 0) {
            *id = each;
            return 0;
        }
    }
    return -ENODEV;
}

static int device_find(struct opening *opening)
{
    struct ethdev_port *port = opening->port;
    if (device_number(opening, &port->id) != 0) {
        int status = device_plug(opening);
        if (status != CW_OK) {
            return status;
        }
        int result = device_number(opening, &port->id);
        if (result != 0) {
            return opening_failed(opening, CW_ERROR_NOT_FOUND, "is no network device", result, NULL);
        }
    }
    int status = device_claim(opening);
    if (status != CW_OK) {
        return status;
    }
    int result = rte_eth_dev_info_get(port->id, &opening->info);
    if (result != 0) {
        return opening_failed(opening, CW_ERROR_SYSTEM, "does not describe itself", result, NULL);
    }
    const struct rte_bus *bus = rte_dev_bus(opening->info.device);
    port->needs_dma = bus == NULL || strcmp(rte_bus_name(bus), "vdev") != 0;
    snprintf(port->port.info.driver, sizeof(port->port.info.driver), "%s",
             opening->info.driver_name != NULL ? opening->info.driver_name : "unknown");
    if (port->driver.name[0] == 0) {
        ethdev_driver_named(port->port.info.driver, &port->driver);
    }
    return CW_OK;
}

/* ---- pools ---- */

static bool gather_possible(const struct opening *opening)
{
    /* The device reads pieces at their virtual addresses; with IOVA as PA each page would need a translation. */
    bool addresses_fit = !opening->port->needs_dma || rte_eal_iova_mode() == RTE_IOVA_VA;
    return (opening->info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0 && addresses_fit;
}

/* Bytes of a buffer: a frame, in steps of 1 KiB, since some NICs count receive buffers so. */
static uint32_t room_bytes(const struct opening *opening)
{
    uint32_t frame =
        (uint32_t)RTE_ALIGN_CEIL(opening->config->mtu_bytes + ETHDEV_FRAME_OVERHEAD + RTE_ETHER_CRC_LEN, 1024u);
    uint32_t room = RTE_MAX(RTE_MAX(frame, 2048u), opening->info.min_rx_bufsize);
    opening->port->ring.slot_bytes = ethdev_driver_room(&opening->port->driver, opening->arguments);
    return RTE_MAX(room, opening->port->ring.slot_bytes);
}

/* Of one queue pair: the buffers that a NIC fills and its owner empties. */
static int pools_create(struct opening *opening, struct ethdev_port *port)
{
    const struct cw_port_ethdev_config *config = opening->config;
    uint32_t rings = (uint32_t)opening->receive_descriptors + opening->transmit_descriptors;
    uint32_t handed = (port->queue_count - 1u) * ETHDEV_HANDED_MAX; /* others may be slow to take them */
    uint32_t count = config->pool_packets != 0 ? config->pool_packets : rings + ETHDEV_POOL_RESERVE + handed;
    int socket = rte_eth_dev_socket_id(port->id);
    char name[RTE_MEMPOOL_NAMESIZE];
    uint32_t room = RTE_PKTMBUF_HEADROOM + room_bytes(opening);
    if (room > UINT16_MAX) {
        return cw_error_text(opening->error, opening->error_bytes, CW_ERROR_ARGUMENT,
                             "port %s: buffers for an MTU of %u would be longer than DPDK's can be", port->device,
                             config->mtu_bytes);
    }
    snprintf(name, sizeof(name), "cw_frames_%u_%u", port->id, port->queue);
    cw_eal_log_clear();
    uint32_t cache = RTE_MIN((uint32_t)ETHDEV_POOL_CACHE, count / 4);
    port->pool = rte_pktmbuf_pool_create(name, count, cache, 0, (uint16_t)room, socket);
    if (port->pool != NULL && port->port.info.gather) {
        /* One head for each packet that may wait in the ring, and for each piece of a burst. */
        uint32_t heads = opening->transmit_descriptors + CW_PORT_BURST_MAX * CW_PORT_PIECES_MAX + 2 * ETHDEV_POOL_CACHE;
        snprintf(name, sizeof(name), "cw_pieces_%u_%u", port->id, port->queue);
        port->piece_pool = rte_pktmbuf_pool_create(name, heads, ETHDEV_POOL_CACHE, 0, 0, socket);
    }
    if (port->pool == NULL || (port->port.info.gather && port->piece_pool == NULL)) {
        int code = rte_errno;
        char what[96];
        snprintf(what, sizeof(what), "no memory for %u buffers of %u bytes", count, room);
        return opening_failed(opening, CW_ERROR_MEMORY, what, code, "give EAL more memory, or the port fewer buffers");
    }
    return CW_OK;
}

/* ---- configuration ---- */

/* Returns whether the device carries the MTU, and the value for the configuration: 0 for drivers that have no such
 * setting. */
static int mtu_check(const struct opening *opening, uint32_t *configured)
{
    const struct rte_eth_dev_info *info = &opening->info;
    uint32_t wanted = opening->config->mtu_bytes;
    uint32_t overhead = info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu
                            ? info->max_rx_pktlen - info->max_mtu
                            : RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
    bool fits =
        wanted <= info->max_mtu && wanted >= info->min_mtu && (uint64_t)wanted + overhead <= info->max_rx_pktlen;
    if (fits || opening->port->driver.frame_limit_unset) {
        *configured = fits ? wanted : 0;
        return CW_OK;
    }
    uint32_t largest = info->max_rx_pktlen - overhead < info->max_mtu ? info->max_rx_pktlen - overhead : info->max_mtu;
    return cw_error_text(opening->error, opening->error_bytes, CW_ERROR_UNSUPPORTED,
                         "port %s: MTU %u, but its driver %s carries %u to %u; use an MTU within that",
                         opening->port->device, wanted, opening->port->port.info.driver, info->min_mtu, largest);
}

/* Several queues receive packets by hash, where the NIC has one: software behind it finds the owner of a packet. */
static void spread_configure(const struct opening *opening, struct rte_eth_conf *conf)
{
    uint64_t hashed =
        opening->info.flow_type_rss_offloads & (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP);
    if (opening->port->queue_count > 1 && hashed != 0) {
        conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf->rx_adv_conf.rss_conf.rss_hf = hashed;
    }
}

/* `interrupts`: whether receive interrupts are asked for. 0 or a negative errno. */
static int device_configure(struct opening *opening, uint32_t configured_mtu, bool interrupts)
{
    struct ethdev_port *port = opening->port;
    struct rte_eth_conf conf = {.rxmode.mtu = configured_mtu, .intr_conf.rxq = interrupts};
    if (port->port.info.gather) {
        conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    } else {
        /* All packets then come from one pool and are in one piece. */
        conf.txmode.offloads |= opening->info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
    }
    ethdev_offloads_configure(port, &opening->info, &conf);
    spread_configure(opening, &conf);
    int result = rte_eth_dev_configure(port->id, port->queue_count, port->queue_count, &conf);
    if (result != 0) {
        return result;
    }
    struct rte_eth_rxconf receive = opening->info.default_rxconf;
    struct rte_eth_txconf transmit = opening->info.default_txconf;
    receive.offloads = conf.rxmode.offloads;
    transmit.offloads = conf.txmode.offloads;
    ethdev_offloads_queues(port, &receive);
    unsigned int socket = (unsigned int)rte_eth_dev_socket_id(port->id);
    for (uint16_t i = 0; i < port->queue_count && result == 0; i++) {
        result =
            rte_eth_rx_queue_setup(port->id, i, opening->receive_descriptors, socket, &receive, port->queues[i]->pool);
        result = result == 0 ? rte_eth_tx_queue_setup(port->id, i, opening->transmit_descriptors, socket, &transmit)
                             : result;
    }
    return result;
}

/* 0 or a negative errno; *what then says which of the two steps failed. */
static int device_begin(struct opening *opening, const char **what)
{
    const struct cw_port_ethdev_config *config = opening->config;
    uint16_t id = opening->port->id;
    int refused = config->before_start == NULL ? 0 : config->before_start(id, config->before_start_context);
    opening->is_refused = refused != 0;
    *what = refused != 0 ? "its caller refuses it" : "does not start";
    return refused != 0 ? refused : rte_eth_dev_start(id);
}

static int device_start(struct opening *opening)
{
    struct ethdev_port *port = opening->port;
    uint32_t configured_mtu = 0;
    int status = mtu_check(opening, &configured_mtu);
    if (status != CW_OK) {
        return status;
    }
    /* With a doorbell no thread waits for interrupts. Drivers that cannot do them say so in one of many ways, or ignore
     * it. */
    bool interrupts = port->bell == NULL && !port->driver.interrupts_fail;
    const char *what = "cannot be configured";
    cw_eal_log_clear();
    int result = device_configure(opening, configured_mtu, interrupts);
    if (result == 0) {
        result = device_begin(opening, &what);
    }
    if (result != 0 && !opening->is_refused && port->offloads.used != 0) { /* one that the driver only says it has */
        ethdev_offloads_forgo(port);
        result = device_configure(opening, configured_mtu, interrupts);
        result = result != 0 ? result : device_begin(opening, &what);
    }
    if (result != 0 && !opening->is_refused && interrupts && port->needs_dma) {
        cw_eal_log_clear();
        result = device_configure(opening, configured_mtu, false);
        result = result != 0 ? result : device_begin(opening, &what);
    }
    if (opening->is_refused) {
        cw_eal_log_clear();
    }
    if (result != 0) {
        status = opening->is_refused  ? CW_ERROR_UNSUPPORTED
                 : result == -EACCES  ? CW_ERROR_PERMISSION
                 : port->driver.gated ? CW_ERROR_NOT_FOUND
                                      : CW_ERROR_SYSTEM;
        return opening_failed(opening, status, what, result, port->driver.start_remedy);
    }
    port->started = true;
    return CW_OK;
}

static void descriptors_choose(struct opening *opening)
{
    const struct rte_eth_dev_info *info = &opening->info;
    uint32_t asked = RTE_MIN(opening->config->descriptor_count, (uint32_t)UINT16_MAX);
    uint16_t receive =
        info->default_rxportconf.ring_size != 0 ? info->default_rxportconf.ring_size : ETHDEV_DESCRIPTORS_DEFAULT;
    uint16_t transmit =
        info->default_txportconf.ring_size != 0 ? info->default_txportconf.ring_size : ETHDEV_DESCRIPTORS_DEFAULT;
    opening->receive_descriptors = asked != 0 ? (uint16_t)asked : receive;
    opening->transmit_descriptors = asked != 0 ? (uint16_t)asked : transmit;
    rte_eth_dev_adjust_nb_rx_tx_desc(opening->port->id, &opening->receive_descriptors, &opening->transmit_descriptors);
}

/* An interface of the kernel has one: the driver deals its packets among sockets by rules of its own. */
static void queues_choose(const struct opening *opening)
{
    uint32_t most = (uint32_t)RTE_MIN(opening->info.max_rx_queues, opening->info.max_tx_queues);
    most = opening->port->driver.kernel_interface ? 1u : RTE_MIN(most, (uint32_t)CW_PORT_ETHDEV_QUEUES_MAX);
    uint32_t count = RTE_MIN(opening->config->queue_count, most);
    opening->port->queue_count = (uint16_t)RTE_MAX(count, 1u);
}

static int gather_choose(const struct opening *opening)
{
    struct cw_port_info *info = &opening->port->port.info;
    bool possible = gather_possible(opening);
    info->gather = possible && opening->config->gather != CW_PORT_GATHER_OFF &&
                   (!opening->port->driver.copies_pieces || opening->config->gather == CW_PORT_GATHER_ON);
    if (opening->config->gather == CW_PORT_GATHER_ON && !possible) {
        return cw_error_text(opening->error, opening->error_bytes, CW_ERROR_UNSUPPORTED,
                             "port %s: its driver %s cannot send a packet from several pieces; leave gather on auto",
                             opening->port->device, info->driver);
    }
    return CW_OK;
}

static void mac_read(struct ethdev_port *port)
{
    struct rte_ether_addr address = {{0}};
    if (rte_eth_macaddr_get(port->id, &address) != 0 || rte_is_zero_ether_addr(&address)) {
        rte_eth_random_addr(address.addr_bytes); /* ring and null have none; local, unicast */
    }
    memcpy(port->port.info.mac, address.addr_bytes, RTE_ETHER_ADDR_LEN);
}

int ethdev_device_open(struct ethdev_port *port, const struct cw_port_ethdev_config *config, char *error,
                       size_t error_bytes)
{
    struct opening opening = {.port = port, .config = config, .error = error, .error_bytes = error_bytes};
    if (cw_port_ethdev_arguments(config, opening.arguments, sizeof(opening.arguments)) != CW_OK) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "port %s: its arguments are longer than %d bytes",
                             port->device, CW_PORT_ETHDEV_ARGUMENTS_BYTES);
    }
    int status = device_find(&opening);
    if (status == CW_OK) {
        descriptors_choose(&opening);
        queues_choose(&opening);
        status = gather_choose(&opening);
        uint32_t steers = port->queue_count > 1 ? 1u << CW_OFFLOAD_STEER : 0; /* each packet to its owner's queue */
        ethdev_offloads_find(port, &opening.info, config->offloads | steers);
    }
    status = status == CW_OK ? ethdev_queues_make(port, config, error, error_bytes) : status;
    for (uint32_t i = 0; i < port->queue_count && status == CW_OK; i++) {
        status = pools_create(&opening, port->queues[i]);
    }
    if (status == CW_OK) {
        status = device_start(&opening);
    }
    if (status == CW_OK) {
        mac_read(port);
        ethdev_offloads_begin(port);
    }
    return status;
}

void ethdev_device_close(struct ethdev_port *port)
{
    if (port->started) {
        for (uint32_t i = 0; i < port->queue_count; i++) {
            ethdev_offloads_end(port->queues[i]);
        }
        rte_eth_dev_stop(port->id);
    }
    if (port->owner != 0) {
        rte_eth_dev_owner_unset(port->id, port->owner);
    }
    if (port->plugged) {
        if (port->owner != 0) {
            rte_eth_dev_close(port->id);
        }
        rte_eal_hotplug_remove(ethdev_is_pci(port->device) ? "pci" : "vdev", port->device);
    }
    rte_mempool_free(port->offloads.heads);
    for (uint32_t i = 0; i < CW_PORT_ETHDEV_QUEUES_MAX; i++) {
        if (port->queues[i] != NULL) {
            rte_mempool_free(port->queues[i]->piece_pool);
            rte_mempool_free(port->queues[i]->pool);
        }
    }
}
