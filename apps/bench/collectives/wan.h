/* Bench wan: collectives across two clusters in virtual time, beside the cost model of Matsuda, Kudoh, Kodama, Takano
 * and Ishikawa (2006, Table 1), which their baselines and ours share. */
#pragma once

#include <stdint.h>

#include "apps/plan/puts.h"
#include "collectives/schedule/problem.h"

struct bench_wan_case {
    uint32_t ranks;    /* of each of the two clusters */
    uint64_t bytes;    /* of the message, or vector */
    uint64_t rate_bps; /* of hosts' links */
    uint64_t delay_ns; /* inside clusters, one way */
    uint64_t wan_rate_bps;
    uint64_t wan_delay_ns;
    double wan_loss;
    enum plan_puts_wan wan;
    uint64_t runs; /* measured ones, after one that sets up connections */
    uint64_t seed;
    bool smooth; /* of doubles that can be compressed, not of random bytes */
    enum cw_compression_mode compression;
};

enum { BENCH_WAN_RUNS_MAX = 20 };

struct bench_wan_result {
    double median_ns;
    double first_ns; /* of the run that sets up connections */
    double model_ns; /* 0: the model has no such algorithm */
    double rate;     /* of all that was compressed; 0: nothing was */
    uint64_t wan_dropped;
    uint64_t wan_queue_max_bytes;
    uint64_t retransmitted;
};

/* 2 x 16 ranks, 32 MB, 1 Gb/s and 20 us inside, 10 Gb/s and 10 ms between clusters, known rate, 1 run: the setting of
 * the paper. */
void bench_wan_case_init(struct bench_wan_case *of);

/* What a host's link leaves for data after headers, bits per second. */
double bench_wan_payload_bps(uint64_t rate_bps);

/* L + M/(nB) + ... of Table 1 in nanoseconds, B what the links leave for data, n no more than what the link between
 * clusters carries; 0: not in the table, or the link
 * between clusters carries less than a host's; but for clusters-overlapped: its bound M/B + L. */
double bench_wan_model_ns(const struct bench_wan_case *of, const char *algorithm, uint32_t senders);

/* Builds the plan (segment_bytes 0: the default) and carries it out; every byte is verified. One of enum app_exit,
 * reported. */
int bench_wan_run(const struct bench_wan_case *of, enum cw_collective collective, const char *algorithm,
                  uint32_t senders, uint64_t segment_bytes, struct bench_wan_result *result);
