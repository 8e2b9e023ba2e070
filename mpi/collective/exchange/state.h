/* Private declarations of exchange/. Within the lock of enter.h only. */
#pragma once

#include <assert.h>

#include "dataplane/path/path.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/exchange/exchange.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/transport/message.h"

/* The event for a put that has arrived, which is eager if `data` is not NULL. */
static inline struct cw_transport_event exchange_arrival(const struct mpi_call_head *head, const void *data,
                                                         uint64_t bytes)
{
    return (struct cw_transport_event){
        .kind = CW_TRANSPORT_ARRIVED,
        .peer = (uint32_t)head->envelope.source,
        .tag = (uint32_t)head->envelope.tag,
        .eager = data != NULL,
        .data = data,
        .bytes = bytes,
    };
}

/* A message that arrived before its call. */
struct mpi_early {
    struct mpi_early *next;
    uint32_t rank;
    uint32_t bytes;
    uint8_t data[];
};

static inline bool exchange_fits(const struct mpi_exchange *exchange, const struct mpi_call_head *head)
{
    return exchange->number == head->number && exchange->run == head->run;
}

/* Later calls need not wait for it any more. */
void exchange_unthrottle(struct mpi_exchange *exchange);

/* Keeps a message until its call begins on this rank. */
void exchange_early_keep(struct mpi_comm *comm, uint32_t rank, const void *data, uint32_t bytes);
void exchange_early_free(struct mpi_early_list *list);
/* Delivers the kept messages of a call that begins. */
void exchange_early_deliver(struct mpi_early_list *list, const struct mpi_exchange *exchange);
/* Fails a call that begins if a rank of its communicator is lost. */
void exchange_lost_find(struct mpi_exchange *exchange);
