/* Reductions on a segment. Operands are folded from the last rank to the first: op(c[0], op(c[1], ... op(c[P-2],
 * c[P-1]))), whoever does it. */
#include <string.h>

#include "mpi/collective/host/state.h"
#include "mpi/collective/operations/elements.h"

/* Folds `count` elements of the slots of ranks 0 .. `ranks` - 1, from byte `offset` of each slot on, into `to`, which
 * is none of them. */
static void fold(struct host_call *call, uint32_t ranks, uint64_t round, uint64_t offset, uint64_t count, uint8_t *to)
{
    uint64_t bytes = count * call->of->problem.element_bytes;
    if (bytes == 0) {
        return;
    }
    memcpy(to, host_slot(call, ranks - 1, round) + offset, bytes);
    for (uint32_t rank = ranks - 1; rank-- > 0;) {
        int code = mpi_elements_reduce(call->of->op, call->of->element, host_slot(call, rank, round) + offset, to, to,
                                       (MPI_Count)count);
        call->reduce_error = code != MPI_SUCCESS ? code : call->reduce_error;
    }
}

/* Elements that fit a slot. */
static uint64_t slot_elements(const struct host_call *call)
{
    return call->slot_bytes / call->of->problem.element_bytes;
}

/* A round with a piece of each rank's vector in its slot. */
static int contribute(struct host_call *call, uint64_t from, uint64_t count, uint64_t *round)
{
    uint64_t element = call->of->problem.element_bytes;
    int code = host_round(call, true, round);
    if (code == MPI_SUCCESS) {
        memcpy(host_slot(call, call->rank, *round), call->send + from * element, count * element);
    }
    return code;
}

/* Each rank folds a slice of the piece into the common result; returns when all are there, or, if `wait` is false, when
 * the own one is. */
static int fold_together(struct host_call *call, uint64_t round, uint64_t count, bool wait)
{
    uint64_t element = call->of->problem.element_bytes;
    uint64_t slice = (count + call->ranks - 1) / call->ranks;
    uint64_t first = host_least(call->rank * slice, count);
    uint64_t next;
    (void)host_arrive(call, round);
    int code = host_await_all(call, round);
    if (code != MPI_SUCCESS) {
        return code;
    }
    fold(call, call->ranks, round, first * element, host_least(slice, count - first),
         host_result(call, round) + first * element);
    code = host_round(call, true, &next);
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = host_arrive(call, next);
    return wait ? host_await_all(call, next) : code;
}

/* Two ranks: each has one operand at hand and reads the other's, so that nobody waits for a result to be made, or
 * copies one. */
static int fold_both(struct host_call *call, uint64_t round, uint64_t from, uint64_t count)
{
    uint64_t element = call->of->problem.element_bytes;
    uint8_t *own = call->receive + from * element;
    if (call->receive != call->send) {
        memcpy(own, call->send + from * element, count * element);
    }
    (void)host_arrive(call, round);
    int code = host_await_all(call, round);
    if (code != MPI_SUCCESS) {
        return code;
    }
    const uint8_t *other = host_slot(call, 1 - call->rank, round);
    code = mpi_elements_reduce(call->of->op, call->of->element, call->rank == 0 ? own : other,
                               call->rank == 0 ? other : own, own, (MPI_Count)count);
    call->reduce_error = code != MPI_SUCCESS ? code : call->reduce_error;
    return MPI_SUCCESS;
}

/* The last one to arrive folds all operands, for all. */
static int fold_last(struct host_call *call, uint64_t round, uint64_t count)
{
    if (host_arrive_last(call, round)) {
        fold(call, call->ranks, round, 0, count, host_result(call, round));
        host_complete(call, round);
    }
    return host_await_all(call, round);
}

int host_allreduce(struct host_call *call)
{
    uint64_t element = call->of->problem.element_bytes;
    uint64_t total = call->of->problem.count;
    uint64_t done = 0;
    do {
        uint64_t round;
        uint64_t count = host_least(total - done, slot_elements(call));
        int code = contribute(call, done, count, &round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (call->ranks == 2) {
            code = fold_both(call, round, done, count);
        } else {
            code = count * element > HOST_ALONE_MAX_BYTES ? fold_together(call, round, count, true)
                                                          : fold_last(call, round, count);
        }
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (call->ranks > 2) {
            memcpy(call->receive + done * element, host_result(call, round), count * element);
        }
        done += count;
    } while (done < total);
    return MPI_SUCCESS;
}

int host_reduce(struct host_call *call)
{
    uint64_t element = call->of->problem.element_bytes;
    uint64_t total = call->of->problem.count;
    uint64_t done = 0;
    bool is_root = call->rank == call->root;
    do {
        uint64_t round;
        uint64_t count = host_least(total - done, slot_elements(call));
        int code = contribute(call, done, count, &round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (count * element > HOST_ALONE_MAX_BYTES) {
            code = fold_together(call, round, count, is_root);
            /* read after the arrival at the next round, unlike slots: results are written only when all have arrived in
             * that very round */
            if (code == MPI_SUCCESS && is_root) {
                memcpy(call->receive + done * element, host_result(call, round), count * element);
            }
        } else {
            code = host_arrive(call, round);
            if (is_root && (code = host_await_all(call, round)) == MPI_SUCCESS) {
                fold(call, call->ranks, round, 0, count, call->receive + done * element);
            }
        }
        if (code != MPI_SUCCESS) {
            return code;
        }
        done += count;
    } while (done < total);
    return MPI_SUCCESS;
}

/* Elements of the block that a rank gets. */
static uint64_t block_elements(const struct host_call *call, uint32_t rank)
{
    return call->of->counts == NULL ? call->of->problem.count : call->of->counts[rank];
}

/* Writes a piece of each rank's block, `share` elements at most, into the own slot. */
static void shares_write(const struct host_call *call, uint64_t round, uint64_t done, uint64_t share)
{
    uint64_t element = call->of->problem.element_bytes;
    uint8_t *to = host_slot(call, call->rank, round);
    const uint8_t *from = call->send;
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        uint64_t block = block_elements(call, rank);
        if (done < block) {
            memcpy(to + rank * share * element, from + done * element, host_least(block - done, share) * element);
        }
        from += block * element;
    }
}

int host_reduce_scatter(struct host_call *call)
{
    uint64_t element = call->of->problem.element_bytes;
    uint64_t share = slot_elements(call) / call->ranks;
    uint64_t own = block_elements(call, call->rank);
    uint64_t longest = 0;
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        longest = block_elements(call, rank) > longest ? block_elements(call, rank) : longest;
    }
    uint64_t done = 0;
    do {
        uint64_t round;
        int code = host_round(call, true, &round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        shares_write(call, round, done, share);
        (void)host_arrive(call, round);
        code = host_await_all(call, round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (done < own) {
            fold(call, call->ranks, round, call->rank * share * element, host_least(own - done, share),
                 call->receive + done * element);
        }
        done += share;
    } while (done < longest);
    return MPI_SUCCESS;
}

/* Inclusive: ranks up to the own one; exclusive: before it. */
int host_scan(struct host_call *call)
{
    uint64_t element = call->of->problem.element_bytes;
    uint64_t total = call->of->problem.count;
    uint32_t ranks = call->of->problem.collective == CW_SCAN ? call->rank + 1 : call->rank;
    uint64_t done = 0;
    do {
        uint64_t round;
        uint64_t count = host_least(total - done, slot_elements(call));
        int code = contribute(call, done, count, &round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        (void)host_arrive(call, round);
        code = host_await_all(call, round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (ranks > 0) {
            fold(call, ranks, round, 0, count, call->receive + done * element);
        }
        done += count;
    } while (done < total);
    return MPI_SUCCESS;
}
