/* assembly: eager multicasts that are longer than a message. They arrive in parts, and become one event.
 *
 * The parts of a multicast arrive in order, each with the same head and an mpi_part. If its group fails, the multicast
 * is sent again from its beginning, to each rank separately: then the bytes that have arrived already are skipped.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/exchange/state.h"

/* Adds a part. The last part fills in `whole`; the caller must free its `buffer`, which is 0 while parts are missing.
 * False: the part is invalid, or there is no memory (exchange->failure). */
bool exchange_part_add(struct mpi_exchange *exchange, const struct mpi_call_head *head, const void *data,
                       uint32_t bytes, struct cw_transport_event *whole);

/* The exchange ends. */
void exchange_parts_free(struct mpi_exchange *exchange);
