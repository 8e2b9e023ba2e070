/* check, inside: shared by its files.
 *
 * Steps of a check, in order; each needs what the ones before it have made
 *   check_number     instances: every (op, iteration) of every rank gets a number
 *   check_hosts      host ops: all ranks of each agree on it
 *   check_match      messages: every put meets its wait
 *   check_graph      events (start and end of each instance), their order, and a total order: no deadlock
 *   check_ready      which ranks are known to have entered
 *   check_races      conflicting accesses are ordered
 *   check_values     values of all bytes, and whether the result is that of the MPI standard
 *   check_promises   fan, phases, crossings of clusters
 *
 * Invariants
 *   - Every step returns CW_OK (go on), CHECK_FAULT (the report is filled in) or CW_ERROR_MEMORY.
 *   - Every transport keeps happens-before (strong edges). Weak edges hold only if an eager put finds no buffer, or are
 *     the executor's window on a repeat: they can cause a deadlock, but prove no order.
 *   - Memory lives in one arena and goes with it; nothing is freed one by one. No step recurses. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/check/check.h"
#include "collectives/schedule/plan.h"
#include "dataplane/status.h"

enum { CHECK_FAULT = 1 };

#define CHECK_NONE       UINT32_MAX
#define CHECK_WEAK       0x80000000u /* on an edge: no happens-before */
#define CHECK_EVENTS_MAX 0x7ffffff0u

struct check_chunk;

struct check_arena {
    struct check_chunk *last;
};

/* A list of numbers that grows; lives in the heap, since the longest of them grows much. */
struct check_list {
    uint32_t *items;
    uint32_t count;
    uint32_t limit;
};

/* A put, or a multicast to one of its members, with its wait. Those of one put lie side by side. */
struct check_message {
    uint64_t key; /* source, target, tag */
    uint32_t put; /* instances */
    uint32_t wait;
    uint32_t source; /* ranks */
    uint32_t target;
};

struct check {
    const struct cw_plan *plan;
    const struct cw_problem *problem;
    struct cw_check_report *report;
    struct check_arena arena;
    uint32_t ranks;
    bool reduces;

    /* Ops are numbered through all ranks. An op in a body has one instance in addition to its iterations, its
     * collector: it starts when all iterations have started and ends when all have ended, so that an event that waits
     * for all of them needs one edge. Behind the instances of ops come those of barriers, one for each number: it
     * starts when all ranks have started that barrier. */
    uint32_t op_count;
    uint32_t instance_count;
    uint32_t barrier_first; /* instance of barrier 0 */
    uint32_t barrier_count;
    uint32_t *rank_first_op;     /* ranks + 1 */
    uint32_t *op_rank;           /* op_count */
    uint32_t *op_repeat;         /* op_count: the repeat whose body it belongs to, or CHECK_NONE */
    uint32_t *op_first_instance; /* op_count + 1 */
    uint32_t *instance_op;       /* CHECK_NONE: a barrier's */
    uint32_t *barrier_instances; /* [number * ranks + rank]: of the op, CHECK_NONE: not there */
    uint32_t host_count;         /* numbers of host ops */
    uint32_t *host_instances;    /* as of barriers; NULL: there are none */

    struct check_message *messages;
    uint32_t message_count;
    uint32_t *instance_message; /* a put's first, a wait's only one, else CHECK_NONE */
    bool has_direct;

    /* Event 2i is the start of instance i, 2i + 1 its end. The edges into an event: the strong ones first; that from an
     * instance's start to its end is not stored. */
    uint32_t event_count;
    uint32_t *edge_first; /* event_count + 1 */
    struct check_list edges;
    uint32_t *order;    /* events */
    uint32_t *position; /* in the order, by event */

    /* The search for the predecessors of `search_event`. */
    uint32_t search_event;
    uint32_t search_stamp;
    uint32_t search_open;
    uint32_t search_late;
    uint32_t *search_seen;     /* by event: the stamp of the last search that found it */
    uint32_t *search_found;    /* [0, open): found, to visit */
    uint32_t *search_deferred; /* [0, late): found, too early to matter so far */
};

/* ---- memory ---- */

struct check_mark {
    struct check_chunk *chunk;
    size_t used;
};

/* `count` objects of `size` bytes; NULL: no memory. The second one is filled with zeros. */
void *check_allocate(struct check_arena *arena, size_t count, size_t size);
void *check_allocate_zero(struct check_arena *arena, size_t count, size_t size);
void check_arena_dispose(struct check_arena *arena);

/* Gives back what was taken since the mark. */
struct check_mark check_arena_mark(const struct check_arena *arena);
void check_arena_rewind(struct check_arena *arena, struct check_mark mark);

int check_list_grow(struct check_list *list);

static inline int check_list_add(struct check_list *list, uint32_t item)
{
    if (list->count == list->limit && check_list_grow(list) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    list->items[list->count++] = item;
    return CW_OK;
}

/* ---- instances and events ---- */

static inline uint32_t check_start(uint32_t instance)
{
    return 2 * instance;
}

static inline uint32_t check_end(uint32_t instance)
{
    return 2 * instance + 1;
}

static inline bool check_is_end(uint32_t event)
{
    return (event & 1) != 0;
}

static inline const struct cw_op *check_op(const struct check *check, uint32_t op)
{
    uint32_t rank = check->op_rank[op];
    return &check->plan->schedules[rank].ops[op - check->rank_first_op[rank]];
}

static inline uint32_t check_iteration(const struct check *check, uint32_t instance)
{
    return instance - check->op_first_instance[check->instance_op[instance]];
}

static inline uint32_t check_rank(const struct check *check, uint32_t instance)
{
    return check->op_rank[check->instance_op[instance]];
}

/* Instances of an op without its collector. */
static inline uint32_t check_iterations(const struct check *check, uint32_t op)
{
    uint32_t instances = check->op_first_instance[op + 1] - check->op_first_instance[op];
    return check->op_repeat[op] == CHECK_NONE ? instances : instances - 1;
}

/* Whether it is one of a rank's own: no collector, no barrier's. */
static inline bool check_is_own(const struct check *check, uint32_t instance)
{
    uint32_t op = check->instance_op[instance];
    return op != CHECK_NONE && instance - check->op_first_instance[op] < check_iterations(check, op);
}

static inline bool check_is_put(const struct cw_op *op)
{
    return op->kind == CW_OP_PUT || op->kind == CW_OP_MULTICAST;
}

/* How many messages a put or multicast makes. */
static inline uint32_t check_fan(const struct check *check, uint32_t rank, const struct cw_op *op)
{
    return op->kind == CW_OP_PUT ? 1 : check->plan->schedules[rank].groups[op->peer].count;
}

static inline uint64_t check_buffer_bytes(const struct check *check, uint32_t rank, uint32_t buffer)
{
    return buffer == CW_BUFFER_SCRATCH ? check->plan->schedules[rank].scratch_bytes
                                       : cw_problem_buffer_bytes(check->problem, rank, buffer);
}

/* ---- the report ---- */

/* Fills in the report for a fault at `instance` and returns CHECK_FAULT; the text begins with rank and op. */
__attribute__((format(printf, 5, 6))) int check_fail(struct check *check, enum cw_check_fault fault, uint32_t instance,
                                                     uint64_t byte, const char *format, ...);

/* The same for a fault of a rank as such (CHECK_NONE: of none). */
__attribute__((format(printf, 5, 6))) int check_fail_rank(struct check *check, enum cw_check_fault fault, uint32_t rank,
                                                          uint64_t byte, const char *format, ...);

/* "op 4 of rank 5 (wait for rank 3, phase 1, iteration 2)" */
struct check_name {
    char text[112];
};
struct check_name check_name(const struct check *check, uint32_t instance);

/* ---- the steps ---- */

int check_number(struct check *check);
int check_hosts(struct check *check);
int check_match(struct check *check);
int check_graph(struct check *check);
int check_deadlock(struct check *check, const uint32_t *successors);
int check_ready(struct check *check);
int check_races(struct check *check);
int check_values(struct check *check);
int check_promises(struct check *check);
int check_senders(struct check *check, uint32_t cluster);

/* ---- host ops ---- */

/* A host op, as one of its ranks has it. */
struct check_host {
    const struct cw_schedule *schedule;
    const struct cw_op *op;
    const struct cw_problem *counts; /* its counts are the lengths of blocks; NULL: all are of op->bytes */
    uint32_t members;
    uint32_t index; /* of the rank among them */
    uint32_t root;
};

struct check_host check_host_of(const struct check *check, uint32_t instance);
/* The same op of another member. */
uint32_t check_host_instance(const struct check *check, const struct check_host *host, uint32_t index);
/* Bytes of blocks [first, first + count) in the buffer that it reads (or writes). Block i represents member i; a buffer
 * of one block is its own. */
uint64_t check_host_bytes(const struct check_host *host, uint32_t first, uint32_t count);
uint64_t check_host_read(const struct check_host *host);
uint64_t check_host_written(const struct check_host *host);

/* ---- reach ---- */

int check_reach_prepare(struct check *check);

/* Starts a search for the predecessors of `event`. Cheap if it is the current search. */
void check_reach_from(struct check *check, uint32_t event);

/* Whether `earlier` comes before that event in every run. */
bool check_reach(struct check *check, uint32_t earlier);

/* ---- maps of intervals ---- */

/* A buffer in pieces; each reaches to the next one's begin. Pieces that continue the one before are one: same a and b,
 * and `offset` grows with the bytes. */
struct check_piece {
    uint64_t begin;
    uint64_t offset;
    uint32_t a;
    uint32_t b;
};

struct check_map {
    struct check_piece *pieces; /* NULL: not yet used */
    uint32_t count;
    uint32_t limit;
    uint64_t bytes;
};

int check_map_init(struct check *check, struct check_map *map, uint64_t bytes, uint32_t a, uint32_t b);

/* The piece that holds `byte`. */
uint32_t check_map_find(const struct check_map *map, uint64_t byte);

static inline uint64_t check_map_end(const struct check_map *map, uint32_t piece)
{
    return piece + 1 < map->count ? map->pieces[piece + 1].begin : map->bytes;
}

static inline bool check_continues(const struct check_piece *piece, const struct check_piece *next)
{
    return piece->a == next->a && piece->b == next->b && piece->offset + (next->begin - piece->begin) == next->offset;
}

/* Makes a piece begin at `byte`. */
int check_map_split(struct check *check, struct check_map *map, uint64_t byte);

/* Replaces the contents of [begin, end) by `count` pieces, the first of which begins at `begin`. */
int check_map_replace(struct check *check, struct check_map *map, uint64_t begin, uint64_t end,
                      const struct check_piece *pieces, uint32_t count);

/* ---- values ---- */

/* An operand or a combination of operands: nodes 0 .. ranks - 1 are the operands that the ranks send. Equal trees, up
 * to the sides of a node, are one node. */
struct check_node {
    uint32_t low; /* of two */
    uint32_t high;
    uint32_t first; /* all its operands are ranks in [first, last) */
    uint32_t last;
    uint32_t operands;
};

struct check_nodes {
    struct check_node *nodes;
    uint64_t *sets; /* ranks of each node, `words` a node; NULL: ordered, where first and last are enough */
    uint32_t *table;
    uint32_t count;
    uint32_t limit;
    uint32_t words;
    uint32_t table_mask;
};

int check_nodes_init(struct check *check, struct check_nodes *nodes);

/* left OP right. CHECK_FAULT without a report if they do not fit together. */
int check_nodes_combine(struct check *check, struct check_nodes *nodes, uint32_t left, uint32_t right, uint32_t *node);

/* The standard's rule for `bytes` of a receive buffer from `begin` on: element by element the operands of ranks [first,
 * last) from `offset` in their send buffers on; one rank: just its bytes. */
struct check_expected {
    uint64_t begin;
    uint64_t bytes;
    uint64_t offset;
    uint32_t first;
    uint32_t last;
};

/* Compares the receive buffers (a: node, b: unused) with that. */
int check_result(struct check *check, const struct check_map *receive, const struct check_nodes *nodes);
