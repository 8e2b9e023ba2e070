/* An IP address. IPv4 addresses are kept as IPv6 has them (IPv4-mapped, RFC 4291, 2.5.5.2), so that no code above the
 * wire format distinguishes the two. Thread: any. */
#ifndef CW_IP_H
#define CW_IP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CW_IP_TEXT_BYTES = 46, /* the longest text, with its final 0 */
    CW_IP_V4_BITS = 96,    /* of an IPv4-mapped address, those in front of the IPv4 address */
};

struct cw_ip {
    uint8_t bytes[16]; /* network byte order; all zero: none */
};

/* Host byte order. */
static inline struct cw_ip cw_ip_v4(uint32_t ipv4)
{
    struct cw_ip ip = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, (uint8_t)(ipv4 >> 24), (uint8_t)(ipv4 >> 16),
                        (uint8_t)(ipv4 >> 8), (uint8_t)ipv4}};
    return ip;
}

static inline bool cw_ip_is_v4(const struct cw_ip *ip)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(ip->bytes, mapped, sizeof(mapped)) == 0;
}

/* The IPv4 address, host byte order; 0: it is none. */
static inline uint32_t cw_ip_to_v4(const struct cw_ip *ip)
{
    const uint8_t *at = ip->bytes + 12;
    uint32_t ipv4 = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    return cw_ip_is_v4(ip) ? ipv4 : 0;
}

static inline bool cw_ip_is_equal(const struct cw_ip *one, const struct cw_ip *other)
{
    return memcmp(one->bytes, other->bytes, sizeof(one->bytes)) == 0;
}

/* None, or 0.0.0.0. */
static inline bool cw_ip_is_none(const struct cw_ip *ip)
{
    static const struct cw_ip none = {{0}};
    return cw_ip_is_equal(ip, &none) || (cw_ip_is_v4(ip) && cw_ip_to_v4(ip) == 0);
}

/* Whether their first bits are the same: 0 to 128 of them, for IPv4 addresses CW_IP_V4_BITS more than of the subnet. */
static inline bool cw_ip_shares(const struct cw_ip *one, const struct cw_ip *other, uint32_t bits)
{
    uint32_t whole = bits / 8, rest = bits % 8;
    return memcmp(one->bytes, other->bytes, whole) == 0 &&
           (rest == 0 || ((one->bytes[whole] ^ other->bytes[whole]) & (0xff00u >> rest & 0xff)) == 0);
}

/* As people write it: "10.1.0.7", "fd77::1" (RFC 5952). */
void cw_ip_write(const struct cw_ip *ip, char text[CW_IP_TEXT_BYTES]);
/* Reads an address of either kind; false: it is none. */
bool cw_ip_read(const char *text, struct cw_ip *ip);

#ifdef __cplusplus
}
#endif
#endif
