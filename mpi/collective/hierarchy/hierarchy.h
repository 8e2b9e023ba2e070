/* hierarchy: blocking collective calls of a communicator whose ranks are on several hosts, some of which have more than
 * one: a call among the first ranks of the hosts, and calls within each host before and after it. So a host's link
 * carries what it must once, not once for each rank of the host.
 *
 * Purpose
 *   Three levels come of it by themselves: shared memory (host.h) within a host; among hosts whatever is chosen there,
 *   by packets, with clusters where the topology has some (clusters/clusters.h). Broadcast, reduce, all-reduce with a
 *   commutative operation on elements without gaps, barrier, and all-to-all of short blocks where all hosts have as
 *   many ranks. Others, and non-blocking ones, go by one schedule of all ranks.
 *
 * Invariants
 *   - Whether a call is served here follows from what all ranks know alike: their hosts, overrides, how many such calls
 *     there were.
 *   - The two inner communicators are made without a message, with the third such call: their contexts follow from the
 *     outer one's.
 *   - A rank whose call goes by that one schedule, since its count is another, is told so when it asks, and the others'
 *     calls end with an error (refusal.h).
 *   - A call that fails among the first ranks fails at all ranks of their hosts: they are told before anything else.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

struct mpi_hierarchy;

#define MPI_HIERARCHY_NAME "hierarchical" /* as an algorithm: in CAUSEWAY_ALGORITHM, hints, measured parameters */

/* Makes the name known (choice.h). Before mpi_choice_prepare. */
void mpi_hierarchy_introduce(void);

/* Whether the call goes this way. */
bool mpi_hierarchy_serves(struct mpi_collective *call);

/* Runs it to its end, as mpi_host_run. MPI_SUCCESS, or an error code, not raised. */
int mpi_hierarchy_run(struct mpi_collective *call, void *send, void *receive);
/* This rank cannot take part (no memory): the others' calls end with an error. */
void mpi_hierarchy_abandon(struct mpi_collective *call);

/* Hints of the communicator have changed: what they ask for is looked up anew. */
void mpi_hierarchy_reconsider(struct mpi_comm *comm);

/* All communicators go, in any order: inner ones first. */
void mpi_hierarchy_stop(void);

/* NULL is allowed. */
void mpi_hierarchy_destroy(struct mpi_hierarchy *hierarchy);
