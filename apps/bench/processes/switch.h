/* Bench switch: the limits of the emulator itself: its frame rate, and the accuracy of its delays and rates.
 *
 * Member 0 sends to member 1, or each to the next one; frames carry the time at which they were sent, of the clock that
 * all processes of a machine share. Reported delays are those that a client sees: the emulator's own lateness, and the
 * wake-up latency of the client. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apps/bench/processes/group.h"

/* The first part of the time gives no results: queues fill, caches warm up. */
enum { SWITCH_BENCH_WARMUP_SHARE = 5 };

struct switch_bench_settings {
    uint32_t frame_bytes;
    bool all; /* each member sends to the next; else member 0 to member 1 */
    uint64_t duration_ns;
    uint64_t gap_ns;      /* between two frames; 0: as fast as they go */
    uint64_t expected_ns; /* the time on the link: its delay, and the frame's time on the line */
};

/* Of one member, of the frames it has received. */
struct switch_bench_result {
    uint64_t received;
    uint64_t first_ns; /* the first and last arrival within the measured time, */
    uint64_t last_ns;
    uint64_t between;   /* and how many frames came after the first */
    double late_ns[3];  /* beyond expected_ns: median, 99th and 99.9th percentile; of frames with a gap */
    uint64_t early;     /* before it: a bug */
    uint64_t jitter_ns; /* sum of the differences between neighbours' delays */
};

/* For struct bench_group_config.reference. */
int switch_bench_member(struct bench_member *member);
