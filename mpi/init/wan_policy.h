/* WAN policy: the clusters of the job, from the topology file that CAUSEWAY_TOPOLOGY names
 * (control/topology/clusters.h), and how other clusters are sent to (control/job/wan_policy.h).
 *
 * Invariants
 *   - Rank 0's file counts for all ranks: problems of collectives depend on it. Ranks exchange a digest with their
 *     cards; only if digests differ does rank 0 send the contents. CAUSEWAY_PACING goes with it.
 *
 * Order of calls: mpi_wan_policy_prepare, the job is opened with its note, mpi_wan_policy_start when communicators are
 * there; mpi_wan_policy_clear when none is left. Within the lock of enter.h only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "control/job/job.h"

/* Reads the file, and mixes its digest into the note of choice.h. mpi_wan_policy_start reports unreadable input. CW_OK
 * or CW_ERROR_MEMORY. */
int mpi_wan_policy_prepare(uint8_t note[CW_JOB_NOTE_BYTES]);

/* Settles on rank 0's contents, finds all ranks in it (mpi_process.clusters; NULL: there is no file) and sets the
 * paths. MPI_SUCCESS, or an MPI error with a line in `error`, which must end the job. */
int mpi_wan_policy_start(char *error, size_t error_bytes);

void mpi_wan_policy_clear(void);
