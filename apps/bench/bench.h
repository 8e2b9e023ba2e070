/* Bench: what the files of `causeway bench` share. */
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

/* The time stamp counter; 0 where there is none. */
static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

struct bench_put_options {
    const char *fabric;
    const char *devices[2]; /* of the initiating side, of the other one; NULL: a fabric is made */
    const char *host;       /* that has the other side; NULL: this one */
    const char *launcher;   /* what starts it there */
    const char *rdma;       /* a device beside the port; NULL: none */
    bool is_member;         /* this is the other side, on its host */
    struct app_list sizes;
    uint64_t mtu_bytes;
    uint64_t rounds;
    uint64_t duration_ns;
    uint64_t core[2];
    struct app_report report;
    bool no_raw;
    bool no_testpmd;
    /* sim only */
    uint64_t rate_bps;
    uint64_t delay_ns;
    double loss;
    uint64_t seed;
};

/* Over a real port, with a peer process. One of enum app_exit. */
int bench_put_real(const struct bench_put_options *options);

/* In the simulator, in virtual time. */
int bench_put_sim(const struct bench_put_options *options);

/* causeway bench cost: the protocol alone, in one thread. */
int bench_cost(int argc, char **argv);

/* causeway bench crypt: AES-GCM alone. */
int bench_crypt(int argc, char **argv);

/* causeway bench codec: compression alone. */
int bench_codec(int argc, char **argv);

/* causeway bench offload: what a NIC takes over. */
int bench_offload(int argc, char **argv);

/* causeway bench loops: several dataplane threads of a process. */
int bench_loops(int argc, char **argv);

/* causeway bench node: the node's thread alone. */
int bench_node(int argc, char **argv);

/* causeway bench crowd: more processes than cores, through a switch. causeway bench idle: what processes cost that do
 * nothing. */
int bench_crowd(int argc, char **argv);
int bench_idle(int argc, char **argv);

/* causeway bench switch: the limits of the emulator. */
int bench_switch(int argc, char **argv);

/* causeway bench incast, causeway bench pace. */
int bench_incast(int argc, char **argv);
int bench_pace(int argc, char **argv);

/* causeway bench shape: a shaper on the real clock. */
int bench_shape(int argc, char **argv);
int bench_plan(int argc, char **argv);
int bench_mcast(int argc, char **argv);
