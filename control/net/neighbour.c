#include "control/net/neighbour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/net/netlink.h"
#include "control/net/route.h"
#include "control/net/solicit.h"
#include "dataplane/base/clock.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum {
    NEIGHBOURS_MAX = 4096,
    ROUNDS = 4,
    ROUND_MS = 250,
    LOOK_MS = 20, /* at the kernel's table, while it asks itself */
    OTHERS_LOOKS = 50,
    OTHERS_EACH = 10, /* looks to a datagram */
    DISCARD_PORT = 9,
};

/* ---- the kernel's table (rtnetlink(7)) ---- */

/* Neighbours of an interface, as they are found. */
struct table {
    uint32_t interface;
    struct cw_neighbour *neighbours;
    uint32_t count_max;
    uint32_t *count;
};

/* Adds one, if there is room. */
static int neighbour_parse(void *context, const struct nlmsghdr *header)
{
    const uint16_t sure = NUD_REACHABLE | NUD_PERMANENT | NUD_DELAY | NUD_PROBE, once = NUD_STALE;
    struct table *table = context;
    struct cw_neighbour found = {.is_sure = false};
    bool has_mac = false;
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof(struct ndmsg))) {
        return CW_OK;
    }
    const struct ndmsg *message = NLMSG_DATA(header);
    const uint8_t *place = (const uint8_t *)message + NLMSG_ALIGN(sizeof(*message));
    const uint8_t *end = (const uint8_t *)header + header->nlmsg_len;
    size_t ip_bytes = message->ndm_family == AF_INET ? 4 : sizeof(found.ip.bytes);
    for (const struct rtattr *at = cw_netlink_attribute(&place, end); at != NULL;
         at = cw_netlink_attribute(&place, end)) {
        if (at->rta_type == NDA_DST && RTA_PAYLOAD(at) == ip_bytes) {
            found.ip = cw_ip_v4(0);
            memcpy(found.ip.bytes + sizeof(found.ip.bytes) - ip_bytes, RTA_DATA(at), ip_bytes);
        } else if (at->rta_type == NDA_LLADDR && RTA_PAYLOAD(at) == sizeof(found.mac)) {
            memcpy(found.mac, RTA_DATA(at), sizeof(found.mac));
            has_mac = true;
        }
    }
    found.is_sure = (message->ndm_state & sure) != 0;
    if ((message->ndm_family != AF_INET && message->ndm_family != AF_INET6) ||
        (uint32_t)message->ndm_ifindex != table->interface || !has_mac || cw_ip_is_none(&found.ip) ||
        (message->ndm_state & (sure | once)) == 0) {
        return CW_OK;
    }
    if (*table->count == table->count_max) {
        return CW_ERROR_NOT_FOUND;
    }
    table->neighbours[(*table->count)++] = found;
    return CW_OK;
}

int cw_neighbours_parse(const void *answer, size_t bytes, uint32_t interface, struct cw_neighbour *neighbours,
                        uint32_t count_max, uint32_t *count)
{
    struct table table = {.interface = interface, .neighbours = neighbours, .count_max = count_max, .count = count};
    return cw_netlink_piece(answer, bytes, RTM_NEWNEIGH, neighbour_parse, &table);
}

/* Those of an interface, of both kinds; returns how many. A neighbour that cannot be read is requested. */
static uint32_t neighbours_read(uint32_t interface, struct cw_neighbour *neighbours)
{
    const struct {
        struct nlmsghdr header;
        struct ndmsg message;
    } request = {
        .header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETNEIGH, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .message = {.ndm_family = AF_UNSPEC},
    };
    uint32_t count = 0;
    struct table table = {
        .interface = interface, .neighbours = neighbours, .count_max = NEIGHBOURS_MAX, .count = &count};
    cw_netlink_dump(&request, sizeof(request), RTM_NEWNEIGH, neighbour_parse, &table);
    return count;
}

/* ---- who is asked ---- */

/* Entries of the table, and addresses to request. */
struct search {
    struct cw_hop *hops;
    uint32_t count;
    uint32_t asked; /* hops that wait for an answer */
    bool *asks;     /* [count] */
};

static void requests_send(const struct search *search, int file, const struct cw_ip *own, const uint8_t own_mac[6])
{
    uint8_t frame[CW_SOLICIT_BYTES_MAX];
    for (uint32_t i = 0; i < search->count; i++) {
        if (search->asks[i]) {
            size_t bytes = cw_solicit_write(frame, own, own_mac, &search->hops[i].next);
            (void)send(file, frame, bytes, 0); /* it is sent again */
        }
    }
}

static void answers_receive(struct search *search, int file)
{
    uint8_t frame[256], mac[6];
    struct cw_ip ip;
    for (ssize_t got; (got = recv(file, frame, sizeof(frame), 0)) > 0;) {
        if (!cw_solicit_parse(frame, (size_t)got, &ip, mac)) {
            continue;
        }
        for (uint32_t i = 0; i < search->count; i++) {
            if (search->asks[i] && cw_ip_is_equal(&search->hops[i].next, &ip)) {
                memcpy(search->hops[i].mac, mac, sizeof(mac));
                search->hops[i].is_known = true;
                search->asks[i] = false;
                search->asked--;
            }
        }
    }
}

static int request_all(struct search *search, uint32_t interface, const struct cw_ip *own, const uint8_t own_mac[6])
{
    int file = search->asked == 0 ? -1 : cw_solicit_open(interface, !cw_ip_is_v4(own));
    if (search->asked > 0 && file < 0) {
        return file;
    }
    for (uint32_t round = 0; round < ROUNDS && search->asked > 0; round++) {
        uint64_t until_ns = cw_clock_ns() + ROUND_MS * 1000000ull, now_ns;
        requests_send(search, file, own, own_mac);
        while (search->asked > 0 && (now_ns = cw_clock_ns()) < until_ns) {
            struct pollfd waits = {.fd = file, .events = POLLIN};
            (void)poll(&waits, 1, (int)((until_ns - now_ns) / 1000000) + 1);
            answers_receive(search, file);
        }
    }
    if (file >= 0) {
        close(file);
    }
    return 0;
}

/* ---- all of it ---- */

/* Has the kernel want to send something to a host: it asks for the next hop then. */
static void datagram_send(const char *interface, const struct cw_ip *ip)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(DISCARD_PORT)};
    int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(&to.sin_addr, ip->bytes + 12, sizeof(to.sin_addr));
    if (file >= 0) {
        (void)setsockopt(file, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface) + 1);
        (void)sendto(file, "", 1, 0, (const struct sockaddr *)&to, sizeof(to)); /* it is sent again */
        close(file);
    }
}

/* Finds the next hop towards a host; false: there is none, and `reason` is set. */
static bool next_find(struct cw_hop *hop, uint32_t interface, const char *name, const struct cw_ip *own)
{
    struct cw_route route;
    hop->is_known = false;
    hop->reason[0] = 0;
    hop->next = hop->ip;
    if (cw_ip_is_equal(&hop->ip, own)) {
        return true;
    }
    int status = cw_route_query_by(&hop->ip, interface, &route);
    if (status != CW_OK) {
        snprintf(hop->reason, sizeof(hop->reason), "this host has no route there by %s (ip route)", name);
        return false;
    }
    if (route.is_local) {
        snprintf(hop->reason, sizeof(hop->reason), "it is an address of this host: --transport names one for all");
        return false;
    }
    hop->next = cw_ip_is_none(&route.gateway) ? hop->ip : route.gateway;
    return true;
}

/* A router of IPv6 on the way to an address of IPv4 (RFC 8950). */
static bool is_of_other_kind(const struct cw_hop *hop)
{
    return cw_ip_is_v4(&hop->next) != cw_ip_is_v4(&hop->ip);
}

static void table_look(struct search *search, uint32_t index, const struct cw_neighbour *neighbours, uint32_t count)
{
    struct cw_hop *hop = &search->hops[index];
    bool is_sure = false;
    for (uint32_t i = 0; i < count && !is_sure; i++) {
        if (cw_ip_is_equal(&neighbours[i].ip, &hop->next)) {
            memcpy(hop->mac, neighbours[i].mac, sizeof(hop->mac));
            hop->is_known = true; /* for lack of a better one, if it does not answer */
            is_sure = neighbours[i].is_sure;
        }
    }
    bool asks = !is_sure && !is_of_other_kind(hop); /* which our own address cannot ask for */
    search->asks[index] = asks;
    search->asked += asks;
}

/* Next hops of the other kind, for which the kernel asks itself. `neighbours` is room. */
static void others_request(struct search *search, uint32_t index, const char *interface,
                           struct cw_neighbour *neighbours)
{
    for (uint32_t look = 0; look < OTHERS_LOOKS; look++) {
        bool waits = false;
        for (uint32_t i = 0; i < search->count; i++) {
            struct cw_hop *hop = &search->hops[i];
            if (hop->is_known || hop->reason[0] != 0 || !is_of_other_kind(hop)) {
                continue;
            }
            waits = true;
            if (look % OTHERS_EACH == 0 && cw_ip_is_v4(&hop->ip)) {
                datagram_send(interface, &hop->ip);
            }
        }
        if (!waits) {
            return;
        }
        (void)poll(NULL, 0, LOOK_MS);
        uint32_t known = neighbours_read(index, neighbours);
        for (uint32_t i = 0; i < search->count; i++) {
            if (!search->hops[i].is_known && is_of_other_kind(&search->hops[i])) {
                table_look(search, i, neighbours, known);
            }
        }
    }
}

int cw_hops_find(const char *interface, const struct cw_ip *own, const uint8_t own_mac[6], struct cw_hop *hops,
                 uint32_t count, char *error, size_t error_bytes)
{
    const char *asks_by = cw_ip_is_v4(own) ? "ARP" : "neighbour discovery";
    uint32_t index = if_nametoindex(interface);
    struct search search = {.hops = hops, .count = count};
    struct cw_neighbour *neighbours = malloc(NEIGHBOURS_MAX * sizeof(*neighbours));
    search.asks = calloc(count + 1, sizeof(*search.asks));
    if (neighbours == NULL || search.asks == NULL) {
        free(neighbours);
        free(search.asks);
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for neighbours");
    }
    uint32_t known = neighbours_read(index, neighbours);
    for (uint32_t i = 0; i < count; i++) {
        if (!next_find(&hops[i], index, interface, own)) {
            continue;
        }
        if (cw_ip_is_equal(&hops[i].next, own)) {
            memcpy(hops[i].mac, own_mac, sizeof(hops[i].mac));
            hops[i].is_known = true;
        } else {
            table_look(&search, i, neighbours, known);
        }
    }
    int failed = request_all(&search, index, own, own_mac);
    others_request(&search, index, interface, neighbours);
    for (uint32_t i = 0; i < count; i++) {
        if (!hops[i].is_known && hops[i].reason[0] == 0) {
            snprintf(hops[i].reason, sizeof(hops[i].reason), "no host answers for that address (%s)",
                     is_of_other_kind(&hops[i]) ? "neighbour discovery" : asks_by);
        }
    }
    free(neighbours);
    free(search.asks);
    return failed == 0 ? CW_OK
                       : cw_error_text(error, error_bytes, cw_status_of_errno(-failed), "%s: a socket for %s: %s%s",
                                       interface, asks_by, strerror(-failed), cw_errno_remedy(-failed));
}
