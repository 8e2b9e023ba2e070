/* The files of the executor: execute/create.c (memory), execute.c (starting ops), outcome.c (completing them),
 * execute/ready.c (choice of the next op), execute/arrival.c (matching arrivals with waits), execute/barrier.c,
 * execute/describe.c. Private to them.
 *
 * Invariants
 *   - An op is in the ready set or in the line of refused puts and reductions exactly if
 *     collectives/schedule/progress.h has said that it may start and it has not.
 *   - A barrier releases what depends on it when all signals have come; the execution ends only when its puts are
 *     complete, too, so that nothing is in flight between two runs. */
#pragma once

#include "collectives/execute/execute.h"
#include "collectives/schedule/progress.h"

enum {
    EXECUTION_NO_OP = UINT32_MAX,
    EXECUTION_READY_LEVELS = 4, /* 64^4 = CW_OPS_MAX */
    EXECUTION_READY_SETS = 2,
    EXECUTION_STARTS_MAX = 4096, /* ops started in one poll */
    EXECUTION_REFUSALS_MAX = 8,  /* puts answered with CW_ERROR_AGAIN in one poll before it stops trying */
    EXECUTION_FAILURE_BYTES = 160,
    /* Tag numbers of barriers: CW_TAG_SIGNAL, from EXECUTION_BARRIER_NUMBER, 32 rounds each. */
    EXECUTION_BARRIER_NUMBER = 1 << (CW_SCHEDULE_TAG_BITS - 3),
    EXECUTION_BARRIER_ROUNDS = 32,
};

/* The context of a barrier's put; others have op + (iteration << 32). */
#define EXECUTION_BARRIER_CONTEXT UINT64_MAX

/* A wait's entries in tables that all of them share. */
struct wait_layout {
    uint64_t arrived_first; /* its iterations' bits in `arrived`; words */
    uint64_t early_first;   /* eager with data: its iterations' entries in `early` */
};

/* An eager arrival before its wait has started. */
struct early_arrival {
    const void *data;
    uint64_t buffer;
};

/* Which wait an arrival is for: one entry per (peer, tag), or for long ranges one per (peer, kind, 64 tags). */
struct match_entry {
    uint64_t key;
    uint32_t op; /* EXECUTION_NO_OP: empty */
};

struct execution_barrier {
    uint32_t op;
    uint32_t arrived; /* bit per round */
    uint32_t sent;    /* rounds */
    bool refused;     /* its next put is in the line of refused ones */
};

struct ready_set {
    uint64_t *words[EXECUTION_READY_LEVELS]; /* level 0: a bit per op; above: a bit per word that is not 0 */
    uint32_t count;
};

struct cw_execution {
    struct cw_execution_request request;
    const struct cw_schedule *schedule;
    struct cw_progress progress; /* `cursor` of a repeat: where to look first for the next ready op of its body */
    struct wait_layout *waits;   /* by op */

    struct ready_set ready[EXECUTION_READY_SETS]; /* signals; all other ops */
    uint32_t ready_levels;
    uint32_t *ready_list; /* instead, if `pick` chooses */
    uint32_t ready_count; /* of both */

    uint32_t *refused; /* ring of ops whose put or reduction was refused */
    uint32_t refused_first;
    uint32_t refused_count;
    uint32_t refusals;    /* in this poll */
    bool reductions_left; /* some of the ring are reductions */

    struct match_entry *matches;
    uint64_t match_mask;
    uint32_t match_shift;
    bool match_ranges; /* some entries are for ranges */
    uint64_t *arrived;
    uint64_t arrived_words;
    struct early_arrival *early;

    struct execution_barrier *barriers;
    uint32_t barrier_rounds;
    uint32_t barrier_puts; /* not yet complete */

    uint64_t steps; /* iterations of all ops */
    uint64_t steps_left;
    int status; /* CW_ERROR_AGAIN while it runs */
    char failure[EXECUTION_FAILURE_BYTES];
};

/* ---- outcome.c ---- */

/* Ends the execution with `status` and a reason, and releases the buffers of early arrivals. */
__attribute__((format(printf, 3, 4))) void execution_fail(struct cw_execution *execution, int status,
                                                          const char *format, ...);

/* One iteration of an op is complete. */
void execution_complete(struct cw_execution *execution, uint32_t index, uint32_t iteration);

/* For cw_progress: `context` is the execution, and op `index` may start. */
void execution_ready(void *context, uint32_t index);

/* A put was answered with CW_ERROR_AGAIN, or a reduction may not be made now: a later poll tries again. */
void execution_refused_add(struct cw_execution *execution, uint32_t index);

/* Releases a buffer of the transport. */
void execution_release(const struct cw_execution *execution, uint64_t buffer);

/* ---- execute.c ---- */

/* The transport's sink (transport.h). */
bool execution_event(void *context, const struct cw_transport_event *event);

static inline uint8_t *execution_at(const struct cw_execution *execution, const struct cw_place *place,
                                    uint32_t iteration)
{
    return (uint8_t *)execution->request.buffers[place->buffer] + cw_place_offset(place, iteration);
}

/* ---- execute/ready.c ---- */

bool execution_ready_create(struct cw_execution *execution);
void execution_ready_destroy(struct cw_execution *execution);
void execution_ready_clear(struct cw_execution *execution);
void execution_ready_add(struct cw_execution *execution, uint32_t index);

/* Takes the op that is to start next out of the set, which is not empty. EXECUTION_NO_OP: `pick` wants none for now. */
uint32_t execution_ready_pop(struct cw_execution *execution);

/* ---- execute/arrival.c ---- */

/* Builds the table. CW_OK, CW_ERROR_ARGUMENT (two waits for one put), CW_ERROR_MEMORY. */
int execution_match_create(struct cw_execution *execution);
/* True: its data is held until `release`. */
bool execution_arrived(struct cw_execution *execution, const struct cw_transport_event *event);
void execution_wait_start(struct cw_execution *execution, uint32_t index, uint32_t iteration);

static inline bool execution_has_arrived(const struct cw_execution *execution, uint32_t index, uint32_t iteration)
{
    uint64_t word = execution->arrived[execution->waits[index].arrived_first + iteration / 64];
    return (word >> (iteration % 64) & 1) != 0;
}

/* ---- execute/barrier.c ---- */

int execution_barriers_create(struct cw_execution *execution);
void execution_barriers_clear(struct cw_execution *execution);
void execution_barrier_start(struct cw_execution *execution, uint32_t index);

/* Its put was refused and is tried again. */
void execution_barrier_retry(struct cw_execution *execution, uint32_t index);

/* An arrival whose tag is one of barriers. */
void execution_barrier_arrived(struct cw_execution *execution, const struct cw_transport_event *event);

static inline bool execution_barrier_tag(uint32_t tag)
{
    return tag % CW_TAG_STEP == CW_TAG_SIGNAL && tag / CW_TAG_STEP >= EXECUTION_BARRIER_NUMBER;
}
