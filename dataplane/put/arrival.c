#include "dataplane/put/arrival.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/core/endpoint.h"

enum { PACKET_BLOCKS = 3 /* of windows, that noting a packet may take: one for itself, two for its frames */ };

int cw_arrivals_init(struct cw_arrivals *arrivals, uint32_t count)
{
    uint32_t buckets = 16;
    while (buckets < count) {
        buckets *= 2;
    }
    arrivals->mask = buckets - 1;
    arrivals->by_number = calloc(buckets, sizeof(struct cw_arrival *));
    arrivals->by_predecessor = calloc(buckets, sizeof(struct cw_arrival *));
    if (arrivals->by_number == NULL || arrivals->by_predecessor == NULL) {
        return CW_ERROR_MEMORY;
    }
    return cw_pool_init(&arrivals->pool, count, sizeof(struct cw_arrival));
}

void cw_arrivals_dispose(struct cw_arrivals *arrivals)
{
    free(arrivals->by_number);
    free(arrivals->by_predecessor);
    cw_pool_dispose(&arrivals->pool);
}

static inline uint32_t bucket_of(const struct cw_arrivals *arrivals, const struct cw_flow *flow, uint64_t number)
{
    return (uint32_t)(((number + ((uint64_t)flow->index << 20)) * 0x9e3779b97f4a7c15ull) >> 36) & arrivals->mask;
}

static struct cw_arrival *find(const struct cw_arrivals *arrivals, const struct cw_flow *flow, uint64_t number)
{
    struct cw_arrival *arrival = arrivals->by_number[bucket_of(arrivals, flow, number)];
    while (arrival != NULL && (arrival->flow != flow || arrival->number != number)) {
        arrival = arrival->next_by_number;
    }
    return arrival;
}

/* The one that is held back by `number`, taken out of its bucket; a lane has at most one. */
static struct cw_arrival *take_successor(struct cw_arrivals *arrivals, const struct cw_flow *flow, uint64_t number)
{
    struct cw_arrival **link = &arrivals->by_predecessor[bucket_of(arrivals, flow, number)];
    for (; *link != NULL; link = &(*link)->next_by_predecessor) {
        struct cw_arrival *arrival = *link;
        if (arrival->flow == flow && arrival->predecessor == number) {
            *link = arrival->next_by_predecessor;
            return arrival;
        }
    }
    return NULL;
}

static void remove_by_number(struct cw_arrivals *arrivals, struct cw_arrival *arrival)
{
    struct cw_arrival **link = &arrivals->by_number[bucket_of(arrivals, arrival->flow, arrival->number)];
    while (*link != arrival) {
        link = &(*link)->next_by_number;
    }
    *link = arrival->next_by_number;
}

#ifdef CW_DEBUG_OVERLAP
/* Counts puts that are in flight to bytes another one is in flight to. */
static void check_overlap(struct cw_endpoint *endpoint, const struct cw_arrival_frame *frame)
{
    const struct cw_arrivals *arrivals = &endpoint->arrivals;
    for (uint32_t bucket = 0; bucket <= arrivals->mask; bucket++) {
        for (const struct cw_arrival *at = arrivals->by_number[bucket]; at != NULL; at = at->next_by_number) {
            if (at->state == CW_ARRIVAL_PARTIAL && at->token == frame->token && frame->total > 0 &&
                at->offset < frame->offset + frame->total && frame->offset < at->offset + at->total) {
                cw_count(endpoint, CW_COUNTER_OVERLAPS, 1);
            }
        }
    }
}
#endif

static struct cw_arrival *create(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                 const struct cw_arrival_frame *frame)
{
#ifdef CW_DEBUG_OVERLAP
    check_overlap(endpoint, frame);
#endif
    struct cw_arrivals *arrivals = &endpoint->arrivals;
    struct cw_arrival *arrival = cw_pool_take(&arrivals->pool);
    assert(arrival != NULL); /* cw_arrivals_room */
    *arrival = (struct cw_arrival){
        .flow = flow,
        .number = frame->number,
        .predecessor = frame->predecessor,
        .total = frame->total,
        .token = frame->token,
        .offset = frame->offset,
        .lane_tag = frame->lane_tag,
        .reply = frame->reply,
        .state = CW_ARRIVAL_PARTIAL,
    };
    struct cw_arrival **bucket = &arrivals->by_number[bucket_of(arrivals, flow, frame->number)];
    arrival->next_by_number = *bucket;
    *bucket = arrival;
    flow->receiver.arrivals++;
    if (endpoint->messages.region != NULL && frame->token == endpoint->messages.region->token) {
        cw_messages_reserve(endpoint, frame);
    }
    return arrival;
}

bool cw_arrivals_plenty(const struct cw_endpoint *endpoint, uint32_t count)
{
    /* one for the oldest put of each flow is kept */
    return count == 0 || cw_pool_available(&endpoint->arrivals.pool) >= count + endpoint->flows.fresh;
}

bool cw_arrivals_room(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t first, uint32_t count,
                      bool at_once)
{
    const struct cw_arrivals *arrivals = &endpoint->arrivals;
    if (count == 1 && find(arrivals, flow, first) != NULL) {
        return true;
    }
    bool events_free =
        arrivals->ready_first == NULL && cw_events_count(&endpoint->events) + count <= endpoint->config.event_count_max;
    bool blocks_free = cw_pool_available(&endpoint->blocks) >= PACKET_BLOCKS;
    return first <= flow->receiver.puts.base && cw_pool_available(&arrivals->pool) > 0 &&
           (count == 1 || (at_once && events_free && blocks_free));
}

bool cw_arrival_known(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number)
{
    return endpoint->arrivals.pool.used > 0 && find(&endpoint->arrivals, flow, number) != NULL;
}

bool cw_arrival_settled(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number)
{
    const struct cw_arrivals *arrivals = &endpoint->arrivals;
    const struct cw_arrival *arrival = arrivals->pool.used == 0 ? NULL : find(arrivals, flow, number);
    return arrival != NULL && arrival->state != CW_ARRIVAL_PARTIAL;
}

bool cw_arrival_consistent(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                           const struct cw_arrival_frame *frame)
{
    const struct cw_arrivals *arrivals = &endpoint->arrivals;
    const struct cw_arrival *arrival = arrivals->pool.used == 0 ? NULL : find(arrivals, flow, frame->number);
    if (arrival == NULL) {
        return true;
    }
    assert(arrival->state == CW_ARRIVAL_PARTIAL); /* cw_arrival_settled */
    return frame->void_put ||
           (arrival->total == frame->total && arrival->token == frame->token && arrival->offset == frame->offset &&
            arrival->lane_tag == frame->lane_tag && arrival->predecessor == frame->predecessor &&
            arrival->reply == frame->reply && frame->bytes <= arrival->total - arrival->received);
}

static inline bool mark_done(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_arrival_frame *frame)
{
    return frame->detached || cw_window_mark(&flow->receiver.puts, &endpoint->blocks, frame->number);
}

/* Tells of a put that is complete and has its turn. False: no room in the event queue. */
static bool notify(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_arrival_frame *frame)
{
    if (frame->void_put || frame->reply != 0) {
        if (!mark_done(endpoint, flow, frame)) {
            return false;
        }
        if (!frame->void_put && !frame->detached) {
            cw_get_finish(endpoint, frame->reply);
        }
        return true;
    }
    struct cw_event *event = cw_events_reserve(&endpoint->events);
    if (event == NULL || !mark_done(endpoint, flow, frame)) {
        return false;
    }
    struct cw_message_pool *messages = &endpoint->messages;
    event->status = CW_OK;
    event->peer = flow->index;
    event->lane_tag = frame->lane_tag;
    event->region = frame->token;
    event->offset = frame->offset;
    event->bytes = frame->total;
    if (messages->region != NULL && frame->token == messages->region->token) {
        event->kind = CW_EVENT_MESSAGE;
        event->slot = cw_messages_fill(endpoint, frame->offset);
        event->data = messages->memory + frame->offset;
    } else {
        event->kind = CW_EVENT_PUT;
        event->slot = 0;
        event->context = 0;
    }
    cw_events_publish(&endpoint->events);
    cw_count(endpoint, CW_COUNTER_PUTS_ARRIVED, 1);
    return true;
}

/* An arrival has its turn, and with it those of its lane that wait for it in a row: at once, since the sender may take
 * the whole row for done and post the next in the lane without naming a predecessor. */
static void make_ready(struct cw_arrivals *arrivals, struct cw_arrival *arrival)
{
    for (; arrival != NULL; arrival = take_successor(arrivals, arrival->flow, arrival->number)) {
        arrival->state = CW_ARRIVAL_READY;
        arrival->next_ready = NULL;
        if (arrivals->ready_first == NULL) {
            arrivals->ready_first = arrival;
        } else {
            arrivals->ready_last->next_ready = arrival;
        }
        arrivals->ready_last = arrival;
    }
}

uint32_t cw_arrivals_deliver(struct cw_endpoint *endpoint)
{
    struct cw_arrivals *arrivals = &endpoint->arrivals;
    uint32_t count = 0;
    while (arrivals->ready_first != NULL) {
        struct cw_arrival *arrival = arrivals->ready_first;
        struct cw_flow *flow = arrival->flow;
        struct cw_arrival_frame frame = {.number = arrival->number,
                                         .total = arrival->total,
                                         .token = arrival->token,
                                         .offset = arrival->offset,
                                         .lane_tag = arrival->lane_tag,
                                         .reply = arrival->reply,
                                         .void_put = arrival->void_put,
                                         .detached = arrival->detached};
        if (!notify(endpoint, flow, &frame)) {
            break;
        }
        count++;
        arrivals->ready_first = arrival->next_ready;
        if (!arrival->detached) {
            remove_by_number(arrivals, arrival);
            flow->receiver.arrivals--;
        }
        cw_pool_give(&arrivals->pool, arrival);
    }
    return count;
}

bool cw_arrival_passable(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number,
                         uint32_t count)
{
    return count == 0 || (count == 1 && number == flow->receiver.puts.base) ||
           cw_pool_available(&endpoint->blocks) >= PACKET_BLOCKS;
}

void cw_arrival_pass(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t number)
{
    bool marked = cw_window_mark(&flow->receiver.puts, &endpoint->blocks, number);
    assert(marked); /* cw_arrival_passable */
    (void)marked;
}

static inline bool has_turn(const struct cw_arrivals *arrivals, const struct cw_flow *flow, uint64_t number,
                            uint64_t predecessor)
{
    if (predecessor == number || cw_window_seen(&flow->receiver.puts, predecessor)) {
        return true;
    }
    const struct cw_arrival *before = arrivals->ready_first == NULL ? NULL : find(arrivals, flow, predecessor);
    return before != NULL && before->state == CW_ARRIVAL_READY; /* it will be told before this one */
}

static void complete(struct cw_endpoint *endpoint, struct cw_arrival *arrival)
{
    struct cw_arrivals *arrivals = &endpoint->arrivals;
    if (has_turn(arrivals, arrival->flow, arrival->number, arrival->predecessor)) {
        make_ready(arrivals, arrival);
        cw_arrivals_deliver(endpoint);
        return;
    }
    arrival->state = CW_ARRIVAL_HELD;
    struct cw_arrival **bucket = &arrivals->by_predecessor[bucket_of(arrivals, arrival->flow, arrival->predecessor)];
    arrival->next_by_predecessor = *bucket;
    *bucket = arrival;
}

void cw_arrival_accept(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_arrival_frame *frame)
{
    struct cw_arrivals *arrivals = &endpoint->arrivals;
    bool whole = frame->bytes == frame->total;
    if (whole && !frame->void_put && arrivals->ready_first == NULL &&
        has_turn(arrivals, flow, frame->number, frame->predecessor) && notify(endpoint, flow, frame)) {
        /* the common case: no record. Whoever was held back by this one follows. */
        struct cw_arrival *successor = arrivals->pool.used == 0 ? NULL : take_successor(arrivals, flow, frame->number);
        if (successor != NULL) {
            make_ready(arrivals, successor);
            cw_arrivals_deliver(endpoint);
        }
        return;
    }
    struct cw_arrival *arrival = whole && !frame->void_put ? NULL : find(arrivals, flow, frame->number);
    if (arrival == NULL) {
        arrival = create(endpoint, flow, frame);
    }
    arrival->received += frame->bytes;
    arrival->void_put = frame->void_put;
    if (arrival->received == arrival->total || frame->void_put) {
        complete(endpoint, arrival);
    }
}

/* What is complete leaves the tables, which belong to the session, and keeps its place in the queue. */
static void detach_ready(struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    struct cw_arrivals *arrivals = &endpoint->arrivals;
    for (struct cw_arrival *arrival = arrivals->ready_first; arrival != NULL; arrival = arrival->next_ready) {
        if (arrival->flow != flow || arrival->detached) {
            continue;
        }
        remove_by_number(arrivals, arrival);
        arrival->detached = true;
        if (endpoint->messages.region != NULL && arrival->token == endpoint->messages.region->token &&
            !arrival->void_put) {
            cw_messages_fill(endpoint, arrival->offset); /* the slot is no longer the sender's */
        }
    }
}

void cw_arrivals_abort(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_arrivals *arrivals = &endpoint->arrivals;
    cw_arrivals_deliver(endpoint);
    detach_ready(endpoint, flow);
    flow->receiver.arrivals = 0;
    if (arrivals->pool.used == 0) {
        return;
    }
    /* both tables, one after the other: an arrival lies in different places of the two */
    for (uint32_t i = 0; i <= arrivals->mask; i++) {
        for (struct cw_arrival **link = &arrivals->by_predecessor[i]; *link != NULL;) {
            if ((*link)->flow == flow) {
                *link = (*link)->next_by_predecessor;
            } else {
                link = &(*link)->next_by_predecessor;
            }
        }
    }
    for (uint32_t i = 0; i <= arrivals->mask; i++) {
        for (struct cw_arrival **link = &arrivals->by_number[i]; *link != NULL;) {
            struct cw_arrival *arrival = *link;
            if (arrival->flow == flow) {
                *link = arrival->next_by_number;
                cw_pool_give(&arrivals->pool, arrival);
            } else {
                link = &arrival->next_by_number;
            }
        }
    }
}
