/* The path to ranks of other hosts: an endpoint, turned by its loop. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/pool.h"
#include "dataplane/path/path_private.h"
#include "dataplane/port/error_text.h"

enum {
    WIRE_BURST = 64,
    WIRE_MESSAGES = 2 * CW_CREDIT_FAR_MAX, /* one peer may have half of them: the credit that it lends on a long path */
};

struct path_wire {
    struct cw_pool messages; /* a struct path_wire_operation, and message_bytes_max bytes behind it */
    uint64_t region;         /* of all of them; 0: they are copied into packets */
    struct path_deregistered *deregistered;
    uint32_t *slots; /* of messages that the loop could not take back yet */
    uint32_t slot_count;
    uint32_t slots_max;
};

/* A region that packets still hold on to. */
struct path_deregistered {
    struct path_deregistered *next;
    uint64_t region;
};

int path_wire_create(struct cw_paths *paths)
{
    struct path_wire *wire = calloc(1, sizeof(*wire));
    if (wire == NULL) {
        return CW_ERROR_MEMORY;
    }
    paths->wire = wire;
    uint32_t bytes = (uint32_t)sizeof(struct path_wire_operation) + paths->config.message_bytes_max;
    int status = cw_pool_init(&wire->messages, WIRE_MESSAGES, bytes);
    if (status == CW_OK && paths->config.messages_registered) {
        status = path_wire_register(paths, wire->messages.base, cw_pool_bytes(&wire->messages), CW_REGION_LOCAL,
                                    &wire->region);
    }
    return status;
}

void path_wire_destroy(struct cw_paths *paths)
{
    struct path_wire *wire = paths->wire;
    if (wire == NULL) {
        return;
    }
    while (wire->deregistered != NULL) {
        struct path_deregistered *deregistered = wire->deregistered;
        wire->deregistered = deregistered->next;
        free(deregistered);
    }
    cw_pool_dispose(&wire->messages);
    free(wire->slots);
    free(wire);
    paths->wire = NULL;
}

/* Notes that the endpoint's `peer` is that rank, also when it was noted before. CW_OK, CW_ERROR_MEMORY. */
static int peer_note(struct cw_paths *paths, uint32_t peer, uint32_t rank)
{
    if (peer >= paths->wire_peer_count) {
        uint32_t count = peer + 1;
        uint32_t *grown = realloc(paths->rank_of_wire_peer, count * sizeof(*grown));
        if (grown == NULL) {
            return CW_ERROR_MEMORY;
        }
        for (uint32_t i = paths->wire_peer_count; i < count; i++) {
            grown[i] = UINT32_MAX;
        }
        paths->rank_of_wire_peer = grown;
        paths->wire_peer_count = count;
    }
    paths->rank_of_wire_peer[peer] = rank;
    return CW_OK;
}

/* A rank of which nothing makes sense has one loop. */
int path_wire_add(struct cw_paths *paths, uint32_t rank)
{
    struct path_peer *peer = &paths->peers[rank];
    const struct cw_path_card *card = &peer->card;
    struct cw_address addresses[CW_LOOP_SET_MAX];
    uint32_t count = card->loops < 1 || card->loops > CW_LOOP_SET_MAX ? 1 : card->loops;
    for (uint32_t i = 0; i < count; i++) {
        addresses[i] = card->address;
        addresses[i].udp_port = (uint16_t)(card->address.udp_port + i);
    }
    peer->loops = count < paths->config.set.count ? count : paths->config.set.count;
    int status = cw_loop_set_peer_add(&paths->config.set, addresses, count, &peer->wire_peer);
    return status == CW_OK ? peer_note(paths, peer->wire_peer, rank) : status;
}

/* The loop that a lane to a rank keeps to: other ones for other ranks and lanes. */
static struct cw_loop *loop_to(const struct cw_paths *paths, uint32_t rank, uint32_t lane)
{
    return paths->config.set.loops[(rank + lane) % paths->peers[rank].loops];
}

static int peer_check(struct cw_endpoint *endpoint, void *context)
{
    const uint32_t *peer = context;
    return cw_peer_check(endpoint, *peer);
}

void path_wire_probe(struct cw_paths *paths, uint32_t peer)
{
    (void)cw_loop_call(cw_paths_loop(paths), peer_check, &peer); /* an event reports a failed one */
}

int path_wire_register(struct cw_paths *paths, void *base, uint64_t bytes, uint32_t rights, uint64_t *token)
{
    return cw_loop_set_register(&paths->config.set, base, bytes, rights, token);
}

int path_wire_deregister(struct cw_paths *paths, uint64_t token)
{
    return cw_loop_set_deregister(&paths->config.set, token) == CW_ERROR_BUSY ? CW_ERROR_AGAIN : CW_OK;
}

/* Releases a region of our own, now or when the packets have. */
static void region_release(struct cw_paths *paths, uint64_t region)
{
    if (path_wire_deregister(paths, region) != CW_ERROR_AGAIN) {
        return;
    }
    struct path_deregistered *deregistered = malloc(sizeof(*deregistered));
    if (deregistered != NULL) { /* else it stays registered: a leak, but nothing wrong */
        *deregistered = (struct path_deregistered){.next = paths->wire->deregistered, .region = region};
        paths->wire->deregistered = deregistered;
    }
}

static void regions_release(struct cw_paths *paths)
{
    struct path_deregistered **link = &paths->wire->deregistered;
    while (*link != NULL) {
        struct path_deregistered *deregistered = *link;
        if (path_wire_deregister(paths, deregistered->region) == CW_ERROR_AGAIN) {
            link = &deregistered->next;
            continue;
        }
        *link = deregistered->next;
        free(deregistered);
    }
}

/* Memory for a message; NULL: none is left, or the rank has as much as is left for all others (dynamic thresholds, as
 * in put/operation.c), so that a rank that stops leaves room for the others. */
static struct path_wire_operation *message_acquire(struct cw_paths *paths, uint32_t rank)
{
    struct cw_pool *pool = &paths->wire->messages;
    struct path_peer *peer = &paths->peers[rank];
    struct path_wire_operation *message = peer->messages_held < cw_pool_available(pool) ? cw_pool_acquire(pool) : NULL;
    if (message != NULL) {
        *message = (struct path_wire_operation){.kind = WIRE_MESSAGE, .rank = rank};
        peer->messages_held++;
    }
    return message;
}

static void message_release(struct cw_paths *paths, struct path_wire_operation *message)
{
    paths->peers[message->rank].messages_held--;
    cw_pool_release(&paths->wire->messages, message);
}

/* The endpoint copies a short message as it is posted; a longer one waits in memory of ours until the rank has
 * acknowledged it. */
int path_wire_send(struct cw_paths *paths, uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes,
                   const void *data, uint32_t bytes, enum cw_element element)
{
    uint8_t inlined[CW_INLINE_MAX];
    assert(head_bytes + bytes <= paths->config.message_bytes_max);
    bool is_inline = head_bytes + bytes <= CW_INLINE_MAX;
    struct path_wire_operation *kept = is_inline ? NULL : message_acquire(paths, rank);
    if (!is_inline && kept == NULL) {
        paths->counters.refusals++;
        return CW_ERROR_AGAIN;
    }
    uint8_t *all = is_inline ? inlined : (uint8_t *)(kept + 1);
    memcpy(all, head, head_bytes);
    if (bytes > 0) {
        memcpy(all + head_bytes, data, bytes);
    }
    struct cw_message message = {
        .peer = paths->peers[rank].wire_peer,
        .lane_tag = lane_tag,
        .source = {.kind = CW_SOURCE_CONTIGUOUS,
                   .element = element,
                   .region = is_inline ? 0 : paths->wire->region,
                   .contiguous = {.data = all, .bytes = head_bytes + bytes}},
        .context = (uint64_t)(uintptr_t)kept,
        .flags = (is_inline ? 0u : CW_SIGNAL) | (paths->holds ? CW_MORE : 0u),
    };
    paths->has_held = paths->has_held || paths->holds;
    int status = cw_loop_message_send(loop_to(paths, rank, cw_lane(lane_tag)), &message);
    if (status != CW_OK) {
        paths->counters.refusals += status == CW_ERROR_AGAIN;
        if (!is_inline) {
            message_release(paths, kept);
        }
    }
    return status;
}

struct path_wire_operation *path_wire_begin(struct cw_paths *paths, uint32_t rank, void *memory, uint64_t bytes,
                                            uint64_t operation, int *status)
{
    struct path_wire_operation *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        *status = CW_ERROR_MEMORY;
        return NULL;
    }
    made->rank = rank;
    made->operation = operation;
    *status = path_wire_register(paths, memory, bytes, CW_REGION_LOCAL, &made->region);
    if (*status != CW_OK) {
        free(made);
        *status = *status == CW_ERROR_LIMIT ? CW_ERROR_AGAIN : *status;
        return NULL;
    }
    return made;
}

void path_wire_drop(struct cw_paths *paths, struct path_wire_operation *operation)
{
    region_release(paths, operation->region);
    free(operation);
}

static int operation_posted(struct cw_paths *paths, struct path_wire_operation *operation, int status)
{
    if (status != CW_OK) {
        paths->counters.refusals += status == CW_ERROR_AGAIN;
        path_wire_drop(paths, operation);
    }
    return status;
}

int path_wire_get(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                  void *to, uint64_t bytes, enum cw_element element, uint64_t operation)
{
    int status = path_stripe_get(paths, rank, registration, offset, to, bytes, element, operation);
    if (status != CW_ERROR_UNSUPPORTED) {
        return status;
    }
    struct path_wire_operation *made = path_wire_begin(paths, rank, to, bytes, operation, &status);
    if (made == NULL) {
        return status;
    }
    made->kind = WIRE_GET;
    struct cw_get get = {
        .peer = paths->peers[rank].wire_peer,
        .region = registration->token,
        .offset = offset,
        .bytes = bytes,
        .local_region = made->region,
        .context = (uint64_t)(uintptr_t)made,
        .element = element,
    };
    return operation_posted(paths, made, cw_loop_get(loop_to(paths, rank, 0), &get));
}

int path_wire_put(struct cw_paths *paths, uint32_t rank, const struct cw_registration *registration, uint64_t offset,
                  const void *from, uint64_t bytes, enum cw_element element, uint32_t lane_tag, uint64_t operation)
{
    int status;
    struct path_wire_operation *made = path_wire_begin(paths, rank, (void *)(uintptr_t)from, bytes, operation, &status);
    if (made == NULL) {
        return status;
    }
    made->kind = WIRE_PUT;
    struct cw_put put = {
        .peer = paths->peers[rank].wire_peer,
        .lane_tag = lane_tag,
        .region = registration->token,
        .offset = offset,
        .source = {.kind = CW_SOURCE_CONTIGUOUS,
                   .element = element,
                   .region = made->region,
                   .contiguous = {.data = from, .bytes = bytes}},
        .context = (uint64_t)(uintptr_t)made,
        .flags = CW_SIGNAL | (paths->config.handler.sent != NULL ? CW_SIGNAL_SENT : 0),
    };
    return operation_posted(paths, made, cw_loop_put(loop_to(paths, rank, cw_lane(lane_tag)), &put));
}

/* The question of cw_paths_cover, and its answer. */
struct cover_question {
    uint32_t peer;
    struct cw_peer_info info;
};

static int cover_query(struct cw_endpoint *endpoint, void *context)
{
    struct cover_question *question = context;
    int status = cw_peer_query(endpoint, question->peer, &question->info);
    return status != CW_OK ? status : question->info.state == CW_PEER_ESTABLISHED ? CW_OK : CW_ERROR_NOT_FOUND;
}

bool cw_paths_cover(struct cw_paths *paths, uint32_t rank, enum cw_cover *cover)
{
    struct cover_question question = {.peer = paths->peers[rank].wire_peer};
    bool is_known = false;
    if (paths->wire == NULL || cw_paths_transport(paths, rank) != CW_PATH_TRANSPORT_PACKETS) {
        return false;
    }
    for (uint32_t i = 0; i < paths->config.set.count && !is_known; i++) {
        is_known = cw_loop_call(paths->config.set.loops[i], cover_query, &question) == CW_OK;
    }
    *cover = question.info.cover;
    return is_known;
}

/* The question of cw_paths_compression, and its answer. */
struct compression_question {
    uint32_t peer;
    enum cw_element element;
    struct cw_compression_report *report;
};

static int compression_query(struct cw_endpoint *endpoint, void *context)
{
    const struct compression_question *question = context;
    return cw_peer_compression(endpoint, question->peer, question->element, question->report) ? CW_OK
                                                                                              : CW_ERROR_NOT_FOUND;
}

bool cw_paths_compression(struct cw_paths *paths, uint32_t rank, enum cw_element element,
                          struct cw_compression_report *report)
{
    if (paths->wire == NULL || cw_paths_transport(paths, rank) != CW_PATH_TRANSPORT_PACKETS) {
        return false;
    }
    struct cw_compression_report one;
    struct compression_question question = {paths->peers[rank].wire_peer, element, &one};
    *report = (struct cw_compression_report){.is_on = false};
    bool is_known = false;
    for (uint32_t i = 0; i < paths->config.set.count; i++) { /* the sums, and the rest of the loop that sent most */
        if (cw_loop_call(paths->config.set.loops[i], compression_query, &question) != CW_OK) {
            continue;
        }
        struct cw_compression_report sum = one.raw_bytes > report->raw_bytes || !is_known ? one : *report;
        sum.samples = one.samples + report->samples;
        sum.trials = one.trials + report->trials;
        sum.raw_bytes = one.raw_bytes + report->raw_bytes;
        sum.chunk_bytes = one.chunk_bytes + report->chunk_bytes;
        sum.saved_ns = one.saved_ns + report->saved_ns;
        *report = sum;
        is_known = true;
    }
    return is_known;
}

void path_wire_end(struct cw_paths *paths, struct path_wire_operation *operation, int status)
{
    uint64_t callers = operation->operation;
    paths->counters.gets_wire += operation->kind == WIRE_GET;
    paths->counters.puts_wire += operation->kind == WIRE_PUT;
    path_wire_drop(paths, operation);
    paths->config.handler.complete(paths->config.handler.context, callers, status);
}

static void completion_apply(struct cw_paths *paths, const struct cw_event *event)
{
    struct path_wire_operation *operation = (struct path_wire_operation *)(uintptr_t)event->context;
    if (operation == NULL) {
        return; /* a message that was copied, and failed: the end of its peer is reported separately */
    }
    if (operation->kind == WIRE_MESSAGE) {
        message_release(paths, operation);
        return;
    }
    if (operation->kind == WIRE_PART) {
        path_stripe_ended(paths, operation, event->status);
        return;
    }
    path_wire_end(paths, operation, event->status);
}

/* Gives the slot of a message back, now or later. */
static void slot_release(struct cw_paths *paths, uint32_t slot)
{
    struct path_wire *wire = paths->wire;
    if (cw_loop_set_message_release(&paths->config.set, slot) != CW_ERROR_AGAIN) {
        return;
    }
    if (wire->slot_count == wire->slots_max) {
        uint32_t slots_max = 2 * wire->slots_max + 64;
        uint32_t *grown = realloc(wire->slots, slots_max * sizeof(*grown));
        if (grown == NULL) {
            return; /* one slot less from now on */
        }
        wire->slots = grown;
        wire->slots_max = slots_max;
    }
    wire->slots[wire->slot_count++] = slot;
}

static void slots_release(struct cw_paths *paths)
{
    uint32_t count = paths->wire->slot_count;
    paths->wire->slot_count = 0;
    for (uint32_t i = 0; i < count; i++) { /* entries still rejected move to the front, which was read */
        slot_release(paths, paths->wire->slots[i]);
    }
}

/* A rank that says goodbye has done its part: its launcher reports one that leaves too early. */
static void session_end(struct cw_paths *paths, uint32_t rank, int status)
{
    if (rank != UINT32_MAX && status != CW_ERROR_CLOSED) {
        cw_error_text(paths->failure, sizeof(paths->failure), status, "rank %u: %s", rank, cw_status_text(status));
        paths->peers[rank].failure = status;
        if (status != CW_ERROR_PEER_FAILED &&
            status != CW_ERROR_PEER_RESTARTED) { /* it lives, and packets do not pass */
            free(paths->peers[rank].description);
            paths->peers[rank].description = strdup(cw_status_text(status));
            paths->peers[rank].unreachable = status;
        }
        path_peer_fail(paths, rank);
    }
}

static void event_dispatch(struct cw_paths *paths, const struct cw_event *event)
{
    const struct cw_path_handler *handler = &paths->config.handler;
    uint32_t rank = event->peer < paths->wire_peer_count ? paths->rank_of_wire_peer[event->peer] : UINT32_MAX;
    switch (event->kind) {
    case CW_EVENT_MESSAGE:
        if (rank != UINT32_MAX) {
            path_message(paths, rank, event->lane_tag, event->data, (uint32_t)event->bytes);
        }
        slot_release(paths, event->slot);
        break;
    case CW_EVENT_PUT:
        if (rank != UINT32_MAX) {
            handler->arrived(handler->context, rank, event->lane_tag);
        }
        break;
    case CW_EVENT_SENT:
        handler->sent(handler->context, ((struct path_wire_operation *)(uintptr_t)event->context)->operation);
        break;
    case CW_EVENT_COMPLETE:
    case CW_EVENT_GET:
        completion_apply(paths, event);
        break;
    case CW_EVENT_PEER_DOWN:
        session_end(paths, rank, event->status);
        break;
    case CW_EVENT_PEER_UP:
        if (event->status == CW_ERROR_PEER_RESTARTED) {
            session_end(paths, rank, event->status); /* promises of the process before are lost */
        }
        break;
    default:
        break;
    }
}

static uint32_t events_dispatch(struct cw_paths *paths, const struct cw_event *events, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        event_dispatch(paths, &events[i]);
    }
    return count;
}

uint32_t path_wire_poll(struct cw_paths *paths)
{
    struct cw_event events[WIRE_BURST];
    if (paths->wire->deregistered != NULL) {
        regions_release(paths);
    }
    if (paths->wire->slot_count > 0) {
        slots_release(paths);
    }
    if (paths->divisions != NULL) {
        path_stripe_poll(paths);
    }
    return events_dispatch(paths, events, cw_loop_set_poll(&paths->config.set, events, WIRE_BURST));
}

uint32_t path_wire_wait(struct cw_paths *paths, uint64_t timeout_ns, const struct cw_port_alarm *alarm)
{
    struct cw_event events[WIRE_BURST];
    return events_dispatch(paths, events, cw_loop_set_wait(&paths->config.set, events, WIRE_BURST, timeout_ns, alarm));
}
