#include "mpi/collective/past.h"

#include <stdio.h>

#include "dataplane/status.h"
#include "mpi/collective/describe.h"
#include "mpi/collective/state.h"
#include "mpi/collective/transport_state.h"

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

bool mpi_past_takes(struct mpi_comm *comm, const struct exchange_head *head)
{
    struct mpi_past *past = comm == NULL || comm->collectives == NULL ? NULL : &comm->collectives->past;
    uint32_t count = past == NULL ? 0 : past->count < MPI_PAST_CALLS ? past->count : MPI_PAST_CALLS;
    for (uint32_t i = 0; i < count; i++) {
        if (past->calls[i].number != head->number || past->calls[i].run != head->run) {
            continue;
        }
        if (past->calls[i].kind != head->call && head->kind != EXCHANGE_REFUSE && !past->calls[i].has_failed) {
            mpi_describe_late(comm, head->source, head->call, past->calls[i].kind, past->why, sizeof(past->why));
            all_tell(comm->collectives);
        }
        return true;
    }
    return false;
}
