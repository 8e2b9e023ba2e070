/* Sources against the bytes they describe: measured, bounded, and read from any position in any pieces. */
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/random.h"
#include "dataplane/limits.h"
#include "dataplane/state/source.h"
#include "dataplane/wire/wire.h"
#include "tests/test.h"

enum { MEMORY_BYTES = 4096, RUNS = 400, SLICES_MAX = 20 };

struct made {
    struct cw_source source;
    struct cw_slice slices[SLICES_MAX];
    uint8_t flat[4 * MEMORY_BYTES];
    uint64_t bytes;
};

/* A random source within `memory`, and what it says, byte by byte. */
static void make(struct made *made, struct cw_random *random, const uint8_t *memory)
{
    made->bytes = 0;
    switch (cw_random_below(random, 3)) {
    case 0: {
        uint64_t bytes = cw_random_below(random, MEMORY_BYTES);
        uint64_t at = cw_random_below(random, MEMORY_BYTES - bytes + 1);
        made->source = (struct cw_source){.contiguous = {.data = memory + at, .bytes = bytes}};
        memcpy(made->flat, memory + at, bytes);
        made->bytes = bytes;
        break;
    }
    case 1: {
        uint64_t block = cw_random_below(random, 60);
        uint64_t count = cw_random_below(random, 30);
        int64_t stride = (int64_t)cw_random_below(random, 120) - 60;
        const uint8_t *first = memory + MEMORY_BYTES / 2;
        made->source = (struct cw_source){
            .kind = CW_SOURCE_STRIDED,
            .strided = {.data = first, .block_bytes = block, .stride_bytes = stride, .block_count = count}};
        for (uint64_t i = 0; i < count; i++) {
            memcpy(made->flat + made->bytes, first + (int64_t)i * stride, block);
            made->bytes += block;
        }
        break;
    }
    default: {
        uint64_t count = cw_random_below(random, SLICES_MAX + 1);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t bytes = cw_random_chance(random, 0.3) ? 0 : cw_random_below(random, 300);
            made->slices[i] =
                (struct cw_slice){.data = memory + cw_random_below(random, MEMORY_BYTES - bytes + 1), .bytes = bytes};
            memcpy(made->flat + made->bytes, made->slices[i].data, bytes);
            made->bytes += bytes;
        }
        made->source = (struct cw_source){.kind = CW_SOURCE_SLICES, .slices = {.list = made->slices, .count = count}};
        break;
    }
    }
}

static void every_byte_is_found(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 11);
    uint8_t *memory = malloc(MEMORY_BYTES);
    struct made *made = malloc(sizeof(*made));
    uint8_t out[4 * MEMORY_BYTES];
    cw_random_fill(&random, memory, MEMORY_BYTES);
    for (uint32_t run = 0; run < RUNS; run++) {
        make(made, &random, memory);
        uint64_t bytes = 0;
        assert_true(cw_source_measure(&made->source, &bytes));
        assert_int_equal(bytes, made->bytes);
        struct cw_source_cursor cursor = {0};
        for (uint32_t read = 0; read < 20 && bytes > 0; read++) { /* forwards and back again, as retransmissions do */
            uint64_t position = cw_random_below(&random, bytes);
            uint32_t length = (uint32_t)cw_random_between(&random, 1, bytes - position);
            uint32_t checksum = read;
            cw_source_copy(&made->source, &cursor, position, length, out, read % 2 == 0 ? NULL : &checksum);
            assert_memory_equal(out, made->flat + position, length);
            assert_int_equal(checksum, read % 2 == 0 ? read : cw_wire_checksum(read, made->flat + position, length));
            const void *data;
            uint32_t run_bytes = cw_source_run(&made->source, &cursor, position, length, &data);
            assert_true(run_bytes >= 1 && run_bytes <= length);
            assert_memory_equal(data, made->flat + position, run_bytes);
        }
    }
    free(made);
    free(memory);
}

static void bad_descriptions_are_refused(void **state)
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
    return TESTS_RUN(every_byte_is_found, bad_descriptions_are_refused, within_means_every_byte);
}
