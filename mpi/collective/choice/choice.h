/* choice: which algorithm carries out a collective call.
 *
 * Purpose
 *   In this order: the override; the soonest in tests; the soonest by a model, fed with measured parameters or, without
 *   any, with built-in figures (collectives/choose/measured.h). A communicator whose ranks are on several hosts asks
 *   for the wire, one on a single host for shared memory. One whose ranks are in several clusters asks with these
 *   (clusters/clusters.h), of a network with a long path between them; tests know of none.
 *
 * Sources of an algorithm
 *   CAUSEWAY_ALGORITHM="bcast=binomial,allreduce=ring" for all communicators (collectives/choose/override.h); the hint
 *   "causeway_algorithm" of a communicator (MPI_Comm_dup_with_info, MPI_Comm_set_info), with the same grammar, for its
 *   calls that have not been made before.
 *
 * Invariants
 *   - All ranks choose alike: rank 0's CAUSEWAY_ALGORITHM and file of measured parameters count. Ranks exchange a
 *     digest with their cards; only if digests differ does rank 0 send the contents. Hints must be the same at all
 *     ranks, as the standard requires for hints of collective calls.
 *
 * Order of calls: mpi_choice_prepare, the job is opened with its note, mpi_choice_start; { mpi_choice_find, ... }*;
 * mpi_choices_clear. Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/choose/measured.h"
#include "control/job/job.h"
#include "mpi/state/comm.h"

/* Reads environment and file; `note` is for cw_job_open. mpi_choice_start reports unreadable input, of rank 0's only.
 * CW_OK or CW_ERROR_MEMORY. */
int mpi_choice_prepare(uint8_t note[CW_JOB_NOTE_BYTES]);

/* Settles on rank 0's contents, and reads them. MPI_SUCCESS, or an MPI error with a line in `error`: of invalid
 * contents at all ranks; of an unreadable file at rank 0 alone, which must end the job. */
int mpi_choice_start(char *error, size_t error_bytes);

struct mpi_choice {
    const struct cw_algorithm *algorithm;
    struct cw_parameters parameters;
    double time_ns; /* expected; 0: nobody knows */
    enum cw_measured_origin origin;
};

/* The algorithm for a problem, of those that fit it; one of levels if the communicator has some and they apply. CW_OK,
 * or as cw_problem_create and cw_choose with a line in `error`. */
int mpi_choice_find(struct mpi_comm *comm, const struct cw_problem_request *request, bool has_levels,
                    struct mpi_choice *choice, char *error, size_t error_bytes);

/* Whether calls like this one have levels, as soon as the communicator has: MPI_CHOICE_OVERRIDE if an override names
 * their algorithm, MPI_CHOICE_TESTED if it is the fastest in tests, MPI_CHOICE_NO if another one was or is,
 * MPI_CHOICE_OPEN if it was neither requested nor tested. The same at all ranks. */
enum mpi_choice_verdict { MPI_CHOICE_NO = 0, MPI_CHOICE_OVERRIDE = 1, MPI_CHOICE_OPEN = 2, MPI_CHOICE_TESTED = 3 };
enum mpi_choice_verdict mpi_choice_levels(struct mpi_comm *comm, const struct cw_problem_request *request);

/* Whether a schedule serves MPI_Alltoallv on this communicator: only if requested by name (alltoallv=greedy). Otherwise
 * ranks exchange in pairs: the gain of an exchange of counts depends on counts that are unknown before it. The same at
 * all ranks. */
bool mpi_choice_is_scheduled(const struct mpi_comm *comm);

/* The algorithm of MPI_Scatterv on this communicator: CW_OVERRIDE_STATIC or CW_OVERRIDE_DYNAMIC, if requested by name,
 * else CW_OVERRIDE_PAIRS: only the root knows the counts that a price would depend on. The same at all ranks. */
const char *mpi_choice_scatterv(const struct mpi_comm *comm);

/* The algorithm for phases (phases.h): by `words` (NULL: none), else the communicator's hint or the environment, else
 * all-to-all-based. CW_OK, or CW_ERROR_ARGUMENT with a line in `error`: the words are invalid, or name an algorithm
 * without phases. */
int mpi_choice_phases(const struct mpi_comm *comm, const char *words, struct mpi_choice *choice, char *error,
                      size_t error_bytes);

/* The kind of path of the communicator's messages; the same at all ranks. */
enum cw_measured_path mpi_choice_path(const struct mpi_comm *comm);
/* Whether the hint "causeway_algorithm" names algorithms that there are. */
bool mpi_choice_understands(const char *hint);

/* Where the parameters are from, in a line, for --explain. */
const char *mpi_choice_source(void);

/* Forgets all of it (MPI_Finalize). */
void mpi_choices_clear(void);
