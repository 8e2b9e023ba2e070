/* The ledger: the state of every operation from outside, and whether reports of an endpoint can be true. */
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/world/world_state.h"

/* "put 17 of node 1 to node 2" at the start of a complaint. */
#define OPERATION_FORMAT "%s %u of node %u to node %u (lane %u, region %u, offset %llu, %llu bytes)"
#define OPERATION_ARGUMENTS(operation, index)                                                                   \
    kind_names[(operation)->kind], (index), (operation)->from, (operation)->to, world_lanes[(operation)->lane], \
        (operation)->region, (unsigned long long)(operation)->offset, (unsigned long long)(operation)->bytes

static const char *const kind_names[] = {[WORLD_PUT] = "put", [WORLD_MESSAGE] = "message", [WORLD_GET] = "get"};

struct world_operation *world_ledger_open(struct world *world, uint32_t *index)
{
    if (world->operation_count == world->operation_count_max) {
        return NULL;
    }
    *index = world->operation_count++;
    struct world_operation *operation = &world->operations[*index];
    *operation = (struct world_operation){.pattern = (uint64_t)*index + 1};
    return operation;
}

static void drop_source(struct world *world, struct world_operation *operation, uint32_t index)
{
    /* a later reader sends something else, or is caught by the sanitizer */
    if (operation->source != NULL) {
        memset(operation->source, 0xee, operation->source_bytes);
        free(operation->source);
        operation->source = NULL;
    }
    free(operation->list);
    operation->list = NULL;
    if (operation->stored) {
        struct world_region *store = &world->processes[operation->from].regions[WORLD_STORE];
        if (!operation->orphaned) {
            memset(store->base + operation->local_offset, 0xee, operation->bytes);
            world_region_accept(store, operation->local_offset, operation->bytes);
            world_extent_release(store, index);
        }
        operation->stored = false;
    }
}

void world_ledger_drop(struct world *world)
{
    uint32_t index = --world->operation_count;
    struct world_operation *operation = &world->operations[index];
    drop_source(world, operation, index);
    world_extent_release(&world->processes[operation->to].regions[operation->region], index);
    if (operation->kind == WORLD_GET) {
        world_extent_release(&world->processes[operation->from].regions[WORLD_DESK], index);
    }
}

/* ---- what may be ---- */

static bool excused(const struct world *world, uint32_t a, uint32_t b)
{
    return world->processes[a].excused || world->processes[b].excused;
}

/* True if the operation's session may have ended after it was posted. */
static bool may_be_severed(const struct world *world, uint32_t index)
{
    const struct world_operation *operation = &world->operations[index];
    return index < world->severed[operation->from][operation->to];
}

static struct world_region *target_region(struct world *world, const struct world_operation *operation)
{
    return &world->processes[operation->to].regions[operation->region];
}

/* All bytes of a put are at their target, or were when its memory was taken away. */
static bool bytes_in_place(struct world *world, uint32_t index, const char *when)
{
    struct world_operation *operation = &world->operations[index];
    const uint8_t *at = operation->grave;
    if (operation->bytes == 0) {
        return true;
    }
    if (!operation->gone) {
        at = target_region(world, operation)->base + operation->offset;
    } else if (operation->target_dead) {
        return true;
    }
    uint64_t good = world_pattern_check(at, operation->pattern, 0, operation->bytes);
    if (good < operation->bytes) {
        world_fail(world, OPERATION_FORMAT ": byte %llu is wrong when it is %s", OPERATION_ARGUMENTS(operation, index),
                   (unsigned long long)good, when);
        return false;
    }
    return true;
}

static void put_finished(struct world *world, uint32_t index)
{
    struct world_operation *operation = &world->operations[index];
    if (!operation->gone) {
        struct world_region *region = target_region(world, operation);
        if (operation->bytes > 0) {
            world_region_accept(region, operation->offset, operation->bytes);
        }
        world_extent_release(region, index);
    }
    free(operation->grave);
    operation->grave = NULL;
}

/* ---- arrivals ---- */

/* An RDMA device looks at no region for a put without bytes, and tells the target of none what it was for. */
static bool is_unchecked(const struct world *world, const struct world_operation *operation)
{
    return world->options->rdma && operation->kind == WORLD_PUT && operation->bytes == 0;
}

static bool is_untold(const struct world *world, const struct cw_event *event)
{
    return world->options->rdma && event->kind == CW_EVENT_PUT && event->region == 0;
}

static uint32_t node_of_peer(const struct world_process *process, uint32_t peer)
{
    struct cw_peer_info info;
    if (cw_peer_query(process->endpoint, peer, &info) != CW_OK) {
        return WORLD_NONE;
    }
    uint32_t node = sim_hosts_node(&process->world->hosts.config, &info.address.ip);
    return node < process->world->plan.nodes ? node : WORLD_NONE;
}

/* Checks what puts and messages have in common; returns the operation's index or WORLD_NONE after a complaint. */
static uint32_t arrived(struct world_process *process, const struct cw_event *event, enum world_operation_kind kind)
{
    struct world *world = process->world;
    uint32_t from = node_of_peer(process, event->peer);
    uint32_t index = cw_tag(event->lane_tag);
    if (index >= world->operation_count || from == WORLD_NONE) {
        world_fail(world, "node %u: a notification of something that was never posted: tag %u from peer %u",
                   process->node, index, event->peer);
        return WORLD_NONE;
    }
    struct world_operation *operation = &world->operations[index];
    /* a message that found no session yet goes to any process that answers; a put names a region of the dead */
    const char *wrong = operation->kind != kind || operation->from != from || operation->to != process->node
                            ? "kind or peer"
                        : operation->target_dead && kind == WORLD_PUT                  ? "life of the target"
                        : cw_lane(event->lane_tag) != world_lanes[operation->lane]     ? "lane"
                        : event->bytes != operation->bytes && !is_untold(world, event) ? "length"
                        : operation->notified                                          ? "count: it comes a second time"
                        : operation->refusable && !is_unchecked(world, operation)      ? "outcome: it had to be refused"
                        : operation->ended && operation->status == CW_ERROR_REMOTE_ACCESS ? "outcome: it was refused"
                        : operation->expected != 0 ? "outcome: it could not be sent"
                                                   : NULL;
    if (wrong != NULL) {
        world_fail(world, OPERATION_FORMAT " is notified at node %u with the wrong %s",
                   OPERATION_ARGUMENTS(operation, index), process->node, wrong);
        return WORLD_NONE;
    }
    uint32_t *last = &world->last_notified[from][process->node][operation->lane];
    if (*last > index) {
        world_fail(world, OPERATION_FORMAT " is notified after operation %u of the same lane, which was posted later",
                   OPERATION_ARGUMENTS(operation, index), *last - 1);
        return WORLD_NONE;
    }
    *last = index + 1;
    operation->notified = true;
    world->report->notified++;
    world->report->bytes += operation->bytes;
    return index;
}

static void put_arrived(struct world_process *process, const struct cw_event *event)
{
    struct world *world = process->world;
    uint32_t index = arrived(process, event, WORLD_PUT);
    if (index == WORLD_NONE) {
        return;
    }
    struct world_operation *operation = &world->operations[index];
    const struct world_region *region = target_region(world, operation);
    bool same_token = event->region == region->token && operation->generation == region->generation;
    bool is_right = event->offset == operation->offset && (operation->gone || same_token);
    if (!is_right && !is_untold(world, event)) {
        world_fail(world, OPERATION_FORMAT " is notified with region %llx, offset %llu",
                   OPERATION_ARGUMENTS(operation, index), (unsigned long long)event->region,
                   (unsigned long long)event->offset);
        return;
    }
    if (bytes_in_place(world, index, "notified")) {
        put_finished(world, index);
    }
}

static void message_arrived(struct world_process *process, const struct cw_event *event, uint64_t now_ns)
{
    struct world *world = process->world;
    uint32_t index = arrived(process, event, WORLD_MESSAGE);
    if (index == WORLD_NONE) {
        return;
    }
    struct world_operation *operation = &world->operations[index];
    struct world_held held = {
        .slot = event->slot, .operation = index, .data = event->data, .bytes = event->bytes, .release_ns = now_ns};
    for (uint32_t i = 0; i < process->held_count; i++) {
        if (process->held[i].slot == event->slot) {
            world_fail(world, OPERATION_FORMAT " lies in slot %u, which is in use",
                       OPERATION_ARGUMENTS(operation, index), event->slot);
            return;
        }
    }
    if (process->held_count < WORLD_HELD_MAX && !world->healed) {
        held.release_ns += cw_random_below(&process->random, process->hold_max_ns + 1);
        process->held[process->held_count++] = held;
    } else {
        world_ledger_release(process, &held);
    }
}

void world_ledger_release(struct world_process *process, const struct world_held *held)
{
    struct world *world = process->world;
    const struct world_operation *operation = &world->operations[held->operation];
    uint64_t good = world_pattern_check(held->data, operation->pattern, 0, held->bytes);
    if (good < held->bytes) {
        world_fail(world, OPERATION_FORMAT ": byte %llu in the pool is wrong",
                   OPERATION_ARGUMENTS(operation, held->operation), (unsigned long long)good);
        return;
    }
    int status = cw_message_release(process->endpoint, held->slot);
    if (status != CW_OK) {
        world_fail(world, "node %u: slot %u cannot be released: %s", process->node, held->slot, cw_status_text(status));
    }
}

/* ---- ends ---- */

static bool status_allowed(struct world *world, uint32_t index, int status)
{
    const struct world_operation *operation = &world->operations[index];
    switch (status) {
    case CW_OK:
        return (!operation->refusable || is_unchecked(world, operation)) && operation->expected == 0;
    case CW_ERROR_REMOTE_ACCESS:
        return operation->kind != WORLD_MESSAGE && !operation->notified && (operation->refusable || operation->gone);
    case CW_ERROR_PEER_FAILED:
    case CW_ERROR_PEER_RESTARTED:
    case CW_ERROR_CLOSED:
        return excused(world, operation->from, operation->to);
    default:
        return status == operation->expected;
    }
}

static void get_ended(struct world_process *process, uint32_t index, const struct cw_event *event)
{
    struct world *world = process->world;
    const struct world_operation *operation = &world->operations[index];
    struct world_region *desk = &process->regions[WORLD_DESK];
    const uint8_t *at = desk->base + operation->local_offset;
    uint64_t good = operation->bytes;
    if (event->status == CW_OK) {
        good = world_pattern_check(at, operation->pattern, operation->offset, operation->bytes);
    }
    if (good < operation->bytes || event->region != desk->token || event->offset != operation->local_offset) {
        world_fail(world, OPERATION_FORMAT ": byte %llu is wrong, or region or offset",
                   OPERATION_ARGUMENTS(operation, index), (unsigned long long)good);
        return;
    }
    if (operation->bytes > 0) {
        world_region_accept(desk, operation->local_offset, operation->bytes);
        world_extent_release(desk, index);
    }
    world->report->bytes += event->status == CW_OK ? operation->bytes : 0;
}

static void operation_ended(struct world_process *process, const struct cw_event *event)
{
    struct world *world = process->world;
    uint32_t index = (uint32_t)event->context;
    if (event->context >= world->operation_count) {
        world_fail(world, "node %u: an end of something that was never posted", process->node);
        return;
    }
    struct world_operation *operation = &world->operations[index];
    bool get = event->kind == CW_EVENT_GET;
    const char *wrong = operation->from != process->node || get != (operation->kind == WORLD_GET) ? "node or kind"
                        : event->lane_tag != cw_lane_tag(world_lanes[operation->lane], index)     ? "lane or tag"
                        : operation->ended                             ? "count: it ends a second time"
                        : operation->orphaned                          ? "life of the sender"
                        : event->status == CW_OK && !operation->signal ? "will: no signal was asked for"
                        : !status_allowed(world, index, event->status) ? "status"
                                                                       : NULL;
    if (wrong != NULL) {
        world_fail(world, OPERATION_FORMAT " ends with the wrong %s (%s)", OPERATION_ARGUMENTS(operation, index), wrong,
                   cw_status_text(event->status));
        return;
    }
    operation->ended = true;
    operation->status = (int16_t)event->status;
    world->report->completed += event->status == CW_OK;
    world->report->refused += event->status == CW_ERROR_REMOTE_ACCESS;
    world->report->severed += event->status <= CW_ERROR_PEER_FAILED && event->status >= CW_ERROR_CLOSED;
    if (get) {
        get_ended(process, index, event);
        return;
    }
    drop_source(world, operation, index);
    if (operation->kind == WORLD_PUT && event->status == CW_OK && !operation->notified) {
        bytes_in_place(world, index, "complete");
    }
}

/* Once at most, and before its end. */
static void operation_left(struct world_process *process, const struct cw_event *event)
{
    struct world *world = process->world;
    uint32_t index = (uint32_t)event->context;
    struct world_operation *operation = event->context < world->operation_count ? &world->operations[index] : NULL;
    if (operation == NULL || operation->kind != WORLD_PUT || operation->from != process->node || !operation->signal ||
        operation->left || operation->ended) {
        world_fail(world, "node %u: put %u is reported as sent", process->node, index);
        return;
    }
    operation->left = true;
}

static void peer_event(struct world_process *process, const struct cw_event *event)
{
    struct world *world = process->world;
    uint32_t other = node_of_peer(process, event->peer);
    if (other == WORLD_NONE) {
        world_fail(world, "node %u: news of an unknown peer %u", process->node, event->peer);
        return;
    }
    if (event->kind == CW_EVENT_PEER_UP && event->status == CW_OK) {
        return;
    }
    if (!excused(world, process->node, other)) {
        world_fail(world, "node %u: peer %u is reported as %s without a fault", process->node, other,
                   event->kind == CW_EVENT_PEER_UP ? "replaced" : cw_status_text(event->status));
        return;
    }
    world->severed[process->node][other] = world->severed[other][process->node] = world->operation_count;
}

void world_ledger_event(struct world_process *process, const struct cw_event *event, uint64_t now_ns)
{
    world_trace(process->world, "node %u: event %d status %d peer %u lane %u tag %u offset %llu bytes %llu",
                process->node, event->kind, event->status, event->peer, cw_lane(event->lane_tag),
                cw_tag(event->lane_tag), (unsigned long long)event->offset, (unsigned long long)event->bytes);
    switch (event->kind) {
    case CW_EVENT_PUT:
        put_arrived(process, event);
        break;
    case CW_EVENT_MESSAGE:
        message_arrived(process, event, now_ns);
        break;
    case CW_EVENT_GET:
    case CW_EVENT_COMPLETE:
        operation_ended(process, event);
        break;
    case CW_EVENT_SENT:
        operation_left(process, event);
        break;
    case CW_EVENT_PEER_UP:
    case CW_EVENT_PEER_DOWN:
        peer_event(process, event);
        break;
    default:
        world_fail(process->world, "node %u: an event of unknown kind %d", process->node, event->kind);
        break;
    }
}

/* ---- what goes ---- */

void world_ledger_region_closed(struct world_process *process, enum world_region_kind kind)
{
    struct world *world = process->world;
    struct world_region *region = &process->regions[kind];
    for (uint32_t i = 0; i < world->operation_count; i++) {
        struct world_operation *operation = &world->operations[i];
        if (operation->to != process->node || operation->region != kind || operation->gone ||
            operation->kind == WORLD_MESSAGE || operation->generation != region->generation || operation->target_dead) {
            continue;
        }
        operation->gone = true;
        if (operation->kind == WORLD_PUT && !operation->notified && !operation->refusable && operation->bytes > 0) {
            operation->grave = malloc(operation->bytes);
            memcpy(operation->grave, region->base + operation->offset, operation->bytes);
        }
    }
}

void world_ledger_process_closed(struct world_process *process)
{
    struct world *world = process->world;
    for (uint32_t i = 0; i < world->operation_count; i++) {
        struct world_operation *operation = &world->operations[i];
        if (operation->to == process->node && !operation->target_dead) {
            operation->target_dead = true;
            operation->gone = true;
        }
        if (operation->from == process->node && !operation->ended) {
            operation->orphaned = true;
        }
    }
    for (uint32_t other = 0; other < world->plan.nodes; other++) {
        world->severed[process->node][other] = world->severed[other][process->node] = world->operation_count;
    }
}

/* ---- the whole ---- */

void world_ledger_verify(struct world *world)
{
    for (uint32_t node = 0; node < world->plan.nodes && !world->failed; node++) {
        struct world_process *process = &world->processes[node];
        for (uint32_t kind = 0; process->alive && kind < WORLD_REGION_KINDS && !world->failed; kind++) {
            world_region_verify(world, process, &process->regions[kind]);
        }
    }
}

static void operation_finish(struct world *world, uint32_t index)
{
    const struct world_operation *operation = &world->operations[index];
    bool failed = operation->ended && operation->status < 0;
    if (operation->signal && !operation->ended && !operation->orphaned) {
        world_fail(world, OPERATION_FORMAT " posted at %.3f ms never ends", OPERATION_ARGUMENTS(operation, index),
                   (double)operation->posted_ns / 1e6);
        return;
    }
    if (operation->kind == WORLD_GET || operation->notified || failed || operation->orphaned ||
        operation->target_dead || operation->gone || may_be_severed(world, index)) {
        return;
    }
    world_fail(world, OPERATION_FORMAT " posted at %.3f ms is never notified", OPERATION_ARGUMENTS(operation, index),
               (double)operation->posted_ns / 1e6);
}

void world_ledger_finish(struct world *world)
{
    world_ledger_verify(world);
    for (uint32_t i = 0; i < world->operation_count && !world->failed; i++) {
        operation_finish(world, i);
    }
}

void world_ledger_dispose(struct world *world)
{
    for (uint32_t i = 0; i < world->operation_count; i++) {
        free(world->operations[i].source);
        free(world->operations[i].list);
        free(world->operations[i].grave);
    }
    free(world->operations);
    world->operations = NULL;
}
