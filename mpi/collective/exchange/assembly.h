/* assembly: eager multicasts that are longer than a message: they come in parts and are one event.
 *
 * Parts of one multicast come in order, each with the same head and an exchange_piece. A multicast that could not go on
 * to the group begins anew to each rank by itself: what has come already of it is then passed over.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/exchange/state.h"

/* Takes a part of a message to `exchange`. The last part fills in `whole`, whose `buffer` is the data for `free`, the
 * caller's from then on; 0: there are parts missing. False: it makes no sense, or there is no memory
 * (exchange->failure). */
bool exchange_part_take(struct mpi_exchange *exchange, const struct mpi_call_head *head, const void *data,
                        uint32_t bytes, struct cw_transport_event *whole);

/* The exchange ends. */
void exchange_parts_free(struct mpi_exchange *exchange);
