/* What the files of the transport share: what travels, and what came before its call. Within the lock of enter.h
 * only. */
#pragma once

#include <assert.h>

#include "dataplane/path/path.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/collective/transport/transport.h"
#include "mpi/point/message.h"

enum exchange_message {
    EXCHANGE_EAGER = 1,
    EXCHANGE_OFFER = 2,
    EXCHANGE_ACK = 3,
    EXCHANGE_REFUSE = 4,
    EXCHANGE_PIECE = 5,
    EXCHANGE_PART = 6,
    EXCHANGE_CLEAR = 7, /* a place is free, and where (direct.h) */
    EXCHANGE_FIN = 8,   /* a direct put is there */
    EXCHANGE_ASK = 9,   /* its sender waits: is the call the same here? (refusal.h) */
};

struct exchange_head {
    uint64_t context;
    uint32_t number; /* of the call */
    uint32_t run;    /* how often it was started before (persistent ones) */
    uint32_t tag;    /* ACK: of the put */
    int32_t source;
    uint8_t kind;   /* enum exchange_message */
    uint8_t buffer; /* OFFER, PIECE: enum cw_buffer */
    uint16_t put;   /* OFFER, ACK: which of the source's puts */
    uint32_t call;  /* mpi_describe_kind: must be the same at all ranks */
};

struct exchange_offer {
    uint64_t offset;
    uint64_t bytes;
    struct cw_registration registration;
};

/* Of a multicast that comes in several messages, in order, with the data behind this: of a direct one (PIECE), or a
 * long eager one (PART). */
struct exchange_piece {
    uint64_t offset; /* PIECE: in the buffer; PART: in the multicast */
    uint64_t left;   /* bytes of the multicast behind it: 0, it is the last one */
    uint64_t bytes;  /* of the whole multicast */
};

static_assert(sizeof(struct exchange_head) == 32 && sizeof(struct exchange_offer) == 32 &&
                  sizeof(struct exchange_piece) == 24,
              "the same at both sides");
static_assert(sizeof(struct exchange_head) + sizeof(struct exchange_offer) <= MPI_HEAD_MAX, "an outbox keeps it");

/* An eager multicast or put has come. */
static inline struct cw_transport_event exchange_eager_event(const struct exchange_head *head, const void *data,
                                                             uint64_t bytes)
{
    return (struct cw_transport_event){
        .kind = CW_TRANSPORT_ARRIVED,
        .peer = (uint32_t)head->source,
        .tag = head->tag,
        .eager = true,
        .data = data,
        .bytes = bytes,
    };
}

/* What came before its call, or its communicator. */
struct mpi_early {
    struct mpi_early *next;
    uint32_t rank;
    uint32_t bytes;
    uint8_t data[];
};

static inline bool exchange_fits(const struct mpi_exchange *exchange, const struct exchange_head *head)
{
    return exchange->number == head->number && exchange->run == head->run;
}

/* An exchange that holds later ones up ends. */
void exchange_unthrottle(struct mpi_exchange *exchange);

/* Keeps a message until its call begins here, or its communicator is made (NULL). */
void exchange_early_keep(struct mpi_comm *comm, uint32_t rank, const void *data, uint32_t bytes);
void exchange_early_free(struct mpi_early_list *list);
/* Moves those that `comm` and, if not NULL, the exchange fit, to where they belong now. */
void exchange_early_take(struct mpi_early_list *list, const struct mpi_comm *comm, const struct mpi_exchange *exchange);
/* Fails a call at its beginning if a rank of its communicator is gone. */
void exchange_lost_find(struct mpi_exchange *exchange);
