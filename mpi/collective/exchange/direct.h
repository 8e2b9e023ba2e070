/* direct: long puts of schedules go straight into the memory of their target, where that is on another host and has
 * told where.
 *
 * Who sends a clear-to-send (CW_TAG_CLEAR) says by which regions its buffers of this call are reached; who has heard it
 * puts the bytes there, and says so behind them, in the same lane: one way instead of the three that an offer and its
 * get take (transport.h). What needs no clear-to-send, because the place is known to be free, goes to a rank of the
 * same host, or by several streams, is offered.
 *
 * The regions of a call are taken back when it ends: what comes later is refused by the dataplane. Within the lock of
 * enter.h only. */
#pragma once

#include "mpi/collective/exchange/exchange.h"

struct mpi_call_head;

/* Whether a put is a clear-to-send to a rank that may put into it directly. */
bool mpi_direct_is_clear(const struct cw_transport_put *put, uint32_t rank);
/* Sends it. As mpi_exchange_send_eager. */
int mpi_direct_clear_send(struct mpi_exchange *exchange, uint32_t rank, const struct mpi_call_head *head);
/* It has come, with `bytes` behind its head, 0 if its sender could tell no regions. False: it makes no sense. */
bool mpi_direct_clear_take(struct mpi_exchange *exchange, const struct mpi_call_head *head, const void *data,
                           uint32_t bytes);

/* Puts to a rank that has told where. CW_OK; CW_ERROR_UNSUPPORTED: it has not, or has no room there: offer it;
 * CW_ERROR_AGAIN; others: it is gone. */
int mpi_direct_put(struct mpi_exchange *exchange, const struct cw_transport_put *put, uint32_t rank,
                   const struct mpi_call_head *head);
/* Takes the regions back. */
void mpi_direct_end(struct mpi_exchange *exchange);
