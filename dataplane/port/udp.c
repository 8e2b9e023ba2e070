#include "dataplane/port/udp_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "dataplane/port/error_text.h"
#include "dataplane/port/membership.h"
#include "dataplane/status.h"

enum { FRAME_ALIGNMENT = 64, HOPS = 64, FRAMES_SPARE = 4 * CW_PORT_BURST_MAX /* that callers hold */ };

/* ---- sockets ---- */

static void buffers_set(int socket, int bytes)
{
    /* Beyond net.core.rmem_max if we may, else up to that. */
    if (setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0) {
        (void)setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    }
    if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0) {
        (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    }
}

static bool is_v6(const struct udp_port *port)
{
    return port->own.any.sa_family == AF_INET6;
}

static void socket_prepare(const struct udp_port *port, int socket)
{
    int on = 1, never_fragment = is_v6(port) ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;
    buffers_set(socket, (int)port->buffer_bytes);
    (void)setsockopt(socket, is_v6(port) ? IPPROTO_IPV6 : IPPROTO_IP, is_v6(port) ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
                     &never_fragment, sizeof(never_fragment));
    (void)setsockopt(socket, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
    (void)setsockopt(socket, SOL_UDP, UDP_GRO, &on, sizeof(on));
}

/* Packets to groups leave by the own interface; other members on this host get them, too, and routers pass them on as
 * they do those of other ports. */
static void socket_multicasts(const struct udp_port *port, int socket)
{
    int hops = HOPS;
    if (is_v6(port)) {
        (void)setsockopt(socket, IPPROTO_IPV6, IPV6_MULTICAST_IF, &port->interface, sizeof(port->interface));
        (void)setsockopt(socket, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops));
        return;
    }
    struct ip_mreqn interface = {.imr_address = port->own.v4.sin_addr};
    (void)setsockopt(socket, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof(interface));
    (void)setsockopt(socket, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof(hops));
}

static int set_add(struct udp_port *port, int socket, uint32_t source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};
    return epoll_ctl(port->set, EPOLL_CTL_ADD, socket, &event) != 0 ? -errno : 0;
}

/* An epoll set of all streams, if there is none yet. 0, or -errno. */
static int set_open(struct udp_port *port)
{
    int failed = 0;
    if (port->set >= 0) {
        return 0;
    }
    port->set = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t i = 0; i < port->stream_count && port->set >= 0 && failed == 0; i++) {
        failed = set_add(port, port->sockets[i], i);
    }
    if (port->set >= 0 && failed != 0) {
        close(port->set);
        port->set = -1;
    }
    return port->set < 0 && failed == 0 ? -errno : failed;
}

/* ---- groups ---- */

static struct udp_group *group_find(const struct udp_port *port, const struct cw_ip *ip)
{
    for (uint32_t i = 0; i < port->group_count; i++) {
        if (port->groups[i].socket >= 0 && cw_ip_is_equal(&port->groups[i].ip, ip)) {
            return &port->groups[i];
        }
    }
    return NULL;
}

/* A place for one more group; NULL: no memory. */
static struct udp_group *group_add(struct udp_port *port)
{
    for (uint32_t i = 0; i < port->group_count; i++) {
        if (port->groups[i].socket < 0) {
            return &port->groups[i];
        }
    }
    struct udp_group *grown = realloc(port->groups, (port->group_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return NULL;
    }
    port->groups = grown;
    grown[port->group_count] = (struct udp_group){.socket = -1};
    return &grown[port->group_count++];
}

/* The kernel admits the groups of which a socket is a member, and no other member of the host. True: done; else
 * errno. */
static bool group_enter(const struct udp_port *port, const struct udp_group *group, int made)
{
    int off = 0;
    if (is_v6(port)) {
        struct ipv6_mreq member = {.ipv6mr_interface = (unsigned int)port->interface};
        memcpy(&member.ipv6mr_multiaddr, group->ip.bytes, sizeof(group->ip.bytes));
        (void)setsockopt(made, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off, sizeof(off)); /* Linux 4.20 */
        return setsockopt(made, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &member, sizeof(member)) == 0;
    }
    struct ip_mreqn member = {.imr_address = port->own.v4.sin_addr};
    memcpy(&member.imr_multiaddr, udp_ip_in(port, &group->ip), sizeof(member.imr_multiaddr));
    return setsockopt(made, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off)) == 0 &&
           setsockopt(made, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof(member)) == 0;
}

/* 0, or -errno. */
static int group_open(struct udp_port *port, struct udp_group *group)
{
    union udp_name name = {.any = {.sa_family = port->own.any.sa_family}};
    int on = 1;
    name.v4.sin_port = port->group_port;
    memcpy(udp_ip_of(&name), udp_ip_in(port, &group->ip), port->ip_bytes);
    int made = socket(name.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int failed = made < 0 || setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
                         bind(made, &name.any, port->name_bytes) != 0 || !group_enter(port, group, made)
                     ? -errno
                     : set_open(port);
    if (failed == 0) {
        socket_prepare(port, made);
        failed = set_add(port, made, port->stream_count + (uint32_t)(group - port->groups));
    }
    if (failed != 0 && made >= 0) {
        close(made);
    }
    group->socket = failed == 0 ? made : -1;
    return failed;
}

static int udp_join(struct cw_port *base, const uint8_t mac[6])
{
    struct udp_port *port = udp_of(base);
    struct cw_ip ip = cw_membership_group(mac, is_v6(port));
    struct udp_group *group = group_find(port, &ip);
    if (port->group_port == 0) {
        return CW_ERROR_UNSUPPORTED;
    }
    if (group != NULL) {
        group->joins++;
        return CW_OK;
    }
    group = group_add(port);
    if (group == NULL) {
        return CW_ERROR_MEMORY;
    }
    *group = (struct udp_group){.ip = ip, .socket = -1, .joins = 1};
    int failed = group_open(port, group);
    switch (-failed) {
    case 0:
        return CW_OK;
    case ENOBUFS:
        return CW_ERROR_LIMIT;
    case ENODEV: /* the interface does no multicast */
        return CW_ERROR_UNSUPPORTED;
    default:
        return cw_status_of_errno(-failed);
    }
}

static int udp_leave(struct cw_port *base, const uint8_t mac[6])
{
    struct udp_port *port = udp_of(base);
    struct cw_ip ip = cw_membership_group(mac, is_v6(port));
    struct udp_group *group = group_find(port, &ip);
    if (group == NULL) {
        return CW_ERROR_NOT_FOUND;
    }
    if (--group->joins == 0) {
        close(group->socket); /* which ends the membership, too */
        group->socket = -1;
    }
    return CW_OK;
}

/* ---- what is the same for all ---- */

static int udp_memory_register(struct cw_port *port, void *base, size_t bytes, struct cw_port_memory **memory)
{
    static struct cw_port_memory any;
    (void)port, (void)base, (void)bytes;
    *memory = &any;
    return CW_OK;
}

static int udp_memory_unregister(struct cw_port *port, struct cw_port_memory *memory)
{
    (void)port, (void)memory;
    return CW_OK; /* the kernel has copied what was sent */
}

static bool udp_link_up(struct cw_port *port)
{
    (void)port;
    return true;
}

static void udp_sleep(struct cw_port *base, uint64_t timeout_ns)
{
    struct udp_port *port = udp_of(base);
    if (port->message_at < port->message_count || cw_wake_consume(&port->wake)) {
        return;
    }
    if (cw_wake_begin(&port->wake)) {
        (void)cw_wake_wait(&port->wake, port->set >= 0 ? port->set : port->sockets[0], base->alarm, timeout_ns);
    }
    cw_wake_end(&port->wake);
}

static void udp_wake(struct cw_port *port)
{
    cw_wake_up(&udp_of(port)->wake);
}

/* The set of all sockets: a group that is joined later brings one more. */
static int udp_descriptor(struct cw_port *base)
{
    struct udp_port *port = udp_of(base);
    return set_open(port) == 0 ? port->set : -1;
}

/* A socket is readable while it has packets, armed or not. */
static bool udp_arm(struct cw_port *base)
{
    const struct udp_port *port = udp_of(base);
    return port->message_at < port->message_count;
}

static void udp_disarm(struct cw_port *base)
{
    (void)base;
}

static void udp_close(struct cw_port *base)
{
    struct udp_port *port = udp_of(base);
    for (uint32_t i = 0; port->sockets != NULL && i < port->stream_count; i++) {
        if (port->sockets[i] >= 0) {
            close(port->sockets[i]);
        }
    }
    for (uint32_t i = 0; i < port->group_count; i++) {
        if (port->groups[i].socket >= 0) {
            close(port->groups[i].socket);
        }
    }
    if (port->set >= 0) {
        close(port->set);
    }
    cw_wake_close(&port->wake);
    for (uint32_t i = 0; i < UDP_MESSAGES; i++) {
        free(port->messages[i].frames);
        free(port->messages[i].parts);
    }
    free(port->sockets);
    free(port->groups);
    free(port->drops_seen);
    free(port->free);
    free(port->frames);
    free(port->scratch);
    free(port);
}

static const struct cw_port_ops udp_ops = {
    .receive = udp_receive,
    .release = udp_release,
    .reserve = udp_reserve,
    .transmit = udp_transmit,
    .cancel = udp_cancel,
    .join = udp_join,
    .leave = udp_leave,
    .memory_register = udp_memory_register,
    .memory_unregister = udp_memory_unregister,
    .link_up = udp_link_up,
    .sleep = udp_sleep,
    .wake = udp_wake,
    .close = udp_close,
    .descriptor = udp_descriptor,
    .arm = udp_arm,
    .disarm = udp_disarm,
};

/* ---- open ---- */

static int memory_open(struct udp_port *port)
{
    port->datagram_bytes = port->port.info.mtu_bytes - (port->network_bytes - 14);
    port->frame_count = (UDP_DATAGRAM_MAX + port->datagram_bytes - 1) / port->datagram_bytes;
    port->frame_bytes = (14 + port->port.info.mtu_bytes + FRAME_ALIGNMENT - 1) / FRAME_ALIGNMENT * FRAME_ALIGNMENT;
    uint32_t count = UDP_MESSAGES * port->frame_count + FRAMES_SPARE;
    port->frames = aligned_alloc(FRAME_ALIGNMENT, (size_t)count * port->frame_bytes);
    port->free = malloc(count * sizeof(*port->free));
    port->scratch = malloc((size_t)port->frame_count * port->datagram_bytes); /* as much as a message takes */
    port->sockets = malloc(port->stream_count * sizeof(*port->sockets));
    port->drops_seen = calloc(port->stream_count, sizeof(*port->drops_seen));
    if (port->frames == NULL || port->free == NULL || port->scratch == NULL || port->sockets == NULL ||
        port->drops_seen == NULL) {
        return CW_ERROR_MEMORY;
    }
    memset(port->sockets, -1, port->stream_count * sizeof(*port->sockets));
    for (; port->free_count < count; port->free_count++) {
        port->free[port->free_count] = port->frames + (size_t)port->free_count * port->frame_bytes;
    }
    for (uint32_t i = 0; i < UDP_MESSAGES; i++) {
        struct udp_message *message = &port->messages[i];
        message->frames = calloc(port->frame_count, sizeof(*message->frames));
        message->parts = calloc(port->frame_count, sizeof(*message->parts));
        if (message->frames == NULL || message->parts == NULL) {
            return CW_ERROR_MEMORY;
        }
    }
    return CW_OK;
}

/* The interface that has this address, and its MAC address: a peer with a NIC sends to it. */
static void interface_find(struct udp_port *port)
{
    struct ifaddrs *all, *found = NULL;
    if (getifaddrs(&all) != 0) {
        return;
    }
    for (struct ifaddrs *at = all; at != NULL && found == NULL; at = at->ifa_next) {
        union udp_name *address = (union udp_name *)at->ifa_addr;
        found = address != NULL && address->any.sa_family == port->own.any.sa_family &&
                        memcmp(udp_ip_of(address), udp_ip_in(port, &port->ip), port->ip_bytes) == 0
                    ? at
                    : NULL;
    }
    for (struct ifaddrs *at = all; at != NULL && found != NULL; at = at->ifa_next) {
        const struct sockaddr_ll *link = (const struct sockaddr_ll *)at->ifa_addr;
        if (link != NULL && link->sll_family == AF_PACKET && strcmp(at->ifa_name, found->ifa_name) == 0) {
            memcpy(port->port.info.mac, link->sll_addr, sizeof(port->port.info.mac));
        }
    }
    port->interface = found != NULL ? (int)if_nametoindex(found->ifa_name) : 0;
    freeifaddrs(all);
}

static int socket_open(struct udp_port *port, uint32_t stream)
{
    union udp_name name = port->own;
    name.v4.sin_port = htons((uint16_t)(ntohs(port->own.v4.sin_port) + stream));
    int made = socket(name.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    port->sockets[stream] = made;
    if (made < 0 || bind(made, &name.any, port->name_bytes) != 0) {
        return -errno;
    }
    socket_prepare(port, made);
    socket_multicasts(port, made);
    if (stream == 0) {
        int none = 0;
        socklen_t bytes = port->name_bytes;
        port->cuts = port->cuts && setsockopt(made, SOL_UDP, UDP_SEGMENT, &none, sizeof(none)) == 0;
        (void)getsockname(made, &port->own.any, &bytes);
    }
    return 0;
}

static int sockets_open(struct udp_port *port, char *error, size_t error_bytes)
{
    int failed = 0;
    uint32_t stream = 0;
    for (; stream < port->stream_count && failed == 0; stream++) {
        failed = socket_open(port, stream);
    }
    if (failed == 0 && port->stream_count > 1) {
        failed = set_open(port);
    }
    if (failed == 0) {
        return cw_wake_open(&port->wake);
    }
    char name[CW_IP_TEXT_BYTES];
    cw_ip_write(&port->ip, name);
    uint32_t number = ntohs(port->own.v4.sin_port) + stream - 1;
    switch (-failed) {
    case EADDRNOTAVAIL:
        return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                             "this host has no address %s; `ip address` lists its addresses", name);
    case EADDRINUSE:
        return cw_error_text(error, error_bytes, CW_ERROR_BUSY,
                             "UDP port %u of %s is in use; `ss -ulpn` shows by which process", number, name);
    default:
        return cw_error_text(error, error_bytes, cw_status_of_errno(-failed), "UDP socket at %s, port %u: %s%s", name,
                             number, strerror(-failed), cw_errno_remedy(-failed));
    }
}

static void own_set(struct udp_port *port, const struct cw_port_udp_config *config)
{
    bool is_v4 = cw_ip_is_v4(&config->ip);
    port->ip = config->ip;
    port->ip_bytes = is_v4 ? 4 : 16;
    port->name_bytes = is_v4 ? sizeof(port->own.v4) : sizeof(port->own.v6);
    port->network_bytes = is_v4 ? UDP_NETWORK_BYTES : UDP_NETWORK_V6_BYTES;
    port->own = (union udp_name){.any = {.sa_family = is_v4 ? AF_INET : AF_INET6}};
    port->own.v4.sin_port = htons(config->udp_port);
    memcpy(udp_ip_of(&port->own), udp_ip_in(port, &port->ip), port->ip_bytes);
}

int cw_port_udp_open(const struct cw_port_udp_config *config, struct cw_port **port, char *error, size_t error_bytes)
{
    if (config->mtu_bytes < CW_PORT_MTU_MIN || config->mtu_bytes > CW_PORT_MTU_ETHERNET_MAX ||
        config->stream_count == 0 || (config->udp_port == 0 && config->stream_count > 1) ||
        config->udp_port + config->stream_count > 65536) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "UDP port: MTU %u (wanted is %d to %d), %u streams from port %u on", config->mtu_bytes,
                             CW_PORT_MTU_MIN, CW_PORT_MTU_ETHERNET_MAX, config->stream_count, config->udp_port);
    }
    struct udp_port *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "UDP port: out of memory");
    }
    made->port = (struct cw_port){
        .ops = &udp_ops,
        .info = {.mtu_bytes = config->mtu_bytes,
                 .gather = true,
                 .wait = CW_PORT_WAIT_DESCRIPTOR,
                 .writes_checksums = true,
                 .medium = CW_PORT_MEDIUM_KERNEL,
                 .alarms = true,
                 .reports = true,
                 .driver = "udp"},
    };
    own_set(made, config);
    made->stream_count = config->stream_count;
    made->group_port = htons(config->group_port);
    made->cuts = !config->never_segments;
    made->buffer_bytes = config->buffer_bytes != 0 ? config->buffer_bytes : CW_PORT_UDP_BUFFER_BYTES;
    made->used_count = made->asked = UDP_MESSAGES;
    made->set = made->wake.descriptor = -1;
    interface_find(made);
    int status = memory_open(made);
    if (status != CW_OK) {
        (void)cw_error_text(error, error_bytes, status, "UDP port: out of memory");
    } else {
        status = sockets_open(made, error, error_bytes);
    }
    if (status != CW_OK) {
        udp_close(&made->port);
        return status;
    }
    *port = &made->port;
    return CW_OK;
}

uint16_t cw_port_udp_number(const struct cw_port *port)
{
    return ntohs(((const struct udp_port *)port)->own.v4.sin_port);
}

uint64_t cw_port_udp_dropped(const struct cw_port *port)
{
    return ((const struct udp_port *)port)->dropped;
}
