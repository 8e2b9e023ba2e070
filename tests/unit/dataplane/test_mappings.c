/* Mappings, against one bit for each page: whatever is registered, and in whatever order it ends, the device reaches
 * all of it, as the system has it now, and nothing is mapped twice. */
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/random.h"
#include "dataplane/register/mappings.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { PAGES = 48, PAGE_BYTES = 4096, REGISTRATIONS = 12, STEPS = 2000, SEEDS = 50 };

/* A device that takes down what it is asked for. */
struct device {
    struct cw_random random;
    uint32_t fails_percent;
    uint32_t
        memory[PAGES]; /* what is behind each address now: the number changes when the system puts other memory there */
    uint32_t mapped[PAGES]; /* what the device would reach; 0: nothing */
    uint32_t ends[PAGES];   /* of the call that mapped from this page on; 0: none did */
    uint32_t calls;
};

static int device_map(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below)
{
    struct device *device = context;
    if (cw_random_below(&device->random, 100) < device->fails_percent) {
        return CW_ERROR_LIMIT;
    }
    for (uintptr_t page = first / PAGE_BYTES; page < end / PAGE_BYTES; page++) {
        assert_int_equal(device->mapped[page], 0);
        device->mapped[page] = device->memory[page];
    }
    device->ends[first / PAGE_BYTES] = (uint32_t)(end / PAGE_BYTES);
    device->calls++;
    return CW_OK;
}

static void device_unmap(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below)
{
    struct device *device = context;
    assert_int_equal(device->ends[first / PAGE_BYTES], end / PAGE_BYTES);
    device->ends[first / PAGE_BYTES] = 0;
    memset(&device->mapped[first / PAGE_BYTES], 0, (end - first) / PAGE_BYTES * sizeof(device->mapped[0]));
    device->calls--;
}

struct world {
    struct device device;
    struct cw_mappings mappings;
    struct cw_pages list[REGISTRATIONS];
    bool is_registered[REGISTRATIONS];
    uint32_t users[PAGES];
    uint32_t refused, shared;
};

static void users_add(struct world *world, const struct cw_pages *pages, int change)
{
    for (uintptr_t page = pages->first / PAGE_BYTES; page < pages->end / PAGE_BYTES; page++) {
        world->users[page] += (uint32_t)change;
    }
}

static void world_check(const struct world *world)
{
    uint32_t registered = 0;
    for (uint32_t page = 0; page < PAGES; page++) {
        if (world->users[page] > 0 && world->device.mapped[page] != world->device.memory[page]) {
            fail_msg("page %u has %u users, and the device reaches %u instead of %u", page, world->users[page],
                     world->device.mapped[page], world->device.memory[page]);
        }
        registered += world->users[page] > 0;
    }
    if (registered == 0) {
        assert_int_equal(world->device.calls, 0);
    }
}

static void registration_begin(struct world *world, uint32_t at)
{
    uint32_t first = (uint32_t)cw_random_below(&world->device.random, PAGES);
    uint32_t count = 1 + (uint32_t)cw_random_below(&world->device.random, PAGES - first);
    bool is_taken = false, is_old = false;
    for (uint32_t page = first; page < first + count; page++) {
        is_taken = is_taken || world->users[page] > 0;
        is_old = is_old || (world->users[page] == 0 && world->device.mapped[page] != 0);
    }
    int status = cw_mappings_add(&world->mappings, &world->list[at], (uintptr_t)first * PAGE_BYTES,
                                 (uintptr_t)(first + count) * PAGE_BYTES);
    assert_true((status == CW_ERROR_BUSY) == is_old);
    assert_true(status == CW_OK || status == CW_ERROR_BUSY || world->device.fails_percent > 0);
    world->refused += status == CW_ERROR_BUSY;
    world->shared += status == CW_OK && is_taken;
    if (status == CW_OK) {
        world->is_registered[at] = true;
        users_add(world, &world->list[at], 1);
    }
}

static void registration_end(struct world *world, uint32_t at)
{
    users_add(world, &world->list[at], -1);
    world->is_registered[at] = false;
    cw_mappings_remove(&world->mappings, &world->list[at]);
    for (uint32_t page = 0; page < PAGES; page++) {
        if (world->users[page] == 0) {
            world->device.memory[page]++; /* its owner may unmap it, and map something else */
        }
    }
}

static void test_any_order(void **state)
{
    uint32_t refused = 0, shared = 0;
    struct test_seeds seeds = test_seeds(1, SEEDS);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct world *world = calloc(1, sizeof(*world));
        assert_non_null(world);
        cw_random_seed(&world->device.random, seed);
        world->device.fails_percent = seed % 3 == 0 ? 20 : 0;
        world->mappings = (struct cw_mappings){.map = device_map, .unmap = device_unmap, .context = &world->device};
        for (uint32_t page = 0; page < PAGES; page++) {
            world->device.memory[page] = 1;
        }
        for (uint32_t step = 0; step < STEPS; step++) {
            uint32_t at = (uint32_t)cw_random_below(&world->device.random, REGISTRATIONS);
            if (world->is_registered[at]) {
                registration_end(world, at);
            } else {
                registration_begin(world, at);
            }
            world_check(world);
        }
        for (uint32_t at = 0; at < REGISTRATIONS; at++) {
            if (world->is_registered[at]) {
                registration_end(world, at);
            }
        }
        world_check(world);
        refused += world->refused;
        shared += world->shared;
        free(world);
    }
    assert_true(!seeds.is_all || (refused > 0 && shared > 0)); /* both kinds have come */
}

/* The same pages twice, as two puts from one buffer make them: the first to end leaves them to the second. */
static void test_same_pages_twice(void **state)
{
    struct device device = {.memory = {[1] = 1, [2] = 1}};
    struct cw_mappings mappings = {.map = device_map, .unmap = device_unmap, .context = &device};
    struct cw_pages one, two;
    assert_int_equal(cw_mappings_add(&mappings, &one, PAGE_BYTES, 3 * PAGE_BYTES), CW_OK);
    assert_int_equal(cw_mappings_add(&mappings, &two, PAGE_BYTES, 3 * PAGE_BYTES), CW_OK);
    assert_int_equal(device.calls, 1);
    cw_mappings_remove(&mappings, &one);
    assert_int_equal(device.mapped[1], 1);
    assert_int_equal(device.mapped[2], 1);
    cw_mappings_remove(&mappings, &two);
    assert_int_equal(device.calls, 0);
}

int main(void)
{
    return TESTS_RUN(test_any_order, test_same_pages_twice);
}
