/* Bench departures: notes when frames leave by a port, and what a rate makes of these times.
 *
 * Order of calls: bench_departures_note, bench_departures_begin, ..., bench_departures_judge, cw_port_close. */
#pragma once

#include "dataplane/port/port.h"

/* From now on notes up to `count_max` frames that leave by the port. CW_OK, CW_ERROR_MEMORY. */
int bench_departures_note(struct cw_port *port, uint64_t count_max);

/* Forgets what was noted. */
void bench_departures_begin(struct cw_port *port);

struct bench_departures {
    uint64_t frames;
    double rate_bps;   /* on the line, over all of the time */
    double gap_p50_ns; /* how far a gap between two frames is from what the rate makes of the first one's length */
    double gap_p99_ns;
    double gap_max_ns;
    double burst_bytes; /* the most by which any time T saw more than rate x T and one frame */
    uint64_t forgotten; /* frames beyond count_max */
};

/* What frames that were to leave at `rate_bps` did; they are counted as they are on the line. CW_OK,
 * CW_ERROR_MEMORY. */
int bench_departures_judge(const struct cw_port *port, uint64_t rate_bps, struct bench_departures *result);
