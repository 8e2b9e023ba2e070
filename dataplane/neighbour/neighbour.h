/* neighbour: what a kernel does for an address, here for an address that no kernel has.
 *
 * It answers requests for the address (ARP, RFC 826; Neighbour Discovery, RFC 4861) and echo requests (RFC 792, RFC
 * 4443). It finds the MAC addresses of next hops: for hosts of the own subnet by requests, for others that of the
 * gateway. Protocol code: frames in, frames out, no clock.
 *
 * Invariants
 *   - Each frame is answered or dropped. Only hops that were requested are remembered, so a foreign host can neither
 *     fill the table nor enter it.
 *   - At most CW_NEIGHBOUR_ANSWERS answers are sent at once and a thousand per second; requests have intervals. So no
 *     host can make this host flood a third one.
 *   - A known hop stays in use while it is requested again. A changed MAC address is used at once.
 *
 * Order of calls
 *   cw_neighbour_create
 *   { cw_neighbour_take for each frame that no endpoint accepts; cw_neighbour_want, cw_neighbour_find,
 *     cw_neighbour_forget; cw_neighbour_question until it returns 0, when cw_neighbour_deadline is due }*
 *   cw_neighbour_destroy
 *
 * Thread: the one that turns the endpoint. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/ip.h"
#include "dataplane/neighbour/request.h"

struct cw_neighbour_cache;

struct cw_neighbour_config {
    struct cw_ip ip;      /* own */
    uint8_t bits;         /* of its subnet, as cw_ip_shares counts them */
    struct cw_ip gateway; /* for other subnets; none: there is none */
    uint8_t mac[6];       /* own */
    uint32_t frame_bytes_max;
};

enum cw_neighbour_verdict {
    CW_NEIGHBOUR_FOREIGN,  /* nothing for this address, or of another protocol */
    CW_NEIGHBOUR_TAKEN,    /* there is nothing to send for it */
    CW_NEIGHBOUR_ANSWERED, /* *answer goes out */
    CW_NEIGHBOUR_DAMAGED,  /* of its protocols, and with lengths, checksums or addresses that make no sense */
    CW_NEIGHBOUR_LIMITED,  /* too many before it */
};

/* NULL: no memory. `config` is copied. */
struct cw_neighbour_cache *cw_neighbour_create(const struct cw_neighbour_config *config);
void cw_neighbour_destroy(struct cw_neighbour_cache *cache); /* NULL is allowed */

/* A received frame. *answer: the resolver's own, until the next call. */
enum cw_neighbour_verdict cw_neighbour_take(struct cw_neighbour_cache *cache, const uint8_t *frame, uint32_t bytes,
                                            uint64_t now_ns, const uint8_t **answer, uint32_t *answer_bytes);

/* Has the next hop to a host looked for, and kept. CW_OK; CW_ERROR_LIMIT: the table is full; CW_ERROR_NOT_FOUND: it is
 * in another subnet, and there is no gateway. */
int cw_neighbour_want(struct cw_neighbour_cache *cache, const struct cw_ip *ip, uint64_t now_ns);
/* Nobody wants this next hop any more (cw_neighbour_next): it is not asked for, and its place is free. */
void cw_neighbour_forget(struct cw_neighbour_cache *cache, const struct cw_ip *next);
/* The MAC address of the next hop to a host that was wanted. False: not known yet. */
bool cw_neighbour_find(const struct cw_neighbour_cache *cache, const struct cw_ip *ip, uint8_t mac[6]);
/* Grows whenever a MAC address has become known, or another one. */
uint64_t cw_neighbour_changes(const struct cw_neighbour_cache *cache);
/* The address that is asked for on the way to a host; none: there is no way. */
struct cw_ip cw_neighbour_next(const struct cw_neighbour_cache *cache, const struct cw_ip *ip);

/* The next question that is due; its bytes, 0: none is. */
uint32_t cw_neighbour_question(struct cw_neighbour_cache *cache, uint64_t now_ns, uint8_t frame[CW_SOLICIT_BYTES_MAX]);
/* When cw_neighbour_question has one again; UINT64_MAX: not before cw_neighbour_want. */
uint64_t cw_neighbour_deadline(const struct cw_neighbour_cache *cache);

/* The multicast MAC address that questions for an IPv6 address go to, which the port has to let in; false: of IPv4
 * there is none. */
bool cw_neighbour_group(const struct cw_ip *ip, uint8_t mac[6]);
