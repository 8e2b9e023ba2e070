/* Messages: puts and waits, their handshakes, multicasts and pipelines. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/emit_private.h"
#include "dataplane/status.h"

static uint32_t put_eager(struct cw_emit *emit, uint32_t peer, uint32_t tag, struct cw_place from, uint64_t bytes)
{
    struct cw_op *op = emit_op_open(emit, CW_OP_PUT, bytes);
    if (op == NULL) {
        return CW_NO_OP;
    }
    op->flags = CW_OP_EAGER;
    op->peer = peer;
    op->tag = tag;
    if (bytes != 0) {
        op->from = from;
        emit_access_op(emit, from, false);
    }
    return emit_op_close(emit);
}

static uint32_t put_direct(struct cw_emit *emit, uint32_t peer, uint32_t tag, struct cw_place from, struct cw_place to,
                           uint64_t bytes)
{
    struct cw_op *op = emit_op_open(emit, CW_OP_PUT, bytes);
    if (op == NULL) {
        return CW_NO_OP;
    }
    op->peer = peer;
    op->tag = tag;
    op->from = from;
    op->to = to;
    emit_access_op(emit, from, false);
    if (!emit->in_turn || bytes <= CW_LONG_PUT_BYTES) {
        return emit_op_close(emit);
    }
    emit_dependency_add(emit, emit->turn_last, CW_DEPENDENCY_SENT);
    emit->turn_last = emit_op_close(emit);
    return emit->turn_last;
}

static uint32_t wait_put(struct cw_emit *emit, uint32_t flags, uint32_t peer, uint32_t tag, struct cw_place to,
                         uint64_t bytes)
{
    struct cw_op *op = emit_op_open(emit, CW_OP_WAIT, bytes);
    if (op == NULL) {
        return CW_NO_OP;
    }
    op->flags = (uint8_t)flags;
    op->peer = peer;
    op->tag = tag;
    if (bytes != 0) {
        op->to = to;
        emit_access_op(emit, to, true);
    }
    return emit_op_close(emit);
}

uint32_t cw_emit_signal(struct cw_emit *emit, uint32_t peer)
{
    return put_eager(emit, peer, emit_tag_out(emit, peer, CW_TAG_SIGNAL), cw_place(CW_BUFFER_NONE, 0), 0);
}

uint32_t cw_emit_await(struct cw_emit *emit, uint32_t peer)
{
    return wait_put(emit, CW_OP_EAGER, peer, emit_tag_in(emit, peer, CW_TAG_SIGNAL), cw_place(CW_BUFFER_NONE, 0), 0);
}

/* Notifies `peer` that [to, to + bytes) may be written: once all earlier uses of these bytes are done. */
static uint32_t ready_signal(struct cw_emit *emit, uint32_t peer, struct cw_place to, uint64_t bytes)
{
    uint32_t op = put_eager(emit, peer, emit_tag_out(emit, peer, CW_TAG_CLEAR), cw_place(CW_BUFFER_NONE, 0), 0);
    emit_access_bytes(emit, to, bytes, true, false);
    return op;
}

static uint32_t ready_await(struct cw_emit *emit, uint32_t peer)
{
    return wait_put(emit, CW_OP_EAGER, peer, emit_tag_in(emit, peer, CW_TAG_CLEAR), cw_place(CW_BUFFER_NONE, 0), 0);
}

static bool goes_eagerly(const struct cw_emit *emit, uint64_t bytes)
{
    return bytes <= emit->parameters.eager_max_bytes;
}

/* A single message: a handshake may take longer than it saves. Segments are many, and their handshake is one. */
static bool goes_eagerly_to(const struct cw_emit *emit, uint32_t peer, uint64_t bytes)
{
    const struct cw_problem *problem = emit->problem;
    return goes_eagerly(emit, bytes) ||
           (bytes <= emit->parameters.single_eager_max_bytes && emit->parameters.eager_max_bytes > 0 &&
            (problem->cluster_count == 1 ||
             cw_problem_cluster(problem, peer) != cw_problem_cluster(problem, emit->rank)));
}

/* The caller's order applies to the message, not to its handshake. */
struct kept_after {
    uint32_t ops[8];
    uint32_t flags[8];
    uint32_t count;
};

static void after_keep(struct cw_emit *emit, struct kept_after *kept)
{
    memcpy(kept->ops, emit->after, sizeof(kept->ops));
    memcpy(kept->flags, emit->after_flags, sizeof(kept->flags));
    kept->count = emit->after_count;
    emit->after_count = 0;
}

static void after_restore(struct cw_emit *emit, const struct kept_after *kept)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        emit_after_add(emit, kept->ops[i], kept->flags[i]);
    }
}

static uint32_t handshake_await(struct cw_emit *emit, uint32_t peer)
{
    if (emit->rendezvous) {
        cw_emit_signal(emit, peer);
    }
    return ready_await(emit, peer);
}

static void handshake_offer(struct cw_emit *emit, uint32_t peer, struct cw_place to, uint64_t bytes)
{
    if (emit->rendezvous) {
        cw_emit_after(emit, cw_emit_await(emit, peer));
    }
    ready_signal(emit, peer, to, bytes);
}

uint32_t cw_emit_send(struct cw_emit *emit, uint32_t peer, struct cw_place from, struct cw_place to, uint64_t bytes)
{
    assert(peer != emit->rank && emit->repeat == CW_NO_OP);
    if (bytes == 0 || emit->status != CW_OK) {
        emit->after_count = 0;
        return CW_NO_OP;
    }
    if (goes_eagerly_to(emit, peer, bytes)) {
        return put_eager(emit, peer, emit_tag_out(emit, peer, CW_TAG_DATA), from, bytes);
    }
    struct kept_after kept;
    after_keep(emit, &kept);
    uint32_t ready = handshake_await(emit, peer);
    after_restore(emit, &kept);
    cw_emit_after(emit, ready);
    return put_direct(emit, peer, emit_tag_out(emit, peer, CW_TAG_DATA), from, to, bytes);
}

uint32_t cw_emit_receive(struct cw_emit *emit, uint32_t peer, struct cw_place to, uint64_t bytes)
{
    assert(peer != emit->rank && emit->repeat == CW_NO_OP);
    if (bytes == 0 || emit->status != CW_OK) {
        emit->after_count = 0;
        return CW_NO_OP;
    }
    if (goes_eagerly_to(emit, peer, bytes)) {
        return wait_put(emit, CW_OP_EAGER, peer, emit_tag_in(emit, peer, CW_TAG_DATA), to, bytes);
    }
    handshake_offer(emit, peer, to, bytes); /* the caller's order is for the offer: after it the message may come */
    return wait_put(emit, 0, peer, emit_tag_in(emit, peer, CW_TAG_DATA), to, bytes);
}

/* ---- Multicast ---- */

static bool multicast_goes_eagerly(const struct cw_emit *emit, uint64_t bytes)
{
    return goes_eagerly(emit, bytes) || bytes <= emit->parameters.multicast_eager_max_bytes;
}

uint32_t emit_group_add(struct cw_emit *emit, const uint32_t *members, uint32_t count)
{
    struct cw_schedule *schedule = &emit->schedule;
    struct cw_group_range *groups = emit_list_grow(emit, schedule->groups, schedule->group_count, &emit->group_capacity,
                                                   sizeof(*groups), CW_OPS_MAX, "more groups than a schedule may have");
    if (groups == NULL) {
        return 0;
    }
    schedule->groups = groups;
    uint32_t first = schedule->member_count;
    for (uint32_t i = 0; i < count; i++) {
        if (members[i] == emit->rank) {
            continue;
        }
        uint32_t *grown =
            emit_list_grow(emit, schedule->members, schedule->member_count, &emit->member_capacity, sizeof(*grown),
                           CW_DEPENDENCIES_MAX, "more group members than a schedule may have");
        if (grown == NULL) {
            return 0;
        }
        schedule->members = grown;
        schedule->members[schedule->member_count++] = members[i];
    }
    /* the same group again? Algorithms use one, or one after the other. */
    if (schedule->group_count > 0) {
        const struct cw_group_range *last = &schedule->groups[schedule->group_count - 1];
        if (last->count == schedule->member_count - first &&
            memcmp(&schedule->members[last->first], &schedule->members[first], last->count * sizeof(uint32_t)) == 0) {
            schedule->member_count = first;
            return schedule->group_count - 1;
        }
    }
    schedule->groups[schedule->group_count] = (struct cw_group_range){first, schedule->member_count - first};
    return schedule->group_count++;
}

uint32_t cw_emit_multicast(struct cw_emit *emit, const uint32_t *members, uint32_t count, uint32_t number,
                           struct cw_place from, struct cw_place to, uint64_t bytes)
{
    assert(emit->repeat == CW_NO_OP && number < EMIT_NUMBERS_MAX);
    uint32_t group = emit_group_add(emit, members, count);
    if (emit->status != CW_OK || bytes == 0 || emit->schedule.groups[group].count == 0) {
        emit->after_count = 0;
        return CW_NO_OP;
    }
    bool eager = multicast_goes_eagerly(emit, bytes);
    uint32_t ready = CW_NO_OP;
    if (!eager) {
        uint32_t first = emit->schedule.op_count;
        for (uint32_t i = 0; i < count; i++) {
            if (members[i] != emit->rank) {
                ready_await(emit, members[i]);
            }
        }
        if (emit_op_open(emit, CW_OP_JOIN, 0) != NULL) {
            for (uint32_t i = first; i + 1 < emit->schedule.op_count; i++) {
                emit_dependency_add(emit, i, 0);
            }
        }
        ready = emit_op_close(emit);
    }
    cw_emit_after(emit, ready);
    struct cw_op *op = emit_op_open(emit, CW_OP_MULTICAST, bytes);
    if (op == NULL) {
        return CW_NO_OP;
    }
    op->flags = eager ? CW_OP_EAGER : 0;
    op->peer = group;
    op->tag = number * CW_TAG_STEP + CW_TAG_MULTICAST;
    op->from = from;
    op->to = eager ? cw_place(CW_BUFFER_NONE, 0) : to;
    emit_access_op(emit, from, false);
    return emit_op_close(emit);
}

uint32_t cw_emit_multicast_receive(struct cw_emit *emit, uint32_t peer, uint32_t number, struct cw_place to,
                                   uint64_t bytes)
{
    assert(emit->repeat == CW_NO_OP && number < EMIT_NUMBERS_MAX);
    if (bytes == 0) {
        emit->after_count = 0;
        return CW_NO_OP;
    }
    bool eager = multicast_goes_eagerly(emit, bytes);
    if (!eager) {
        ready_signal(emit, peer, to, bytes);
    }
    return wait_put(emit, eager ? CW_OP_EAGER : 0, peer, number * CW_TAG_STEP + CW_TAG_MULTICAST, to, bytes);
}

uint32_t cw_emit_multicast_signal(struct cw_emit *emit, uint32_t root, uint32_t number)
{
    uint32_t tag = number * CW_TAG_STEP + CW_TAG_MULTICAST;
    uint32_t ranks = emit->problem->ranks;
    if (emit->rank != root) {
        return wait_put(emit, CW_OP_EAGER, root, tag, cw_place(CW_BUFFER_NONE, 0), 0);
    }
    uint32_t *members = calloc(ranks, sizeof(*members));
    if (members == NULL) {
        cw_emit_fail(emit, CW_ERROR_MEMORY, "no memory for the members of a group");
        return CW_NO_OP;
    }
    for (uint32_t i = 0; i < ranks; i++) {
        members[i] = i;
    }
    uint32_t group = emit_group_add(emit, members, ranks);
    free(members);
    struct cw_op *op = ranks > 1 ? emit_op_open(emit, CW_OP_MULTICAST, 0) : NULL;
    if (op == NULL) {
        return CW_NO_OP;
    }
    op->flags = CW_OP_EAGER;
    op->peer = group;
    op->tag = tag;
    return emit_op_close(emit);
}

/* ---- Pipelines ---- */

/* Iterations for `bytes` in segments; 0 bytes: 0. */
static uint32_t emit_segments(uint64_t bytes, uint64_t segment_bytes)
{
    return (uint32_t)((bytes + segment_bytes - 1) / segment_bytes);
}

uint64_t cw_emit_segment_bytes(const struct cw_emit *emit, uint64_t bytes)
{
    uint64_t element = emit->problem->element_bytes;
    uint64_t segment = emit->parameters.segment_bytes;
    if (segment == 0 || segment >= bytes) {
        return bytes > 0 ? bytes : element;
    }
    segment = segment / element * element;
    uint64_t least = (bytes / CW_REPEAT_COUNT_MAX / element + 1) * element;
    return segment > least ? segment : least;
}

void cw_emit_receive_open(struct cw_emit *emit, uint32_t peer, struct cw_place to, uint64_t bytes,
                          uint64_t segment_bytes)
{
    if (bytes != 0 && !goes_eagerly(emit, segment_bytes < bytes ? segment_bytes : bytes)) {
        handshake_offer(emit, peer, to, bytes);
    }
}

uint32_t cw_emit_send_open(struct cw_emit *emit, uint32_t peer, uint64_t bytes, uint64_t segment_bytes)
{
    if (bytes != 0 && !goes_eagerly(emit, segment_bytes < bytes ? segment_bytes : bytes)) {
        return handshake_await(emit, peer);
    }
    return CW_NO_OP;
}

void cw_emit_repeat(struct cw_emit *emit, uint64_t bytes, uint64_t segment_bytes)
{
    assert(emit->repeat == CW_NO_OP && bytes > 0);
    struct cw_op *op = emit_op_open(emit, CW_OP_REPEAT, 0);
    if (op == NULL) {
        return;
    }
    uint32_t segments = emit_segments(bytes, segment_bytes);
    op->iterations = segments;
    emit->segment_bytes = segments > 1 ? segment_bytes : bytes;
    emit->segment_last_bytes = bytes - (segments - 1) * emit->segment_bytes;
    emit->repeat = emit_op_close(emit);
}

void cw_emit_repeat_end(struct cw_emit *emit)
{
    emit->repeat = CW_NO_OP;
}

static struct cw_place segment_place(const struct cw_emit *emit, struct cw_place place)
{
    place.step = emit->segment_bytes;
    return place;
}

uint32_t cw_emit_segment_send(struct cw_emit *emit, uint32_t opened, uint32_t peer, struct cw_place from,
                              struct cw_place to)
{
    from = segment_place(emit, from);
    cw_emit_after(emit, opened);
    if (goes_eagerly(emit, emit->segment_bytes)) {
        return put_eager(emit, peer, emit_tag_out(emit, peer, CW_TAG_DATA), from, emit->segment_bytes);
    }
    return put_direct(emit, peer, emit_tag_out(emit, peer, CW_TAG_DATA), from, segment_place(emit, to),
                      emit->segment_bytes);
}

uint32_t cw_emit_segment_receive(struct cw_emit *emit, uint32_t peer, struct cw_place to)
{
    uint32_t flags = goes_eagerly(emit, emit->segment_bytes) ? CW_OP_EAGER : 0;
    return wait_put(emit, flags, peer, emit_tag_in(emit, peer, CW_TAG_DATA), segment_place(emit, to),
                    emit->segment_bytes);
}

uint32_t cw_emit_segment_reduce(struct cw_emit *emit, struct cw_place to, struct cw_place from, bool from_left)
{
    return cw_emit_reduce(emit, segment_place(emit, to), segment_place(emit, from), emit->segment_bytes, from_left);
}
