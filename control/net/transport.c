#include "control/net/transport.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/net/device.h"
#include "control/net/net.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum { LINK_BYTES = 16384 /* the kernel's description of an interface */ };

static const char *const names[] = {
    [CW_NET_TRANSPORT_NONE] = "none",     [CW_NET_TRANSPORT_UDP] = "udp",   [CW_NET_TRANSPORT_AF_PACKET] = "af_packet",
    [CW_NET_TRANSPORT_DEVICE] = "device", [CW_NET_TRANSPORT_NODE] = "node",
};

const char *cw_net_transport_name(enum cw_net_transport transport)
{
    return names[transport];
}

enum cw_net_transport cw_net_transport_read(const char *text, const char **what)
{
    for (enum cw_net_transport transport = CW_NET_TRANSPORT_UDP; transport <= CW_NET_TRANSPORT_NODE; transport++) {
        size_t length = strlen(names[transport]);
        if (transport != CW_NET_TRANSPORT_DEVICE && strncmp(text, names[transport], length) == 0 &&
            (text[length] == 0 || text[length] == ':')) {
            *what = text + length + (text[length] == ':');
            return transport;
        }
    }
    *what = text;
    return cw_device_is_named(text) ? CW_NET_TRANSPORT_DEVICE : CW_NET_TRANSPORT_NONE;
}

/* ---- the rule ---- */

static bool is_same_network(const struct cw_net_offer *one, const struct cw_net_offer *other)
{
    return memcmp(one->network, other->network, sizeof(one->network)) == 0;
}

int cw_net_transport_choose(const struct cw_net_offer *offers, uint32_t count, uint32_t own,
                            enum cw_net_transport *transport, char *error, size_t error_bytes)
{
    enum cw_net_transport named = CW_NET_TRANSPORT_NONE;
    uint32_t first = 0;
    for (uint32_t rank = 0; rank < count; rank++) {
        enum cw_net_transport its = offers[rank].transport <= CW_NET_TRANSPORT_NODE
                                        ? (enum cw_net_transport)offers[rank].transport
                                        : CW_NET_TRANSPORT_NONE;
        if (!is_same_network(&offers[rank], &offers[own])) {
            continue;
        }
        if (its != CW_NET_TRANSPORT_NONE && named != CW_NET_TRANSPORT_NONE && its != named) {
            return cw_error_text(
                error, error_bytes, CW_ERROR_ARGUMENT,
                "rank %" PRIu32 " is to use %s and rank %" PRIu32
                " %s, and they share their interfaces: --transport (CAUSEWAY_TRANSPORT) has to name the same transport "
                "for all ranks of a host",
                first, names[named], rank, names[its]);
        }
        first = named == CW_NET_TRANSPORT_NONE ? rank : first;
        named = its != CW_NET_TRANSPORT_NONE ? its : named;
    }
    if (named == CW_NET_TRANSPORT_DEVICE && offers[own].transport != CW_NET_TRANSPORT_DEVICE) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "rank %" PRIu32 " of the same host has a device of its own, and this rank has none: "
                             "--transport (CAUSEWAY_TRANSPORT) has to name one for each rank, like 0000:03:02.{local}",
                             first);
    }
    if (named == CW_NET_TRANSPORT_AF_PACKET) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "rank %" PRIu32
                             " is to use af_packet, which is a transport of the host's dataplane: start "
                             "`causeway node --transport af_packet:NAME` there, and give --transport node; or use "
                             "sockets: --transport udp, which is the default",
                             first);
    }
    *transport = named != CW_NET_TRANSPORT_NONE ? named : CW_NET_TRANSPORT_UDP;
    return CW_OK;
}

bool cw_net_transport_all_sockets(const struct cw_net_offer *offers, uint32_t count)
{
    for (uint32_t rank = 0; rank < count; rank++) {
        if (offers[rank].transport > CW_NET_TRANSPORT_UDP) {
            return false;
        }
    }
    return true;
}

/* ---- what it takes ---- */

static int privilege_check(char *error, size_t error_bytes)
{
    int probe = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    int failed = probe < 0 ? errno : 0;
    if (probe >= 0) {
        close(probe);
    }
    if (failed == EPERM || failed == EACCES) {
        return cw_error_text(error, error_bytes, CW_ERROR_PERMISSION,
                             "--transport af_packet needs root (or CAP_NET_RAW)");
    }
    if (failed == EAFNOSUPPORT) {
        return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                             "--transport af_packet: this kernel has no such sockets (CONFIG_PACKET)");
    }
    return failed == 0
               ? CW_OK
               : cw_error_text(error, error_bytes, cw_status_of_errno(failed), "--transport af_packet: socket: %s%s",
                               strerror(failed), cw_errno_remedy(failed));
}

/* The content of the first attribute of a type; NULL: there is none. */
static const uint8_t *attribute_find(const uint8_t *at, size_t left, uint32_t type, size_t *bytes)
{
    struct rtattr attribute;
    while (left >= sizeof(attribute)) {
        memcpy(&attribute, at, sizeof(attribute));
        size_t length = RTA_ALIGN((size_t)attribute.rta_len);
        if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > left) {
            return NULL;
        }
        if ((attribute.rta_type & NLA_TYPE_MASK) == type) {
            *bytes = attribute.rta_len - sizeof(attribute);
            return at + sizeof(attribute);
        }
        at += length < left ? length : left;
        left -= length < left ? length : left;
    }
    return NULL;
}

/* Whether the attributes of a link are those of a VLAN that leaves its tag in the frames which it hands up. */
static bool leaves_tags(const uint8_t *attributes, size_t bytes)
{
    struct ifla_vlan_flags flags = {.flags = 0}; /* the kernel leaves out what is 0 */
    size_t inside = 0, name = 0, of_kind = 0, length = 0;
    const uint8_t *info = attribute_find(attributes, bytes, IFLA_LINKINFO, &inside);
    const uint8_t *kind = info == NULL ? NULL : attribute_find(info, inside, IFLA_INFO_KIND, &name);
    const uint8_t *data = info == NULL ? NULL : attribute_find(info, inside, IFLA_INFO_DATA, &of_kind);
    if (kind == NULL || name != sizeof("vlan") || memcmp(kind, "vlan", name) != 0 || data == NULL) {
        return false;
    }
    const uint8_t *found = attribute_find(data, of_kind, IFLA_VLAN_FLAGS, &length);
    if (found != NULL && length >= sizeof(flags)) {
        memcpy(&flags, found, sizeof(flags));
    }
    return (flags.flags & VLAN_FLAG_REORDER_HDR) == 0;
}

/* Passes on the kernel's attributes of an interface; false if there are none. */
static bool link_query(const char *interface, bool (*says)(const uint8_t *attributes, size_t bytes))
{
    const struct {
        struct nlmsghdr header;
        struct ifinfomsg message;
    } request = {
        .header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
        .message = {.ifi_family = AF_UNSPEC, .ifi_index = (int)if_nametoindex(interface)},
    };
    const size_t head = NLMSG_LENGTH(sizeof(struct ifinfomsg));
    struct nlmsghdr header = {.nlmsg_len = 0};
    _Alignas(struct nlmsghdr) uint8_t answer[LINK_BYTES];
    int file = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    ssize_t got = file >= 0 && send(file, &request, sizeof(request), 0) == (ssize_t)sizeof(request)
                      ? recv(file, answer, sizeof(answer), 0)
                      : -1;
    if (file >= 0) {
        close(file);
    }
    if (got >= (ssize_t)head) {
        memcpy(&header, answer, sizeof(header));
    }
    return header.nlmsg_type == RTM_NEWLINK && header.nlmsg_len >= head && header.nlmsg_len <= (size_t)got &&
           says(answer + head, header.nlmsg_len - head);
}

int cw_net_transport_check(const char *interface, char *error, size_t error_bytes)
{
#if !defined(CW_HAVE_DPDK)
    (void)interface, (void)privilege_check, (void)leaves_tags, (void)link_query;
    return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                         "--transport af_packet: this Causeway was built without DPDK, which it needs");
#else
    int status = privilege_check(error, error_bytes);
    if (status == CW_OK && link_query(interface, leaves_tags)) {
        return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                             "--transport af_packet: %s leaves VLAN tags in the frames that it receives: ip link set "
                             "%s type vlan reorder_hdr on",
                             interface, interface);
    }
    return status;
#endif
}
