/* virtual: MPI calls in virtual time (base/virtual.h).
 *
 * In a simulation the library has no control thread. Time passes at the beginning of each call: the time that the
 * program has computed, and the cost of a call. Messages that arrive within that time are handled at their time of
 * arrival.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "dataplane/base/virtual.h"

/* At the beginning of an MPI call, in a simulation only. */
void mpi_virtual_enter(void);
/* The same for a call that looks for messages without waiting. */
void mpi_virtual_poll(void);
/* A sleep of the program; not within the lock. */
void mpi_virtual_sleep(uint64_t duration_ns);
/* Before and after a wait in virtual time: reports to the simulator what has moved, and answers questions of the
 * watchdog. Ends the job if the simulator has found that no rank can continue. */
void mpi_virtual_look(void);
