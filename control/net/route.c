#include "control/net/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/net/netlink.h"
#include "dataplane/status.h"

enum { ANSWER_BYTES = 4096, PATIENCE_MS = 1200, DATAGRAMS = 12 };

/* ---- netlink (rtnetlink(7)) ---- */

/* An address of either kind; none: its length is of neither. */
static struct cw_ip attribute_ip(const struct rtattr *attribute)
{
    struct cw_ip ip = {{0}};
    size_t bytes = RTA_PAYLOAD(attribute);
    if (bytes == 4) {
        ip = cw_ip_v4(0);
    }
    if (bytes == 4 || bytes == sizeof(ip.bytes)) {
        memcpy(ip.bytes + sizeof(ip.bytes) - bytes, RTA_DATA(attribute), bytes);
    }
    return ip;
}

/* A next hop of the other kind: of IPv6 on the way to an address of IPv4 (RFC 8950). */
static struct cw_ip attribute_via(const struct rtattr *attribute)
{
    struct cw_ip ip = {{0}};
    uint16_t family = 0;
    size_t bytes = RTA_PAYLOAD(attribute);
    if (bytes < sizeof(family)) {
        return ip;
    }
    memcpy(&family, RTA_DATA(attribute), sizeof(family));
    bytes -= sizeof(family);
    if ((family == AF_INET && bytes == 4) || (family == AF_INET6 && bytes == sizeof(ip.bytes))) {
        ip = bytes == 4 ? cw_ip_v4(0) : ip;
        memcpy(ip.bytes + sizeof(ip.bytes) - bytes, (const uint8_t *)RTA_DATA(attribute) + sizeof(family), bytes);
    }
    return ip;
}

static uint32_t attribute_be32(const struct rtattr *attribute)
{
    uint32_t value = 0;
    if (RTA_PAYLOAD(attribute) >= sizeof(value)) {
        memcpy(&value, RTA_DATA(attribute), sizeof(value));
    }
    return ntohl(value);
}

static uint32_t metrics_mtu(const struct rtattr *metrics)
{
    const uint8_t *place = RTA_DATA(metrics), *end = (const uint8_t *)metrics + metrics->rta_len;
    for (const struct rtattr *at = cw_netlink_attribute(&place, end); at != NULL;
         at = cw_netlink_attribute(&place, end)) {
        if (at->rta_type == RTAX_MTU) {
            return ntohl(attribute_be32(at)); /* this one is in host byte order */
        }
    }
    return 0;
}

int cw_route_parse(const void *answer, size_t bytes, struct cw_route *route)
{
    const struct nlmsghdr *header = answer;
    *route = (struct cw_route){0};
    if (bytes > INT32_MAX || !NLMSG_OK(header, (unsigned int)bytes)) {
        return CW_ERROR_SYSTEM;
    }
    if (header->nlmsg_type == NLMSG_ERROR) {
        return CW_ERROR_NOT_FOUND;
    }
    if (header->nlmsg_type != RTM_NEWROUTE || header->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg))) {
        return CW_ERROR_SYSTEM;
    }
    const struct rtmsg *message = NLMSG_DATA(header);
    const uint8_t *place = (const uint8_t *)message + NLMSG_ALIGN(sizeof(*message));
    const uint8_t *end = (const uint8_t *)answer + header->nlmsg_len;
    for (const struct rtattr *at = cw_netlink_attribute(&place, end); at != NULL;
         at = cw_netlink_attribute(&place, end)) {
        switch (at->rta_type) {
        case RTA_OIF:
            (void)if_indextoname(ntohl(attribute_be32(at)), route->interface);
            break;
        case RTA_GATEWAY:
            route->gateway = attribute_ip(at);
            break;
        case RTA_VIA:
            route->gateway = attribute_via(at);
            break;
        case RTA_PREFSRC:
            route->source = attribute_ip(at);
            break;
        case RTA_METRICS:
            route->mtu_bytes = metrics_mtu(at);
            break;
        default:
            break;
        }
    }
    route->is_local = message->rtm_type == RTN_LOCAL;
    return message->rtm_type == RTN_UNREACHABLE || message->rtm_type == RTN_BLACKHOLE ? CW_ERROR_NOT_FOUND : CW_OK;
}

static uint32_t interface_mtu(const char *name)
{
    struct ifreq request = {0};
    int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    bool got = file >= 0 && ioctl(file, SIOCGIFMTU, &request) == 0;
    if (file >= 0) {
        close(file);
    }
    return got ? (uint32_t)request.ifr_mtu : 0;
}

int cw_route_query(const struct cw_ip *ip, struct cw_route *route)
{
    return cw_route_query_by(ip, 0, route);
}

int cw_route_query_by(const struct cw_ip *ip, uint32_t interface, struct cw_route *route)
{
    uint8_t bytes = cw_ip_is_v4(ip) ? 4 : sizeof(ip->bytes);
    struct {
        struct nlmsghdr header;
        struct rtmsg message;
        struct rtattr attribute;
        uint32_t interface;
        struct rtattr to;
        uint8_t ip[sizeof(ip->bytes)];
    } request = {
        .header = {.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(struct rtmsg)) + RTA_LENGTH(4) + RTA_LENGTH(bytes)),
                   .nlmsg_type = RTM_GETROUTE,
                   .nlmsg_flags = NLM_F_REQUEST},
        .message = {.rtm_family = bytes == 4 ? AF_INET : AF_INET6, .rtm_dst_len = (uint8_t)(8 * bytes)},
        .attribute = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_OIF},
        .interface = interface,
        .to = {.rta_len = (uint16_t)RTA_LENGTH(bytes), .rta_type = RTA_DST},
    };
    memcpy(request.ip, ip->bytes + sizeof(ip->bytes) - bytes, bytes);
    _Alignas(struct nlmsghdr) uint8_t answer[ANSWER_BYTES];
    int file = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ssize_t got = -1;
    if (file >= 0 && send(file, &request, request.header.nlmsg_len, 0) > 0) {
        got = recv(file, answer, sizeof(answer), 0);
    }
    if (file >= 0) {
        close(file);
    }
    *route = (struct cw_route){0};
    int status = got < 0 ? CW_ERROR_SYSTEM : cw_route_parse(answer, (size_t)got, route);
    if (status == CW_OK && route->mtu_bytes == 0) {
        route->mtu_bytes = interface_mtu(route->interface);
    }
    return status;
}

/* ---- what the network says ---- */

/* Whether the kernel has asked for the MAC address in vain, or is at it (arp(7)). Of IPv6 the socket's error says so.
 * */
static bool is_unanswered(const struct cw_ip *ip)
{
    char wanted[CW_IP_TEXT_BYTES], line[200], address[64];
    unsigned int type, flags;
    bool found = false;
    FILE *table = fopen("/proc/net/arp", "re");
    cw_ip_write(ip, wanted);
    while (table != NULL && !found && fgets(line, sizeof(line), table) != NULL) {
        found =
            sscanf(line, "%63s 0x%x 0x%x", address, &type, &flags) == 3 && strcmp(address, wanted) == 0 && flags == 0;
    }
    if (table != NULL) {
        (void)fclose(table);
    }
    return found;
}

/* Sends datagrams for a while; the error that comes of them, 0 for none. Kernels notify one sender of errors once a
 * second (icmp_ratelimit), and those of the session that failed have counted. */
static int datagrams_try(const struct cw_ip *ip, uint16_t udp_port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(udp_port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(udp_port)};
    bool is_v4 = cw_ip_is_v4(ip);
    int file = socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), failed = 0;
    socklen_t bytes = sizeof(failed);
    memcpy(&v4.sin_addr, ip->bytes + 12, 4);
    memcpy(&v6.sin6_addr, ip->bytes, sizeof(ip->bytes));
    if (file < 0) {
        return 0;
    }
    if (connect(file, is_v4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6,
                is_v4 ? sizeof(v4) : sizeof(v6)) != 0) {
        failed = errno;
    }
    for (int sent = 0; sent < DATAGRAMS && failed == 0; sent++) {
        struct pollfd waits = {.fd = file};
        if (send(file, "", 1, 0) != 1) {
            failed = errno;
        } else if (poll(&waits, 1, PATIENCE_MS / DATAGRAMS) > 0) {
            (void)getsockopt(file, SOL_SOCKET, SO_ERROR, &failed, &bytes);
        }
    }
    close(file);
    return failed;
}

static const char *reason_of(int failed)
{
    switch (failed) {
    case EPERM:
    case EACCES:
        return "a firewall on this host forbids it (nft list ruleset)";
    case ECONNREFUSED:
        return "its kernel reports that no process has that port: does a firewall there reject UDP (--ports), or is a "
               "NAT between, or a container's network there? --transport (CAUSEWAY_TRANSPORT) names another interface";
    case EHOSTUNREACH:
        return "no host answers for that address: is the host in another subnet or VLAN, or down, or does a firewall "
               "reject UDP (--ports)? --transport (CAUSEWAY_TRANSPORT) names another interface";
    case ENETUNREACH:
        return "this host has no route there (ip route)";
    default:
        return "the network reports no error: most likely a firewall on the path or on that host drops UDP; --ports "
               "FIRST-LAST names the ports to open";
    }
}

void cw_route_diagnose(const struct cw_ip *ip, uint16_t udp_port, char *text, size_t bytes)
{
    char source[CW_IP_TEXT_BYTES], gateway[CW_IP_TEXT_BYTES], way[160] = "";
    struct cw_route route;
    int status = cw_route_query(ip, &route);
    bool has_gateway = !cw_ip_is_none(&route.gateway);
    bool unanswered = status == CW_OK && is_unanswered(has_gateway ? &route.gateway : ip);
    int failed = unanswered ? EHOSTUNREACH : datagrams_try(ip, udp_port);
    cw_ip_write(&route.source, source);
    cw_ip_write(&route.gateway, gateway);
    if (status == CW_OK) {
        snprintf(way, sizeof(way), "sent by %s from %s%s%s, MTU %u; ", route.interface, source,
                 has_gateway ? " through " : "", has_gateway ? gateway : "", route.mtu_bytes);
    }
    snprintf(text, bytes, "%s%s", way, reason_of(status == CW_ERROR_NOT_FOUND ? ENETUNREACH : failed));
}
