/* rooted: blocks of a scatter or gather on their way between the root and the others.
 *
 * Nodes are numbered v = 0 .. P-1 from the root; node v's block is that of rank (root + v) mod P. The root's buffer has
 * the blocks in rank order, so that a range of nodes may be two pieces there; other nodes keep the blocks of their
 * subtree in scratch, from their own on, in node order. */
#pragma once

#include "collectives/algorithms/algorithms.h"

struct cw_rooted {
    struct cw_emit *emit;
    uint32_t size;
    uint32_t root;
    uint32_t v;                 /* this rank's node */
    enum cw_buffer root_buffer; /* where the root has all blocks: scatter: send, gather: receive */
    struct cw_place own;        /* where this rank's block belongs: scatter: receive, gather: send */
};

struct cw_rooted cw_rooted_scatter(struct cw_emit *emit);
struct cw_rooted cw_rooted_gather(struct cw_emit *emit);

uint32_t cw_rooted_rank(const struct cw_rooted *rooted, uint32_t v);

/* Bytes of the blocks of nodes [first, past). */
uint64_t cw_rooted_bytes(const struct cw_rooted *rooted, uint32_t first, uint32_t past);

/* Nodes [first, past) as pieces that are contiguous at the root: fills in where each one ends; returns how many (1 or
 * 2). */
uint32_t cw_rooted_pieces(const struct cw_rooted *rooted, uint32_t first, uint32_t past, uint32_t ends[2]);

/* Where the root has the block of node v. */
struct cw_place cw_rooted_root_place(const struct cw_rooted *rooted, uint32_t v);
