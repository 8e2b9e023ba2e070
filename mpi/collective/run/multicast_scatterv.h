/* multicast_scatterv: MPI_Scatterv by multicast: the root sends all the lengths of the blocks, then all blocks as one
 * message, of which each rank takes its own (Karwande, Yuan and Lowenthal 2003, section 4.1).
 *
 * Purpose
 *   Two ways, by name (choice.h). static: the message of all blocks goes to the group of the communicator. dynamic: the
 *   receivers and the root open a group for it, and close it afterwards; the others are done when they are notified. If
 *   a group would be useless, the root decides otherwise: dynamic becomes static if all ranks receive data, and blocks
 *   go one by one if at most one rank receives data, or if all receivers are on the root's host. Without multicast,
 *   messages go in pairs, and no notice is sent.
 *
 * Invariants
 *   - The root's notice decides, at all ranks: the algorithm, the context of a group, the bytes of each block.
 *   - A receiver accepts its whole block, and only then finds that it expected fewer bytes: so no rank waits for it.
 *   - The call uses two numbers of its communicator: one for the notice, one for the data; in a group of its own the
 *     data are call 0. A persistent call sends the notice with its first start, since its counts are fixed, and keeps
 *     its group until it is freed.
 *   - Data to a group of its own are sent when all members are ready, however short: so the root has one group at a
 *     time that others have not come to.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

struct mpi_multicast_scatterv;

/* For a call whose buffer descriptors are made, by a name that mpi_choice_scatterv gave, but CW_OVERRIDE_PAIRS. Where
 * there is no multicast `by_pairs` is set. MPI_SUCCESS or the error, raised. */
int mpi_multicast_scatterv_make(struct mpi_collective *collective, const char *way);
void mpi_multicast_scatterv_free(struct mpi_multicast_scatterv *scatterv);

/* The steps of the call (steps.h), unless `by_pairs` is set: the root broadcasts its counts; all ranks learn them
 * (`code`: how that step ended); the data moves, as call `number`; the data has arrived. MPI_SUCCESS or the error, not
 * raised. */
int mpi_multicast_scatterv_announce(struct mpi_collective *collective);
int mpi_multicast_scatterv_learn(struct mpi_collective *collective, int code);
int mpi_multicast_scatterv_move(struct mpi_collective *collective, uint32_t number);
int mpi_multicast_scatterv_end(struct mpi_collective *collective);

/* Whether this rank has the counts already. Those of a persistent call are sent once. */
bool mpi_multicast_scatterv_has_counts(const struct mpi_multicast_scatterv *scatterv);

/* A run has come to its end: which way it went, for --explain. */
void mpi_multicast_scatterv_account(const struct mpi_collective *collective);
