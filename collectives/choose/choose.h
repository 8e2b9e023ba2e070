/* choose: which algorithm, with which parameters, will serve a problem soonest on a network; and why.
 *
 * Purpose
 *   Every algorithm of the registry that fits is priced with the best parameters that a search finds: segments by m /
 *   2^i, then hill climbing (Barchet-Estefanel and Mounie 2004, section 3, after Kielmann et al. 2001); degree of a
 *   tree; concurrency index; ranks that send across a WAN. The answer is the whole ranking.
 *
 * Invariants
 *   - Parameters are searched for by the algorithm's formula. Where it is exact it is the price, too; elsewhere plans
 *     that might be the best are built and interpreted as long as they are small. Larger ones keep their estimate;
 *     count matrices are priced by their phases. An algorithm without a price is not chosen.
 *   - The same question has the same answer at all ranks: nothing but the problem and the network enters.
 *
 * Order of calls: any. Thread: any. */
#pragma once

#include "collectives/algorithms/build.h"
#include "collectives/price/price.h"

enum {
    CW_CANDIDATES_MAX = 64,
    CW_CHOOSE_INTERPRET_OPS_MAX = 20000, /* larger plans are not interpreted for a choice */
};

enum cw_candidate_priced {
    CW_PRICED_FORMULA = 0,  /* exact for this problem, these parameters and this network */
    CW_PRICED_ESTIMATE = 3, /* a formula that is near it, or a bound: of plans too large to interpret, or far behind */
    CW_PRICED_INTERPRETER = 1,
    CW_PRICED_PHASES = 2, /* all-to-all: the sum over phases of their longest message */
};

struct cw_candidate {
    const struct cw_algorithm *algorithm;
    struct cw_parameters parameters;
    double time_ns;
    enum cw_candidate_priced priced;
};

struct cw_choice {
    uint32_t count;
    struct cw_candidate candidates[CW_CANDIDATES_MAX]; /* the soonest first */
};

struct cw_choose_request {
    const struct cw_problem *problem;
    const struct cw_network *network;   /* valid (cw_network_validate) */
    uint64_t eager_max_bytes;           /* largest message that the transport sends without a handshake */
    bool multicast;                     /* whether the network multicasts */
    uint64_t multicast_eager_max_bytes; /* largest message that it multicasts without one, if that is larger */
    uint64_t single_eager_max_bytes;    /* ... if it is no segment, as in struct cw_parameters */
};

/* Ranks all candidates. CW_OK; CW_ERROR_UNSUPPORTED if there is none; CW_ERROR_MEMORY. */
int cw_choose(const struct cw_choose_request *request, struct cw_choice *choice);
