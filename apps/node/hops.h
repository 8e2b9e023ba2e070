/* hops: the next hops that clients have asked the node for. All users share one table, so a next hop that the node has
 * found for one user is known for all. An absent address is asked for a few times, and then not again for a while.
 *
 * Invariants
 *  - node_hops_want never waits: it returns a known next hop, or starts the search for it.
 *  - The node looks for at most NODE_HOPS_ASKING addresses of a user at a time, and a user has at most NODE_HOPS_USER
 *    entries: further ones replace the user's own. An entry goes when no client has asked for it for a while. When the
 *    table is full, the entry goes that was not asked for the longest.
 *  - A search ends when no client asks for its result.
 *
 * Where the kernel has the address, a short-lived thread for each user asks the kernel's table and the network
 * (control/net/neighbour.h), since that takes up to a second. Where it has none, the dataplane's resolver asks.
 *
 * Order of calls: node_hops_create { node_hops_want, node_hops_turn }* node_hops_destroy. Thread: one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apps/node/dataplane.h"
#include "apps/node/nic.h"

enum { NODE_HOPS_MAX = 4096, NODE_HOPS_USER = 1024, NODE_HOPS_ASKING = 64, NODE_HOPS_THREADS = 16 };

#define NODE_HOPS_ABSENT_NS 2000000000ull  /* time without a new request for an address that does not answer */
#define NODE_HOPS_FRESH_NS  100000000ull   /* age at which the kernel's answer is requested again: routes change */
#define NODE_HOPS_KEEP_NS   60000000000ull /* ... and time without use after which a hop is forgotten */

struct node_hops;

/* `dataplane`: the one that has the resolver, where no kernel has the address. NULL: no memory. */
struct node_hops *node_hops_create(const struct node_nic *nic, struct node_dataplane *dataplane);
void node_hops_destroy(struct node_hops *hops); /* NULL is allowed; waits for the threads, a second at most */

/* True: the next hop to a host has this MAC address. */
bool node_hops_want(struct node_hops *hops, uid_t user, const struct cw_ip *ip, uint64_t now_ns, uint8_t mac[6]);
/* Frees hops that are not used any more; to be called at least once a second. */
void node_hops_turn(struct node_hops *hops, uint64_t now_ns);
