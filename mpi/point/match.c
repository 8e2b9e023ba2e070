#include "mpi/point/match.h"

#include <assert.h>
#include <stdlib.h>

#include "mpi/transport/credit.h"

struct receive_queue {
    struct mpi_request *first;
    struct mpi_request **end; /* the link behind the last one */
};

struct source_queues {
    struct receive_queue posted;
    struct mpi_message *first;
    struct mpi_message *last;
};

struct mpi_matching {
    uint64_t posted_count; /* ever: the order of receives */
    struct receive_queue posted_any;
    struct mpi_message *arrival_first;
    struct mpi_message *arrival_last;
    struct source_queues sources[];
};

static void queue_begin(struct receive_queue *queue)
{
    queue->end = &queue->first;
}

/* Made with the first use; NULL: no memory. */
static struct mpi_matching *matching_of(struct mpi_comm *comm)
{
    if (comm->matching == NULL) {
        size_t bytes = sizeof(struct mpi_matching) + (size_t)comm->size * sizeof(struct source_queues);
        comm->matching = calloc(1, bytes);
        if (comm->matching != NULL) {
            queue_begin(&comm->matching->posted_any);
            for (int source = 0; source < comm->size; source++) {
                queue_begin(&comm->matching->sources[source].posted);
            }
        }
    }
    return comm->matching;
}

/* Tags below 0 are the library's own (MPI_TAG_INTERNAL); no wildcard of a program fits them. */
static bool tag_fits(int wanted, int tag)
{
    return wanted == tag || (wanted == MPI_ANY_TAG && tag >= 0);
}

/* The link to the first request for a tag, or to the NULL at the end. */
static struct mpi_request **queue_find(struct receive_queue *queue, int tag)
{
    struct mpi_request **link = &queue->first;
    while (*link != NULL && !tag_fits((*link)->tag, tag)) {
        link = &(*link)->next;
    }
    return link;
}

static void queue_unlink(struct receive_queue *queue, struct mpi_request **link)
{
    struct mpi_request *request = *link;
    *link = request->next;
    request->next = NULL;
    if (queue->end == &request->next) {
        queue->end = link;
    }
}

static struct receive_queue *queue_of(struct mpi_matching *matching, int source)
{
    return source == MPI_ANY_SOURCE ? &matching->posted_any : &matching->sources[source].posted;
}

struct mpi_request *mpi_match_arrival(struct mpi_comm *comm, const struct mpi_envelope *envelope)
{
    struct mpi_matching *matching = comm->matching;
    if (matching == NULL) {
        return NULL;
    }
    struct receive_queue *queue = &matching->sources[envelope->source].posted;
    struct mpi_request **link = queue_find(queue, envelope->tag);
    struct mpi_request **link_any = queue_find(&matching->posted_any, envelope->tag);
    if (*link_any != NULL && (*link == NULL || (*link_any)->order < (*link)->order)) {
        queue = &matching->posted_any;
        link = link_any;
    }
    struct mpi_request *found = *link;
    if (found != NULL) {
        queue_unlink(queue, link);
    }
    return found;
}

bool mpi_match_post(struct mpi_comm *comm, struct mpi_request *request)
{
    struct mpi_matching *matching = matching_of(comm);
    if (matching == NULL) {
        return false;
    }
    struct receive_queue *queue = queue_of(matching, request->peer);
    request->order = matching->posted_count++;
    request->next = NULL;
    *queue->end = request;
    queue->end = &request->next;
    return true;
}

bool mpi_match_withdraw(struct mpi_request *request)
{
    struct mpi_matching *matching = request->comm->matching;
    if (matching == NULL) {
        return false;
    }
    struct receive_queue *queue = queue_of(matching, request->peer);
    struct mpi_request **link = &queue->first;
    while (*link != NULL && *link != request) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return false;
    }
    queue_unlink(queue, link);
    return true;
}

bool mpi_match_keep(struct mpi_comm *comm, struct mpi_message *message)
{
    struct mpi_matching *matching = matching_of(comm);
    if (matching == NULL) {
        return false;
    }
    struct source_queues *source = &matching->sources[message->arrival.envelope.source];
    message->comm = comm;
    message->source_next = message->arrival_next = NULL;
    message->source_previous = source->last;
    message->arrival_previous = matching->arrival_last;
    *(source->last == NULL ? &source->first : &source->last->source_next) = message;
    *(matching->arrival_last == NULL ? &matching->arrival_first : &matching->arrival_last->arrival_next) = message;
    source->last = matching->arrival_last = message;
    return true;
}

static void message_remove(struct mpi_matching *matching, struct mpi_message *message)
{
    struct source_queues *source = &matching->sources[message->arrival.envelope.source];
    *(message->source_previous == NULL ? &source->first : &message->source_previous->source_next) =
        message->source_next;
    *(message->source_next == NULL ? &source->last : &message->source_next->source_previous) = message->source_previous;
    *(message->arrival_previous == NULL ? &matching->arrival_first : &message->arrival_previous->arrival_next) =
        message->arrival_next;
    *(message->arrival_next == NULL ? &matching->arrival_last : &message->arrival_next->arrival_previous) =
        message->arrival_previous;
}

struct mpi_message *mpi_match_find(struct mpi_comm *comm, int source, int tag, bool take)
{
    struct mpi_matching *matching = comm->matching;
    if (matching == NULL) {
        return NULL;
    }
    bool any = source == MPI_ANY_SOURCE;
    struct mpi_message *message = any ? matching->arrival_first : matching->sources[source].first;
    while (message != NULL && !tag_fits(tag, message->arrival.envelope.tag)) {
        message = any ? message->arrival_next : message->source_next;
    }
    if (message != NULL && take) {
        message_remove(matching, message);
    }
    return message;
}

void mpi_match_let_go(struct mpi_message *message)
{
    const struct mpi_arrival *arrival = &message->arrival;
    if (arrival->kind != MPI_SENT_OFFER) {
        mpi_kept_remove(arrival->offer.bytes);
        mpi_credit_release(arrival->rank, arrival->offer.bytes);
    }
    free(message);
}

bool mpi_match_recall(struct mpi_comm *comm, uint32_t rank, uint32_t number)
{
    struct mpi_message *message = comm->matching == NULL ? NULL : comm->matching->arrival_first;
    while (message != NULL && !(message->arrival.rank == rank && message->arrival.offer.number == number &&
                                message->arrival.kind != MPI_SENT_EAGER)) {
        message = message->arrival_next;
    }
    if (message != NULL) {
        message_remove(comm->matching, message);
        mpi_match_let_go(message);
    }
    return message != NULL;
}

void mpi_match_abandon(struct mpi_comm *comm)
{
    struct mpi_message *message = comm->matching == NULL ? NULL : comm->matching->arrival_first;
    while (message != NULL) {
        struct mpi_message *next = message->arrival_next;
        mpi_match_let_go(message);
        message = next;
    }
    free(comm->matching);
}

void mpi_match_each_from(struct mpi_comm *comm, uint32_t rank, void (*function)(struct mpi_request *request))
{
    int source = mpi_group_rank_of(comm->group, rank);
    if (comm->matching == NULL || source == MPI_UNDEFINED) {
        return;
    }
    const struct receive_queue *queues[] = {&comm->matching->sources[source].posted, &comm->matching->posted_any};
    for (int i = 0; i < 2; i++) {
        for (struct mpi_request *request = queues[i]->first, *next; request != NULL; request = next) {
            next = request->next;
            function(request);
        }
    }
}

const struct mpi_message *mpi_match_unexpected(const struct mpi_comm *comm)
{
    return comm->matching == NULL ? NULL : comm->matching->arrival_first;
}

bool mpi_match_is_posted(const struct mpi_request *request)
{
    struct mpi_matching *matching = request->comm->matching;
    const struct mpi_request *at = matching == NULL ? NULL : queue_of(matching, request->peer)->first;
    while (at != NULL && at != request) {
        at = at->next;
    }
    return at != NULL;
}

void mpi_match_each_posted(const struct mpi_comm *comm,
                           void (*function)(const struct mpi_request *request, void *context), void *context)
{
    struct mpi_matching *matching = comm->matching;
    static_assert(MPI_ANY_SOURCE == -1, "comes just before the ranks");
    for (int source = MPI_ANY_SOURCE; matching != NULL && source < comm->size; source++) {
        for (const struct mpi_request *at = queue_of(matching, source)->first; at != NULL; at = at->next) {
            function(at, context);
        }
    }
}
