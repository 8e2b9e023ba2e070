/* Bench: shared by the files of `causeway bench`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/cli/report.h"
#include "dataplane/statistics.h"

enum { BENCH_SIZES_MAX = APP_LIST_MAX, BENCH_ROUNDS_MAX = 25 };

/* One figure, measured in each of the rounds. */
struct bench_series {
    double values[BENCH_ROUNDS_MAX];
    size_t count;
};

static inline void bench_series_add(struct bench_series *series, double value)
{
    series->values[series->count++] = value;
}

/* The middle of the rounds, which stay in their order. */
static inline double bench_series_median(struct bench_series series)
{
    return cw_statistics_median(series.values, series.count);
}

/* causeway bench put: puts between two processes, next to the raw limit of the same port. */
int bench_put(int argc, char **argv);

/* causeway bench cost: the protocol alone, in one thread. */
int bench_cost(int argc, char **argv);

/* causeway bench codec: compression alone. */
int bench_codec(int argc, char **argv);
