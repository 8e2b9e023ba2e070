#include "mcast/igmp.h"

#include <string.h>

#include "dataplane/wire/wire.h"

enum {
    IPV4_BYTES = 24, /* with the option Router Alert (RFC 2113), which version 2 asks for */
    IGMP_BYTES = 8,
    PROTOCOL_IGMP = 2,
    TYPE_REPORT = 0x16,
    TYPE_LEAVE = 0x17,
    ALL_ROUTERS = 0xe0000002, /* destination of a leave */
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

static void checksum_write(uint8_t *at, const uint8_t *data, uint32_t bytes)
{
    struct cw_wire_sum sum = {0};
    cw_wire_sum_add(&sum, data, bytes);
    uint16_t checksum = cw_wire_sum_end(&sum);
    memcpy(at, &checksum, sizeof(checksum));
}

void cw_mcast_igmp_write(uint8_t *frame, const uint8_t mac[6], uint32_t own_ipv4, uint32_t group_ipv4, bool has_left)
{
    uint32_t to = has_left ? ALL_ROUTERS : group_ipv4;
    uint8_t *ip = frame + 14;
    uint8_t *igmp = ip + IPV4_BYTES;
    memset(frame, 0, CW_MCAST_IGMP_BYTES);
    struct cw_ip to_ip = cw_ip_v4(to);
    cw_wire_group_mac(&to_ip, frame);
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
    checksum_write(ip + 10, ip, IPV4_BYTES);
    igmp[0] = has_left ? TYPE_LEAVE : TYPE_REPORT;
    write32(igmp + 4, group_ipv4);
    checksum_write(igmp + 2, igmp, IGMP_BYTES);
}
