/* The table of regions: tokens, rights and bounds. */
#include "dataplane/base/random.h"
#include "dataplane/dataplane.h"
#include "dataplane/state/region.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { COUNT = 5, STEPS = 5000 };

static uint8_t memory[64];

static void rights_and_bounds(void **state)
{
    struct cw_regions regions;
    assert_int_equal(cw_regions_init(&regions, COUNT), CW_OK);
    struct cw_region *region;
    const uint64_t huge = 5ull << 30;
    assert_int_equal(cw_regions_add(&regions, memory, huge, CW_REGION_WRITE, 0x123456789abc, &region), CW_OK);
    uint64_t token = region->token;
    assert_int_equal(token >> 16, 0x123456789abc);
    const struct {
        uint64_t token, offset, bytes;
        uint32_t rights;
        bool found;
    } table[] = {
        {token, 0, huge, CW_REGION_WRITE, true},
        {token, 0, huge, 0, true},
        {token, huge, 0, CW_REGION_WRITE, true},
        {token, huge - 1, 1, CW_REGION_WRITE, true},
        {token, huge - 1, 2, CW_REGION_WRITE, false},
        {token, huge + 1, 0, CW_REGION_WRITE, false},
        {token, 1ull << 32, 100, CW_REGION_WRITE, true},
        {token, UINT64_MAX, 2, CW_REGION_WRITE, false}, /* offset + bytes wraps */
        {token, 1, UINT64_MAX, CW_REGION_WRITE, false},
        {token, 0, 1, CW_REGION_READ, false},
        {token, 0, 1, CW_REGION_READ | CW_REGION_WRITE, false},
        {token ^ 1ull << 16, 0, 1, CW_REGION_WRITE, false},
        {token ^ 1ull << 63, 0, 1, CW_REGION_WRITE, false},
        {token + 1, 0, 1, CW_REGION_WRITE, false},
        {token | 0xffff, 0, 1, CW_REGION_WRITE, false},
        {0, 0, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        bool found = cw_region_find(&regions, table[i].token, table[i].offset, table[i].bytes, table[i].rights) != NULL;
        assert_int_equal(found, table[i].found);
    }
    cw_regions_remove(region);
    assert_null(cw_region_of(&regions, token));
    cw_regions_dispose(&regions);
}

/* Adds and removes at random: a token finds its region as long as it lives, and never after. */
static void tokens_live_as_long_as_their_regions(void **state)
{
    struct cw_regions regions;
    struct cw_random random;
    cw_random_seed(&random, 3);
    assert_int_equal(cw_regions_init(&regions, COUNT), CW_OK);
    uint64_t live[COUNT] = {0};
    uint64_t dead[STEPS];
    uint32_t dead_count = 0;
    uint32_t live_count = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t i = (uint32_t)cw_random_below(&random, COUNT);
        if (live[i] == 0) {
            struct cw_region *region;
            assert_int_equal(cw_regions_add(&regions, memory, 64, 0, cw_random_next(&random) >> 16, &region), CW_OK);
            live[i] = region->token;
            live_count++;
        } else {
            cw_regions_remove(cw_region_of(&regions, live[i]));
            dead[dead_count++] = live[i];
            live[i] = 0;
            live_count--;
        }
        struct cw_region *region = NULL;
        if (live_count == COUNT) {
            assert_int_equal(cw_regions_add(&regions, memory, 1, 0, 1, &region), CW_ERROR_LIMIT);
            assert_null(region);
        }
        for (uint32_t j = 0; j < COUNT; j++) {
            assert_true(live[j] == 0 || cw_region_of(&regions, live[j])->token == live[j]);
        }
        assert_true(dead_count == 0 || cw_region_of(&regions, dead[cw_random_below(&random, dead_count)]) == NULL);
    }
    cw_regions_dispose(&regions);
}

int main(void)
{
    return TESTS_RUN(rights_and_bounds, tokens_live_as_long_as_their_regions);
}
