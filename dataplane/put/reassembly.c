#include "dataplane/put/reassembly.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/put/get.h"
#include "dataplane/put/message.h"

enum { PACKET_BLOCKS = 3 /* of windows, that noting a packet may take: one for itself, two for its frames */ };

int cw_reassemblies_init(struct cw_reassemblies *reassemblies, uint32_t count)
{
    uint32_t buckets = 16;
    while (buckets < count) {
        buckets *= 2;
    }
    reassemblies->mask = buckets - 1;
    reassemblies->by_number = calloc(buckets, sizeof(struct cw_reassembly *));
    reassemblies->by_predecessor = calloc(buckets, sizeof(struct cw_reassembly *));
    if (reassemblies->by_number == NULL || reassemblies->by_predecessor == NULL) {
        return CW_ERROR_MEMORY;
    }
    return cw_pool_init(&reassemblies->pool, count, sizeof(struct cw_reassembly));
}

void cw_reassemblies_dispose(struct cw_reassemblies *reassemblies)
{
    free(reassemblies->by_number);
    free(reassemblies->by_predecessor);
    cw_pool_dispose(&reassemblies->pool);
}

static inline uint32_t bucket_of(const struct cw_reassemblies *reassemblies, const struct cw_flow *flow,
                                 uint64_t number)
{
    return (uint32_t)(((number + ((uint64_t)flow->index << 20)) * 0x9e3779b97f4a7c15ull) >> 36) & reassemblies->mask;
}

static struct cw_reassembly *find(const struct cw_reassemblies *reassemblies, const struct cw_flow *flow,
                                  uint64_t number)
{
    struct cw_reassembly *reassembly = reassemblies->by_number[bucket_of(reassemblies, flow, number)];
    while (reassembly != NULL && (reassembly->flow != flow || reassembly->number != number)) {
        reassembly = reassembly->next_by_number;
    }
    return reassembly;
}

/* The one that is held back by `number`, taken out of its bucket; a lane has at most one. */
static struct cw_reassembly *successor_pop(struct cw_reassemblies *reassemblies, const struct cw_flow *flow,
                                           uint64_t number)
{
    struct cw_reassembly **link = &reassemblies->by_predecessor[bucket_of(reassemblies, flow, number)];
    for (; *link != NULL; link = &(*link)->next_by_predecessor) {
        struct cw_reassembly *reassembly = *link;
        if (reassembly->flow == flow && reassembly->predecessor == number) {
            *link = reassembly->next_by_predecessor;
            return reassembly;
        }
    }
    return NULL;
}

static void remove_by_number(struct cw_reassemblies *reassemblies, struct cw_reassembly *reassembly)
{
    struct cw_reassembly **link =
        &reassemblies->by_number[bucket_of(reassemblies, reassembly->flow, reassembly->number)];
    while (*link != reassembly) {
        link = &(*link)->next_by_number;
    }
    *link = reassembly->next_by_number;
}

#ifdef CW_DEBUG_OVERLAP
/* Counts puts that are in flight to bytes another one is in flight to. */
static void check_overlap(struct cw_endpoint *endpoint, const struct cw_reassembly_frame *frame)
{
    const struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    for (uint32_t bucket = 0; bucket <= reassemblies->mask; bucket++) {
        for (const struct cw_reassembly *at = reassemblies->by_number[bucket]; at != NULL; at = at->next_by_number) {
            if (at->state == CW_REASSEMBLY_PARTIAL && at->token == frame->token && frame->total > 0 &&
                at->offset < frame->offset + frame->total && frame->offset < at->offset + at->total) {
                cw_count(endpoint, CW_COUNTER_OVERLAPS, 1);
            }
        }
    }
}
#endif

static struct cw_reassembly *create(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                    const struct cw_reassembly_frame *frame)
{
#ifdef CW_DEBUG_OVERLAP
    check_overlap(endpoint, frame);
#endif
    struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    struct cw_reassembly *reassembly = cw_pool_acquire(&reassemblies->pool);
    assert(reassembly != NULL); /* cw_reassemblies_room */
    *reassembly = (struct cw_reassembly){
        .flow = flow,
        .number = frame->number,
        .predecessor = frame->predecessor,
        .total = frame->total,
        .token = frame->token,
        .offset = frame->offset,
        .lane_tag = frame->lane_tag,
        .reply = frame->reply,
        .state = CW_REASSEMBLY_PARTIAL,
    };
    struct cw_reassembly **bucket = &reassemblies->by_number[bucket_of(reassemblies, flow, frame->number)];
    reassembly->next_by_number = *bucket;
    *bucket = reassembly;
    flow->receiver.reassemblies++;
    if (endpoint->messages.region != NULL && frame->token == endpoint->messages.region->token) {
        cw_messages_reserve(endpoint, frame);
    }
    return reassembly;
}

bool cw_reassemblies_plenty(const struct cw_endpoint *endpoint, uint32_t count)
{
    /* one for the oldest put of each flow is kept */
    return count == 0 || cw_pool_available(&endpoint->reassemblies.pool) >= count + endpoint->flows.fresh;
}

bool cw_reassemblies_room(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t first,
                          uint32_t count, bool at_once)
{
    const struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    if (count == 1 && find(reassemblies, flow, first) != NULL) {
        return true;
    }
    bool events_free = reassemblies->ready_first == NULL && endpoint->rdma_order == UINT64_MAX &&
                       cw_events_count(&endpoint->events) + count <= endpoint->config.event_count_max;
    bool blocks_free = cw_pool_available(&endpoint->blocks) >= PACKET_BLOCKS;
    return first <= flow->receiver.puts.base && cw_pool_available(&reassemblies->pool) > 0 &&
           (count == 1 || (at_once && events_free && blocks_free));
}

bool cw_reassembly_known(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number)
{
    return endpoint->reassemblies.pool.used > 0 && find(&endpoint->reassemblies, flow, number) != NULL;
}

bool cw_reassembly_finished(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number)
{
    const struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    const struct cw_reassembly *reassembly = reassemblies->pool.used == 0 ? NULL : find(reassemblies, flow, number);
    return reassembly != NULL && reassembly->state != CW_REASSEMBLY_PARTIAL;
}

static bool fits(const struct cw_reassembly *reassembly, const struct cw_reassembly_frame *frame)
{
    return reassembly->total == frame->total && reassembly->token == frame->token &&
           reassembly->offset == frame->offset && reassembly->lane_tag == frame->lane_tag &&
           reassembly->predecessor == frame->predecessor && reassembly->reply == frame->reply &&
           frame->bytes <= reassembly->total - reassembly->received;
}

bool cw_reassembly_consistent(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                              const struct cw_reassembly_frame *frame)
{
    const struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    const struct cw_reassembly *reassembly =
        reassemblies->pool.used == 0 ? NULL : find(reassemblies, flow, frame->number);
    if (reassembly == NULL) {
        return true;
    }
    assert(reassembly->state == CW_REASSEMBLY_PARTIAL); /* cw_reassembly_finished */
    return frame->void_put || fits(reassembly, frame);
}

struct cw_reassembly *cw_reassembly_partial(struct cw_endpoint *endpoint, const struct cw_flow *flow,
                                            const struct cw_reassembly_frame *frame)
{
    struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    struct cw_reassembly *reassembly = reassemblies->pool.used == 0 ? NULL : find(reassemblies, flow, frame->number);
    return reassembly != NULL && reassembly->state == CW_REASSEMBLY_PARTIAL && fits(reassembly, frame) ? reassembly
                                                                                                       : NULL;
}

static inline bool mark_done(struct cw_endpoint *endpoint, struct cw_flow *flow,
                             const struct cw_reassembly_frame *frame)
{
    return frame->detached || cw_window_mark(&flow->receiver.puts, &endpoint->blocks, frame->number);
}

/* Reports a put that is complete and has its turn. False: no room in the event queue. */
static bool notify(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_reassembly_frame *frame)
{
    if (frame->void_put || frame->reply != 0) {
        if (!mark_done(endpoint, flow, frame)) {
            return false;
        }
        if (frame->reply != 0 && !frame->detached) {
            if (frame->void_put) {
                cw_get_fail(endpoint, frame->reply, CW_ERROR_REMOTE_ACCESS);
            } else {
                cw_get_finish(endpoint, frame->reply);
            }
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

/* A reassembly record has its turn, and with it those of its lane that wait for it in a row: at once, since the sender
 * may take the whole row for done and post the next in the lane without naming a predecessor. */
static void make_ready(struct cw_endpoint *endpoint, struct cw_reassembly *reassembly)
{
    struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    for (; reassembly != NULL; reassembly = successor_pop(reassemblies, reassembly->flow, reassembly->number)) {
        reassembly->state = CW_REASSEMBLY_READY;
        reassembly->order = endpoint->notify_order++;
        reassembly->next_ready = NULL;
        if (reassemblies->ready_first == NULL) {
            reassemblies->ready_first = reassembly;
        } else {
            reassemblies->ready_last->next_ready = reassembly;
        }
        reassemblies->ready_last = reassembly;
    }
}

uint32_t cw_reassemblies_deliver(struct cw_endpoint *endpoint)
{
    struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    uint32_t count = 0;
    while (reassemblies->ready_first != NULL && reassemblies->ready_first->order < endpoint->rdma_order) {
        struct cw_reassembly *reassembly = reassemblies->ready_first;
        struct cw_flow *flow = reassembly->flow;
        struct cw_reassembly_frame frame = {.number = reassembly->number,
                                            .total = reassembly->total,
                                            .token = reassembly->token,
                                            .offset = reassembly->offset,
                                            .lane_tag = reassembly->lane_tag,
                                            .reply = reassembly->reply,
                                            .void_put = reassembly->void_put,
                                            .detached = reassembly->detached};
        if (!notify(endpoint, flow, &frame)) {
            break;
        }
        count++;
        reassemblies->ready_first = reassembly->next_ready;
        if (!reassembly->detached) {
            remove_by_number(reassemblies, reassembly);
            flow->receiver.reassemblies--;
        }
        cw_pool_release(&reassemblies->pool, reassembly);
    }
    return count;
}

bool cw_reassembly_passable(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number,
                            uint32_t count)
{
    return count == 0 || (count == 1 && number == flow->receiver.puts.base) ||
           cw_pool_available(&endpoint->blocks) >= PACKET_BLOCKS;
}

void cw_reassembly_pass(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t number)
{
    bool marked = cw_window_mark(&flow->receiver.puts, &endpoint->blocks, number);
    assert(marked); /* cw_reassembly_passable */
    (void)marked;
}

static inline bool has_turn(const struct cw_reassemblies *reassemblies, const struct cw_flow *flow, uint64_t number,
                            uint64_t predecessor)
{
    if (predecessor == number || cw_window_seen(&flow->receiver.puts, predecessor)) {
        return true;
    }
    const struct cw_reassembly *before =
        reassemblies->ready_first == NULL ? NULL : find(reassemblies, flow, predecessor);
    return before != NULL && before->state == CW_REASSEMBLY_READY; /* it is reported before this one */
}

static void complete(struct cw_endpoint *endpoint, struct cw_reassembly *reassembly)
{
    struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    if (has_turn(reassemblies, reassembly->flow, reassembly->number, reassembly->predecessor)) {
        make_ready(endpoint, reassembly);
        cw_reassemblies_deliver(endpoint);
        return;
    }
    reassembly->state = CW_REASSEMBLY_HELD;
    struct cw_reassembly **bucket =
        &reassemblies->by_predecessor[bucket_of(reassemblies, reassembly->flow, reassembly->predecessor)];
    reassembly->next_by_predecessor = *bucket;
    *bucket = reassembly;
}

void cw_reassembly_place(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_reassembly_frame *frame)
{
    struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    bool whole = frame->bytes == frame->total;
    if (whole && !frame->void_put && reassemblies->ready_first == NULL && endpoint->rdma_order == UINT64_MAX &&
        has_turn(reassemblies, flow, frame->number, frame->predecessor) && notify(endpoint, flow, frame)) {
        /* the common case: no record. Records held back by this one follow. */
        struct cw_reassembly *successor =
            reassemblies->pool.used == 0 ? NULL : successor_pop(reassemblies, flow, frame->number);
        if (successor != NULL) {
            make_ready(endpoint, successor);
            cw_reassemblies_deliver(endpoint);
        }
        return;
    }
    struct cw_reassembly *reassembly = whole && !frame->void_put ? NULL : find(reassemblies, flow, frame->number);
    if (reassembly == NULL) {
        reassembly = create(endpoint, flow, frame);
    }
    reassembly->received += frame->bytes;
    reassembly->void_put = frame->void_put;
    if (reassembly->received == reassembly->total || frame->void_put) {
        complete(endpoint, reassembly);
    }
}

/* Complete records leave the tables, which belong to the session, and keep their place in the queue. */
static void detach_ready(struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    for (struct cw_reassembly *reassembly = reassemblies->ready_first; reassembly != NULL;
         reassembly = reassembly->next_ready) {
        if (reassembly->flow != flow || reassembly->detached) {
            continue;
        }
        remove_by_number(reassemblies, reassembly);
        reassembly->detached = true;
        if (endpoint->messages.region != NULL && reassembly->token == endpoint->messages.region->token &&
            !reassembly->void_put) {
            cw_messages_fill(endpoint, reassembly->offset); /* the slot is no longer the sender's */
        }
    }
}

void cw_reassemblies_abort(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_reassemblies *reassemblies = &endpoint->reassemblies;
    cw_reassemblies_deliver(endpoint);
    detach_ready(endpoint, flow);
    flow->receiver.reassemblies = 0;
    if (reassemblies->pool.used == 0) {
        return;
    }
    /* both tables, one after the other: an arrival lies in different places of the two */
    for (uint32_t i = 0; i <= reassemblies->mask; i++) {
        for (struct cw_reassembly **link = &reassemblies->by_predecessor[i]; *link != NULL;) {
            if ((*link)->flow == flow) {
                *link = (*link)->next_by_predecessor;
            } else {
                link = &(*link)->next_by_predecessor;
            }
        }
    }
    for (uint32_t i = 0; i <= reassemblies->mask; i++) {
        for (struct cw_reassembly **link = &reassemblies->by_number[i]; *link != NULL;) {
            struct cw_reassembly *reassembly = *link;
            if (reassembly->flow == flow) {
                *link = reassembly->next_by_number;
                cw_pool_release(&reassemblies->pool, reassembly);
            } else {
                link = &reassembly->next_by_number;
            }
        }
    }
}
