/* The files of the memory transport: transport_memory.c (its interface), transport_memory_step.c (progress of a put),
 * transport_memory_pool.c (memory, heap, table), transport_memory_adversity.c (order). Private to them.
 *
 * Life of a put: for each target a message. Each piece of a message is read, then (direct) lands; when all have, the
 * message arrives. When all pieces of all messages are read, the put may complete. An eager message first needs leave
 * to come: its wait, or a free buffer. All of these are tasks in one heap; the seed decides their priorities. */
#pragma once

#include "dataplane/base/random.h"
#include "tests/schedules/transport_memory.h"

enum {
    MEMORY_NONE = UINT32_MAX,
    MEMORY_PIECES_MAX = 4,
    MEMORY_BLOCK_CLASSES = 48, /* powers of two */
    MEMORY_REFUSALS_MAX = 3,   /* in a row */
};

enum memory_task_kind {
    TASK_LEAVE,
    TASK_READ,
    TASK_LAND,
    TASK_ARRIVE,
    TASK_SENT,
    TASK_COMPLETE,
    TASK_HOST,
    TASK_KINDS
};

struct memory_task {
    uint64_t priority; /* the smallest is next */
    uint32_t subject;  /* SENT, COMPLETE: a put; HOST: a rank, and `piece` the number; else a message */
    uint16_t kind;
    uint16_t piece;
};

/* Memory for bytes under way. */
struct memory_block {
    struct memory_block *next_free;
    struct memory_block *next_all;
    uint8_t bytes[];
};

struct memory_put {
    const uint8_t *data;
    struct memory_block *snapshot; /* the bytes at put(); NULL: none */
    uint64_t bytes;
    uint64_t context;
    uint64_t number; /* from 0 in each run */
    uint32_t source;
    uint32_t tag;
    uint32_t reads_left; /* pieces of all messages */
    uint32_t references; /* messages, its completion, its SENT task */
    bool eager;
    bool complete;
};

enum memory_message_state { MESSAGE_FREE, MESSAGE_COMING, MESSAGE_HELD, MESSAGE_DELIVERED };

struct memory_message {
    uint64_t cuts[MEMORY_PIECES_MAX + 1]; /* piece i is [cuts[i], cuts[i + 1]) */
    uint8_t *destination;                 /* direct */
    struct memory_block *buffer;          /* eager, with bytes, delivered */
    uint32_t put;
    uint32_t target;
    uint32_t pieces;
    uint32_t pieces_left;
    uint32_t previous; /* among the target's held ones */
    uint32_t next;     /* the same; or the free list */
    uint8_t state;
    bool slot; /* takes one of the target's eager buffers */
};

/* The state of (target, source, tag): that the wait has started, or the message. */
struct memory_match {
    uint64_t key;
    uint32_t run; /* another run's: empty */
    uint32_t message;
    bool put; /* there has been a put */
    bool expected;
};

/* A rank's part in a host op. */
struct memory_host {
    struct cw_transport_host call;
    struct memory_block *contribution; /* NULL: none */
    uint64_t bytes;
    bool started;
    bool waits_for_all;
    bool pushed; /* its task */
};

struct memory_rank {
    struct cw_memory_fabric *fabric;
    struct cw_transport transport;
    struct cw_transport_sink sink;
    uint8_t *buffers[4];
    uint64_t bytes[4];
    uint32_t rank;
    uint32_t awake_position; /* MEMORY_NONE: not awake */
    uint32_t held_first;
    uint32_t held_last;
    uint32_t slots_used;
    uint32_t refusals;         /* in a row */
    struct memory_host *hosts; /* by number; NULL: none yet */
    bool entered;
    bool has_news; /* an event since it was polled last */
    bool refused;  /* the last put was */
};

/* Which tasks come last, or first. */
enum memory_trait {
    TRAIT_NOTHING,
    TRAIT_SOURCE, /* puts of a rank */
    TRAIT_TARGET, /* puts to a rank */
    TRAIT_RANK,   /* both */
    TRAIT_TASK,   /* a kind of task */
    TRAIT_TAG,    /* a kind of tag */
    TRAIT_EAGER,
    TRAIT_DIRECT,
    TRAIT_NUMBER, /* one put */
    TRAIT_COUNT,
};

struct memory_bias {
    uint32_t trait;
    uint32_t value;
};

enum memory_order { ORDER_RANDOM, ORDER_FIFO, ORDER_LIFO, ORDER_BY_PUT, ORDER_BY_PAIR, ORDER_COUNT };

struct memory_adversity {
    enum memory_order order;
    struct memory_bias late[2];
    struct memory_bias early;
    uint64_t salt;
    uint32_t pieces_max;
    /* chances, of 256 */
    uint32_t refuse;
    uint32_t sent;
    uint32_t scribble; /* a direct put first spoils the place it goes to */
};

struct cw_memory_fabric {
    struct cw_memory_fabric_request request;
    struct cw_random random;
    struct memory_adversity adversity;
    struct memory_rank *ranks;
    uint32_t *awake;
    uint32_t awake_count;
    uint32_t run;
    uint64_t put_count;
    uint64_t task_sequence;

    struct memory_put *puts;
    uint32_t puts_used, puts_capacity, puts_free;
    struct memory_message *messages;
    uint32_t messages_used, messages_capacity, messages_free;
    struct memory_task *tasks; /* heap */
    uint32_t tasks_count, tasks_capacity;
    struct memory_match *matches; /* open addressing */
    uint32_t matches_used, matches_bits;
    struct memory_block *blocks_free[MEMORY_BLOCK_CLASSES];
    struct memory_block *blocks_all[MEMORY_BLOCK_CLASSES];

    bool faulty;
    char fault[200];
};

__attribute__((format(printf, 2, 3))) void memory_fault(struct cw_memory_fabric *fabric, const char *format, ...);

/* ---- transport_memory_pool.c: MEMORY_NONE or NULL where there is no memory; indices stay, pointers do not ---- */

uint32_t memory_put_acquire(struct cw_memory_fabric *fabric);
void memory_put_unreference(struct cw_memory_fabric *fabric, uint32_t put);
uint32_t memory_message_acquire(struct cw_memory_fabric *fabric);
void memory_message_free(struct cw_memory_fabric *fabric, uint32_t message);
struct memory_block *memory_block_acquire(struct cw_memory_fabric *fabric, uint64_t bytes);
void memory_block_release(struct cw_memory_fabric *fabric, struct memory_block *block, uint64_t bytes);

/* The entry of (target, source, tag), made if there is none; NULL: no memory. Valid until the next call. */
struct memory_match *memory_match_find(struct cw_memory_fabric *fabric, uint32_t target, uint32_t source, uint32_t tag);

bool memory_task_push(struct cw_memory_fabric *fabric, const struct memory_task *task);
struct memory_task memory_task_pop(struct cw_memory_fabric *fabric);

/* An event for `rank`, which may put at once: pointers to operations in progress are not valid behind it. True: its
 * data is held until `release`. */
bool memory_event(struct cw_memory_fabric *fabric, uint32_t rank, const struct cw_transport_event *event);

void memory_awake(struct cw_memory_fabric *fabric, uint32_t rank, bool awake);

void memory_pools_reset(struct cw_memory_fabric *fabric);
void memory_pools_dispose(struct cw_memory_fabric *fabric);

/* ---- transport_memory_adversity.c ---- */

void memory_adversity_draw(struct cw_memory_fabric *fabric);
uint64_t memory_priority(struct cw_memory_fabric *fabric, enum memory_task_kind kind, const struct memory_put *put,
                         uint32_t target);
bool memory_chance(struct cw_memory_fabric *fabric, uint32_t of_256);

#define MEMORY_PRIORITY_LATE  (1ull << 63)
#define MEMORY_PRIORITY_USUAL (1ull << 62) /* without it: before all others */

/* ---- transport_memory_host.c ---- */

int memory_host(void *state, const struct cw_transport_host *host);
void memory_host_run(struct cw_memory_fabric *fabric, uint32_t rank, uint32_t number);
/* Forgets those of a rank. */
void memory_hosts_reset(struct cw_memory_fabric *fabric, struct memory_rank *rank);

/* Whether to reject a call now. */
bool memory_refuses(struct cw_memory_fabric *fabric, struct memory_rank *rank);

/* ---- transport_memory_step.c ---- */

/* Sets the tasks of a new message going. */
void memory_message_begin(struct cw_memory_fabric *fabric, uint32_t message);

/* The same for steps of the put as a whole. */
void memory_put_begin(struct cw_memory_fabric *fabric, uint32_t put);

/* An eager message may come now: its wait has started. */
void memory_message_expected(struct cw_memory_fabric *fabric, uint32_t message);

/* The target is through with an eager message. */
void memory_message_release(struct cw_memory_fabric *fabric, uint32_t message);
