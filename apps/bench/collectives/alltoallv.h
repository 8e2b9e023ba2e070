/* Bench alltoallv: what it is worth to know the counts of an all-to-all-v beforehand, in virtual time; Tables 2 and 3
 * of CC-MPI (Karwande, Yuan and Lowenthal 2003). alltoallv.c: options, lines; alltoallv_run.c: patterns, measuring.
 *
 * Level 3 moves the data in phases. Level 2 schedules them before: every rank all of them, at the same time, so that it
 * is level 3 and the time that takes. Level 1 brings the counts to all before that, as MPI_Alltoallv does where a
 * schedule is asked for: an all-gather, which is over before anybody schedules. So a level takes what the next one
 * takes, and more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apps/bench/mcast/mcast.h"

enum { BENCH_ALLTOALLV_MEMBERS_MAX = 64, BENCH_ALLTOALLV_RANDOM = 0 };
#define BENCH_ALLTOALLV_MEASURED UINT64_MAX

struct bench_alltoallv_case {
    /* members, network, runs, seed; bytes of each message: BENCH_ALLTOALLV_RANDOM is of all pairs two thirds 64 KiB, a
     * twelfth 16 KiB, a quarter 100 */
    struct bench_mcast_case network;
    uint64_t threshold_bytes; /* messages below it share one last phase */
    uint64_t schedule_ns; /* what scheduling takes each rank; BENCH_ALLTOALLV_MEASURED: what it takes on this machine */
    double exchange_ns;   /* what bringing the counts to all takes: bench_alltoallv_exchange */
};

struct bench_alltoallv_line {
    double level_ns[4]; /* medians: [1] to [3]; without phases all alike */
    double schedule_ns;
    uint32_t phases; /* 0: none */
};

/* Whether bench_alltoallv_run knows the phases of this algorithm: those of all-to-all-based, greedy, colouring,
 * splitting. */
bool bench_alltoallv_has_phases(const char *algorithm);

/* Each rank tells all what it sends and what it expects, 8 bytes for each other, by the algorithm that the model
 * chooses. 0, or one of enum app_exit: reported. */
int bench_alltoallv_exchange(const struct bench_alltoallv_case *of, struct bench_mcast_result *result);

/* By an algorithm of the registry, with phases or without. Errors as above. */
int bench_alltoallv_run(const struct bench_alltoallv_case *of, const char *algorithm,
                        struct bench_alltoallv_line *line);
