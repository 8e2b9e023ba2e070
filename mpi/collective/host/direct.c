/* Long blocks in one copy: who has them, or wants them, says where; the other side copies. Nobody leaves while its
 * memory is in use. */
#include <string.h>

#include "mpi/collective/host/state.h"

/* A round in which the root says where its buffer is. */
static int place_open(struct host_call *call, const void *own, uint64_t *round, uint64_t *address)
{
    int code = host_round(call, call->rank == call->root, round);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (call->rank == call->root) {
        *address = (uint64_t)(uintptr_t)own;
        memcpy(host_slot(call, call->rank, *round), address, sizeof(*address));
        host_publish(call, *round);
        return MPI_SUCCESS;
    }
    code = host_await(call, call->root, *round);
    if (code == MPI_SUCCESS) {
        memcpy(address, host_slot(call, call->root, *round), sizeof(*address));
    }
    return code;
}

/* The root waits for all, the others go. */
static int place_close(struct host_call *call, uint64_t round)
{
    int code = host_arrive(call, round);
    return call->rank == call->root ? host_await_all(call, round) : code;
}

int host_bcast_direct(struct host_call *call)
{
    uint64_t round, address;
    int code = place_open(call, call->send, &round, &address);
    if (code == MPI_SUCCESS && call->rank != call->root) {
        code = host_copy_from(call, call->root, call->receive, address, call->bytes);
    }
    return code != MPI_SUCCESS ? code : place_close(call, round);
}

int host_scatter_direct(struct host_call *call)
{
    uint64_t round, address;
    uint64_t own = call->rank * call->bytes;
    int code = place_open(call, call->send, &round, &address);
    if (code == MPI_SUCCESS && call->rank != call->root) {
        code = host_copy_from(call, call->root, call->receive, address + own, call->bytes);
    } else if (code == MPI_SUCCESS && call->receive != call->send + own) {
        memmove(call->receive, call->send + own, call->bytes);
    }
    return code != MPI_SUCCESS ? code : place_close(call, round);
}

int host_gather_direct(struct host_call *call)
{
    uint64_t round, address;
    uint64_t own = call->rank * call->bytes;
    int code = place_open(call, call->receive, &round, &address);
    if (code == MPI_SUCCESS && call->rank != call->root) {
        code = host_copy_to(call, call->root, address + own, call->send, call->bytes);
    } else if (code == MPI_SUCCESS && call->receive + own != call->send) {
        memmove(call->receive + own, call->send, call->bytes);
    }
    return code != MPI_SUCCESS ? code : place_close(call, round);
}

/* All say where their data is; `copy` takes what this rank wants from another one. Each begins with its neighbour, so
 * that they do not all read the same memory. */
static int exchange(struct host_call *call, int (*copy)(struct host_call *call, uint32_t rank, uint64_t address))
{
    uint64_t round;
    uint64_t address = (uint64_t)(uintptr_t)call->send;
    int code = host_round(call, true, &round);
    if (code != MPI_SUCCESS) {
        return code;
    }
    memcpy(host_slot(call, call->rank, round), &address, sizeof(address));
    (void)host_arrive(call, round);
    code = host_await_all(call, round);
    for (uint32_t step = 0; step < call->ranks && code == MPI_SUCCESS; step++) {
        uint32_t rank = (call->rank + step) % call->ranks;
        memcpy(&address, host_slot(call, rank, round), sizeof(address));
        code = copy(call, rank, address);
    }
    if (code == MPI_SUCCESS) {
        code = host_round(call, true, &round);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    (void)host_arrive(call, round);
    return host_await_all(call, round);
}

static int block_copy(struct host_call *call, uint32_t rank, uint8_t *to, uint64_t address, uint64_t bytes)
{
    if (rank != call->rank) {
        return host_copy_from(call, rank, to, address, bytes);
    }
    const void *from = (const void *)(uintptr_t)address;
    if (to != from) {
        memmove(to, from, bytes);
    }
    return MPI_SUCCESS;
}

static int allgather_copy(struct host_call *call, uint32_t rank, uint64_t address)
{
    const uint64_t *counts = call->of->counts;
    uint64_t offset = rank * call->bytes;
    if (counts != NULL) {
        offset = 0;
        for (uint32_t before = 0; before < rank; before++) {
            offset += counts[before];
        }
    }
    return block_copy(call, rank, call->receive + offset, address, counts == NULL ? call->bytes : counts[rank]);
}

int host_allgather_direct(struct host_call *call)
{
    return exchange(call, allgather_copy);
}

static int alltoall_copy(struct host_call *call, uint32_t rank, uint64_t address)
{
    return block_copy(call, rank, call->receive + rank * call->bytes, address + call->rank * call->bytes, call->bytes);
}

int host_alltoall_direct(struct host_call *call)
{
    return exchange(call, alltoall_copy);
}
