/* Operations that the processes of the simulated world post: puts, messages and gets of all shapes. */
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/world/world_state.h"

enum {
    BURST_MAX = 12,
    SLICE_PIECES_MAX = 24,
    KEPT_MAX_BYTES = 8 << 10, /* without a signal the source must be kept to the end */
};

const uint32_t world_lanes[WORLD_LANES] = {0, 1, 2, 77, 4000, (1 << CW_LANE_BITS) - 1};

static uint64_t draw_bytes(struct world_process *process, uint64_t most)
{
    struct cw_random *random = &process->random;
    uint64_t kind = cw_random_below(random, 100);
    uint64_t large = process->world->plan.mix.large_percent;
    uint64_t limit = kind < large        ? most
                     : kind < large + 8  ? 0
                     : kind < large + 40 ? 64
                     : kind < large + 75 ? 1500
                     : kind < large + 92 ? 9000
                                         : 65536;
    limit = limit < most ? limit : most;
    return cw_random_below(random, limit + 1);
}

/* ---- sources ---- */

/* Blocks with gaps between them, forwards or backwards. */
static bool source_strided(struct world_process *process, struct world_operation *operation, struct cw_source *source)
{
    struct cw_random *random = &process->random;
    uint64_t count = cw_random_between(random, 1, 20);
    uint64_t block = operation->bytes / count;
    if (block == 0 || block * count != operation->bytes) {
        count = 1;
        block = operation->bytes;
    }
    uint64_t stride = block + cw_random_below(random, 40);
    bool backwards = cw_random_chance(random, 0.3);
    operation->source_bytes = stride * count + 1;
    uint8_t *memory = malloc(operation->source_bytes);
    uint8_t *flat = malloc(operation->bytes + 1);
    if (memory == NULL || flat == NULL) {
        free(memory);
        free(flat);
        return false;
    }
    world_pattern_fill(flat, operation->pattern, operation->bytes);
    uint8_t *first = backwards ? memory + stride * (count - 1) : memory;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(backwards ? first - i * stride : first + i * stride, flat + i * block, block);
    }
    free(flat);
    operation->source = memory;
    *source = (struct cw_source){.kind = CW_SOURCE_STRIDED,
                                 .strided = {.data = first,
                                             .block_bytes = block,
                                             .stride_bytes = backwards ? -(int64_t)stride : (int64_t)stride,
                                             .block_count = count}};
    return true;
}

/* Pieces of any length, none among them; the first half of the memory holds the later pieces. */
static bool source_slices(struct world_process *process, struct world_operation *operation, struct cw_source *source)
{
    struct cw_random *random = &process->random;
    uint64_t count = cw_random_between(random, 1, SLICE_PIECES_MAX);
    struct cw_slice *list = calloc(count, sizeof(*list));
    operation->source_bytes = operation->bytes + 1;
    uint8_t *memory = malloc(operation->source_bytes);
    if (memory == NULL || list == NULL) {
        free(memory);
        free(list);
        return false;
    }
    world_pattern_fill(memory, operation->pattern, operation->bytes);
    uint64_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t left = operation->bytes - at;
        uint64_t bytes = i + 1 == count ? left : cw_random_below(random, left + 1);
        list[i] = (struct cw_slice){.data = memory + at, .bytes = bytes};
        at += bytes;
    }
    operation->source = memory;
    operation->list = list;
    *source = (struct cw_source){.kind = CW_SOURCE_SLICES, .slices = {.list = list, .count = count}};
    return true;
}

static bool source_contiguous(struct world_process *process, struct world_operation *operation, uint32_t index,
                              struct cw_source *source)
{
    struct world_region *store = &process->regions[WORLD_STORE];
    *source = (struct cw_source){.contiguous = {.bytes = operation->bytes}};
    if (operation->signal && operation->bytes > 0 && cw_random_chance(&process->random, 0.5) &&
        world_extent_acquire(store, 0, &process->random, operation->bytes, index, &operation->local_offset)) {
        operation->stored = true;
        world_pattern_fill(store->base + operation->local_offset, operation->pattern, operation->bytes);
        world_region_accept(store, operation->local_offset, operation->bytes);
        source->region = store->token;
        source->contiguous.data = store->base + operation->local_offset;
        return true;
    }
    operation->source_bytes = operation->bytes + 1;
    operation->source = malloc(operation->source_bytes);
    if (operation->source == NULL) {
        return false;
    }
    world_pattern_fill(operation->source, operation->pattern, operation->bytes);
    source->contiguous.data = operation->source;
    return true;
}

/* Declared as any element, independent of the data. */
static enum cw_element world_element(const struct world_operation *operation)
{
    return (enum cw_element)(operation->pattern / 4 % CW_ELEMENTS);
}

static bool draw_source(struct world_process *process, struct world_operation *operation, uint32_t index,
                        struct cw_source *source)
{
    uint64_t kind = cw_random_below(&process->random, 10);
    bool drawn = kind == 0 && operation->bytes > 0 ? source_strided(process, operation, source)
                 : kind == 1                       ? source_slices(process, operation, source)
                                                   : source_contiguous(process, operation, index, source);
    source->element = world_element(operation);
    return drawn;
}

/* Short contiguous sources may be overwritten as soon as the call has returned. */
static void scribble(struct world_operation *operation, const struct cw_source *source)
{
    if (source->kind == CW_SOURCE_CONTIGUOUS && operation->bytes <= CW_INLINE_MAX && operation->source != NULL) {
        memset(operation->source, 0xdd, operation->source_bytes);
    }
}

/* ---- posting ---- */

static uint32_t draw_flags(struct cw_random *random, const struct world_operation *operation, bool put)
{
    uint32_t flags = operation->signal ? CW_SIGNAL : 0;
    flags |= put && operation->signal ? CW_SIGNAL_SENT : 0;
    flags |= cw_random_chance(random, 0.4) ? CW_MORE : 0;
    return flags | (put && cw_random_chance(random, 0.1) ? CW_ALONE : 0);
}

/* Where a put goes. False: no room. Now and then to where it must be refused. */
static bool draw_target(struct world_process *process, struct world_operation *operation, uint32_t index,
                        uint64_t *token)
{
    struct cw_random *random = &process->random;
    struct world_process *target = &process->world->processes[operation->to];
    operation->region = cw_random_chance(random, 0.25) ? WORLD_FAR : WORLD_INBOX;
    struct world_region *region = &target->regions[operation->region];
    *token = region->token;
    operation->generation = region->generation;
    operation->gone = !region->registered;
    operation->offset = region->window + cw_random_below(random, region->window_bytes + 1);
    if (cw_random_chance(random, 0.015)) {
        operation->refusable = true;
        operation->bytes = operation->bytes < 3000 ? operation->bytes : 3000;
        switch (cw_random_below(random, 4)) {
        case 0:
            *token ^= 1ull << cw_random_between(random, 16, 63);
            break;
        case 1:
            operation->offset = region->bytes + 1;
            break;
        case 2:
            operation->offset = UINT64_MAX - cw_random_below(random, 5000);
            break;
        default:
            operation->region = WORLD_LIBRARY;
            *token = target->regions[WORLD_LIBRARY].token;
            operation->offset = 0;
            break;
        }
        return true;
    }
    if (operation->gone) {
        operation->refusable = true; /* a token of the past */
        return true;
    }
    return operation->bytes == 0 ||
           world_extent_acquire(region, process->node, random, operation->bytes, index, &operation->offset);
}

static int post_put(struct world_process *process, struct world_operation *operation, uint32_t index)
{
    struct cw_random *random = &process->random;
    operation->bytes = draw_bytes(process, operation->signal ? process->world->plan.slice_bytes : KEPT_MAX_BYTES);
    struct cw_put put = {.peer = process->peers[operation->to], .context = index};
    if (!draw_target(process, operation, index, &put.region) || !draw_source(process, operation, index, &put.source)) {
        return CW_ERROR_AGAIN;
    }
    put.lane_tag = cw_lane_tag(world_lanes[operation->lane], index);
    put.offset = operation->offset;
    put.flags = draw_flags(random, operation, true);
    int status = cw_put(process->endpoint, &put);
    if (status == CW_OK) {
        scribble(operation, &put.source);
    }
    return status;
}

static int post_message(struct world_process *process, struct world_operation *operation, uint32_t index)
{
    const struct cw_endpoint_config *config = &process->world->plan.endpoint;
    operation->region = WORLD_INBOX; /* not used */
    operation->bytes = draw_bytes(process, config->pool_slot_bytes);
    if (config->pool_slot_count == 0) {
        operation->expected = CW_ERROR_UNSUPPORTED;
    } else if (cw_random_chance(&process->random, 0.01)) {
        operation->bytes = config->pool_slot_bytes + 1;
        operation->expected = CW_ERROR_ARGUMENT;
    }
    struct cw_message message = {.peer = process->peers[operation->to], .context = index};
    if (!draw_source(process, operation, index, &message.source)) {
        return CW_ERROR_AGAIN;
    }
    message.lane_tag = cw_lane_tag(world_lanes[operation->lane], index);
    message.flags = draw_flags(&process->random, operation, false);
    int status = cw_message_send(process->endpoint, &message);
    if (status == CW_OK) {
        scribble(operation, &message.source);
    }
    return status != CW_OK && status == operation->expected ? CW_ERROR_AGAIN : status;
}

static int post_get(struct world_process *process, struct world_operation *operation, uint32_t index)
{
    struct cw_random *random = &process->random;
    struct world_process *target = &process->world->processes[operation->to];
    struct world_region *desk = &process->regions[WORLD_DESK];
    bool wrong = cw_random_chance(random, 0.03);
    operation->signal = true;
    operation->region = wrong ? WORLD_INBOX : WORLD_LIBRARY;
    const struct world_region *region = &target->regions[operation->region];
    uint64_t most = region->window_bytes < desk->window_bytes ? region->window_bytes : desk->window_bytes;
    operation->bytes = draw_bytes(process, most);
    operation->generation = region->generation;
    operation->pattern = world_library_pattern(target, region->generation);
    operation->refusable = wrong || !region->registered;
    operation->offset = cw_random_below(random, region->window_bytes - operation->bytes + 1);
    if (operation->bytes > 0 &&
        !world_extent_acquire(desk, 0, random, operation->bytes, index, &operation->local_offset)) {
        return CW_ERROR_AGAIN;
    }
    struct cw_get get = {
        .peer = process->peers[operation->to],
        .lane_tag = cw_lane_tag(world_lanes[operation->lane], index),
        .region = region->token,
        .offset = operation->offset,
        .bytes = operation->bytes,
        .local_region = desk->token,
        .local_offset = operation->local_offset,
        .context = index,
        .flags = cw_random_chance(random, 0.3) ? CW_MORE : 0,
        .element = world_element(operation),
    };
    return cw_get(process->endpoint, &get);
}

/* One operation to a random process that has been alive; false: not now. */
static bool post_one(struct world_process *process, uint64_t now_ns)
{
    struct world *world = process->world;
    struct cw_random *random = &process->random;
    const struct sim_world_mix *mix = &world->plan.mix;
    uint32_t to = (uint32_t)cw_random_below(random, world->plan.nodes);
    if (to == process->node || !world->processes[to].alive) {
        return false; /* the tokens of the dead are nobody's */
    }
    uint32_t index;
    struct world_operation *operation = world_ledger_open(world, &index);
    if (operation == NULL) {
        process->quota = 0;
        return false;
    }
    operation->from = (uint8_t)process->node;
    operation->to = (uint8_t)to;
    operation->lane = (uint8_t)cw_random_below(random, WORLD_LANES);
    operation->signal = cw_random_chance(random, 0.6);
    operation->posted_ns = now_ns;
    uint64_t kind = cw_random_below(random, mix->put + mix->message + mix->get);
    operation->kind = kind < mix->put ? WORLD_PUT : kind < mix->put + mix->message ? WORLD_MESSAGE : WORLD_GET;
    int status = operation->kind == WORLD_PUT       ? post_put(process, operation, index)
                 : operation->kind == WORLD_MESSAGE ? post_message(process, operation, index)
                                                    : post_get(process, operation, index);
    if (status == CW_OK) {
        world_trace(world, "node %u: posts operation %u kind %u to %u lane %u, %llu bytes", process->node, index,
                    operation->kind, to, world_lanes[operation->lane], (unsigned long long)operation->bytes);
        world->report->posted++;
        process->quota--;
        return true;
    }
    if (status != CW_ERROR_AGAIN && status != CW_ERROR_PEER_FAILED && status != CW_ERROR_OVERLAP) {
        world_fail(world, "node %u: operation %u to node %u cannot be posted: %s", process->node, index, to,
                   cw_status_text(status));
    }
    world_ledger_drop(world);
    return false;
}

void world_traffic_post(struct world_process *process, uint64_t now_ns)
{
    struct world *world = process->world;
    const struct world_plan *plan = &world->plan;
    uint64_t burst = cw_random_between(&process->random, 1, BURST_MAX);
    cw_endpoint_clock(process->endpoint, now_ns);
    for (uint64_t i = 0; i < burst && process->quota > 0 && !world->failed; i++) {
        (void)post_one(process, now_ns);
    }
    /* bursts so far apart that the quota lasts for about the phase */
    uint64_t bursts = 2ull * plan->operations / plan->nodes / BURST_MAX + 1;
    process->post_ns = now_ns + cw_random_below(&process->random, 2 * plan->phase_ns / bursts + 1);
}
