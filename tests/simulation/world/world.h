/* Sim world: a small cluster under random traffic and random faults, all from one seed, and a ledger that checks every
 * byte.
 *
 * Two phases. In the first, links lose, duplicate, corrupt and reorder, processes are cut off, stopped, crashed and
 * restarted, regions are deregistered under way, and consumers are slow; only safety is checked. In the second all is
 * healed and nothing new is posted; then everything must end within a bounded time and every endpoint come to rest.
 *
 * The ledger's checks of an endpoint (it shares no code with dataplane/):
 *  - each put and message is notified at most once, after all its bytes are in place, every byte right, with the right
 *    region, offset, length, lane and tag; in posting order within (sender, target, lane); a get likewise ends once.
 *  - each operation that asked for a signal ends once; errors only where the faults allow them.
 *  - not a byte outside of operations in progress changes: regions have a shadow copy and guards around them, memory of
 *    deregistered regions is overwritten and must stay so; memory of sources is overwritten once they are complete.
 *  - in the end nothing is outstanding: notified what had to be, no operation open, no memory lent, no timer running.
 *
 * Order of calls: sim_world_run, with the options that differ from zero. The same options give the same run, bit for
 * bit. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What is posted: weights. */
struct sim_world_mix {
    const char *name;
    uint32_t put;
    uint32_t message;
    uint32_t get;
    uint32_t large_percent; /* of puts are up to as long as there is room for */
};

struct sim_world_options {
    const char *kind; /* the name of these options */
    uint64_t seed;
    bool deaf;       /* the first phase loses each frame, and has no other faults */
    bool partitions; /* there are some; else that is up to the seed */
    bool ipv6;
    bool encrypt;  /* sessions are sealed if either side asks for it, which half of them do */
    bool offload;  /* nodes have NICs that take work over, honestly or not */
    bool rdma;     /* nodes have RDMA devices in addition to their NICs, with queue pairs that break */
    bool compress; /* half of the processes compress what they send, by any codec */
    bool verbose;  /* every event to stderr */
};

struct sim_world_report {
    bool failed;
    char failure[320]; /* the error, the operation, the place, the time */
    char plan[320];    /* the world drawn from the seed */
    uint64_t hash;     /* of all frames: two runs of a seed have the same */
    uint64_t virtual_ns;
    uint64_t packets;
    uint64_t posted;
    uint64_t notified;
    uint64_t completed;
    uint64_t refused; /* operations that ended with CW_ERROR_REMOTE_ACCESS */
    uint64_t severed; /* operations that ended with their session */
    uint64_t bytes;   /* notified */
    uint64_t retransmitted;
    uint64_t summed;    /* packets taken without a CRC */
    uint64_t trials;    /* by which ports were tried */
    uint64_t lies;      /* of checksums, that were found out */
    uint64_t upsets;    /* frames that came in with one bit changed */
    uint64_t doubts;    /* offloads that were put away */
    uint64_t chunks;    /* packets taken with compressed data */
    uint64_t rdma_work; /* work requests that RDMA devices have carried out */
    uint64_t rdma_up;   /* queue pairs that came up */
    uint64_t rdma_broken;
    uint64_t rdma_given_up; /* sessions that went on by packets */
};

/* One run. CW_OK, whether it failed or not; CW_ERROR_MEMORY. */
int sim_world_run(const struct sim_world_options *options, struct sim_world_report *report);

/* The same as part of a test, which fails if the run does and then prints the command that replays the seed. Its
 * environment may ask for every event: CW_TEST_VERBOSE=1. */
void sim_world_check(struct sim_world_options *options, struct sim_world_report *report);

/* Adds the numbers of a report, from `summed` on. */
void sim_world_report_add(struct sim_world_report *sum, const struct sim_world_report *report);
