#include "mpi/collective/run/cast.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/job/job.h"
#include "dataplane/status.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/run/state.h"
#include "mpi/collective/run/transport_state.h"
#include "mpi/runtime/process.h"
#include "mpi/runtime/progress.h"
#include "mpi/runtime/waiting.h"

/* A multicast under way. */
struct mpi_cast {
    struct mpi_cast *next;         /* of those that wait */
    struct mpi_comm *comm;         /* held */
    struct mpi_exchange *exchange; /* whose put is complete with it; NULL: it was when it was copied */
    struct exchange_head head;
    uint64_t context;
    uint64_t offset;
    const uint8_t *data;
    uint64_t bytes;
    uint64_t position; /* sent so far */
    bool is_eager;
    bool is_sent;       /* all of it */
    bool is_single;     /* it goes to each by itself */
    uint32_t under_way; /* pieces, or offers */
    uint32_t peer_at;   /* the next to be sent to by itself */
    uint32_t peer_count;
    uint32_t *peers;
    uint8_t copy[];
};

/* Short multicasts that a rank may be ahead of its receivers; the next one is complete only when it has come to all. */
enum { CASTS_AHEAD = 32 };

struct mpi_cast *mpi_casts_waiting;
static uint32_t casts_open; /* waiting or under way */

bool mpi_cast_serves(const struct mpi_comm *comm)
{
    if (mpi_process.job == NULL || cw_job_groups(mpi_process.job) == NULL || comm->size < 2 ||
        mpi_clusters_are_several(comm)) {
        return false;
    }
    for (int rank = 0; rank < comm->size; rank++) {
        uint32_t world = comm->group->ranks[rank];
        if (world != mpi_process.rank && !cw_paths_is_here(mpi_process.paths, world)) {
            return true;
        }
    }
    return false;
}

uint64_t mpi_cast_eager_max(void)
{
    return mpi_process.job == NULL || cw_job_groups(mpi_process.job) == NULL ? 0 : EXCHANGE_PARTS_MAX_BYTES;
}

void mpi_cast_open(struct mpi_comm *comm)
{
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    if (collectives == NULL || collectives->cast != NULL || !mpi_cast_serves(comm)) {
        return;
    }
    const struct cw_group_request request = {
        .scope = comm->context,
        .ranks = comm->group->ranks,
        .count = (uint32_t)comm->size,
    };
    if (cw_group_open(cw_job_groups(mpi_process.job), &request, &collectives->cast) != CW_OK) {
        collectives->cast = NULL; /* no memory: what it multicasts goes to each by itself */
    }
}

void mpi_cast_close(struct cw_group *group)
{
    if (group != NULL) {
        cw_group_close(group);
    }
}

void mpi_cast_why(const struct mpi_comm *comm, char *text, size_t text_bytes)
{
    text[0] = '\0';
    if (comm->collectives != NULL && comm->collectives->cast != NULL) {
        cw_group_why(comm->collectives->cast, text, text_bytes);
    }
}

/* ---- sending ---- */

/* The call need not wait any more for what the group has of it; to each by itself it begins anew. */
static void group_leave(struct mpi_cast *cast)
{
    if (cast->is_single) {
        return;
    }
    cast->is_single = true;
    cast->position = 0;
    if (cast->exchange != NULL) {
        cast->exchange->casts_open--;
    }
}

static void cast_end(struct mpi_cast *cast)
{
    group_leave(cast);
    if (cast->exchange != NULL) {
        mpi_exchange_put_tell(cast->exchange, CW_TRANSPORT_COMPLETE, cast->context);
    }
    casts_open--;
    mpi_progress_pending(-1);
    mpi_comm_release(cast->comm);
    free(cast->peers);
    free(cast);
}

/* What the data of a message stand behind; `piece` only if it is one of several. */
struct cast_message {
    struct exchange_head head;
    struct exchange_piece piece;
};

/* The next message of a multicast, for a way that takes messages of `message_max` bytes: how many bytes of data go with
 * it. */
static uint64_t message_make(const struct mpi_cast *cast, uint64_t message_max, struct cast_message *message,
                             uint32_t *head_bytes)
{
    uint64_t bytes = cast->bytes - cast->position;
    message->head = cast->head;
    *head_bytes = sizeof(message->head);
    if (cast->is_eager && cast->bytes + sizeof(message->head) <= message_max) {
        return bytes;
    }
    uint64_t room = message_max - sizeof(*message);
    bytes = bytes < room ? bytes : room;
    *head_bytes = sizeof(*message);
    message->head.kind = cast->is_eager ? EXCHANGE_PART : EXCHANGE_PIECE;
    message->piece = (struct exchange_piece){
        .offset = (cast->is_eager ? 0 : cast->offset) + cast->position,
        .left = cast->bytes - cast->position - bytes,
        .bytes = cast->bytes,
    };
    return bytes;
}

/* One message of it. CW_OK; CW_ERROR_AGAIN; CW_ERROR_UNSUPPORTED. */
static int piece_send(struct mpi_cast *cast)
{
    struct cast_message message;
    uint32_t head_bytes;
    uint64_t bytes = message_make(cast, cw_group_message_max(cw_job_groups(mpi_process.job)), &message, &head_bytes);
    int status = cw_group_send(cast->comm->collectives->cast, &message, head_bytes, cast->data + cast->position, bytes,
                               (uint64_t)(uintptr_t)cast);
    if (status == CW_OK) {
        cast->position += bytes;
        cast->under_way++;
        cast->is_sent = cast->position == cast->bytes;
    }
    return status;
}

/* All of an eager one to one rank, as far as the path takes it. */
static int peer_send_eager(struct mpi_cast *cast, uint32_t rank)
{
    uint64_t message_max = cw_paths_message_max(mpi_process.paths, rank);
    int status;
    do {
        struct cast_message message;
        uint32_t head_bytes;
        uint64_t bytes = message_make(cast, message_max, &message, &head_bytes);
        status = mpi_exchange_send_eager(cast->comm, rank, &message, head_bytes, cast->data + cast->position, bytes);
        cast->position += status == CW_OK ? bytes : 0;
    } while (status == CW_OK && cast->position < cast->bytes);
    return status;
}

/* To each by itself. */
static int peers_send(struct mpi_cast *cast)
{
    int status = CW_OK;
    while (status == CW_OK && cast->peer_at < cast->peer_count) {
        uint32_t rank = cast->comm->group->ranks[cast->peers[cast->peer_at]];
        if (cast->is_eager) {
            status = peer_send_eager(cast, rank);
            cast->position = status == CW_OK ? 0 : cast->position;
        } else {
            status = mpi_exchange_send_offer(cast->exchange, rank, &cast->head, cast->data, cast->bytes, cast->offset,
                                             cast, 0);
            cast->under_way += status == CW_OK;
        }
        cast->peer_at += status == CW_OK;
    }
    cast->is_sent = cast->peer_at == cast->peer_count;
    return status;
}

/* True: it has moved on. A failure is told by who watches the ranks: the calls that need this end with it. */
static bool cast_step(struct mpi_cast *cast)
{
    struct cw_group *group = cast->comm->collectives->cast;
    bool is_whole = cast->peer_count + 1 == (uint32_t)cast->comm->size;
    int status = group == NULL || !is_whole || cast->is_single ? CW_ERROR_UNSUPPORTED : CW_OK;
    bool has_moved = false;
    while (status == CW_OK && !cast->is_sent) {
        status = piece_send(cast);
        has_moved = has_moved || status == CW_OK;
    }
    if (status != CW_OK && status != CW_ERROR_AGAIN) {
        uint64_t position = cast->position;
        uint32_t peer_at = cast->peer_at;
        has_moved = !cast->is_single;
        group_leave(cast);
        status = peers_send(cast);
        has_moved = has_moved || cast->position != position || cast->peer_at != peer_at;
    }
    if (status != CW_OK && status != CW_ERROR_AGAIN) {
        cast->is_sent = true;
        if (cast->exchange != NULL) {
            cast->exchange->failure = status;
        }
    }
    return has_moved;
}

/* Whether all are there: a group goes on without its dead, but a call that should reach them does not succeed. */
static bool peers_live(const struct mpi_comm *comm, const struct cw_transport_put *put)
{
    for (uint32_t i = 0; i < put->peer_count; i++) {
        if (cw_paths_medium(mpi_process.paths, comm->group->ranks[put->peers[i]]) == CW_MEDIUM_NONE) {
            return false;
        }
    }
    return true;
}

int mpi_cast_put(struct mpi_exchange *exchange, const struct cw_transport_put *put)
{
    if (!peers_live(exchange->comm, put)) {
        return CW_ERROR_PEER_FAILED;
    }
    bool is_copied = put->eager && casts_open < CASTS_AHEAD;
    struct mpi_cast *cast = malloc(sizeof(*cast) + (is_copied ? put->bytes : 0));
    uint32_t *peers = malloc(put->peer_count * sizeof(*peers));
    if (cast == NULL || peers == NULL) {
        free(cast);
        free(peers);
        return CW_ERROR_MEMORY;
    }
    *cast = (struct mpi_cast){
        .comm = exchange->comm,
        .exchange = is_copied ? NULL : exchange,
        .context = put->context,
        .offset = put->offset,
        .data = put->data,
        .bytes = put->bytes,
        .is_eager = put->eager,
        .peer_count = put->peer_count,
        .peers = peers,
    };
    memcpy(peers, put->peers, put->peer_count * sizeof(*peers));
    mpi_exchange_head_fill(exchange, put, &cast->head);
    mpi_comm_retain(cast->comm);
    casts_open++;
    mpi_progress_pending(1);
    if (is_copied) {
        if (put->bytes > 0) {
            memcpy(cast->copy, put->data, put->bytes);
        }
        cast->data = cast->copy;
        mpi_exchange_put_tell(exchange, CW_TRANSPORT_COMPLETE, put->context);
    } else {
        exchange->casts_open++;
    }
    /* behind those that wait: they are of the same stream */
    struct mpi_cast **link = &mpi_casts_waiting;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    bool is_first = link == &mpi_casts_waiting;
    *link = cast;
    if (is_first) {
        (void)mpi_cast_progress();
    }
    return CW_OK;
}

uint32_t mpi_cast_progress(void)
{
    uint32_t count = 0;
    struct mpi_cast **link = &mpi_casts_waiting;
    while (*link != NULL) {
        struct mpi_cast *cast = *link;
        count += cast_step(cast);
        if (!cast->is_sent) {
            link = &cast->next;
            continue;
        }
        *link = cast->next;
        cast->next = NULL;
        if (cast->under_way == 0) {
            cast_end(cast);
        }
    }
    return count;
}

void mpi_cast_abandon(struct mpi_exchange *exchange)
{
    struct mpi_cast **link = &mpi_casts_waiting;
    while (*link != NULL) {
        struct mpi_cast *cast = *link;
        if (cast->exchange != exchange) {
            link = &cast->next;
            continue;
        }
        *link = cast->next;
        cast->is_sent = true;
        if (cast->under_way == 0) {
            cast_end(cast);
        }
    }
}

static void piece_end(struct mpi_cast *cast)
{
    cast->under_way--;
    if (cast->is_sent && cast->under_way == 0) {
        cast_end(cast);
    }
}

void mpi_cast_complete(void *context, uint64_t put_context, int status)
{
    (void)context, (void)status; /* whoever is gone is told by the paths */
    piece_end((struct mpi_cast *)(uintptr_t)put_context);
}

void mpi_cast_got(struct mpi_cast *cast)
{
    piece_end(cast);
}

void mpi_cast_lost(struct mpi_cast *cast)
{
    cast->exchange = NULL;
    piece_end(cast);
}

void mpi_cast_message(void *context, struct cw_group *group, uint32_t rank, const void *data, uint64_t bytes)
{
    (void)context, (void)group;
    mpi_collective_message(rank, data, (uint32_t)bytes);
}

/* ---- what happened ---- */

char *mpi_cast_report(void)
{
    struct cw_groups *groups = cw_job_groups(mpi_process.job);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = groups == NULL ? NULL : open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    for (struct mpi_comm *comm = mpi_comm_first(); comm != NULL; comm = mpi_comm_after(comm)) {
        char why[CW_GROUPS_WHY_BYTES];
        mpi_cast_why(comm, why, sizeof(why));
        if (mpi_clusters_are_several(comm)) {
            fprintf(out, "group of %s: none, since its ranks are in several clusters\n",
                    comm->name[0] == '\0' ? "a communicator without a name" : comm->name);
        } else if (why[0] != '\0') {
            fprintf(out, "group of %s: %s\n", comm->name[0] == '\0' ? "a communicator without a name" : comm->name,
                    why);
        }
    }
    struct cw_groups_info info = cw_groups_info(groups);
    const struct cw_mcast_counters *packets = &info.packets;
    if (info.floods) {
        fprintf(out, "the network brings multicast to all ports, whoever has asked for it: does a switch snoop?\n");
    }
    if (packets->data_out + packets->acks_out > 0) {
        fprintf(out,
                "multicast: %" PRIu64 " packets, %" PRIu64 " again to all, %" PRIu64 " to one, %" PRIu64
                " passed on; acknowledgements %" PRIu64 " out, %" PRIu64 " in; requests %" PRIu64 " out, %" PRIu64
                " in; %" PRIu64 " STATEs\n",
                packets->data_out, packets->repairs_out, packets->repairs_one_out, packets->relayed, packets->acks_out,
                packets->acks_in, packets->naks_out, packets->naks_in, packets->states_out);
    }
    fclose(out);
    return text;
}

/* ---- the end ---- */

static bool is_settled(void *context)
{
    (void)context;
    return casts_open == 0;
}

static void settle_describe(void *context, struct mpi_said *said)
{
    (void)context;
    mpi_say(said, "%u multicasts that have not come to all of their ranks yet", (unsigned)casts_open);
}

void mpi_cast_settle(void)
{
    if (casts_open > 0) {
        mpi_progress_until(is_settled, settle_describe, NULL);
    }
}

static bool is_finished(void *context)
{
    (void)context;
    return !cw_groups_is_closing(cw_job_groups(mpi_process.job));
}

static void finish_describe(void *context, struct mpi_said *said)
{
    (void)context;
    mpi_say(said, "all ranks to be done with the multicast groups that they share");
    uint32_t rank = cw_groups_awaited(cw_job_groups(mpi_process.job));
    if (rank != UINT32_MAX) {
        said->answer.awaited[said->answer.awaited_count++] = rank;
    }
}

void mpi_cast_finish(void)
{
    if (cw_job_groups(mpi_process.job) != NULL && !is_finished(NULL)) {
        mpi_progress_until(is_finished, finish_describe, NULL);
    }
}
