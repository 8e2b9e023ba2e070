#include "mpi/collective/refusal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/collective/transport_state.h"
#include "mpi/point/numbers.h"
#include "mpi/point/point.h"

static_assert(sizeof(struct mpi_refusal) == 24, "the same at both sides");
static_assert(sizeof(struct exchange_head) + sizeof(struct mpi_refusal) <= MPI_HEAD_MAX, "an outbox keeps it");

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
        snprintf(text, text_bytes, "rank %d cannot take part: it has no memory left", rank);
        break;
    case MPI_REFUSAL_ARGUMENTS:
        snprintf(text, text_bytes, "rank %d does not take part: its own arguments are wrong, as it is told", rank);
        break;
    default:
        snprintf(text, text_bytes, "rank %d does not go on: it is told of another call, or of other phases", rank);
    }
}

void mpi_exchange_refuse(const struct mpi_comm *comm, uint32_t number, uint32_t run, const struct mpi_refusal *refusal)
{
    struct {
        struct exchange_head head;
        struct mpi_refusal refusal;
    } message = {
        .head = {.context = comm->context, .number = number, .run = run, .source = comm->rank, .kind = EXCHANGE_REFUSE},
        .refusal = *refusal,
    };
    for (int rank = 0; rank < comm->size; rank++) {
        if (rank != comm->rank) { /* a rank that cannot be told is gone, or finds out by its watchdog */
            (void)mpi_outbox_send(comm->group->ranks[rank], mpi_lane_tag(comm->context, MPI_SENT_COLLECTIVE), &message,
                                  sizeof(message), NULL, 0, NULL);
        }
    }
}

bool mpi_refusal_take(struct mpi_exchange *exchange, int rank, const void *data, uint32_t bytes)
{
    struct mpi_refusal refusal;
    if (bytes != sizeof(refusal)) {
        return false;
    }
    memcpy(&refusal, data, sizeof(refusal));
    if (exchange->failure == CW_OK) { /* what is known already tells more */
        mpi_refusal_text(&refusal, rank, exchange->why, sizeof(exchange->why));
        exchange->failure = CW_ERROR_ARGUMENT;
    }
    return true;
}
