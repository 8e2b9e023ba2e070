/* emit: how an algorithm writes down the schedule of one rank.
 *
 * An algorithm lists what its rank does in a valid serial order, as a program with non-blocking sends and receives
 * would; the emitter derives the dependencies from the bytes that ops touch (hazards.h), hands out tags and keeps
 * within the limits. The receiver must list messages in the order of the sender.
 *
 * Order of calls
 *   cw_emit_init, { any other }*, cw_emit_finish. A failure (memory, limits) sticks: later calls do nothing, and finish
 *   returns it.
 * Functions that return an op return CW_NO_OP where there is nothing to do (no bytes) or after a failure; CW_NO_OP may
 * be passed on. */
#pragma once

#include "collectives/schedule/hazards.h"
#include "collectives/schedule/plan.h"

#define CW_NO_OP UINT32_MAX

/* Numbers assigned so far between this rank and one other. */
struct cw_emit_peer {
    uint32_t rank;             /* CW_NO_OP: an empty entry */
    uint32_t out[CW_TAG_STEP]; /* by enum cw_tag_kind */
    uint32_t in[CW_TAG_STEP];
};

struct cw_emit {
    const struct cw_problem *problem;
    struct cw_parameters parameters;
    uint32_t rank;
    const void *shared; /* the algorithm's preparation for all ranks */
    bool rendezvous;    /* senders ask before each message that is not eager */
    struct cw_schedule schedule;
    uint32_t op_capacity;
    uint32_t dependency_capacity;
    uint32_t group_capacity;
    uint32_t member_capacity;
    struct cw_hazards hazards;
    struct cw_emit_peer *peers; /* by a hash of the rank: as many as this rank talks to, not as there are */
    uint32_t peer_count;
    uint32_t peer_capacity; /* a power of two */
    uint32_t *marks;        /* by op: the last op found to depend on it, so that no dependency is listed twice */
    uint32_t fence;         /* every new op waits for it */
    uint32_t fence_end;     /* ops from here on came after the fence */
    uint32_t after[8];      /* dependencies of the next op in addition to its hazards */
    uint32_t after_flags[8];
    uint32_t after_count;
    bool in_turn;       /* long messages leave one after the other */
    uint32_t turn_last; /* the latest of them, or CW_NO_OP */
    uint16_t phase;
    uint32_t repeat;    /* the repeat whose body is being written, or CW_NO_OP */
    uint32_t host_last; /* the last host op, or CW_NO_OP */
    uint64_t segment_bytes;
    uint64_t segment_last_bytes;
    int status; /* the first failure */
    const char *reason;
};

void cw_emit_init(struct cw_emit *emit, const struct cw_problem *problem, const struct cw_parameters *parameters,
                  uint32_t rank);

/* Gives the schedule out and frees the rest. CW_OK or the failure, with its reason. */
int cw_emit_finish(struct cw_emit *emit, struct cw_schedule *schedule, const char **reason);

/* Reports what an algorithm cannot do; the text must be a constant. */
void cw_emit_fail(struct cw_emit *emit, int status, const char *reason);

/* ---- Places ---- */

static inline struct cw_place cw_place(enum cw_buffer buffer, uint64_t offset)
{
    return (struct cw_place){buffer, offset, 0};
}

static inline struct cw_place cw_place_add(struct cw_place place, uint64_t bytes)
{
    place.offset += bytes;
    return place;
}

/* Takes scratch memory, aligned to 64 bytes. Places that a peer puts into must come out the same at both: the sender
 * names them. */
struct cw_place cw_emit_scratch(struct cw_emit *emit, uint64_t bytes);

/* ---- Order beyond hazards ---- */

/* The next op waits for `op` (up to 8 at a time). With `sent`: for its last byte to have left only. */
void cw_emit_after(struct cw_emit *emit, uint32_t op);
void cw_emit_after_sent(struct cw_emit *emit, uint32_t op);

/* From here on each message of more than CW_LONG_PUT_BYTES that is not eager leaves when the last byte of the one
 * before has, until `in_turn` is false. For senders whose first message matters most: messages that leave together
 * share the link, and all of them arrive when the last one does. */
void cw_emit_in_turn(struct cw_emit *emit, bool in_turn);

/* An op that is complete when those just named are: to name more than 8, gate by gate. */
uint32_t cw_emit_gate(struct cw_emit *emit);

/* Every op from here on waits for all ops before. */
void cw_emit_fence(struct cw_emit *emit);

/* The same, but of a put since the last fence the next ops wait for its last byte to have left only: its target may be
 * far away. Nothing that overwrites its source is let in by this, and a later fence does not wait for its arrival. */
void cw_emit_fence_sent(struct cw_emit *emit);

/* Every op from here on waits for `op`, in addition to earlier fences. */
void cw_emit_fence_at(struct cw_emit *emit, uint32_t op);

/* The same as cw_emit_fence, for all ranks. */
void cw_emit_barrier(struct cw_emit *emit);

/* Ops from here on belong to this phase. */
void cw_emit_phase(struct cw_emit *emit, uint32_t phase);

/* ---- Local ops ---- */

uint32_t cw_emit_copy(struct cw_emit *emit, struct cw_place to, struct cw_place from, uint64_t bytes);

/* `blocks` blocks of block_bytes, the last one of last_bytes. */
uint32_t cw_emit_copy_blocks(struct cw_emit *emit, struct cw_place to, uint64_t to_stride, struct cw_place from,
                             uint64_t from_stride, uint32_t blocks, uint64_t block_bytes, uint64_t last_bytes);

/* to = to OP from; from_left: to = from OP to. */
uint32_t cw_emit_reduce(struct cw_emit *emit, struct cw_place to, struct cw_place from, uint64_t bytes, bool from_left);

/* ---- Messages: eager up to parameters.eager_max_bytes (single_eager_max_bytes, without segments); longer ones wait
 * until the receiver has said that the place is free ---- */

/* Sends `bytes` to place `to` of `peer`, which calls cw_emit_receive with the same place and bytes. Returns the put. */
uint32_t cw_emit_send(struct cw_emit *emit, uint32_t peer, struct cw_place from, struct cw_place to, uint64_t bytes);

/* Returns the wait. */
uint32_t cw_emit_receive(struct cw_emit *emit, uint32_t peer, struct cw_place to, uint64_t bytes);

/* Sends to all of `members` but this rank, with one multicast; each calls cw_emit_multicast_receive. `number`
 * distinguishes the multicasts of one rank, the same at both ends, below 2^18. */
uint32_t cw_emit_multicast(struct cw_emit *emit, const uint32_t *members, uint32_t count, uint32_t number,
                           struct cw_place from, struct cw_place to, uint64_t bytes);
uint32_t cw_emit_multicast_receive(struct cw_emit *emit, uint32_t peer, uint32_t number, struct cw_place to,
                                   uint64_t bytes);

/* An empty message for order alone. */
uint32_t cw_emit_signal(struct cw_emit *emit, uint32_t peer);
uint32_t cw_emit_await(struct cw_emit *emit, uint32_t peer);

/* From rank `root` to all others at once, or the wait for it. */
uint32_t cw_emit_multicast_signal(struct cw_emit *emit, uint32_t root, uint32_t number);

/* ---- Levels ---- */

/* A collective call among all ranks of this rank's host, which the problem must contain. `bytes`: of a block; `root`: a
 * rank, 0 if the collective has none. A place that this rank does not need is ignored. CW_NO_OP if it is alone there.
 */
uint32_t cw_emit_host(struct cw_emit *emit, enum cw_collective collective, uint32_t root, struct cw_place from,
                      struct cw_place to, uint64_t bytes);
/* The whole problem as one such call: all ranks are on one host. */
uint32_t cw_emit_host_whole(struct cw_emit *emit);

/* Appends the schedule of this rank in a problem of some of the ranks: rank i there is `ranks[i]` here, and buffer b
 * there lies at `at[b]`, the same at all of these ranks where their peers put. It begins after the last fence; ops
 * after it that use its results are behind another fence. */
void cw_emit_level(struct cw_emit *emit, const struct cw_schedule *level, const uint32_t *ranks,
                   const struct cw_place at[4]);

/* ---- Pipelines ---- cw_emit_receive_open and cw_emit_send_open once per peer and direction before the body (they make
 * the handshake for the whole range), then cw_emit_repeat, the messages by cw_emit_segment_*, and cw_emit_repeat_end. A
 * message of `bytes` goes in segments. */

/* Segment length that an algorithm uses: as asked, whole elements, not too many segments; `bytes` itself if none was
 * asked for. */
uint64_t cw_emit_segment_bytes(const struct cw_emit *emit, uint64_t bytes);

/* Says that place `to` may be written; nothing if segments go eagerly. */
void cw_emit_receive_open(struct cw_emit *emit, uint32_t peer, struct cw_place to, uint64_t bytes,
                          uint64_t segment_bytes);
/* Waits for that; to be named to cw_emit_segment_send. */
uint32_t cw_emit_send_open(struct cw_emit *emit, uint32_t peer, uint64_t bytes, uint64_t segment_bytes);

void cw_emit_repeat(struct cw_emit *emit, uint64_t bytes, uint64_t segment_bytes);
void cw_emit_repeat_end(struct cw_emit *emit);

uint32_t cw_emit_segment_send(struct cw_emit *emit, uint32_t opened, uint32_t peer, struct cw_place from,
                              struct cw_place to);
uint32_t cw_emit_segment_receive(struct cw_emit *emit, uint32_t peer, struct cw_place to);
uint32_t cw_emit_segment_reduce(struct cw_emit *emit, struct cw_place to, struct cw_place from, bool from_left);
