/* override: algorithms named by the user, for measuring and for trying out.
 *
 *   bcast=binomial,allreduce=ring,allgather=concurrent:concurrency=4,
 *   bcast=segmented-chain:segment=65536,alltoallv=greedy:threshold=1024
 *
 * Parameters: segment (bytes), degree, concurrency, threshold (bytes), senders (ranks of a cluster that send to others
 * at a time). The last setting of a collective counts. A setting that does not fit a call (an operation that does not
 * commute, counts that differ) is ignored there.
 *
 * `alltoallv` is a call of its own, separate from `alltoall`: its algorithms are those of the all-to-all that serve
 * different counts, and `pairs`, the schedules of ranks that know only their own counts (algorithms/own.h). So is
 * `scatterv`: its algorithms are `pairs`, and two by multicast groups, `static` and `dynamic`, which are no schedules
 * of the registry, since only the root knows the counts. */
#pragma once

#include "collectives/algorithms/build.h"

enum {
    CW_OVERRIDE_ALLTOALLV = CW_COLLECTIVE_COUNT, /* behind the collectives of problem.h */
    CW_OVERRIDE_SCATTERV,
    CW_OVERRIDE_COUNT,
};

#define CW_OVERRIDE_PAIRS   "pairs" /* of alltoallv and scatterv */
#define CW_OVERRIDE_STATIC  "static"
#define CW_OVERRIDE_DYNAMIC "dynamic"

/* A way to carry out a call that is no algorithm of the registry. */
struct cw_override_way {
    uint32_t call; /* of cw_override's `of` */
    const char *name;
    const char *summary;
    const char *source;
};

/* The ways there are, by index; NULL: no more. */
const struct cw_override_way *cw_override_way_at(uint32_t index);
/* The name of a call: of a collective, "alltoallv" or "scatterv". */
const char *cw_override_call_name(uint32_t call);

struct cw_override {
    struct {
        char name[CW_ALGORITHM_NAME_MAX]; /* "": whatever is best */
        struct cw_parameters parameters;
    } of[CW_OVERRIDE_COUNT]; /* by enum cw_collective, or CW_OVERRIDE_ALLTOALLV, CW_OVERRIDE_SCATTERV */
};

/* CW_OK; CW_ERROR_ARGUMENT with a line in `error`, which lists what there is. */
int cw_override_parse(const char *text, struct cw_override *override, char *error, size_t error_bytes);

/* The word for one algorithm with its parameters, as above. */
void cw_override_write(const struct cw_algorithm *algorithm, const struct cw_parameters *parameters, char *text,
                       size_t text_bytes);
