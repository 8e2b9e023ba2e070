/* All-to-all in phases: those of Karwande, Yuan and Lowenthal 2003, Figure 2, for the same counts everywhere, and those
 * that a scheduler finds for a count matrix (phases/count_matrix.h). Phases are kept apart by barriers, or from rank to
 * rank: a receiver is ready for a message when the messages of all phases but the one before have arrived. So the next
 * message is on its way when the last byte of one arrives. */
#include <stdlib.h>

#include "collectives/algorithms/pairs.h"
#include "collectives/algorithms/registry.h"
#include "collectives/phases/count_matrix.h"
#include "dataplane/status.h"

enum {
    ROTATION,
    GREEDY,
    ALL_TO_ALL_BASED,
    SCHEDULER_MASK = 15,
    BARRIERS = 16,
};

/* One rank's messages in order of phases. */
struct side {
    uint32_t *first; /* by rank, ranks + 1 entries */
    uint32_t *parts; /* indices of phase messages */
};

struct shared {
    struct cw_count_matrix count_matrix;
    struct cw_phases phases;
    struct side out;
    struct side in;
};

static void release(void *state)
{
    struct shared *shared = state;
    cw_count_matrix_dispose(&shared->count_matrix);
    cw_phases_dispose(&shared->phases);
    free(shared->out.first);
    free(shared->out.parts);
    free(shared->in.first);
    free(shared->in.parts);
    free(shared);
}

static uint32_t rank_on(const struct shared *shared, uint32_t part, bool in)
{
    const struct cw_phase_message *message = &shared->phases.messages[part];
    return in ? message->to : message->from;
}

static bool side_make(const struct shared *shared, struct side *side, bool in)
{
    uint32_t ranks = shared->count_matrix.ranks;
    uint32_t count = shared->phases.message_count;
    side->first = calloc(ranks + 2ull, sizeof(*side->first));
    side->parts = malloc((count + 1ull) * sizeof(*side->parts));
    if (side->first == NULL || side->parts == NULL) {
        return false;
    }
    uint32_t *next = &side->first[1]; /* counts, then where each rank's next part goes, then where it ends */
    for (uint32_t i = 0; i < count; i++) {
        next[rank_on(shared, i, in) + 1]++;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        next[rank + 1] += next[rank];
    }
    for (uint32_t i = 0; i < count; i++) {
        side->parts[next[rank_on(shared, i, in)]++] = i;
    }
    return true;
}

static int schedule(const struct cw_parameters *parameters, uint32_t scheduler, struct shared *shared)
{
    uint64_t threshold_bytes = parameters->threshold_bytes;
    return scheduler == GREEDY ? cw_schedule_greedy(&shared->count_matrix, threshold_bytes, &shared->phases)
                               : cw_schedule_all_to_all_based(&shared->count_matrix, threshold_bytes, &shared->phases);
}

static int prepare(const struct cw_problem *problem, const struct cw_parameters *parameters,
                   const struct cw_recipe *recipe, void **state)
{
    struct shared *shared = calloc(1, sizeof(*shared));
    if (shared == NULL) {
        return CW_ERROR_MEMORY;
    }
    int status = cw_count_matrix_create(problem, &shared->count_matrix);
    if (status == CW_OK) {
        status = schedule(parameters, recipe->variant & SCHEDULER_MASK, shared);
    }
    if (status == CW_OK && (!side_make(shared, &shared->out, false) || !side_make(shared, &shared->in, true))) {
        status = CW_ERROR_MEMORY;
    }
    if (status != CW_OK) {
        release(shared);
        return status;
    }
    *state = shared;
    return CW_OK;
}

/* How the phases of one rank are kept apart. */
struct order {
    struct cw_emit *emit;
    bool barriers;
    uint32_t latest; /* complete when the messages of all phases so far have come */
    uint32_t before; /* ... of all but the one that is being written; CW_NO_OP: nothing to wait for */
    uint32_t ready;  /* ... of all but that one and the one before it */
};

static struct order order_begin(struct cw_emit *emit, bool barriers)
{
    emit->schedule.promise.fan_in = 1;
    emit->schedule.promise.fan_out = 1;
    emit->schedule.promise.phases_apart = barriers ? 1 : 2;
    if (!barriers) {
        emit->parameters.eager_max_bytes = 0; /* the receiver's clear-to-send keeps the phases apart */
        cw_emit_in_turn(emit, true);
    }
    return (struct order){emit, barriers, CW_NO_OP, CW_NO_OP, CW_NO_OP};
}

/* Clear-to-sends come before messages, which they would wait behind. */
static void order_receive(struct order *order, uint32_t from, uint64_t bytes)
{
    if (!order->barriers) {
        cw_emit_after(order->emit, order->ready);
    }
    uint32_t come = cw_pair_receive(order->emit, from, bytes);
    if (!order->barriers && come != CW_NO_OP) {
        cw_emit_after(order->emit, order->latest);
        cw_emit_after(order->emit, come);
        order->latest = cw_emit_gate(order->emit);
    }
}

static void order_phase_end(struct order *order)
{
    if (order->barriers) {
        cw_emit_barrier(order->emit);
        return;
    }
    order->ready = order->before;
    order->before = order->latest;
}

/* Phase i: rank j sends to j + i + 1. */
static void build_rotation(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    const struct cw_problem *problem = emit->problem;
    uint32_t ranks = problem->ranks;
    uint32_t rank = emit->rank;
    struct order order = order_begin(emit, (recipe->variant & BARRIERS) != 0);
    cw_pair_copy_own(emit);
    for (uint32_t i = 1; i < ranks; i++) {
        uint32_t to = (rank + i) % ranks;
        uint32_t from = (rank + ranks - i) % ranks;
        cw_emit_phase(emit, i - 1);
        order_receive(&order, from, cw_problem_pair_bytes(problem, from, rank));
        cw_pair_send(emit, to, cw_problem_pair_bytes(problem, rank, to));
        if (i + 1 < ranks) {
            order_phase_end(&order);
        }
    }
}

/* This rank's parts in one phase; *out and *in advance from phase to phase. */
static void phase_emit(struct order *order, const struct shared *shared, uint32_t phase, uint32_t *out, uint32_t *in)
{
    uint32_t rank = order->emit->rank;
    for (; *in < shared->in.first[rank + 1]; (*in)++) {
        const struct cw_phase_message *part = &shared->phases.messages[shared->in.parts[*in]];
        if (part->phase != phase) {
            break;
        }
        order_receive(order, part->from, part->bytes);
    }
    for (; *out < shared->out.first[rank + 1]; (*out)++) {
        const struct cw_phase_message *part = &shared->phases.messages[shared->out.parts[*out]];
        if (part->phase != phase) {
            break;
        }
        cw_pair_send(order->emit, part->to, part->bytes);
    }
}

/* The next phase that this rank has a part in. */
static uint32_t phase_next(const struct cw_emit *emit, const struct shared *shared, uint32_t out, uint32_t in)
{
    uint32_t phase = shared->phases.phase_count;
    if (out < shared->out.first[emit->rank + 1]) {
        phase = shared->phases.messages[shared->out.parts[out]].phase;
    }
    if (in < shared->in.first[emit->rank + 1]) {
        uint32_t other = shared->phases.messages[shared->in.parts[in]].phase;
        phase = other < phase ? other : phase;
    }
    return phase;
}

static void build_count_matrix(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    const struct shared *shared = emit->shared;
    bool barriers = (recipe->variant & BARRIERS) != 0;
    uint32_t phase_count = shared->phases.phase_count;
    uint32_t out = shared->out.first[emit->rank];
    uint32_t in = shared->in.first[emit->rank];
    struct order order = order_begin(emit, barriers);
    if (shared->phases.last_is_mixed) {
        emit->schedule.promise.fan_in = emit->schedule.promise.fan_out = 0;
    }
    cw_pair_copy_own(emit);
    uint32_t phase = barriers ? 0 : phase_next(emit, shared, out, in);
    while (phase < phase_count) {
        cw_emit_phase(emit, phase);
        phase_emit(&order, shared, phase, &out, &in);
        phase = barriers ? phase + 1 : phase_next(emit, shared, out, in);
        if (phase < phase_count) {
            order_phase_end(&order);
        }
    }
}

static const struct cw_preparation preparation = {prepare, release};

#define CC_MPI "Karwande, Yuan and Lowenthal 2003, section 4.2"
#define PHASES(name, needs, summary, variant)                                                                      \
    {                                                                                                              \
        {CW_ALLTOALL, name, CW_TAKES_THRESHOLD, needs, summary, CC_MPI}, build_count_matrix, variant, &preparation \
    }
#define ROTATED(name, needs, summary, variant)                                        \
    {                                                                                 \
        {CW_ALLTOALL, name, 0, needs, summary, CC_MPI}, build_rotation, variant, NULL \
    }

const struct cw_recipe cw_recipes_phases[] = {
    ROTATED("phased-barriers", CW_NEEDS_ALL, "P - 1 phases without contention, barriers between", ROTATION | BARRIERS),
    ROTATED("phased", 0, "the same, neighbouring phases kept apart from rank to rank", ROTATION),
    PHASES("greedy-barriers", CW_NEEDS_COUNTS | CW_NEEDS_ALL,
           "phases filled up with the longest messages, barriers between", GREEDY | BARRIERS),
    PHASES("greedy", CW_NEEDS_COUNTS, "the same, phases kept apart from rank to rank", GREEDY),
    PHASES("all-to-all-based-barriers", CW_NEEDS_COUNTS | CW_NEEDS_ALL,
           "phases that begin with the distance of the longest message left, barriers between",
           ALL_TO_ALL_BASED | BARRIERS),
    PHASES("all-to-all-based", CW_NEEDS_COUNTS, "the same, phases kept apart from rank to rank", ALL_TO_ALL_BASED),
};
const uint32_t cw_recipes_phases_count = sizeof(cw_recipes_phases) / sizeof(cw_recipes_phases[0]);
