#include "control/net/neighbour.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/net/route.h"
#include "control/net/solicit.h"
#include "dataplane/base/clock.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum {
    ANSWER_BYTES = 32768, /* what the kernel gives in one piece */
    NEIGHBOURS_MAX = 4096,
    ROUNDS = 4,
    ROUND_MS = 250,
};

/* ---- the kernel's table (rtnetlink(7)) ---- */

/* Adds one; false: there is no room. */
static bool neighbour_take(const struct nlmsghdr *header, uint32_t interface, struct cw_neighbour *neighbours,
                           uint32_t count_max, uint32_t *count)
{
    const uint16_t sure = NUD_REACHABLE | NUD_PERMANENT | NUD_DELAY | NUD_PROBE, once = NUD_STALE;
    struct ndmsg message;
    struct cw_neighbour found = {.is_sure = false};
    bool has_mac = false;
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof(message))) {
        return true;
    }
    memcpy(&message, NLMSG_DATA(header), sizeof(message));
    size_t at = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(message)));
    while (at + sizeof(struct rtattr) <= header->nlmsg_len) {
        struct rtattr attribute;
        memcpy(&attribute, (const uint8_t *)header + at, sizeof(attribute));
        const uint8_t *data = (const uint8_t *)header + at + RTA_LENGTH(0);
        if (attribute.rta_len < RTA_LENGTH(0) || attribute.rta_len > header->nlmsg_len - at) {
            break;
        }
        size_t bytes = attribute.rta_len - RTA_LENGTH(0);
        if (attribute.rta_type == NDA_DST && bytes == (message.ndm_family == AF_INET ? 4 : sizeof(found.ip.bytes))) {
            found.ip = cw_ip_v4(0);
            memcpy(found.ip.bytes + sizeof(found.ip.bytes) - bytes, data, bytes);
        } else if (attribute.rta_type == NDA_LLADDR && bytes == sizeof(found.mac)) {
            memcpy(found.mac, data, sizeof(found.mac));
            has_mac = true;
        }
        at += RTA_ALIGN(attribute.rta_len);
    }
    found.is_sure = (message.ndm_state & sure) != 0;
    if ((message.ndm_family != AF_INET && message.ndm_family != AF_INET6) ||
        (uint32_t)message.ndm_ifindex != interface || !has_mac || cw_ip_is_none(&found.ip) ||
        (message.ndm_state & (sure | once)) == 0) {
        return true;
    }
    if (*count == count_max) {
        return false;
    }
    neighbours[(*count)++] = found;
    return true;
}

int cw_neighbours_parse(const void *answer, size_t bytes, uint32_t interface, struct cw_neighbour *neighbours,
                        uint32_t count_max, uint32_t *count)
{
    const uint8_t *at = answer;
    size_t left = bytes;
    while (left >= sizeof(struct nlmsghdr)) {
        const struct nlmsghdr *header = (const struct nlmsghdr *)at;
        if (header->nlmsg_len < sizeof(*header) || header->nlmsg_len > left) {
            return CW_ERROR_SYSTEM;
        }
        if (header->nlmsg_type == NLMSG_DONE) {
            return CW_ERROR_NOT_FOUND;
        }
        if (header->nlmsg_type != RTM_NEWNEIGH) {
            return CW_ERROR_SYSTEM;
        }
        if (!neighbour_take(header, interface, neighbours, count_max, count)) {
            return CW_ERROR_NOT_FOUND;
        }
        size_t length = NLMSG_ALIGN((size_t)header->nlmsg_len);
        left -= length < left ? length : left;
        at += length;
    }
    return left == 0 ? CW_OK : CW_ERROR_SYSTEM;
}

/* Those of an interface; returns how many. What cannot be read is asked for. */
static uint32_t neighbours_read(uint32_t interface, bool is_v6, struct cw_neighbour *neighbours)
{
    struct {
        struct nlmsghdr header;
        struct ndmsg message;
    } request = {
        .header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETNEIGH, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .message = {.ndm_family = is_v6 ? AF_INET6 : AF_INET},
    };
    uint8_t *answer = malloc(ANSWER_BYTES);
    int file = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    uint32_t count = 0;
    bool goes_on = answer != NULL && file >= 0 && send(file, &request, sizeof(request), 0) == (ssize_t)sizeof(request);
    while (goes_on) {
        ssize_t got = recv(file, answer, ANSWER_BYTES, 0);
        goes_on =
            got > 0 && cw_neighbours_parse(answer, (size_t)got, interface, neighbours, NEIGHBOURS_MAX, &count) == CW_OK;
    }
    if (file >= 0) {
        close(file);
    }
    free(answer);
    return count;
}

/* ---- who is asked ---- */

/* What the table says, and what is to be asked. */
struct search {
    struct cw_hop *hops;
    uint32_t count;
    uint32_t asked; /* hops that wait for an answer */
    bool *asks;     /* [count] */
};

static void asked_send(const struct search *search, int file, const struct cw_ip *own, const uint8_t own_mac[6])
{
    uint8_t frame[CW_SOLICIT_BYTES_MAX];
    for (uint32_t i = 0; i < search->count; i++) {
        if (search->asks[i]) {
            size_t bytes = cw_solicit_write(frame, own, own_mac, &search->hops[i].next);
            (void)send(file, frame, bytes, 0); /* it is sent again */
        }
    }
}

static void answers_take(struct search *search, int file)
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

static int ask_all(struct search *search, uint32_t interface, const struct cw_ip *own, const uint8_t own_mac[6])
{
    int file = search->asked == 0 ? -1 : cw_solicit_open(interface, !cw_ip_is_v4(own));
    if (search->asked > 0 && file < 0) {
        return file;
    }
    for (uint32_t round = 0; round < ROUNDS && search->asked > 0; round++) {
        uint64_t until_ns = cw_clock_ns() + ROUND_MS * 1000000ull, now_ns;
        asked_send(search, file, own, own_mac);
        while (search->asked > 0 && (now_ns = cw_clock_ns()) < until_ns) {
            struct pollfd waits = {.fd = file, .events = POLLIN};
            (void)poll(&waits, 1, (int)((until_ns - now_ns) / 1000000) + 1);
            answers_take(search, file);
        }
    }
    if (file >= 0) {
        close(file);
    }
    return 0;
}

/* ---- all of it ---- */

/* Who is next on the way to a host; false: nobody, and its reason says why. */
static bool next_find(struct cw_hop *hop, uint32_t interface, const char *name, const struct cw_ip *own)
{
    struct cw_route route;
    hop->is_known = false;
    hop->reason[0] = 0;
    hop->next = hop->ip;
    if (cw_ip_is_equal(&hop->ip, own)) {
        return true;
    }
    int status = cw_route_ask_by(&hop->ip, interface, &route);
    if (status != CW_OK) {
        snprintf(hop->reason, sizeof(hop->reason), "this host has no route there by %s (ip route)", name);
        return false;
    }
    if (route.is_local) {
        snprintf(hop->reason, sizeof(hop->reason), "it is another address of this host: --net names one for all");
        return false;
    }
    hop->next = cw_ip_is_none(&route.gateway) ? hop->ip : route.gateway;
    return true;
}

static void table_look(struct search *search, uint32_t index, const struct cw_neighbour *neighbours, uint32_t count)
{
    struct cw_hop *hop = &search->hops[index];
    bool is_sure = false;
    for (uint32_t i = 0; i < count && !is_sure; i++) {
        if (cw_ip_is_equal(&neighbours[i].ip, &hop->next)) {
            memcpy(hop->mac, neighbours[i].mac, sizeof(hop->mac));
            hop->is_known = true; /* for want of a better one, if he does not answer */
            is_sure = neighbours[i].is_sure;
        }
    }
    search->asks[index] = !is_sure;
    search->asked += !is_sure;
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
    uint32_t known = neighbours_read(index, !cw_ip_is_v4(own), neighbours);
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
    int failed = ask_all(&search, index, own, own_mac);
    for (uint32_t i = 0; i < count; i++) {
        if (!hops[i].is_known && hops[i].reason[0] == 0) {
            snprintf(hops[i].reason, sizeof(hops[i].reason), "nobody answers for that address (%s)", asks_by);
        }
    }
    free(neighbours);
    free(search.asks);
    return failed == 0 ? CW_OK
                       : cw_error_text(error, error_bytes, cw_status_of_errno(-failed), "%s: a socket for %s: %s%s",
                                       interface, asks_by, strerror(-failed), cw_errno_remedy(-failed));
}
