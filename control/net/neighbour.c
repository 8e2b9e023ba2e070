#include "control/net/neighbour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "control/net/route.h"
#include "dataplane/base/clock.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum {
    ANSWER_BYTES = 32768, /* what the kernel gives in one piece */
    NEIGHBOURS_MAX = 4096,
    ROUNDS = 4,
    ROUND_MS = 250,
    ETHER_BYTES = 14,
    ARP_REQUEST = 1,
    ARP_REPLY = 2,
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
        if (attribute.rta_type == NDA_DST && bytes == sizeof(found.ipv4)) {
            memcpy(&found.ipv4, data, sizeof(found.ipv4));
            found.ipv4 = ntohl(found.ipv4);
        } else if (attribute.rta_type == NDA_LLADDR && bytes == sizeof(found.mac)) {
            memcpy(found.mac, data, sizeof(found.mac));
            has_mac = true;
        }
        at += RTA_ALIGN(attribute.rta_len);
    }
    found.is_sure = (message.ndm_state & sure) != 0;
    if (message.ndm_family != AF_INET || (uint32_t)message.ndm_ifindex != interface || !has_mac || found.ipv4 == 0 ||
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

/* Those of an interface; returns how many. What cannot be read is asked for by ARP. */
static uint32_t neighbours_read(uint32_t interface, struct cw_neighbour *neighbours)
{
    struct {
        struct nlmsghdr header;
        struct ndmsg message;
    } request = {
        .header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETNEIGH, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .message = {.ndm_family = AF_INET},
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

/* ---- ARP ---- */

static const uint8_t arp_head[6] = {0, 1 /* Ethernet */, 0x08, 0x00 /* IPv4 */, 6, 4};

void cw_arp_write(uint8_t frame[CW_ARP_BYTES], uint32_t own_ipv4, const uint8_t own_mac[6], uint32_t ipv4)
{
    uint32_t own = htonl(own_ipv4), asked = htonl(ipv4);
    memset(frame, 0, CW_ARP_BYTES);
    memset(frame, 0xff, 6);
    memcpy(frame + 6, own_mac, 6);
    frame[12] = 0x08;
    frame[13] = 0x06;
    memcpy(frame + 14, arp_head, sizeof(arp_head));
    frame[21] = ARP_REQUEST;
    memcpy(frame + 22, own_mac, 6);
    memcpy(frame + 28, &own, 4);
    memcpy(frame + 38, &asked, 4);
}

bool cw_arp_parse(const uint8_t *frame, size_t bytes, uint32_t *ipv4, uint8_t mac[6])
{
    uint32_t says;
    if (bytes < CW_ARP_BYTES || frame[12] != 0x08 || frame[13] != 0x06 ||
        memcmp(frame + 14, arp_head, sizeof(arp_head)) != 0 || frame[20] != 0 || frame[21] != ARP_REPLY ||
        (frame[22] & 1) != 0 /* nobody is a group */) {
        return false;
    }
    memcpy(&says, frame + 28, 4);
    memcpy(mac, frame + 22, 6);
    *ipv4 = ntohl(says);
    return *ipv4 != 0;
}

/* A raw socket for ARP on that interface, or -errno. */
static int arp_open(uint32_t interface)
{
    const struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ARP), .sll_ifindex = (int)interface};
    int file = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file < 0 || bind(file, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int failed = -errno;
        if (file >= 0) {
            close(file);
        }
        return failed;
    }
    return file;
}

/* What the table says, and what is to be asked. */
struct search {
    struct cw_hop *hops;
    uint32_t count;
    uint32_t asked; /* hops that wait for an answer */
    bool *asks;     /* [count] */
};

static void asked_send(const struct search *search, int file, uint32_t own_ipv4, const uint8_t own_mac[6])
{
    uint8_t frame[CW_ARP_BYTES];
    for (uint32_t i = 0; i < search->count; i++) {
        if (search->asks[i]) {
            cw_arp_write(frame, own_ipv4, own_mac, search->hops[i].next);
            (void)send(file, frame, sizeof(frame), 0); /* it is sent again */
        }
    }
}

static void answers_take(struct search *search, int file)
{
    uint8_t frame[256], mac[6];
    uint32_t ipv4;
    for (ssize_t got; (got = recv(file, frame, sizeof(frame), 0)) > 0;) {
        if (!cw_arp_parse(frame, (size_t)got, &ipv4, mac)) {
            continue;
        }
        for (uint32_t i = 0; i < search->count; i++) {
            if (search->asks[i] && search->hops[i].next == ipv4) {
                memcpy(search->hops[i].mac, mac, sizeof(mac));
                search->hops[i].is_known = true;
                search->asks[i] = false;
                search->asked--;
            }
        }
    }
}

static int ask_all(struct search *search, uint32_t interface, uint32_t own_ipv4, const uint8_t own_mac[6])
{
    int file = search->asked == 0 ? -1 : arp_open(interface);
    if (search->asked > 0 && file < 0) {
        return file;
    }
    for (uint32_t round = 0; round < ROUNDS && search->asked > 0; round++) {
        uint64_t until_ns = cw_clock_ns() + ROUND_MS * 1000000ull, now_ns;
        asked_send(search, file, own_ipv4, own_mac);
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
static bool next_find(struct cw_hop *hop, uint32_t interface, const char *name, uint32_t own_ipv4)
{
    struct cw_route route;
    struct cw_ip ip = cw_ip_v4(hop->ipv4);
    hop->is_known = false;
    hop->reason[0] = 0;
    hop->next = hop->ipv4;
    if (hop->ipv4 == own_ipv4) {
        return true;
    }
    int status = cw_route_ask_by(&ip, interface, &route);
    if (status != CW_OK) {
        snprintf(hop->reason, sizeof(hop->reason), "this host has no route there by %s (ip route)", name);
        return false;
    }
    if (route.is_local) {
        snprintf(hop->reason, sizeof(hop->reason), "it is another address of this host: --net names one for all");
        return false;
    }
    hop->next = cw_ip_is_none(&route.gateway) ? hop->ipv4 : cw_ip_to_v4(&route.gateway);
    return true;
}

static void table_look(struct search *search, uint32_t index, const struct cw_neighbour *neighbours, uint32_t count)
{
    struct cw_hop *hop = &search->hops[index];
    bool is_sure = false;
    for (uint32_t i = 0; i < count && !is_sure; i++) {
        if (neighbours[i].ipv4 == hop->next) {
            memcpy(hop->mac, neighbours[i].mac, sizeof(hop->mac));
            hop->is_known = true; /* for want of a better one, if he does not answer */
            is_sure = neighbours[i].is_sure;
        }
    }
    search->asks[index] = !is_sure;
    search->asked += !is_sure;
}

int cw_hops_find(const char *interface, uint32_t own_ipv4, const uint8_t own_mac[6], struct cw_hop *hops,
                 uint32_t count, char *error, size_t error_bytes)
{
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
        if (!next_find(&hops[i], index, interface, own_ipv4)) {
            continue;
        }
        if (hops[i].next == own_ipv4) {
            memcpy(hops[i].mac, own_mac, sizeof(hops[i].mac));
            hops[i].is_known = true;
        } else {
            table_look(&search, i, neighbours, known);
        }
    }
    int failed = ask_all(&search, index, own_ipv4, own_mac);
    for (uint32_t i = 0; i < count; i++) {
        if (!hops[i].is_known && hops[i].reason[0] == 0) {
            snprintf(hops[i].reason, sizeof(hops[i].reason), "nobody answers for that address (ARP)");
        }
    }
    free(neighbours);
    free(search.asks);
    return failed == 0 ? CW_OK
                       : cw_error_text(error, error_bytes, cw_status_of_errno(-failed), "%s: a socket for ARP: %s%s",
                                       interface, strerror(-failed), cw_errno_remedy(-failed));
}
