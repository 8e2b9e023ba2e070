#include "mpi/collective/exchange/call_log.h"

#include <stdio.h>

#include "dataplane/status.h"
#include "mpi/collective/exchange/call_kind.h"
#include "mpi/collective/exchange/groups.h"
#include "mpi/collective/exchange/refusal.h"
#include "mpi/collective/exchange/state.h"
#include "mpi/collective/state/collectives.h"

void mpi_call_log_note(const struct mpi_comm *comm, uint32_t number, uint32_t run, uint32_t kind, bool has_failed)
{
    struct mpi_call_log *log = &comm->collectives->log;
    uint32_t at = log->count++ % MPI_CALL_LOG_LENGTH;
    log->calls[at].number = number;
    log->calls[at].run = run;
    log->calls[at].kind = kind;
    log->calls[at].has_failed = has_failed;
}

static void exchange_end(const struct mpi_call_log *log, struct mpi_exchange *exchange)
{
    if (exchange->failure == CW_OK) {
        snprintf(exchange->why, sizeof(exchange->why), "%s", log->why);
        mpi_exchange_fail(exchange, CW_ERROR_ARGUMENT);
    }
}

void mpi_call_log_report(struct mpi_exchange *exchange)
{
    struct mpi_call_log *log = &exchange->comm->collectives->log;
    if (log->why[0] != '\0') {
        exchange_end(log, exchange);
        log->why[0] = '\0';
    }
}

/* All that are in progress; if none is, the next one. */
static void all_report(struct mpi_collectives *collectives)
{
    struct mpi_call_log *log = &collectives->log;
    for (struct mpi_exchange *open = collectives->exchanges; open != NULL; open = open->next) {
        exchange_end(log, open);
    }
    if (collectives->exchanges != NULL) {
        log->why[0] = '\0';
    }
}

/* The index of a call among those that are kept; -1: it has not ended, or too long ago. */
static int log_find(const struct mpi_comm *comm, const struct mpi_call_head *head)
{
    const struct mpi_call_log *log = comm == NULL || comm->collectives == NULL ? NULL : &comm->collectives->log;
    uint32_t count = log == NULL ? 0 : log->count < MPI_CALL_LOG_LENGTH ? log->count : MPI_CALL_LOG_LENGTH;
    for (uint32_t i = 0; i < count; i++) {
        if (log->calls[i].number == head->number && log->calls[i].run == head->run) {
            return (int)i;
        }
    }
    return -1;
}

bool mpi_call_log_accepts(struct mpi_comm *comm, const struct mpi_call_head *head)
{
    int at = log_find(comm, head);
    if (at < 0) {
        return false;
    }
    struct mpi_call_log *log = &comm->collectives->log;
    if (log->calls[at].kind != head->call) { /* a refusal's is none */
        mpi_groups_open_all(comm);
    }
    if (log->calls[at].kind != head->call && head->kind != MPI_SENT_REFUSE && !log->calls[at].has_failed) {
        mpi_call_kind_late(comm, head->envelope.source, head->call, log->calls[at].kind, log->why, sizeof(log->why));
        all_report(comm->collectives);
        /* ranks in this rank's former call may wait for progress that only the one that differs could make */
        const uint16_t flags = mpi_refusal_levels(head->call | log->calls[at].kind);
        const struct mpi_refusal refusal = {
            .reason = MPI_REFUSAL_MISMATCH, .peer = head->envelope.source, .flags = flags};
        comm->collectives->are_levels_over |= flags != 0;
        mpi_exchange_reject(comm, head->number, head->run, &refusal);
        log->calls[at].has_failed = true;
    }
    return true;
}

bool mpi_call_log_differs(struct mpi_comm *comm, const struct mpi_call_head *head)
{
    int at = log_find(comm, head);
    const struct mpi_call_log *log = at < 0 ? NULL : &comm->collectives->log;
    return mpi_call_log_accepts(comm, head) && (log->calls[at].kind != head->call || log->calls[at].has_failed);
}
