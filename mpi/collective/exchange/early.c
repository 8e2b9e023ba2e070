/* Messages that come before their call; calls that throttle later ones; calls that lose a rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/collective/exchange/call_log.h"
#include "mpi/collective/exchange/state.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/point/lost.h"
#include "mpi/state/process.h"
#include "mpi/transport/credit.h"
#include "mpi/transport/transport.h"

void exchange_early_keep(struct mpi_comm *comm, uint32_t rank, const void *data, uint32_t bytes)
{
    struct mpi_early *early = mpi_message_memory(rank, sizeof(*early) + bytes);
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    if (collectives == NULL) {
        mpi_message_lose(rank, bytes);
    }
    *early = (struct mpi_early){.rank = rank, .bytes = bytes};
    memcpy(early->data, data, bytes);
    mpi_kept_add_early(sizeof(*early) + bytes);
    struct mpi_early_list *list = &collectives->early;
    *(list->last == NULL ? &list->first : &list->last->next) = early;
    list->last = early;
}

void exchange_early_deliver(struct mpi_early_list *list, const struct mpi_exchange *exchange)
{
    struct mpi_early *before = NULL; /* the last one that stays */
    struct mpi_early *early;
    while ((early = before == NULL ? list->first : before->next) != NULL) {
        struct mpi_call_head head;
        memcpy(&head, early->data, sizeof(head));
        if (!exchange_fits(exchange, &head)) {
            before = early;
            continue;
        }
        *(before == NULL ? &list->first : &before->next) = early->next;
        list->last = list->last == early ? before : list->last;
        mpi_kept_remove_early(sizeof(*early) + early->bytes);
        mpi_collective_message(early->rank, early->data, early->bytes);
        free(early);
    }
}

bool mpi_exchange_is_early(const struct mpi_comm *comm)
{
    for (const struct mpi_early *early = comm->collectives->early.first; early != NULL; early = early->next) {
        struct mpi_call_head head;
        memcpy(&head, early->data, sizeof(head));
        if (head.number == comm->collectives->next_number && head.run == 0) {
            return true;
        }
    }
    return false;
}

void mpi_exchange_over(struct mpi_comm *comm, uint32_t number, uint32_t kind, bool has_failed)
{
    mpi_call_log_note(comm, number, 0, kind, has_failed);
    if (comm->collectives->early.first != NULL) {
        const struct mpi_exchange over = {.number = number, .run = 0};
        exchange_early_deliver(&comm->collectives->early, &over); /* to the log of calls */
    }
}

void exchange_early_free(struct mpi_early_list *list)
{
    while (list->first != NULL) {
        struct mpi_early *next = list->first->next;
        mpi_kept_remove_early(sizeof(*next) + list->first->bytes);
        free(list->first);
        list->first = next;
    }
    list->last = NULL;
}

void mpi_exchange_throttle(struct mpi_exchange *exchange)
{
    struct mpi_exchange **link = &exchange->comm->collectives->throttles;
    while (*link != NULL) {
        link = &(*link)->throttle_next;
    }
    exchange->throttles = true;
    exchange->throttle_next = NULL;
    *link = exchange;
}

void exchange_unthrottle(struct mpi_exchange *exchange)
{
    struct mpi_exchange **link = &exchange->comm->collectives->throttles;
    while (*link != exchange) {
        link = &(*link)->throttle_next;
    }
    *link = exchange->throttle_next;
    exchange->throttles = false;
}

/* Fails a call, since this rank of its communicator is gone. */
static void exchange_lose(struct mpi_exchange *exchange, int rank)
{
    if (exchange->failure == CW_OK) {
        exchange->lost = rank;
        mpi_comm_lost_text(exchange->comm, rank, exchange->why, sizeof(exchange->why));
        mpi_exchange_fail(exchange, CW_ERROR_PEER_FAILED);
    }
}

void exchange_lost_find(struct mpi_exchange *exchange)
{
    const struct mpi_comm *comm = exchange->comm;
    for (int rank = 0; mpi_process.lost_count > 0 && rank < comm->size && exchange->failure == CW_OK; rank++) {
        if (mpi_lost(comm, rank)) {
            exchange_lose(exchange, rank);
        }
    }
}

void mpi_collective_lost(const struct mpi_comm *comm, int rank)
{
    struct mpi_exchange *exchange = comm->collectives == NULL ? NULL : comm->collectives->exchanges;
    for (; exchange != NULL; exchange = exchange->next) {
        exchange_lose(exchange, rank);
    }
}

void mpi_collective_down(uint32_t rank)
{
    for (struct mpi_comm *comm = mpi_comm_first(); comm != NULL; comm = mpi_comm_after(comm)) {
        int lost = mpi_group_rank_of(comm->group, rank);
        if (lost != MPI_UNDEFINED) {
            mpi_collective_lost(comm, lost);
        }
    }
}
