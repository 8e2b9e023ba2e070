#include "mpi/transport/transport.h"

#include <string.h>

#include "mpi/runtime/info.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"
#include "mpi/transport/credit.h"
#include "mpi/transport/multicast.h"
#include "mpi/transport/outbox.h"
#include "mpi/transport/rendezvous.h"
#include "mpi/transport/unknown.h"

static mpi_message_handler handlers[CW_PATH_LISTENERS]; /* by kind */

void mpi_transport_receiver_set(enum mpi_sent kind, mpi_message_handler handle)
{
    handlers[kind] = handle;
}

void mpi_transport_deliver(uint32_t rank, enum mpi_sent kind, const void *data, uint32_t bytes)
{
    handlers[kind](NULL, rank, (uint32_t)kind, data, bytes);
}

bool mpi_message_read(const void **data, uint32_t *bytes, void *part, uint32_t part_bytes)
{
    if (*bytes < part_bytes) {
        return false;
    }
    memcpy(part, *data, part_bytes);
    *data = (const uint8_t *)*data + part_bytes;
    *bytes -= part_bytes;
    return true;
}

static void answer_receive(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct mpi_answer answer;
    (void)context;
    if (mpi_message_read(&data, &bytes, &answer, sizeof(answer))) {
        mpi_number_answer(rank, (enum mpi_sent)cw_tag(lane_tag), &answer, data, bytes);
    }
}

static void credit_receive(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct mpi_answer answer;
    (void)context, (void)lane_tag;
    if (mpi_message_read(&data, &bytes, &answer, sizeof(answer))) {
        mpi_credit_get(rank, answer.number);
    }
}

/* Puts into this rank's memory are followed by a message (MPI_SENT_FIN). */
static void arrival_receive(void *context, uint32_t rank, uint32_t lane_tag)
{
    (void)context, (void)rank, (void)lane_tag;
}

static void completion_receive(void *context, uint64_t operation, int status)
{
    (void)context;
    struct mpi_operation *done = (struct mpi_operation *)(uintptr_t)operation;
    done->done(done, status);
}

static void sent_receive(void *context, uint64_t operation)
{
    (void)context;
    struct mpi_operation *sent = (struct mpi_operation *)(uintptr_t)operation;
    if (sent->sent != NULL) {
        sent->sent(sent);
    }
}

void mpi_transport_listen(struct cw_path_handler *handler)
{
    static const enum mpi_sent answers[] = {MPI_SENT_DONE, MPI_SENT_CLEAR, MPI_SENT_DATA, MPI_SENT_CANCELLED};
    for (uint32_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        mpi_transport_receiver_set(answers[i], answer_receive);
    }
    mpi_transport_receiver_set(MPI_SENT_CREDIT, credit_receive);
    *handler =
        (struct cw_path_handler){.arrived = arrival_receive, .complete = completion_receive, .sent = sent_receive};
    for (uint32_t kind = 0; kind < CW_PATH_LISTENERS; kind++) {
        handler->listeners[kind].message = handlers[kind];
    }
}

uint32_t mpi_transport_turn(void)
{
    uint32_t count = mpi_multicasts_waiting > 0 ? mpi_multicast_progress() : 0;
    count += mpi_outbox_waiting > 0 ? mpi_outbox_progress() : 0;
    count += mpi_rendezvous_progress();
    mpi_progress_is_due = mpi_progress_is_due || mpi_multicasts_waiting > 0 || mpi_outbox_waiting > 0;
    return count;
}

void mpi_transport_adopt(struct mpi_comm *comm)
{
    comm->lane_tag = mpi_lane_tag(comm->context, 0);
    mpi_unknown_adopt(comm, mpi_transport_deliver);
}

enum cw_element mpi_element_of(const struct mpi_comm *comm, const struct mpi_type *type)
{
    const char *hint = comm->info == NULL ? NULL : mpi_info_value(comm->info, "causeway_compression");
    bool is_off = hint != NULL && strcmp(hint, "off") == 0;
    return is_off ? CW_ELEMENT_PLAIN : mpi_type_data(type);
}
