#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/simulation/world/world_state.h"

enum { GUARD_BYTES = 4096, GUARD_FILL = 0xa7 };

#define FAR_BYTES  (5ull << 30)
#define FAR_CENTRE (4ull << 30)

/* ---- patterns ---- */

static inline uint64_t scatter(uint64_t id, uint64_t index)
{
    uint64_t word = id * 0x9e3779b97f4a7c15ull + index * 0xd6e8feb86659fd93ull;
    word ^= word >> 32;
    word *= 0xd6e8feb86659fd93ull;
    return word ^ word >> 29;
}

/* Of every four patterns one is random, one rises evenly, one does so more or less, and one has runs: so that all of
 * it, much, or nothing can be compressed. A word encodes its place in each but in runs. */
static inline uint64_t pattern_word(uint64_t id, uint64_t index)
{
    switch (id % 4) {
    case 1:
        return scatter(id, 0) + index * 0x10001;
    case 2:
        return scatter(id, 0) + (index << 16) + (scatter(id, index) >> 50);
    case 3:
        return scatter(id, index % 4096 < 2048 ? index : index - index % 2048);
    default:
        return scatter(id, index);
    }
}

void world_pattern_fill(void *at, uint64_t id, uint64_t bytes)
{
    uint8_t *out = at;
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = pattern_word(id, i / 8);
        memcpy(out + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

static inline uint8_t pattern_byte(uint64_t id, uint64_t index)
{
    return (uint8_t)(pattern_word(id, index / 8) >> (index % 8 * 8));
}

uint64_t world_pattern_check(const void *at, uint64_t id, uint64_t first, uint64_t bytes)
{
    const uint8_t *in = at;
    uint64_t i = 0;
    while (i < bytes) {
        uint64_t word = pattern_word(id, (first + i) / 8);
        if ((first + i) % 8 == 0 && bytes - i >= 8 && memcmp(in + i, &word, 8) == 0) {
            i += 8;
        } else if (in[i] == pattern_byte(id, first + i)) {
            i++;
        } else {
            break;
        }
    }
    return i;
}

/* ---- regions ---- */

/* The far region is address space, of which only the window can be touched. */
static bool map_far(struct world_region *region, uint64_t window_bytes)
{
    region->mapped_bytes = FAR_BYTES;
    void *mapped = mmap(NULL, FAR_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        return false;
    }
    region->mapped = region->base = mapped;
    region->bytes = FAR_BYTES;
    region->window = FAR_CENTRE - (window_bytes / 2 & ~(uint64_t)(GUARD_BYTES - 1));
    uint64_t used = (window_bytes + 3 * GUARD_BYTES - 1) & ~(uint64_t)(GUARD_BYTES - 1);
    return mprotect(region->base + region->window - GUARD_BYTES, used, PROT_READ | PROT_WRITE) == 0;
}

static bool map_near(struct world_region *region, uint64_t window_bytes)
{
    region->mapped_bytes = window_bytes + 2 * GUARD_BYTES;
    region->mapped = malloc(region->mapped_bytes);
    region->base = region->mapped + GUARD_BYTES;
    region->bytes = window_bytes;
    region->window = 0;
    return region->mapped != NULL;
}

bool world_region_create(struct world_region *region, enum world_region_kind kind, uint64_t window_bytes,
                         uint32_t slice_count)
{
    *region = (struct world_region){.kind = kind, .slice_count = slice_count, .window_bytes = window_bytes};
    bool mapped = kind == WORLD_FAR ? map_far(region, window_bytes) : map_near(region, window_bytes);
    region->shadow = mapped ? malloc(window_bytes + 2 * GUARD_BYTES) : NULL;
    if (region->shadow == NULL) {
        return false;
    }
    memset(region->base + region->window - GUARD_BYTES, GUARD_FILL, window_bytes + 2 * GUARD_BYTES);
    memset(region->shadow, GUARD_FILL, window_bytes + 2 * GUARD_BYTES);
    for (uint32_t i = 0; i < slice_count; i++) {
        region->slices[i].bytes = window_bytes / slice_count;
        region->slices[i].offset = region->window + i * region->slices[i].bytes;
    }
    return true;
}

void world_region_destroy(struct world_region *region)
{
    if (region->kind == WORLD_FAR && region->mapped != NULL) {
        munmap(region->mapped, region->mapped_bytes);
    } else {
        free(region->mapped);
    }
    free(region->shadow);
    region->mapped = NULL;
    region->shadow = NULL;
}

void world_region_poison(struct world_region *region)
{
    /* another byte than last time */
    memset(region->base + region->window, (int)(++region->poisons * 37 & 0xff), region->window_bytes);
    world_region_accept(region, region->window, region->window_bytes);
    for (uint32_t i = 0; i < region->slice_count; i++) {
        region->slices[i].count = 0;
    }
}

/* ---- what is under way ---- */

static bool extent_free(const struct world_slice *slice, uint64_t offset, uint64_t bytes)
{
    for (uint32_t i = 0; i < slice->count; i++) {
        const struct world_extent *extent = &slice->extents[i];
        if (extent->offset < offset + bytes && offset < extent->offset + extent->bytes) {
            return false;
        }
    }
    return true;
}

bool world_extent_acquire(struct world_region *region, uint32_t slice_index, struct cw_random *random, uint64_t bytes,
                          uint32_t operation, uint64_t *offset)
{
    enum { TRIES = 4 };
    struct world_slice *slice = &region->slices[slice_index];
    if (slice->count == WORLD_EXTENTS_MAX || bytes > slice->bytes) {
        return false;
    }
    for (uint32_t i = 0; i < TRIES; i++) {
        uint64_t at = slice->offset + cw_random_below(random, slice->bytes - bytes + 1);
        if (extent_free(slice, at, bytes)) {
            slice->extents[slice->count++] =
                (struct world_extent){.offset = at, .bytes = bytes, .operation = operation};
            *offset = at;
            return true;
        }
    }
    return false;
}

void world_extent_release(struct world_region *region, uint32_t operation)
{
    for (uint32_t i = 0; i < region->slice_count; i++) {
        struct world_slice *slice = &region->slices[i];
        for (uint32_t j = 0; j < slice->count; j++) {
            if (slice->extents[j].operation == operation) {
                slice->extents[j] = slice->extents[--slice->count];
                return;
            }
        }
    }
}

/* ---- the shadow ---- */

static inline uint8_t *shadow_at(struct world_region *region, uint64_t offset)
{
    return region->shadow + GUARD_BYTES + (offset - region->window);
}

void world_region_accept(struct world_region *region, uint64_t offset, uint64_t bytes)
{
    memcpy(shadow_at(region, offset), region->base + offset, bytes);
}

/* Bytes under way are old or new; once seen new they stay so. */
static void extent_verify(struct world *world, const struct world_process *process, struct world_region *region,
                          const struct world_extent *extent)
{
    const struct world_operation *operation = &world->operations[extent->operation];
    const uint8_t *now = region->base + extent->offset;
    uint8_t *before = shadow_at(region, extent->offset);
    if (memcmp(now, before, extent->bytes) == 0) {
        return;
    }
    uint64_t first = operation->kind == WORLD_GET ? operation->offset : 0;
    for (uint64_t i = 0; i < extent->bytes; i++) {
        if (now[i] != before[i] && now[i] != pattern_byte(operation->pattern, first + i)) {
            world_fail(world, "node %u, region %d: byte %llu of operation %u under way is neither old nor new",
                       process->node, region->kind, (unsigned long long)i, extent->operation);
            return;
        }
    }
    memcpy(before, now, extent->bytes);
}

void world_region_verify(struct world *world, const struct world_process *process, struct world_region *region)
{
    for (uint32_t i = 0; i < region->slice_count && region->kind != WORLD_STORE; i++) {
        for (uint32_t j = 0; j < region->slices[i].count; j++) {
            extent_verify(world, process, region, &region->slices[i].extents[j]);
        }
    }
    const uint8_t *now = region->base + region->window - GUARD_BYTES;
    uint64_t bytes = region->window_bytes + 2 * GUARD_BYTES;
    if (world->failed || memcmp(now, region->shadow, bytes) == 0) {
        return;
    }
    for (uint64_t i = 0; i < bytes; i++) {
        if (now[i] != region->shadow[i]) {
            world_fail(world, "node %u, region %d: byte at offset %lld was stored outside of operations in progress",
                       process->node, region->kind, (long long)(region->window + i) - GUARD_BYTES);
            return;
        }
    }
}
