/* direct: long puts of schedules directly into the memory of a target on another host.
 *
 * The target announces the regions of its buffers together with its clear-to-send (CW_TAG_CLEAR, MPI_SENT_PLACE). The
 * source then puts the bytes there, and sends MPI_SENT_FIN after them in the same lane. This takes one way through the
 * network, while an offer takes three (rendezvous.h). A put is offered if the schedule needs no clear-to-send for it,
 * or if the target is on the same host.
 *
 * The regions of a call are deregistered at its end: the dataplane rejects later puts. Within the lock of enter.h only.
 */
#pragma once

#include "mpi/collective/exchange/exchange.h"

struct mpi_call_head;

/* Whether a put is a clear-to-send to a rank that may put into it directly. */
bool mpi_direct_is_clear(const struct cw_transport_put *put, uint32_t rank);
/* Sends it. Results as mpi_exchange_send_eager. */
int mpi_direct_clear_send(struct mpi_exchange *exchange, uint32_t rank, const struct mpi_call_head *head);
/* Receives it; `bytes` after its head are 0 if its sender could not register its buffers. False: it is invalid. */
bool mpi_direct_clear_receive(struct mpi_exchange *exchange, const struct mpi_call_head *head, const void *data,
                              uint32_t bytes);

/* Puts to a rank that has announced the place. CW_OK; CW_ERROR_UNSUPPORTED: the place is unknown or too small: offer
 * the put; CW_ERROR_AGAIN; others: the rank is lost. */
int mpi_direct_put(struct mpi_exchange *exchange, const struct cw_transport_put *put, uint32_t rank,
                   const struct mpi_call_head *head);
/* Deregisters the regions. */
void mpi_direct_end(struct mpi_exchange *exchange);
