/* buffered: buffered sends (MPI 5.0, 3.6). The messages are copied to memory of the library; of the buffers that the
 * program attaches only the size counts, so that a message that does not fit is an error, as the standard requires.
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/point/request.h"

/* Starts a buffered send: it completes at once, with MPI_ERR_BUFFER if the attached buffer has no room for it. */
void mpi_buffered_start(struct mpi_request *request);

/* Waits for all messages, of all buffers (MPI_Finalize). */
void mpi_buffered_finish(void);
