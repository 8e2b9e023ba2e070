/* What comes from the paths. Everything is checked: the other side may run another build, or be broken. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/point/credit.h"
#include "mpi/point/numbers.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"

/* The parts of a message, as far as its kind has them. */
struct parts {
    struct mpi_envelope envelope;
    struct mpi_answer_to answer;
    struct mpi_offer offer;
    const uint8_t *data;
    uint32_t bytes;
};

static bool part_take(const uint8_t **data, uint32_t *bytes, void *part, uint32_t part_bytes)
{
    if (*bytes < part_bytes) {
        return false;
    }
    memcpy(part, *data, part_bytes);
    *data += part_bytes;
    *bytes -= part_bytes;
    return true;
}

static bool parts_read(enum mpi_message_kind kind, const void *data, uint32_t bytes, struct parts *parts)
{
    *parts = (struct parts){.data = data, .bytes = bytes};
    bool offer = kind == MPI_SENT_LONG || kind == MPI_SENT_WANT;
    bool envelope = offer || kind == MPI_SENT_EAGER || kind == MPI_SENT_SYNC || kind == MPI_SENT_CANCEL;
    bool answer = kind == MPI_SENT_SYNC || kind == MPI_SENT_DONE || kind == MPI_SENT_CANCEL ||
                  kind == MPI_SENT_CANCELLED || kind == MPI_SENT_CREDIT || kind == MPI_SENT_CLEAR ||
                  kind == MPI_SENT_DATA;
    return (!envelope || part_take(&parts->data, &parts->bytes, &parts->envelope, sizeof(parts->envelope))) &&
           (!answer || part_take(&parts->data, &parts->bytes, &parts->answer, sizeof(parts->answer))) &&
           (!offer || part_take(&parts->data, &parts->bytes, &parts->offer, sizeof(parts->offer)));
}

/* A message is lost: no call is to blame, and whoever waits for it would wait for ever. */
static _Noreturn void message_lose(uint32_t rank, uint64_t bytes)
{
    fprintf(stderr, "causeway: rank %u: no memory for an unexpected message of %llu bytes from rank %u\n",
            mpi_process.rank, (unsigned long long)bytes, rank);
    mpi_process_abort(MPI_ERR_NO_MEM);
}

/* Keeps a message that nobody has asked for yet. */
static void message_keep(struct mpi_comm *comm, uint32_t rank, enum mpi_message_kind kind, const struct parts *parts)
{
    struct mpi_message *message = malloc(sizeof(*message) + parts->bytes);
    if (message == NULL) {
        message_lose(rank, parts->bytes);
    }
    bool is_offer = kind == MPI_SENT_LONG || kind == MPI_SENT_WANT;
    *message = (struct mpi_message){
        .envelope = parts->envelope,
        .kind = kind,
        .rank = rank,
        .bytes = is_offer ? parts->offer.bytes : parts->bytes,
        .number = is_offer ? parts->offer.number : parts->answer.number,
        .registration = parts->offer.registration,
    };
    memcpy(message->data, parts->data, parts->bytes);
    if (!mpi_match_keep(comm, message)) {
        message_lose(rank, parts->bytes);
    }
    if (!is_offer) {
        mpi_kept_add(parts->bytes);
    }
}

static void message_match(uint32_t rank, enum mpi_message_kind kind, const void *data, uint32_t bytes)
{
    struct parts read;
    struct parts *parts = &read;
    if (!parts_read(kind, data, bytes, parts)) {
        return;
    }
    struct mpi_comm *comm = mpi_comm_of_context(parts->envelope.context);
    if (comm != NULL && (parts->envelope.source < 0 || parts->envelope.source >= comm->size)) {
        return; /* no process with this library sends that */
    }
    struct mpi_request *request = comm == NULL ? NULL : mpi_match_arrival(comm, &parts->envelope);
    if (request == NULL && kind == MPI_SENT_EAGER && comm == NULL && mpi_context_was_freed(parts->envelope.context)) {
        mpi_kept.dropped++;
        mpi_credit_give(rank, parts->bytes);
        return;
    }
    if (request == NULL) {
        message_keep(comm, rank, kind, parts);
        return;
    }
    if (kind == MPI_SENT_WANT) {
        mpi_receive_announced(request, &parts->envelope, rank, parts->offer.bytes, parts->offer.number);
        return;
    }
    if (kind == MPI_SENT_LONG) {
        mpi_receive_long(request, &parts->envelope, rank, parts->offer.bytes, &parts->offer.registration,
                         parts->offer.number);
        return;
    }
    if (kind == MPI_SENT_SYNC) {
        mpi_answer(rank, parts->envelope.context, MPI_SENT_DONE, parts->answer.number, MPI_SUCCESS);
    }
    mpi_receive_eager(request, &parts->envelope, parts->data, parts->bytes);
    mpi_credit_give(rank, parts->bytes);
}

static void message_cancel(uint32_t rank, const struct parts *parts)
{
    struct mpi_comm *comm = mpi_comm_of_context(parts->envelope.context);
    bool was_recalled = mpi_match_recall(comm, &parts->envelope, rank, parts->answer.number);
    mpi_answer(rank, parts->envelope.context, MPI_SENT_CANCELLED, parts->answer.number, was_recalled);
}

/* The common case in one go: a short message that somebody waits for. False: it is another case, and nothing has
 * happened. */
static bool eager_take(uint32_t rank, const void *data, uint32_t bytes)
{
    struct mpi_envelope envelope;
    if (bytes < sizeof(envelope)) {
        return false;
    }
    memcpy(&envelope, data, sizeof(envelope));
    struct mpi_comm *comm = mpi_comm_of_context(envelope.context);
    if (comm == NULL || envelope.source < 0 || envelope.source >= comm->size) {
        return false;
    }
    struct mpi_request *request = mpi_match_arrival(comm, &envelope);
    if (request == NULL) {
        return false;
    }
    mpi_receive_eager(request, &envelope, (const uint8_t *)data + sizeof(envelope), bytes - sizeof(envelope));
    mpi_credit_give(rank, bytes - sizeof(envelope));
    return true;
}

/* ---- listeners, by the kind of message ---- */

static void take_eager(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    (void)context, (void)lane_tag;
    if (!eager_take(rank, data, bytes)) {
        message_match(rank, MPI_SENT_EAGER, data, bytes);
    }
}

static void take_envelope(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    (void)context;
    message_match(rank, (enum mpi_message_kind)cw_tag(lane_tag), data, bytes);
}

static void take_cancel(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct parts parts;
    (void)context;
    if (parts_read((enum mpi_message_kind)cw_tag(lane_tag), data, bytes, &parts)) {
        message_cancel(rank, &parts);
    }
}

static void take_answer(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    enum mpi_message_kind kind = (enum mpi_message_kind)cw_tag(lane_tag);
    struct parts parts;
    (void)context;
    if (!parts_read(kind, data, bytes, &parts)) {
        return;
    }
    switch (kind) {
    case MPI_SENT_DONE:
        mpi_send_done(parts.answer.number, parts.answer.status);
        break;
    case MPI_SENT_CREDIT:
        mpi_credit_get(rank, parts.answer.number);
        break;
    case MPI_SENT_CLEAR:
        mpi_send_clear(parts.answer.number, (uint32_t)parts.answer.status);
        break;
    case MPI_SENT_CANCELLED:
        mpi_send_cancelled(parts.answer.number, parts.answer.status != 0);
        break;
    default:
        mpi_receive_end(parts.answer.number, parts.data, parts.bytes, MPI_SUCCESS);
    }
}

void mpi_answer(uint32_t rank, uint64_t context, enum mpi_message_kind kind, uint32_t number, int status)
{
    struct mpi_answer_to answer = {.number = number, .status = status};
    (void)mpi_outbox_send(rank, mpi_lane_tag(context, kind), &answer, sizeof(answer), NULL, 0, CW_ELEMENT_BYTES, NULL);
}

/* Whoever puts into this rank's memory says so by a message behind it (collective/transport/direct.h). */
static void take_arrived(void *context, uint32_t rank, uint32_t lane_tag)
{
    (void)context, (void)rank, (void)lane_tag;
}

static void take_complete(void *context, uint64_t operation, int status)
{
    (void)context;
    struct mpi_operation *done = (struct mpi_operation *)(uintptr_t)operation;
    done->done(done, status);
}

static void take_sent(void *context, uint64_t operation)
{
    (void)context;
    struct mpi_operation *sent = (struct mpi_operation *)(uintptr_t)operation;
    if (sent->sent != NULL) {
        sent->sent(sent);
    }
}

uint32_t mpi_point_turn(void)
{
    uint32_t count = mpi_outbox_waiting > 0 ? mpi_outbox_progress() : 0;
    if (mpi_gets_waiting != NULL) {
        count += mpi_get_progress();
    }
    bool is_kept = mpi_deregister_progress();
    mpi_progress_is_due = mpi_progress_is_due || is_kept || mpi_outbox_waiting > 0 || mpi_gets_waiting != NULL;
    return count;
}

void mpi_incoming_listen(struct cw_path_handler *handler)
{
    *handler = (struct cw_path_handler){
        .listeners =
            {
                [MPI_SENT_EAGER].message = take_eager,
                [MPI_SENT_SYNC].message = take_envelope,
                [MPI_SENT_LONG].message = take_envelope,
                [MPI_SENT_WANT].message = take_envelope,
                [MPI_SENT_CANCEL].message = take_cancel,
                [MPI_SENT_DONE].message = take_answer,
                [MPI_SENT_CREDIT].message = take_answer,
                [MPI_SENT_CLEAR].message = take_answer,
                [MPI_SENT_DATA].message = take_answer,
                [MPI_SENT_CANCELLED].message = take_answer,
            },
        .arrived = take_arrived,
        .complete = take_complete,
        .sent = take_sent,
    };
}
