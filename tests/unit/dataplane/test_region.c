/* The table of regions: tokens, rights and bounds. */
#include "dataplane/dataplane.h"
#include "dataplane/state/region.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { COUNT = 5 };

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

int main(void)
{
    return TESTS_RUN(rights_and_bounds);
}
