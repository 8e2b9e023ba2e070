#include "mpi/collective/run/pairs.h"

#include <stdlib.h>

#include "mpi/group/communicator.h"
#include "mpi/point/internal.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"

static int pair_add(struct mpi_collective *collective, enum mpi_request_kind kind, const struct mpi_buffer *descriptor,
                    int block, int peer)
{
    if (mpi_buffer_block_bytes(descriptor, block) == 0) {
        return MPI_SUCCESS; /* both ranks know */
    }
    if (collective->pairs == NULL) {
        collective->pairs = calloc(2 * (size_t)collective->comm->size, sizeof(*collective->pairs));
        if (collective->pairs == NULL) {
            return mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "no memory for %d messages",
                             2 * collective->comm->size);
        }
    }
    struct mpi_request *request = &collective->pairs[collective->pair_count++];
    *request = (struct mpi_request){
        .kind = kind,
        .comm = collective->comm,
        .type = mpi_buffer_block_type(descriptor, block),
        .buffer = mpi_buffer_block_start(descriptor, block),
        .count = mpi_buffer_block_count(descriptor, block),
        .bytes = mpi_buffer_block_bytes(descriptor, block),
        .peer = peer,
    };
    mpi_comm_retain(request->comm);
    mpi_type_retain(request->type);
    return MPI_SUCCESS;
}

int mpi_collective_send(struct mpi_collective *collective, const struct mpi_buffer *descriptor, int block, int dest)
{
    return pair_add(collective, MPI_REQUEST_SEND, descriptor, block, dest);
}

int mpi_collective_receive(struct mpi_collective *collective, const struct mpi_buffer *descriptor, int block,
                           int source)
{
    return pair_add(collective, MPI_REQUEST_RECEIVE, descriptor, block, source);
}

/* Each rank begins with its neighbours, so that nobody is sent to by all at once. */
int mpi_pairs_all(struct mpi_collective *call)
{
    int size = call->comm->size;
    int code = MPI_SUCCESS;
    for (int step = 0; code == MPI_SUCCESS && step < size; step++) {
        int from = (call->comm->rank + size - step) % size;
        int to = (call->comm->rank + step) % size;
        code = mpi_collective_receive(call, &call->receive, from, from);
        if (code == MPI_SUCCESS) {
            code = mpi_collective_send(call, &call->send, to, to);
        }
    }
    return code;
}

int mpi_pairs_detach(struct mpi_collective *collective)
{
    int code = MPI_SUCCESS;
    for (int pair = 0; code == MPI_SUCCESS && collective->send_must_pack && pair < collective->pair_count; pair++) {
        if (collective->pairs[pair].kind == MPI_REQUEST_SEND) {
            code = mpi_send_copy(&collective->pairs[pair]);
        }
    }
    return code;
}

/* Receives first, so that nothing need wait for its place. */
void mpi_pairs_start(struct mpi_collective *collective)
{
    for (int pair = 0; pair < collective->pair_count; pair++) {
        struct mpi_request *request = &collective->pairs[pair];
        request->tag = MPI_TAG_COLLECTIVE + (int)(collective->number & 0x3fffffff);
        request->is_complete = false;
        request->offered.numbered.number = 0;
        if (request->kind == MPI_REQUEST_RECEIVE) {
            mpi_receive_start(request);
        }
    }
    for (int pair = 0; pair < collective->pair_count; pair++) {
        if (collective->pairs[pair].kind == MPI_REQUEST_SEND) {
            mpi_send_start(&collective->pairs[pair]);
        }
    }
}

int mpi_pairs_poll(const struct mpi_collective *collective)
{
    int error = MPI_SUCCESS;
    for (int pair = 0; pair < collective->pair_count; pair++) {
        if (!collective->pairs[pair].is_complete) {
            return MPI_ERR_PENDING;
        }
        error = error == MPI_SUCCESS ? collective->pairs[pair].error : error;
    }
    return error;
}
