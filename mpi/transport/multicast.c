#include "mpi/transport/multicast.h"

#include <stdlib.h>
#include <string.h>

#include "control/groups/groups.h"
#include "dataplane/status.h"
#include "mcast/loop_group.h"
#include "mpi/group/communicator.h"
#include "mpi/runtime/progress.h"
#include "mpi/runtime/waiting.h"
#include "mpi/state/process.h"
#include "mpi/transport/rendezvous.h"

/* A multicast in flight. */
struct multicast {
    struct multicast *next;
    struct mpi_multicast_request request;
    uint64_t position; /* bytes sent so far */
    bool is_eager;
    bool is_sent;      /* nothing more will be sent */
    bool is_single;    /* it is sent to each rank separately */
    bool is_abandoned; /* by its owner */
    bool *is_done;     /* within mpi_multicast: set in place of a call of `ended`; else NULL */
    uint32_t pieces;   /* messages to the group in flight */
    uint32_t offers;   /* without a final answer */
    uint32_t peer_at;  /* index of the next rank, if is_single */
    struct mpi_call_offers offered;
    uint8_t copy[]; /* the ranks, then the copied data */
};

/* Eager multicasts that a rank may be ahead of its receivers; the next one is complete only when it has come to all. */
enum { MULTICASTS_AHEAD = 32 };

static struct multicast *first; /* of all in flight, in the order of their calls */
static uint32_t open_count;     /* of them */
uint32_t mpi_multicasts_waiting;

/* ---- the end ---- */

static void owner_notify(struct multicast *multicast, int status)
{
    struct mpi_multicast_owner *owner = multicast->request.owner;
    multicast->request.owner = NULL;
    if (multicast->is_done != NULL) {
        *multicast->is_done = true;
    } else if (owner != NULL) {
        owner->ended(owner, multicast->request.context, status);
    }
}

/* Ends it, if nothing of it is in flight. */
static void multicast_settle(struct multicast *multicast)
{
    if (!multicast->is_sent || multicast->offers > 0) {
        return;
    }
    if (multicast->pieces > 0) {
        if (multicast->is_abandoned && multicast->is_single && multicast->request.owner != NULL) {
            owner_notify(multicast, CW_ERROR_CLOSED); /* the call does not wait for a group that has failed */
        }
        return;
    }
    struct multicast **link = &first;
    while (*link != multicast) {
        link = &(*link)->next;
    }
    *link = multicast->next;
    open_count--;
    mpi_progress_pending(-1);
    mpi_comm_release(multicast->request.comm);
    owner_notify(multicast, multicast->is_abandoned ? CW_ERROR_CLOSED : CW_OK);
    free(multicast);
}

static void multicast_sent(struct multicast *multicast)
{
    mpi_multicasts_waiting -= !multicast->is_sent;
    multicast->is_sent = true;
}

void mpi_multicast_complete(void *context, uint64_t put_context, int status)
{
    struct multicast *multicast = (struct multicast *)(uintptr_t)put_context;
    (void)context, (void)status; /* the paths report lost ranks */
    multicast->pieces--;
    multicast_settle(multicast);
}

/* ---- messages ---- */

struct multicast_message {
    struct mpi_call_head head;
    struct mpi_part part; /* only if it is one of several */
};

/* The next message of a multicast, for a path that takes messages of `message_max` bytes: how many bytes of data go
 * with it. */
static uint64_t message_make(const struct multicast *multicast, uint64_t message_max, struct multicast_message *message,
                             uint32_t *head_bytes)
{
    const struct mpi_multicast_request *request = &multicast->request;
    uint64_t left = request->bytes - multicast->position;
    message->head = request->head;
    *head_bytes = sizeof(message->head);
    if (multicast->is_eager && request->bytes + sizeof(message->head) <= message_max) {
        return left;
    }
    uint64_t room = message_max - sizeof(*message);
    uint64_t bytes = left < room ? left : room;
    *head_bytes = sizeof(*message);
    message->head.kind = MPI_SENT_PART;
    message->head.buffer = multicast->is_eager ? MPI_NO_PLACE : request->head.buffer;
    message->part = (struct mpi_part){
        .offset = (multicast->is_eager ? 0 : request->offset) + multicast->position,
        .left = left - bytes,
        .bytes = request->bytes,
    };
    return bytes;
}

/* One message to the group. CW_OK; CW_ERROR_AGAIN; CW_ERROR_UNSUPPORTED. */
static int group_send(struct multicast *multicast)
{
    const struct mpi_multicast_group *group = multicast->request.group;
    if (group->open == NULL) {
        return cw_group_state(group->group) == CW_GROUP_FAILED ? CW_ERROR_UNSUPPORTED : CW_ERROR_AGAIN;
    }
    struct multicast_message message;
    uint32_t head_bytes;
    uint64_t bytes = message_make(multicast, cw_mcast_short_max(group->open), &message, &head_bytes);
    struct cw_mcast_put put = {
        .head = &message,
        .head_bytes = head_bytes,
        .data = (const uint8_t *)multicast->request.data + multicast->position,
        .bytes = bytes,
        .element = multicast->request.element,
        .context = (uint64_t)(uintptr_t)multicast,
        .flags = CW_MCAST_SIGNAL,
    };
    int status = cw_loop_group_send(cw_paths_loop(mpi_process.paths), group->open, &put);
    if (status == CW_OK) {
        multicast->position += bytes;
        multicast->pieces++;
        if (multicast->position == multicast->request.bytes) {
            multicast_sent(multicast);
        }
    }
    return status;
}

/* ---- to each rank separately ---- */

/* Sends an eager multicast to one rank, as far as the path has room. */
static int peer_send_eager(struct multicast *multicast, uint32_t rank)
{
    const struct mpi_multicast_request *request = &multicast->request;
    uint64_t message_max = cw_paths_message_max(mpi_process.paths, rank);
    uint32_t lane_tag = mpi_lane_tag(request->comm->context, MPI_SENT_CALL);
    int status;
    do {
        struct multicast_message message;
        uint32_t head_bytes;
        uint64_t bytes = message_make(multicast, message_max, &message, &head_bytes);
        status = cw_paths_send(mpi_process.paths, rank, lane_tag, &message, head_bytes,
                               (const uint8_t *)request->data + multicast->position, (uint32_t)bytes, request->element);
        multicast->position += status == CW_OK ? bytes : 0;
    } while (status == CW_OK && multicast->position < request->bytes);
    return status;
}

static void offer_ended(struct mpi_call_offers *offers, uint64_t context, int code)
{
    struct multicast *multicast = (struct multicast *)((uint8_t *)offers - offsetof(struct multicast, offered));
    (void)context, (void)code;
    multicast->offers--;
    multicast_settle(multicast);
}

static int peer_offer(struct multicast *multicast, uint32_t rank)
{
    const struct mpi_multicast_request *request = &multicast->request;
    int status = mpi_call_offers_send(&multicast->offered, rank, &request->head, request->data, request->bytes,
                                      request->offset, 0);
    multicast->offers += status == CW_OK;
    return status;
}

static int peers_send(struct multicast *multicast)
{
    const struct mpi_multicast_request *request = &multicast->request;
    int status = CW_OK;
    while (status == CW_OK && multicast->peer_at < request->peer_count) {
        uint32_t rank = request->comm->group->ranks[request->peers[multicast->peer_at]];
        status = multicast->is_eager ? peer_send_eager(multicast, rank) : peer_offer(multicast, rank);
        if (status == CW_OK) {
            multicast->position = 0;
            multicast->peer_at++;
        }
    }
    if (status == CW_OK) {
        multicast_sent(multicast);
    }
    return status;
}

/* Continues a multicast; true: it has made progress. */
static bool multicast_step(struct multicast *multicast)
{
    bool has_group = multicast->request.group != NULL && multicast->request.group->group != NULL;
    int status = !has_group || multicast->is_single ? CW_ERROR_UNSUPPORTED : CW_OK;
    bool has_moved = false;
    while (status == CW_OK && !multicast->is_sent) {
        status = group_send(multicast);
        has_moved = has_moved || status == CW_OK;
    }
    if (status != CW_OK && status != CW_ERROR_AGAIN) {
        has_moved = !multicast->is_single;
        multicast->position = has_moved ? 0 : multicast->position; /* it starts again for each rank */
        multicast->is_single = true;
        uint64_t position = multicast->position;
        uint32_t peer_at = multicast->peer_at;
        status = peers_send(multicast);
        has_moved = has_moved || multicast->position != position || multicast->peer_at != peer_at;
    }
    if (status != CW_OK && status != CW_ERROR_AGAIN) {
        multicast_sent(multicast);
        if (multicast->request.owner != NULL) {
            multicast->request.owner->failed(multicast->request.owner, status);
        }
    }
    return has_moved;
}

/* ---- the life of all ---- */

int mpi_multicast(const struct mpi_multicast_request *request)
{
    bool is_eager = request->head.kind == MPI_SENT_EAGER;
    bool is_copied = is_eager && open_count < MULTICASTS_AHEAD;
    size_t peer_bytes = request->peer_count * sizeof(*request->peers);
    struct multicast *multicast = malloc(sizeof(*multicast) + peer_bytes + (is_copied ? request->bytes : 0));
    if (multicast == NULL) {
        return CW_ERROR_MEMORY;
    }
    *multicast = (struct multicast){.request = *request, .is_eager = is_eager, .offered = {.ended = offer_ended}};
    multicast->request.peers = memcpy(multicast->copy, request->peers, peer_bytes);
    if (is_copied) {
        multicast->request.owner = NULL;
        multicast->request.data = multicast->copy + peer_bytes;
        if (request->bytes > 0) {
            memcpy(multicast->copy + peer_bytes, request->data, request->bytes);
        }
    }
    mpi_comm_retain(request->comm);
    open_count++;
    mpi_progress_pending(1);
    bool is_first = mpi_multicasts_waiting++ == 0, is_done = false;
    struct multicast **link = &first;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = multicast;
    mpi_progress_is_due = true;
    if (is_first) { /* else it waits for those before it */
        multicast->is_done = &is_done;
        (void)multicast_step(multicast);
        multicast_settle(multicast);
    }
    if (!is_done) {
        multicast->is_done = NULL;
    }
    return is_copied || is_done ? MPI_MULTICAST_DONE : CW_OK;
}

uint32_t mpi_multicast_progress(void)
{
    uint32_t count = 0;
    for (struct multicast *multicast = first, *next; multicast != NULL && mpi_multicasts_waiting > 0;
         multicast = next) {
        if (!multicast->is_sent) {
            count += multicast_step(multicast);
        }
        next = multicast->next;
        multicast_settle(multicast);
    }
    return count;
}

void mpi_multicast_abandon(const struct mpi_multicast_owner *owner)
{
    for (struct multicast *multicast = first, *next; multicast != NULL; multicast = next) {
        next = multicast->next;
        if (multicast->request.owner != owner) {
            continue;
        }
        multicast->is_abandoned = true;
        multicast_sent(multicast);
        multicast->offers++; /* keeps it until the loop has ended */
        mpi_call_offers_withdraw(&multicast->offered);
        multicast->offers--;
        multicast_settle(multicast);
    }
}

static bool are_all_over(void *context)
{
    (void)context;
    return open_count == 0;
}

static void multicasts_describe(void *context, struct mpi_said *said)
{
    (void)context;
    mpi_describe(said, "%u multicasts that have not come to all of their ranks yet", (unsigned)open_count);
}

void mpi_multicasts_finish(void)
{
    if (open_count > 0) {
        mpi_progress_wait(&(struct mpi_wait){.is_over = are_all_over, .describe = multicasts_describe});
    }
}
