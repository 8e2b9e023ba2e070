/* numbers: requests that wait for an answer of the other side, which names them by number; registrations that cannot be
 * taken back yet.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/point/request.h"

/* 0: too many at a time. */
uint32_t mpi_number_make(struct mpi_request *request);
void mpi_number_free(uint32_t number);
/* NULL: no such request waits; the number is old, or forged. */
struct mpi_request *mpi_number_find(uint32_t number);
/* Calls `function` for all requests that wait for an answer of the process `rank`. */
void mpi_numbers_each_of(uint32_t rank, void (*function)(struct mpi_request *request));

/* Takes a registration back, now, or as soon as the path lets go of the memory: what others have got from it may have
 * been thought lost, and be sent again. `then` is called at that moment; not before is the memory the program's. NULL:
 * nobody waits. */
void mpi_deregister(uint32_t rank, const struct cw_registration *registration, void (*then)(void *context),
                    void *context);
/* Tries again, every so many calls, what it would not let go of; false: nothing is left. */
bool mpi_deregister_progress(void);
