#include "dataplane/put/operation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/put/get.h"
#include "dataplane/put/message.h"
#include "dataplane/state/wake.h"

/* ---- lanes ---- */

int cw_lanes_init(struct cw_lanes *lanes, uint32_t operation_count)
{
    uint32_t places = 16;
    while (places < 2 * operation_count) {
        places *= 2;
    }
    lanes->table = calloc(places, sizeof(struct cw_operation *));
    lanes->mask = places - 1;
    return lanes->table == NULL ? CW_ERROR_MEMORY : CW_OK;
}

void cw_lanes_dispose(struct cw_lanes *lanes)
{
    free(lanes->table);
    lanes->table = NULL;
}

static inline uint32_t lane_place(const struct cw_lanes *lanes, const struct cw_flow *flow, uint32_t lane)
{
    uint64_t mixed = ((uint64_t)flow->index << CW_LANE_BITS | lane) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(mixed >> 36) & lanes->mask;
}

static inline bool same_lane(const struct cw_operation *operation, const struct cw_flow *flow, uint32_t lane)
{
    return operation->flow == flow && cw_lane(operation->lane_tag) == lane;
}

/* The place of a lane's last operation, or the empty place where it would go. */
static struct cw_operation **lane_find(const struct cw_lanes *lanes, const struct cw_flow *flow, uint32_t lane)
{
    uint32_t place = lane_place(lanes, flow, lane);
    while (lanes->table[place] != NULL && !same_lane(lanes->table[place], flow, lane)) {
        place = (place + 1) & lanes->mask;
    }
    return &lanes->table[place];
}

/* Empties a place and moves up what had been pushed past it. */
static void lane_erase(struct cw_lanes *lanes, struct cw_operation **found)
{
    uint32_t hole = (uint32_t)(found - lanes->table);
    lanes->table[hole] = NULL;
    for (uint32_t place = (hole + 1) & lanes->mask; lanes->table[place] != NULL; place = (place + 1) & lanes->mask) {
        struct cw_operation *moved = lanes->table[place];
        uint32_t home = lane_place(lanes, moved->flow, cw_lane(moved->lane_tag));
        if (((place - home) & lanes->mask) >= ((place - hole) & lanes->mask)) {
            lanes->table[hole] = moved;
            lanes->table[place] = NULL;
            hole = place;
        }
    }
}

/* ---- opening and retiring ---- */

/* Operations that go by packets and are not held back are in the sender's list, by number. The others are in the queue
 * pair's list, in the order of posting, and have no number: the window of numbers must not wait for the set-up of a
 * queue pair. */
static inline bool is_numbered(const struct cw_operation *operation)
{
    return !operation->by_rdma && !operation->is_held;
}

static void enter_lane(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    struct cw_operation **last = lane_find(&endpoint->lanes, operation->flow, cw_lane(operation->lane_tag));
    operation->in_lanes = true;
    if (*last != NULL) {
        struct cw_operation *before = *last;
        operation->waits_for_lane = true;
        before->successor = operation;
        operation->is_held =
            operation->by_rdma ? !before->by_rdma || !before->is_queued : before->by_rdma || before->is_held;
        if (is_numbered(operation)) {
            operation->predecessor = (uint16_t)(operation->flow->sender.put_next - before->number);
        }
    }
    *last = operation;
}

static inline bool number_free(const struct cw_flow *flow, uint32_t reserved)
{
    const struct cw_sender *sender = &flow->sender;
    uint32_t window = flow->state == CW_PEER_ESTABLISHED ? flow->session.put_window : CW_PUT_WINDOW;
    return sender->open_first == NULL || sender->put_next - sender->open_first->number + reserved < window;
}

bool cw_operation_numbers_free(const struct cw_flow *flow, uint32_t count)
{
    return number_free(flow, count - 1);
}

/* Whether the flow may have another operation: at most as many as are left for all others (dynamic thresholds,
 * Choudhury and Hahne 1998), so that a peer that stops leaves room for the others. */
static inline bool has_share(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    uint32_t available = cw_pool_available(&endpoint->operations);
    return available > CW_OPERATIONS_RESERVED && cw_operations_open(flow) < available - CW_OPERATIONS_RESERVED;
}

/* Last of the open operations of its list. */
static void link_open(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_operation *operation)
{
    struct cw_rdma_flow *rdma = flow->rdma;
    bool in_sender = is_numbered(operation);
    struct cw_operation **first = in_sender ? &flow->sender.open_first : &rdma->open_first;
    struct cw_operation **last = in_sender ? &flow->sender.open_last : &rdma->open_last;
    operation->open_previous = *last;
    operation->open_next = NULL;
    *(*last != NULL ? &(*last)->open_next : first) = operation;
    *last = operation;
    if (in_sender) {
        flow->sender.open_count++;
    } else {
        rdma->open_count++;
        endpoint->rdma->open_count++;
    }
}

struct cw_operation *cw_operation_open(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_operation_kind kind,
                                       uint32_t lane_tag, uint32_t place)
{
    bool internal = (place & CW_OPERATION_INTERNAL) != 0;
    bool by_rdma = (place & CW_OPERATION_BY_RDMA) != 0;
    if ((!by_rdma && !number_free(flow, internal ? 0 : CW_PUT_WINDOW_RESERVED)) ||
        (!internal && !has_share(endpoint, flow))) {
        return NULL;
    }
    struct cw_operation *operation = cw_pool_acquire(&endpoint->operations);
    if (operation == NULL) {
        return NULL;
    }
    memset(operation, 0, offsetof(struct cw_operation, bytes_inline));
    operation->flow = flow;
    operation->kind = (uint8_t)kind;
    operation->lane_tag = lane_tag;
    operation->by_rdma = by_rdma;
    if ((place & CW_OPERATION_ORDERED) != 0) {
        enter_lane(endpoint, operation);
    }
    operation->number = is_numbered(operation) ? flow->sender.put_next++ : 0;
    link_open(endpoint, flow, operation);
    return operation;
}

static void unlink_open(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    struct cw_sender *sender = &operation->flow->sender;
    struct cw_rdma_flow *rdma = operation->flow->rdma;
    struct cw_operation *previous = operation->open_previous;
    struct cw_operation *next = operation->open_next;
    bool in_sender = is_numbered(operation);
    *(previous != NULL ? &previous->open_next : in_sender ? &sender->open_first : &rdma->open_first) = next;
    *(next != NULL ? &next->open_previous : in_sender ? &sender->open_last : &rdma->open_last) = previous;
    if (in_sender) {
        sender->open_count--;
    } else {
        rdma->open_count--;
        endpoint->rdma->open_count--;
    }
}

/* An operation that was held back continues: to be sent, or to its turn for a slot. */
static void resume(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    if (operation->is_wanted) {
        operation->is_wanted = false;
        cw_operation_queue_up(endpoint, operation);
    } else if (operation->kind == CW_OPERATION_MESSAGE) {
        cw_messages_resume(endpoint, operation);
    }
}

/* One that was held back gets its number. False: none is free. */
static bool number_assign(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    struct cw_flow *flow = operation->flow;
    if (!number_free(flow, 0) || (operation->kind == CW_OPERATION_GET && !cw_get_number(endpoint, operation))) {
        flow->rdma->is_short = true;
        endpoint->rdma->ops->retry(endpoint->rdma, flow);
        return false;
    }
    unlink_open(endpoint, operation);
    operation->is_held = false;
    operation->number = flow->sender.put_next++;
    link_open(endpoint, flow, operation);
    resume(endpoint, operation);
    return true;
}

/* The one before it in its lane is retired. With it go those behind it that it held back alone. */
static void let_go(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    if (operation->by_rdma) {
        operation->is_held = false;
        resume(endpoint, operation);
        return;
    }
    operation->predecessor = 0;
    while (number_assign(endpoint, operation)) {
        struct cw_operation *successor = operation->successor;
        if (successor == NULL || !successor->is_held || successor->by_rdma) {
            return;
        }
        successor->predecessor = (uint16_t)(operation->flow->sender.put_next - operation->number);
        operation = successor;
    }
}

/* Gives the event of a finished operation. False: no room. */
static bool deliver(struct cw_endpoint *endpoint, const struct cw_operation *operation)
{
    struct cw_event *event = cw_events_reserve(&endpoint->events);
    if (event == NULL) {
        return false;
    }
    *event = (struct cw_event){
        .kind = operation->kind == CW_OPERATION_GET ? CW_EVENT_GET : CW_EVENT_COMPLETE,
        .status = operation->status,
        .peer = operation->flow->index,
        .lane_tag = operation->lane_tag,
        .region = operation->kind == CW_OPERATION_GET ? operation->local.token : operation->token,
        .offset = operation->kind == CW_OPERATION_GET ? operation->local.offset : operation->offset,
        .bytes = operation->bytes,
        .context = operation->context,
    };
    cw_events_publish(&endpoint->events);
    return true;
}

static inline bool wants_event(const struct cw_operation *operation)
{
    bool user = operation->kind == CW_OPERATION_PUT || operation->kind == CW_OPERATION_MESSAGE ||
                operation->kind == CW_OPERATION_GET;
    return user && (operation->signal || operation->status < 0);
}

/* The operation is off its flow: a notification is left, if one is wanted. */
static void finish(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    if (wants_event(operation) && (endpoint->undelivered.first != NULL || !deliver(endpoint, operation))) {
        cw_operation_push(&endpoint->undelivered, operation);
        return;
    }
    cw_pool_release(&endpoint->operations, operation);
}

uint32_t cw_operations_deliver(struct cw_endpoint *endpoint)
{
    uint32_t count = 0;
    while (endpoint->undelivered.first != NULL && deliver(endpoint, endpoint->undelivered.first)) {
        cw_pool_release(&endpoint->operations, cw_operation_pop(&endpoint->undelivered));
        count++;
    }
    return count;
}

static void release_source(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    if (operation->region != NULL) {
        operation->region->users--;
        operation->region = NULL;
    }
    if (operation->kind == CW_OPERATION_GET && !operation->by_rdma) {
        cw_get_release(endpoint, operation);
    }
}

/* Complete and first in its lane: its number is free, and so is the next in the lane if that is complete too. */
static void retire(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    while (operation != NULL && operation->complete && !operation->waits_for_lane) {
        struct cw_operation *successor = operation->successor;
        if (successor != NULL) {
            successor->waits_for_lane = false;
        } else if (operation->in_lanes) {
            lane_erase(&endpoint->lanes, lane_find(&endpoint->lanes, operation->flow, cw_lane(operation->lane_tag)));
        }
        unlink_open(endpoint, operation);
        finish(endpoint, operation);
        if (successor != NULL && successor->is_held) {
            let_go(endpoint, successor);
        }
        operation = successor;
    }
}

static void complete(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    operation->complete = true;
    release_source(endpoint, operation);
    retire(endpoint, operation);
}

void cw_operation_acknowledged(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    assert(operation->packets_open > 0);
    operation->packets_open--;
    if (operation->packets_open > 0 || !operation->sent || operation->complete) {
        return;
    }
    if (operation->kind == CW_OPERATION_GET && operation->status == 0 && !operation->answered) {
        return; /* until the answer is here */
    }
    complete(endpoint, operation);
}

void cw_operation_done(struct cw_endpoint *endpoint, struct cw_operation *operation, int status)
{
    operation->status = (int16_t)status;
    operation->sent = true;
    complete(endpoint, operation);
}

void cw_operation_answered(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    operation->answered = true;
    if (operation->packets_open == 0) {
        complete(endpoint, operation);
    } else {
        cw_get_release(endpoint, operation); /* the request itself is acknowledged any moment now */
    }
}

/* A skipped notice is no loss, since COMPLETE follows: the half of the queue that must be free is reserved for
 * others. */
void cw_operation_left(struct cw_endpoint *endpoint, const struct cw_operation *operation)
{
    if (!operation->signal_sent || cw_events_count(&endpoint->events) > endpoint->events.mask / 2) {
        return;
    }
    struct cw_event *event = cw_events_reserve(&endpoint->events);
    if (event != NULL) {
        *event = (struct cw_event){
            .kind = CW_EVENT_SENT,
            .peer = operation->flow->index,
            .lane_tag = operation->lane_tag,
            .context = operation->context,
        };
        cw_events_publish(&endpoint->events);
    }
}

/* ---- queues ---- */

void cw_operation_push_ordered(struct cw_operation_queue *queue, struct cw_operation *operation)
{
    if (queue->first == NULL || queue->last->number < operation->number) {
        cw_operation_push(queue, operation);
        return;
    }
    struct cw_operation **link = &queue->first;
    while ((*link)->number < operation->number) {
        link = &(*link)->next;
    }
    operation->next = *link;
    *link = operation;
}

/* To the queue pair, together with those that were held back until this one starts. */
static void queue_rdma(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    while (operation != NULL) {
        operation->is_queued = true;
        endpoint->rdma->ops->queue(endpoint->rdma, operation);
        struct cw_operation *successor = operation->successor;
        bool follows = successor != NULL && successor->is_held && successor->by_rdma;
        if (follows) {
            successor->is_held = false;
        }
        operation = NULL;
        if (follows && successor->is_wanted) {
            operation = successor;
        } else if (follows && successor->kind == CW_OPERATION_MESSAGE) {
            cw_messages_resume(endpoint, successor);
        }
    }
}

void cw_operation_queue_up(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    struct cw_flow *flow = operation->flow;
    if (operation->is_held) {
        operation->is_wanted = true;
        return;
    }
    if (operation->by_rdma) {
        queue_rdma(endpoint, operation);
        return;
    }
    uint32_t payload_bytes_max =
        flow->state == CW_PEER_ESTABLISHED ? flow->session.payload_bytes_max : endpoint->payload_bytes_max;
    bool bears_data = operation->kind <= CW_OPERATION_REPLY && operation->kind != CW_OPERATION_GET;
    if (operation->kind > CW_OPERATION_REPLY) {
        cw_operation_push(&flow->sender.queue_credit_frames, operation);
    } else if (bears_data && operation->bytes > payload_bytes_max - sizeof(struct cw_wire_put)) {
        cw_operation_push_ordered(&flow->sender.queue_bulk, operation);
    } else {
        cw_operation_push_ordered(&flow->sender.queue_short, operation);
    }
    cw_flow_wake(endpoint, flow);
}

/* Packets carry what was the queue pair's. */
static void turn_to_packets(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    for (struct cw_operation *operation = flow->rdma->open_first; operation != NULL; operation = operation->open_next) {
        if (operation->complete || !operation->by_rdma) {
            continue; /* it only waits for those before it in its lane */
        }
        operation->by_rdma = operation->sent = false;
        operation->is_held = true;
        operation->is_wanted = operation->is_wanted || operation->is_queued;
        operation->is_queued = false;
        operation->position = 0;
        operation->cursor = (struct cw_source_cursor){0};
        if (operation->kind == CW_OPERATION_MESSAGE && operation->token != 0) {
            cw_messages_ungrant(endpoint, operation);
            cw_messages_reclaim(operation); /* lower numbers come first */
            operation->is_wanted = false;
        }
    }
}

void cw_operations_number(struct cw_endpoint *endpoint, struct cw_flow *flow, bool to_packets)
{
    struct cw_operation *next;
    flow->rdma->is_short = false;
    if (to_packets) {
        turn_to_packets(endpoint, flow);
    }
    for (struct cw_operation *operation = flow->rdma->open_first; operation != NULL; operation = next) {
        next = operation->open_next;
        if (!operation->by_rdma && !operation->waits_for_lane && !operation->complete) {
            operation->predecessor = 0;
            (void)number_assign(endpoint, operation);
        }
    }
    cw_messages_pump(endpoint, flow); /* slots may have come back */
}

bool cw_operation_queue_remove(struct cw_operation_queue *queue, struct cw_operation *operation)
{
    struct cw_operation *before = NULL;
    for (struct cw_operation *at = queue->first; at != NULL; before = at, at = at->next) {
        if (at != operation) {
            continue;
        }
        if (before == NULL) {
            queue->first = at->next;
        } else {
            before->next = at->next;
        }
        if (queue->last == at) {
            queue->last = before;
        }
        return true;
    }
    return false;
}

void cw_operation_reject(struct cw_endpoint *endpoint, struct cw_operation *operation, int status)
{
    if (operation->status < 0 || operation->complete) {
        return;
    }
    operation->status = (int16_t)status;
    if (!operation->sent) {
        cw_operation_queue_remove(&operation->flow->sender.queue_bulk, operation);
        operation->sent = true;
    }
    /* the packet that was refused is still open: it goes out again as a void frame, and its acknowledgement completes
     * the operation */
    assert(operation->packets_open > 0 || operation->kind == CW_OPERATION_GET);
    if (operation->packets_open == 0) {
        complete(endpoint, operation);
    }
}

void cw_operations_abort(struct cw_endpoint *endpoint, struct cw_flow *flow, int status)
{
    struct cw_sender *sender = &flow->sender;
    struct cw_operation *operation;
    while ((operation = sender->open_first) != NULL ||
           (operation = flow->rdma != NULL ? flow->rdma->open_first : NULL) != NULL) {
        if (operation->in_lanes) {
            struct cw_operation **last = lane_find(&endpoint->lanes, flow, cw_lane(operation->lane_tag));
            if (*last == operation) {
                lane_erase(&endpoint->lanes, last);
            }
        }
        release_source(endpoint, operation);
        unlink_open(endpoint, operation);
        if (operation->status == 0 && !operation->complete) {
            operation->status = (int16_t)status;
        }
        finish(endpoint, operation);
    }
    sender->queue_short.first = NULL;
    sender->queue_bulk.first = NULL;
    sender->queue_credit_frames.first = NULL;
    sender->queue_credit.first = NULL;
    sender->queue_credit_count = 0;
}
