/* replay: plans that were made before the program ran (collectives/file/bundle.h), at the calls that they are for.
 *
 * Purpose
 *   CAUSEWAY_PLAN=FILE (`causeway run --plan`) names a bundle. Its contents for a communicator are attached to it when
 *   it is made, and its multicast group is opened then if the bundle requires it. Calls with a plan in the bundle are
 *   served by it: found without any exchange where all ranks know the problem alike, by an agreement (agreement.h)
 *   where they do not.
 *
 * Invariants
 *   - All ranks have the same bundle: rank 0's counts. Ranks exchange a digest with their cards; only if these
 *     differ does rank 0 send the contents (choice.h has the same of its files).
 *   - A call is served by a plan at all ranks, or at none.
 *   - A bundle that is damaged, of another program or of another number of ranks ends the job in MPI_Init, at rank 0,
 *     with one line and exit code 2: a requested plan is never ignored silently.
 *   - A hit or miss is counted when the call has ended, by the code that executed it.
 *
 * Order of calls: mpi_replay_prepare, the job is opened with its note, mpi_replay_start; { mpi_replay_attach, ...
 * mpi_replay_detach }*; mpi_replay_report, mpi_replay_clear. Within the lock of enter.h only. */
#pragma once

#include "control/job/job.h"
#include "mpi/collective/state/collective.h"

struct mpi_replay;

/* Reads CAUSEWAY_PLAN's file and CAUSEWAY_RECORD, and adds them to the note of choice.h. CW_OK or CW_ERROR_MEMORY. */
int mpi_replay_prepare(uint8_t note[CW_JOB_NOTE_BYTES]);
/* Settles on rank 0's contents. MPI_SUCCESS, or an MPI error with a line in `error`: at rank 0, which must end the job,
 * or at all. */
int mpi_replay_start(char *error, size_t error_bytes);
/* Whether all ranks record (record.h), and where to. NULL: they do not. */
const char *mpi_replay_record_path(void);

/* Of a new communicator; and with its end, NULL is allowed. */
void mpi_replay_attach(struct mpi_comm *comm);
void mpi_replay_detach(struct mpi_replay *replay);

/* Whether times of calls are needed. */
bool mpi_replay_is_on(void);

/* The plan for a call of which all ranks know the problem; NULL: none. */
struct mpi_replay_entry *mpi_replay_find(const struct mpi_collective *collective);
struct mpi_plan *mpi_replay_plan(const struct mpi_replay_entry *entry);
/* Which one it is of the communicator's, for users and for comparison: 24 bits. */
uint32_t mpi_replay_number(const struct mpi_replay_entry *entry);

/* Whether all-to-all-v on this communicator is agreed on; the number of 64-bit words for that; the bits that `row`
 * (compiled/count_matrix.h) fits; and the result of all ranks' bits, NULL: no plan. */
bool mpi_replay_needs_agreement(const struct mpi_comm *comm);
uint32_t mpi_replay_words(const struct mpi_comm *comm);
void mpi_replay_fit(const struct mpi_comm *comm, const uint64_t *row, uint64_t *bits);
struct mpi_replay_entry *mpi_replay_elect(const struct mpi_comm *comm, const uint64_t *all);

/* A call has been carried out, without an error: counts hit or miss. `is_served`: by `planned`. */
void mpi_replay_count(const struct mpi_collective *collective, bool is_served, uint64_t took_ns);

/* Rank 0 reports the use of the plan (MPI_Finalize; all ranks call it, before the last barrier). */
void mpi_replay_report(void);
void mpi_replay_clear(void);
