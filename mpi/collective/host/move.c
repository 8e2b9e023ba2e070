/* Data through the slots of a segment: the source copies it in, each receiver copies it out. Data longer than a slot
 * goes in pieces, one round each. */
#include <string.h>

#include "mpi/collective/host/state.h"

void host_move(void *to, const void *from, uint64_t bytes)
{
    if (to != from && bytes > 0) {
        memmove(to, from, bytes);
    }
}

/* A piece has ended: the next one, of vectors or blocks of `bytes`, or the end. */
static int piece_end(struct mpi_host_call *call, uint64_t some, uint64_t bytes, mpi_host_stage *first)
{
    call->done += some;
    return call->done < bytes ? first(call) : MPI_SUCCESS;
}

/* ---- Barrier ---- */

static int over(struct mpi_host_call *call)
{
    (void)call;
    return MPI_SUCCESS;
}

static int barrier_arrive(struct mpi_host_call *call)
{
    (void)host_arrive(call);
    return host_await_all(call, over);
}

int host_barrier(struct mpi_host_call *call)
{
    return host_round(call, true, barrier_arrive);
}

/* ---- From a root: all of it, or to each its block ---- */

/* Bytes that fit a slot; blocks share it. */
static uint64_t share_of(const struct mpi_host_call *call)
{
    return call->collective == CW_BCAST ? call->slot_bytes : call->slot_bytes / call->members;
}

static uint64_t piece_of(const struct mpi_host_call *call)
{
    return host_least(call->bytes - call->done, share_of(call));
}

/* Writes a piece of each block that this rank sends. */
static void shares_write(const struct mpi_host_call *call, uint64_t some)
{
    uint8_t *slot = host_slot(call, call->member, call->round);
    for (uint32_t member = 0; member < call->members; member++) {
        if (member != call->member) {
            memcpy(slot + member * share_of(call), call->send + member * call->bytes + call->done, some);
        }
    }
}

static int root_pass(struct mpi_host_call *call)
{
    uint64_t some = piece_of(call);
    int code = host_pass(call);
    return code != MPI_SUCCESS
               ? code
               : piece_end(call, some, call->bytes, call->collective == CW_BCAST ? host_bcast : host_scatter);
}

static int root_read(struct mpi_host_call *call)
{
    uint64_t place = call->collective == CW_BCAST ? 0 : call->member * share_of(call);
    memcpy(call->receive + call->done, host_slot(call, call->root, call->round) + place, piece_of(call));
    return root_pass(call);
}

static int root_move(struct mpi_host_call *call)
{
    uint64_t some = piece_of(call);
    if (call->member != call->root) {
        return host_await(call, call->root, root_read);
    }
    if (call->collective == CW_BCAST) {
        memcpy(host_slot(call, call->member, call->round), call->send + call->done, some);
    } else {
        shares_write(call, some);
    }
    host_publish(call);
    if (call->collective == CW_SCATTER) {
        host_move(call->receive + call->done, call->send + call->member * call->bytes + call->done, some);
    }
    return root_pass(call);
}

int host_bcast(struct mpi_host_call *call)
{
    return host_round(call, call->member == call->root, root_move);
}

int host_scatter(struct mpi_host_call *call)
{
    return host_round(call, call->member == call->root, root_move);
}

/* ---- To a root ---- */

static uint64_t gather_piece(const struct mpi_host_call *call)
{
    return host_least(call->bytes - call->done, call->slot_bytes);
}

static int gather_read(struct mpi_host_call *call)
{
    uint64_t some = gather_piece(call);
    for (uint32_t member = 0; member < call->members; member++) {
        if (member != call->member) {
            memcpy(call->receive + member * call->bytes + call->done, host_slot(call, member, call->round), some);
        }
    }
    return piece_end(call, some, call->bytes, host_gather);
}

static int gather_write(struct mpi_host_call *call)
{
    uint64_t some = gather_piece(call);
    if (call->member != call->root) {
        memcpy(host_slot(call, call->member, call->round), call->send + call->done, some);
        int code = host_arrive(call);
        return code != MPI_SUCCESS ? code : piece_end(call, some, call->bytes, host_gather);
    }
    (void)host_arrive(call);
    host_move(call->receive + call->member * call->bytes + call->done, call->send + call->done, some);
    return host_await_all(call, gather_read);
}

int host_gather(struct mpi_host_call *call)
{
    return host_round(call, true, gather_write);
}

/* ---- From all to all: the same, or to each its block ---- */

/* Bytes of a member's block in this piece. */
static uint64_t allgather_piece(const struct mpi_host_call *call, uint32_t member)
{
    uint64_t bytes = host_block(call, member);
    return call->done < bytes ? host_least(bytes - call->done, call->slot_bytes) : 0;
}

static int allgather_read(struct mpi_host_call *call)
{
    uint8_t *to = call->receive + call->done;
    for (uint32_t member = 0; member < call->members; to += host_block(call, member), member++) {
        uint64_t some = allgather_piece(call, member);
        if (member == call->member) {
            host_move(to, call->send + call->done, some);
        } else {
            memcpy(to, host_slot(call, member, call->round), some);
        }
    }
    return piece_end(call, call->slot_bytes, host_longest_block(call), host_allgather);
}

static int allgather_write(struct mpi_host_call *call)
{
    memcpy(host_slot(call, call->member, call->round), call->send + call->done, allgather_piece(call, call->member));
    (void)host_arrive(call);
    return host_await_all(call, allgather_read);
}

int host_allgather(struct mpi_host_call *call)
{
    return host_round(call, true, allgather_write);
}

static int alltoall_read(struct mpi_host_call *call)
{
    uint64_t some = piece_of(call);
    for (uint32_t member = 0; member < call->members; member++) {
        if (member != call->member) {
            memcpy(call->receive + member * call->bytes + call->done,
                   host_slot(call, member, call->round) + call->member * share_of(call), some);
        }
    }
    return piece_end(call, some, call->bytes, host_alltoall);
}

static int alltoall_write(struct mpi_host_call *call)
{
    uint64_t own = call->member * call->bytes + call->done;
    shares_write(call, piece_of(call));
    (void)host_arrive(call);
    host_move(call->receive + own, call->send + own, piece_of(call));
    return host_await_all(call, alltoall_read);
}

int host_alltoall(struct mpi_host_call *call)
{
    return host_round(call, true, alltoall_write);
}
