/* Long blocks in one copy: one rank publishes the address of its buffer, the others copy from or to it. Each rank stays
 * in the call while its memory is in use. */
#include <string.h>

#include "mpi/collective/host/state.h"

static int over(struct mpi_host_call *call)
{
    (void)call;
    return MPI_SUCCESS;
}

/* ---- The root publishes the address of its buffer ---- */

/* The root waits for all, the others go. */
static int place_close(struct mpi_host_call *call)
{
    int code = host_arrive(call);
    return call->member == call->root ? host_await_all(call, over) : code;
}

/* Copies the part of this member, from or to the root. */
static int place_copy(struct mpi_host_call *call)
{
    uint64_t own = call->collective == CW_BCAST ? 0 : call->member * call->bytes;
    memcpy(&call->address, host_slot(call, call->root, call->round), sizeof(call->address));
    int code = call->collective == CW_GATHER
                   ? host_copy_to(call, call->root, call->address + own, call->send, call->bytes)
                   : host_copy_from(call, call->root, call->receive, call->address + own, call->bytes);
    return code != MPI_SUCCESS ? code : place_close(call);
}

static int place_open(struct mpi_host_call *call)
{
    uint64_t own = call->member * call->bytes;
    if (call->member != call->root) {
        return host_await(call, call->root, place_copy);
    }
    call->address = (uint64_t)(uintptr_t)(call->collective == CW_GATHER ? call->receive : call->send);
    memcpy(host_slot(call, call->member, call->round), &call->address, sizeof(call->address));
    host_publish(call);
    if (call->collective == CW_SCATTER) {
        host_move(call->receive, call->send + own, call->bytes);
    } else if (call->collective == CW_GATHER) {
        host_move(call->receive + own, call->send, call->bytes);
    }
    return place_close(call);
}

int host_bcast_direct(struct mpi_host_call *call)
{
    return host_round(call, call->member == call->root, place_open);
}

int host_scatter_direct(struct mpi_host_call *call)
{
    return host_round(call, call->member == call->root, place_open);
}

int host_gather_direct(struct mpi_host_call *call)
{
    return host_round(call, call->member == call->root, place_open);
}

/* ---- All members publish the addresses of their data ---- */

/* Copies the block for this member from another one. */
static int block_copy(struct mpi_host_call *call, uint32_t member, uint64_t address)
{
    uint64_t to = 0, bytes = host_block(call, member);
    for (uint32_t before = 0; before < member; before++) {
        to += host_block(call, before);
    }
    address += call->collective == CW_ALLTOALL ? call->member * call->bytes : 0;
    if (member != call->member) {
        return host_copy_from(call, member, call->receive + to, address, bytes);
    }
    host_move(call->receive + to, (const void *)(uintptr_t)address, bytes);
    return MPI_SUCCESS;
}

static int exchange_close(struct mpi_host_call *call)
{
    (void)host_arrive(call);
    return host_await_all(call, over);
}

/* Each begins with its neighbour, so that they do not all read the same memory. */
static int exchange_copy(struct mpi_host_call *call)
{
    int code = MPI_SUCCESS;
    for (uint32_t step = 0; step < call->members && code == MPI_SUCCESS; step++) {
        uint32_t member = (call->member + step) % call->members;
        uint64_t address;
        memcpy(&address, host_slot(call, member, call->round), sizeof(address));
        code = block_copy(call, member, address);
    }
    return code != MPI_SUCCESS ? code : host_round(call, true, exchange_close);
}

static int exchange_open(struct mpi_host_call *call)
{
    uint64_t address = (uint64_t)(uintptr_t)call->send;
    memcpy(host_slot(call, call->member, call->round), &address, sizeof(address));
    (void)host_arrive(call);
    return host_await_all(call, exchange_copy);
}

int host_allgather_direct(struct mpi_host_call *call)
{
    return host_round(call, true, exchange_open);
}

int host_alltoall_direct(struct mpi_host_call *call)
{
    return host_round(call, true, exchange_open);
}
