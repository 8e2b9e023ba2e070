#include "mcast/igmp.h"

#include <string.h>

#include "dataplane/wire/wire.h"

enum {
    IPV4_BYTES = 24, /* with the option Router Alert (RFC 2113), which version 2 asks for */
    IGMP_BYTES = 8,
    PROTOCOL_IGMP = 2,
    TYPE_REPORT = 0x16,
    TYPE_LEAVE = 0x17,
    ALL_ROUTERS = 0xe0000002, /* whom a leave is for */
};

static void write16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void write32(uint8_t *at, uint32_t value)
{
    write16(at, value >> 16);
    write16(at + 2, value & 0xffff);
}

/* The Internet checksum (RFC 1071) of an even number of bytes. */
static uint32_t checksum(const uint8_t *at, uint32_t bytes)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < bytes; i += 2) {
        sum += (uint32_t)at[i] << 8 | at[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}

void cw_mcast_igmp_write(uint8_t *frame, const uint8_t mac[6], uint32_t own_ipv4, uint32_t group_ipv4, bool has_left)
{
    uint32_t to = has_left ? ALL_ROUTERS : group_ipv4;
    uint8_t *ip = frame + 14;
    uint8_t *igmp = ip + IPV4_BYTES;
    memset(frame, 0, CW_MCAST_IGMP_BYTES);
    cw_wire_group_mac(to, frame);
    memcpy(frame + 6, mac, 6);
    write16(frame + 12, 0x0800);
    ip[0] = 0x46; /* version 4, six words */
    ip[1] = 0xc0; /* internetwork control */
    write16(ip + 2, IPV4_BYTES + IGMP_BYTES);
    write16(ip + 6, 0x4000);
    ip[8] = 1; /* it stays on this network */
    ip[9] = PROTOCOL_IGMP;
    write32(ip + 12, own_ipv4);
    write32(ip + 16, to);
    write32(ip + 20, 0x94040000); /* Router Alert */
    write16(ip + 10, checksum(ip, IPV4_BYTES));
    igmp[0] = has_left ? TYPE_LEAVE : TYPE_REPORT;
    write32(igmp + 4, group_ipv4);
    write16(igmp + 2, checksum(igmp, IGMP_BYTES));
}
