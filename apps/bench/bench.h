/* Bench: what the files of `causeway bench` share. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_SIZES_MAX = 32, BENCH_ROUNDS_MAX = 25 };

struct bench_put_options {
    const char *fabric;
    uint64_t sizes[BENCH_SIZES_MAX];
    size_t size_count;
    uint64_t mtu_bytes;
    uint64_t rounds;
    uint64_t duration_ns;
    uint64_t core[2];
    bool json;
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
int bench_alltoallv(int argc, char **argv);
int bench_wan(int argc, char **argv);
int bench_scale(int argc, char **argv);

/* The middle of `count` numbers, which are sorted; 0 of none. */
double bench_median(double *numbers, size_t count);

#endif
