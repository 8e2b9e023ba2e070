/* Bench scale: how time, memory and packets of collectives grow with the number of ranks, in clusters, in virtual time.
 * scale.c: options, lines; scale_run.c: choosing, measuring; scale_plot.c: the picture.
 *
 * A series is a collective by one way to choose its algorithm; its points are numbers of ranks. Every byte that any
 * rank receives is compared with a serial reference. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apps/plan/puts.h"
#include "collectives/schedule/problem.h"

enum {
    BENCH_SCALE_RANKS_MAX = 4096,
    BENCH_SCALE_POINTS_MAX = 16,
    BENCH_SCALE_SERIES_MAX = 6, /* three collectives, chosen and flat */
    BENCH_SCALE_EAGER_BYTES = 4096,
};

struct bench_scale_case {
    uint32_t clusters_max;
    uint64_t sessions_max; /* what is chosen lets no rank deal with more others */
    uint64_t pair_bytes;   /* all-to-all: of each pair of ranks */
    uint64_t bytes;        /* broadcast, all-reduce: of the vector */
    uint64_t rate_bps;     /* of hosts' links */
    uint64_t delay_ns;     /* inside clusters, one way */
    uint64_t wan_rate_bps; /* between each two clusters */
    uint64_t wan_delay_ns;
    double wan_loss;
    enum plan_puts_wan wan;
    uint64_t runs; /* after the first, which sets sessions up */
    uint64_t seed;
};

struct bench_scale_point {
    uint32_t ranks;
    uint32_t clusters;
    char algorithm[CW_ALGORITHM_NAME_MAX];
    uint32_t senders; /* of a cluster at a time; 0: not asked for */
    double first_ns;  /* the run that sets sessions up */
    double time_ns;   /* of each later one */
    double model_ns;  /* by the price model; by estimate above some hundred ranks */
    double packets;   /* of a rank in a later run, of any kind, on average */
    double data;      /* of these, first transmissions of data */
    double retransmitted;
    double acknowledgements;
    double packets_most; /* by the rank that sends most */
    double wan_frames;   /* between clusters, of all ranks in a later run */
    struct plan_puts_memory memory;
    /* of this process at its most, divided by the ranks: buffers and simulator included; 0: not known */
    double resident_bytes;
    uint64_t events; /* of the simulation */
    double real_ns;  /* it took */
};

/* Clusters of up to 16, 64 bytes a pair, 1 MiB; 1 Gb/s and 20 us inside, 10 Gb/s and 10 ms between each two; known
 * rates, 1 run. */
void bench_scale_case_init(struct bench_scale_case *of);

/* How many clusters so many ranks are in: of four at least, and as many as asked for at most. */
uint32_t bench_scale_clusters(const struct bench_scale_case *of, uint32_t ranks);

/* By which algorithm: what the model says is best (NULL), what it says is best of those that know nothing of clusters
 * ("flat"), or one of the registry with the parameters that the model finds for it. One of enum app_exit, reported. */
int bench_scale_run(const struct bench_scale_case *of, enum cw_collective collective, const char *algorithm,
                    uint32_t ranks, struct bench_scale_point *point);

/* The exponent b of y = a x^b between two points: ln(y1 / y0) / ln(x1 / x0). 0 if nothing can be told. */
double bench_scale_exponent(double x0, double y0, double x1, double y1);

struct bench_scale_series {
    enum cw_collective collective;
    bool flat;
    uint32_t count;
    struct bench_scale_point points[BENCH_SCALE_POINTS_MAX];
};

/* Draws time, packets and memory of a rank against the number of ranks, by gnuplot, exponents in the key. One of enum
 * app_exit, reported. */
int bench_scale_plot(const char *path, const struct bench_scale_series *series, uint32_t count);
