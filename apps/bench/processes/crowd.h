/* Bench crowd: more processes than cores, all of which talk to all others through a switch.
 *
 * Each process asks another one, chosen at random, by a put with notification; the other answers at once with a put of
 * its own; then the next one is asked. So there are always as many puts under way as processes, each process is asker
 * and answerer at once, and each put finds its target busy, yielding or asleep.
 *
 * Latency is one way: from just before the call that posts a put to when the target's call that waits for events has
 * returned with its notification. All processes read the same clock (CLOCK_MONOTONIC), so the put carries the time at
 * which it was sent.
 *
 * What is checked: each put arrives exactly once, in the order of its lane, with the bytes that were sent. */
#pragma once

#include <stdint.h>

#include "apps/bench/histogram.h"
#include "apps/bench/processes/group.h"

enum crowd_kind { CROWD_QUESTION = 0, CROWD_ANSWER = 1, CROWD_KINDS = 2 };

enum {
    CROWD_SLOTS = 8,         /* places for the puts of one process to another, of each kind */
    CROWD_SIZE_MIN = 8,      /* the time and a check */
    CROWD_WARMUP_SHARE = 10, /* the first tenth of the duration gives no latencies */
};

struct crowd_settings {
    uint64_t size_bytes;
    uint64_t duration_ns;
    uint64_t gap_ns; /* between an answer and the next question */
};

/* Of one process. */
struct crowd_result {
    struct bench_histogram latency;
    struct bench_histogram raw_latency;
    uint64_t sent[BENCH_GROUP_MEMBERS_MAX][CROWD_KINDS];     /* by receiver */
    uint64_t received[BENCH_GROUP_MEMBERS_MAX][CROWD_KINDS]; /* by sender */
    uint64_t elapsed_ns;
    uint64_t cpu_ns;
    uint64_t raw_lost;
    uint64_t data_packets; /* sent for the first time */
    uint64_t retransmitted;
    uint64_t duplicates; /* received twice */
    uint64_t probes;
    uint64_t acknowledgements;
    uint64_t sleeps;
    uint64_t fallback_turns;
};

/* Bytes of the region that all processes of a group of `count` need. */
uint64_t crowd_region_bytes(const struct crowd_settings *settings, uint32_t count);

/* For struct bench_group_config: bare frames in the same pattern, and puts. */
int crowd_run_raw(struct bench_member *member);
int crowd_run(struct bench_member *member);
