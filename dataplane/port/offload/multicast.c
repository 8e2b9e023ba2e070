/* Multicast: groups are filtered by address where the driver can, else by letting more in. It is decided when the first
 * group is joined. */
#include "dataplane/port/ethdev_private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/port/membership.h"

static int filter_by_address(struct ethdev_port *port)
{
    struct rte_ether_addr addresses[CW_PORT_ETHDEV_GROUPS_MAX];
    for (uint32_t i = 0; i < port->group_count; i++) {
        addresses[i] = port->groups[i].address;
    }
    return rte_eth_dev_set_mc_addr_list(port->id, addresses, port->group_count);
}

/* Applies the table of groups: in the way decided earlier, or at the first join in the narrowest one that the driver
 * has. 0 or a negative errno. */
static int filter_apply(struct ethdev_port *port)
{
    bool any = port->group_count > 0;
    if (port->multicast == ETHDEV_MULTICAST_BY_KERNEL) {
        return 0;
    }
    if (port->multicast <= ETHDEV_MULTICAST_BY_ADDRESS) {
        int result = filter_by_address(port);
        if (result != -ENOTSUP || port->multicast == ETHDEV_MULTICAST_BY_ADDRESS) {
            port->multicast = ETHDEV_MULTICAST_BY_ADDRESS;
            return result;
        }
    }
    if (port->multicast == ETHDEV_MULTICAST_UNDECIDED || port->multicast == ETHDEV_MULTICAST_ALL) {
        int result = any ? rte_eth_allmulticast_enable(port->id) : rte_eth_allmulticast_disable(port->id);
        if (result != -ENOTSUP || port->multicast == ETHDEV_MULTICAST_ALL) {
            port->multicast = ETHDEV_MULTICAST_ALL;
            return result;
        }
    }
    if (port->multicast == ETHDEV_MULTICAST_UNDECIDED && rte_eth_promiscuous_get(port->id) == 1) {
        port->multicast = ETHDEV_MULTICAST_UNFILTERED; /* memif: born promiscuous */
    }
    if (port->multicast == ETHDEV_MULTICAST_UNDECIDED || port->multicast == ETHDEV_MULTICAST_PROMISCUOUS) {
        int result = any ? rte_eth_promiscuous_enable(port->id) : rte_eth_promiscuous_disable(port->id);
        if (result != -ENOTSUP || port->multicast == ETHDEV_MULTICAST_PROMISCUOUS) {
            port->multicast = ETHDEV_MULTICAST_PROMISCUOUS;
            return result;
        }
    }
    port->multicast = ETHDEV_MULTICAST_UNFILTERED;
    return 0;
}

static int filter_status(int result)
{
    switch (result) {
    case 0:
        return CW_OK;
    case -ENOSPC:
    case -ENOBUFS:
        return CW_ERROR_LIMIT;
    case -ENOTSUP:
    case -ENODEV:
        return CW_ERROR_UNSUPPORTED;
    default:
        return CW_ERROR_SYSTEM;
    }
}

static struct ethdev_group *group_find(struct ethdev_port *port, const uint8_t mac[6])
{
    for (uint32_t i = 0; i < port->group_count; i++) {
        if (memcmp(port->groups[i].address.addr_bytes, mac, RTE_ETHER_ADDR_LEN) == 0) {
            return &port->groups[i];
        }
    }
    return NULL;
}

/* The kernel's, by the interface that the driver works on. */
static int membership_open(const struct ethdev_port *port, const uint8_t mac[6])
{
    struct rte_eth_dev_info info;
    int failed = rte_eth_dev_info_get(port->id, &info);
    return failed != 0 ? failed : cw_membership_open(mac, info.if_index, !cw_ip_is_v4(&port->selection.ip));
}

int ethdev_join(struct cw_port *base, const uint8_t mac[6])
{
    struct ethdev_port *port = ethdev_of(base);
    struct ethdev_group *group = group_find(port, mac);
    if (group != NULL) {
        group->members++;
        return CW_OK;
    }
    if ((mac[0] & 1) == 0) {
        return CW_ERROR_ARGUMENT;
    }
    if (port->group_count == CW_PORT_ETHDEV_GROUPS_MAX) {
        return CW_ERROR_LIMIT;
    }
    int membership = port->multicast == ETHDEV_MULTICAST_BY_KERNEL ? membership_open(port, mac) : 0;
    if (membership < 0) {
        return filter_status(membership);
    }
    group = &port->groups[port->group_count++];
    memcpy(group->address.addr_bytes, mac, RTE_ETHER_ADDR_LEN);
    group->members = 1;
    group->membership = membership;
    int status = filter_status(filter_apply(port));
    if (status != CW_OK) {
        port->group_count--;
    }
    return status;
}

int ethdev_leave(struct cw_port *base, const uint8_t mac[6])
{
    struct ethdev_port *port = ethdev_of(base);
    struct ethdev_group *group = group_find(port, mac);
    if (group == NULL) {
        return CW_ERROR_NOT_FOUND;
    }
    if (--group->members > 0) {
        return CW_OK;
    }
    if (port->multicast == ETHDEV_MULTICAST_BY_KERNEL) {
        close(group->membership);
    }
    *group = port->groups[--port->group_count];
    return filter_status(filter_apply(port));
}

void ethdev_filter_close(struct ethdev_port *port)
{
    for (uint32_t i = 0; i < port->group_count && port->multicast == ETHDEV_MULTICAST_BY_KERNEL; i++) {
        close(port->groups[i].membership);
    }
}

const char *cw_port_ethdev_multicast(const struct cw_port *base)
{
    switch (((const struct ethdev_port *)base)->multicast) {
    case ETHDEV_MULTICAST_UNDECIDED:
        return "nothing joined yet";
    case ETHDEV_MULTICAST_BY_ADDRESS:
        return "filtered by address";
    case ETHDEV_MULTICAST_BY_KERNEL:
        return "by address, as the kernel is member of the groups";
    case ETHDEV_MULTICAST_ALL:
        return "all multicast, as the driver cannot filter by address";
    case ETHDEV_MULTICAST_PROMISCUOUS:
        return "promiscuous, as the driver cannot filter multicast";
    case ETHDEV_MULTICAST_UNFILTERED:
        return "everything, as the driver has no filter";
    }
    return "unknown";
}

static bool multicast_has(struct ethdev_port *port, const struct rte_eth_dev_info *info, char *why)
{
    (void)port;
    (void)info;
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "asked when it has started");
    return true;
}

/* An empty list changes nothing, and a driver without filters refuses it. */
static int multicast_begin(struct ethdev_port *port, char *why)
{
    int result = rte_eth_dev_set_mc_addr_list(port->id, NULL, 0);
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "%s",
             result == -ENOTSUP ? "the driver has no filter for groups: all multicast is let in"
                                : "filters are set as groups are joined");
    return result == -ENOTSUP ? result : 0;
}

const struct ethdev_offload ethdev_offload_multicast = {.has = multicast_has, .begin = multicast_begin};
