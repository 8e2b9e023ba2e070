#include "mpi/transport/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"

struct waiting {
    struct waiting *next;
    struct mpi_outgoing message;
    uint8_t head[MPI_HEAD_MAX];
};

struct outbox {
    struct waiting *first;
    struct waiting *last;
};

static struct outbox *outboxes; /* by rank */
static uint32_t outbox_count;
uint32_t mpi_outbox_waiting;

int mpi_outbox_start(uint32_t rank_count)
{
    outboxes = calloc(rank_count, sizeof(*outboxes));
    outbox_count = rank_count;
    return outboxes == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

static struct waiting *first_pop(struct outbox *outbox)
{
    struct waiting *first = outbox->first;
    outbox->first = first->next;
    if (outbox->first == NULL) {
        outbox->last = NULL;
    }
    mpi_outbox_waiting--;
    return first;
}

void mpi_outbox_stop(void)
{
    for (uint32_t rank = 0; rank < outbox_count; rank++) {
        while (outboxes[rank].first != NULL) {
            free(first_pop(&outboxes[rank]));
        }
    }
    free(outboxes);
    outboxes = NULL;
    outbox_count = 0;
}

static int path_send(const struct mpi_outgoing *message)
{
    return cw_paths_send(mpi_process.paths, message->rank, message->lane_tag, message->head, message->head_bytes,
                         message->data, message->bytes, message->element);
}

static int message_keep(const struct mpi_outgoing *message)
{
    struct waiting *kept = malloc(sizeof(*kept));
    if (kept == NULL) {
        return CW_ERROR_MEMORY;
    }
    kept->next = NULL;
    kept->message = *message;
    kept->message.head = memcpy(kept->head, message->head, message->head_bytes);
    struct outbox *outbox = &outboxes[message->rank];
    *(outbox->last == NULL ? &outbox->first : &outbox->last->next) = kept;
    outbox->last = kept;
    mpi_outbox_waiting++;
    mpi_progress_is_due = true;
    return CW_ERROR_AGAIN;
}

int mpi_outbox_send(const struct mpi_outgoing *message)
{
    int status = outboxes[message->rank].first == NULL ? path_send(message) : CW_ERROR_AGAIN;
    return status == CW_ERROR_AGAIN ? message_keep(message) : status;
}

int mpi_notify(uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes)
{
    int status = mpi_outbox_send(&(struct mpi_outgoing){
        .rank = rank, .lane_tag = lane_tag, .head = head, .head_bytes = head_bytes, .element = CW_ELEMENT_BYTES});
    return status == CW_ERROR_AGAIN ? CW_OK : status;
}

void mpi_answer_send(uint32_t rank, uint64_t context, enum mpi_sent kind, uint32_t number, int status)
{
    const struct mpi_answer answer = {.number = number, .status = status};
    (void)mpi_notify(rank, mpi_lane_tag(context, kind), &answer, sizeof(answer));
}

static void first_leave(struct outbox *outbox, int status)
{
    struct waiting *first = first_pop(outbox);
    if (first->message.left != NULL) {
        first->message.left(first->message.owner, status);
    }
    free(first);
}

uint32_t mpi_outbox_progress(void)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < outbox_count && mpi_outbox_waiting > 0; rank++) {
        struct outbox *outbox = &outboxes[rank];
        int status = CW_OK;
        while (outbox->first != NULL && (status = path_send(&outbox->first->message)) != CW_ERROR_AGAIN) {
            first_leave(outbox, status);
            count++;
        }
    }
    return count;
}

void mpi_outbox_fail(uint32_t rank, int status)
{
    while (outboxes[rank].first != NULL) {
        first_leave(&outboxes[rank], status);
    }
}
