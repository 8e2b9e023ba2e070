/* Bench testpmd: what DPDK's own measuring program reaches on the same device: the raw figures are held against it.
 *
 * Runs dpdk-testpmd twice, one sending (txonly), one receiving (rxonly), each pinned to its core, and reads the
 * receiver's rate. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct bench_testpmd_settings {
    const char *receive_device;  /* as --vdev takes it: "net_memif0,role=server,…"; started first */
    const char *transmit_device; /* "net_memif0,role=client,…" */
    int receive_network;         /* the network namespace it runs in, a descriptor; -1: ours */
    int transmit_network;
    uint32_t frame_bytes;
    uint32_t receive_core;
    uint32_t transmit_core;
    uint32_t samples; /* seconds that are measured, after warm-up; 0: 5 */
};

/* Runs the two and ends them again. *packets_per_s: the best of the samples, at the receiver. Takes samples + some 5
 * seconds. CW_OK; CW_ERROR_NOT_FOUND (dpdk-testpmd is not installed); CW_ERROR_TIMEOUT (nothing was received);
 * CW_ERROR_SYSTEM (testpmd ended early; the text quotes it). `error` gets one line. */
int bench_testpmd_run(const struct bench_testpmd_settings *settings, double *packets_per_s, char *error,
                      size_t error_bytes);
