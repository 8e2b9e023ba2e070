/* Demo: two emulated hosts and a switch between them, each a process. Host A puts a file into a region of host B, which
 * is the mapped output file. As in the benchmarks, the hosts are a group and the switch is a fabric
 * (bench/processes/group.h).
 *
 * Order of calls: demo_world_create, demo_world_transfer, demo_world_counters, demo_world_destroy. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "apps/bench/processes/group.h"
#include "apps/cli/report.h"

enum {
    DEMO_PUT_BYTES = 1 << 20,
    DEMO_PATH_BYTES = 96,
    DEMO_SOURCE_BYTES = PATH_MAX,
};

struct demo_options {
    double loss;
    uint64_t rate_bps;
    uint64_t delay_ns;
    uint64_t queue_bytes;
    uint64_t size_bytes;
    uint64_t seed;
    const char *file; /* NULL: random bytes of size_bytes */
    bool verbose;     /* print all steps and all numbers */
    struct app_report report;
};

/* The files and processes that the parent creates and removes. */
struct demo_world {
    const struct demo_options *options;
    struct bench_fabric fabric;
    char source[DEMO_SOURCE_BYTES]; /* the file that is moved; in the fabric's folder unless it is the user's */
    char target[DEMO_PATH_BYTES];
    uint64_t bytes;
};

/* Losses of the whole run, counted by the switch; the sum of both directions. */
struct demo_losses {
    uint64_t in_frames;
    uint64_t lost_frames;
    uint64_t lost_data_frames; /* towards host B */
    uint64_t queue_frames;     /* dropped by a full queue */
    uint64_t queue_data_frames;
    uint64_t other_frames; /* dropped for any other reason */
    uint64_t queue_max_bytes;
};

/* Results that a host passes to its parent at the end. */
struct demo_report {
    uint64_t elapsed_ns; /* A: from the first put to the last completion */
    uint64_t notifications;
    uint64_t data_packets; /* sent for the first time */
    uint64_t retransmitted;
    uint64_t probes;
    uint64_t duplicates;
    uint64_t acknowledgements;
    uint64_t round_trip_ns;
    uint64_t round_trip_min_ns;
};

/* Creates the folder, the source file and the switch. Returns APP_EXIT_SUCCESS, or reports an error and returns another
 * exit code. The caller destroys the world in both cases. */
int demo_world_create(struct demo_world *world, const struct demo_options *options);

/* Moves the file from host 0 (A) to host 1 (B), and collects their reports. Returns as above. */
int demo_world_transfer(struct demo_world *world, struct demo_report reports[2]);

/* Ends the switch and reads its counters. False: it reported none. */
bool demo_world_counters(struct demo_world *world, struct demo_losses *losses);

/* Ends the switch and removes the files, if they exist. */
void demo_world_destroy(struct demo_world *world);

/* One host, for struct bench_group_config: maps its file, then moves it. */
int demo_host_map(struct bench_member *member);
int demo_host_run(struct bench_member *member);

/* Not 0 after SIGINT, SIGTERM or SIGHUP. */
extern volatile sig_atomic_t demo_interrupted;
