#include "control/net/address.h"

#include <linux/if_addr.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "control/net/netlink.h"
#include "dataplane/status.h"

struct list {
    struct cw_address *addresses;
    uint32_t count_max;
    uint32_t *count;
};

static enum cw_address_state state_of(uint32_t flags)
{
    bool is_tentative = (flags & IFA_F_TENTATIVE) != 0 && (flags & IFA_F_OPTIMISTIC) == 0;
    if (is_tentative || (flags & IFA_F_DADFAILED) != 0) {
        return CW_ADDRESS_UNUSABLE;
    }
    return (flags & IFA_F_DEPRECATED) != 0 ? CW_ADDRESS_DEPRECATED : CW_ADDRESS_PREFERRED;
}

static int address_parse(void *context, const struct nlmsghdr *header)
{
    struct list *list = context;
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof(struct ifaddrmsg))) {
        return CW_OK;
    }
    const struct ifaddrmsg *message = NLMSG_DATA(header);
    const uint8_t *place = (const uint8_t *)message + NLMSG_ALIGN(sizeof(*message));
    const uint8_t *end = (const uint8_t *)header + header->nlmsg_len;
    struct cw_address found = {.interface = message->ifa_index};
    uint32_t flags = message->ifa_flags;
    size_t bytes = message->ifa_family == AF_INET ? 4 : sizeof(found.ip.bytes);
    bool is_local = false;
    for (const struct rtattr *at = cw_netlink_attribute(&place, end); at != NULL;
         at = cw_netlink_attribute(&place, end)) {
        bool names_it = at->rta_type == IFA_LOCAL || (at->rta_type == IFA_ADDRESS && !is_local);
        if (names_it && RTA_PAYLOAD(at) == bytes) {
            is_local = at->rta_type == IFA_LOCAL; /* else it may be the other end's */
            found.ip = bytes == 4 ? cw_ip_v4(0) : found.ip;
            memcpy(found.ip.bytes + sizeof(found.ip.bytes) - bytes, RTA_DATA(at), bytes);
        } else if (at->rta_type == IFA_FLAGS && RTA_PAYLOAD(at) >= sizeof(flags)) {
            memcpy(&flags, RTA_DATA(at), sizeof(flags));
        }
    }
    found.state = state_of(flags);
    if ((message->ifa_family != AF_INET && message->ifa_family != AF_INET6) || cw_ip_is_none(&found.ip) ||
        found.state == CW_ADDRESS_PREFERRED) {
        return CW_OK;
    }
    if (*list->count == list->count_max) {
        return CW_ERROR_NOT_FOUND;
    }
    list->addresses[(*list->count)++] = found;
    return CW_OK;
}

int cw_addresses_parse(const void *piece, size_t bytes, struct cw_address *addresses, uint32_t count_max,
                       uint32_t *count)
{
    struct list list = {.addresses = addresses, .count_max = count_max, .count = count};
    return cw_netlink_piece(piece, bytes, RTM_NEWADDR, address_parse, &list);
}

uint32_t cw_addresses_read(struct cw_address *addresses, uint32_t count_max)
{
    const struct {
        struct nlmsghdr header;
        struct ifaddrmsg message;
    } request = {
        .header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETADDR, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .message = {.ifa_family = AF_UNSPEC},
    };
    uint32_t count = 0;
    struct list list = {.addresses = addresses, .count_max = count_max, .count = &count};
    cw_netlink_dump(&request, sizeof(request), RTM_NEWADDR, address_parse, &list);
    return count;
}

enum cw_address_state cw_address_state(const struct cw_address *addresses, uint32_t count, uint32_t interface,
                                       const struct cw_ip *ip)
{
    for (uint32_t i = 0; i < count; i++) {
        if (addresses[i].interface == interface && cw_ip_is_equal(&addresses[i].ip, ip)) {
            return addresses[i].state;
        }
    }
    return CW_ADDRESS_PREFERRED;
}
