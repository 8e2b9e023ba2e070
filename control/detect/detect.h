/* detect: clusters from measured round trips.
 *
 * Not all pairs are measured. Hosts are measured to leaders: host 0 first, then, one after the other, whichever host is
 * farthest from all leaders so far (Gonzalez 1985), until no host is far from all: with k clusters O(hosts x k)
 * measurements, k rounds of them.
 *
 * The rule
 *   Two hosts are close if the round trip between them is below a limit; clusters are the connected components of what
 *   is close. The limit is the least measured round trip that is a clear gap above the next shorter one:
 *   CW_DETECT_FACTOR times as long, and CW_DETECT_FAR_NS at least. Without a clear gap there is one cluster. If none
 *   that is shorter was measured (each cluster has one host), a LAN's is taken for CW_DETECT_LAN_NS. Why: a round trip
 *   of a kernel-bypass LAN is 2 to 10 us, over the kernel's TCP some 50 to 100 us, with switches, interrupts and
 *   sleeping receivers 200 us; a wide area begins at about 100 km, which is 1 ms of light in glass there and back;
 *   grids that were worth joining had some 20 ms (Matsuda et al. 2006, 10 ms one way). What lies between is a campus,
 *   and its queues. Noise only adds: so round trips are minima of many samples, and a host is measured in both roles,
 *   and to all leaders, before it is taken for far; any of these that is close joins it. Of several clear gaps (rack,
 *   campus, wide area) the lowest one counts: clusters are those whose hosts are nearest, and the links between them
 *   have different delays.
 *
 * Invariants
 *   - No I/O, no clock, no random numbers: the same round trips give the same clusters.
 *   - A round trip between two clusters is a clear gap longer than any that was measured within one.
 *
 * Order of calls: cw_detect_create; { cw_detect_leader, cw_detect_take for each other host }* until there is no leader;
 * queries; cw_detect_destroy. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* All limits. */
enum {
    CW_DETECT_FACTOR = 5,
    CW_DETECT_LEADERS_MAX = 64,
    CW_DETECT_TRIALS = 8,        /* leaders: if there is no clear gap by then, it is left at that */
    CW_DETECT_CLUSTERS_MAX = 23, /* so many have a link each pair, in one topology */
    CW_DETECT_WHY_BYTES = 240,
};
#define CW_DETECT_FAR_NS UINT64_C(500000)
#define CW_DETECT_LAN_NS UINT64_C(1000000)
#define CW_DETECT_NONE   UINT32_MAX

/* "detect", or "detect:FILE": what CAUSEWAY_TOPOLOGY may say instead of a file. NULL: it says neither; else FILE, ""
 * without one. */
const char *cw_detect_word(const char *word);

struct cw_detect;

/* Of 1 or more hosts. CW_OK, CW_ERROR_MEMORY. */
int cw_detect_create(uint32_t hosts, struct cw_detect **detect);
/* NULL is allowed. */
void cw_detect_destroy(struct cw_detect *detect);

/* The host to which all others are measured next; CW_DETECT_NONE: it is known who is where. The same answer until all
 * have been taken. */
uint32_t cw_detect_leader(struct cw_detect *detect);
/* The shortest round trip between `host` and the present leader, above 0. Each other host once. */
void cw_detect_take(struct cw_detect *detect, uint32_t host, uint64_t round_trip_ns);

/* ---- when there is no leader any more ---- */

/* Numbered from 0 in the order of their first hosts. */
uint32_t cw_detect_count(const struct cw_detect *detect);
uint32_t cw_detect_cluster(const struct cw_detect *detect, uint32_t host);
/* The shortest round trip between two clusters, or by way of others, if that is shorter. */
uint64_t cw_detect_between_ns(const struct cw_detect *detect, uint32_t cluster, uint32_t other);
/* In one line what was found, and by which round trips; at most CW_DETECT_WHY_BYTES. */
void cw_detect_why(const struct cw_detect *detect, char *text, size_t text_bytes);

/* A topology file of the clusters c0, c1, ... with a link of unknown rate and half the round trip between each two, to
 * be freed. Hosts of one name are one host there. CW_OK; CW_ERROR_MEMORY; CW_ERROR_ARGUMENT: hosts of one name are in
 * different clusters, or a name is none for a topology; CW_ERROR_LIMIT: there are more than CW_DETECT_CLUSTERS_MAX
 * clusters; each with a line in `error`. */
int cw_detect_encode(const struct cw_detect *detect, const char *(*host_name)(void *context, uint32_t host),
                     void *context, char **text, char *error, size_t error_bytes);
