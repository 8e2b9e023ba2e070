/* resolve: what a kernel does for an address, for one that no kernel has. It answers who asks for the address (ARP, RFC
 * 826; Neighbour Discovery, RFC 4861) and echo requests (RFC 792, RFC 4443), and finds the MAC addresses of next hops:
 * of hosts in the own subnet by asking for them, of others the gateway's. Protocol code: frames in, frames out, no
 * clock.
 *
 * Invariants
 *   - Whatever comes is answered or dropped by itself; only hops that were asked for are remembered, so that a stranger
 *     can neither fill the table nor enter it.
 *   - Answers are limited to CW_RESOLVE_ANSWERS at once and a thousand a second, questions by their intervals: nobody
 *     can have this host flood a third.
 *   - A hop that was known stays in use while it is asked for anew; a changed MAC address is taken at once.
 *
 * Order of calls
 *   cw_resolve_create
 *   { cw_resolve_take for each frame that is nobody else's; cw_resolve_want, cw_resolve_find, cw_resolve_forget;
 *     cw_resolve_question until it returns 0, when cw_resolve_deadline says so }*
 *   cw_resolve_destroy
 *
 * Owner: whoever turns the endpoint. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/ip.h"
#include "dataplane/resolve/ask.h"

struct cw_resolve;

struct cw_resolve_config {
    struct cw_ip ip;      /* own */
    uint8_t bits;         /* of its subnet, as cw_ip_shares counts them */
    struct cw_ip gateway; /* for other subnets; none: there is none */
    uint8_t mac[6];       /* own */
    uint32_t frame_bytes_max;
};

enum cw_resolve_verdict {
    CW_RESOLVE_FOREIGN,  /* nothing for this address, or of another protocol */
    CW_RESOLVE_TAKEN,    /* there is nothing to send for it */
    CW_RESOLVE_ANSWERED, /* *answer goes out */
    CW_RESOLVE_DAMAGED,  /* of its protocols, and with lengths, checksums or addresses that make no sense */
    CW_RESOLVE_LIMITED,  /* too many before it */
};

/* NULL: no memory. `config` is copied. */
struct cw_resolve *cw_resolve_create(const struct cw_resolve_config *config);
void cw_resolve_destroy(struct cw_resolve *resolve); /* NULL is allowed */

/* A received frame. *answer: the resolver's own, until the next call. */
enum cw_resolve_verdict cw_resolve_take(struct cw_resolve *resolve, const uint8_t *frame, uint32_t bytes,
                                        uint64_t now_ns, const uint8_t **answer, uint32_t *answer_bytes);

/* Has the next hop to a host looked for, and kept. CW_OK; CW_ERROR_LIMIT: the table is full; CW_ERROR_NOT_FOUND: it is
 * in another subnet, and there is no gateway. */
int cw_resolve_want(struct cw_resolve *resolve, const struct cw_ip *ip, uint64_t now_ns);
/* Nobody wants this next hop any more (cw_resolve_next): it is not asked for, and its place is free. */
void cw_resolve_forget(struct cw_resolve *resolve, const struct cw_ip *next);
/* The MAC address of the next hop to a host that was wanted. False: not known yet. */
bool cw_resolve_find(const struct cw_resolve *resolve, const struct cw_ip *ip, uint8_t mac[6]);
/* Grows whenever a MAC address has become known, or another one. */
uint64_t cw_resolve_changes(const struct cw_resolve *resolve);
/* The address that is asked for on the way to a host; none: there is no way. */
struct cw_ip cw_resolve_next(const struct cw_resolve *resolve, const struct cw_ip *ip);

/* The next question that is due; its bytes, 0: none is. */
uint32_t cw_resolve_question(struct cw_resolve *resolve, uint64_t now_ns, uint8_t frame[CW_SOLICIT_BYTES_MAX]);
/* When cw_resolve_question has one again; UINT64_MAX: not before cw_resolve_want. */
uint64_t cw_resolve_deadline(const struct cw_resolve *resolve);

/* The multicast MAC address that questions for an IPv6 address go to, which the port has to let in; false: of IPv4
 * there is none. */
bool cw_resolve_group(const struct cw_ip *ip, uint8_t mac[6]);
