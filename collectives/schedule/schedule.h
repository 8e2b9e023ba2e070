/* The schedule: one rank's part in a collective, as data.
 *
 * Purpose
 *   A schedule is an array of typed ops over symbolic buffers, each with the ops it waits for. The same data is
 *   checked, priced, executed, drawn and kept in files. The schedules of all ranks of one collective are a plan.
 *
 * Meaning of an op (its action; its completion)
 *   put        notified put of `from` to `peer` under `tag`; complete when `from` may be reused (that says nothing of
 *              its arrival). Direct: its bytes land in `to`, a place of the *target's* buffers, at any time between
 *              the start of the put and the completion of the wait that matches it. The target must be known to have
 *              entered the collective: something it did in this schedule must come before the put. Eager
 *              (CW_OP_EAGER): the bytes travel to an anonymous buffer and the wait copies them out; `to` is unused. A
 *              transport may hold an eager put back until the wait that matches it has started (buffering is bounded,
 *              and may be none). An eager put of 0 bytes is a signal.
 *   multicast  the same put to each rank of group `peer` of the schedule, without this rank and without
 *              duplicates
 *   wait       complete when the put of `peer` with `tag` has arrived; eager: the bytes then lie in `to`, a place of
 *              this rank. A wait for a direct put names the put's place and bytes here, too.
 *   copy       `blocks` blocks of `bytes` (the last one `last_bytes`), `from_stride` and `to_stride` bytes apart
 *   reduce     to = to OP from, element by element; with CW_OP_LEFT to = from OP to
 *   barrier    complete when every rank has started its barrier with the same number
 *   host       a collective call among this rank and the ranks of group `peer`, all of which share one host's memory:
 *              `collective`, with `root` (a rank), over blocks of `bytes` in the order of the ranks (problem.h has the
 *              blocks of each buffer). `from` is this rank's contribution, `to` its result. It starts when this rank
 *              does, reads the contributions of other ranks when these have started theirs, and is complete when `to`
 *              holds the result and `from` may be reused; it may wait for all ranks of the group. `tag` numbers the
 *              host ops of a schedule from 0; all ranks of the group have the same op under the same number.
 *   join       complete when its dependencies are
 *   repeat     runs the `body_count` ops after it `iterations` times; complete when all of them are, in all iterations
 *
 * Rules
 *   - An op starts when its dependencies are complete. Nothing else orders two ops: they may run in either order or at
 *     once. Their order in the array is the order in which ready ops are started if nothing is against it; correctness
 *     never rests on it.
 *   - A dependency names an op earlier in the array. Between ops of one body, `back` is the number of iterations that
 *     lie between: iteration i waits for iteration i - back (none if i < back); with back > 0 the op may also be the
 *     same or a later one of the body. From a body to an op outside: back is 0. An op outside that depends on an op in
 *     a body waits for all iterations.
 *   - In a body, iteration i adds i * step to offsets and i * CW_TAG_STEP to tags; the last iteration moves
 *     `last_bytes` instead of `bytes`. Bodies do not nest and hold no barrier, host op or strided copy. Iteration i of
 * an op starts after its iteration i - 1 has started and its iteration i - CW_REPEAT_WINDOW has completed.
 *   - Host op n starts after host op n - 1 of the same schedule is complete.
 *   - A put and the wait that matches it have the same tag, and no two puts from one rank to another of one plan have
 *     the same tag.
 *   - A dependency with CW_DEPENDENCY_SENT on a put or multicast is met already when the last byte has left this host.
 *     It paces; a source is not yet reusable then.
 *   - The send buffer is never written.
 *   - No schedule may depend on when the iterations of one op follow each other; the rule only excludes waits.
 *   - Without buffers an eager put is neither complete nor sent before its wait has started.
 *   - A message belongs to the phase of its put. Signals (CW_TAG_SIGNAL) have numbers below 2^17; the upper half is for
 *     barriers.
 *   - Unused fields of an op are zero; blocks is 1 except in copies, whose blocks do not overlap where they are
 *     written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/schedule/limits.h"

enum cw_buffer {
    CW_BUFFER_NONE = 0,
    CW_BUFFER_SEND = 1,    /* the caller's contribution */
    CW_BUFFER_RECEIVE = 2, /* where the caller wants the result */
    CW_BUFFER_SCRATCH = 3, /* `scratch_bytes` of memory for the time of the call; undefined at its start */
};

struct cw_place {
    enum cw_buffer buffer;
    uint64_t offset; /* bytes */
    uint64_t step;   /* in a body: bytes per iteration; elsewhere 0 */
};

enum cw_op_kind {
    CW_OP_PUT = 1,
    CW_OP_MULTICAST = 2,
    CW_OP_WAIT = 3,
    CW_OP_COPY = 4,
    CW_OP_REDUCE = 5,
    CW_OP_BARRIER = 6,
    CW_OP_JOIN = 7,
    CW_OP_REPEAT = 8,
    CW_OP_HOST = 9,
};

enum cw_op_flags {
    CW_OP_EAGER = 1, /* put, multicast, wait */
    CW_OP_LEFT = 2,  /* reduce: `from` is the left operand */
    /* host: the group is all ranks, and the op the whole problem, with its counts as the lengths of blocks; `from` and
     * `to` are the caller's buffers, and `bytes` is 0 */
    CW_OP_WHOLE = 4,
};

/* Two bits of a tag are the purpose of a put; the rest counts. Matching uses the whole tag. */
enum cw_tag_kind {
    CW_TAG_DATA = 0,
    CW_TAG_CLEAR = 1,     /* the place of a coming put is free */
    CW_TAG_SIGNAL = 2,    /* any other synchronisation */
    CW_TAG_MULTICAST = 3, /* numbered by its source */
    CW_TAG_STEP = 4,      /* from one number to the next */
};

struct cw_op {
    uint8_t kind;  /* enum cw_op_kind */
    uint8_t flags; /* enum cw_op_flags */
    uint16_t phase;
    uint32_t peer; /* put: target; wait: source; multicast, host: index of the group */
    uint32_t tag;  /* below 2^CW_SCHEDULE_TAG_BITS; barrier, host: its number, the same on all ranks that take part */
    uint32_t dependency_first;
    uint32_t dependency_count;
    uint32_t body_count; /* repeat: ops that follow and belong to it */
    uint32_t
        iterations;  /* repeat: how often, at least 1; every other op outside a body 1, in a body that of its repeat */
    uint32_t blocks; /* copy: at least 1 */
    struct cw_place from;
    struct cw_place to;
    uint64_t bytes;
    uint64_t last_bytes; /* of the last iteration, or the last block of a strided copy; else equal to bytes */
    uint64_t from_stride;
    uint64_t to_stride;
    uint32_t collective; /* host: enum cw_collective */
    uint32_t root;       /* host: a rank, if the collective has a root */
};

enum cw_dependency_flags {
    CW_DEPENDENCY_SENT = 1,
};

struct cw_dependency {
    uint32_t op; /* index in the same schedule */
    uint16_t back;
    uint16_t flags;
};

/* A list of ranks, kept in `members` of the schedule. */
struct cw_group_range {
    uint32_t first;
    uint32_t count;
};

/* The algorithm's promise in addition to the right result. The same in all ranks' schedules of a plan; the checker
 * holds it to that. Only puts with data count as messages. */
struct cw_promise {
    uint32_t fan_in;  /* messages into one rank per phase, at most; 0: nothing promised */
    uint32_t fan_out; /* messages out of one rank per phase, at most (a multicast is one); 0: nothing promised */
    /* n > 0: a message into a rank starts only after those of all smaller phases but the n - 1 before it have arrived
     * there; of phases with messages into this rank. 0: nothing promised */
    uint32_t phases_apart;
    /* ranks of one cluster that have messages to other clusters in flight at the same time, at most; 0: nothing
     * promised */
    uint32_t wan_senders;
    uint64_t wan_bytes; /* from one cluster to one other, at most; UINT64_MAX: nothing promised */
};

struct cw_schedule {
    uint32_t rank;
    uint32_t op_count;
    uint32_t dependency_count;
    uint32_t group_count;
    uint32_t member_count;
    uint32_t barrier_count; /* barriers are numbered from 0 */
    uint32_t host_count;    /* host ops, which are numbered from 0 */
    uint64_t scratch_bytes;
    struct cw_promise promise;
    struct cw_op *ops;
    struct cw_dependency *dependencies; /* op i has [dependency_first, dependency_first + dependency_count) */
    struct cw_group_range *groups;
    uint32_t *members;
};

/* Frees what the schedule points to; a zeroed one is allowed. */
void cw_schedule_dispose(struct cw_schedule *schedule);

/* Memory of the schedule, with its lists. */
uint64_t cw_schedule_memory_bytes(const struct cw_schedule *schedule);

/* Checks a schedule without the others: kinds, ranges of indices, peers, tags, dependencies, bodies, the shape of ops;
 * with `buffer_bytes` (by enum cw_buffer) also that every own place lies in its buffer. All other code relies on it.
 * CW_OK, or CW_ERROR_ARGUMENT with the reason in `error` ("rank 3, op 7 (put): ..."); CW_ERROR_MEMORY: it could not be
 * checked, with the reason. */
int cw_schedule_validate(const struct cw_schedule *schedule, uint32_t ranks, const uint64_t buffer_bytes[4],
                         char *error, size_t error_bytes);

/* "put", "wait", ...; "unknown op" for any other number. */
const char *cw_op_kind_name(uint32_t kind);

/* "send", "receive", "scratch", "none"; "unknown buffer" for any other number. */
const char *cw_buffer_name(uint32_t buffer);

/* Bytes that an op moves in iteration `iteration`. */
static inline uint64_t cw_op_bytes(const struct cw_op *op, uint32_t iteration)
{
    return iteration + 1 == op->iterations ? op->last_bytes : op->bytes;
}

/* Where iteration `iteration` reads or writes. */
static inline uint64_t cw_place_offset(const struct cw_place *place, uint32_t iteration)
{
    return place->offset + place->step * iteration;
}

/* Blocks of `bytes` that a host op of `members` ranks reads at one rank, and writes there. `index`: which of the
 * members the rank is, and `root` which the root. */
uint32_t cw_host_blocks_read(uint32_t collective, uint32_t members, uint32_t index, uint32_t root);
uint32_t cw_host_blocks_written(uint32_t collective, uint32_t members, uint32_t index, uint32_t root);
/* Whether the result of member `to` needs what member `from` contributes; those of barriers need all. */
bool cw_host_needs(uint32_t collective, uint32_t to, uint32_t from, uint32_t root);

/* The members of a host op of a schedule, and which of them a rank is: that before which `rank` belongs, if it is none.
 */
static inline uint32_t cw_host_members(const struct cw_schedule *schedule, const struct cw_op *op)
{
    return schedule->groups[op->peer].count + 1;
}
uint32_t cw_host_index(const struct cw_schedule *schedule, const struct cw_op *op, uint32_t rank);
/* The rank of a member. */
uint32_t cw_host_rank(const struct cw_schedule *schedule, const struct cw_op *op, uint32_t index);

static inline uint32_t cw_op_tag(const struct cw_op *op, uint32_t iteration)
{
    return op->tag + CW_TAG_STEP * iteration;
}
