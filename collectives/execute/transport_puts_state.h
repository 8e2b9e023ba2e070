/* What the files of the transport over puts share: transport_puts_create.c (memory, whom the schedule names),
 * transport_puts.c (as the execution sees it), transport_puts_deliver.c (events of the endpoint, control messages).
 * Private to them. */
#pragma once

#include "collectives/execute/transport_puts.h"

enum {
    PUTS_NONE = UINT32_MAX,
    PUTS_CONTROL_LANE = 2, /* after those of runs with even and odd numbers */
    PUTS_FAILURE_BYTES = 160,
    PUTS_MESSAGES_MAX = 1 << 28,
    PUTS_COPIES_MAX = 512, /* as many messages as MPI keeps for the wire (dataplane/path/wire.c) */
};

/* Tags of the control lane. */
enum puts_control {
    PUTS_BEGUN = 0,  /* the sender has begun one run more */
    PUTS_PROBE = 1,  /* to see whether the dataplane answers */
    PUTS_FAILED = 2, /* the sender has given up */
};

/* The handle of an arrival that holds no slot; others are the slot + 1. */
#define PUTS_NO_SLOT UINT64_MAX

/* A rank that the schedule names. */
struct puts_partner {
    uint32_t rank;
    uint32_t peer;      /* in this endpoint */
    uint64_t due;       /* arrivals from it in a run */
    uint64_t got[2];    /* ... in the run with this parity */
    uint64_t begun;     /* one_way_target: the last run that it is known to have begun */
    uint32_t owes;      /* messages PUTS_BEGUN that it is yet to be sent */
    int down;           /* why it is no more; CW_OK: it is there */
    bool target;        /* is sent to */
    bool source;        /* is waited for */
    bool one_way_to;    /* only the first, and nothing else tells what it has begun: it will say so */
    bool one_way_from;  /* only the second: it has to be told */
    bool blocks;        /* a put to it was refused since it has not begun */
    bool probe_wanted;  /* it is yet to be sent */
    bool probe_open;    /* under way */
    bool failed_wanted; /* PUTS_FAILED is yet to be sent */
};

/* A put of the execution under way: one message or put for each of its peers. */
struct puts_record {
    uint64_t context;
    uint32_t posted;
    uint32_t complete;
    uint32_t peer_count;
    uint32_t next; /* free, or partly posted: the next of the kind */
    uint32_t copy; /* that it is sent from, or PUTS_NONE */
    bool notified; /* the execution counts it as complete: the source has been copied */
};

struct puts_arena {
    uint8_t *memory;
    uint64_t used;
};

struct cw_puts_transport {
    struct cw_puts_transport_request request;
    struct cw_transport interface;
    struct cw_transport_sink sink;
    uint32_t rank;
    uint64_t run; /* the current one */

    struct puts_partner *partners; /* by rank */
    uint32_t *by_peer;             /* indices of partners by their number in the endpoint */
    uint32_t partner_count;

    struct puts_record *records;
    uint32_t free_first;
    uint32_t partial_first; /* multicasts that are posted in part */

    uint8_t *copies; /* of messages, slot_bytes each, [copy_count] */
    uint32_t *copies_free;
    uint32_t copy_count;
    uint32_t copies_free_count;
    uint32_t copies_most; /* used at a time */

    struct cw_transport_event *early; /* messages of the next run, [early_count_max] */
    uint64_t early_count;
    uint64_t early_count_max;
    struct puts_arena arenas[2]; /* by parity of the run */
    uint64_t arena_bytes;
    uint32_t slots_kept;

    uint32_t puts_open;      /* puts and messages of records under way */
    uint32_t control_wanted; /* control messages yet to be posted */
    uint32_t control_cursor; /* partner to look at next */
    uint64_t refusals;       /* puts and control messages, so far */
    bool aborted;
    int status; /* CW_OK until it has failed */
    bool failure_notified;
    char failure[PUTS_FAILURE_BYTES];
};

/* The first failure counts. */
__attribute__((format(printf, 3, 4))) void puts_fail(struct cw_puts_transport *transport, int status,
                                                     const char *format, ...);

/* NULL: the schedule does not name it. */
struct puts_partner *puts_partner_of_rank(const struct cw_puts_transport *transport, uint32_t rank);
struct puts_partner *puts_partner_of_peer(const struct cw_puts_transport *transport, uint32_t peer);

/* ---- transport_puts.c ---- */

void puts_record_free(struct cw_puts_transport *transport, uint32_t index);

/* Gives an arrival to the execution. */
void puts_arrive(struct cw_puts_transport *transport, const struct cw_transport_event *event);
/* Tells the execution of a failure, if there is one that it does not know. Not from within its put. */
void puts_failure_tell(struct cw_puts_transport *transport);
void puts_slot_release(struct cw_puts_transport *transport, uint64_t buffer);

/* ---- transport_puts_deliver.c ---- */

/* Posts control messages, as far as the endpoint takes them. */
void puts_control_pump(struct cw_puts_transport *transport);

/* A partner is no more. */
void puts_partner_down(struct cw_puts_transport *transport, struct puts_partner *partner, int status,
                       const char *reason);
