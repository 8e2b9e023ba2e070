/* neighbour: the work of a kernel for an address that no kernel has. It answers requests for the address (ARP, RFC 826;
 * Neighbour Discovery, RFC 4861) and echo requests (RFC 792, RFC 4443). It finds the MAC addresses of next hops: for
 * hosts in the own subnet by requests for them, for others that of the gateway. Protocol code: frames in, frames out,
 * no clock.
 *
 * Invariants
 *   - Each frame is answered or dropped without state. Only requested hops are stored, so an unknown host can neither
 *     fill the table nor enter it.
 *   - Answers are limited to CW_NEIGHBOUR_ANSWERS at once and a thousand a second, requests by their intervals: no host
 *     can make this one flood a third host.
 *   - A known hop stays in use while it is requested again; a changed MAC address is used at once.
 *
 * Order of calls
 *   cw_neighbour_create
 *   { cw_neighbour_receive for each frame that no other part accepts; cw_neighbour_want, cw_neighbour_find,
 *     cw_neighbour_remove; cw_neighbour_question until it returns 0, at the time of cw_neighbour_deadline }*
 *   cw_neighbour_destroy
 *
 * Owner: the thread that turns the endpoint. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/ip.h"
#include "dataplane/neighbour/request.h"

struct cw_neighbour_cache;

struct cw_neighbour_config {
    struct cw_ip ip;      /* own */
    uint8_t bits;         /* of its subnet, as cw_ip_shares counts them */
    struct cw_ip gateway; /* for other subnets; none: no gateway */
    uint8_t mac[6];       /* own */
    uint32_t frame_bytes_max;
};

enum cw_neighbour_verdict {
    CW_NEIGHBOUR_FOREIGN,  /* nothing for this address, or of another protocol */
    CW_NEIGHBOUR_TAKEN,    /* no answer is due */
    CW_NEIGHBOUR_ANSWERED, /* *answer must be sent */
    CW_NEIGHBOUR_DAMAGED,  /* of its protocols, with invalid lengths, checksums or addresses */
    CW_NEIGHBOUR_LIMITED,  /* too many before it */
};

/* NULL: no memory. `config` is copied. */
struct cw_neighbour_cache *cw_neighbour_create(const struct cw_neighbour_config *config);
void cw_neighbour_destroy(struct cw_neighbour_cache *cache); /* NULL is allowed */

/* A received frame. *answer: the resolver's own, until the next call. */
enum cw_neighbour_verdict cw_neighbour_receive(struct cw_neighbour_cache *cache, const uint8_t *frame, uint32_t bytes,
                                               uint64_t now_ns, const uint8_t **answer, uint32_t *answer_bytes);

/* Requests the next hop to a host, and keeps it. CW_OK; CW_ERROR_LIMIT: the table is full; CW_ERROR_NOT_FOUND: it is
 * in another subnet, and there is no gateway. */
int cw_neighbour_want(struct cw_neighbour_cache *cache, const struct cw_ip *ip, uint64_t now_ns);
/* Removes a next hop that is no longer needed (cw_neighbour_next). */
void cw_neighbour_remove(struct cw_neighbour_cache *cache, const struct cw_ip *next);
/* The MAC address of the next hop to a host that was wanted. False: not known yet. */
bool cw_neighbour_find(const struct cw_neighbour_cache *cache, const struct cw_ip *ip, uint8_t mac[6]);
/* Grows with each new or changed MAC address. */
uint64_t cw_neighbour_changes(const struct cw_neighbour_cache *cache);
/* The address of the next hop to a host; none: there is no route. */
struct cw_ip cw_neighbour_next(const struct cw_neighbour_cache *cache, const struct cw_ip *ip);

/* The next request that is due; its bytes, 0: none. */
uint32_t cw_neighbour_question(struct cw_neighbour_cache *cache, uint64_t now_ns, uint8_t frame[CW_SOLICIT_BYTES_MAX]);
/* The time of the next request; UINT64_MAX: not before cw_neighbour_want. */
uint64_t cw_neighbour_deadline(const struct cw_neighbour_cache *cache);

/* The multicast MAC address of requests for an IPv6 address, which the port must accept; false: none for
 * IPv4. */
bool cw_neighbour_group(const struct cw_ip *ip, uint8_t mac[6]);
