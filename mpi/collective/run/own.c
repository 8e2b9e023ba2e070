#include "mpi/collective/run/own.h"

#include <stdlib.h>

#include "collectives/algorithms/own.h"
#include "mpi/collective/compiled/plans.h"
#include "mpi/collective/run/steps.h"

/* Fills in the blocks of a buffer by rank; returns the address from which their offsets count. If a block is not
 * contiguous, all are packed into `packed`: also those of a receive buffer, so that bytes which do not arrive keep
 * their values. NULL: no memory. */
static void *side_open(const struct mpi_collective *collective, const struct mpi_buffer *side, bool must_pack,
                       uint8_t **packed, struct cw_own_block *blocks)
{
    uint64_t *offsets = malloc((size_t)(side->block_count + 1) * sizeof(*offsets));
    void *base = offsets == NULL || must_pack ? NULL : mpi_buffer_spread(side, offsets);
    if (offsets != NULL && base == NULL) {
        *packed = *packed != NULL ? *packed : malloc((size_t)side->bytes + 1);
        base = *packed;
        uint64_t behind = 0;
        for (int block = 0; block < side->block_count; block++) {
            offsets[block] = behind;
            behind += (uint64_t)mpi_buffer_block_bytes(side, block);
        }
        if (base != NULL) {
            mpi_buffer_pack(side, base);
        }
    }
    for (int block = 0; base != NULL && block < side->block_count; block++) {
        uint32_t rank = side->block_count == collective->comm->size ? (uint32_t)block : collective->problem.root;
        blocks[rank] = (struct cw_own_block){(uint64_t)mpi_buffer_block_bytes(side, block), offsets[block]};
    }
    free(offsets);
    return base;
}

int mpi_own_start(struct mpi_collective *collective, uint32_t number)
{
    struct mpi_comm *comm = collective->comm;
    struct cw_own_block *sends = calloc(2 * (size_t)comm->size, sizeof(*sends));
    if (sends == NULL) {
        return MPI_ERR_NO_MEM;
    }
    struct cw_own_block *receives = sends + comm->size;
    struct mpi_plan *plan = NULL;
    int code = MPI_ERR_NO_MEM;
    void *send = side_open(collective, &collective->send, collective->send_must_pack, &collective->send_packed, sends);
    void *receive = side_open(collective, &collective->receive, false, &collective->receive_packed, receives);
    if (send != NULL && receive != NULL) {
        const struct mpi_own_request request = {
            .collective = collective->problem.collective,
            .root = collective->problem.root,
            .sends = sends,
            .receives = receives,
            .origin = collective->scatterv != NULL ? "no multicast here" : "own counts",
            .is_throttled = (number + collective->run_count) % MPI_AHEAD_MAX == MPI_AHEAD_MAX - 1,
        };
        code = mpi_plan_find_own(comm, &request, &plan);
    }
    code = code != MPI_SUCCESS ? code : mpi_step_run(collective, comm, plan, number, send, receive);
    bool receives_own = collective->receive.block_count > 0;
    if (code == MPI_SUCCESS && receives_own && sends[comm->rank].bytes > receives[comm->rank].bytes) {
        mpi_exchange_truncate(&collective->run->exchange, comm->rank, sends[comm->rank].bytes,
                              receives[comm->rank].bytes);
    }
    free(sends);
    return code;
}
