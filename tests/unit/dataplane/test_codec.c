/* Codecs: DFCM against one written from the paper, bit by bit; what plans choose; that a chunk is made again as it was.
 * */
#include "tests/test.h"

#include <fenv.h>
#include <math.h>

#include "dataplane/base/random.h"
#include "dataplane/codec/codec.h"
#include "dataplane/codec/dfcm.h"

enum { VALUES = 20000, CAPACITY = 1400 };

/* ---- the paper's predictor, slowly ---- */

struct reference {
    double table[1 << 15][2]; /* the second-most recent difference, the most recent one */
    double deltas[3];
    double last;
    uint8_t *bits; /* one each */
    size_t count;
};

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void put_bits(struct reference *reference, uint64_t value, int count)
{
    for (int i = 0; i < count; i++) {
        reference->bits[reference->count++] = (uint8_t)(value >> i & 1);
    }
}

static void reference_value(struct reference *reference, double value)
{
    uint64_t top[3];
    for (int i = 0; i < 3; i++) {
        top[i] = bits_of(reference->deltas[i]) >> 50;
    }
    uint64_t hash = (top[2] ^ top[1] << 5 ^ top[0] << 10) & 0x7fff;
    double *line = reference->table[hash];
    double step = bits_of(line[0]) >> 50 == bits_of(line[1]) >> 50 ? line[1] + (line[1] - line[0]) : line[1];
    double predicted = reference->last + step;
    uint64_t difference = bits_of(value) ^ (isnan(predicted) ? 0 : bits_of(predicted));
    int zeros = 0;
    while (zeros < 15 && difference >> (60 - 4 * zeros) == 0) {
        zeros++;
    }
    put_bits(reference, (uint64_t)zeros, 4);
    put_bits(reference, difference, 64 - 4 * zeros);
    double delta = value - reference->last;
    delta = isnan(delta) ? 0 : delta;
    line[0] = line[1];
    line[1] = delta;
    reference->deltas[0] = reference->deltas[1];
    reference->deltas[1] = reference->deltas[2];
    reference->deltas[2] = delta;
    reference->last = value;
}

/* Fields of several kinds: smooth, noisy, records, differing in their last bits, anything at all. */
static double field(int kind, int i, struct cw_random *random)
{
    double value;
    uint64_t bits;
    switch (kind) {
    case 0:
        return sin(i * 0.01) * 3 + i * 1e-4;
    case 1:
        return 100 + sin(i * 0.01) + 1e-5 * cw_random_fraction(random);
    case 2:
        return (i % 5 + 1) * (1 + 0.1 * sin(i / 5 * 0.02)) + 1e-7 * cw_random_fraction(random);
    case 3:
        return 1 + (double)(cw_random_next(random) % 32) * 0x1p-52;
    case 4:
        bits = cw_random_next(random);
        memcpy(&value, &bits, sizeof(value));
        return value;
    default:
        return i % 97 == 0 ? NAN : i % 89 == 0 ? -INFINITY : i % 83 == 0 ? -0.0 : i * 0x1p-1070;
    }
}
enum { FIELDS = 6 };

static void dfcm_is_the_papers(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 1);
    double *values = calloc(VALUES, sizeof(*values));
    double *back = calloc(VALUES, sizeof(*back));
    uint8_t *bytes = malloc(cw_dfcm_bound(VALUES));
    struct reference *reference = calloc(1, sizeof(*reference));
    reference->bits = malloc((size_t)VALUES * 68);
    struct cw_dfcm *here = cw_dfcm_create();
    struct cw_dfcm *there = cw_dfcm_create();
    for (int kind = 0; kind < FIELDS; kind++) { /* one message after the other, by one predictor */
        for (int i = 0; i < VALUES; i++) {
            values[i] = field(kind, i, &random);
        }
        reference->count = 0;
        for (int i = 0; i < VALUES; i++) {
            reference_value(reference, values[i]);
        }
        size_t length = cw_dfcm_compress(here, values, VALUES, bytes);
        assert_int_equal(length, (reference->count + 7) / 8);
        for (size_t i = 0; i < reference->count; i++) {
            assert_int_equal(bytes[i / 8] >> i % 8 & 1, reference->bits[i]);
        }
        assert_true(cw_dfcm_expand(there, bytes, length, VALUES, back));
        assert_memory_equal(back, values, VALUES * sizeof(*values));
    }
    cw_dfcm_destroy(here);
    cw_dfcm_destroy(there);
    free(reference->bits);
    free(reference);
    free(values);
    free(back);
    free(bytes);
}

/* Any change of the program to its thread's arithmetic has no effect, and is restored. */
static void dfcm_does_not_depend_on_rounding(void **state)
{
    double values[500];
    uint8_t one[500 * 9];
    uint8_t other[500 * 9];
    struct cw_codec_scratch *scratch = cw_codec_scratch_create();
    struct cw_codec_plan plan = {CW_CODEC_DFCM, 0};
    for (int i = 0; i < 500; i++) {
        values[i] = sin(i * 0.3) * 1e-300;
    }
    uint32_t taken = 0;
    uint32_t bytes = cw_codec_fill(scratch, plan, values, sizeof(values), one, sizeof(one), &taken);
    fesetround(FE_UPWARD);
    taken = 0;
    assert_int_equal(cw_codec_fill(scratch, plan, values, sizeof(values), other, sizeof(other), &taken), bytes);
    assert_int_equal(fegetround(), FE_UPWARD);
    fesetround(FE_TONEAREST);
    assert_memory_equal(one, other, bytes);
    cw_codec_scratch_destroy(scratch);
}

static void runs_cost_nothing(void **state)
{
    struct cw_codec_scratch *scratch = cw_codec_scratch_create();
    uint8_t *bytes = calloc(1, 1 << 17);
    uint8_t chunk[CAPACITY];
    uint32_t taken = 0;
    struct cw_codec_plan plan = {CW_CODEC_RUN, 0};
    assert_int_equal(cw_codec_fill(scratch, plan, bytes, 1 << 17, chunk, CAPACITY, &taken), 8);
    assert_int_equal(taken, CW_CHUNK_RAW_MAX);
    bytes[1000] = 1;
    assert_int_equal(cw_codec_fill(scratch, plan, bytes, 1 << 17, chunk, CAPACITY, &taken), 8);
    assert_int_equal(taken, 1000);
    bytes[5] = 1;
    taken = 0;
    assert_int_equal(cw_codec_fill(scratch, plan, bytes, 1 << 17, chunk, CAPACITY, &taken), 0);
    memset(bytes, 'a', 77); /* an end that is no whole pattern */
    assert_int_equal(cw_codec_fill(scratch, plan, bytes, 77, chunk, CAPACITY, &taken), 8);
    assert_int_equal(taken, 77);
    cw_codec_scratch_destroy(scratch);
    free(bytes);
}

/* Plans suit the data: the chunks of a field with a known shape are as short as that shape allows. */
static void plans_find_the_shape(void **state)
{
    static const struct {
        int period;   /* of records */
        double noise; /* relative */
        double least; /* rate */
    } rows[] = {{1, 0, 2.2}, {5, 0, 1.8}, {1, 1e-9, 1.8}, {4, 1e-9, 1.6}};
    struct cw_codec_scratch *scratch = cw_codec_scratch_create();
    struct cw_random random;
    cw_random_seed(&random, 2);
    static double values[8190];
    static uint8_t chunk[CAPACITY];
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        for (int i = 0; i < 8190; i++) {
            int member = i % rows[row].period;
            values[i] = (member + 1.5) * (2 + sin(i / rows[row].period * 0.002)) *
                        (1 + rows[row].noise * cw_random_fraction(&random));
        }
        struct cw_codec_plan plan = cw_codec_plan(scratch, CW_CODEC_LORENZO, CW_ELEMENT_DOUBLE, values, sizeof(values));
        uint32_t taken = 0;
        uint32_t bytes = cw_codec_fill(scratch, plan, values, sizeof(values), chunk, CAPACITY, &taken);
        assert_in_range(bytes, CAPACITY - 60, CAPACITY);
        assert_true((double)taken / bytes >= rows[row].least);
    }
    cw_codec_scratch_destroy(scratch);
}

static void names_go_both_ways(void **state)
{
    for (enum cw_codec codec = CW_CODEC_NONE; codec < CW_CODECS; codec++) {
        assert_int_equal(cw_codec_named(cw_codec_name(codec)), codec);
    }
    assert_int_equal(cw_codec_named("gzip"), CW_CODECS);
    assert_false(cw_codec_accepts(CW_CODEC_DFCM, CW_ELEMENT_FLOAT));
    assert_false(cw_codec_accepts(CW_CODEC_LORENZO, CW_ELEMENT_BYTES));
    assert_true(cw_codec_accepts(CW_CODEC_LZ4, CW_ELEMENT_BYTES));
}

int main(void)
{
    return TESTS_RUN(dfcm_is_the_papers, dfcm_does_not_depend_on_rounding, runs_cost_nothing, plans_find_the_shape,
                     names_go_both_ways);
}
