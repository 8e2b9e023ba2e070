/* share: chooses the next sender when the NIC is slower than the demand: deficit round robin (Shreedhar and Varghese,
 * 1995) by weights, and rates that are not exceeded.
 *
 * Invariants
 *  - Of leases that always have frames to send, each gets bytes in proportion to its weight, up to two frames.
 *  - One that has nothing to send saves nothing up. A rate is never exceeded by more than NODE_BURST_NS of it.
 *
 * Thread: one. No clock: `now_ns` is a parameter. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { NODE_WEIGHT_MAX = 1000, NODE_QUANTUM_BYTES = 2048 /* a turn of the weight 1 */ };
#define NODE_BURST_NS 200000ull

/* How often a user may do what costs the node work and moves no frame of others: the time at which what was done so far
 * is paid for. */
struct node_budget {
    uint64_t paid_ns;
};

/* Whether work may be done now: at most `burst_ns` is owed. */
static inline bool node_budget_may(const struct node_budget *budget, uint64_t now_ns, uint64_t burst_ns)
{
    return budget->paid_ns <= now_ns + burst_ns;
}
static inline void node_budget_charge(struct node_budget *budget, uint64_t now_ns, uint64_t cost_ns)
{
    budget->paid_ns = (budget->paid_ns > now_ns ? budget->paid_ns : now_ns) + cost_ns;
}

/* A rate, as the time at which the frames sent so far have left. */
struct node_meter {
    uint64_t rate_bps; /* 0: none */
    uint64_t free_ns;
};

static inline bool node_meter_may(const struct node_meter *meter, uint64_t now_ns)
{
    return meter->rate_bps == 0 || meter->free_ns <= now_ns;
}
void node_meter_charge(struct node_meter *meter, uint64_t now_ns, uint32_t bytes);

struct node_turn {
    uint32_t weight; /* 1 .. NODE_WEIGHT_MAX */
    bool has_work;   /* set by the user */
    int64_t deficit_bytes;
    struct node_meter meter;
    uint64_t barred_ns; /* it may not send before */
};

struct node_round {
    struct node_turn **turns; /* the user's */
    uint32_t count;
    uint32_t current;
};

/* The one that may send a frame now; NULL: none has work that its rate lets out. */
struct node_turn *node_round_next(struct node_round *round, uint64_t now_ns);
/* It has sent this number of bytes, or the node has moved as many for it. */
void node_turn_charge(struct node_turn *turn, uint64_t now_ns, uint32_t bytes);
/* The earliest time at which a sender with work may send; UINT64_MAX: none has work. */
uint64_t node_round_deadline(const struct node_round *round);
