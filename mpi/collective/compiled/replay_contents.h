/* replay contents: the bundle's bytes and whether the job is recorded: the same at all ranks in the end (replay.h). */
#pragma once

#include <stddef.h>

/* After the job is open: rank 0's contents; NULL: no bundle. Valid until mpi_replay_contents_clear. MPI_SUCCESS, or an
 * MPI error with a line in `error`. */
int mpi_replay_contents_finish(const void **bytes, size_t *length, char *error, size_t error_bytes);
/* The bundle's name, for users. */
const char *mpi_replay_contents_place(void);
void mpi_replay_contents_clear(void);
