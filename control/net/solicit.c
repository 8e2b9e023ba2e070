#include "control/net/solicit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/wire/wire.h"

enum {
    ARP_REQUEST = 1,
    ARP_REPLY = 2,
    /* of a frame with IPv6 */
    AT_ETHER_TYPE = 12,
    AT_VERSION = 14,
    AT_LENGTH = 18,
    AT_NEXT = 20,
    AT_HOPS = 21,
    AT_SOURCE = 22,
    AT_DESTINATION = 38,
    AT_MESSAGE = 54,
    AT_CHECKSUM = 56,
    AT_TARGET = 62,
    AT_OPTIONS = 78,
    ICMPV6 = 58,
    HOPS = 255, /* a router would have made it less: whoever has sent this is on the link */
    ND_SOLICITATION = 135,
    ND_ADVERTISEMENT = 136,
    OPTION_SOURCE_MAC = 1,
    OPTION_TARGET_MAC = 2,
    OPTION_UNIT = 8, /* bytes that the length of an option counts in */
};

/* ---- ARP ---- */

static const uint8_t arp_head[6] = {0, 1 /* Ethernet */, 0x08, 0x00 /* IPv4 */, 6, 4};

static void arp_write(uint8_t frame[CW_ARP_BYTES], const struct cw_ip *own, const uint8_t own_mac[6],
                      const struct cw_ip *ip)
{
    memset(frame, 0, CW_ARP_BYTES);
    memset(frame, 0xff, 6);
    memcpy(frame + 6, own_mac, 6);
    frame[12] = 0x08;
    frame[13] = 0x06;
    memcpy(frame + 14, arp_head, sizeof(arp_head));
    frame[21] = ARP_REQUEST;
    memcpy(frame + 22, own_mac, 6);
    memcpy(frame + 28, own->bytes + 12, 4);
    memcpy(frame + 38, ip->bytes + 12, 4);
}

static bool arp_parse(const uint8_t *frame, size_t bytes, struct cw_ip *ip, uint8_t mac[6])
{
    if (bytes < CW_ARP_BYTES || frame[12] != 0x08 || frame[13] != 0x06 ||
        memcmp(frame + 14, arp_head, sizeof(arp_head)) != 0 || frame[20] != 0 || frame[21] != ARP_REPLY ||
        (frame[22] & 1) != 0 /* nobody is a group */) {
        return false;
    }
    *ip = cw_ip_v4(0);
    memcpy(ip->bytes + 12, frame + 28, 4);
    memcpy(mac, frame + 22, 6);
    return !cw_ip_is_none(ip);
}

/* ---- Neighbour Discovery ---- */

static uint32_t read_be16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* The checksum of an ICMPv6 message of `bytes`, with the pseudo-header (RFC 4443, 2.3); of one that has its own: 0, if
 * it is right. */
static uint16_t nd_checksum(const uint8_t *frame, size_t bytes)
{
    const uint8_t pseudo[8] = {0, 0, (uint8_t)(bytes >> 8), (uint8_t)bytes, 0, 0, 0, ICMPV6};
    struct cw_wire_sum sum = {0};
    cw_wire_sum_add(&sum, frame + AT_SOURCE, 32);
    cw_wire_sum_add(&sum, pseudo, sizeof(pseudo));
    cw_wire_sum_add(&sum, frame + AT_MESSAGE, bytes);
    return cw_wire_sum_end(&sum);
}

static void nd_write(uint8_t frame[CW_ND_BYTES], const struct cw_ip *own, const uint8_t own_mac[6],
                     const struct cw_ip *ip)
{
    struct cw_ip group = {{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}}; /* solicited-node (RFC 4291, 2.7.1) */
    memcpy(group.bytes + 13, ip->bytes + 13, 3);
    memset(frame, 0, CW_ND_BYTES);
    cw_wire_group_mac(&group, frame);
    memcpy(frame + 6, own_mac, 6);
    frame[AT_ETHER_TYPE] = 0x86;
    frame[AT_ETHER_TYPE + 1] = 0xdd;
    frame[AT_VERSION] = 0x60;
    frame[AT_LENGTH + 1] = CW_ND_BYTES - AT_MESSAGE;
    frame[AT_NEXT] = ICMPV6;
    frame[AT_HOPS] = HOPS;
    memcpy(frame + AT_SOURCE, own->bytes, sizeof(own->bytes));
    memcpy(frame + AT_DESTINATION, group.bytes, sizeof(group.bytes));
    frame[AT_MESSAGE] = ND_SOLICITATION;
    memcpy(frame + AT_TARGET, ip->bytes, sizeof(ip->bytes));
    frame[AT_OPTIONS] = OPTION_SOURCE_MAC;
    frame[AT_OPTIONS + 1] = 1;
    memcpy(frame + AT_OPTIONS + 2, own_mac, 6);
    uint16_t checksum = nd_checksum(frame, CW_ND_BYTES - AT_MESSAGE);
    memcpy(frame + AT_CHECKSUM, &checksum, sizeof(checksum));
}

/* The target's MAC address among the options from `at` to `end`; NULL: there is none, or one of them is broken. */
static const uint8_t *nd_option_find(const uint8_t *frame, size_t at, size_t end)
{
    const uint8_t *found = NULL;
    while (at < end) {
        if (end - at < OPTION_UNIT || frame[at + 1] == 0 || (size_t)frame[at + 1] * OPTION_UNIT > end - at) {
            return NULL;
        }
        if (frame[at] == OPTION_TARGET_MAC && frame[at + 1] == 1 && found == NULL) {
            found = frame + at + 2;
        }
        at += (size_t)frame[at + 1] * OPTION_UNIT;
    }
    return found;
}

static bool nd_parse(const uint8_t *frame, size_t bytes, struct cw_ip *ip, uint8_t mac[6])
{
    if (bytes < AT_OPTIONS || read_be16(frame + AT_ETHER_TYPE) != 0x86dd || frame[AT_VERSION] >> 4 != 6 ||
        frame[AT_NEXT] != ICMPV6 || frame[AT_HOPS] != HOPS) {
        return false;
    }
    size_t length = read_be16(frame + AT_LENGTH); /* behind it may be Ethernet's padding */
    if (length < AT_OPTIONS - AT_MESSAGE || length > bytes - AT_MESSAGE || frame[AT_MESSAGE] != ND_ADVERTISEMENT ||
        frame[AT_MESSAGE + 1] != 0 || nd_checksum(frame, length) != 0) {
        return false;
    }
    const uint8_t *its = nd_option_find(frame, AT_OPTIONS, AT_MESSAGE + length);
    if (its == NULL || (its[0] & 1) != 0 || frame[AT_TARGET] == 0xff) { /* nobody is a group */
        return false;
    }
    memcpy(ip->bytes, frame + AT_TARGET, sizeof(ip->bytes));
    memcpy(mac, its, 6);
    return !cw_ip_is_none(ip) && !cw_ip_is_v4(ip);
}

/* ---- both ---- */

/* Lets advertisements through, of all the IPv6 that comes by the interface. Without it they may drown. */
static int advertisements_only(int file)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_NEXT),    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMPV6, 0, 3),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_MESSAGE), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ND_ADVERTISEMENT, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),          BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    return setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

int cw_solicit_open(uint32_t interface, bool is_v6)
{
    const struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(is_v6 ? ETH_P_IPV6 : ETH_P_ARP), .sll_ifindex = (int)interface};
    int file = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file < 0 || (is_v6 && advertisements_only(file) != 0) ||
        bind(file, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int failed = -errno;
        if (file >= 0) {
            close(file);
        }
        return failed;
    }
    return file;
}

size_t cw_solicit_write(uint8_t frame[CW_SOLICIT_BYTES_MAX], const struct cw_ip *own, const uint8_t own_mac[6],
                        const struct cw_ip *ip)
{
    if (cw_ip_is_v4(own)) {
        arp_write(frame, own, own_mac, ip);
        return CW_ARP_BYTES;
    }
    nd_write(frame, own, own_mac, ip);
    return CW_ND_BYTES;
}

bool cw_solicit_parse(const uint8_t *frame, size_t bytes, struct cw_ip *ip, uint8_t mac[6])
{
    return arp_parse(frame, bytes, ip, mac) || nd_parse(frame, bytes, ip, mac);
}
