/* What the files of exchange/ share. Within the lock of enter.h only. */
#pragma once

#include <assert.h>

#include "dataplane/path/path.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/exchange/exchange.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/transport/message.h"

/* A put has come: an eager one if `data` is not NULL. */
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

/* What came before its call. */
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

/* An exchange that holds later ones up ends. */
void exchange_unthrottle(struct mpi_exchange *exchange);

/* Keeps a message until its call begins here. */
void exchange_early_keep(struct mpi_comm *comm, uint32_t rank, const void *data, uint32_t bytes);
void exchange_early_free(struct mpi_early_list *list);
/* Gives those of a call that begins to it. */
void exchange_early_take(struct mpi_early_list *list, const struct mpi_exchange *exchange);
/* Fails a call at its beginning if a rank of its communicator is gone. */
void exchange_lost_find(struct mpi_exchange *exchange);
