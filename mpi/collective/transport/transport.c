#include "mpi/collective/transport/transport.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/collective/transport/assembly.h"
#include "mpi/collective/transport/call_log.h"
#include "mpi/collective/transport/direct.h"
#include "mpi/collective/transport/multicast.h"
#include "mpi/collective/transport/refusal.h"
#include "mpi/collective/transport/transport_state.h"
#include "mpi/point/credit.h"
#include "mpi/point/data.h"
#include "mpi/point/numbers.h"
#include "mpi/point/point.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"

struct mpi_exchange_put {
    struct mpi_exchange_put *next;
    struct mpi_exchange *exchange;
    uint64_t context;
    uint32_t rank;
    uint16_t number;
    struct cw_registration registration;
    struct mpi_multicast *multicast; /* whose part it is; NULL: none's */
};

/* A get of an offer. */
struct mpi_exchange_get {
    struct mpi_operation operation;
    struct mpi_exchange *exchange;
    struct exchange_head head;
    struct exchange_offer offer;
    uint32_t rank;
    struct mpi_exchange_get *next; /* of those that the path would not take */
};

static struct mpi_exchange_get *gets_waiting; /* those that the path would not take */

/* False: nobody holds its data. */
static bool event_give(struct mpi_exchange *exchange, const struct cw_transport_event *event)
{
    return exchange->sink.event(exchange->sink.context, event);
}

void mpi_exchange_put_tell(struct mpi_exchange *exchange, enum cw_transport_event_kind kind, uint64_t context)
{
    (void)event_give(exchange, &(struct cw_transport_event){.kind = kind, .context = context});
}

void mpi_exchange_fail(struct mpi_exchange *exchange, int status)
{
    if (exchange->failure == CW_OK) {
        exchange->failure = status;
        (void)event_give(exchange, &(struct cw_transport_event){.kind = CW_TRANSPORT_FAILED, .status = status});
    }
}

void mpi_exchange_head_fill(const struct mpi_exchange *exchange, const struct cw_transport_put *put,
                            struct exchange_head *head)
{
    *head = (struct exchange_head){
        .context = exchange->comm->context,
        .number = exchange->number,
        .run = exchange->run,
        .tag = put->tag,
        .source = exchange->comm->rank,
        .kind = put->eager ? EXCHANGE_EAGER : EXCHANGE_OFFER,
        .buffer = (uint8_t)put->buffer,
        .call = exchange->kind,
    };
}

int mpi_exchange_send_eager(const struct mpi_comm *comm, uint32_t rank, const void *head, uint32_t head_bytes,
                            const void *data, uint64_t bytes, enum cw_element element)
{
    uint32_t lane_tag = mpi_lane_tag(comm->context, MPI_SENT_COLLECTIVE);
    return cw_paths_send(mpi_process.paths, rank, lane_tag, head, head_bytes, data, (uint32_t)bytes, element);
}

int mpi_exchange_send_offer(struct mpi_exchange *exchange, uint32_t rank, const struct exchange_head *head,
                            const void *data, uint64_t bytes, uint64_t offset, struct mpi_multicast *multicast,
                            uint64_t context)
{
    struct mpi_exchange_put *kept = malloc(sizeof(*kept));
    if (kept == NULL) {
        return CW_ERROR_MEMORY;
    }
    *kept = (struct mpi_exchange_put){.exchange = exchange,
                                      .context = context,
                                      .rank = rank,
                                      .number = exchange->put_count++,
                                      .multicast = multicast};
    int status = cw_paths_register(mpi_process.paths, rank, (void *)(uintptr_t)data, bytes,
                                   CW_REGION_READ | CW_REGION_KEPT, &kept->registration);
    if (status != CW_OK) {
        free(kept);
        return status == CW_ERROR_LIMIT ? CW_ERROR_AGAIN : status;
    }
    struct {
        struct exchange_head head;
        struct exchange_offer offer;
    } message = {
        .head = *head,
        .offer = {.offset = offset, .bytes = bytes, .registration = kept->registration},
    };
    message.head.put = kept->number;
    status = cw_paths_send(mpi_process.paths, rank, mpi_lane_tag(exchange->comm->context, MPI_SENT_COLLECTIVE),
                           &message, sizeof(message), NULL, 0, CW_ELEMENT_BYTES);
    if (status != CW_OK) {
        mpi_deregister(rank, &kept->registration, NULL, NULL); /* nobody has heard of it */
        free(kept);
        return status;
    }
    kept->next = exchange->puts;
    exchange->puts = kept;
    return CW_OK;
}

static int transport_put_long(struct mpi_exchange *exchange, const struct cw_transport_put *put, uint32_t rank,
                              const struct exchange_head *head)
{
    int status = mpi_direct_put(exchange, put, rank, head);
    return status != CW_ERROR_UNSUPPORTED
               ? status
               : mpi_exchange_send_offer(exchange, rank, head, put->data, put->bytes, put->offset, NULL, put->context);
}

static int transport_put(void *state, const struct cw_transport_put *put)
{
    struct mpi_exchange *exchange = state;
    struct exchange_head head;
    if (exchange->failure != CW_OK) {
        return exchange->failure;
    }
    const struct mpi_exchange *throttle = exchange->comm->collectives->throttles;
    if (throttle != NULL && exchange->is_in_order && throttle->number < exchange->number) {
        return CW_ERROR_AGAIN;
    }
    uint32_t rank = exchange->comm->group->ranks[put->peers[0]];
    bool is_long = sizeof(head) + put->bytes > cw_paths_message_max(mpi_process.paths, rank);
    if (put->peer_count > 1 || (put->eager && is_long)) { /* the latter: a multicast among two, or to another cluster */
        return mpi_multicast_put(exchange, put);
    }
    mpi_exchange_head_fill(exchange, put, &head);
    if (!put->eager) {
        return transport_put_long(exchange, put, rank, &head);
    }
    int status = mpi_direct_is_clear(put, rank)
                     ? mpi_direct_clear_send(exchange, rank, &head)
                     : mpi_exchange_send_eager(exchange->comm, rank, &head, sizeof(head), put->data, put->bytes,
                                               mpi_data_of_short(exchange->comm, exchange->type, put->bytes));
    return status == CW_OK ? CW_TRANSPORT_DONE : status; /* it has been copied */
}

/* ---- calls among the ranks of this host ---- */

/* As the dataplane has it; the reason goes to `why`. */
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
        mpi_exchange_put_tell(exchange, CW_TRANSPORT_COMPLETE, exchange->host.op.context);
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

static void get_end(struct mpi_exchange_get *get, int status)
{
    struct mpi_exchange *exchange = get->exchange;
    exchange->operations_open--;
    if (status == CW_OK) {
        struct cw_transport_event event = {
            .kind = CW_TRANSPORT_ARRIVED,
            .peer = (uint32_t)get->head.source,
            .tag = get->head.tag,
            .bytes = get->offer.bytes,
        };
        (void)event_give(exchange, &event);
        struct exchange_head head = get->head;
        head.kind = EXCHANGE_ACK;
        head.source = exchange->comm->rank;
        (void)mpi_outbox_send(get->rank, mpi_lane_tag(head.context, MPI_SENT_COLLECTIVE), &head, sizeof(head), NULL, 0,
                              CW_ELEMENT_BYTES, NULL);
    }
    free(get);
}

static void get_done(struct mpi_operation *operation, int status)
{
    struct mpi_exchange_get *get = (struct mpi_exchange_get *)operation;
    /* No access: the source's call has ended with an error and has taken its memory back. Its refusal says why. */
    if (status != CW_OK && status != CW_ERROR_REMOTE_ACCESS) {
        mpi_exchange_fail(get->exchange, status);
    }
    get_end(get, status);
}

static void get_start(struct mpi_exchange_get *get)
{
    uint8_t *to = (uint8_t *)get->exchange->buffers[get->head.buffer] + get->offer.offset;
    int status =
        cw_paths_get(mpi_process.paths, get->rank, &get->offer.registration, 0, to, get->offer.bytes,
                     mpi_data_of(get->exchange->comm, get->exchange->type), (uint64_t)(uintptr_t)&get->operation);
    if (status == CW_ERROR_AGAIN) {
        get->next = gets_waiting;
        gets_waiting = get;
        mpi_progress_is_due = true;
    } else if (status == CW_PATHS_DONE) {
        get_end(get, CW_OK);
    } else if (status != CW_OK) {
        if (status == CW_ERROR_REMOTE_ACCESS) {
            snprintf(get->exchange->why, sizeof(get->exchange->why), "the buffer of rank %d cannot be read",
                     get->head.source);
        }
        mpi_exchange_fail(get->exchange, status);
        get_end(get, status);
    }
}

uint32_t mpi_exchange_turn(void)
{
    uint32_t count = mpi_multicasts_waiting != NULL ? mpi_multicast_progress() : 0;
    struct mpi_exchange_get *get = gets_waiting;
    gets_waiting = NULL;
    while (get != NULL) {
        struct mpi_exchange_get *next = get->next;
        get_start(get);
        get = next;
    }
    mpi_progress_is_due = mpi_progress_is_due || mpi_multicasts_waiting != NULL;
    return count;
}

/* Whether such bytes have room in a buffer that others may write; else says that the ranks do not agree on the call. */
static bool is_inside(struct mpi_exchange *exchange, const struct exchange_head *head, uint64_t offset, uint64_t bytes)
{
    bool inside = (head->buffer == CW_BUFFER_RECEIVE || head->buffer == CW_BUFFER_SCRATCH) &&
                  bytes <= exchange->buffer_bytes[head->buffer] &&
                  offset <= exchange->buffer_bytes[head->buffer] - bytes;
    if (!inside) {
        snprintf(exchange->why, sizeof(exchange->why), "rank %d sends %llu bytes to where rank %d has no room for them",
                 head->source, (unsigned long long)bytes, exchange->comm->rank);
        mpi_exchange_fail(exchange, CW_ERROR_ARGUMENT);
        mpi_exchange_mismatch_tell(exchange, head->source);
    }
    return inside;
}

static void offer_take(struct mpi_exchange *exchange, uint32_t rank, const struct exchange_head *head,
                       const struct exchange_offer *offer)
{
    if (!is_inside(exchange, head, offer->offset, offer->bytes)) {
        return;
    }
    struct mpi_exchange_get *get = malloc(sizeof(*get));
    if (get == NULL) {
        mpi_exchange_fail(exchange, CW_ERROR_MEMORY);
        return;
    }
    *get = (struct mpi_exchange_get){
        .operation = {.done = get_done},
        .exchange = exchange,
        .head = *head,
        .offer = *offer,
        .rank = rank,
    };
    exchange->operations_open++;
    get_start(get);
}

/* Its memory is the caller's again. */
static void put_released(void *context)
{
    struct mpi_exchange_put *put = context;
    struct mpi_exchange *exchange = put->exchange;
    exchange->operations_open--;
    if (put->multicast == NULL) {
        mpi_exchange_put_tell(exchange, CW_TRANSPORT_COMPLETE, put->context);
    } else {
        mpi_multicast_acknowledged(put->multicast);
    }
    free(put);
}

static void ack_take(struct mpi_exchange *exchange, uint32_t rank, const struct exchange_head *head)
{
    struct mpi_exchange_put **link = &exchange->puts;
    while (*link != NULL && !((*link)->number == head->put && (*link)->rank == rank)) {
        link = &(*link)->next;
    }
    struct mpi_exchange_put *put = *link;
    if (put == NULL) {
        return;
    }
    *link = put->next;
    exchange->operations_open++;
    mpi_deregister(rank, &put->registration, put_released, put);
}

/* A piece of a long multicast: into its place; the last one ends it. */
static bool piece_take(struct mpi_exchange *exchange, const struct exchange_head *head, const uint8_t *data,
                       uint32_t bytes)
{
    struct exchange_piece piece;
    if (bytes < sizeof(piece)) {
        return false;
    }
    memcpy(&piece, data, sizeof(piece));
    bytes -= (uint32_t)sizeof(piece);
    if (!is_inside(exchange, head, piece.offset, bytes)) {
        return false;
    }
    memcpy((uint8_t *)exchange->buffers[head->buffer] + piece.offset, data + sizeof(piece), bytes);
    struct cw_transport_event event = {
        .kind = CW_TRANSPORT_ARRIVED,
        .peer = (uint32_t)head->source,
        .tag = head->tag,
        .bytes = piece.bytes,
    };
    if (piece.left == 0) {
        (void)event_give(exchange, &event);
    }
    return true;
}

/* A part of a long eager one; the last one completes the event. */
static bool part_take(struct mpi_exchange *exchange, const struct exchange_head *head, const uint8_t *data,
                      uint32_t bytes)
{
    struct cw_transport_event event;
    bool makes_sense = exchange_part_take(exchange, head, data, bytes, &event);
    if (event.buffer != 0 && !event_give(exchange, &event)) {
        transport_release(exchange, event.buffer);
    }
    return makes_sense;
}

/* Gives a message to its call. False: it makes no sense. */
static bool message_take(struct mpi_exchange *exchange, uint32_t rank, const struct exchange_head *head,
                         const uint8_t *data, uint32_t bytes)
{
    struct exchange_offer offer;
    struct cw_transport_event event;
    if (head->source < 0 || head->source >= exchange->comm->size) {
        return false;
    }
    if (head->kind == EXCHANGE_REFUSE) {
        return mpi_refusal_take(exchange, head->source, data, bytes);
    }
    if (head->call != exchange->kind) {
        mpi_exchange_mismatch_take(exchange, head);
        return false;
    }
    switch (head->kind) {
    case EXCHANGE_EAGER:
        event = exchange_eager_event(head, data, bytes);
        break;
    case EXCHANGE_CLEAR:
        event = exchange_eager_event(head, NULL, 0);
        if (!mpi_direct_clear_take(exchange, head, data, bytes)) {
            return false;
        }
        break;
    case EXCHANGE_FIN:
        event =
            (struct cw_transport_event){.kind = CW_TRANSPORT_ARRIVED, .peer = (uint32_t)head->source, .tag = head->tag};
        if (!mpi_direct_fin_take(data, bytes, &event.bytes)) {
            return false;
        }
        break;
    case EXCHANGE_OFFER:
        if (bytes != sizeof(offer)) {
            return false;
        }
        memcpy(&offer, data, sizeof(offer));
        offer_take(exchange, rank, head, &offer);
        return true;
    case EXCHANGE_ACK:
        ack_take(exchange, rank, head);
        return true;
    case EXCHANGE_PIECE:
        return piece_take(exchange, head, data, bytes);
    case EXCHANGE_PART:
        return part_take(exchange, head, data, bytes);
    case EXCHANGE_ASK:
        return true;
    default:
        return false;
    }
    (void)event_give(exchange, &event);
    return true;
}

static struct mpi_exchange *exchange_find(const struct mpi_comm *comm, const struct exchange_head *head)
{
    struct mpi_exchange *exchange = comm == NULL || comm->collectives == NULL ? NULL : comm->collectives->exchanges;
    while (exchange != NULL && !exchange_fits(exchange, head)) {
        exchange = exchange->next;
    }
    return exchange;
}

void mpi_collective_message(uint32_t rank, const void *data, uint32_t bytes)
{
    struct exchange_head head;
    if (bytes < sizeof(head)) {
        return;
    }
    memcpy(&head, data, sizeof(head));
    mpi_process.questions_taken += head.kind == EXCHANGE_ASK;
    struct mpi_comm *comm = mpi_comm_of_context(head.context);
    struct mpi_exchange *exchange = exchange_find(comm, &head);
    if (exchange == NULL && head.kind == EXCHANGE_ASK) {
        mpi_refusal_answer(comm, &head);
        return;
    }
    if (head.kind == EXCHANGE_REFUSE && comm != NULL) {
        mpi_refusal_note(comm, (const uint8_t *)data + sizeof(head), bytes - (uint32_t)sizeof(head));
        mpi_multicast_open_all(comm); /* this rank may never come to that call */
    }
    if (comm == NULL && mpi_context_was_freed(head.context)) {
        mpi_kept.dropped++;
        return;
    }
    if (exchange == NULL && !mpi_call_log_takes(comm, &head)) {
        exchange_early_keep(comm, rank, data, bytes);
    }
    if (exchange == NULL) {
        return;
    }
    (void)message_take(exchange, rank, &head, (const uint8_t *)data + sizeof(head), bytes - (uint32_t)sizeof(head));
}

static void take_message(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    (void)context, (void)lane_tag;
    mpi_collective_message(rank, data, bytes);
}

void mpi_exchange_listen(struct cw_path_handler *handler)
{
    handler->listeners[MPI_SENT_COLLECTIVE].message = take_message;
}

void mpi_exchange_init(struct mpi_exchange *exchange)
{
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
    exchange->is_notified = exchange->throttles = false;
    exchange->failure = CW_OK;
    exchange->lost = -1;
    exchange->next = collectives->exchanges;
    collectives->exchanges = exchange;
    mpi_call_log_tell(exchange);
    if (collectives->early.first != NULL) {
        exchange_early_take(&collectives->early, comm, exchange);
    }
    exchange_lost_find(exchange);
    return true;
}

bool mpi_exchange_is_idle(const struct mpi_exchange *exchange)
{
    return exchange->puts == NULL && exchange->operations_open == 0 && exchange->multicasts_open == 0;
}

static void put_withdrawn(void *context)
{
    struct mpi_exchange_put *put = context;
    put->exchange->operations_open--;
    if (put->multicast != NULL) {
        mpi_multicast_lost(put->multicast);
    }
    free(put);
}

void mpi_exchange_withdraw(struct mpi_exchange *exchange)
{
    while (exchange->puts != NULL) {
        struct mpi_exchange_put *put = exchange->puts;
        exchange->puts = put->next;
        exchange->operations_open++;
        mpi_deregister(put->rank, &put->registration, put_withdrawn, put);
    }
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
    assert(exchange->puts == NULL);
}
