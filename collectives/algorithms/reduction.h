/* reduction: shared by the reductions.
 *
 * Invariant: an accumulator at a rank always holds the operands of an interval of ranks, combined in rank order, so
 * that algorithms built from these parts keep the order of operands. Exceptions (ring, recursive halving) say so, and
 * need a commutative operation. */
#pragma once

#include "collectives/algorithms/algorithms.h"

/* A power of two of the team's members takes part; with others left over, the first pairs of members (0, 1), (2, 3),
 * ... send one of the two, and the other one combines both operands first. */
struct cw_fold {
    struct cw_team team;
    uint32_t power; /* participants */
    uint32_t pairs; /* pairs of which one member takes part */
    uint32_t keep;  /* index of a member that takes part in any case; size: none. In other pairs the second one does. */
    uint32_t me;    /* number among the participants; `power` if this rank is none */
    uint32_t partner; /* index of the other member of the own pair; `size` if there is none */
};

struct cw_fold cw_fold_make(const struct cw_team *team, uint32_t keep);

/* Index in the team of participant i. */
uint32_t cw_fold_member(const struct cw_fold *fold, uint32_t i);

/* First and one past the last member whose operands participant i represents. */
uint32_t cw_fold_first(const struct cw_fold *fold, uint32_t i);

/* A rank that takes no part sends `own` into `landing` of its partner, which combines it into `accumulator`. */
void cw_fold_in(struct cw_emit *emit, const struct cw_fold *fold, struct cw_place own, struct cw_place accumulator,
                struct cw_place landing, uint64_t bytes);

/* The partner sends the result from `from` into `to` of the rank that took no part. */
void cw_fold_out(struct cw_emit *emit, const struct cw_fold *fold, struct cw_place from, struct cw_place to,
                 uint64_t bytes);

/* Reduces the vectors of all members at member 0 up a binomial tree. `own`: the operand of this member; `accumulator`:
 * where member 0 gets the result. Takes scratch, the same at all members. */
void cw_reduce_binomial(struct cw_emit *emit, const struct cw_team *team, struct cw_place own,
                        struct cw_place accumulator, uint64_t bytes);

/* Vector halving, distance doubling among the participants: afterwards participant i has in its accumulator the result
 * of one window of `power` even blocks, [*first, *first + 1). `landing` is of the size of the vector. */
void cw_reduce_halving(struct cw_emit *emit, const struct cw_fold *fold, const struct cw_blocks *blocks,
                       struct cw_place accumulator, struct cw_place landing, uint32_t *window);

/* The window that participant i of `power` has after cw_reduce_halving: its number with the bits turned round. */
uint32_t cw_halving_window(uint32_t power, uint32_t i);

/* Each member ends with the result of one block: that of its index. The others' operands are in `own`; partial results
 * travel in `travel` (the size of the vector; may be where the result is wanted); the own block's result is left at
 * `travel` too. */
void cw_reduce_ring(struct cw_emit *emit, const struct cw_team *team, const struct cw_blocks *blocks,
                    struct cw_place own, struct cw_place travel);

/* Reduces at member `root` into `result`: vector halving with doubling distance, then a gather. */
void cw_reduce_rabenseifner(struct cw_emit *emit, const struct cw_team *team, uint32_t root, struct cw_place own,
                            struct cw_place result, uint64_t bytes);

/* All members get the result of all their vectors at `accumulator`. */
void cw_allreduce_doubling(struct cw_emit *emit, const struct cw_team *team, struct cw_place own,
                           struct cw_place accumulator, uint64_t bytes);
void cw_allreduce_rabenseifner(struct cw_emit *emit, const struct cw_team *team, struct cw_place own,
                               struct cw_place accumulator, uint64_t bytes);
