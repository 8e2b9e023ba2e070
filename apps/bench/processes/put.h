/* Bench put: the two sides of `causeway bench put` over a real port, and the limit that it is held against.
 *
 * Member 1 of a group, the initiator, puts into the region of member 0, the responder, which answers (latency) or
 * counts (rate). Both make the same calls in the same order; each fills what it measures. All times are measured for
 * `duration_ns` after a warm-up of a quarter of it. All functions return CW_OK or a code of enum cw_status. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apps/bench/processes/group.h"

/* Round trips, each there and back. */
struct bench_latency {
    double p50_ns;
    double p99_ns;
    uint64_t count;
};

/* Round trips of a put of `size` bytes and its notification, and one back; one at a time. The initiator fills
 * `latency`. */
int bench_put_latency(struct bench_member *member, uint64_t size, uint64_t duration_ns, struct bench_latency *latency);

struct bench_put_rate {
    double puts_per_s; /* by the responder, as the next ones */
    double bytes_per_s;
    double packets_per_put; /* by the initiator: data packets sent for the first time */
    uint64_t retransmits;   /* likewise */
    uint64_t all;           /* puts that the responder has seen, before and after the interval, too */
};

/* One way as fast as it goes. `alone`: one packet a put at the least; else small puts share packets. */
int bench_put_rate(struct bench_member *member, uint64_t size, bool alone, uint64_t duration_ns,
                   struct bench_put_rate *rate);

/* ---- The port without any protocol (processes/raw.c): bare bursts of frames, by the calls of port.h ---- */

/* One way, frames of `frame_bytes` (64 to 14 + the port's MTU): the responder fills `frames_per_s`, the median over
 * parts of the time. CW_ERROR_NOT_FOUND: not one frame arrived in a minute. */
int bench_raw_rate(struct bench_member *member, uint32_t frame_bytes, uint64_t duration_ns, double *frames_per_s);

/* Round trips of one frame at a time; the initiator fills `latency`. CW_ERROR_NOT_FOUND as above. */
int bench_raw_latency(struct bench_member *member, uint32_t frame_bytes, uint64_t duration_ns,
                      struct bench_latency *latency);

/* ---- Times of round trips, for both (processes/put_side.c) ---- */

struct bench_samples {
    double *times_ns;
    uint64_t count;
    uint64_t measure_ns; /* the end of the warm-up */
    uint64_t end_ns;
    uint64_t patience_ns; /* extra time after the end, until there is a measurement */
};

/* CW_OK or CW_ERROR_MEMORY; bench_samples_end in either case. */
int bench_samples_begin(struct bench_samples *samples, uint64_t duration_ns, uint64_t patience_ns);

/* Whether the time is not over yet. */
bool bench_samples_continue(const struct bench_samples *samples);

/* Takes note of a round trip, unless it belongs to the warm-up. 0: it was lost. */
void bench_samples_add(struct bench_samples *samples, uint64_t time_ns);

struct bench_latency bench_samples_end(struct bench_samples *samples);
