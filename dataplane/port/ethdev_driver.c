/* Requirements of single drivers that they do not report: arguments that follow from the MTU, privileges, kernel
 * interfaces, and remedies for their errors. A driver that is not in the table gets its arguments verbatim. A virtual
 * device is known by its name, before it exists; any other, such as a NIC, by its reported driver. */
#include "dataplane/port/ethdev_private.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "dataplane/base/process.h"

enum {
    MEMIF_SLOT_MIN = 2048,
    MEMIF_RING_LOG2_DEFAULT = 10,
    MEMIF_RING_BYTES_MAX =
        5 << 19, /* packets that fit in the caches: at MTU 9000 a ring of 256 is 1.5 times as fast as one of 1024 */
    AF_PACKET_HEADER_BYTES = 96, /* the ring's header and some alignment, in front of each frame */
};

static const struct ethdev_driver drivers[] = {
    {
        .name = "net_memif",
        .memory = true,
        .gated = true,
        .slot_argument = "bsize",
        .role_argument = "role",
        .frame_limit_unset = true,
        .probe_remedy =
            "memif takes role=server|client, socket=PATH (the socket's folder must exist), id=N; a server's socket "
            "must not be in use",
        .start_remedy = "no memif server listens on that socket: start the server (role=server, or the switch) first",
    },
    {
        .name = "net_af_packet",
        .packet_socket = true,
        .frame_limit_unset = true,
        .kernel_interface = true,
        .slot_argument = "framesz",
        .slot_overhead_bytes = AF_PACKET_HEADER_BYTES,
        .room_is_slot = true,
        .probe_remedy = "af_packet takes iface=NAME",
    },
    /* QEMU's models of these drop, in silence, a packet with a piece that crosses a page of an IOMMU: they map each at
     * once, and treat a shorter mapping as an error (net_tx_pkt_add_raw_fragment). The real ones need no gathering.
     * The first one (DPDK 22.11) does not route its receive interrupts to a vector where vfio has it use MSI-X. */
    {.name = "net_e1000_em", .good_untold = true, .copies_pieces = true, .interrupts_fail = true},
    {.name = "net_e1000_igb", .copies_pieces = true},
    {.name = "net_vmxnet3", .copies_pieces = true},
    {.name = "net_tap", .probe_remedy = "tap takes iface=NAME and needs CAP_NET_ADMIN and /dev/net/tun"},
    {.name = "net_pcap", .probe_remedy = "pcap takes iface=NAME, or rx_pcap=FILE and tx_pcap=FILE"},
};

static void row_find(const char *name, size_t length, struct ethdev_driver *driver)
{
    *driver = (struct ethdev_driver){.name = ""};
    for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        if (strlen(drivers[i].name) == length && strncmp(drivers[i].name, name, length) == 0) {
            *driver = drivers[i];
        }
    }
}

void ethdev_driver_find(const char *device, struct ethdev_driver *driver)
{
    size_t length = strlen(device);
    while (length > 0 && isdigit((unsigned char)device[length - 1])) {
        length--;
    }
    row_find(device, length, driver);
}

void ethdev_driver_named(const char *name, struct ethdev_driver *driver)
{
    row_find(name, strlen(name), driver);
}

/* ---- arguments ---- */

/* Finds the value of `key` in "key=value,key=value". NULL: not given. */
static const char *argument_find(const char *arguments, const char *key, size_t *length)
{
    size_t key_length = strlen(key);
    while (arguments != NULL && *arguments != '\0') {
        size_t item_length = strcspn(arguments, ",");
        if (item_length > key_length && arguments[key_length] == '=' && strncmp(arguments, key, key_length) == 0) {
            *length = item_length - key_length - 1;
            return arguments + key_length + 1;
        }
        arguments += item_length + (arguments[item_length] == ',');
    }
    return NULL;
}

/* Appends key=value unless the user gave that key; false if it does not fit. */
static bool argument_add(char *arguments, size_t arguments_bytes, const char *key, uint32_t value)
{
    size_t length;
    if (argument_find(arguments, key, &length) != NULL) {
        return true;
    }
    size_t used = strlen(arguments);
    int added = snprintf(arguments + used, arguments_bytes - used, "%s%s=%u", used == 0 ? "" : ",", key, value);
    return added >= 0 && used + (size_t)added < arguments_bytes;
}

/* The value of the driver's argument for the size of a slot; 0: there is none. */
static uint32_t slot_bytes_argument(const struct ethdev_driver *driver, const char *arguments)
{
    size_t length;
    const char *value = driver->slot_argument == NULL ? NULL : argument_find(arguments, driver->slot_argument, &length);
    unsigned long bytes = value == NULL ? 0 : strtoul(value, NULL, 10);
    return bytes > UINT16_MAX ? UINT16_MAX : (uint32_t)bytes;
}

bool ethdev_driver_dials(const struct ethdev_driver *driver, const char *arguments)
{
    size_t length;
    const char *role = driver->role_argument == NULL ? NULL : argument_find(arguments, driver->role_argument, &length);
    return role != NULL && length == strlen("client") && strncmp(role, "client", length) == 0;
}

/* Whether a descriptor is a socket connected to `name`, which is an abstract address if the arguments do not say
 * otherwise. */
static bool is_connected_to(int descriptor, const char *name, size_t length)
{
    struct sockaddr_un peer = {.sun_family = AF_UNSPEC};
    socklen_t bytes = sizeof(peer);
    if (getpeername(descriptor, (struct sockaddr *)&peer, &bytes) != 0 || peer.sun_family != AF_UNIX ||
        bytes <= offsetof(struct sockaddr_un, sun_path) + 1) {
        return false;
    }
    const char *path = peer.sun_path[0] == 0 ? peer.sun_path + 1 : peer.sun_path;
    return length < sizeof(peer.sun_path) - 1 && strncmp(path, name, length) == 0 && path[length] == 0;
}

uint32_t ethdev_driver_connections(const char *arguments)
{
    size_t length;
    uint32_t count = 0;
    const char *name = argument_find(arguments, "socket", &length);
    DIR *folder = name == NULL ? NULL : opendir("/proc/self/fd");
    if (folder == NULL) {
        return UINT32_MAX;
    }
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        count += entry->d_name[0] != '.' && is_connected_to(atoi(entry->d_name), name, length);
    }
    closedir(folder);
    return count;
}

bool ethdev_driver_interface(const char *arguments, char interface[IF_NAMESIZE])
{
    size_t length = 0;
    const char *value = argument_find(arguments, "iface", &length);
    if (value == NULL || length == 0 || length >= IF_NAMESIZE) {
        return false;
    }
    memcpy(interface, value, length);
    interface[length] = '\0';
    return true;
}

uint32_t ethdev_driver_room(const struct ethdev_driver *driver, const char *arguments)
{
    return driver->room_is_slot ? slot_bytes_argument(driver, arguments) : 0;
}

/* A slot that the user made too small: af_packet drops what does not fit, memif chains slots, which corrupts its
 * ring. */
static int slot_check(const struct ethdev_driver *driver, const struct cw_port_ethdev_config *config, char *error,
                      size_t error_bytes)
{
    size_t length;
    uint32_t needed = config->mtu_bytes + RTE_ETHER_HDR_LEN + driver->slot_overhead_bytes;
    if (driver->slot_argument == NULL ||
        argument_find(config->device_arguments, driver->slot_argument, &length) == NULL ||
        slot_bytes_argument(driver, config->device_arguments) >= needed) {
        return CW_OK;
    }
    return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                         "port %s: %s is too small for frames of MTU %u: at least %u, or leave it out", config->device,
                         driver->slot_argument, config->mtu_bytes, needed);
}

/* A frame must fit one slot: the driver's (22.11) transmit overruns the ring when it chains slots while the ring is
 * nearly full, and leaves the chain's mark behind in the first slot. */
static bool memif_complete(const struct cw_port_ethdev_config *config, char *arguments, size_t arguments_bytes)
{
    uint32_t slot_bytes = (uint32_t)RTE_ALIGN_CEIL(config->mtu_bytes + ETHDEV_FRAME_OVERHEAD, 64u);
    slot_bytes = RTE_MAX(slot_bytes, (uint32_t)MEMIF_SLOT_MIN);
    bool fits = argument_add(arguments, arguments_bytes, "bsize", slot_bytes);
    uint32_t ring_log2 =
        config->descriptor_count != 0 ? rte_log2_u32(config->descriptor_count) : MEMIF_RING_LOG2_DEFAULT;
    while (config->descriptor_count == 0 && (slot_bytes << ring_log2) > MEMIF_RING_BYTES_MAX) {
        ring_log2--;
    }
    fits = fits && argument_add(arguments, arguments_bytes, "rsize", ring_log2);
    return fits;
}

/* The kernel puts frames into blocks of whole pages, the driver counts frames without gaps: two to a page, one to a
 * page, or one to several pages. */
static bool af_packet_complete(const struct cw_port_ethdev_config *config, char *arguments, size_t arguments_bytes)
{
    uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
    uint32_t frame = config->mtu_bytes + ETHDEV_FRAME_OVERHEAD + AF_PACKET_HEADER_BYTES;
    uint32_t slot_bytes = frame <= page / 2 ? page / 2 : RTE_ALIGN_CEIL(frame, page);
    uint32_t count = config->descriptor_count != 0 ? config->descriptor_count : ETHDEV_DESCRIPTORS_DEFAULT;
    return argument_add(arguments, arguments_bytes, "blocksz", RTE_MAX(slot_bytes, page)) &&
           argument_add(arguments, arguments_bytes, "framesz", slot_bytes) &&
           argument_add(arguments, arguments_bytes, "framecnt", RTE_ALIGN_CEIL(count, 2u)) &&
           /* packets that bypass the queueing discipline are not seen by other ports of this host on the same
            * interface */
           (cw_ip_is_none(&config->selection.ip) || argument_add(arguments, arguments_bytes, "qdisc_bypass", 0));
}

int cw_port_ethdev_arguments(const struct cw_port_ethdev_config *config, char *arguments, size_t arguments_bytes)
{
    struct ethdev_driver driver;
    ethdev_driver_find(config->device, &driver);
    const char *given = config->device_arguments != NULL ? config->device_arguments : "";
    bool fits = strlen(given) < arguments_bytes;
    if (fits) {
        strcpy(arguments, given);
    }
    if (strcmp(driver.name, "net_memif") == 0) {
        fits = fits && memif_complete(config, arguments, arguments_bytes);
    } else if (strcmp(driver.name, "net_af_packet") == 0) {
        fits = fits && af_packet_complete(config, arguments, arguments_bytes);
    }
    return fits ? CW_OK : CW_ERROR_ARGUMENT;
}

/* ---- kernel interfaces ---- */

static int privilege_check(const char *device, char *error, size_t error_bytes)
{
    int probe = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (probe >= 0) {
        close(probe);
        return CW_OK;
    }
    if (errno == EPERM || errno == EACCES) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_PERMISSION,
            "port %s: raw sockets need CAP_NET_RAW: run as root, or use memif, which needs no privilege", device);
    }
    if (cw_errno_remedy(errno)[0] != '\0') {
        return cw_error_text(error, error_bytes, cw_status_of_errno(errno), "port %s: socket: %s%s", device,
                             strerror(errno), cw_errno_remedy(errno));
    }
    return cw_error_text(error, error_bytes, errno == EAFNOSUPPORT ? CW_ERROR_UNSUPPORTED : CW_ERROR_SYSTEM,
                         "port %s: socket: %s; this kernel may lack CONFIG_PACKET", device, strerror(errno));
}

/* The interface must carry the MTU; it is raised if that is allowed. */
static int interface_mtu_raise(const char *device, const char *interface, uint32_t mtu_bytes, char *error,
                               size_t error_bytes)
{
    struct ifreq request = {.ifr_mtu = 0};
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    int query = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (query < 0 || ioctl(query, SIOCGIFMTU, &request) != 0) {
        int code = errno;
        if (query >= 0) {
            close(query);
        }
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "port %s: MTU of %s: %s", device, interface,
                             strerror(code));
    }
    int present = request.ifr_mtu;
    int status = CW_OK;
    if ((uint32_t)present < mtu_bytes) {
        request.ifr_mtu = (int)mtu_bytes;
        if (ioctl(query, SIOCSIFMTU, &request) != 0) {
            status = cw_error_text(
                error, error_bytes, errno == EPERM ? CW_ERROR_PERMISSION : CW_ERROR_UNSUPPORTED,
                "port %s: %s has an MTU of %d and cannot be raised to %u (%s); as root: ip link set dev %s "
                "mtu %u, or use a smaller MTU",
                device, interface, present, mtu_bytes, strerror(errno), interface, mtu_bytes);
        }
    }
    close(query);
    return status;
}

/* A memif server leaves its socket's file behind when it dies, and does not start while one is there. The kernel's list
 * of sockets shows whether it has a listener: a memif server (22.11) aborts when a connection closes before the
 * greeting. */
static void memif_socket_clean(const char *arguments)
{
    size_t length;
    size_t role_length;
    size_t abstract_length;
    const char *path = argument_find(arguments, "socket", &length);
    const char *role = argument_find(arguments, "role", &role_length);
    const char *abstract = argument_find(arguments, "socket-abstract", &abstract_length);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || length >= sizeof(address.sun_path) || role == NULL || strncmp(role, "server", 6) != 0 ||
        abstract == NULL || strncmp(abstract, "no", 2) != 0) {
        return;
    }
    memcpy(address.sun_path, path, length);
    struct stat file;
    if (stat(address.sun_path, &file) == 0 && S_ISSOCK(file.st_mode) &&
        !cw_process_socket_lives(address.sun_path, &file)) {
        unlink(address.sun_path);
    }
}

int ethdev_driver_check(const struct ethdev_driver *driver, const struct cw_port_ethdev_config *config, char *error,
                        size_t error_bytes)
{
    int status = slot_check(driver, config, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    if (strcmp(driver->name, "net_memif") == 0) {
        memif_socket_clean(config->device_arguments);
    }
    if (!driver->kernel_interface) {
        return CW_OK;
    }
    char interface[IF_NAMESIZE];
    if (!ethdev_driver_interface(config->device_arguments, interface)) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "port %s: its arguments must name a network interface: iface=NAME; ip link lists them",
                             config->device);
    }
    if (if_nametoindex(interface) == 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                             "port %s: there is no network interface '%s' here; ip link lists them", config->device,
                             interface);
    }
    status = privilege_check(config->device, error, error_bytes);
    return status != CW_OK ? status
                           : interface_mtu_raise(config->device, interface, config->mtu_bytes, error, error_bytes);
}
