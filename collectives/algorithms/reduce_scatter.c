/* Reduce-scatter, with the same or different counts. */
#include "collectives/algorithms/reduction.h"
#include "collectives/algorithms/registry.h"

static const struct cw_place send = {CW_BUFFER_SEND, 0, 0};
static const struct cw_place receive = {CW_BUFFER_RECEIVE, 0, 0};

static uint64_t vector_bytes(const struct cw_emit *emit)
{
    return cw_problem_block_offset(emit->problem, emit->problem->ranks);
}

static void own_copy(struct cw_emit *emit, struct cw_place vector)
{
    cw_emit_copy(emit, receive, cw_place_add(vector, cw_problem_block_offset(emit->problem, emit->rank)),
                 cw_problem_block_bytes(emit->problem, emit->rank));
}

static void build_binomial(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint64_t bytes = vector_bytes(emit);
    struct cw_vector_part part = {
        .team = cw_team_all(emit),
        .blocks = cw_blocks_problem(emit),
        .span_max = cw_span_all(emit->problem->ranks),
        .source = cw_emit_scratch(emit, bytes),
        .base = cw_emit_scratch(emit, bytes),
    };
    cw_reduce_binomial(emit, &part.team, send, part.source, bytes);
    cw_scatter_in_place(emit, &part);
    own_copy(emit, emit->rank == 0 ? part.source : part.base);
}

static void build_recursive_doubling(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint64_t bytes = vector_bytes(emit);
    struct cw_team team = cw_team_all(emit);
    struct cw_place accumulator = cw_emit_scratch(emit, bytes);
    cw_allreduce_doubling(emit, &team, send, accumulator, bytes);
    own_copy(emit, accumulator);
}

static void build_ring(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_team team = cw_team_all(emit);
    struct cw_blocks blocks = cw_blocks_problem(emit);
    struct cw_place travel = cw_emit_scratch(emit, vector_bytes(emit));
    cw_reduce_ring(emit, &team, &blocks, send, travel);
    own_copy(emit, travel);
}

/* The participants' windows: block i is that of participant i and, if it represents two ranks, of both. */
static struct cw_blocks windows_of(const struct cw_emit *emit, const struct cw_fold *fold)
{
    struct cw_blocks windows = cw_blocks_problem(emit);
    windows.pairs = fold->pairs;
    windows.parts = fold->power;
    return windows;
}

/* Distances power / 2, ..., 2, 1: each participant ends with its own window, but operands are combined out of order. */
static void halving_in_place(struct cw_emit *emit, const struct cw_fold *fold, const struct cw_blocks *windows,
                             struct cw_place accumulator, struct cw_place landing)
{
    uint32_t first = 0;
    for (uint32_t distance = fold->power / 2; distance > 0; distance /= 2) {
        uint32_t other = fold->me ^ distance;
        uint32_t peer = cw_team_rank(&fold->team, cw_fold_member(fold, other));
        uint32_t stays = first + ((fold->me & distance) != 0 ? distance : 0);
        uint32_t goes = first + ((fold->me & distance) != 0 ? 0 : distance);
        uint64_t out = cw_blocks_offset(windows, goes);
        uint64_t in = cw_blocks_offset(windows, stays);
        uint64_t in_bytes = cw_blocks_offset(windows, stays + distance) - in;
        cw_emit_send(emit, peer, cw_place_add(accumulator, out), cw_place_add(landing, out),
                     cw_blocks_offset(windows, goes + distance) - out);
        cw_emit_receive(emit, peer, cw_place_add(landing, in), in_bytes);
        cw_emit_reduce(emit, cw_place_add(accumulator, in), cw_place_add(landing, in), in_bytes, false);
        first = stays;
    }
}

/* Halves down to a power of two of ranks: their accumulators then hold their own operands and those of the ranks left
 * out. */
struct halved {
    uint64_t bytes;
    struct cw_fold fold;
    struct cw_blocks windows;
    struct cw_place accumulator;
    struct cw_place landing;
};

static struct halved halved_begin(struct cw_emit *emit)
{
    struct cw_team team = cw_team_all(emit);
    struct halved halved = {.bytes = vector_bytes(emit), .fold = cw_fold_make(&team, team.size)};
    halved.windows = windows_of(emit, &halved.fold);
    halved.accumulator = cw_emit_scratch(emit, halved.bytes);
    halved.landing = cw_emit_scratch(emit, halved.bytes);
    if (halved.fold.me < halved.fold.power) {
        cw_emit_copy(emit, halved.accumulator, send, halved.bytes);
    }
    cw_fold_in(emit, &halved.fold, send, halved.accumulator, halved.landing, halved.bytes);
    return halved;
}

static void build_recursive_halving(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    const struct cw_problem *problem = emit->problem;
    struct halved halved = halved_begin(emit);
    const struct cw_fold *fold = &halved.fold;
    if (fold->me < fold->power) {
        halving_in_place(emit, fold, &halved.windows, halved.accumulator, halved.landing);
        own_copy(emit, halved.accumulator);
    }
    if (fold->partner < fold->team.size) {
        uint32_t out = fold->me < fold->power ? fold->partner : emit->rank;
        cw_fold_out(emit, fold, cw_place_add(halved.accumulator, cw_problem_block_offset(problem, out)), receive,
                    cw_problem_block_bytes(problem, out));
    }
}

/* Vector halving with doubling distance keeps the order of operands, but leaves the windows with the wrong
 * participants: one more message each. */
static void build_rabenseifner(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    const struct cw_problem *problem = emit->problem;
    struct halved halved = halved_begin(emit);
    const struct cw_fold *fold = &halved.fold;
    uint32_t window = 0;
    if (fold->me < fold->power) {
        cw_reduce_halving(emit, fold, &halved.windows, halved.accumulator, halved.landing, &window);
        for (uint32_t i = cw_fold_first(fold, window); i < cw_fold_first(fold, window + 1); i++) {
            if (i != emit->rank) {
                cw_emit_send(emit, i, cw_place_add(halved.accumulator, cw_problem_block_offset(problem, i)), receive,
                             cw_problem_block_bytes(problem, i));
            }
        }
    }
    uint32_t participant = emit->rank < 2 * fold->pairs ? emit->rank / 2 : emit->rank - fold->pairs;
    uint32_t holder = cw_fold_member(fold, cw_halving_window(fold->power, participant));
    if (holder == emit->rank) {
        own_copy(emit, halved.accumulator);
    } else {
        cw_emit_receive(emit, holder, receive, cw_problem_block_bytes(problem, emit->rank));
    }
}

/* Each rank gets the operands of its block from their owners, `width` at a time, and combines them in rank order. */
static void build_exchange(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    const struct cw_problem *problem = emit->problem;
    uint32_t ranks = problem->ranks;
    uint32_t rank = emit->rank;
    uint32_t width = recipe->variant != 0 ? 1 : emit->parameters.concurrency;
    uint64_t own_bytes = cw_problem_block_bytes(problem, rank);
    struct cw_place operand = cw_place_add(send, cw_problem_block_offset(problem, rank));
    emit->schedule.promise.fan_in = width;
    emit->schedule.promise.fan_out = width;
    cw_emit_scratch(emit, own_bytes * ranks);
    for (uint32_t i = 1; i < ranks; i++) {
        uint32_t to = (rank + i) % ranks;
        uint32_t from = (rank + ranks - i) % ranks;
        if ((i - 1) % width == 0) {
            cw_emit_fence(emit);
            cw_emit_phase(emit, (i - 1) / width);
        }
        /* operand number r of a block lies at r blocks; that of rank 0 goes where the result is wanted */
        uint64_t to_bytes = cw_problem_block_bytes(problem, to);
        cw_emit_send(emit, to, cw_place_add(send, cw_problem_block_offset(problem, to)),
                     rank == 0 ? receive : cw_place(CW_BUFFER_SCRATCH, to_bytes * rank), to_bytes);
        cw_emit_receive(emit, from, from == 0 ? receive : cw_place(CW_BUFFER_SCRATCH, own_bytes * from), own_bytes);
    }
    if (rank == 0) {
        cw_emit_copy(emit, receive, operand, own_bytes);
    }
    for (uint32_t from = 1; from < ranks; from++) {
        cw_emit_reduce(emit, receive, from == rank ? operand : cw_place(CW_BUFFER_SCRATCH, own_bytes * from), own_bytes,
                       false);
    }
}

#define REDUCE_SCATTER(name, takes, needs, summary, source)    \
    {                                                          \
        CW_REDUCE_SCATTER, name, takes, needs, summary, source \
    }
#define THAKUR "Thakur, Rabenseifner and Gropp 2005"

const struct cw_recipe cw_recipes_reduce_scatter[] = {
    {REDUCE_SCATTER("binomial", 0, 0, "reduce up a binomial tree, then scatter down it", THAKUR), build_binomial, 0,
     NULL},
    {REDUCE_SCATTER("recursive-doubling", 0, 0, "whole vectors in pairwise exchange; each rank keeps its block",
                    THAKUR),
     build_recursive_doubling, 0, NULL},
    {REDUCE_SCATTER("recursive-halving", 0, CW_NEEDS_COMMUTATIVE, "half of the rest to the rank P/2, P/4, ..., 1 away",
                    THAKUR),
     build_recursive_halving, 0, NULL},
    {REDUCE_SCATTER("rabenseifner", 0, 0, "vector halving with doubling distance, then blocks to their owners",
                    "Rabenseifner 2004"),
     build_rabenseifner, 0, NULL},
    {REDUCE_SCATTER("ring", 0, CW_NEEDS_COMMUTATIVE, "partial results pass all ranks on their way to their owner",
                    "Patarasuk and Yuan 2009"),
     build_ring, 0, NULL},
    {REDUCE_SCATTER("pairwise", 0, 0, "P - 1 steps; the owner combines", THAKUR), build_exchange, 1, NULL},
    {REDUCE_SCATTER("concurrent", CW_TAKES_CONCURRENCY, 0, "steps of C exchanges at once; the owner combines",
                    "Tipparaju and Nieplocha 2005, section 5"),
     build_exchange, 0, NULL},
};
const uint32_t cw_recipes_reduce_scatter_count =
    sizeof(cw_recipes_reduce_scatter) / sizeof(cw_recipes_reduce_scatter[0]);
