/* describe: the waits of operations in progress, for messages (runtime/waiting.h). Within the lock of enter.h only. */
#pragma once

#include "mpi/point/request.h"
#include "mpi/runtime/waiting.h"

/* One that is not complete: "from rank 1, tag 7, MPI_COMM_WORLD; 2 messages from rank 1 have arrived without a
 * matching receive, with tags 5, 6". */
void mpi_describe_request(const struct mpi_request *request, struct mpi_said *said);
/* Those of several that are not complete: `any`: one of them is enough. */
void mpi_describe_requests(struct mpi_request *const requests[], int count, bool any, struct mpi_said *said);
/* A message to come (probes); `source` and `tag` as in the call. */
void mpi_describe_message(const struct mpi_comm *comm, int source, int tag, struct mpi_said *said);
/* "; 2 receives are posted: ...", if there are any. */
void mpi_describe_posted(struct mpi_said *said);
