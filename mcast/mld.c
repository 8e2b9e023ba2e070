#include "mcast/mld.h"

#include <string.h>

#include "dataplane/wire/wire.h"

enum {
    IPV6_BYTES = 40,
    OPTION_BYTES = 8, /* Router Alert (RFC 2711), and its padding */
    MLD_BYTES = 24,
    PROTOCOL_ICMPV6 = 58,
    TYPE_REPORT = 131,
    TYPE_DONE = 132,
};

static void source_write(uint8_t source[16], const uint8_t mac[6])
{
    source[0] = 0xfe;
    source[1] = 0x80;
    memcpy(source + 8, mac, 3);
    source[8] ^= 2; /* universal or local, the other way round */
    source[11] = 0xff;
    source[12] = 0xfe;
    memcpy(source + 13, mac + 3, 3);
}

void cw_mcast_mld_write(uint8_t *frame, const uint8_t mac[6], const struct cw_ip *group, bool has_left)
{
    static const struct cw_ip all_routers = {{0xff, 0x02, [15] = 2}};
    static const uint8_t router_alert[OPTION_BYTES] = {PROTOCOL_ICMPV6, 0, 5, 2, 0, 0, 1, 0};
    const struct cw_ip *to = has_left ? &all_routers : group;
    uint8_t *ip = frame + 14, *mld = ip + IPV6_BYTES + OPTION_BYTES;
    memset(frame, 0, CW_MCAST_MLD_BYTES);
    cw_wire_group_mac(to, frame);
    memcpy(frame + 6, mac, 6);
    frame[12] = 0x86;
    frame[13] = 0xdd;
    ip[0] = 6 << 4;
    ip[5] = OPTION_BYTES + MLD_BYTES;
    ip[7] = 1; /* it stays on this link; next header 0: hop-by-hop options */
    source_write(ip + 8, mac);
    memcpy(ip + 24, to->bytes, 16);
    memcpy(ip + IPV6_BYTES, router_alert, sizeof(router_alert));
    mld[0] = has_left ? TYPE_DONE : TYPE_REPORT;
    memcpy(mld + 8, group->bytes, 16);
    const uint8_t pseudo[4] = {0, PROTOCOL_ICMPV6, 0, MLD_BYTES}; /* RFC 8200, 8.1 */
    struct cw_wire_sum sum = {0};
    cw_wire_sum_add(&sum, ip + 8, 32);
    cw_wire_sum_add(&sum, pseudo, sizeof(pseudo));
    cw_wire_sum_add(&sum, mld, MLD_BYTES);
    uint16_t checksum = cw_wire_sum_end(&sum);
    memcpy(mld + 2, &checksum, sizeof(checksum));
}
