/* What the paths would not take yet, in order for each rank. */
#include <stdlib.h>
#include <string.h>

#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"

struct outgoing {
    struct outgoing *next;
    uint32_t lane_tag;
    uint32_t head_bytes;
    uint32_t bytes;
    const void *data;
    enum cw_element element;
    struct mpi_request *request;
    uint8_t head[MPI_HEAD_MAX];
};

struct outbox {
    struct outgoing *first;
    struct outgoing *last;
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

static struct outgoing *outbox_take(struct outbox *outbox)
{
    struct outgoing *item = outbox->first;
    outbox->first = item->next;
    if (outbox->first == NULL) {
        outbox->last = NULL;
    }
    mpi_outbox_waiting--;
    return item;
}

void mpi_outbox_stop(void)
{
    for (uint32_t rank = 0; rank < outbox_count; rank++) {
        while (outboxes[rank].first != NULL) {
            free(outbox_take(&outboxes[rank]));
        }
    }
    free(outboxes);
    outboxes = NULL;
    outbox_count = 0;
}

static int outbox_append(uint32_t rank, const struct outgoing *item)
{
    struct outgoing *kept = malloc(sizeof(*kept));
    if (kept == NULL) {
        return CW_ERROR_MEMORY;
    }
    *kept = *item;
    struct outbox *outbox = &outboxes[rank];
    *(outbox->last == NULL ? &outbox->first : &outbox->last->next) = kept;
    outbox->last = kept;
    mpi_outbox_waiting++;
    mpi_progress_is_due = true;
    return CW_ERROR_AGAIN;
}

int mpi_outbox_send(uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes, const void *data,
                    uint32_t bytes, enum cw_element element, struct mpi_request *request)
{
    if (outboxes[rank].first == NULL) {
        int status = cw_paths_send(mpi_process.paths, rank, lane_tag, head, head_bytes, data, bytes, element);
        if (status != CW_ERROR_AGAIN) {
            return status;
        }
    }
    struct outgoing item = {
        .lane_tag = lane_tag,
        .head_bytes = head_bytes,
        .bytes = bytes,
        .data = data,
        .element = element,
        .request = request,
    };
    memcpy(item.head, head, head_bytes);
    return outbox_append(rank, &item);
}

static uint32_t outbox_progress(uint32_t rank)
{
    uint32_t count = 0;
    struct outbox *outbox = &outboxes[rank];
    while (outbox->first != NULL) {
        struct outgoing *item = outbox->first;
        int status = cw_paths_send(mpi_process.paths, rank, item->lane_tag, item->head, item->head_bytes, item->data,
                                   item->bytes, item->element);
        if (status == CW_ERROR_AGAIN) {
            break;
        }
        outbox_take(outbox);
        if (item->request != NULL) {
            mpi_send_left(item->request, status);
        }
        free(item);
        count++;
    }
    return count;
}

uint32_t mpi_outbox_progress(void)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < outbox_count && mpi_outbox_waiting > 0; rank++) {
        count += outbox_progress(rank);
    }
    return count;
}

void mpi_outbox_fail(uint32_t rank, int status)
{
    while (outboxes[rank].first != NULL) {
        struct outgoing *item = outbox_take(&outboxes[rank]);
        if (item->request != NULL) {
            mpi_send_left(item->request, status);
        }
        free(item);
    }
}
