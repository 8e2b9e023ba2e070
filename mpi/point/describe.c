#include "mpi/point/describe.h"

#include <stdio.h>

#include "mpi/point/match.h"

enum { NAMED_MAX = 3, TAGS_MAX = 6 };

/* Messages without a matching receive: often the awaited one is among them, with another tag. */
static void unexpected_describe(const struct mpi_comm *comm, int source, struct mpi_said *said)
{
    char tags[128] = "";
    size_t used = 0;
    uint64_t count = 0;
    for (const struct mpi_message *message = mpi_match_unexpected(comm); message != NULL;
         message = message->arrival_next) {
        bool fits = message->arrival.envelope.tag >= 0 &&
                    (source == MPI_ANY_SOURCE || message->arrival.envelope.source == source);
        if (fits && count++ < TAGS_MAX && used < sizeof(tags)) {
            used += (size_t)snprintf(tags + used, sizeof(tags) - used, "%s%d", count > 1 ? ", " : "",
                                     message->arrival.envelope.tag);
        }
    }
    if (count == 0) {
        return;
    }
    mpi_describe(said, "; %llu message%s ", (unsigned long long)count, count == 1 ? "" : "s");
    if (source != MPI_ANY_SOURCE) {
        mpi_describe(said, "from rank %d ", source);
    }
    mpi_describe(said, "%s arrived without a matching receive, with tag%s %s%s", count == 1 ? "has" : "have",
                 count == 1 ? "" : "s", tags, count > TAGS_MAX ? ", ..." : "");
}

static void source_describe(const struct mpi_comm *comm, int source, int tag, struct mpi_said *said)
{
    if (source == MPI_ANY_SOURCE) {
        mpi_describe(said, "from any rank");
    } else {
        mpi_describe(said, "from rank %d", source);
    }
    if (tag < 0 && tag != MPI_ANY_TAG) {
        mpi_describe(said, ", a message of MPI's own, ");
    } else if (tag == MPI_ANY_TAG) {
        mpi_describe(said, ", any tag, ");
    } else {
        mpi_describe(said, ", tag %d, ", tag);
    }
    mpi_describe_comm(said, comm);
}

void mpi_describe_message(const struct mpi_comm *comm, int source, int tag, struct mpi_said *said)
{
    source_describe(comm, source, tag, said);
    mpi_describe_awaited(said, comm, source);
    if (tag >= 0 || tag == MPI_ANY_TAG) {
        unexpected_describe(comm, source, said);
    }
}

static void receive_describe(const struct mpi_request *request, struct mpi_said *said)
{
    if (mpi_match_is_posted(request)) {
        mpi_describe_message(request->comm, request->peer, request->tag, said);
        return;
    }
    source_describe(request->comm, request->matched_source, request->matched_tag, said);
    mpi_describe(said, "; it has been matched, %lld bytes are on their way", (long long)request->received);
    mpi_describe_awaited(said, request->comm, request->matched_source);
}

static void send_describe(const struct mpi_request *request, struct mpi_said *said)
{
    mpi_describe(said, "to rank %d, ", request->peer);
    if (request->tag >= 0) {
        mpi_describe(said, "tag %d, ", request->tag);
    } else {
        mpi_describe(said, "a message of MPI's own, ");
    }
    mpi_describe_comm(said, request->comm);
    mpi_describe(said, ", %lld bytes, ", (long long)request->bytes);
    /* only sends that are answered have a number */
    mpi_describe(said, request->offered.numbered.number != 0 ? "offered, not matched by the receiver"
                                                             : "for which there is no room there yet");
    mpi_describe_awaited(said, request->comm, request->peer);
}

void mpi_describe_request(const struct mpi_request *request, struct mpi_said *said)
{
    switch (request->kind) {
    case MPI_REQUEST_SEND:
        mpi_describe(said, "a message ");
        send_describe(request, said);
        break;
    case MPI_REQUEST_RECEIVE:
        mpi_describe(said, "a message ");
        receive_describe(request, said);
        break;
    case MPI_REQUEST_SENDRECV:
        mpi_describe_requests(request->parts, 2, false, said);
        break;
    case MPI_REQUEST_COLLECTIVE:
        request->actions->describe(request->collective, said);
        break;
    case MPI_REQUEST_GENERAL:
        mpi_describe(said, "a request that the program itself completes (MPI_Grequest_complete)");
        break;
    case MPI_REQUEST_DONE:
        mpi_describe(said, "nothing");
        break;
    }
}

static bool is_open(const struct mpi_request *request)
{
    return request != NULL && !request->is_complete && (request->is_active || !request->is_persistent);
}

void mpi_describe_requests(struct mpi_request *const requests[], int count, bool any, struct mpi_said *said)
{
    int open = 0;
    for (int index = 0; index < count; index++) {
        open += is_open(requests[index]);
    }
    if (count > 1) {
        mpi_describe(said, any ? "any of %d requests: " : "%d of %d requests: ", open, count);
    }
    int named = 0;
    for (int index = 0; index < count; index++) {
        if (!is_open(requests[index])) {
            continue;
        }
        if (named++ < NAMED_MAX) {
            mpi_describe(said, "%s", named > 1 ? " | " : "");
            mpi_describe_request(requests[index], said);
        }
    }
    if (open > NAMED_MAX) {
        mpi_describe(said, " | and %d more", open - NAMED_MAX);
    }
}

struct posted {
    struct mpi_said *said;
    int count;
};

static void posted_describe(const struct mpi_request *request, void *context)
{
    struct posted *posted = context;
    if (request->tag < 0 && request->tag != MPI_ANY_TAG) {
        return;
    }
    if (++posted->count <= NAMED_MAX) {
        mpi_describe(posted->said, posted->count == 1 ? "; receives that are posted: " : " | ");
        receive_describe(request, posted->said);
    }
}

void mpi_describe_posted(struct mpi_said *said)
{
    struct posted posted = {.said = said};
    for (const struct mpi_comm *comm = mpi_comm_first(); comm != NULL; comm = mpi_comm_after((struct mpi_comm *)comm)) {
        mpi_match_each_posted(comm, posted_describe, &posted);
    }
    if (posted.count > NAMED_MAX) {
        mpi_describe(said, " | and %d more", posted.count - NAMED_MAX);
    }
}
