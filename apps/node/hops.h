/* hops: the next hops that clients have asked the node for. One table for all users, so that nobody asks for what another one has
 * found; who is absent is asked for a few times, and then not again for a while.
 *
 * Invariants
 *  - node_hops_want never waits: it tells what is known by now, and has the rest looked for.
 *  - A user has NODE_HOPS_ASKING addresses looked for at a time, and its absent ones take no place from others: an entry goes
 *    when nobody has wanted it for a while, and the one that was wanted last of all goes when there is no room.
 *  - Questions end when nobody wants their answer.
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

enum { NODE_HOPS_MAX = 256, NODE_HOPS_ASKING = 64, NODE_HOPS_THREADS = 16 };

#define NODE_HOPS_ABSENT_NS 2000000000ull  /* an address that nobody answers for is not asked for again before */
#define NODE_HOPS_FRESH_NS  100000000ull   /* what the kernel said is asked for anew after: routes change */
#define NODE_HOPS_KEEP_NS   60000000000ull /* ... and forgotten, when nobody has wanted it for so long */

struct node_hops;

/* `dataplane`: the one that has the resolver, where no kernel has the address. NULL: no memory. */
struct node_hops *node_hops_create(const struct node_nic *nic, struct node_dataplane *dataplane);
void node_hops_destroy(struct node_hops *hops); /* NULL is allowed; waits for the threads, a second at most */

/* True: the next hop to a host has this MAC address. */
bool node_hops_want(struct node_hops *hops, uid_t user, const struct cw_ip *ip, uint64_t now_ns, uint8_t mac[6]);
/* Lets go what is not wanted any more; to be called once a second, or more often. */
void node_hops_turn(struct node_hops *hops, uint64_t now_ns);
