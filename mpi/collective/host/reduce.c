/* Reductions on a segment. Operands are folded from the last rank to the first: op(c[0], op(c[1], ... op(c[P-2],
 * c[P-1]))), by any rank. Functions of the program run on its own threads only: a stage that combines waits for one. */
#include <string.h>

#include "mpi/collective/host/state.h"
#include "mpi/collective/operations/elements.h"
#include "mpi/runtime/lock.h"

/* MPI_ERR_PENDING: `stage` runs again later, on another thread. */
static int later(struct mpi_host_call *call, mpi_host_stage *stage)
{
    call->next = stage;
    return MPI_ERR_PENDING;
}

static bool may_combine(const struct mpi_host_call *call)
{
    return call->of->op->predefined || !mpi_lock_is_control();
}

static void combine(struct mpi_host_call *call, const void *left, const void *right, void *to, uint64_t bytes)
{
    int code =
        mpi_elements_reduce(call->of->op, call->of->element, left, right, to, (MPI_Count)(bytes / call->element));
    call->reduce_error = code != MPI_SUCCESS ? code : call->reduce_error;
}

/* Folds `bytes` of the slots of members 0 .. `members` - 1, from byte `offset` of each slot on, into `to`, which is
 * none of them. */
static void fold(struct mpi_host_call *call, uint32_t members, uint64_t round, uint64_t offset, uint64_t bytes,
                 uint8_t *to)
{
    if (bytes == 0) {
        return;
    }
    memcpy(to, host_slot(call, members - 1, round) + offset, bytes);
    for (uint32_t member = members - 1; member-- > 0;) {
        combine(call, host_slot(call, member, round) + offset, to, to, bytes);
    }
}

/* Bytes of whole elements that fit a part of a slot. */
static uint64_t whole(const struct mpi_host_call *call, uint64_t bytes)
{
    return bytes / call->element * call->element;
}

static uint64_t piece_of(const struct mpi_host_call *call)
{
    uint64_t left = call->bytes - call->done; /* whole elements */
    return left <= call->slot_bytes ? left : whole(call, call->slot_bytes);
}

static int piece_end(struct mpi_host_call *call, mpi_host_stage *first)
{
    call->done += piece_of(call);
    return call->done < call->bytes ? first(call) : MPI_SUCCESS;
}

/* A piece of this rank's vector in its slot. */
static void contribute(struct mpi_host_call *call)
{
    call->round_before = call->round;
    memcpy(host_slot(call, call->member, call->round), call->send + call->done, piece_of(call));
}

/* ---- Each rank folds a slice of the piece into the common result ---- */

static int together_close(struct mpi_host_call *call);

static int together_fold(struct mpi_host_call *call)
{
    uint64_t count = piece_of(call) / call->element, slice = (count + call->members - 1) / call->members;
    uint64_t first = host_least(call->member * slice, count);
    if (!may_combine(call)) {
        return later(call, together_fold);
    }
    fold(call, call->members, call->round_before, first * call->element,
         host_least(slice, count - first) * call->element,
         host_result(call, call->round_before) + first * call->element);
    return host_round(call, true, together_close);
}

static int together(struct mpi_host_call *call)
{
    (void)host_arrive(call);
    return host_await_all(call, together_fold);
}

/* Read after the arrival at the next round, unlike slots: results are written only when all have arrived in that very
 * round. */
static int result_copy(struct mpi_host_call *call)
{
    memcpy(call->receive + call->done, host_result(call, call->round_before), piece_of(call));
    return piece_end(call, call->collective == CW_REDUCE ? host_reduce : host_allreduce);
}

static int together_close(struct mpi_host_call *call)
{
    int code = host_arrive(call);
    if (call->collective == CW_ALLREDUCE || call->member == call->root) {
        return host_await_all(call, result_copy);
    }
    return code != MPI_SUCCESS ? code : piece_end(call, host_reduce);
}

/* ---- All-reduce ---- */

/* Two ranks: each has one operand and reads the other's, so that neither waits for a result or copies one. */
static int both_fold(struct mpi_host_call *call)
{
    uint8_t *own = call->receive + call->done;
    const uint8_t *other = host_slot(call, 1 - call->member, call->round);
    if (!may_combine(call)) {
        return later(call, both_fold);
    }
    combine(call, call->member == 0 ? own : other, call->member == 0 ? other : own, own, piece_of(call));
    return piece_end(call, host_allreduce);
}

/* The last one to arrive folds all operands, for all. */
static int last_fold(struct mpi_host_call *call)
{
    if (!may_combine(call)) {
        return later(call, last_fold);
    }
    if (host_arrive_last(call)) {
        fold(call, call->members, call->round, 0, piece_of(call), host_result(call, call->round));
        host_complete(call);
    }
    return host_await_all(call, result_copy);
}

static int allreduce_contribute(struct mpi_host_call *call)
{
    contribute(call);
    if (call->members == 2) {
        host_move(call->receive + call->done, call->send + call->done, piece_of(call));
        (void)host_arrive(call);
        return host_await_all(call, both_fold);
    }
    return piece_of(call) > HOST_ALONE_MAX_BYTES ? together(call) : last_fold(call);
}

int host_allreduce(struct mpi_host_call *call)
{
    return host_round(call, true, allreduce_contribute);
}

/* ---- Reduce ---- */

static int reduce_fold(struct mpi_host_call *call)
{
    if (!may_combine(call)) {
        return later(call, reduce_fold);
    }
    fold(call, call->members, call->round, 0, piece_of(call), call->receive + call->done);
    return piece_end(call, host_reduce);
}

static int reduce_contribute(struct mpi_host_call *call)
{
    contribute(call);
    if (piece_of(call) > HOST_ALONE_MAX_BYTES) {
        return together(call);
    }
    int code = host_arrive(call);
    if (call->member == call->root) {
        return host_await_all(call, reduce_fold);
    }
    return code != MPI_SUCCESS ? code : piece_end(call, host_reduce);
}

int host_reduce(struct mpi_host_call *call)
{
    return host_round(call, true, reduce_contribute);
}

/* ---- Reduce-scatter ---- */

static uint64_t share_of(const struct mpi_host_call *call)
{
    return whole(call, call->slot_bytes / call->members);
}

/* Writes a piece of each member's block, a share at most, into the own slot. */
static void shares_write(const struct mpi_host_call *call)
{
    uint8_t *to = host_slot(call, call->member, call->round);
    const uint8_t *from = call->send;
    for (uint32_t member = 0; member < call->members; member++) {
        uint64_t block = host_block(call, member);
        if (call->done < block) {
            memcpy(to + member * share_of(call), from + call->done, host_least(block - call->done, share_of(call)));
        }
        from += block;
    }
}

static int scatter_fold(struct mpi_host_call *call)
{
    uint64_t own = host_block(call, call->member);
    if (!may_combine(call)) {
        return later(call, scatter_fold);
    }
    if (call->done < own) {
        fold(call, call->members, call->round, call->member * share_of(call),
             host_least(own - call->done, share_of(call)), call->receive + call->done);
    }
    call->done += share_of(call);
    return call->done < host_longest_block(call) ? host_reduce_scatter(call) : MPI_SUCCESS;
}

static int scatter_contribute(struct mpi_host_call *call)
{
    shares_write(call);
    (void)host_arrive(call);
    return host_await_all(call, scatter_fold);
}

int host_reduce_scatter(struct mpi_host_call *call)
{
    return host_round(call, true, scatter_contribute);
}

/* ---- Scans: inclusive: ranks up to the own one; exclusive: before it ---- */

static int scan_fold(struct mpi_host_call *call)
{
    uint32_t members = call->collective == CW_SCAN ? call->member + 1 : call->member;
    if (!may_combine(call)) {
        return later(call, scan_fold);
    }
    if (members > 0) {
        fold(call, members, call->round, 0, piece_of(call), call->receive + call->done);
    }
    return piece_end(call, host_scan);
}

static int scan_contribute(struct mpi_host_call *call)
{
    contribute(call);
    (void)host_arrive(call);
    return host_await_all(call, scan_fold);
}

int host_scan(struct mpi_host_call *call)
{
    return host_round(call, true, scan_contribute);
}
