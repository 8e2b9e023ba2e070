#include "mpi/point/general.h"

#include <stdlib.h>

#include "mpi/runtime/error.h"
#include "mpi_functions.h"

int mpi_general_cancel(struct mpi_request *request)
{
    return request->general->cancel == NULL ? MPI_SUCCESS
                                            : request->general->cancel(request->general->state, request->is_complete);
}

int mpi_grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn,
                       MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request)
{
    struct mpi_request *made = mpi_request_make(MPI_REQUEST_GENERAL);
    if (made == NULL || (made->general = malloc(sizeof(*made->general))) == NULL ||
        mpi_request_handle_make(made) != MPI_SUCCESS) {
        if (made != NULL) {
            mpi_request_destroy(made);
        }
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for a request");
    }
    *made->general = (struct mpi_request_general){
        .query = query_fn,
        .free = free_fn,
        .cancel = cancel_fn,
        .state = extra_state,
    };
    *request = made->handle;
    return MPI_SUCCESS;
}

int mpi_grequest_complete(MPI_Request request)
{
    struct mpi_request *found = mpi_request_find(request);
    if (found == NULL || found->kind != MPI_REQUEST_GENERAL || found->is_complete) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_REQUEST, "no generalized request that is still to be completed");
    }
    if (found->is_freed) {
        (void)mpi_general_free(found);
    }
    mpi_request_complete(found, MPI_SUCCESS);
    return MPI_SUCCESS;
}
