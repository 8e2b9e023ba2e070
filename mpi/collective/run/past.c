#include "mpi/collective/run/past.h"

#include <stdio.h>

#include "dataplane/status.h"
#include "mpi/collective/run/cast.h"
#include "mpi/collective/run/describe.h"
#include "mpi/collective/run/refusal.h"
#include "mpi/collective/run/state.h"
#include "mpi/collective/run/transport_state.h"

void mpi_past_note(const struct mpi_exchange *exchange)
{
    struct mpi_past *past = &exchange->comm->collectives->past;
    uint32_t at = past->count++ % MPI_PAST_CALLS;
    past->calls[at].number = exchange->number;
    past->calls[at].run = exchange->run;
    past->calls[at].kind = exchange->kind;
    past->calls[at].has_failed = exchange->failure != CW_OK;
}

static void exchange_end(const struct mpi_past *past, struct mpi_exchange *exchange)
{
    if (exchange->failure == CW_OK) {
        snprintf(exchange->why, sizeof(exchange->why), "%s", past->why);
        exchange->failure = CW_ERROR_ARGUMENT;
    }
}

void mpi_past_tell(struct mpi_exchange *exchange)
{
    struct mpi_past *past = &exchange->comm->collectives->past;
    if (past->why[0] != '\0') {
        exchange_end(past, exchange);
        past->why[0] = '\0';
    }
}

/* All that are under way; if none is, the next one. */
static void all_tell(struct mpi_collectives *collectives)
{
    struct mpi_past *past = &collectives->past;
    for (struct mpi_exchange *open = collectives->exchanges; open != NULL; open = open->next) {
        exchange_end(past, open);
    }
    if (collectives->exchanges != NULL) {
        past->why[0] = '\0';
    }
}

/* The index of a call among those that are kept; -1: it is not over, or too long ago. */
static int past_find(const struct mpi_comm *comm, const struct exchange_head *head)
{
    const struct mpi_past *past = comm == NULL || comm->collectives == NULL ? NULL : &comm->collectives->past;
    uint32_t count = past == NULL ? 0 : past->count < MPI_PAST_CALLS ? past->count : MPI_PAST_CALLS;
    for (uint32_t i = 0; i < count; i++) {
        if (past->calls[i].number == head->number && past->calls[i].run == head->run) {
            return (int)i;
        }
    }
    return -1;
}

bool mpi_past_takes(struct mpi_comm *comm, const struct exchange_head *head)
{
    int at = past_find(comm, head);
    if (at < 0) {
        return false;
    }
    struct mpi_past *past = &comm->collectives->past;
    if (past->calls[at].kind != head->call) { /* a refusal's is none */
        mpi_cast_open(comm);
    }
    if (past->calls[at].kind != head->call && head->kind != EXCHANGE_REFUSE && !past->calls[at].has_failed) {
        mpi_describe_late(comm, head->source, head->call, past->calls[at].kind, past->why, sizeof(past->why));
        all_tell(comm->collectives);
        /* ranks in the same call as this one was may wait for what only the one that differs could make go on */
        const struct mpi_refusal refusal = {.reason = MPI_REFUSAL_MISMATCH, .peer = head->source};
        mpi_exchange_refuse(comm, head->number, head->run, &refusal);
        past->calls[at].has_failed = true;
    }
    return true;
}

bool mpi_past_differs(struct mpi_comm *comm, const struct exchange_head *head)
{
    int at = past_find(comm, head);
    const struct mpi_past *past = at < 0 ? NULL : &comm->collectives->past;
    return mpi_past_takes(comm, head) && (past->calls[at].kind != head->call || past->calls[at].has_failed);
}
