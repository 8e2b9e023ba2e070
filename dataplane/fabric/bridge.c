#include "dataplane/fabric/bridge.h"

#include <stdlib.h>

#include "dataplane/fabric/bridge_addresses.h"
#include "dataplane/fabric/bridge_groups.h"
#include "dataplane/fabric/igmp.h"

static const uint64_t NS_PER_SECOND = 1000000000u;
static const uint64_t NEVER = UINT64_MAX;

struct bridge_port {
    uint64_t query_ns; /* a query came in here last; NEVER */
    bool router_fixed;
    bool router_listed; /* in router_ports, since it was one at some time */
    bool mesh;
    bool chosen; /* scratch: already in the list of ports that is being made */
};

struct cw_bridge {
    struct cw_bridge_config config;
    struct cw_bridge_counters counters;
    struct cw_bridge_addresses addresses;
    struct cw_bridge_groups groups;
    uint64_t querier_seen_ns; /* NEVER: none yet */
    uint64_t querier_since_ns;
    uint32_t router_port_count;
    uint16_t *router_ports;
    struct bridge_port *ports;
};

/* The list of ports under construction. */
struct choice {
    uint16_t *ports;
    uint32_t count;
    uint32_t port_in;
};

void cw_bridge_config_init(struct cw_bridge_config *config)
{
    *config = (struct cw_bridge_config){
        .address_count_max = 4096,
        .group_count_max = 1024,
        .address_age_ns = 300 * NS_PER_SECOND, /* IEEE 802.1D */
        .group_age_ns = 260 * NS_PER_SECOND,   /* RFC 3376, 8.4 */
        .querier_age_ns = 255 * NS_PER_SECOND, /* RFC 3376, 8.5 */
        .snooping = true,
        .flood_unregistered = true,
    };
}

int cw_bridge_create(const struct cw_bridge_config *config, struct cw_bridge **bridge_out)
{
    struct cw_bridge *bridge;

    if (config->port_count < 1 || config->port_count > CW_BRIDGE_PORTS_MAX || config->address_count_max < 1 ||
        config->address_count_max > CW_BRIDGE_ADDRESSES_MAX || config->group_count_max < 1 ||
        config->group_count_max > CW_BRIDGE_GROUPS_MAX) {
        return CW_ERROR_ARGUMENT;
    }
    bridge = calloc(1, sizeof(*bridge));
    if (!bridge) {
        return CW_ERROR_MEMORY;
    }
    bridge->config = *config;
    bridge->querier_seen_ns = NEVER;
    bridge->ports = calloc(config->port_count, sizeof(*bridge->ports));
    bridge->router_ports = calloc(config->port_count, sizeof(*bridge->router_ports));
    if (!bridge->ports || !bridge->router_ports ||
        cw_bridge_addresses_init(&bridge->addresses, config->address_count_max, config->address_age_ns,
                                 config->hash_seed) != CW_OK ||
        cw_bridge_groups_init(&bridge->groups, config->group_count_max, config->port_count, config->hash_seed) !=
            CW_OK) {
        cw_bridge_destroy(bridge);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t port = 0; port < config->port_count; port++) {
        bridge->ports[port].query_ns = NEVER;
    }
    *bridge_out = bridge;
    return CW_OK;
}

void cw_bridge_destroy(struct cw_bridge *bridge)
{
    if (!bridge) {
        return;
    }
    cw_bridge_addresses_dispose(&bridge->addresses);
    cw_bridge_groups_dispose(&bridge->groups);
    free(bridge->router_ports);
    free(bridge->ports);
    free(bridge);
}

static uint64_t mac_key(const uint8_t mac[6])
{
    uint64_t key = 0;

    for (int i = 0; i < 6; i++) {
        key = key << 8 | mac[i];
    }
    return key;
}

static bool key_is_multicast(uint64_t key)
{
    return key >> 40 & 1;
}

/* ---- choosing ports ---- */

static void port_choose(struct cw_bridge *bridge, struct choice *choice, uint32_t port)
{
    struct bridge_port *entry = &bridge->ports[port];

    if (port == choice->port_in || entry->chosen || (entry->mesh && bridge->ports[choice->port_in].mesh)) {
        return;
    }
    entry->chosen = true;
    choice->ports[choice->count++] = (uint16_t)port;
}

static void all_choose(struct cw_bridge *bridge, struct choice *choice)
{
    for (uint32_t port = 0; port < bridge->config.port_count; port++) {
        port_choose(bridge, choice, port);
    }
}

static bool is_router_port(const struct cw_bridge *bridge, const struct bridge_port *port, uint64_t now_ns)
{
    return port->router_fixed || (port->query_ns != NEVER && now_ns - port->query_ns <= bridge->config.querier_age_ns);
}

static void router_ports_choose(struct cw_bridge *bridge, struct choice *choice, uint64_t now_ns)
{
    for (uint32_t i = 0; i < bridge->router_port_count; i++) {
        if (is_router_port(bridge, &bridge->ports[bridge->router_ports[i]], now_ns)) {
            port_choose(bridge, choice, bridge->router_ports[i]);
        }
    }
}

static bool querier_present(const struct cw_bridge *bridge, uint64_t now_ns)
{
    return bridge->querier_seen_ns != NEVER && now_ns - bridge->querier_seen_ns <= bridge->config.querier_age_ns;
}

/* Members that reported before this time are too old. */
static uint64_t members_since(const struct cw_bridge *bridge, uint64_t now_ns)
{
    uint64_t age_ns = bridge->config.group_age_ns;

    /* A querier that has just begun gives all hosts the full time to answer. */
    if (!querier_present(bridge, now_ns) || now_ns - bridge->querier_since_ns <= age_ns) {
        return 0;
    }
    return now_ns - age_ns;
}

/* Chooses the members of the group; false if it has none. */
static bool members_choose(struct cw_bridge *bridge, struct choice *choice, uint64_t now_ns, uint64_t key)
{
    struct cw_bridge_groups *groups = &bridge->groups;
    uint32_t group = cw_bridge_groups_find(groups, key);
    uint64_t since_ns = group ? members_since(bridge, now_ns) : 0;

    if (since_ns > 0) {
        cw_bridge_groups_expire(groups, group, since_ns);
        group = cw_bridge_groups_find(groups, key);
    }
    if (!group) {
        return false;
    }
    for (uint32_t i = 0; i < groups->groups[group].member_count; i++) {
        port_choose(bridge, choice, groups->member_ports[(size_t)group * groups->port_count + i]);
    }
    return true;
}

/* ---- IGMP ---- */

static void router_port_list(struct cw_bridge *bridge, uint32_t port)
{
    if (!bridge->ports[port].router_listed) {
        bridge->ports[port].router_listed = true;
        bridge->router_ports[bridge->router_port_count++] = (uint16_t)port;
    }
}

static void query_note(struct cw_bridge *bridge, uint64_t now_ns, uint32_t port, const struct cw_igmp *igmp)
{
    if (igmp->source_ipv4 == 0) {
        return; /* another switch asks on nobody's behalf (RFC 4541, 2.1.1) */
    }
    if (!querier_present(bridge, now_ns)) {
        bridge->querier_since_ns = now_ns;
    }
    bridge->querier_seen_ns = now_ns;
    bridge->ports[port].query_ns = now_ns;
    router_port_list(bridge, port);
}

/* True if the group has a member that is not reached through a router port. */
static bool has_member_here(const struct cw_bridge *bridge, uint64_t now_ns, uint64_t key)
{
    const struct cw_bridge_groups *groups = &bridge->groups;
    uint32_t group = cw_bridge_groups_find(groups, key);

    for (uint32_t i = 0; group && i < groups->groups[group].member_count; i++) {
        uint16_t port = groups->member_ports[(size_t)group * groups->port_count + i];

        if (!is_router_port(bridge, &bridge->ports[port], now_ns)) {
            return true;
        }
    }
    return false;
}

/* True if routers need no notice: a leave of a host that was not the last one here. */
static bool report_note(struct cw_bridge *bridge, uint64_t now_ns, uint32_t port, struct cw_igmp *igmp)
{
    uint32_t group_ipv4;
    bool is_join, is_home = false;

    bridge->counters.igmp_reports++;
    while (cw_igmp_next(igmp, &group_ipv4, &is_join)) {
        uint64_t key = CW_BRIDGE_GROUP_IPV4 | group_ipv4;

        if (group_ipv4 >> 8 == 0xe00000) {
            continue; /* 224.0.0.x goes everywhere anyway */
        }
        if (!is_join) {
            cw_bridge_groups_leave(&bridge->groups, key, (uint16_t)port, false);
            is_home = has_member_here(bridge, now_ns, key);
        } else if (!cw_bridge_groups_join(&bridge->groups, key, (uint16_t)port, now_ns)) {
            cw_bridge_groups_sweep(&bridge->groups, now_ns, members_since(bridge, now_ns));
            if (!cw_bridge_groups_join(&bridge->groups, key, (uint16_t)port, now_ns)) {
                bridge->counters.groups_full++;
            }
        }
    }
    return is_home;
}

enum igmp_way { IGMP_AS_OTHERS, IGMP_TO_ROUTERS, IGMP_NOWHERE };

/* Acts upon IGMP; says where the frame goes. */
static enum igmp_way igmp_note(struct cw_bridge *bridge, uint64_t now_ns, uint32_t port, const uint8_t *frame,
                               uint32_t length)
{
    struct cw_igmp igmp;
    bool is_home;

    switch (cw_igmp_parse(frame, length, &igmp)) {
    case CW_IGMP_NONE:
        return IGMP_AS_OTHERS;
    case CW_IGMP_MALFORMED:
        bridge->counters.igmp_malformed++;
        return IGMP_AS_OTHERS;
    case CW_IGMP_QUERY:
        query_note(bridge, now_ns, port, &igmp);
        return IGMP_AS_OTHERS;
    case CW_IGMP_REPORT:
        is_home = report_note(bridge, now_ns, port, &igmp);
        return !igmp.suppresses ? IGMP_AS_OTHERS : is_home ? IGMP_NOWHERE : IGMP_TO_ROUTERS;
    }
    return IGMP_AS_OTHERS;
}

/* ---- forwarding ---- */

/* The IPv4 multicast address the frame goes to, 0: none. */
static uint32_t ipv4_group(const uint8_t *frame, uint32_t length)
{
    const uint8_t *destination = frame + 14 + 16;

    if (length < 14 + 20 || frame[12] != 8 || frame[13] != 0 || frame[0] != 1 || frame[1] != 0 || frame[2] != 0x5e ||
        destination[0] >> 4 != 0xe) {
        return 0;
    }
    return (uint32_t)destination[0] << 24 | (uint32_t)destination[1] << 16 | (uint32_t)destination[2] << 8 |
           destination[3];
}

static void multicast_forward(struct cw_bridge *bridge, struct choice *choice, uint64_t now_ns, uint64_t key,
                              const uint8_t *frame, uint32_t length)
{
    uint32_t ipv4 = ipv4_group(frame, length);
    bool registered;

    if (ipv4 != 0 && bridge->config.snooping) {
        enum igmp_way way = igmp_note(bridge, now_ns, choice->port_in, frame, length);

        if (way == IGMP_TO_ROUTERS) {
            router_ports_choose(bridge, choice, now_ns);
        }
        if (way != IGMP_AS_OTHERS) {
            return;
        }
    }
    registered = members_choose(bridge, choice, now_ns, key);
    if (ipv4 != 0 && members_choose(bridge, choice, now_ns, CW_BRIDGE_GROUP_IPV4 | ipv4)) {
        registered = true;
    }
    if (registered) {
        router_ports_choose(bridge, choice, now_ns);
    } else if (ipv4 == 0 || ipv4 >> 8 == 0xe00000) {
        all_choose(bridge, choice);
    } else {
        bridge->counters.flooded_group++;
        if (bridge->config.flood_unregistered) {
            all_choose(bridge, choice);
        } else {
            router_ports_choose(bridge, choice, now_ns);
        }
    }
}

static void unicast_forward(struct cw_bridge *bridge, struct choice *choice, uint64_t now_ns, uint64_t key)
{
    int port = cw_bridge_addresses_find(&bridge->addresses, now_ns, key);

    if (port >= 0) {
        port_choose(bridge, choice, (uint32_t)port);
    } else {
        bridge->counters.flooded_unknown++;
        all_choose(bridge, choice);
    }
}

/* False: the frame is malformed or not for bridges to forward. */
static bool source_learn(struct cw_bridge *bridge, uint64_t now_ns, uint32_t port, const uint8_t *frame,
                         uint32_t length)
{
    uint64_t source;

    if (length < CW_BRIDGE_FRAME_MIN_BYTES) {
        bridge->counters.dropped_short++;
        return false;
    }
    source = mac_key(frame + 6);
    if (source == 0 || key_is_multicast(source)) {
        bridge->counters.dropped_source++;
        return false;
    }
    switch (cw_bridge_addresses_learn(&bridge->addresses, now_ns, source, (uint16_t)port)) {
    case CW_BRIDGE_LEARN_FULL:
        bridge->counters.addresses_full++;
        break;
    case CW_BRIDGE_LEARN_MOVED:
        bridge->counters.addresses_moved++;
        break;
    case CW_BRIDGE_LEARN_KNOWN:
    case CW_BRIDGE_LEARN_NEW:
        break;
    }
    return true;
}

uint32_t cw_bridge_forward(struct cw_bridge *bridge, uint64_t now_ns, uint32_t port_in, const uint8_t *frame,
                           uint32_t length, uint16_t *ports)
{
    struct choice choice = {.ports = ports, .port_in = port_in};
    uint64_t destination;

    if (port_in >= bridge->config.port_count || !source_learn(bridge, now_ns, port_in, frame, length)) {
        return 0;
    }
    destination = mac_key(frame);
    if (destination >> 4 == 0x0180c200000) {
        bridge->counters.dropped_reserved++;
        return 0;
    }
    if (destination == 0xffffffffffff) {
        all_choose(bridge, &choice);
    } else if (key_is_multicast(destination)) {
        multicast_forward(bridge, &choice, now_ns, destination, frame, length);
    } else {
        unicast_forward(bridge, &choice, now_ns, destination);
    }
    for (uint32_t i = 0; i < choice.count; i++) {
        bridge->ports[ports[i]].chosen = false;
    }
    if (choice.count > 0) {
        bridge->counters.forwarded++;
    } else {
        bridge->counters.dropped_home++;
    }
    return choice.count;
}

/* ---- settings ---- */

int cw_bridge_address_set(struct cw_bridge *bridge, const uint8_t mac[6], uint32_t port)
{
    uint64_t key = mac_key(mac);

    if (key == 0 || key_is_multicast(key) || port >= bridge->config.port_count) {
        return CW_ERROR_ARGUMENT;
    }
    return cw_bridge_addresses_set(&bridge->addresses, key, (uint16_t)port) ? CW_OK : CW_ERROR_LIMIT;
}

int cw_bridge_group_join(struct cw_bridge *bridge, const uint8_t mac[6], uint32_t port)
{
    uint64_t key = mac_key(mac);

    if (!key_is_multicast(key) || port >= bridge->config.port_count) {
        return CW_ERROR_ARGUMENT;
    }
    return cw_bridge_groups_join(&bridge->groups, key, (uint16_t)port, CW_BRIDGE_MEMBER_FIXED) ? CW_OK : CW_ERROR_LIMIT;
}

int cw_bridge_group_leave(struct cw_bridge *bridge, const uint8_t mac[6], uint32_t port)
{
    uint64_t key = mac_key(mac);

    if (!key_is_multicast(key) || port >= bridge->config.port_count) {
        return CW_ERROR_ARGUMENT;
    }
    return cw_bridge_groups_leave(&bridge->groups, key, (uint16_t)port, true) ? CW_OK : CW_ERROR_NOT_FOUND;
}

void cw_bridge_router_port_set(struct cw_bridge *bridge, uint32_t port, bool is_router)
{
    if (port < bridge->config.port_count) {
        bridge->ports[port].router_fixed = is_router;
        router_port_list(bridge, port);
    }
}

void cw_bridge_flood_unregistered_set(struct cw_bridge *bridge, bool floods)
{
    bridge->config.flood_unregistered = floods;
}

void cw_bridge_mesh_port_set(struct cw_bridge *bridge, uint32_t port, bool is_mesh)
{
    if (port < bridge->config.port_count) {
        bridge->ports[port].mesh = is_mesh;
    }
}

void cw_bridge_port_flush(struct cw_bridge *bridge, uint32_t port)
{
    if (port < bridge->config.port_count) {
        cw_bridge_addresses_flush(&bridge->addresses, (uint16_t)port);
        cw_bridge_groups_flush(&bridge->groups, (uint16_t)port);
        bridge->ports[port].query_ns = NEVER;
    }
}

uint32_t cw_bridge_address_count(const struct cw_bridge *bridge)
{
    return bridge->addresses.count;
}

uint32_t cw_bridge_group_count(const struct cw_bridge *bridge)
{
    return bridge->groups.count;
}

const struct cw_bridge_counters *cw_bridge_counters(const struct cw_bridge *bridge)
{
    return &bridge->counters;
}
