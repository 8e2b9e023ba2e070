/* Rules for packets of others: claimed packets come to the port's queue, other UDP and TCP is dropped by the NIC, if it
 * has one queue pair: with several, the rules of one must not drop packets of another without rules. ARP, neighbour
 * discovery and ICMP pass, since the owner of an address answers them. Software checks each packet all the same, so
 * rules that vanish only cost time; rules that drop too much are removed when peers fall silent. */
#include "dataplane/port/ethdev_private.h"

#include <errno.h>
#include <string.h>

enum { ITEMS = 4, RULES_MAX = OFFLOAD_RULES_MAX - 5 /* in addition to those for groups and for dropping */ };

/* A rule in its written form: Ethernet, IP, UDP or TCP, and the action. */
struct rule {
    struct rte_flow_attr attributes;
    struct rte_flow_item items[ITEMS];
    struct rte_flow_item_ipv4 v4, v4_mask;
    struct rte_flow_item_ipv6 v6, v6_mask;
    struct rte_flow_item_udp udp, udp_mask;
    struct rte_flow_action_queue queue;
    struct rte_flow_action actions[2];
};

static void rule_begin(struct rule *rule, bool is_v4, enum rte_flow_item_type transport, bool drops, uint16_t queue)
{
    memset(rule, 0, sizeof(*rule));
    rule->attributes.ingress = 1;
    rule->attributes.priority = drops;
    rule->items[0].type = RTE_FLOW_ITEM_TYPE_ETH;
    rule->items[1].type = is_v4 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6;
    rule->items[2].type = transport;
    rule->items[3].type = RTE_FLOW_ITEM_TYPE_END;
    rule->actions[0].type = drops ? RTE_FLOW_ACTION_TYPE_DROP : RTE_FLOW_ACTION_TYPE_QUEUE;
    rule->actions[0].conf = drops ? NULL : &rule->queue;
    rule->queue.index = queue;
    rule->actions[1].type = RTE_FLOW_ACTION_TYPE_END;
}

/* All ports that differ from this one in the low bits alone that `mask` leaves out. */
static void rule_ports(struct rule *rule, uint16_t port, uint16_t mask)
{
    rule->udp.hdr.dst_port = rte_cpu_to_be_16(port);
    rule->udp_mask.hdr.dst_port = rte_cpu_to_be_16(mask);
    rule->items[2].spec = &rule->udp;
    rule->items[2].mask = &rule->udp_mask;
}

/* To the own address, or, `is_group`, to any group. */
static void rule_address(struct rule *rule, const struct cw_ip *ip, bool is_group)
{
    bool is_v4 = cw_ip_is_v4(ip);
    if (is_v4) {
        rule->v4.hdr.dst_addr = rte_cpu_to_be_32(is_group ? 0xe0000000u : cw_ip_to_v4(ip));
        rule->v4_mask.hdr.dst_addr = rte_cpu_to_be_32(is_group ? 0xf0000000u : UINT32_MAX);
    } else {
        memcpy(rule->v6.hdr.dst_addr, ip->bytes, 16);
        memset(rule->v6_mask.hdr.dst_addr, is_group ? 0 : 0xff, 16);
        rule->v6.hdr.dst_addr[0] = is_group ? 0xff : ip->bytes[0];
        rule->v6_mask.hdr.dst_addr[0] = 0xff;
    }
    rule->items[1].spec = is_v4 ? (const void *)&rule->v4 : &rule->v6;
    rule->items[1].mask = is_v4 ? (const void *)&rule->v4_mask : &rule->v6_mask;
}

static int rule_create(struct ethdev_port *port, const struct rule *rule, char *why)
{
    struct ethdev_offloads *offloads = &port->offloads;
    struct rte_flow_error error = {.message = NULL};
    int result = rte_flow_validate(port->id, &rule->attributes, rule->items, rule->actions, &error);
    if (result == 0) {
        struct rte_flow *made = rte_flow_create(port->id, &rule->attributes, rule->items, rule->actions, &error);
        result = made == NULL ? -EINVAL : 0;
        if (made != NULL) {
            offloads->rules[offloads->rule_count++] = made;
        }
    }
    if (result != 0) {
        snprintf(why, CW_OFFLOAD_WHY_BYTES, "the NIC takes no such rule: %s",
                 error.message != NULL ? error.message : strerror(-result));
    }
    return result;
}

static void rules_destroy(struct ethdev_port *port)
{
    struct ethdev_offloads *offloads = &port->offloads;
    while (offloads->rule_count > 0) {
        struct rte_flow_error error;
        (void)rte_flow_destroy(port->id, offloads->rules[--offloads->rule_count], &error);
    }
}

/* Rules for claimed packets first, as a NIC that accepts the one and not the other must not drop them. */
static int rules_create(struct ethdev_port *port, char *why)
{
    const struct cw_port_claim *claim = &port->offloads.claim;
    bool is_v4 = cw_ip_is_v4(&claim->ip);
    bool is_first = port->queue == 0; /* groups, and the rest, are its */
    struct rule rule;
    int result = 0;
    for (uint32_t at = claim->udp_port, left = claim->udp_port_count; left > 0 && result == 0;) {
        uint32_t count = cw_offload_ports_block(at, left);
        rule_begin(&rule, is_v4, RTE_FLOW_ITEM_TYPE_UDP, false, port->queue);
        rule_address(&rule, &claim->ip, false);
        rule_ports(&rule, (uint16_t)at, (uint16_t) ~(count - 1));
        result = rule_create(port, &rule, why);
        at += count;
        left -= count;
    }
    if (result == 0 && is_first) {
        rule_begin(&rule, is_v4, RTE_FLOW_ITEM_TYPE_UDP, false, port->queue);
        rule_address(&rule, &claim->ip, true);
        rule_ports(&rule, claim->group_port != 0 ? claim->group_port : claim->udp_port, UINT16_MAX);
        result = rule_create(port, &rule, why);
    }
    for (uint32_t i = 0; i < 4 && result == 0 && port->queue_count == 1; i++) {
        rule_begin(&rule, i % 2 == 0, i < 2 ? RTE_FLOW_ITEM_TYPE_UDP : RTE_FLOW_ITEM_TYPE_TCP, true, 0);
        result = rule_create(port, &rule, why);
    }
    if (result != 0) {
        rules_destroy(port);
        return result;
    }
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "%u rules", port->offloads.rule_count);
    port->port.info.steers = true;
    return 0;
}

static bool steer_has(struct ethdev_port *port, const struct rte_eth_dev_info *info, char *why)
{
    (void)port;
    (void)info;
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "asked when it has started");
    return true;
}

/* Without a claim there is nothing to distinguish: the NIC is only tried for whether it takes such a rule. */
static int steer_begin(struct ethdev_port *port, char *why)
{
    const struct cw_port_claim *claim = &port->offloads.claim;
    uint32_t blocks = cw_offload_ports_blocks(claim->udp_port, claim->udp_port_count);
    if (blocks > RULES_MAX) {
        snprintf(why, CW_OFFLOAD_WHY_BYTES, "%u UDP ports from %u on take %u rules: %d at most", claim->udp_port_count,
                 claim->udp_port, blocks, RULES_MAX);
        return -ENOTSUP;
    }
    if (claim->udp_port_count > 0) {
        return rules_create(port, why);
    }
    struct rule rule;
    struct rte_flow_error error = {.message = NULL};
    rule_begin(&rule, true, RTE_FLOW_ITEM_TYPE_UDP, true, 0);
    int result = rte_flow_validate(port->id, &rule.attributes, rule.items, rule.actions, &error);
    if (result != 0) {
        snprintf(why, CW_OFFLOAD_WHY_BYTES, "the NIC takes no such rule: %s",
                 error.message != NULL ? error.message : strerror(-result));
        return result;
    }
    snprintf(why, CW_OFFLOAD_WHY_BYTES, "rules once an endpoint claims packets");
    return 0;
}

static void steer_end(struct ethdev_port *port)
{
    rules_destroy(port);
    port->port.info.steers = false;
}

const struct ethdev_offload ethdev_offload_steer = {.has = steer_has, .begin = steer_begin, .end = steer_end};
