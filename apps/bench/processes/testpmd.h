/* Bench testpmd: what DPDK's own measuring program reaches on the same device: the raw figures are held against it.
 *
 * Runs dpdk-testpmd twice, one receiving (rxonly), one sending (txonly), each pinned to its core, and reads the
 * receiver's rate. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct bench_testpmd_side {
    const char *device; /* as --vdev takes it: "net_memif0,role=server,…" */
    int network;        /* the network namespace it runs in, a descriptor; -1: ours */
    uint32_t core;
};

struct bench_testpmd_settings {
    struct bench_testpmd_side sides[2]; /* the first one receives, and is started first */
    uint32_t frame_bytes;
};

/* Runs the two for some seconds and ends them again. *packets_per_s: the best of three, at the receiver. CW_OK;
 * CW_ERROR_NOT_FOUND (dpdk-testpmd is not installed); CW_ERROR_SYSTEM (it ended early, or received nothing; the text
 * quotes it). `error` gets one line. */
int bench_testpmd_run(const struct bench_testpmd_settings *settings, double *packets_per_s, char *error,
                      size_t error_bytes);
