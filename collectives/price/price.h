/* price: the time of a collective on a network, computed in two ways.
 *
 * The interpreter runs a plan in model time. Formulas are closed forms, from papers or derived from the algorithms.
 * Each says how it relates to the interpreter, and tests hold it to that.
 *
 * Model time
 *   put        needs one of its sender's ports for g(m), and at its start the sender's processor for os(m). Ports go to
 *              early iterations first, and among these in array order. With s the start: its last byte has left at
 *              s + g(m), where an eager put is complete; the first byte is at the target at s + L, where a port is used
 *              for g(m), in the order of arrival; the last or(m) of that takes the processor as well, and if that is
 *              busy the arrival is later. So without other messages it arrives at s + L + g(m). A direct put is
 *              complete when the notice of that is back: L later.
 *   links      between two clusters all messages share wan_bytes_per_ns: a message is through when all bytes that
 *              entered the link before it and its own are, and not before s + g(m). With a route through a third
 *              cluster there are two legs, each a link and each of latency L.
 *   credit     of eager puts to other clusters a rank has at most wan_messages in flight; such a put is in flight until
 *              L after its arrival, when its slot is lent again
 *   multicast  one port, one g(m) and one os(m) at the sender (with members near and far: the longer ones); each member
 *              receives it like a put; it crosses to another cluster once
 *   wait       complete with the arrival; eager, and if copying costs: when the processor has copied it out
 *   copy, reduce  the processor, for their bytes
 *   barrier    complete everywhere ceil(log2 P) (g(0) + L) after the last rank has started it; with clusters by the
 *              slower path
 *   A processor serves requests in their order. Work of no cost does not wait for it. */
#pragma once

#include "collectives/algorithms/build.h"
#include "collectives/price/network.h"
#include "collectives/schedule/plan.h"

/* ---- The interpreter ---- */

/* One thing that happened in model time, for pictures. */
struct cw_trace_event {
    uint32_t rank;
    uint32_t op;
    uint32_t iteration;
    double ready_ns; /* its dependencies were met */
    double start_ns; /* it got what it needs: port, processor */
    double end_ns;   /* complete */
};

/* A message: from the first byte's leaving to the last byte's arrival. A multicast has one per receiver. */
struct cw_trace_message {
    uint32_t source;
    uint32_t target;
    uint32_t op; /* of the source */
    uint32_t iteration;
    uint64_t bytes;
    double start_ns;
    double sent_ns;
    double arrived_ns;
};

struct cw_trace {
    struct cw_trace_event *events; /* by rank, op, iteration */
    uint64_t event_count;
    struct cw_trace_message *messages; /* by arrival */
    uint64_t message_count;
};

void cw_trace_dispose(struct cw_trace *trace);

struct cw_price {
    double time_ns;     /* until the last rank is done; all enter at 0 */
    uint32_t last_rank; /* ... which is this one */
    uint64_t messages;  /* with data; a multicast is one */
    uint64_t wan_bytes; /* over links between clusters; a message over two legs counts twice */
};

/* Runs a plan that the checker passes (cw_check_validate) in model time. `trace` may be NULL; else the caller releases
 * it with cw_trace_dispose. CW_OK; CW_ERROR_MEMORY; CW_ERROR_ARGUMENT if the network is not valid, or the plan does not
 * come to an end (cw_check tells why). Any thread. */
int cw_price_interpret(const struct cw_plan *plan, const struct cw_network *network, struct cw_price *price,
                       struct cw_trace *trace);

/* ---- Closed forms ---- */

/* Relation of a formula's value to the interpreter's, if copies cost nothing. Where messages are not eager most
 * formulas add one handshake and promise nothing. */
enum cw_formula_class {
    CW_FORMULA_NONE = 0,    /* not at all: its condition does not hold */
    CW_FORMULA_EXACT,       /* the same */
    CW_FORMULA_UPPER_BOUND, /* never less */
    CW_FORMULA_LOWER_BOUND, /* never more */
    CW_FORMULA_FITTED,      /* near it: at most `factor` more or less */
};

/* P ranks, m bytes (of a vector, or of the block of a rank), k segments of s bytes; R: time to reduce m bytes. */
struct cw_formula {
    enum cw_collective collective;
    const char *algorithm;
    const char *text;           /* "(P-1) g(m) + L", for one port */
    const char *source;         /* the paper and its table or equation */
    enum cw_formula_class kind; /* the best it can be; ... */
    const char *condition;      /* ... when; elsewhere its value has a weaker class. NULL: always */
    double factor;              /* of those whose value may be FITTED */
};

/* Formula number `index`; NULL beyond the last. */
const struct cw_formula *cw_formula_at(uint32_t index);

/* The formula of an algorithm; NULL if there is none. */
const struct cw_formula *cw_formula_find(enum cw_collective collective, const char *algorithm);

struct cw_formula_value {
    double time_ns;
    enum cw_formula_class kind; /* for this problem, these parameters and this network */
};

/* Its value for a problem. CW_OK; CW_ERROR_NOT_FOUND if it says nothing of such a problem (different counts, clusters).
 * Allocates nothing. */
int cw_formula_evaluate(const struct cw_formula *formula, const struct cw_problem *problem,
                        const struct cw_parameters *parameters, const struct cw_network *network,
                        struct cw_formula_value *value);
