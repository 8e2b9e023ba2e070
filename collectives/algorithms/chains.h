/* chains: in which order the ranks of a cluster pass on the parts of a vector, in pipelines across clusters.
 *
 * Each part has a rank of its own in each cluster, its *head*, and a chain of all other ranks of the cluster behind it.
 * Heads are spread evenly. Every chain ends with the next part's head, which has a crossing to pay for: so no rank
 * passes on more than the whole vector. */
#pragma once

#include "collectives/algorithms/algorithms.h"

/* One part's way through one cluster: nodes 0 .. count-1 of a chain, which are members of the team. */
struct cw_chain {
    struct cw_team team;
    uint32_t count; /* of nodes: all members but the first `skip` */
    uint32_t skip;
    uint32_t first; /* node 0 is member skip + first: the part's head */
    uint32_t next;  /* distance in members to the next part's head, which is the last node; 0: there is no other part */
};

struct cw_chain cw_chain_make(const struct cw_team *team, uint32_t skip, uint32_t part, uint32_t parts);

/* The rank of a node. */
uint32_t cw_chain_rank(const struct cw_chain *chain, uint32_t node);

/* The node of this rank; count if it is none. */
uint32_t cw_chain_me(const struct cw_chain *chain);

/* The maximum number of successive parts with the same head, in a cluster of `count` nodes. */
uint32_t cw_chain_parts_max(uint32_t count, uint32_t parts);
