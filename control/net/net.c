#include "control/net/net.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/net/address.h"
#include "control/net/transport.h"
#include "control/settings/setting.h"
#include "dataplane/base/machine.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"

enum { LIST_BYTES = 500, TEXT_BYTES = 64, STATES_MAX = 64, NONE = -1 };

/* ---- what CAUSEWAY_TRANSPORT leaves ---- */

struct wish {
    const char *text; /* NULL: none */
    enum cw_net_transport transport;
    struct cw_ip ip; /* a subnet or an address */
    uint32_t bits;   /* of it, as cw_ip_shares counts them; UINT32_MAX: it is an interface */
};

static int wish_read(struct wish *wish, char *error, size_t error_bytes)
{
    char base[TEXT_BYTES];
    const char *text = cw_setting(CW_SETTING_TRANSPORT);
    *wish = (struct wish){.bits = UINT32_MAX};
    wish->transport = text == NULL ? CW_NET_TRANSPORT_NONE : cw_net_transport_read(text, &text);
    wish->text = text == NULL || text[0] == 0 ? NULL : text;
    if (wish->text == NULL) {
        return CW_OK;
    }
    snprintf(base, sizeof(base), "%.*s", (int)strcspn(text, "/"), text);
    const char *slash = strchr(text, '/');
    if (cw_ip_read(base, &wish->ip)) {
        char *end = NULL;
        uint32_t before = cw_ip_is_v4(&wish->ip) ? CW_IP_V4_BITS : 0;
        unsigned long prefix = slash == NULL ? 128 - before : strtoul(slash + 1, &end, 10);
        if (prefix > 128 - before || (slash != NULL && (end == slash + 1 || *end != 0))) {
            return cw_error_text(
                error, error_bytes, CW_ERROR_ARGUMENT,
                "--transport (CAUSEWAY_TRANSPORT) is '%.60s': a subnet has 0 to %u bits, like 10.1.0.0/16 or fd77::/64",
                text, 128 - before);
        }
        wish->bits = before + (uint32_t)prefix;
    } else if (slash != NULL || strlen(text) >= IF_NAMESIZE) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "--transport (CAUSEWAY_TRANSPORT) is '%.60s': an interface (eth0), an address (10.1.0.7) or a subnet "
            "(10.1.0.0/16) is wanted, or a transport: " CW_NET_TRANSPORT_WORDS,
            text);
    }
    return CW_OK;
}

static bool wish_allows(const struct wish *wish, const char *interface, const struct cw_ip *ip)
{
    if (wish->text == NULL) {
        return true;
    }
    return wish->bits == UINT32_MAX
               ? strcmp(wish->text, interface) == 0
               : cw_ip_is_v4(&wish->ip) == cw_ip_is_v4(ip) && cw_ip_shares(&wish->ip, ip, wish->bits);
}

/* ---- interfaces ---- */

/* Whether the default route leaves by it: proc(5) has those of IPv4, and of IPv6 as destination, prefix, ..., name. */
static bool is_default(const char *interface, bool is_v6)
{
    char line[256], name[IF_NAMESIZE + 1];
    unsigned int destination, prefix;
    bool found = false;
    FILE *file = fopen(is_v6 ? "/proc/net/ipv6_route" : "/proc/net/route", "re");
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        found = is_v6 ? sscanf(line, "%*s %x %*s %*s %*s %*s %*s %*s %*s %16s", &prefix, name) == 2 && prefix == 0
                      : sscanf(line, "%16s %x", name, &destination) == 2 && destination == 0;
        found = found && strcmp(name, interface) == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

static bool sysfs_has(const char *interface, const char *name)
{
    char path[96 + IF_NAMESIZE];
    snprintf(path, sizeof(path), "/sys/class/net/%s/%s", interface, name);
    return access(path, F_OK) == 0;
}

/* Whether it is on top of others, as a VLAN, a bond, a bridge. */
static bool has_lower(const char *interface)
{
    char path[64 + IF_NAMESIZE];
    bool found = false;
    snprintf(path, sizeof(path), "/sys/class/net/%s", interface);
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder != NULL && !found && (entry = readdir(folder)) != NULL;) {
        found = strncmp(entry->d_name, "lower_", strlen("lower_")) == 0;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

static enum cw_net_kind kind_of(const char *interface, unsigned int flags)
{
    if ((flags & IFF_POINTOPOINT) != 0 || sysfs_has(interface, "tun_flags")) {
        return CW_NET_TUNNEL;
    }
    return sysfs_has(interface, "device") || has_lower(interface) ? CW_NET_NIC : CW_NET_VIRTUAL;
}

static uint32_t speed_of(const char *interface)
{
    char path[64 + IF_NAMESIZE];
    int speed = 0;
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", interface);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        speed = fscanf(file, "%d", &speed) == 1 && speed > 0 ? speed : 0;
        fclose(file);
    }
    return (uint32_t)speed;
}

static uint16_t mtu_of(const char *interface)
{
    struct ifreq request = {.ifr_mtu = 0};
    int query = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    int mtu = query >= 0 && ioctl(query, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 1500;
    if (query >= 0) {
        close(query);
    }
    return (uint16_t)(mtu < CW_PORT_MTU_MIN            ? CW_PORT_MTU_MIN
                      : mtu > CW_PORT_MTU_ETHERNET_MAX ? CW_PORT_MTU_ETHERNET_MAX
                                                       : mtu);
}

int cw_net_identify(uint8_t network[8])
{
    struct {
        char boot[CW_MACHINE_BOOT_BYTES];
        uint64_t space;
    } whole;
    struct stat status;
    uint8_t hash[crypto_generichash_BYTES_MIN];
    memset(&whole, 0, sizeof(whole));
    if (!cw_machine_boot(whole.boot) || stat("/proc/self/ns/net", &status) != 0) {
        return CW_ERROR_SYSTEM;
    }
    whole.space = status.st_ino;
    (void)crypto_generichash(hash, sizeof(hash), (const uint8_t *)&whole, sizeof(whole), NULL, 0);
    memcpy(network, hash, 8);
    return CW_OK;
}

/* Of an address or a mask. */
static struct cw_ip ip_of(const struct sockaddr *address)
{
    struct cw_ip ip = cw_ip_v4(0);
    if (address->sa_family == AF_INET) {
        memcpy(ip.bytes + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else {
        memcpy(ip.bytes, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
    }
    return ip;
}

/* Bits of a subnet, as cw_ip_shares counts them. */
static uint8_t bits_of(const struct sockaddr *mask)
{
    uint32_t bits = mask != NULL && mask->sa_family == AF_INET ? CW_IP_V4_BITS : 0;
    struct cw_ip ip = mask == NULL ? cw_ip_v4(0) : ip_of(mask);
    for (uint32_t i = bits / 8; i < sizeof(ip.bytes); i++) {
        bits += (uint32_t)__builtin_popcount(ip.bytes[i]);
    }
    return (uint8_t)(mask == NULL ? 128 : bits);
}

/* Addresses of a link alone (fe80::) say nothing without the link's name. */
static bool is_usable(const struct ifaddrs *at)
{
    if (at->ifa_addr == NULL || (at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_RUNNING) == 0) {
        return false;
    }
    return at->ifa_addr->sa_family == AF_INET ||
           (at->ifa_addr->sa_family == AF_INET6 &&
            !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)at->ifa_addr)->sin6_addr));
}

/* An offer in the making, and the list of addresses found, for messages. */
struct making {
    struct cw_net_offer *offer;
    struct wish wish;
    uint32_t interfaces[CW_NET_ADDRESSES]; /* of the offer's addresses */
    struct cw_address states[STATES_MAX];
    uint32_t state_count;
    char list[LIST_BYTES];
    size_t used;
};

/* Whether the offer has an address of the same kind by the same interface. */
static bool has_like(const struct making *making, uint32_t interface, const struct cw_ip *ip)
{
    for (uint32_t i = 0; i < making->offer->count; i++) {
        if (making->interfaces[i] == interface && cw_ip_is_v4(&making->offer->addresses[i].ip) == cw_ip_is_v4(ip)) {
            return true;
        }
    }
    return false;
}

/* Offers the address if it is in this state. */
static void address_offer(struct making *making, const struct ifaddrs *at, enum cw_address_state state)
{
    struct cw_net_offer *offer = making->offer;
    char text[TEXT_BYTES], device[IF_NAMESIZE];
    struct cw_ip ip = ip_of(at->ifa_addr);
    bool is_loopback = (at->ifa_flags & IFF_LOOPBACK) != 0;
    snprintf(device, sizeof(device), "%.*s", (int)strcspn(at->ifa_name, ":"), at->ifa_name); /* behind it: a label */
    uint32_t interface = if_nametoindex(device);
    if (cw_address_state(making->states, making->state_count, interface, &ip) != state) {
        return;
    }
    cw_ip_write(&ip, text);
    if (making->used < sizeof(making->list)) {
        making->used += (size_t)snprintf(making->list + making->used, sizeof(making->list) - making->used, "%s%s %s",
                                         making->used > 0 ? ", " : "", at->ifa_name, text);
    }
    /* loopback only on request: for tests on one host */
    if (offer->count == CW_NET_ADDRESSES || !wish_allows(&making->wish, at->ifa_name, &ip) ||
        (is_loopback && making->wish.text == NULL) ||
        (state == CW_ADDRESS_DEPRECATED && has_like(making, interface, &ip))) {
        return;
    }
    making->interfaces[offer->count] = interface;
    offer->addresses[offer->count++] = (struct cw_net_address){
        .ip = ip,
        .speed_mbps = speed_of(device),
        .mtu_bytes = mtu_of(at->ifa_name),
        .kind = kind_of(device, at->ifa_flags) & 0x7f,
        .bits = bits_of(at->ifa_netmask),
        .is_default = is_default(at->ifa_name, at->ifa_addr->sa_family == AF_INET6),
    };
}

int cw_net_offer_make(struct cw_net_offer *offer, char *error, size_t error_bytes)
{
    static const enum cw_address_state order[] = {CW_ADDRESS_PREFERRED, CW_ADDRESS_DEPRECATED};
    struct making making = {.offer = offer};
    struct ifaddrs *all = NULL;
    memset(offer, 0, sizeof(*offer));
    int status = wish_read(&making.wish, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    offer->transport = (uint8_t)making.wish.transport;
    if (cw_net_identify(offer->network) != CW_OK || getifaddrs(&all) != 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "the interfaces of this host are not known%s",
                             " (mount /proc)");
    }
    making.state_count = cw_addresses_read(making.states, STATES_MAX);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
            if (is_usable(at)) {
                address_offer(&making, at, order[i]);
            }
        }
    }
    freeifaddrs(all);
    if (offer->count == 0 && making.wish.text != NULL) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_NOT_FOUND,
            "--transport (CAUSEWAY_TRANSPORT) is '%.60s', and this host has nothing like that; it has %s%s",
            making.wish.text, making.used > 0 ? making.list : "no address at all",
            making.wish.transport == CW_NET_TRANSPORT_NONE ? "; transports are " CW_NET_TRANSPORT_WORDS : "");
    }
    return CW_OK;
}

void cw_net_interface(const struct cw_ip *ip, char *name, size_t bytes)
{
    struct ifaddrs *all = NULL;
    snprintf(name, bytes, "?");
    if (getifaddrs(&all) != 0) {
        return;
    }
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        struct cw_ip own = is_usable(at) ? ip_of(at->ifa_addr) : cw_ip_v4(0);
        if (cw_ip_is_equal(&own, ip)) {
            snprintf(name, bytes, "%s", at->ifa_name);
        }
    }
    freeifaddrs(all);
}

/* ---- the rule ---- */

static bool is_same_network(const struct cw_net_offer *one, const struct cw_net_offer *other)
{
    return memcmp(one->network, other->network, sizeof(one->network)) == 0;
}

/* Whether a host that does not share its interfaces has the same address. */
static bool is_everywhere(const struct cw_net_offer *offers, uint32_t count, const struct cw_net_offer *own,
                          const struct cw_ip *ip)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < offers[i].count && !is_same_network(&offers[i], own); j++) {
            if (cw_ip_is_equal(&offers[i].addresses[j].ip, ip)) {
                return true;
            }
        }
    }
    return false;
}

/* The first address of an offer in the subnet of an address; NONE. */
static int address_in(const struct cw_net_offer *offers, uint32_t count, uint32_t own,
                      const struct cw_net_address *subnet)
{
    for (uint32_t j = 0; j < offers[own].count; j++) {
        const struct cw_net_address *at = &offers[own].addresses[j];
        if (at->bits == subnet->bits && cw_ip_shares(&at->ip, &subnet->ip, at->bits) &&
            !is_everywhere(offers, count, &offers[own], &at->ip)) {
            return (int)j;
        }
    }
    return NONE;
}

/* Rank of a subnet: the minimum over all hosts. */
struct worth {
    uint32_t kind;
    uint32_t speed_mbps;
    uint32_t mtu_bytes;
    uint32_t is_default; /* the first rank's */
    uint32_t is_v4;
};

/* False: some host has no address in it. */
static bool subnet_weigh(const struct cw_net_offer *offers, uint32_t count, const struct cw_net_address *address,
                         struct worth *worth)
{
    *worth = (struct worth){.kind = UINT32_MAX,
                            .speed_mbps = UINT32_MAX,
                            .mtu_bytes = UINT32_MAX,
                            .is_default = address->is_default,
                            .is_v4 = cw_ip_is_v4(&address->ip)};
    for (uint32_t i = 0; i < count; i++) {
        int found = address_in(offers, count, i, address);
        if (found == NONE) {
            return false;
        }
        const struct cw_net_address *at = &offers[i].addresses[found];
        worth->kind = at->kind < worth->kind ? at->kind : worth->kind;
        uint32_t speed_mbps = at->kind == CW_NET_NIC ? at->speed_mbps : 0; /* virtual interfaces report any rate */
        worth->speed_mbps = speed_mbps < worth->speed_mbps ? speed_mbps : worth->speed_mbps;
        worth->mtu_bytes = at->mtu_bytes < worth->mtu_bytes ? at->mtu_bytes : worth->mtu_bytes;
    }
    return true;
}

static bool is_better(const struct worth *one, const struct worth *other)
{
    const uint32_t mine[] = {one->kind, one->speed_mbps, one->mtu_bytes, one->is_default, one->is_v4};
    const uint32_t its[] = {other->kind, other->speed_mbps, other->mtu_bytes, other->is_default, other->is_v4};
    for (size_t i = 0; i < sizeof(mine) / sizeof(mine[0]); i++) {
        if (mine[i] != its[i]) {
            return mine[i] > its[i];
        }
    }
    return false;
}

static void why_shared(const struct cw_net_address *address, char why[CW_NET_TEXT_BYTES])
{
    char text[CW_IP_TEXT_BYTES];
    struct cw_ip subnet = address->ip;
    for (uint32_t bit = address->bits; bit < 128; bit++) {
        subnet.bytes[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
    }
    cw_ip_write(&subnet, text);
    snprintf(why, CW_NET_TEXT_BYTES, "all hosts are in %s/%u", text,
             address->bits - (cw_ip_is_v4(&address->ip) ? (uint32_t)CW_IP_V4_BITS : 0));
}

/* Where routers are between: an address of each host that leads out of it, of one kind for all. NONE: it has none. */
static int address_routed(const struct cw_net_offer *offers, uint32_t count, uint32_t own, bool is_v4)
{
    int index = NONE;
    for (uint32_t j = 0; j < offers[own].count; j++) {
        const struct cw_net_address *at = &offers[own].addresses[j];
        bool leads = cw_ip_is_v4(&at->ip) == is_v4 && !is_everywhere(offers, count, &offers[own], &at->ip);
        if (leads && (index == NONE || (at->is_default && !offers[own].addresses[index].is_default))) {
            index = (int)j;
        }
    }
    return index;
}

/* Whether all hosts have an address of that kind that leads somewhere. */
static bool are_routed(const struct cw_net_offer *offers, uint32_t count, bool is_v4)
{
    for (uint32_t i = 0; i < count; i++) {
        if (address_routed(offers, count, i, is_v4) == NONE) {
            return false;
        }
    }
    return true;
}

bool cw_net_choose(const struct cw_net_offer *offers, uint32_t count, uint32_t own, struct cw_net_address *chosen,
                   char why[CW_NET_TEXT_BYTES])
{
    const struct cw_net_address *best = NULL;
    struct worth best_worth = {0}, worth;
    int index = NONE;
    for (uint32_t j = 0; j < offers[0].count; j++) {
        if (subnet_weigh(offers, count, &offers[0].addresses[j], &worth) &&
            (best == NULL || is_better(&worth, &best_worth))) {
            best = &offers[0].addresses[j];
            best_worth = worth;
        }
    }
    if (best != NULL) {
        why_shared(best, why);
        index = address_in(offers, count, own, best);
        *chosen = offers[own].addresses[index];
        chosen->mtu_bytes = (uint16_t)best_worth.mtu_bytes;
        return true;
    }
    snprintf(why, CW_NET_TEXT_BYTES, "the hosts share no subnet: the address of the default route");
    bool is_v4 = are_routed(offers, count, true) || !are_routed(offers, count, false);
    index = address_routed(offers, count, own, is_v4);
    if (index != NONE) {
        *chosen = offers[own].addresses[index];
        for (uint32_t i = 0; i < count; i++) {
            int other = address_routed(offers, count, i, is_v4);
            uint16_t mtu_bytes = other != NONE ? offers[i].addresses[other].mtu_bytes : UINT16_MAX;
            chosen->mtu_bytes = mtu_bytes < chosen->mtu_bytes ? mtu_bytes : chosen->mtu_bytes;
        }
    }
    return index != NONE;
}

int cw_net_ports(uint16_t *first, uint16_t *last, char *error, size_t error_bytes)
{
    const char *text = cw_setting(CW_SETTING_PORTS);
    unsigned int low = 0, high = 0;
    int length = 0;
    if (text != NULL && text[0] != 0 &&
        (sscanf(text, "%5u-%5u%n", &low, &high, &length) != 2 || text[length] != 0 || low == 0 || high > UINT16_MAX ||
         low > high)) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "CAUSEWAY_PORTS is '%.60s': FIRST-LAST is wanted, UDP ports of 1 to 65535", text);
    }
    *first = (uint16_t)low;
    *last = (uint16_t)high;
    return CW_OK;
}
