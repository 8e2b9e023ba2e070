/* plogp arithmetic: from times to pLogP parameters (Kielmann, Bal and Verstoep 2000). Pure functions; times in
 * nanoseconds.
 *
 * The measurement is a round trip: m bytes there, none back, RTT(m) = L + g(m) + L + g(0); and g(0), by a stream of
 * empty messages that saturates the path. So
 *   g(m) = RTT(m) - RTT(0) + g(0)        L = RTT(0) / 2 - g(0) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/choose/measured.h"
#include "dataplane/statistics.h"

/* The longest messages without a handshake in MPI: mpi/init/init.c, mpi/collective/clusters/clusters.h. */
enum { PLOGP_EAGER_BYTES = 8192, PLOGP_CAST_EAGER_BYTES = 65536 };

struct plogp_sample {
    uint64_t bytes;
    double trip_ns;    /* RTT(bytes) */
    double send_ns;    /* of the call that sends */
    double receive_ns; /* of the call that receives what has come already */
};

/* How noisy times of the same thing are, which it sorts: the median as a multiple of the least; 1 of none. Where other
 * programs take the processors, half of the times hold their slices, and the least does not. */
double plogp_noise(double *times_ns, size_t count);

/* Up to this multiple times are the path's own: 1.2 to 2.1 were measured, also where ranks outnumber cores. */
#define PLOGP_NOISE_MAX 8.0

/* Parameters from samples by rising size, the first of 0 bytes, at most CW_PLOGP_POINTS_MAX. Noise that would make a
 * table fall, or overheads longer than the gap, is levelled: any samples give a table that cw_network_validate
 * accepts. */
void plogp_solve(const struct plogp_sample *samples, uint32_t count, double stream_gap_ns, struct cw_plogp *plogp);

/* A size between two neighbours that is worth another sample: where the line from the sample before to the one behind
 * misses a sample by more than a tenth of it, and the neighbours are far apart. 0: none. */
uint64_t plogp_next_size(const struct plogp_sample *samples, uint32_t count);

/* gamma of the all-to-all model: where `time_ns` lies between (P-1) (os + or) + L and (P-1) (g + or) + L; within 0 ..
 * 1. */
double plogp_contention(const struct cw_plogp *plogp, uint32_t ranks, uint64_t bytes, double time_ns);

/* How many puts still go at full speed: the most of the tests that take, at most sizes, less than half again as long as
 * one put. */
uint32_t plogp_ports(const struct cw_measured_concurrent *tests, uint32_t count);
