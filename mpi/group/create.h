/* create: how communicators come to be; shared by group/ only. Within the lock of enter.h only. */
#ifndef MPI_CREATE_H
#define MPI_CREATE_H

#include "mpi/group/communicator.h"

/* The communicator of a handle, or MPI_ERR_COMM raised. */
int mpi_comm_lookup(MPI_Comm handle, struct mpi_comm **comm);

#endif
