/* Bench histogram: counts of durations, from which percentiles are read.
 *
 * Invariants
 *  - Of fixed size and without pointers: it may lie in memory that processes share (one of them writes).
 *  - A percentile is at most 1/64 above the duration it stands for; the largest one is exact.
 *
 * A zeroed one is empty. */
#pragma once

#include <stdint.h>

enum {
    BENCH_HISTOGRAM_SHIFT = 6, /* 64 buckets for each power of two */
    BENCH_HISTOGRAM_POWERS = 40 - BENCH_HISTOGRAM_SHIFT,
    BENCH_HISTOGRAM_BUCKETS = (BENCH_HISTOGRAM_POWERS + 1) << BENCH_HISTOGRAM_SHIFT,
};

struct bench_histogram {
    uint64_t count;
    uint64_t max_ns;
    uint64_t buckets[BENCH_HISTOGRAM_BUCKETS]; /* the last one also takes what is longer: 18 minutes */
};

void bench_histogram_add(struct bench_histogram *histogram, uint64_t duration_ns);

/* Adds all of `other`. */
void bench_histogram_merge(struct bench_histogram *histogram, const struct bench_histogram *other);

/* The duration that a share 0 .. 1 of all does not exceed; 0 of none. */
uint64_t bench_histogram_percentile(const struct bench_histogram *histogram, double share);
