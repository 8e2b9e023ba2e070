/* The files of the interpreter: interpret.c (the loop, totals), interpret_create.c (memory, tables), interpret_events.c
 * (order of events), interpret_ops.c (dependencies, start and completion of ops), interpret_ports.c (sending),
 * interpret_messages.c (links, arrivals). Private to them.
 *
 * Invariants
 *   - Ops of all ranks are numbered through: op i of rank r is number ranks[r].op_first + i.
 *   - Time only goes forward: events are taken in the order of their times, those of the same time in the order in
 *     which they were made.
 *   - A processor serves requests in the order of arrival. Each request comes at the moment at which its work could
 *     begin, so the state of a processor is only the time at which it will be free.
 *   - A put whose dependencies are met waits in its rank's line for a port. Ports are given out when all that happens
 *     at the same time has happened: to early iterations first, among these in array order. So pipelines that are
 *     listed one after the other advance together. */
#pragma once

#include "collectives/price/price.h"
#include "collectives/schedule/progress.h"

#define INTERPRET_NONE UINT32_MAX

/* ---- Events ---- */

enum event_kind {
    EVENT_SENT,         /* message: its last byte has left its sender */
    EVENT_TRAVELLED,    /* message: its first byte would be at the end of a leg, if no link holds it up */
    EVENT_COME,         /* message: its first byte is at the target */
    EVENT_RECEIVED,     /* message: at the processor of its target */
    EVENT_ARRIVED,      /* message */
    EVENT_ACKNOWLEDGED, /* message (of a multicast: the sender's) */
    EVENT_LOCAL,        /* op and iteration: the processor is through with it */
    EVENT_BARRIER,      /* barrier number */
};

struct event {
    double time;
    uint64_t order; /* of making; the lowest 3 bits: enum event_kind */
    uint32_t subject;
    uint32_t iteration;
};

/* ---- Ops ---- */

struct op_state {
    uint32_t rank;          /* whose it is */
    uint64_t arrived_first; /* wait: bits in `arrived` */
};

/* A wait, found by its peer and tag. */
struct wait_entry {
    uint64_t key; /* peer, kind of tag, number */
    uint32_t op;
};

/* ---- Messages ---- */

/* A put in flight; a multicast has one for its sender and one per receiver. */
struct message {
    uint32_t op; /* number of the put */
    uint32_t iteration;
    uint32_t target; /* rank */
    /* in the sender's line (a pairing heap: next child of the same), among the receivers of one cluster, in the free
     * list */
    uint32_t next;
    uint32_t child;      /* in the line: first of those behind it */
    uint32_t parent;     /* multicast: the sender's; else INTERPRET_NONE */
    uint32_t pending;    /* sender's: receivers it has not arrived at */
    uint32_t references; /* events to come that name it */
    uint8_t path;        /* enum cw_path_kind */
    uint8_t legs;        /* that it has behind it */
    uint64_t bytes;
    double start;   /* first byte leaves the sender */
    double sent;    /* last byte has left the sender */
    double gap;     /* g of its path */
    double head;    /* first byte enters the leg it is on, or is at the target */
    double arrival; /* if the processor of the target is free then; sender's: when the last acknowledgement is there */
};

struct rank_state {
    const struct cw_schedule *schedule;
    struct cw_progress progress;
    uint32_t op_first;
    uint32_t wait_first; /* in `waits`, up to the next rank's */
    uint32_t cluster;
    uint32_t sending;    /* ports taken */
    uint32_t line;       /* the first of the messages that wait for a port */
    uint32_t far;        /* eager messages in flight to other clusters */
    uint32_t held_first; /* ... that wait for one of these to be acknowledged, by `next` */
    uint32_t held_last;
    bool served; /* false: it is among the ranks to be served */
    double processor_free;
};

struct barrier_state {
    uint32_t started;
    uint32_t ops; /* chain of messages that name the ops */
};

struct interpreter {
    const struct cw_plan *plan;
    const struct cw_network *network;
    uint32_t rank_count;
    uint32_t op_count;
    struct rank_state *ranks; /* one more than there are */
    struct op_state *ops;
    const struct cw_op **op_list;
    struct wait_entry *waits;
    uint64_t *arrived;       /* a bit per iteration of each wait */
    double *receive_free;    /* [rank * ports + port] */
    double *link_free;       /* [from cluster * clusters + to]; NULL: no limit */
    uint32_t *cluster_first; /* multicast: first message into a cluster, or INTERPRET_NONE */
    struct barrier_state *barriers;
    struct barrier_state *hosts; /* host ops: [number * ranks + first rank]; NULL: there are none */

    struct event *events; /* heap */
    uint64_t event_count;
    uint64_t event_capacity;
    uint64_t event_order;

    uint64_t *ready; /* heap of ops to start, with the number of the iteration in the upper half */
    uint32_t ready_count;
    uint32_t ready_capacity;
    uint32_t *to_serve; /* ranks with free ports and a line, perhaps */
    uint32_t to_serve_count;

    struct message *messages;
    uint32_t message_count;
    uint32_t message_capacity;
    uint32_t message_free;

    double now;
    uint64_t steps_left;
    int status;
    struct cw_price price;
    struct cw_trace *trace; /* NULL: none is asked for */
    uint64_t *trace_first;  /* by op: its first event */
    uint64_t trace_message_capacity;
};

/* ---- interpret_create.c ---- */

/* Takes all memory that does not grow. CW_OK, CW_ERROR_ARGUMENT or CW_ERROR_MEMORY; interpreter_dispose in any case. */
int interpreter_create(struct interpreter *interpreter, const struct cw_plan *plan, const struct cw_network *network,
                       struct cw_trace *trace);
void interpreter_dispose(struct interpreter *interpreter);

/* The wait at `target` for a put; its iteration in *iteration. INTERPRET_NONE: there is none. */
uint32_t interpreter_wait_find(const struct interpreter *interpreter, uint32_t target, uint32_t source, uint32_t tag,
                               uint32_t *iteration);

/* ---- interpret_events.c ---- */

/* The array with room for one more element of `bytes`, or NULL: no memory, which sticks. */
void *interpreter_grow(struct interpreter *interpreter, void *array, uint64_t count, uint64_t *capacity, size_t bytes);

void interpreter_event_add(struct interpreter *interpreter, double time, enum event_kind kind, uint32_t subject,
                           uint32_t iteration);

/* Takes the next one out; false: there is none. */
bool interpreter_event_pop(struct interpreter *interpreter, struct event *event);

void interpreter_ready_add(struct interpreter *interpreter, uint32_t op, uint32_t iteration);
bool interpreter_ready_pop(struct interpreter *interpreter, uint32_t *op);

/* ---- interpret_ops.c ---- */

/* Puts every op that waits for nothing in the ready set. */
void interpreter_begin(struct interpreter *interpreter);

/* Starts what is ready, until nothing is. */
void interpreter_start_ready(struct interpreter *interpreter);

void interpreter_complete(struct interpreter *interpreter, uint32_t op, uint32_t iteration);

/* A put's last byte has left. */
void interpreter_sent(struct interpreter *interpreter, uint32_t op, uint32_t iteration);

/* The message that iteration `iteration` of a wait is for has arrived. */
void interpreter_wait_arrived(struct interpreter *interpreter, uint32_t op, uint32_t iteration);

void interpreter_barrier_over(struct interpreter *interpreter, uint32_t number);

/* How far an op has come. */
static inline const struct cw_progress_state *interpreter_progress(const struct interpreter *interpreter, uint32_t op)
{
    const struct rank_state *rank = &interpreter->ranks[interpreter->ops[op].rank];
    return &rank->progress.states[op - rank->op_first];
}

/* The processor of a rank, from now on for `duration`: when that begins. Work of no duration waits for nothing. */
static inline double interpreter_processor(struct interpreter *interpreter, uint32_t rank, double duration)
{
    struct rank_state *state = &interpreter->ranks[rank];
    if (duration <= 0) {
        return interpreter->now;
    }
    double begin = state->processor_free > interpreter->now ? state->processor_free : interpreter->now;
    state->processor_free = begin + duration;
    return begin;
}

static inline struct cw_trace_event *interpreter_trace(const struct interpreter *interpreter, uint32_t op,
                                                       uint32_t iteration)
{
    return interpreter->trace != NULL ? &interpreter->trace->events[interpreter->trace_first[op] + iteration] : NULL;
}

/* ---- interpret_ports.c ---- */

/* A put or multicast joins the line for a port. */
void interpreter_put(struct interpreter *interpreter, uint32_t op, uint32_t iteration);

/* Gives out the ports that are free: those of one rank, or of all where there may be any. */
void interpreter_line_serve(struct interpreter *interpreter, uint32_t rank);
void interpreter_ports_serve(struct interpreter *interpreter);

/* Whether a put counts against its rank's messages in flight to other clusters. */
bool interpreter_uses_credit(const struct interpreter *interpreter, uint32_t op);

/* One of them is acknowledged. */
void interpreter_credit_returned(struct interpreter *interpreter, uint32_t rank);

/* A message has left. */
void interpreter_port_released(struct interpreter *interpreter, uint32_t rank);

/* ---- interpret_messages.c ---- */

/* A message that no event names; INTERPRET_NONE: no memory, which sticks. */
uint32_t interpreter_message_acquire(struct interpreter *interpreter);
void interpreter_message_release(struct interpreter *interpreter, uint32_t message);

/* Its first byte leaves its sender at its `start`. */
void interpreter_travel(struct interpreter *interpreter, uint32_t message);

/* Handles an event about a message. */
void interpreter_message_event(struct interpreter *interpreter, enum event_kind kind, uint32_t message);
