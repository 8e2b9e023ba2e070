/* Sources: bad descriptions, and ranges within a region. That every byte is sent: simulate_correctness. */
#include "dataplane/limits.h"
#include "dataplane/state/source.h"
#include "tests/test.h"

static void bad_descriptions_are_rejected(void **state)
{
    static const struct cw_slice overflowing[] = {{"x", UINT64_MAX}, {"x", 2}};
    static const struct cw_slice nowhere[] = {{NULL, 1}};
    const struct cw_source table[] = {
        {.contiguous = {.data = NULL, .bytes = 1}},
        {.contiguous = {.data = "x", .bytes = 1ull << 63}},
        {.kind = CW_SOURCE_STRIDED, .strided = {.data = "x", .block_bytes = 1ull << 40, .block_count = 1ull << 40}},
        {.kind = CW_SOURCE_STRIDED, .strided = {.data = NULL, .block_bytes = 1, .block_count = 1}},
        {.kind = CW_SOURCE_SLICES, .slices = {.list = NULL, .count = 1}},
        {.kind = CW_SOURCE_SLICES, .slices = {.list = overflowing, .count = 2}},
        {.kind = CW_SOURCE_SLICES, .slices = {.list = nowhere, .count = 1}},
        {.kind = CW_SOURCE_SLICES, .slices = {.list = overflowing, .count = CW_SLICES_MAX + 1ull}},
        {.kind = (enum cw_source_kind)3},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        uint64_t bytes = 42;
        assert_false(cw_source_measure(&table[i], &bytes));
        assert_int_equal(bytes, 42);
    }
    uint64_t bytes;
    assert_true(cw_source_measure(&(struct cw_source){.contiguous = {.data = NULL, .bytes = 0}}, &bytes));
    assert_int_equal(bytes, 0);
}

static void within_means_every_byte(void **state)
{
    uint8_t base[100];
    const struct cw_slice inside[] = {{base, 10}, {base + 90, 10}, {NULL, 0}};
    const struct cw_slice outside[] = {{base, 10}, {base + 91, 10}};
    const struct {
        struct cw_source source;
        bool within;
    } table[] = {
        {{.contiguous = {.data = base, .bytes = 100}}, true},
        {{.contiguous = {.data = base + 1, .bytes = 100}}, false},
        {{.contiguous = {.data = base + 100, .bytes = 0}}, true},
        {{.kind = CW_SOURCE_STRIDED, .strided = {base, 10, 30, 4}}, true}, /* 90 .. 100 */
        {{.kind = CW_SOURCE_STRIDED, .strided = {base, 11, 30, 4}}, false},
        {{.kind = CW_SOURCE_STRIDED, .strided = {base + 90, 10, -30, 4}}, true},
        {{.kind = CW_SOURCE_STRIDED, .strided = {base + 80, 10, -30, 4}}, false},
        {{.kind = CW_SOURCE_STRIDED, .strided = {base, 10, INT64_MAX, 4}}, false},
        {{.kind = CW_SOURCE_SLICES, .slices = {inside, 3}}, true},
        {{.kind = CW_SOURCE_SLICES, .slices = {outside, 2}}, false},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        assert_int_equal(cw_source_within(&table[i].source, base, sizeof(base)), table[i].within);
    }
}

int main(void)
{
    return TESTS_RUN(bad_descriptions_are_rejected, within_means_every_byte);
}
