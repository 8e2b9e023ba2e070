/* host: blocking collective calls of a communicator whose ranks are all on one host, by shared memory and without
 * messages.
 *
 * Purpose
 *   The ranks share a segment (dataplane/shm/segment.h), made with the third such call, so that communicators that are
 *   hardly used cost nothing. Short blocks go through its slots; long ones are copied once, straight between the
 *   processes, where the kernel permits. Reductions are made where the data is: by the last rank to come if they are
 *   short, else a slice by each rank.
 *
 * Invariants
 *   - Whether a call is served here follows from what all ranks know alike.
 *   - Operands of reductions are combined in rank order, always in the same way: results do not depend on who came
 *     when.
 *   - Calls that do not match are errors at those ranks that wait or notice: each says what it does when it enters.
 *     After that nobody uses the segment again.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

struct mpi_host;

#define MPI_HOST_NAME "host" /* as an algorithm: in CAUSEWAY_ALGORITHM, hints, measured parameters, explanations */

/* Makes the name known (choice.h). Before mpi_choice_prepare. */
void mpi_host_introduce(void);

/* Whether the call goes this way. May talk to the other ranks, once per communicator. */
bool mpi_host_serves(struct mpi_collective *call);

/* Runs it to its end: from `send` to `receive`, both packed as problem.h says; with in-place calls `send` is where the
 * data lies in the receive buffer, if mpi_host_takes_in_place. MPI_SUCCESS, or an error code, not raised; then
 * `mpi_host_why` has a line. */
int mpi_host_run(struct mpi_collective *call, const void *send, void *receive);
bool mpi_host_takes_in_place(const struct mpi_collective *call);
/* Tells the others that this rank cannot take part after all (no memory): their calls end with an error. */
void mpi_host_abandon(struct mpi_collective *call);
/* Rank `peer` (-1: none of this communicator) has begun by messages what this rank carries out by shared memory: calls
 * by both end with an error. False: no call is under way. */
bool mpi_host_mismatch(struct mpi_comm *comm, int peer);
const char *mpi_host_why(const struct mpi_collective *call);

/* Hints of the communicator have changed: what they ask for is looked up anew. */
void mpi_host_reconsider(struct mpi_comm *comm);

/* NULL is allowed. */
void mpi_host_destroy(struct mpi_host *host);
