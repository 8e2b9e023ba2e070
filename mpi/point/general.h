/* general: generalized requests; the program itself provides the operation (MPI 5.0, 13.2). Within the lock of enter.h
 * only. */
#pragma once

#include "mpi/point/request.h"

/* Call the program's functions; what they return. */
int mpi_general_query(struct mpi_request *request, MPI_Status *status);
int mpi_general_free(struct mpi_request *request);
int mpi_general_cancel(struct mpi_request *request);
