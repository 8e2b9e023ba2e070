/* mpi_testing: the environment of modules of mpi/, for tests of one module in one process: two communicators, a process
 * that is no job.
 *
 * Errors of MPI_COMM_WORLD and MPI_COMM_SELF are returned to the test, unless it sets another error handler. */
#pragma once

#include "mpi.h"

/* The call that modules think they are in; "MPI_Test" to begin with. */
void mpi_testing_call(const char *call);

/* Before the first test. */
void mpi_testing_start(void);
