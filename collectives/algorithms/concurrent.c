/* Concurrent exchange: several notified puts at the same time (Tipparaju and Nieplocha 2005).
 *
 * The paper's groups have equal sizes that are powers of two, and pairs are found by flipping a bit. Here group g has
 * any size, and a rank spreads the blocks of its own group by dissemination (Bruck): in step k to the ranks whose place
 * is 2^k before in the group. With equal powers of two the number of steps, the messages and their sizes are the
 * paper's. */
#include "collectives/algorithms/registry.h"
#include "dataplane/status.h"

/* P ranks in C groups of neighbours; the first P mod C groups have one more. */
struct groups {
    uint32_t ranks;
    uint32_t count;
};

static uint32_t group_first(const struct groups *groups, uint32_t g)
{
    uint32_t whole = groups->ranks / groups->count;
    uint32_t rest = groups->ranks % groups->count;
    return whole * g + (g < rest ? g : rest);
}

static uint32_t group_size(const struct groups *groups, uint32_t g)
{
    return group_first(groups, g + 1) - group_first(groups, g);
}

static uint32_t group_of(const struct groups *groups, uint32_t rank)
{
    uint32_t whole = groups->ranks / groups->count;
    uint32_t rest = groups->ranks % groups->count;
    return rank < (whole + 1) * rest ? rank / (whole + 1) : rest + (rank - (whole + 1) * rest) / whole;
}

struct exchange {
    struct cw_emit *emit;
    struct groups groups;
};

/* Blocks of places [place, place + count) of group g, around, between this rank and a peer. */
static void group_blocks(const struct exchange *exchange, uint32_t peer, uint32_t g, uint32_t place, uint32_t count,
                         bool send)
{
    struct cw_emit *emit = exchange->emit;
    uint32_t first = group_first(&exchange->groups, g);
    uint32_t size = group_size(&exchange->groups, g);
    while (count > 0) {
        uint32_t run = count < size - place ? count : size - place;
        uint64_t begin = cw_problem_block_offset(emit->problem, first + place);
        uint64_t bytes = cw_problem_block_offset(emit->problem, first + place + run) - begin;
        struct cw_place at = cw_place(CW_BUFFER_RECEIVE, begin);
        if (send) {
            cw_emit_send(emit, peer, at, at, bytes);
        } else {
            cw_emit_receive(emit, peer, at, bytes);
        }
        count -= run;
        place = (place + run) % size;
    }
}

/* In a step of `distance` a rank whose place, modulo the size of source group g, is t receives the blocks from place t
 * + distance on from the rank at that place of g. Distance 0 is the first step, which brings the block of place t
 * itself to the other groups. */
static void step_send(const struct exchange *exchange, uint32_t distance, uint32_t count)
{
    uint32_t rank = exchange->emit->rank;
    uint32_t own = group_of(&exchange->groups, rank);
    uint32_t size = group_size(&exchange->groups, own);
    uint32_t place = rank - group_first(&exchange->groups, own);
    uint32_t target = (place + size - distance % size) % size;
    for (uint32_t g = 0; g < exchange->groups.count; g++) {
        uint32_t other = (own + g) % exchange->groups.count;
        if (distance == 0 && other == own) {
            continue;
        }
        uint32_t first = group_first(&exchange->groups, other);
        for (uint32_t i = target; i < group_size(&exchange->groups, other); i += size) {
            group_blocks(exchange, first + i, own, place, count, true);
        }
    }
}

static void step_receive(const struct exchange *exchange, uint32_t distance)
{
    uint32_t rank = exchange->emit->rank;
    uint32_t own = group_of(&exchange->groups, rank);
    uint32_t place = rank - group_first(&exchange->groups, own);
    for (uint32_t g = 0; g < exchange->groups.count; g++) {
        uint32_t other = (own + exchange->groups.count - g) % exchange->groups.count;
        uint32_t size = group_size(&exchange->groups, other);
        if ((distance == 0 && other == own) || distance >= size) {
            continue;
        }
        uint32_t source = (place % size + distance) % size;
        uint32_t count = distance == 0 ? 1 : distance < size - distance ? distance : size - distance;
        group_blocks(exchange, group_first(&exchange->groups, other) + source, other, source, count, false);
    }
}

static void build_concurrent(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    const struct cw_problem *problem = emit->problem;
    uint32_t concurrency = emit->parameters.concurrency;
    struct exchange exchange = {
        .emit = emit,
        .groups = {problem->ranks, concurrency < problem->ranks ? concurrency : problem->ranks},
    };
    uint32_t own_size = group_size(&exchange.groups, group_of(&exchange.groups, emit->rank));
    cw_emit_copy(emit, cw_place(CW_BUFFER_RECEIVE, cw_problem_block_offset(problem, emit->rank)),
                 cw_place(CW_BUFFER_SEND, 0), cw_problem_block_bytes(problem, emit->rank));
    step_send(&exchange, 0, 1);
    step_receive(&exchange, 0);
    uint32_t phase = 0;
    for (uint32_t distance = 1; distance < group_size(&exchange.groups, 0); distance *= 2) {
        cw_emit_phase(emit, ++phase);
        if (distance < own_size) {
            step_send(&exchange, distance, distance < own_size - distance ? distance : own_size - distance);
        }
        step_receive(&exchange, distance);
    }
}

/* Half `half` of block i: the first has the odd element. */
static uint64_t half_bytes(const struct cw_problem *problem, uint32_t i, uint32_t half)
{
    uint64_t elements = cw_problem_block_bytes(problem, i) / problem->element_bytes;
    return (half == 0 ? elements - elements / 2 : elements / 2) * problem->element_bytes;
}

static struct cw_place half_place(const struct cw_problem *problem, uint32_t i, uint32_t half)
{
    uint64_t begin = cw_problem_block_offset(problem, i);
    return cw_place(CW_BUFFER_RECEIVE, begin + (half == 0 ? 0 : half_bytes(problem, i, 0)));
}

/* One half of every block spreads in one direction: in a step of 2^k each rank sends the halves it has to the rank 2^k
 * before (the pair; half 0) or after (the co-pair; half 1). They travel packed: entry j of the packed list is block
 * rank + j, or rank - j. */
struct direction {
    uint32_t half;
    struct cw_place packed;
};

static uint32_t packed_block(const struct cw_problem *problem, uint32_t rank, uint32_t half, uint32_t j)
{
    return half == 0 ? (rank + j) % problem->ranks : (rank + problem->ranks - j) % problem->ranks;
}

/* Bytes of the entries before entry j in the packed list of `rank`. */
static uint64_t packed_offset(const struct cw_problem *problem, uint32_t rank, uint32_t half, uint32_t j)
{
    uint64_t sum = 0;
    if (problem->counts == NULL) {
        return j * half_bytes(problem, 0, half);
    }
    for (uint32_t i = 0; i < j; i++) {
        sum += half_bytes(problem, packed_block(problem, rank, half, i), half);
    }
    return sum;
}

static void split_step(struct cw_emit *emit, const struct direction *direction, uint32_t distance, uint32_t count)
{
    const struct cw_problem *problem = emit->problem;
    uint32_t half = direction->half;
    uint32_t to = packed_block(problem, emit->rank, 1 - half, distance);
    uint32_t from = packed_block(problem, emit->rank, half, distance);
    uint64_t here = packed_offset(problem, emit->rank, half, distance);
    cw_emit_send(emit, to, direction->packed,
                 cw_place_add(direction->packed, packed_offset(problem, to, half, distance)),
                 packed_offset(problem, emit->rank, half, count));
    cw_emit_receive(emit, from, cw_place_add(direction->packed, here),
                    packed_offset(problem, emit->rank, half, distance + count) - here);
}

static void build_concurrent_split(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    const struct cw_problem *problem = emit->problem;
    uint32_t ranks = problem->ranks;
    struct direction directions[2];
    /* the same at all ranks: half 1 begins where the largest half 0 ends, which all know */
    uint64_t longest = 0;
    for (uint32_t half = 0; half < 2; half++) {
        uint64_t bytes = packed_offset(problem, 0, half, ranks);
        longest = bytes > longest ? bytes : longest;
    }
    for (uint32_t half = 0; half < 2; half++) {
        directions[half] = (struct direction){half, cw_emit_scratch(emit, longest)};
        uint64_t own = half_bytes(problem, emit->rank, half);
        cw_emit_copy(emit, directions[half].packed,
                     cw_place(CW_BUFFER_SEND, half == 0 ? 0 : half_bytes(problem, emit->rank, 0)), own);
    }
    uint32_t phase = 0;
    for (uint32_t distance = 1; distance < ranks; distance *= 2) {
        uint32_t count = distance < ranks - distance ? distance : ranks - distance;
        cw_emit_phase(emit, phase++);
        split_step(emit, &directions[0], distance, count);
        split_step(emit, &directions[1], distance, count);
    }
    for (uint32_t half = 0; half < 2; half++) {
        struct cw_place from = directions[half].packed;
        for (uint32_t j = 0; j < ranks; j++) {
            uint32_t block = packed_block(problem, emit->rank, half, j);
            uint64_t bytes = half_bytes(problem, block, half);
            cw_emit_copy(emit, half_place(problem, block, half), from, bytes);
            from = cw_place_add(from, bytes);
        }
    }
}

#define CONCURRENT(collective, name, takes, summary, source) \
    {                                                        \
        collective, name, takes, 0, summary, source          \
    }
#define PAPER "Tipparaju and Nieplocha 2005, section 3"

const struct cw_recipe cw_recipes_concurrent[] = {
    {CONCURRENT(CW_ALLGATHER, "concurrent", CW_TAKES_CONCURRENCY,
                "C groups; all there is of the own group goes to a pair in every group at once", PAPER),
     build_concurrent, 0, NULL},
    {CONCURRENT(CW_ALLGATHER, "concurrent-split", 0,
                "half of each block to the pair and half to the co-pair, in opposite directions at once", PAPER),
     build_concurrent_split, 0, NULL},
};
const uint32_t cw_recipes_concurrent_count = sizeof(cw_recipes_concurrent) / sizeof(cw_recipes_concurrent[0]);
