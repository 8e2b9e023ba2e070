/* The buffers of all ranks of a plan, their initial contents, and whether the final ones are right. For
 * schedules/trial.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/schedule/plan.h"
#include "dataplane/base/random.h"
#include "tests/schedules/reference.h"

/* By enum cw_buffer. */
struct plan_rank_buffers {
    void *at[4];
    uint64_t bytes[4];
};

struct plan_buffers {
    const struct cw_plan *plan;
    struct plan_rank_buffers *ranks;
    uint8_t *memory; /* all of them with their red zones */
};

/* The ranks' data of a run, and their expected results. */
struct plan_truth {
    uint8_t *sent;  /* all send buffers, one behind the other */
    uint8_t **send; /* of each rank, in there */
    struct plan_reference reference;
};

/* The contents of the send buffers are random and depend on rank, byte and `salt`. 0, or -1 and the reason. To be
 * disposed of in either case. */
int plan_truth_create(struct plan_truth *truth, const struct cw_plan *plan, uint64_t salt, char *error,
                      size_t error_bytes);
void plan_truth_dispose(struct plan_truth *truth);

/* Makes room for all ranks' buffers, and their red zones. 0, or -1 and the reason. To be disposed of in either case. */
int plan_buffers_create(struct plan_buffers *buffers, const struct cw_plan *plan, char *error, size_t error_bytes);
void plan_buffers_dispose(struct plan_buffers *buffers);

/* Fills the buffers of a rank for a run: the send buffer with its data, the others at random. */
void plan_buffers_fill(struct plan_buffers *buffers, const struct plan_truth *truth, uint32_t rank,
                       struct cw_random *random);

/* Compares those of a rank with the expected contents after the run. 0, or -1 and the reason. */
int plan_buffers_check(const struct plan_buffers *buffers, const struct plan_truth *truth, uint32_t rank, char *error,
                       size_t error_bytes);
