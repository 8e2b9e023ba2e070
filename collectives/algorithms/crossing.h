/* crossing: a vector goes from one cluster to another, from many members to many (Matsuda, Kudoh, Kodama, Takano and
 * Ishikawa 2006).
 *
 * In each cluster the vector is divided among *holders*: of a team of n the members 0, stride, 2 * stride, ... each
 * have the n-ths that lie between them and the next holder. Where two clusters divide it differently, a piece is the
 * intersection of two parts; every piece crosses once.
 *
 * How many members of a cluster send at the same time is limited in one of two ways: by forwarding (2.2: holder k hands
 * its pieces to holder k mod limit), or by chaining (2.4: holder k begins when what holder k - limit sent has left). */
#pragma once

#include "collectives/algorithms/algorithms.h"

struct cw_holders {
    struct cw_team team;
    struct cw_blocks blocks; /* even, as many as members */
    uint32_t stride;
    uint32_t count;
};

struct cw_holders cw_holders_make(const struct cw_emit *emit, const struct cw_team *team, uint32_t stride,
                                  uint64_t bytes);

/* Which part holder k has: bytes [offset(k), offset(k + 1)). */
uint64_t cw_holders_offset(const struct cw_holders *holders, uint32_t k);

/* Number of this rank among the holders; count if it is none. */
uint32_t cw_holders_me(const struct cw_holders *holders);

/* A cluster's pieces for others. */
struct cw_crossing {
    struct cw_holders from;
    struct cw_place source; /* at this rank, if it is a holder: where the vector would begin */
    struct cw_place relay;  /* scratch of the size of the vector, the same at all ranks: for who forwards */
    uint32_t senders;       /* limit; 0: none */
    bool chained;
    uint32_t sent; /* chained: complete when all messages so far have left */
    /* senders have what others handed to them, from the first cluster's turn on: handed over again for the next one, it
     * would have to wait until that has it */
    bool is_handed;
};

/* Before the first cw_crossing_send of a cluster and after its last. */
void cw_crossing_begin(struct cw_emit *emit, struct cw_crossing *crossing);
void cw_crossing_end(struct cw_emit *emit, struct cw_crossing *crossing);

/* Sends to the holders of another cluster (this rank is in the sending one), or receives (in the receiving one). Each
 * holder takes its pieces at `target` + their offset in the vector; `packed`: in its part. */
void cw_crossing_send(struct cw_emit *emit, struct cw_crossing *crossing, const struct cw_holders *to,
                      struct cw_place target, bool packed);
void cw_crossing_receive(struct cw_emit *emit, const struct cw_crossing *crossing, const struct cw_holders *to,
                         struct cw_place target, bool packed);

/* ---- The tree along which a vector spreads from cluster to cluster: each hop a direct link ---- */

/* The cluster that `cluster` gets it from if it starts in `root`. */
uint32_t cw_cluster_parent(const struct cw_problem *problem, uint32_t root, uint32_t cluster);

/* A cluster that others reach each other through; 0 if all links are direct. */
uint32_t cw_cluster_hub(const struct cw_problem *problem);
