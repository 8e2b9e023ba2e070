/* Bins of `causeway draw`: whatever is put in, and however bins are joined, nothing is lost, made, or put where it did
 * not happen. */
#include <stdlib.h>

#include "apps/draw/bins.h"
#include "dataplane/base/random.h"
#include "tests/test.h"

enum { STRETCHES = 3000, SEEDS = 50 };

struct sums {
    uint64_t bytes;
    uint64_t dropped_frames;
    uint64_t queue_bytes;
};

static struct sums sums_of(const struct draw_bins *bins)
{
    struct sums sums = {0};
    for (uint32_t i = 0; i < bins->count; i++) {
        sums.bytes += bins->list[i].bytes;
        sums.dropped_frames += bins->list[i].dropped_frames;
        sums.queue_bytes = bins->list[i].queue_bytes > sums.queue_bytes ? bins->list[i].queue_bytes : sums.queue_bytes;
    }
    return sums;
}

static void expect_sums(const struct draw_bins *bins, const struct sums *wanted)
{
    struct sums sums = sums_of(bins);
    assert_int_equal(sums.bytes, wanted->bytes);
    assert_int_equal(sums.dropped_frames, wanted->dropped_frames);
    assert_int_equal(sums.queue_bytes, wanted->queue_bytes);
}

/* Stretches of all lengths, one after the other, with gaps, and now and then so late that bins have to be joined. */
static void nothing_is_lost(void **state)
{
    struct test_seeds seeds = test_seeds(1, SEEDS);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct cw_random random;
        struct draw_bins bins;
        struct sums wanted = {0};
        uint64_t now_ns = 0;
        cw_random_seed(&random, seed);
        draw_bins_init(&bins, 1 + cw_random_next(&random) % 1000000);
        for (uint32_t i = 0; i < STRETCHES; i++) {
            struct draw_bin what = {.bytes = cw_random_next(&random) % 1000000,
                                    .dropped_frames = cw_random_next(&random) % 10,
                                    .queue_bytes = cw_random_next(&random) % 100000};
            uint64_t from_ns = now_ns + cw_random_next(&random) % 3 * 1000;
            now_ns = from_ns + (cw_random_next(&random) >> (34 + cw_random_next(&random) % 30));
            assert_true(draw_bins_add(&bins, from_ns, now_ns, &what));
            wanted.bytes += what.bytes;
            wanted.dropped_frames += what.dropped_frames;
            wanted.queue_bytes = what.queue_bytes > wanted.queue_bytes ? what.queue_bytes : wanted.queue_bytes;
            assert_true(bins.count <= DRAW_BINS_MAX);
        }
        expect_sums(&bins, &wanted);
        assert_true(now_ns <= bins.count * bins.width_ns && (bins.count - 1) * bins.width_ns < now_ns);
        draw_bins_join(&bins, 0, 7);
        expect_sums(&bins, &wanted);
        draw_bins_dispose(&bins);
    }
}

static void amounts_are_divided_by_time(void **state)
{
    struct draw_bins bins;
    draw_bins_init(&bins, 10);
    /* 5 of 30 ns in the first bin, 10 in the next two, 5 in the last */
    assert_true(draw_bins_add(&bins, 15, 45, &(struct draw_bin){.bytes = 300, .dropped_frames = 1, .queue_bytes = 9}));
    assert_int_equal(bins.count, 5);
    const uint64_t bytes[] = {0, 50, 100, 100, 50}, dropped[] = {0, 0, 0, 0, 1}, queues[] = {0, 9, 9, 9, 9};
    for (uint32_t i = 0; i < bins.count; i++) {
        assert_int_equal(bins.list[i].bytes, bytes[i]);
        assert_int_equal(bins.list[i].dropped_frames, dropped[i]);
        assert_int_equal(bins.list[i].queue_bytes, queues[i]);
    }
    /* what ends with a bin is not in the next one; what takes no time is where it is */
    assert_true(draw_bins_add(&bins, 40, 50, &(struct draw_bin){.bytes = 7}));
    assert_int_equal(bins.count, 5);
    assert_int_equal(bins.list[4].bytes, 57);
    assert_true(draw_bins_add(&bins, 50, 50, &(struct draw_bin){.bytes = 8}));
    assert_int_equal(bins.count, 6);
    assert_int_equal(bins.list[5].bytes, 8);
    draw_bins_dispose(&bins);
}

static void joined_from_the_middle(void **state)
{
    struct draw_bins bins;
    draw_bins_init(&bins, 1);
    for (uint64_t i = 0; i < 10; i++) {
        assert_true(draw_bins_add(&bins, i, i + 1, &(struct draw_bin){.bytes = 1ull << i, .rate_bps = i}));
    }
    draw_bins_join(&bins, 3, 4);
    assert_int_equal(bins.width_ns, 4);
    assert_int_equal(bins.count, 2);
    assert_int_equal(bins.list[0].bytes, 8 + 16 + 32 + 64);
    assert_int_equal(bins.list[0].rate_bps, 6);
    assert_int_equal(bins.list[1].bytes, 128 + 256 + 512);
    draw_bins_dispose(&bins);
}

/* Bins of 8 ns at 8 Gb/s: a byte a nanosecond. */
static void nothing_passes_the_rate(void **state)
{
    struct draw_bins all[3];
    const uint64_t amounts[][3] = {{0, 0, 0}, {2, 2, 0}, {8, 2, 6}, {12, 9, 3}, {0, 0, 0}, {9, 9, 0}};
    const uint64_t wanted[][3] = {{0, 0, 0}, {6, 3, 3}, {8, 4, 4}, {8, 6, 2}, {1, 1, 0}, {8, 8, 0}};
    for (uint32_t i = 0; i < 3; i++) {
        draw_bins_init(&all[i], 8);
        for (uint64_t j = 0; j < 6; j++) {
            const struct draw_bin what = {.bytes = amounts[j][i], .rate_bps = 8000000000};
            assert_true(i == 2 && j > 3 ? true : draw_bins_add(&all[i], 8 * j, 8 * (j + 1), &what));
        }
    }
    draw_bins_spread(&all[0], (struct draw_bins *[]){&all[1], &all[2]}, 2);
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t j = 0; j < all[i].count; j++) {
            assert_int_equal(all[i].list[j].bytes, wanted[j][i]);
        }
        draw_bins_dispose(&all[i]);
    }
}

static void times_far_away_fit(void **state)
{
    struct draw_bins bins;
    draw_bins_init(&bins, 1);
    assert_true(draw_bins_add(&bins, 0, UINT64_MAX, &(struct draw_bin){.bytes = UINT64_MAX}));
    assert_true(bins.count <= DRAW_BINS_MAX);
    assert_int_equal(sums_of(&bins).bytes, UINT64_MAX);
    draw_bins_dispose(&bins);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),        cmocka_unit_test(amounts_are_divided_by_time),
        cmocka_unit_test(joined_from_the_middle), cmocka_unit_test(nothing_passes_the_rate),
        cmocka_unit_test(times_far_away_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
