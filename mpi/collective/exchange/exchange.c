#include "mpi/collective/exchange/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/collective/exchange/assembly.h"
#include "mpi/collective/exchange/call_log.h"
#include "mpi/collective/exchange/direct.h"
#include "mpi/collective/exchange/groups.h"
#include "mpi/collective/exchange/refusal.h"
#include "mpi/collective/exchange/state.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/point/lost.h"
#include "mpi/state/process.h"
#include "mpi/transport/credit.h"
#include "mpi/transport/rendezvous.h"
#include "mpi/transport/transport.h"
#include "mpi/transport/unknown.h"

/* A get of an offered put. */
struct exchange_get {
    struct mpi_get get;
    struct mpi_exchange *exchange;
    struct cw_transport_event event;
};

/* True: the execution holds its data. */
static bool event_post(struct mpi_exchange *exchange, const struct cw_transport_event *event)
{
    return exchange->sink.event(exchange->sink.context, event);
}

void mpi_exchange_put_report(struct mpi_exchange *exchange, enum cw_transport_event_kind kind, uint64_t context)
{
    (void)event_post(exchange, &(struct cw_transport_event){.kind = kind, .context = context});
}

void mpi_exchange_fail(struct mpi_exchange *exchange, int status)
{
    if (exchange->failure == CW_OK) {
        exchange->failure = status;
        (void)event_post(exchange, &(struct cw_transport_event){.kind = CW_TRANSPORT_FAILED, .status = status});
    }
}

static struct mpi_call_head head_of(const struct mpi_exchange *exchange, const struct cw_transport_put *put)
{
    return (struct mpi_call_head){
        .envelope = {.context = exchange->comm->context, .tag = (int32_t)put->tag, .source = exchange->comm->rank},
        .number = exchange->number,
        .run = exchange->run,
        .call = exchange->kind,
        .kind = put->eager ? MPI_SENT_EAGER : MPI_SENT_OFFER,
        .buffer = (uint8_t)put->buffer,
    };
}

int mpi_exchange_send_eager(const struct mpi_comm *comm, uint32_t rank, const void *head, uint32_t head_bytes,
                            const void *data, uint64_t bytes, enum cw_element element)
{
    uint32_t lane_tag = mpi_lane_tag(comm->context, MPI_SENT_CALL);
    return cw_paths_send(mpi_process.paths, rank, lane_tag, head, head_bytes, data, (uint32_t)bytes, element);
}

/* ---- long puts ---- */

static void put_ended(struct mpi_call_offers *offers, uint64_t context, int code)
{
    struct mpi_exchange *exchange = (struct mpi_exchange *)((uint8_t *)offers - offsetof(struct mpi_exchange, puts));
    exchange->operations_open--;
    if (code == MPI_SUCCESS) {
        mpi_exchange_put_report(exchange, CW_TRANSPORT_COMPLETE, context);
    }
}

static int put_offer(struct mpi_exchange *exchange, const struct cw_transport_put *put, uint32_t rank,
                     const struct mpi_call_head *head)
{
    int status = mpi_call_offers_send(&exchange->puts, rank, head, put->data, put->bytes, put->offset, put->context);
    exchange->operations_open += status == CW_OK;
    return status;
}

/* ---- multicasts ---- */

static void multicast_ended(struct mpi_multicast_owner *owner, uint64_t context, int status)
{
    struct mpi_exchange *exchange =
        (struct mpi_exchange *)((uint8_t *)owner - offsetof(struct mpi_exchange, multicasts));
    exchange->operations_open--;
    if (status == CW_OK) {
        mpi_exchange_put_report(exchange, CW_TRANSPORT_COMPLETE, context);
    }
}

static void multicast_failed(struct mpi_multicast_owner *owner, int status)
{
    mpi_exchange_fail((struct mpi_exchange *)((uint8_t *)owner - offsetof(struct mpi_exchange, multicasts)), status);
}

static int put_multicast(struct mpi_exchange *exchange, const struct cw_transport_put *put)
{
    const struct mpi_comm *comm = exchange->comm;
    for (uint32_t i = 0; i < put->peer_count;
         i++) { /* a group continues without lost members, but the call must fail */
        if (mpi_lost(comm, (int)put->peers[i])) {
            return CW_ERROR_PEER_FAILED;
        }
    }
    exchange->operations_open++;
    int status = mpi_multicast(&(struct mpi_multicast_request){
        .comm = exchange->comm,
        .group = mpi_groups_find(comm, put->peers, put->peer_count),
        .peers = put->peers,
        .peer_count = put->peer_count,
        .head = head_of(exchange, put),
        .data = put->data,
        .bytes = put->bytes,
        .offset = put->offset,
        .element = mpi_element_of(comm, exchange->type),
        .owner = &exchange->multicasts,
        .context = put->context,
    });
    exchange->operations_open -= status != CW_OK;
    return exchange->failure != CW_OK ? exchange->failure : status == MPI_MULTICAST_DONE ? CW_TRANSPORT_DONE : status;
}

static enum cw_element put_element(const struct mpi_exchange *exchange, const struct cw_transport_put *put)
{
    return put->bytes < MPI_ELEMENTS_MATTER_MIN ? CW_ELEMENT_BYTES : mpi_element_of(exchange->comm, exchange->type);
}

static int transport_put(void *state, const struct cw_transport_put *put)
{
    struct mpi_exchange *exchange = state;
    if (exchange->failure != CW_OK) {
        return exchange->failure;
    }
    const struct mpi_exchange *throttle = exchange->comm->collectives->throttles;
    if (throttle != NULL && exchange->is_in_order && throttle->number < exchange->number) {
        return CW_ERROR_AGAIN;
    }
    uint32_t rank = exchange->comm->group->ranks[put->peers[0]];
    struct mpi_call_head head = head_of(exchange, put);
    if (exchange->own_waits != NULL && (exchange->offers_all || !mpi_credit_is_eager(rank, put->bytes))) {
        head.kind = MPI_SENT_OFFER;
        head.buffer = MPI_NO_PLACE;
        return put_offer(exchange, put, rank, &head);
    }
    bool is_long = sizeof(head) + put->bytes > cw_paths_message_max(mpi_process.paths, rank);
    if (put->peer_count > 1 || (put->eager && is_long)) { /* the latter: a multicast among two, or to another cluster */
        return put_multicast(exchange, put);
    }
    if (!put->eager) {
        int status = mpi_direct_put(exchange, put, rank, &head);
        return status != CW_ERROR_UNSUPPORTED ? status : put_offer(exchange, put, rank, &head);
    }
    int status = mpi_direct_is_clear(put, rank)
                     ? mpi_direct_clear_send(exchange, rank, &head)
                     : mpi_exchange_send_eager(exchange->comm, rank, &head, sizeof(head), put->data, put->bytes,
                                               put_element(exchange, put));
    return status == CW_OK ? CW_TRANSPORT_DONE : status; /* it has been copied */
}

/* ---- calls among the ranks of this host ---- */

/* The status of the dataplane for an MPI error code; copies the reason to `why`. */
static int host_status(struct mpi_exchange *exchange, int code)
{
    if (exchange->why[0] == '\0') {
        snprintf(exchange->why, sizeof(exchange->why), "%s", mpi_host_part_why(&exchange->host));
    }
    return code == MPI_ERR_NOT_SAME       ? CW_ERROR_ARGUMENT
           : code == MPI_ERR_PROC_ABORTED ? CW_ERROR_PEER_FAILED
           : code == MPI_ERR_NO_MEM       ? CW_ERROR_MEMORY
                                          : CW_ERROR_SYSTEM;
}

static int transport_host(void *state, const struct cw_transport_host *host)
{
    struct mpi_exchange *exchange = state;
    if (exchange->failure != CW_OK) {
        return exchange->failure;
    }
    int code = mpi_host_part_start(&exchange->host, host);
    return code == MPI_SUCCESS ? CW_TRANSPORT_DONE : code == MPI_ERR_PENDING ? CW_OK : host_status(exchange, code);
}

void mpi_exchange_poll_host(struct mpi_exchange *exchange)
{
    int code = exchange->failure == CW_OK ? mpi_host_part_poll(&exchange->host) : MPI_ERR_PENDING;
    if (code == MPI_SUCCESS) {
        mpi_exchange_put_report(exchange, CW_TRANSPORT_COMPLETE, exchange->host.op.context);
    } else if (code != MPI_ERR_PENDING) {
        mpi_exchange_fail(exchange, host_status(exchange, code));
    }
}

static void transport_serve(void *state, const struct cw_transport_sink *sink)
{
    ((struct mpi_exchange *)state)->sink = *sink;
}

static const void *transport_keep(void *state, const void *data, uint64_t bytes, uint64_t *buffer)
{
    (void)state;
    void *copy = malloc(bytes);
    *buffer = (uint64_t)(uintptr_t)copy;
    return copy == NULL ? NULL : memcpy(copy, data, bytes);
}

static void transport_release(void *state, uint64_t buffer)
{
    (void)state;
    free((void *)(uintptr_t)buffer);
}

/* ---- what comes ---- */

/* The source gets an answer after success only: after a failure, this rank refuses the call at all ranks. */
static int get_done(struct mpi_get *get, int status)
{
    struct exchange_get *made = (struct exchange_get *)get;
    struct mpi_exchange *exchange = made->exchange;
    exchange->operations_open--;
    if (status == CW_OK) {
        (void)event_post(exchange, &made->event);
    } else if (status != CW_ERROR_CLOSED) { /* else the call has failed at the source, and its refusal has the reason */
        if (status == CW_ERROR_REMOTE_ACCESS) {
            snprintf(exchange->why, sizeof(exchange->why), "the buffer of rank %u cannot be read", made->event.peer);
        }
        mpi_exchange_fail(exchange, status);
    }
    free(made);
    return status == CW_OK ? MPI_SUCCESS : MPI_NO_ANSWER;
}

/* Whether the bytes fit into a buffer that peers may write. If not, the call fails, since the ranks' calls differ. */
static bool is_inside(struct mpi_exchange *exchange, const struct mpi_call_head *head, uint64_t offset, uint64_t bytes)
{
    bool inside = (head->buffer == CW_BUFFER_RECEIVE || head->buffer == CW_BUFFER_SCRATCH) &&
                  bytes <= exchange->buffer_bytes[head->buffer] &&
                  offset <= exchange->buffer_bytes[head->buffer] - bytes;
    if (!inside) {
        snprintf(exchange->why, sizeof(exchange->why), "rank %d sends %llu bytes to where rank %d has no room for them",
                 head->envelope.source, (unsigned long long)bytes, exchange->comm->rank);
        mpi_exchange_fail(exchange, CW_ERROR_ARGUMENT);
        mpi_exchange_mismatch_notify(exchange, head->envelope.source);
    }
    return inside;
}

void mpi_exchange_truncate(struct mpi_exchange *exchange, int source, uint64_t bytes, uint64_t room)
{
    exchange->is_truncated = true;
    snprintf(exchange->why, sizeof(exchange->why), "rank %d sends rank %d %llu bytes, which has room for %llu", source,
             exchange->comm->rank, (unsigned long long)bytes, (unsigned long long)room);
}

/* In a call of which this rank knows only its own counts: the place for an eager put of `*bytes`, which are reduced to
 * the room there. The event has the number of bytes for which the schedule waits, since a shorter put is no error.
 * NULL: the schedule waits for no put of this rank. */
static uint8_t *own_place(struct mpi_exchange *exchange, const struct mpi_call_head *head, uint64_t *bytes,
                          struct cw_transport_event *event)
{
    uint32_t index = exchange->own_waits[head->envelope.source];
    if (index == UINT32_MAX) {
        return NULL;
    }
    const struct cw_op *op = &exchange->schedule->ops[index];
    *event = exchange_arrival(head, NULL, op->bytes);
    event->eager = true;
    if (*bytes > op->bytes) {
        mpi_exchange_truncate(exchange, head->envelope.source, *bytes, op->bytes);
        *bytes = op->bytes;
    }
    return (uint8_t *)exchange->buffers[op->to.buffer] + op->to.offset;
}

static void offer_accept(struct mpi_exchange *exchange, uint32_t rank, const struct mpi_call_head *head,
                         const struct mpi_call_offer *call)
{
    const struct mpi_offer *offer = &call->offer;
    uint64_t bytes = offer->bytes;
    struct cw_transport_event event = exchange_arrival(head, NULL, bytes);
    bool is_own = exchange->own_waits != NULL && head->buffer == MPI_NO_PLACE;
    uint8_t *to = is_own ? own_place(exchange, head, &bytes, &event) : NULL;
    if (to == NULL && !is_inside(exchange, head, call->offset, bytes)) {
        return;
    }
    to = to != NULL ? to : (uint8_t *)exchange->buffers[head->buffer] + call->offset;
    struct exchange_get *made = malloc(sizeof(*made));
    if (made == NULL) {
        mpi_exchange_fail(exchange, CW_ERROR_MEMORY);
        return;
    }
    *made = (struct exchange_get){
        .get =
            {
                .registration = offer->registration,
                .number = offer->number,
                .rank = rank,
                .answer = mpi_lane_tag(head->envelope.context, MPI_SENT_DONE),
                .to = to,
                .bytes = bytes,
                .element = mpi_element_of(exchange->comm, exchange->type),
                .done = get_done,
            },
        .exchange = exchange,
        .event = event,
    };
    exchange->operations_open++;
    mpi_get_start(&made->get);
}

/* Copies a part of a multicast into its place. The last part completes the put. */
static bool part_place(struct mpi_exchange *exchange, const struct mpi_call_head *head, const void *data,
                       uint32_t bytes)
{
    struct mpi_part part;
    if (!mpi_message_read(&data, &bytes, &part, sizeof(part)) || !is_inside(exchange, head, part.offset, bytes)) {
        return false;
    }
    memcpy((uint8_t *)exchange->buffers[head->buffer] + part.offset, data, bytes);
    const struct cw_transport_event event = exchange_arrival(head, NULL, part.bytes);
    if (part.left == 0) {
        (void)event_post(exchange, &event);
    }
    return true;
}

/* The same for an eager multicast, which has no place. */
static bool part_assemble(struct mpi_exchange *exchange, const struct mpi_call_head *head, const void *data,
                          uint32_t bytes)
{
    struct cw_transport_event event;
    bool makes_sense = exchange_part_add(exchange, head, data, bytes, &event);
    if (event.buffer != 0 && !event_post(exchange, &event)) {
        transport_release(exchange, event.buffer);
    }
    return makes_sense;
}

/* Delivers a message to its call. False: it is invalid. */
static bool message_deliver(struct mpi_exchange *exchange, uint32_t rank, const struct mpi_call_head *head,
                            const void *data, uint32_t bytes)
{
    if (head->envelope.source < 0 || head->envelope.source >= exchange->comm->size) {
        return false;
    }
    if (head->kind == MPI_SENT_REFUSE) {
        return mpi_refusal_receive(exchange, head->envelope.source, data, bytes);
    }
    if (head->call != exchange->kind) {
        mpi_exchange_mismatch_receive(exchange, head);
        return false;
    }
    struct mpi_call_offer offer;
    struct cw_transport_event event = exchange_arrival(head, head->kind == MPI_SENT_EAGER ? data : NULL, bytes);
    switch (head->kind) {
    case MPI_SENT_EAGER:
        if (exchange->own_waits != NULL) {
            uint64_t room = bytes;
            uint8_t *to = own_place(exchange, head, &room, &event);
            if (to != NULL) {
                memcpy(to, data, room);
            }
        }
        break;
    case MPI_SENT_PLACE:
        if (!mpi_direct_clear_receive(exchange, head, data, bytes)) {
            return false;
        }
        event.eager = true;
        event.bytes = 0;
        break;
    case MPI_SENT_FIN:
        if (!mpi_message_read(&data, &bytes, &event.bytes, sizeof(event.bytes))) {
            return false;
        }
        break;
    case MPI_SENT_OFFER:
        if (!mpi_message_read(&data, &bytes, &offer, sizeof(offer))) {
            return false;
        }
        offer_accept(exchange, rank, head, &offer);
        return true;
    case MPI_SENT_PART:
        return head->buffer == MPI_NO_PLACE ? part_assemble(exchange, head, data, bytes)
                                            : part_place(exchange, head, data, bytes);
    default:
        return head->kind == MPI_SENT_ASK;
    }
    (void)event_post(exchange, &event);
    return true;
}

static struct mpi_exchange *exchange_find(const struct mpi_comm *comm, const struct mpi_call_head *head)
{
    struct mpi_exchange *exchange = comm == NULL || comm->collectives == NULL ? NULL : comm->collectives->exchanges;
    while (exchange != NULL && !exchange_fits(exchange, head)) {
        exchange = exchange->next;
    }
    return exchange;
}

void mpi_collective_message(uint32_t rank, const void *data, uint32_t bytes)
{
    struct mpi_call_head head;
    const void *body = data;
    uint32_t body_bytes = bytes;
    if (!mpi_message_read(&body, &body_bytes, &head, sizeof(head))) {
        return;
    }
    mpi_process.questions_taken += head.kind == MPI_SENT_ASK;
    struct mpi_comm *comm = mpi_comm_of_context(head.envelope.context);
    struct mpi_exchange *exchange = exchange_find(comm, &head);
    if (exchange != NULL && head.kind != MPI_SENT_REFUSE) {
        (void)message_deliver(exchange, rank, &head, body, body_bytes);
    } else if (exchange == NULL && head.kind == MPI_SENT_ASK) {
        mpi_refusal_answer(comm, &head);
    } else if (comm == NULL) {
        mpi_unknown_keep(rank, MPI_SENT_CALL, data, bytes);
    } else {
        if (head.kind == MPI_SENT_REFUSE) {
            mpi_refusal_note(comm, body, body_bytes);
            mpi_groups_open_all(comm); /* this rank may never reach that call */
        }
        if (exchange != NULL) {
            (void)message_deliver(exchange, rank, &head, body, body_bytes);
        } else if (!mpi_call_log_accepts(comm, &head)) {
            exchange_early_keep(comm, rank, data, bytes);
        }
    }
}

static void call_receive(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    (void)context, (void)lane_tag;
    mpi_collective_message(rank, data, bytes);
}

void mpi_exchange_listen(void)
{
    mpi_transport_receiver_set(MPI_SENT_CALL, call_receive);
}

void mpi_exchange_init(struct mpi_exchange *exchange)
{
    exchange->puts = (struct mpi_call_offers){.ended = put_ended};
    exchange->multicasts = (struct mpi_multicast_owner){.ended = multicast_ended, .failed = multicast_failed};
    exchange->transport = (struct cw_transport){
        .state = exchange,
        .serve = transport_serve,
        .put = transport_put,
        .host = transport_host,
        .keep = transport_keep,
        .release = transport_release,
    };
}

bool mpi_exchange_begin(struct mpi_exchange *exchange, struct mpi_comm *comm, uint32_t number, uint32_t run,
                        uint32_t kind)
{
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    if (collectives == NULL) {
        return false;
    }
    exchange->comm = comm;
    exchange->number = number;
    exchange->run = run;
    exchange->kind = kind;
    exchange->kind_seen = 0;
    exchange->why[0] = '\0';
    exchange->is_notified = exchange->throttles = exchange->is_truncated = false;
    exchange->failure = CW_OK;
    exchange->lost = -1;
    exchange->next = collectives->exchanges;
    collectives->exchanges = exchange;
    mpi_call_log_report(exchange);
    if (collectives->early.first != NULL) {
        exchange_early_deliver(&collectives->early, exchange);
    }
    exchange_lost_find(exchange);
    return true;
}

void mpi_exchange_withdraw(struct mpi_exchange *exchange)
{
    mpi_multicast_abandon(&exchange->multicasts);
    mpi_call_offers_withdraw(&exchange->puts);
}

void mpi_exchange_end(struct mpi_exchange *exchange)
{
    struct mpi_exchange **link = &exchange->comm->collectives->exchanges;
    while (*link != exchange) {
        link = &(*link)->next;
    }
    *link = exchange->next;
    if (exchange->throttles) {
        exchange_unthrottle(exchange);
    }
    mpi_call_log_note(exchange->comm, exchange->number, exchange->run, exchange->kind, exchange->failure != CW_OK);
    mpi_direct_end(exchange);
    exchange_parts_free(exchange);
}
