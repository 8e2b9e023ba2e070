#include "apps/bench/histogram.h"

/* Durations below 64 ns have a bucket each; above, the leading seven bits choose one. */
static uint32_t bucket_of(uint64_t duration_ns)
{
    if (duration_ns < 1u << BENCH_HISTOGRAM_SHIFT) {
        return (uint32_t)duration_ns;
    }
    uint32_t power = 63 - (uint32_t)__builtin_clzll(duration_ns) - BENCH_HISTOGRAM_SHIFT;
    uint64_t index = ((uint64_t)power << BENCH_HISTOGRAM_SHIFT) + (duration_ns >> power);
    return index < BENCH_HISTOGRAM_BUCKETS ? (uint32_t)index : BENCH_HISTOGRAM_BUCKETS - 1;
}

/* The longest duration of a bucket. */
static uint64_t bucket_top_ns(uint32_t index)
{
    if (index < 1u << BENCH_HISTOGRAM_SHIFT) {
        return index;
    }
    uint32_t power = (index >> BENCH_HISTOGRAM_SHIFT) - 1;
    uint64_t lead = index - ((uint64_t)power << BENCH_HISTOGRAM_SHIFT);
    return ((lead + 1) << power) - 1;
}

void bench_histogram_add(struct bench_histogram *histogram, uint64_t duration_ns)
{
    histogram->count++;
    histogram->max_ns = duration_ns > histogram->max_ns ? duration_ns : histogram->max_ns;
    histogram->buckets[bucket_of(duration_ns)]++;
}

void bench_histogram_merge(struct bench_histogram *histogram, const struct bench_histogram *other)
{
    histogram->count += other->count;
    histogram->max_ns = other->max_ns > histogram->max_ns ? other->max_ns : histogram->max_ns;
    for (uint32_t i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++) {
        histogram->buckets[i] += other->buckets[i];
    }
}

uint64_t bench_histogram_percentile(const struct bench_histogram *histogram, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)histogram->count);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < BENCH_HISTOGRAM_BUCKETS && histogram->count > 0; i++) {
        seen += histogram->buckets[i];
        if (seen >= histogram->count || seen > wanted) {
            uint64_t top_ns = bucket_top_ns(i);
            return top_ns < histogram->max_ns && i < BENCH_HISTOGRAM_BUCKETS - 1 ? top_ns : histogram->max_ns;
        }
    }
    return 0;
}
