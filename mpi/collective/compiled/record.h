/* record: the program's collective calls and their times (collectives/file/recording.h). CAUSEWAY_RECORD=FILE,
 * `causeway run --record`.
 *
 * Purpose
 *   Each rank notes its calls when they have been carried out. In MPI_Finalize rank 0 gets what all have noted and
 *   writes it to its file, under another name first: a run that does not come to MPI_Finalize leaves none.
 *
 * Invariants
 *   - All ranks record, or none: rank 0's environment counts (replay.h).
 *   - Memory is bounded; a rank that has no room left counts what it leaves out, and rank 0 says so.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

/* Begins, if mpi_replay_record_path says so. MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mpi_record_start(void);
bool mpi_record_is_on(void);
/* A call has been carried out, without an error, by the algorithm of that name; flags of enum
 * cw_recording_form_flags. */
void mpi_record_call(const struct mpi_collective *collective, const char *algorithm, uint32_t flags, uint64_t took_ns);
/* Later calls are the library's own. */
void mpi_record_stop(void);
/* Writes the file (MPI_Finalize; all ranks call it, before the last barrier). */
void mpi_record_finish(void);
