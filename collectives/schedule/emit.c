#include "collectives/schedule/emit_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

enum { SCRATCH_ALIGNMENT = 64 };

static const char no_memory[] = "no memory for the schedule";

void cw_emit_fail(struct cw_emit *emit, int status, const char *reason)
{
    if (emit->status == CW_OK) {
        emit->status = status;
        emit->reason = reason;
    }
}

void cw_emit_init(struct cw_emit *emit, const struct cw_problem *problem, const struct cw_parameters *parameters,
                  uint32_t rank)
{
    memset(emit, 0, sizeof(*emit));
    emit->problem = problem;
    emit->parameters = *parameters;
    emit->rank = rank;
    emit->schedule.rank = rank;
    emit->schedule.promise.wan_bytes = UINT64_MAX;
    emit->fence = CW_NO_OP;
    emit->turn_last = CW_NO_OP;
    emit->repeat = CW_NO_OP;
    emit->host_last = CW_NO_OP;
}

/* The list without the room that it has left over from doubling: with many ranks that adds up. */
static void *list_fit(void *list, uint32_t count, size_t entry_bytes)
{
    void *fitted = count > 0 ? realloc(list, count * entry_bytes) : NULL;
    return fitted != NULL ? fitted : list;
}

int cw_emit_finish(struct cw_emit *emit, struct cw_schedule *schedule, const char **reason)
{
    assert(emit->repeat == CW_NO_OP && emit->after_count == 0);
    cw_hazards_dispose(&emit->hazards);
    free(emit->peers);
    free(emit->marks);
    if (emit->status != CW_OK) {
        cw_schedule_dispose(&emit->schedule);
        *reason = emit->reason;
        return emit->status;
    }
    emit->schedule.ops = list_fit(emit->schedule.ops, emit->schedule.op_count, sizeof(struct cw_op));
    emit->schedule.dependencies =
        list_fit(emit->schedule.dependencies, emit->schedule.dependency_count, sizeof(struct cw_dependency));
    *schedule = emit->schedule;
    return CW_OK;
}

/* ---- Growing lists ---- */

void *emit_list_grow(struct cw_emit *emit, void *list, uint32_t count, uint32_t *capacity, size_t entry_bytes,
                     uint32_t limit, const char *limit_reason)
{
    if (emit->status != CW_OK) {
        return NULL;
    }
    if (count < *capacity) {
        return list;
    }
    if (count >= limit) {
        cw_emit_fail(emit, CW_ERROR_LIMIT, limit_reason);
        return NULL;
    }
    uint32_t wanted = *capacity == 0 ? 32 : *capacity * 2;
    void *grown = realloc(list, wanted * entry_bytes);
    if (grown == NULL) {
        cw_emit_fail(emit, CW_ERROR_MEMORY, no_memory);
        return NULL;
    }
    *capacity = wanted;
    return grown;
}

static bool op_grow(struct cw_emit *emit)
{
    struct cw_schedule *schedule = &emit->schedule;
    uint32_t before = emit->op_capacity;
    struct cw_op *ops = emit_list_grow(emit, schedule->ops, schedule->op_count, &emit->op_capacity, sizeof(*ops),
                                       CW_OPS_MAX, "more ops than a schedule may have; use longer segments");
    if (ops == NULL) {
        return false;
    }
    schedule->ops = ops;
    if (emit->op_capacity != before) {
        uint32_t *marks = realloc(emit->marks, emit->op_capacity * sizeof(*marks));
        if (marks == NULL) {
            cw_emit_fail(emit, CW_ERROR_MEMORY, no_memory);
            return false;
        }
        emit->marks = marks;
    }
    return true;
}

/* ---- Ops and dependencies ---- */

/* The op under construction is always the last one. */
struct cw_op *emit_op_last(struct cw_emit *emit)
{
    return &emit->schedule.ops[emit->schedule.op_count - 1];
}

/* The same whatever is listed already, `back` iterations back. */
bool emit_dependency_append(struct cw_emit *emit, uint32_t on, uint16_t back, uint16_t flags)
{
    struct cw_schedule *schedule = &emit->schedule;
    struct cw_dependency *dependencies =
        emit_list_grow(emit, schedule->dependencies, schedule->dependency_count, &emit->dependency_capacity,
                       sizeof(*dependencies), CW_DEPENDENCIES_MAX, "more dependencies than a schedule may have");
    if (dependencies == NULL) {
        return false;
    }
    schedule->dependencies = dependencies;
    schedule->dependencies[schedule->dependency_count++] = (struct cw_dependency){on, back, flags};
    emit_op_last(emit)->dependency_count++;
    return true;
}

void emit_dependency_add(struct cw_emit *emit, uint32_t on, uint16_t flags)
{
    uint32_t self = emit->schedule.op_count - 1;
    if (on != CW_NO_OP && on != self && emit->marks[on] != self && emit_dependency_append(emit, on, 0, flags)) {
        emit->marks[on] = self;
    }
}

static void hazard_visit(void *context, uint32_t op)
{
    emit_dependency_add(context, op, 0);
}

/* Opens an op of `bytes` (in a body: of a segment). NULL after a failure. */
struct cw_op *emit_op_open(struct cw_emit *emit, enum cw_op_kind kind, uint64_t bytes)
{
    if (!op_grow(emit)) {
        emit->after_count = 0;
        return NULL;
    }
    uint32_t self = emit->schedule.op_count++;
    struct cw_op *op = &emit->schedule.ops[self];
    memset(op, 0, sizeof(*op));
    emit->marks[self] = CW_NO_OP;
    op->kind = (uint8_t)kind;
    op->phase = emit->phase;
    op->dependency_first = emit->schedule.dependency_count;
    op->iterations = 1;
    op->blocks = 1;
    op->bytes = op->last_bytes = bytes;
    if (emit->repeat != CW_NO_OP) {
        struct cw_op *repeat = &emit->schedule.ops[emit->repeat];
        repeat->body_count++;
        op->iterations = repeat->iterations;
        op->last_bytes = bytes != 0 ? emit->segment_last_bytes : 0;
    }
    for (uint32_t i = 0; i < emit->after_count; i++) {
        emit_dependency_add(emit, emit->after[i], (uint16_t)emit->after_flags[i]);
    }
    emit->after_count = 0;
    emit_dependency_add(emit, emit->fence, 0);
    return emit_op_last(emit);
}

uint32_t emit_op_close(struct cw_emit *emit)
{
    return emit->status == CW_OK ? emit->schedule.op_count - 1 : CW_NO_OP;
}

/* Where op touches `bytes` at `place` in all its iterations. */
void emit_access_bytes(struct cw_emit *emit, struct cw_place place, uint64_t bytes, bool write, bool record)
{
    if (emit->status == CW_OK && !cw_hazards_access(&emit->hazards, place.buffer, place.offset, place.offset + bytes,
                                                    write, emit->schedule.op_count - 1, record, hazard_visit, emit)) {
        cw_emit_fail(emit, CW_ERROR_MEMORY, no_memory);
    }
}

void emit_access_op(struct cw_emit *emit, struct cw_place place, bool write)
{
    const struct cw_op *op = emit_op_last(emit);
    emit_access_bytes(emit, place, place.step * (op->iterations - 1) + op->last_bytes, write, true);
}

static uint32_t tag_allocate(struct cw_emit *emit, uint32_t *counter, enum cw_tag_kind kind, uint32_t count)
{
    uint32_t number = *counter;
    uint32_t limit = kind == CW_TAG_SIGNAL ? EMIT_SIGNALS_MAX : EMIT_NUMBERS_MAX;
    if (count > limit - number) {
        cw_emit_fail(emit, CW_ERROR_LIMIT, "more messages between two ranks than tags can number; use longer segments");
        return 0;
    }
    *counter += count;
    return number * CW_TAG_STEP + kind;
}

static uint32_t iterations_now(const struct cw_emit *emit)
{
    return emit->repeat == CW_NO_OP ? 1 : emit->schedule.ops[emit->repeat].iterations;
}

/* The entry of `rank`, or the empty one where it belongs. */
static struct cw_emit_peer *peer_slot(struct cw_emit_peer *peers, uint32_t capacity, uint32_t rank)
{
    uint32_t at = (rank * 2654435769u) & (capacity - 1);
    while (peers[at].rank != rank && peers[at].rank != CW_NO_OP) {
        at = (at + 1) & (capacity - 1);
    }
    return &peers[at];
}

/* Doubles the table when it is three quarters full. */
static bool peers_grow(struct cw_emit *emit)
{
    if (emit->peer_count < emit->peer_capacity / 4 * 3) {
        return true;
    }
    uint32_t capacity = emit->peer_capacity == 0 ? 16 : emit->peer_capacity * 2;
    struct cw_emit_peer *peers = malloc(capacity * sizeof(*peers));
    if (peers == NULL) {
        cw_emit_fail(emit, CW_ERROR_MEMORY, no_memory);
        return false;
    }
    for (uint32_t i = 0; i < capacity; i++) {
        peers[i].rank = CW_NO_OP;
    }
    for (uint32_t i = 0; i < emit->peer_capacity; i++) {
        if (emit->peers[i].rank != CW_NO_OP) {
            *peer_slot(peers, capacity, emit->peers[i].rank) = emit->peers[i];
        }
    }
    free(emit->peers);
    emit->peers = peers;
    emit->peer_capacity = capacity;
    return true;
}

/* NULL after a failure. */
static struct cw_emit_peer *peer_find(struct cw_emit *emit, uint32_t rank)
{
    if (emit->status != CW_OK || !peers_grow(emit)) {
        return NULL;
    }
    struct cw_emit_peer *peer = peer_slot(emit->peers, emit->peer_capacity, rank);
    if (peer->rank == CW_NO_OP) {
        memset(peer, 0, sizeof(*peer));
        peer->rank = rank;
        emit->peer_count++;
    }
    return peer;
}

uint32_t emit_tag_out(struct cw_emit *emit, uint32_t rank, enum cw_tag_kind kind)
{
    struct cw_emit_peer *peer = peer_find(emit, rank);
    return peer != NULL ? tag_allocate(emit, &peer->out[kind], kind, iterations_now(emit)) : 0;
}

uint32_t emit_tag_in(struct cw_emit *emit, uint32_t rank, enum cw_tag_kind kind)
{
    struct cw_emit_peer *peer = peer_find(emit, rank);
    return peer != NULL ? tag_allocate(emit, &peer->in[kind], kind, iterations_now(emit)) : 0;
}

struct cw_place cw_emit_scratch(struct cw_emit *emit, uint64_t bytes)
{
    uint64_t offset = emit->schedule.scratch_bytes;
    uint64_t taken = (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    if (taken > CW_BUFFER_BYTES_MAX - offset) {
        cw_emit_fail(emit, CW_ERROR_LIMIT, "more scratch memory than a buffer may have");
        return cw_place(CW_BUFFER_SCRATCH, 0);
    }
    emit->schedule.scratch_bytes += taken;
    return cw_place(CW_BUFFER_SCRATCH, offset);
}

/* ---- Order ---- */

void emit_after_add(struct cw_emit *emit, uint32_t op, uint32_t flags)
{
    if (op != CW_NO_OP && emit->status == CW_OK) {
        assert(emit->after_count < sizeof(emit->after) / sizeof(emit->after[0]));
        emit->after[emit->after_count] = op;
        emit->after_flags[emit->after_count++] = flags;
    }
}

void cw_emit_after(struct cw_emit *emit, uint32_t op)
{
    emit_after_add(emit, op, 0);
}

void cw_emit_after_sent(struct cw_emit *emit, uint32_t op)
{
    emit_after_add(emit, op, CW_DEPENDENCY_SENT);
}

void cw_emit_in_turn(struct cw_emit *emit, bool in_turn)
{
    emit->in_turn = in_turn;
    emit->turn_last = CW_NO_OP;
}

/* Makes the op under construction wait for all since the last fence that no other op represents; for puts with
 * `put_flags`. */
static void depend_on_all(struct cw_emit *emit, uint16_t put_flags)
{
    uint32_t self = emit->schedule.op_count - 1;
    for (uint32_t i = emit->fence_end; i < self; i++) {
        emit_dependency_add(emit, i, emit->schedule.ops[i].kind == CW_OP_PUT ? put_flags : 0);
        if (emit->schedule.ops[i].kind == CW_OP_REPEAT) {
            i += emit->schedule.ops[i].body_count;
        }
    }
}

/* Complete when all ops before are. */
static uint32_t emit_join(struct cw_emit *emit)
{
    assert(emit->repeat == CW_NO_OP);
    if (emit_op_open(emit, CW_OP_JOIN, 0) != NULL) {
        depend_on_all(emit, 0);
    }
    return emit_op_close(emit);
}

uint32_t cw_emit_gate(struct cw_emit *emit)
{
    assert(emit->repeat == CW_NO_OP);
    emit_op_open(emit, CW_OP_JOIN, 0);
    return emit_op_close(emit);
}

void cw_emit_fence(struct cw_emit *emit)
{
    if (emit->status != CW_OK || emit->fence_end == emit->schedule.op_count) {
        return; /* nothing has come since the last one */
    }
    emit->fence = emit->fence_end + 1 == emit->schedule.op_count ? emit->fence_end : emit_join(emit);
    emit->fence_end = emit->schedule.op_count;
}

void cw_emit_fence_sent(struct cw_emit *emit)
{
    assert(emit->repeat == CW_NO_OP);
    if (emit->status != CW_OK || emit->fence_end == emit->schedule.op_count) {
        return;
    }
    if (emit_op_open(emit, CW_OP_JOIN, 0) != NULL) {
        depend_on_all(emit, CW_DEPENDENCY_SENT);
    }
    emit->fence = emit_op_close(emit);
    emit->fence_end = emit->schedule.op_count;
}

void cw_emit_fence_at(struct cw_emit *emit, uint32_t op)
{
    if (op == CW_NO_OP || emit->status != CW_OK) {
        return;
    }
    if (emit->fence != CW_NO_OP) {
        cw_emit_after(emit, op);
        op = cw_emit_gate(emit); /* waits for the fence before, too */
    }
    emit->fence = op;
    emit->fence_end = emit->schedule.op_count;
}

void cw_emit_barrier(struct cw_emit *emit)
{
    assert(emit->repeat == CW_NO_OP);
    struct cw_op *op = emit_op_open(emit, CW_OP_BARRIER, 0);
    if (op == NULL) {
        return;
    }
    if (emit->schedule.barrier_count == CW_BARRIERS_MAX) {
        cw_emit_fail(emit, CW_ERROR_LIMIT, "more barriers than a schedule may have");
        return;
    }
    op->tag = emit->schedule.barrier_count++;
    depend_on_all(emit, 0);
    emit->fence = emit_op_close(emit);
    emit->fence_end = emit->schedule.op_count;
}

void cw_emit_phase(struct cw_emit *emit, uint32_t phase)
{
    if (phase > CW_PHASES_MAX) {
        cw_emit_fail(emit, CW_ERROR_LIMIT, "more phases than a schedule may have");
        return;
    }
    emit->phase = (uint16_t)phase;
}

/* ---- Local ops ---- */

uint32_t cw_emit_copy(struct cw_emit *emit, struct cw_place to, struct cw_place from, uint64_t bytes)
{
    return cw_emit_copy_blocks(emit, to, 0, from, 0, 1, bytes, bytes);
}

uint32_t cw_emit_copy_blocks(struct cw_emit *emit, struct cw_place to, uint64_t to_stride, struct cw_place from,
                             uint64_t from_stride, uint32_t blocks, uint64_t block_bytes, uint64_t last_bytes)
{
    if (block_bytes == 0 || blocks == 0) {
        return CW_NO_OP;
    }
    struct cw_op *op = emit_op_open(emit, CW_OP_COPY, block_bytes);
    if (op == NULL) {
        return CW_NO_OP;
    }
    op->blocks = blocks;
    op->from = from;
    op->to = to;
    op->from_stride = blocks > 1 ? from_stride : 0;
    op->to_stride = blocks > 1 ? to_stride : 0;
    if (emit->repeat == CW_NO_OP) {
        op->last_bytes = last_bytes;
    }
    if (blocks == 1) {
        emit_access_op(emit, from, false);
        emit_access_op(emit, to, true);
        return emit_op_close(emit);
    }
    assert(emit->repeat == CW_NO_OP);
    for (uint32_t i = 0; i < blocks; i++) {
        uint64_t bytes = i + 1 == blocks ? last_bytes : block_bytes;
        emit_access_bytes(emit, cw_place_add(from, i * from_stride), bytes, false, true);
        emit_access_bytes(emit, cw_place_add(to, i * to_stride), bytes, true, true);
    }
    return emit_op_close(emit);
}

uint32_t cw_emit_reduce(struct cw_emit *emit, struct cw_place to, struct cw_place from, uint64_t bytes, bool from_left)
{
    struct cw_op *op = bytes != 0 ? emit_op_open(emit, CW_OP_REDUCE, bytes) : NULL;
    if (op == NULL) {
        return CW_NO_OP;
    }
    op->flags = from_left ? CW_OP_LEFT : 0;
    op->from = from;
    op->to = to;
    emit_access_op(emit, from, false);
    emit_access_op(emit, to, true);
    return emit_op_close(emit);
}
