#include "mpi/collective/exchange/refusal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "collectives/execute/execute.h"
#include "control/groups/groups.h"
#include "control/job/job.h"
#include "dataplane/status.h"
#include "mpi/collective/exchange/call_kind.h"
#include "mpi/collective/exchange/call_log.h"
#include "mpi/collective/exchange/groups.h"
#include "mpi/collective/exchange/state.h"
#include "mpi/collective/host/host.h"
#include "mpi/state/process.h"
#include "mpi/transport/outbox.h"

enum { ASKED_MAX = 16 }; /* ranks, by a call at a time */

static_assert(sizeof(struct mpi_refusal) == 24, "the same at both sides");
static_assert(sizeof(struct mpi_call_head) + sizeof(struct mpi_refusal) <= MPI_HEAD_MAX, "an outbox keeps it");

void mpi_refusal_text(const struct mpi_refusal *refusal, int rank, char *text, size_t text_bytes)
{
    unsigned long long planned = refusal->planned, given = refusal->given;
    switch (refusal->reason) {
    case MPI_REFUSAL_SENDS:
        snprintf(text, text_bytes,
                 "by these phases rank %d sends rank %d %llu bytes, but its call says %llu; make phases for the counts",
                 rank, refusal->peer, planned, given);
        break;
    case MPI_REFUSAL_EXPECTS:
        snprintf(text, text_bytes,
                 "by these phases rank %d gets %llu bytes of rank %d, but its call says %llu; make phases for the "
                 "counts",
                 rank, planned, refusal->peer, given);
        break;
    case MPI_REFUSAL_FAILED:
        snprintf(text, text_bytes, "rank %d does not continue: %s", rank, cw_status_text((int)refusal->given));
        break;
    case MPI_REFUSAL_ARGUMENTS:
        snprintf(text, text_bytes, "rank %d does not take part: its own arguments are invalid (it reports which)",
                 rank);
        break;
    case MPI_REFUSAL_LOST:
        if (refusal->peer < 0) {
            snprintf(text, text_bytes, "rank %d does not continue: it cannot reach another rank any more", rank);
        } else {
            snprintf(text, text_bytes, "rank %d does not continue: it cannot reach rank %d any more", rank,
                     refusal->peer);
        }
        break;
    default:
        snprintf(text, text_bytes, "rank %d does not continue: it was notified of another call, or of other phases",
                 rank);
    }
}

static void reject_one(const struct mpi_comm *comm, int rank, uint32_t number, uint32_t run,
                       const struct mpi_refusal *refusal)
{
    struct {
        struct mpi_call_head head;
        struct mpi_refusal refusal;
    } message = {
        .head = {.envelope = {.context = comm->context, .source = comm->rank},
                 .number = number,
                 .run = run,
                 .kind = MPI_SENT_REFUSE},
        .refusal = *refusal,
    };
    /* an unreachable rank is gone, or finds out by its watchdog */
    (void)mpi_notify(comm->group->ranks[rank], mpi_lane_tag(comm->context, MPI_SENT_CALL), &message, sizeof(message));
}

void mpi_exchange_reject(const struct mpi_comm *comm, uint32_t number, uint32_t run, const struct mpi_refusal *refusal)
{
    struct mpi_refusal told = *refusal;
    told.flags |= MPI_REFUSAL_TO_ALL;
    for (int rank = 0; rank < comm->size; rank++) {
        if (rank != comm->rank) {
            reject_one(comm, rank, number, run, &told);
        }
    }
}

void mpi_collective_reject(struct mpi_comm *comm, const struct mpi_refusal *refusal)
{
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    if (collectives != NULL) { /* without memory no notice is sent */
        mpi_exchange_reject(comm, collectives->next_number++, 0, refusal);
        mpi_groups_open_all(comm); /* as the receivers of the refusal do */
    }
}

uint16_t mpi_refusal_levels(uint32_t kinds)
{
    return (kinds & MPI_CALL_LEVELS) != 0 ? MPI_REFUSAL_LEVELS : 0;
}

static void others_notify(struct mpi_exchange *exchange, const struct mpi_refusal *refusal)
{
    mpi_groups_open_all(exchange->comm);
    if (!exchange->is_notified) {
        struct mpi_refusal told = *refusal;
        told.flags = mpi_refusal_levels(exchange->kind | exchange->kind_seen);
        exchange->is_notified = true;
        mpi_exchange_reject(exchange->comm, exchange->number, exchange->run, &told);
    }
}

void mpi_exchange_mismatch_notify(struct mpi_exchange *exchange, int peer)
{
    others_notify(exchange, &(struct mpi_refusal){.reason = MPI_REFUSAL_MISMATCH, .peer = peer});
}

void mpi_exchange_lost_notify(struct mpi_exchange *exchange)
{
    others_notify(exchange, &(struct mpi_refusal){.reason = MPI_REFUSAL_LOST, .peer = exchange->lost});
}

void mpi_exchange_failed_notify(struct mpi_exchange *exchange, int status)
{
    others_notify(exchange,
                  &(struct mpi_refusal){.reason = MPI_REFUSAL_FAILED, .peer = -1, .given = (uint64_t)(int64_t)status});
}

void mpi_exchange_mismatch_receive(struct mpi_exchange *exchange, const struct mpi_call_head *head)
{
    exchange->kind_seen = head->call;
    exchange->comm->collectives->are_levels_over |= mpi_refusal_levels(head->call) != 0;
    mpi_exchange_mismatch_notify(exchange, head->envelope.source);
    if (exchange->failure == CW_OK) {
        mpi_call_kind_mismatch(exchange, head->envelope.source, head->call);
        mpi_exchange_fail(exchange, CW_ERROR_ARGUMENT);
    }
}

/* ---- questions ---- */

static void exchange_probe(const struct mpi_exchange *exchange)
{
    const struct mpi_comm *comm = exchange->comm;
    const struct mpi_call_head head = {
        .envelope = {.context = comm->context, .source = comm->rank},
        .number = exchange->number,
        .run = exchange->run,
        .kind = MPI_SENT_ASK,
        .call = exchange->kind,
    };
    uint32_t awaited[ASKED_MAX];
    uint32_t count = cw_execution_awaited(exchange->execution, awaited, ASKED_MAX);
    for (uint32_t i = 0; i < count; i++) {
        (void)mpi_exchange_send_eager(comm, comm->group->ranks[awaited[i]], &head, sizeof(head), NULL, 0,
                                      CW_ELEMENT_BYTES);
    }
}

void mpi_exchange_compare(void)
{
    if (mpi_process.has_notified_launcher) {
        return;
    }
    if (mpi_process.job != NULL && cw_job_groups(mpi_process.job) != NULL) {
        cw_groups_probe(cw_job_groups(mpi_process.job));
    }
    for (struct mpi_comm *comm = mpi_comm_first(); comm != NULL; comm = mpi_comm_after(comm)) {
        const struct mpi_exchange *exchange = comm->collectives == NULL ? NULL : comm->collectives->exchanges;
        for (; exchange != NULL; exchange = exchange->next) {
            if (exchange->failure == CW_OK) {
                exchange_probe(exchange);
            }
        }
    }
}

/* Whether this rank carries the call that a message is about out at once, without an exchange, and it is another one.
 */
static bool differs_at_once(const struct mpi_comm *comm, const struct mpi_call_head *head)
{
    uint32_t kind;
    return head->number == comm->collectives->blocking_number && head->run == 0 &&
           mpi_host_kind(comm->collectives->host, &kind) && kind != head->call;
}

void mpi_refusal_answer(struct mpi_comm *comm, const struct mpi_call_head *head)
{
    struct mpi_refusal refusal = {.reason = MPI_REFUSAL_MISMATCH, .peer = head->envelope.source};
    if (comm == NULL || comm->collectives == NULL || head->envelope.source < 0 || head->envelope.source >= comm->size) {
        return;
    }
    if (mpi_call_log_differs(comm, head) ||
        (differs_at_once(comm, head) && mpi_host_mismatch(comm, head->envelope.source))) {
        refusal.flags = comm->collectives->are_levels_over ? MPI_REFUSAL_LEVELS : mpi_refusal_levels(head->call);
        reject_one(comm, head->envelope.source, head->number, head->run, &refusal);
    }
}

/* The status of the call that gets the notice. */
static int refusal_status(const struct mpi_refusal *refusal)
{
    bool is_buffer = refusal->reason == MPI_REFUSAL_FAILED && (int64_t)refusal->given == CW_ERROR_REMOTE_ACCESS;
    return refusal->reason == MPI_REFUSAL_LOST ? CW_ERROR_PEER_FAILED
           : is_buffer                         ? CW_ERROR_REMOTE_ACCESS
                                               : CW_ERROR_ARGUMENT;
}

void mpi_refusal_note(struct mpi_comm *comm, const void *data, uint32_t bytes)
{
    struct mpi_refusal refusal;
    if (bytes == sizeof(refusal) && mpi_collectives_of(comm) != NULL) {
        memcpy(&refusal, data, sizeof(refusal));
        comm->collectives->are_levels_over |= (refusal.flags & MPI_REFUSAL_LEVELS) != 0;
    }
}

bool mpi_refusal_receive(struct mpi_exchange *exchange, int rank, const void *data, uint32_t bytes)
{
    struct mpi_refusal refusal;
    if (bytes != sizeof(refusal)) {
        return false;
    }
    memcpy(&refusal, data, sizeof(refusal));
    exchange->is_notified = exchange->is_notified || (refusal.flags & MPI_REFUSAL_TO_ALL) != 0;
    mpi_groups_open_all(exchange->comm);
    if (exchange->failure == CW_OK) { /* the known reason is better */
        mpi_refusal_text(&refusal, rank, exchange->why, sizeof(exchange->why));
        mpi_exchange_fail(exchange, refusal_status(&refusal));
    }
    return true;
}
