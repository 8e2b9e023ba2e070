/* The buffers of all ranks of a plan, what they begin with, and whether they end as they must. For plan/trial.c and
 * plan/puts.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/plan/reference.h"
#include "collectives/schedule/plan.h"
#include "dataplane/fabric/random.h"

/* By enum cw_buffer. */
struct plan_rank_buffers {
    void *at[4];
    uint64_t bytes[4];
    uint64_t send_offset; /* of its send buffer's contents in send_copy */
};

struct plan_buffers {
    const struct cw_plan *plan;
    struct plan_rank_buffers *ranks;
    uint8_t *memory; /* all of them with their red zones */
    uint8_t *send_copy;
    struct plan_reference reference;
};

/* The contents of the send buffers depend on rank, byte and `salt`. 0, or -1 and the reason. To be disposed of in
 * either case. */
int plan_buffers_create(struct plan_buffers *buffers, const struct cw_plan *plan, uint64_t salt, char *error,
                        size_t error_bytes);
void plan_buffers_dispose(struct plan_buffers *buffers);

/* Fills the receive and scratch buffers. */
void plan_buffers_spoil(struct plan_buffers *buffers, struct cw_random *random);

/* Compares them with the reference after a run. 0, or -1 and the reason. */
int plan_buffers_judge(const struct plan_buffers *buffers, char *error, size_t error_bytes);

/* ---- One rank at a time, for runs that overlap: what is sent and expected is that of `truth`, made for the same plan
 * with another salt ---- */

/* Gives the memory of the buffers back: what is left is good as a `truth` below, and to be disposed of. */
void plan_buffers_keep_truth(struct plan_buffers *buffers);

/* Fills all three buffers of a rank. */
void plan_buffers_refill(struct plan_buffers *buffers, const struct plan_buffers *truth, uint32_t rank,
                         struct cw_random *random);

/* 0, or -1 and the reason. */
int plan_buffers_judge_rank(const struct plan_buffers *buffers, const struct plan_buffers *truth, uint32_t rank,
                            char *error, size_t error_bytes);
