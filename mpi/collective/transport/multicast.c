#include "mpi/collective/transport/multicast.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/job/job.h"
#include "dataplane/status.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/clusters/levels.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/collective/transport/transport_state.h"
#include "mpi/group/communicator.h"
#include "mpi/point/data.h"
#include "mpi/point/lost.h"
#include "mpi/runtime/explain.h"
#include "mpi/runtime/progress.h"
#include "mpi/runtime/waiting.h"
#include "mpi/state/process.h"

/* A multicast under way. */
struct mpi_multicast {
    struct mpi_multicast *next;    /* of those that wait */
    struct mpi_comm *comm;         /* held */
    struct cw_group *group;        /* that its ranks form; NULL: none */
    struct mpi_exchange *exchange; /* whose put is complete with it; NULL: it was when it was copied */
    struct exchange_head head;
    uint64_t context;
    uint64_t offset;
    const uint8_t *data;
    enum cw_element element; /* what it is, for whoever compresses it */
    uint64_t bytes;
    uint64_t position; /* sent so far */
    bool is_eager;
    bool is_sent;       /* all of it */
    bool is_single;     /* it goes to each by itself */
    bool *is_done;      /* within its put: to be set, since its event would come too soon; else NULL */
    uint32_t under_way; /* pieces, or offers */
    uint32_t peer_at;   /* the next to be sent to by itself */
    uint32_t peer_count;
    uint32_t *peers;
    uint8_t copy[];
};

/* Short multicasts that a rank may be ahead of its receivers; the next one is complete only when it has come to all. */
enum { MULTICASTS_AHEAD = 32 };

struct mpi_multicast *mpi_multicasts_waiting;
static uint32_t multicasts_open; /* waiting or under way */

/* Contexts are a rank and a number of 32 bits each, of which ranks need 20. */
#define SCOPE_HEADS (UINT64_C(1) << 61)

/* Opens a group of a communicator's ranks, unless one is lost: it would never open it. */
static void group_open(const struct mpi_comm *comm, uint64_t scope, const uint32_t *ranks, uint32_t count,
                       struct cw_group **group)
{
    const struct cw_group_request request = {.scope = scope, .ranks = ranks, .count = count};
    if (*group == NULL && mpi_clusters_can_multicast(comm) && !mpi_lost(comm, MPI_ANY_SOURCE) &&
        cw_group_open(cw_job_groups(mpi_process.job), &request, group) != CW_OK) {
        *group = NULL; /* no memory: what it multicasts goes to each by itself */
    }
}

void mpi_multicast_open(struct mpi_comm *comm)
{
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    if (collectives != NULL) {
        group_open(comm, comm->context, comm->group->ranks, (uint32_t)comm->size, &collectives->multicast_group);
    }
}

void mpi_multicast_open_heads(struct mpi_comm *comm)
{
    const struct mpi_levels *levels = comm->collectives->levels;
    if (!mpi_levels_is_head(comm) || comm->collectives->heads_group != NULL || levels->hosts < 2) {
        return;
    }
    uint32_t *ranks = malloc(levels->hosts * sizeof(*ranks));
    for (uint32_t host = 0; ranks != NULL && host < levels->hosts; host++) {
        ranks[host] = comm->group->ranks[levels->heads[host]];
    }
    if (ranks != NULL) {
        group_open(comm, comm->context | SCOPE_HEADS, ranks, levels->hosts, &comm->collectives->heads_group);
    }
    free(ranks);
}

void mpi_multicast_open_all(struct mpi_comm *comm)
{
    mpi_multicast_open(comm);
    if (comm->collectives != NULL && comm->collectives->levels != NULL) {
        mpi_multicast_open_heads(comm);
    }
}

void mpi_multicast_close(struct cw_group *group)
{
    if (group != NULL) {
        cw_group_close(group);
    }
}

/* How a group's multicasts travel, in a line; "" if there is none. */
static void group_why(const struct cw_group *group, char *text, size_t text_bytes)
{
    text[0] = '\0';
    if (group != NULL) {
        cw_group_why(group, text, text_bytes);
    }
}

/* ---- sending ---- */

/* The call need not wait any more for what the group has of it; to each by itself it begins anew. */
static void group_leave(struct mpi_multicast *multicast)
{
    if (multicast->is_single) {
        return;
    }
    multicast->is_single = true;
    multicast->position = 0;
    if (multicast->exchange != NULL) {
        multicast->exchange->multicasts_open--;
    }
}

static void multicast_end(struct mpi_multicast *multicast)
{
    group_leave(multicast);
    if (multicast->is_done != NULL) {
        *multicast->is_done = true;
    } else if (multicast->exchange != NULL) {
        mpi_exchange_put_tell(multicast->exchange, CW_TRANSPORT_COMPLETE, multicast->context);
    }
    multicasts_open--;
    mpi_progress_pending(-1);
    mpi_comm_release(multicast->comm);
    free(multicast->peers);
    free(multicast);
}

/* What the data of a message stand behind; `piece` only if it is one of several. */
struct multicast_message {
    struct exchange_head head;
    struct exchange_piece piece;
};

/* The next message of a multicast, for a way that takes messages of `message_max` bytes: how many bytes of data go with
 * it. */
static uint64_t message_make(const struct mpi_multicast *multicast, uint64_t message_max,
                             struct multicast_message *message, uint32_t *head_bytes)
{
    uint64_t bytes = multicast->bytes - multicast->position;
    message->head = multicast->head;
    *head_bytes = sizeof(message->head);
    if (multicast->is_eager && multicast->bytes + sizeof(message->head) <= message_max) {
        return bytes;
    }
    uint64_t room = message_max - sizeof(*message);
    bytes = bytes < room ? bytes : room;
    *head_bytes = sizeof(*message);
    message->head.kind = multicast->is_eager ? EXCHANGE_PART : EXCHANGE_PIECE;
    message->piece = (struct exchange_piece){
        .offset = (multicast->is_eager ? 0 : multicast->offset) + multicast->position,
        .left = multicast->bytes - multicast->position - bytes,
        .bytes = multicast->bytes,
    };
    return bytes;
}

/* One message of it. CW_OK; CW_ERROR_AGAIN; CW_ERROR_UNSUPPORTED. */
static int piece_send(struct mpi_multicast *multicast)
{
    struct multicast_message message;
    uint32_t head_bytes;
    uint64_t bytes =
        message_make(multicast, cw_group_message_max(cw_job_groups(mpi_process.job)), &message, &head_bytes);
    struct cw_mcast_put put = {
        .head = &message,
        .head_bytes = head_bytes,
        .data = multicast->data + multicast->position,
        .bytes = bytes,
        .element = multicast->element,
        .context = (uint64_t)(uintptr_t)multicast,
    };
    int status = cw_group_send(multicast->group, &put);
    if (status == CW_OK) {
        multicast->position += bytes;
        multicast->under_way++;
        multicast->is_sent = multicast->position == multicast->bytes;
    }
    return status;
}

/* All of an eager one to one rank, as far as the path takes it. */
static int peer_send_eager(struct mpi_multicast *multicast, uint32_t rank)
{
    uint64_t message_max = cw_paths_message_max(mpi_process.paths, rank);
    int status;
    do {
        struct multicast_message message;
        uint32_t head_bytes;
        uint64_t bytes = message_make(multicast, message_max, &message, &head_bytes);
        status = mpi_exchange_send_eager(multicast->comm, rank, &message, head_bytes,
                                         multicast->data + multicast->position, bytes, multicast->element);
        multicast->position += status == CW_OK ? bytes : 0;
    } while (status == CW_OK && multicast->position < multicast->bytes);
    return status;
}

/* To each by itself. */
static int peers_send(struct mpi_multicast *multicast)
{
    int status = CW_OK;
    while (status == CW_OK && multicast->peer_at < multicast->peer_count) {
        uint32_t rank = multicast->comm->group->ranks[multicast->peers[multicast->peer_at]];
        if (multicast->is_eager) {
            status = peer_send_eager(multicast, rank);
            multicast->position = status == CW_OK ? 0 : multicast->position;
        } else {
            status = mpi_exchange_send_offer(multicast->exchange, rank, &multicast->head, multicast->data,
                                             multicast->bytes, multicast->offset, multicast, 0);
            multicast->under_way += status == CW_OK;
        }
        multicast->peer_at += status == CW_OK;
    }
    multicast->is_sent = multicast->peer_at == multicast->peer_count;
    return status;
}

/* True: it has moved on. A failure is told by who watches the ranks: the calls that need this end with it. */
static bool multicast_step(struct mpi_multicast *multicast)
{
    int status = multicast->group == NULL || multicast->is_single ? CW_ERROR_UNSUPPORTED : CW_OK;
    bool has_moved = false;
    while (status == CW_OK && !multicast->is_sent) {
        status = piece_send(multicast);
        has_moved = has_moved || status == CW_OK;
    }
    if (status != CW_OK && status != CW_ERROR_AGAIN) {
        uint64_t position = multicast->position;
        uint32_t peer_at = multicast->peer_at;
        has_moved = !multicast->is_single;
        group_leave(multicast);
        status = peers_send(multicast);
        has_moved = has_moved || multicast->position != position || multicast->peer_at != peer_at;
    }
    if (status != CW_OK && status != CW_ERROR_AGAIN) {
        multicast->is_sent = true;
        if (multicast->exchange != NULL) {
            mpi_exchange_fail(multicast->exchange, status);
        }
    }
    return has_moved;
}

/* Whether all are there: a group goes on without its dead, but a call that should reach them does not succeed. */
static bool peers_live(const struct mpi_comm *comm, const struct cw_transport_put *put)
{
    for (uint32_t i = 0; i < put->peer_count; i++) {
        if (mpi_lost(comm, (int)put->peers[i])) {
            return false;
        }
    }
    return true;
}

/* The group that a put's ranks form with this one: all of the communicator, or the first ranks of its hosts. */
static struct cw_group *group_of(const struct mpi_comm *comm, const struct cw_transport_put *put)
{
    const struct mpi_levels *levels = comm->collectives->levels;
    if (put->peer_count + 1 == (uint32_t)comm->size) {
        return comm->collectives->multicast_group;
    }
    bool are_heads = levels != NULL && put->peer_count + 1 == levels->hosts && mpi_levels_is_head(comm);
    for (uint32_t i = 0; are_heads && i < put->peer_count; i++) {
        are_heads = levels->heads[levels->host_of[put->peers[i]]] == put->peers[i];
    }
    return are_heads ? comm->collectives->heads_group : NULL;
}

int mpi_multicast_put(struct mpi_exchange *exchange, const struct cw_transport_put *put)
{
    if (!peers_live(exchange->comm, put)) {
        return CW_ERROR_PEER_FAILED;
    }
    bool is_copied = put->eager && multicasts_open < MULTICASTS_AHEAD;
    struct mpi_multicast *multicast = malloc(sizeof(*multicast) + (is_copied ? put->bytes : 0));
    uint32_t *peers = malloc(put->peer_count * sizeof(*peers));
    if (multicast == NULL || peers == NULL) {
        free(multicast);
        free(peers);
        return CW_ERROR_MEMORY;
    }
    *multicast = (struct mpi_multicast){
        .comm = exchange->comm,
        .group = group_of(exchange->comm, put),
        .exchange = is_copied ? NULL : exchange,
        .context = put->context,
        .offset = put->offset,
        .data = put->data,
        .bytes = put->bytes,
        .element = mpi_data_of(exchange->comm, exchange->type),
        .is_eager = put->eager,
        .peer_count = put->peer_count,
        .peers = peers,
    };
    memcpy(peers, put->peers, put->peer_count * sizeof(*peers));
    mpi_exchange_head_fill(exchange, put, &multicast->head);
    mpi_comm_retain(multicast->comm);
    multicasts_open++;
    mpi_progress_pending(1);
    if (is_copied) {
        if (put->bytes > 0) {
            memcpy(multicast->copy, put->data, put->bytes);
        }
        multicast->data = multicast->copy;
    } else {
        exchange->multicasts_open++;
    }
    /* behind those that wait: they are of the same stream */
    struct mpi_multicast **link = &mpi_multicasts_waiting;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    bool is_first = link == &mpi_multicasts_waiting;
    *link = multicast;
    mpi_progress_is_due = true;
    bool is_done = false;
    if (is_first) { /* it alone */
        multicast->is_done = &is_done;
        (void)mpi_multicast_progress();
    }
    if (is_first && !is_done) {
        multicast->is_done = NULL;
    }
    return exchange->failure != CW_OK ? exchange->failure : is_copied || is_done ? CW_TRANSPORT_DONE : CW_OK;
}

uint32_t mpi_multicast_progress(void)
{
    uint32_t count = 0;
    struct mpi_multicast **link = &mpi_multicasts_waiting;
    while (*link != NULL) {
        struct mpi_multicast *multicast = *link;
        count += multicast_step(multicast);
        if (!multicast->is_sent) {
            link = &multicast->next;
            continue;
        }
        *link = multicast->next;
        multicast->next = NULL;
        if (multicast->under_way == 0) {
            multicast_end(multicast);
        }
    }
    return count;
}

void mpi_multicast_abandon(struct mpi_exchange *exchange)
{
    struct mpi_multicast **link = &mpi_multicasts_waiting;
    while (*link != NULL) {
        struct mpi_multicast *multicast = *link;
        if (multicast->exchange != exchange) {
            link = &multicast->next;
            continue;
        }
        *link = multicast->next;
        multicast->is_sent = true;
        if (multicast->under_way == 0) {
            multicast_end(multicast);
        }
    }
}

static void piece_end(struct mpi_multicast *multicast)
{
    multicast->under_way--;
    if (multicast->is_sent && multicast->under_way == 0) {
        multicast_end(multicast);
    }
}

void mpi_multicast_complete(void *context, uint64_t put_context, int status)
{
    (void)context, (void)status; /* whoever is gone is told by the paths */
    piece_end((struct mpi_multicast *)(uintptr_t)put_context);
}

void mpi_multicast_acknowledged(struct mpi_multicast *multicast)
{
    piece_end(multicast);
}

void mpi_multicast_lost(struct mpi_multicast *multicast)
{
    multicast->exchange = NULL;
    piece_end(multicast);
}

void mpi_multicast_message(void *context, struct cw_group *group, uint32_t rank, const void *data, uint64_t bytes)
{
    (void)context, (void)group;
    mpi_collective_message(rank, data, (uint32_t)bytes);
}

/* ---- what happened ---- */

static const char *name_of(const struct mpi_comm *comm)
{
    return comm->name[0] == '\0' ? "a communicator without a name" : comm->name;
}

static void compression_report(const struct mpi_comm *comm, FILE *out)
{
    const struct cw_group *group = comm->collectives == NULL ? NULL : comm->collectives->multicast_group;
    char name[MPI_MAX_OBJECT_NAME + 32], text[MPI_MAX_OBJECT_NAME + 512];
    snprintf(name, sizeof(name), "the group of %s", name_of(comm));
    for (enum cw_element element = 0; group != NULL && element < CW_ELEMENTS; element++) {
        struct cw_compression_report report;
        if (cw_group_compression(group, element, &report) &&
            mpi_explain_compression(element, &report, name, text, sizeof(text))) {
            fprintf(out, "%s\n", text);
        }
    }
}

char *mpi_multicast_report(void)
{
    struct cw_groups *groups = cw_job_groups(mpi_process.job);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = groups == NULL ? NULL : open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    for (struct mpi_comm *comm = mpi_comm_first(); comm != NULL; comm = mpi_comm_after(comm)) {
        const struct mpi_collectives *collectives = comm->collectives;
        char why[CW_GROUPS_WHY_BYTES], heads_why[CW_GROUPS_WHY_BYTES];
        group_why(collectives == NULL ? NULL : collectives->multicast_group, why, sizeof(why));
        group_why(collectives == NULL ? NULL : collectives->heads_group, heads_why, sizeof(heads_why));
        if (mpi_clusters_are_several(comm)) {
            fprintf(out, "group of %s: none, since its ranks are in several clusters\n", name_of(comm));
        } else if (why[0] != '\0') {
            fprintf(out, "group of %s: %s\n", name_of(comm), why);
        }
        if (heads_why[0] != '\0') {
            fprintf(out, "group of the hosts of %s: %s\n", name_of(comm), heads_why);
        }
        compression_report(comm, out);
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

static bool are_all_sent(void *context)
{
    (void)context;
    return multicasts_open == 0;
}

static void multicasts_describe(void *context, struct mpi_said *said)
{
    (void)context;
    mpi_say(said, "%u multicasts that have not come to all of their ranks yet", (unsigned)multicasts_open);
}

void mpi_multicasts_finish(void)
{
    if (multicasts_open > 0) {
        mpi_progress_until(are_all_sent, multicasts_describe, NULL);
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

void mpi_multicast_finish(void)
{
    if (cw_job_groups(mpi_process.job) != NULL && !is_finished(NULL)) {
        mpi_progress_until(is_finished, finish_describe, NULL);
    }
}
