/* The registration cache, against a simulated IOMMU, and against a device with regions of its own (as verbs have),
 * which know the memory behind each page. For any sequence of maps, unmaps and sends, the device reaches the memory
 * that is there when it is sent from, and never an unmapped page. CW_TEST_SEEDS: sequences. */
#include "dataplane/base/random.h"
#include "dataplane/register/cache.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum {
    PAGES = 40,
    PAGE_BYTES = 4096,
    SENDS = 6,
    STEPS = 300,
    SEQUENCES = 10000,
    REMOVALS = 64,
    NEVER_PAGE = 17 /* no region begins here */
};

/* A process's memory, its kernel and a device. */
struct world {
    struct cw_random random;
    uint32_t memory[PAGES]; /* the memory behind each page: the number changes with it */
    bool is_watched[PAGES]; /* the kernel would tell */
    uint32_t mapped[PAGES]; /* memory that the device reaches; 0: none */
    uint32_t users[PAGES];  /* sends under way */
    uint32_t ends[PAGES];   /* of the call that mapped from this page on; 0: none did */
    uint32_t room;          /* pages that the device still has */
    uintptr_t removals[REMOVALS][2];
    uint32_t removal_count;
    bool cannot_watch;
    bool has_regions; /* the device: each registration is one, for itself */
    struct cw_mappings mappings;
    struct cw_cache cache;
    struct {
        struct cw_cached *entry; /* NULL: none under way */
        uint32_t first, end;
        uint32_t memory[PAGES]; /* as it was when it began */
    } sends[SENDS];
    uint32_t busy, full;
};

/* ---- the device ---- */

static int device_map(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below)
{
    struct world *world = context;
    uint32_t count = (uint32_t)((end - first) / PAGE_BYTES);
    if (count > world->room) {
        return CW_ERROR_LIMIT;
    }
    world->room -= count;
    for (uintptr_t page = first / PAGE_BYTES; page < end / PAGE_BYTES; page++) {
        assert_int_equal(world->mapped[page], 0);
        world->mapped[page] = world->memory[page];
    }
    world->ends[first / PAGE_BYTES] = (uint32_t)(end / PAGE_BYTES);
    return CW_OK;
}

static void device_unmap(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below)
{
    struct world *world = context;
    assert_int_equal(world->ends[first / PAGE_BYTES], end / PAGE_BYTES);
    world->ends[first / PAGE_BYTES] = 0;
    for (uintptr_t page = first / PAGE_BYTES; page < end / PAGE_BYTES; page++) {
        assert_int_equal(world->users[page], 0); /* a device that still reads there would fault */
        world->mapped[page] = 0;
        world->room++;
    }
}

/* A region reaches the memory at the time of its creation. */
static int region_add(void *context, struct cw_pages *pages, uintptr_t first, uintptr_t end)
{
    struct world *world = context;
    uint32_t count = (uint32_t)((end - first) / PAGE_BYTES);
    if (first / PAGE_BYTES == NEVER_PAGE) {
        return CW_ERROR_ARGUMENT;
    }
    if (count > world->room) {
        return CW_ERROR_LIMIT;
    }
    world->room -= count;
    *pages =
        (struct cw_pages){.first = first, .end = end, .kind = pages->kind, .handle = malloc(sizeof(world->memory))};
    memcpy(pages->handle, world->memory, sizeof(world->memory));
    return CW_OK;
}

static void region_remove(void *context, struct cw_pages *pages)
{
    struct world *world = context;
    world->room += (uint32_t)((pages->end - pages->first) / PAGE_BYTES);
    free(pages->handle);
}

/* The memory that the device reaches for a page of a send. */
static uint32_t reached(const struct world *world, uint32_t at, uint32_t page)
{
    const struct cw_pages *pages = cw_cache_pages(world->sends[at].entry);
    assert_true(pages->first / PAGE_BYTES <= page && page < pages->end / PAGE_BYTES);
    return world->has_regions ? ((const uint32_t *)pages->handle)[page] : world->mapped[page];
}

/* ---- the kernel ---- */

static int watch_begin(void *context, uintptr_t first, uintptr_t end)
{
    struct world *world = context;
    if (world->cannot_watch) {
        return CW_ERROR_UNSUPPORTED;
    }
    for (uintptr_t page = first / PAGE_BYTES; page < end / PAGE_BYTES; page++) {
        world->is_watched[page] = true;
    }
    return CW_OK;
}

static bool watch_is_same(void *context, uintptr_t first, uintptr_t end)
{
    const struct world *world = context;
    bool are_all = true;
    for (uintptr_t page = first / PAGE_BYTES; page < end / PAGE_BYTES; page++) {
        are_all = are_all && world->is_watched[page];
    }
    return are_all;
}

static bool watch_removed(void *context, uintptr_t *first, uintptr_t *end)
{
    struct world *world = context;
    if (world->removal_count == 0) {
        return false;
    }
    world->removal_count--;
    *first = world->removals[world->removal_count][0];
    *end = world->removals[world->removal_count][1];
    return true;
}

static void watch_end(void *context, uintptr_t first, uintptr_t end)
{
    struct world *world = context;
    for (uintptr_t page = first / PAGE_BYTES; page < end / PAGE_BYTES; page++) {
        world->is_watched[page] = false;
    }
}

/* ---- the program ---- */

static void range_draw(struct world *world, uint32_t *first, uint32_t *end)
{
    *first = (uint32_t)cw_random_below(&world->random, PAGES);
    *end = *first + 1 + (uint32_t)cw_random_below(&world->random, PAGES - *first > 12 ? 12 : PAGES - *first);
}

static bool is_blind(const struct world *world)
{
    return world->cannot_watch || world->cache.watch.begin == NULL;
}

/* Gives pages back, and has others there at once. By munmap and mmap, or by madvise, of which the kernel tells. */
static void memory_renew(struct world *world, bool by_advice)
{
    uint32_t first, end;
    range_draw(world, &first, &end);
    for (uint32_t page = first; page < end && is_blind(world); page++) {
        if (world->users[page] > 0) {
            return; /* nobody would tell: no program gives back what it is sending */
        }
    }
    for (uint32_t page = first; page < end; page++) {
        world->memory[page] += 1;
        if (!by_advice) {
            world->is_watched[page] = false;
        }
    }
    if (by_advice) {
        if (world->removal_count == REMOVALS) { /* more than are kept: all may have gone */
            world->removal_count = 1;
            first = 0;
            end = PAGES;
        }
        world->removals[world->removal_count][0] = (uintptr_t)first * PAGE_BYTES;
        world->removals[world->removal_count++][1] = (uintptr_t)end * PAGE_BYTES;
    }
}

static void send_begin(struct world *world, uint32_t at)
{
    uint32_t first, end;
    range_draw(world, &first, &end);
    uintptr_t base = (uintptr_t)first * PAGE_BYTES + cw_random_below(&world->random, PAGE_BYTES);
    size_t bytes =
        (uintptr_t)end * PAGE_BYTES - base - cw_random_below(&world->random, 100) % (PAGE_BYTES - base % PAGE_BYTES);
    uint64_t evicted = world->cache.counters.evicted;
    uint32_t kind = (uint32_t)cw_random_below(&world->random, 2);
    int status = cw_cache_get(&world->cache, (const void *)base, bytes, kind, &world->sends[at].entry);
    if (status != CW_OK) {
        assert_true(status == CW_ERROR_BUSY || status == CW_ERROR_LIMIT ||
                    (status == CW_ERROR_ARGUMENT && first == NEVER_PAGE && world->cache.counters.evicted == evicted));
        world->sends[at].entry = NULL;
        world->busy += status == CW_ERROR_BUSY;
        world->full += status == CW_ERROR_LIMIT;
        return;
    }
    world->sends[at].first = first;
    world->sends[at].end = end;
    const struct cw_pages *pages = cw_cache_pages(world->sends[at].entry);
    assert_int_equal(pages->kind, kind);
    assert_true(kind == 0 || (pages->first == first * PAGE_BYTES && pages->end == end * PAGE_BYTES));
    for (uint32_t page = first; page < end; page++) {
        assert_true_msg(reached(world, at, page) == world->memory[page],
                        "page %u is sent, and the device reaches %u instead of %u", page, reached(world, at, page),
                        world->memory[page]);
        world->sends[at].memory[page] = world->memory[page];
        world->users[page]++;
    }
}

static void send_end(struct world *world, uint32_t at)
{
    for (uint32_t page = world->sends[at].first; page < world->sends[at].end; page++) {
        /* after any change by the program, the device reads the memory of the send */
        assert_int_equal(reached(world, at, page), world->sends[at].memory[page]);
        world->users[page]--;
    }
    cw_cache_put(&world->cache, world->sends[at].entry);
    world->sends[at].entry = NULL;
}

static void world_open(struct world *world, uint64_t seed)
{
    const struct cw_memory_watch watch = {
        .context = world, .begin = watch_begin, .is_same = watch_is_same, .removed = watch_removed, .end = watch_end};
    const struct cw_memory_watch none = {.context = NULL};
    memset(world, 0, sizeof(*world));
    cw_random_seed(&world->random, seed);
    for (uint32_t page = 0; page < PAGES; page++) {
        world->memory[page] = 1;
    }
    world->room = seed % 3 == 0 ? 20 : PAGES;
    world->cannot_watch = seed % 7 == 0;
    world->mappings = (struct cw_mappings){.map = device_map, .unmap = device_unmap, .context = world};
    world->has_regions = seed % 2 == 0;
    const struct cw_registrar regions = {.context = world, .add = region_add, .remove = region_remove};
    cw_cache_init(&world->cache, world->has_regions ? regions : cw_registrar_of_mappings(&world->mappings),
                  seed % 11 == 0 ? &none : &watch, PAGE_BYTES);
}

static struct cw_cache_counters sequence_run(struct world *world, uint64_t seed)
{
    world_open(world, seed);
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t at = (uint32_t)cw_random_below(&world->random, SENDS);
        if (cw_random_below(&world->random, 5) == 0) {
            memory_renew(world, cw_random_below(&world->random, 2) == 0);
        } else if (world->sends[at].entry != NULL) {
            send_end(world, at);
        } else {
            send_begin(world, at);
        }
    }
    for (uint32_t at = 0; at < SENDS; at++) {
        if (world->sends[at].entry != NULL) {
            send_end(world, at);
        }
    }
    struct cw_cache_counters counters = world->cache.counters;
    if (is_blind(world)) {
        assert_int_equal(world->cache.unused_count, 0);
    }
    cw_cache_dispose(&world->cache);
    for (uint32_t page = 0; page < PAGES; page++) {
        assert_int_equal(world->mapped[page], 0);
        assert_false(world->is_watched[page] && !world->cannot_watch);
    }
    return counters;
}

static void test_right_bytes_in_any_order(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEQUENCES));
    struct cw_cache_counters all = {.found = 0};
    uint64_t busy = 0, full = 0;
    struct world *world = malloc(sizeof(*world));
    assert_non_null(world);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct cw_cache_counters counters = sequence_run(world, seed);
        all.found += counters.found;
        all.stale += counters.stale;
        all.evicted += counters.evicted;
        busy += world->busy;
        full += world->full;
    }
    free(world);
    if (seeds.is_all) { /* all of it has come */
        assert_true(all.found > 0 && all.stale > 0 && all.evicted > 0 && busy > 0 && full > 0);
    }
}

static void test_once_for_the_same_buffer(void **state)
{
    struct world *world = malloc(sizeof(*world));
    struct cw_cached *entry;
    assert_non_null(world);
    world_open(world, 1);
    for (int times = 0; times < 1000; times++) {
        assert_int_equal(
            cw_cache_get(&world->cache, (const void *)(uintptr_t)(3 * PAGE_BYTES + 7), 5 * PAGE_BYTES, 0, &entry),
            CW_OK);
        cw_cache_put(&world->cache, entry);
    }
    assert_int_equal(world->cache.counters.registered, 1);
    assert_int_equal(world->cache.counters.found, 999);
    cw_cache_dispose(&world->cache);
    free(world);
}

static int any_map(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below)
{
    uint64_t *mapped = context;
    *mapped += end - first;
    return CW_OK;
}

static void any_unmap(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below)
{
    uint64_t *mapped = context;
    *mapped -= end - first;
}

static int any_begin(void *context, uintptr_t first, uintptr_t end)
{
    return CW_OK;
}

static bool any_is_same(void *context, uintptr_t first, uintptr_t end)
{
    return true;
}

static bool any_removed(void *context, uintptr_t *first, uintptr_t *end)
{
    return false;
}

static void any_end(void *context, uintptr_t first, uintptr_t end)
{
}

/* Uses `count` buffers of `bytes`, far from each other, once each. */
static void buffers_use(struct cw_cache *cache, uintptr_t from, uint32_t count, uint64_t bytes)
{
    struct cw_cached *entry;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(cw_cache_get(cache, (const void *)(from + i * (bytes + PAGE_BYTES)), bytes, 0, &entry), CW_OK);
        cw_cache_put(cache, entry);
    }
}

/* The limits hold, in number and bytes, and the entry unused for the longest time goes first. */
static void test_unused_entries_are_bounded(void **state)
{
    uint64_t mapped = 0;
    struct cw_cache cache;
    struct cw_mappings mappings = {.map = any_map, .unmap = any_unmap, .context = &mapped};
    const struct cw_memory_watch watch = {
        .begin = any_begin, .is_same = any_is_same, .removed = any_removed, .end = any_end};
    const uintptr_t here = UINT64_C(1) << 32, there = UINT64_C(1) << 40;
    cw_cache_init(&cache, cw_registrar_of_mappings(&mappings), &watch, PAGE_BYTES);
    buffers_use(&cache, here, CW_CACHE_ENTRIES_MAX + 10, PAGE_BYTES);
    assert_int_equal(cache.unused_count, CW_CACHE_ENTRIES_MAX);
    assert_int_equal(mapped, CW_CACHE_ENTRIES_MAX * PAGE_BYTES);
    assert_int_equal(cache.counters.evicted, 10);
    buffers_use(&cache, here + 2 * PAGE_BYTES * 10, 1, PAGE_BYTES); /* the oldest that is left, which is young again */
    assert_int_equal(cache.counters.found, 1);
    buffers_use(&cache, there, 3, CW_CACHE_BYTES_MAX / 4);
    assert_int_equal(cache.unused_count, CW_CACHE_ENTRIES_MAX);
    buffers_use(&cache, here + 2 * PAGE_BYTES * 10, 1, PAGE_BYTES);
    assert_int_equal(cache.counters.found, 2);
    buffers_use(&cache, there, 4, CW_CACHE_BYTES_MAX / 4);
    assert_true(cache.unused_bytes <= CW_CACHE_BYTES_MAX && mapped == cache.unused_bytes);
    buffers_use(&cache, 3 * there, 1, 2 * CW_CACHE_BYTES_MAX); /* none that is too long is kept */
    assert_true(cache.unused_bytes <= CW_CACHE_BYTES_MAX && mapped == cache.unused_bytes);
    cw_cache_dispose(&cache);
    assert_int_equal(mapped, 0);
}

int main(void)
{
    return TESTS_RUN(test_right_bytes_in_any_order, test_once_for_the_same_buffer, test_unused_entries_are_bounded);
}
