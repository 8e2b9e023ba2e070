/* Demo: two emulated hosts, each a process, and a switch between them, a third one. Host A puts a file into a region of
 * host B, which is the mapped output file.
 *
 * Order of calls in the parent: demo_world_create; fork, demo_host_run in each child; demo_world_counters;
 * demo_world_destroy.
 */
#ifndef DEMO_H
#define DEMO_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dataplane/port/port.h"

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
    bool json;
};

/* What the parent makes and takes away again. */
struct demo_world {
    char folder[DEMO_PATH_BYTES];
    char socket[DEMO_PATH_BYTES + 16];
    char source[DEMO_SOURCE_BYTES]; /* the file that is moved; in `folder` unless it is the user's */
    char target[DEMO_PATH_BYTES + 16];
    pid_t parent;
    pid_t switch_process; /* 0: not running */
    int switch_output;
    pid_t hosts[2];
};

/* Of the whole run, from the switch: both directions together. */
struct demo_losses {
    uint64_t in_frames;
    uint64_t lost_frames;
    uint64_t lost_data_frames; /* towards host B */
    uint64_t queue_frames;     /* dropped by a full queue */
    uint64_t queue_data_frames;
    uint64_t other_frames; /* dropped for any other reason */
    uint64_t queue_max_bytes;
};

/* What a host tells its parent at the end, by a pipe. */
struct demo_report {
    int status; /* of enum cw_status */
    char error[CW_PORT_TEXT_BYTES];
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

/* Folder, source file, switch. APP_EXIT_SUCCESS or, after reporting it, an exit code; destroy it in any case. */
int demo_world_create(struct demo_world *world, const struct demo_options *options);

/* Ends the switch and reads its counters. False: there are none. */
bool demo_world_counters(struct demo_world *world, struct demo_losses *losses);

/* Ends the processes and removes the files, as far as there are any. */
void demo_world_destroy(struct demo_world *world);

/* Runs host 0 (A, the sender) or 1 (B) in the calling process, which was made for it. `control` joins the two. */
void demo_host_run(const struct demo_world *world, uint32_t host, int control, uint64_t bytes,
                   struct demo_report *report);

/* True once SIGINT or SIGTERM has come. */
bool demo_interrupted(void);

#endif
