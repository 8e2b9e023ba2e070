/* Data through the slots of a segment: copied in by who has it, copied out by who wants it. What is longer than a slot
 * goes in pieces, one round each. */
#include <string.h>

#include "mpi/collective/host/state.h"

/* A rank's own part, which may lie where it belongs already. */
static void move_own(void *to, const void *from, uint64_t bytes)
{
    if (to != from && bytes > 0) {
        memmove(to, from, bytes);
    }
}

int host_barrier(struct host_call *call)
{
    uint64_t round;
    int code = host_round(call, true, &round);
    if (code != MPI_SUCCESS) {
        return code;
    }
    (void)host_arrive(call, round);
    return host_await_all(call, round);
}

int host_bcast(struct host_call *call)
{
    uint64_t offset = 0;
    do {
        uint64_t round;
        uint64_t some = host_least(call->bytes - offset, call->slot_bytes);
        int code = host_round(call, call->rank == call->root, &round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (call->rank == call->root) {
            memcpy(host_slot(call, call->rank, round), call->send + offset, some);
            host_publish(call, round);
        } else {
            code = host_await(call, call->root, round);
            if (code != MPI_SUCCESS) {
                return code;
            }
            memcpy(call->receive + offset, host_slot(call, call->root, round), some);
        }
        code = host_pass(call, round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        offset += some;
    } while (offset < call->bytes);
    return MPI_SUCCESS;
}

/* Pieces of all blocks share a slot. */
static uint64_t share_of(const struct host_call *call)
{
    return call->slot_bytes / call->ranks;
}

/* Writes a piece of each block that this rank sends. */
static void shares_write(const struct host_call *call, uint64_t round, uint64_t offset, uint64_t some)
{
    uint8_t *slot = host_slot(call, call->rank, round);
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        if (rank != call->rank) {
            memcpy(slot + rank * share_of(call), call->send + rank * call->bytes + offset, some);
        }
    }
}

int host_scatter(struct host_call *call)
{
    uint64_t offset = 0;
    do {
        uint64_t round;
        uint64_t some = host_least(call->bytes - offset, share_of(call));
        int code = host_round(call, call->rank == call->root, &round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (call->rank == call->root) {
            shares_write(call, round, offset, some);
            host_publish(call, round);
            move_own(call->receive + offset, call->send + call->rank * call->bytes + offset, some);
        } else {
            code = host_await(call, call->root, round);
            if (code != MPI_SUCCESS) {
                return code;
            }
            memcpy(call->receive + offset, host_slot(call, call->root, round) + call->rank * share_of(call), some);
        }
        code = host_pass(call, round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        offset += some;
    } while (offset < call->bytes);
    return MPI_SUCCESS;
}

int host_gather(struct host_call *call)
{
    uint64_t offset = 0;
    do {
        uint64_t round;
        uint64_t some = host_least(call->bytes - offset, call->slot_bytes);
        int code = host_round(call, true, &round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        if (call->rank != call->root) {
            memcpy(host_slot(call, call->rank, round), call->send + offset, some);
            code = host_arrive(call, round);
        } else {
            (void)host_arrive(call, round);
            move_own(call->receive + call->rank * call->bytes + offset, call->send + offset, some);
            code = host_await_all(call, round);
            for (uint32_t rank = 0; rank < call->ranks && code == MPI_SUCCESS; rank++) {
                if (rank != call->rank) {
                    memcpy(call->receive + rank * call->bytes + offset, host_slot(call, rank, round), some);
                }
            }
        }
        if (code != MPI_SUCCESS) {
            return code;
        }
        offset += some;
    } while (offset < call->bytes);
    return MPI_SUCCESS;
}

/* Bytes of a rank's block, which may differ (MPI_Allgatherv). */
static uint64_t block_bytes(const struct host_call *call, uint32_t rank)
{
    return call->of->counts == NULL ? call->bytes : call->of->counts[rank];
}

static uint64_t longest_block(const struct host_call *call)
{
    uint64_t longest = call->bytes;
    for (uint32_t rank = 0; call->of->counts != NULL && rank < call->ranks; rank++) {
        longest = call->of->counts[rank] > longest ? call->of->counts[rank] : longest;
    }
    return longest;
}

/* What a block has in the piece that begins at `offset`. */
static uint64_t piece_bytes(const struct host_call *call, uint32_t rank, uint64_t offset)
{
    uint64_t bytes = block_bytes(call, rank);
    return offset < bytes ? host_least(bytes - offset, call->slot_bytes) : 0;
}

int host_allgather(struct host_call *call)
{
    uint64_t longest = longest_block(call);
    uint64_t offset = 0;
    do {
        uint64_t round;
        uint64_t own = piece_bytes(call, call->rank, offset);
        int code = host_round(call, true, &round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        memcpy(host_slot(call, call->rank, round), call->send + offset, own);
        (void)host_arrive(call, round);
        code = host_await_all(call, round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        uint8_t *to = call->receive + offset;
        for (uint32_t rank = 0; rank < call->ranks; to += block_bytes(call, rank), rank++) {
            uint64_t some = piece_bytes(call, rank, offset);
            if (rank == call->rank) {
                move_own(to, call->send + offset, some);
            } else {
                memcpy(to, host_slot(call, rank, round), some);
            }
        }
        offset += call->slot_bytes;
    } while (offset < longest);
    return MPI_SUCCESS;
}

int host_alltoall(struct host_call *call)
{
    uint64_t offset = 0;
    do {
        uint64_t round;
        uint64_t some = host_least(call->bytes - offset, share_of(call));
        int code = host_round(call, true, &round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        shares_write(call, round, offset, some);
        (void)host_arrive(call, round);
        move_own(call->receive + call->rank * call->bytes + offset, call->send + call->rank * call->bytes + offset,
                 some);
        code = host_await_all(call, round);
        if (code != MPI_SUCCESS) {
            return code;
        }
        for (uint32_t rank = 0; rank < call->ranks; rank++) {
            if (rank != call->rank) {
                memcpy(call->receive + rank * call->bytes + offset,
                       host_slot(call, rank, round) + call->rank * share_of(call), some);
            }
        }
        offset += some;
    } while (offset < call->bytes);
    return MPI_SUCCESS;
}
