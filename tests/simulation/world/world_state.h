/* Sim world state: shared by the files of the simulated world. Private to them.
 *
 *   plan.c     draws a world from its seed
 *   world.c    builds it, runs the two phases
 *   process.c  one node's process: its endpoint, its regions, its turn
 *   faults.c   the faults and their times
 *   traffic.c  posts operations
 *   ledger.c   the state of every operation, and the check of events
 *   memory.c   regions, their shadows, and the bytes in flight */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/base/random.h"
#include "dataplane/dataplane.h"
#include "tests/simulation/hosts.h"
#include "tests/simulation/world/world.h"

enum {
    WORLD_NODES_MAX = 24,
    WORLD_EXTENTS_MAX = 40,
    WORLD_HELD_MAX = 64,
    WORLD_LANES = 6,
    WORLD_NONE = UINT32_MAX,
    WORLD_TURNED_EVENTS = 64,
};

/* ---- memory ---- */

enum world_region_kind {
    WORLD_INBOX,   /* peers put into it */
    WORLD_FAR,     /* the same, around an offset of 4 GiB */
    WORLD_LIBRARY, /* peers get from it */
    WORLD_DESK,    /* own gets write into it */
    WORLD_STORE,   /* own puts read from it */
    WORLD_REGION_KINDS,
};

/* Bytes that something under way may change, or reads. */
struct world_extent {
    uint64_t offset; /* in the region */
    uint64_t bytes;
    uint32_t operation;
};

struct world_slice {
    uint64_t offset; /* in the region */
    uint64_t bytes;
    uint32_t count;
    struct world_extent extents[WORLD_EXTENTS_MAX];
};

struct world_region {
    enum world_region_kind kind;
    uint8_t *mapped; /* guards included */
    uint64_t mapped_bytes;
    uint8_t *base; /* what is registered */
    uint64_t bytes;
    uint64_t window; /* offset of the part that is used */
    uint64_t window_bytes;
    uint8_t *shadow; /* of the window with a guard on each side */
    uint64_t token;
    bool registered;
    uint32_t generation; /* counts registrations */
    uint32_t poisons;
    uint64_t again_ns; /* when it is registered again */
    uint32_t slice_count;
    struct world_slice slices[WORLD_NODES_MAX];
};

/* ---- operations ---- */

enum world_operation_kind { WORLD_PUT, WORLD_MESSAGE, WORLD_GET };

struct world_operation {
    uint8_t kind;
    uint8_t from;
    uint8_t to;
    uint8_t lane;   /* index of world_lanes */
    uint8_t region; /* enum world_region_kind at the target */
    bool signal;
    bool refusable; /* it was posted so that the target must refuse it */
    bool gone;      /* its target region was deregistered, or the target's process has ended */
    bool target_dead;
    bool notified;
    bool left;     /* the sender has been told so */
    bool ended;    /* at the sender */
    bool orphaned; /* the sender's process has ended */
    int16_t status;
    int16_t expected;    /* a local error that is due; 0: none */
    uint32_t generation; /* of the target region */
    uint64_t pattern;    /* the pattern of its bytes; a get's begin at `offset` of it */
    uint64_t offset;
    uint64_t bytes;
    uint64_t local_offset; /* GET: in the desk; else in the store, if `stored` */
    bool stored;
    uint64_t posted_ns;
    void *source; /* memory of its own */
    uint64_t source_bytes;
    void *list;     /* of slices */
    uint8_t *grave; /* the bytes at the target when its region was deregistered */
};

/* ---- processes ---- */

struct world_held {
    uint32_t slot;
    uint32_t operation;
    const uint8_t *data;
    uint64_t bytes;
    uint64_t release_ns;
};

struct world;

struct world_process {
    struct world *world;
    uint32_t node;
    uint32_t life; /* counts restarts */
    bool alive;
    bool excused;                 /* was cut off, stopped or dead for so long that its peers may give it up */
    struct cw_endpoint *endpoint; /* the host's */
    struct cw_random random;
    struct world_region regions[WORLD_REGION_KINDS];
    struct world_held held[WORLD_HELD_MAX];
    uint32_t held_count;
    uint32_t peers[WORLD_NODES_MAX];
    uint64_t take_ns; /* when events are looked at next */
    uint64_t post_ns;
    uint64_t mischief_ns; /* when a region is deregistered or a rate changed next */
    uint64_t take_delay_max_ns;
    uint64_t hold_max_ns; /* how long messages are kept */
    uint32_t quota;       /* operations still to post */
    uint32_t cut;         /* faults that cut it off at the moment */
    uint32_t stopped;
};

/* ---- faults ---- */

enum world_fault_kind {
    WORLD_PARTITION,
    WORLD_TRUNK_CUT,
    WORLD_STOP,
    WORLD_CRASH,
    WORLD_CLOSE,
    WORLD_DEVICE_CUT,
    WORLD_DEVICE_FAIL
};

enum { WORLD_FAULT_KINDS = WORLD_DEVICE_FAIL + 1 };

struct world_fault {
    struct world *world;
    enum world_fault_kind kind;
    uint32_t subject; /* node or trunk */
    uint64_t start_ns;
    uint64_t length_ns;
};

enum { WORLD_FAULTS_MAX = 64 };

/* ---- the world ---- */

/* Drawn from the seed. */
struct world_plan {
    uint32_t nodes;
    uint32_t clusters; /* 1: a star */
    uint32_t mtu_bytes;
    struct cw_simulator_node_config node;
    struct cw_link_config trunk;
    struct cw_endpoint_config endpoint;
    struct cw_verbs_net_config verbs;
    uint32_t verbs_count; /* processes with a device, the first ones; 0: all */
    bool tight;
    bool partitions, crashes, stops;
    bool deregister;
    bool pace;
    uint32_t slow_percent; /* of processes that take their time */
    struct sim_world_mix mix;
    uint32_t operations;
    uint64_t slice_bytes;
    uint64_t phase_ns;
};

struct world {
    const struct sim_world_options *options;
    struct sim_world_report *report;
    struct world_plan plan;
    struct cw_random random;
    struct sim_hosts hosts;
    bool healed;
    bool failed;
    struct world_process processes[WORLD_NODES_MAX];
    struct world_operation *operations;
    uint32_t operation_count;
    uint32_t operation_count_max;
    uint32_t last_notified[WORLD_NODES_MAX][WORLD_NODES_MAX][WORLD_LANES]; /* by sender, target: operation + 1 */
    uint32_t severed[WORLD_NODES_MAX][WORLD_NODES_MAX]; /* operations below this may have ended with a session */
    struct world_fault faults[WORLD_FAULTS_MAX];
    uint32_t fault_count;
};

extern const uint32_t world_lanes[WORLD_LANES];

enum { WORLD_IPV4 = 0x0a640001 };

/* Notes the first failure; the run ends soon after. */
__attribute__((format(printf, 2, 3))) void world_fail(struct world *world, const char *format, ...);
__attribute__((format(printf, 2, 3))) void world_trace(struct world *world, const char *format, ...);

/* ---- plan.c ---- */

void world_plan_draw(struct world *world);
void world_plan_describe(const struct world *world, char *text, size_t text_bytes);

/* ---- memory.c ---- */

/* The bytes of pattern `id` from its beginning. */
void world_pattern_fill(void *at, uint64_t id, uint64_t bytes);

/* The index of the first of `bytes` that is not the pattern's from position `first` on, or `bytes`. */
uint64_t world_pattern_check(const void *at, uint64_t id, uint64_t first, uint64_t bytes);

/* False: no memory. `slice_count` equal slices share the window. */
bool world_region_create(struct world_region *region, enum world_region_kind kind, uint64_t window_bytes,
                         uint32_t slice_count);
void world_region_destroy(struct world_region *region);

/* Everything is overwritten, its shadow too, and nothing is under way. */
void world_region_poison(struct world_region *region);

/* A free place of `bytes` (> 0) in a slice, taken for `operation`. False: none was found. */
bool world_extent_acquire(struct world_region *region, uint32_t slice, struct cw_random *random, uint64_t bytes,
                          uint32_t operation, uint64_t *offset);
void world_extent_release(struct world_region *region, uint32_t operation);

/* Accepts the present bytes as right. */
void world_region_accept(struct world_region *region, uint64_t offset, uint64_t bytes);

/* Compares with the shadow; bytes in flight may be old or of their operation's pattern. */
void world_region_verify(struct world *world, const struct world_process *process, struct world_region *region);

static inline uint64_t world_library_pattern(const struct world_process *process, uint32_t generation)
{
    return 1ull << 40 | (uint64_t)process->node << 32 | (uint64_t)(process->life & 0xff) << 24 | generation;
}

/* ---- process.c ---- */

/* As struct sim_hosts_config has them. */
void world_process_prepare(struct sim_host *host, struct cw_endpoint_config *endpoint);
uint64_t world_process_turn(struct sim_host *host, uint64_t now_ns);

/* Once its host has started. CW_OK, CW_ERROR_MEMORY. */
int world_process_start(struct world_process *process);

/* Its end: with a last word to its peers (`polite`), or without. */
void world_process_end(struct world_process *process, bool polite);

/* Registers a region that is not. */
void world_region_enter(struct world_process *process, struct world_region *region);

/* ---- traffic.c ---- */

/* Posts a few operations. */
void world_traffic_post(struct world_process *process, uint64_t now_ns);

/* ---- ledger.c ---- */

/* A fresh operation, or NULL: the table is full. world_ledger_drop takes the last one back. */
struct world_operation *world_ledger_open(struct world *world, uint32_t *index);
void world_ledger_drop(struct world *world);

void world_ledger_event(struct world_process *process, const struct cw_event *event, uint64_t now_ns);
void world_ledger_region_closed(struct world_process *process, enum world_region_kind kind);
void world_ledger_process_closed(struct world_process *process);

/* The message is still as it came. */
void world_ledger_release(struct world_process *process, const struct world_held *held);

/* All regions of all processes. */
void world_ledger_verify(struct world *world);

/* The same, and everything has ended that had to. */
void world_ledger_finish(struct world *world);
void world_ledger_dispose(struct world *world);

/* ---- faults.c ---- */

/* Draws faults and puts them into the simulator's script. */
void world_faults_schedule(struct world *world);
void world_faults_heal(struct world *world);
