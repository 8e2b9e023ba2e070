/* All-to-all that takes what comes: direct, rotated, pairwise and concurrent exchange; Bruck. Those with scheduled
 * phases are in phases.c. */
#include "collectives/algorithms/pairs.h"
#include "collectives/algorithms/registry.h"
#include "dataplane/status.h"

enum {
    DIRECT,
    ROTATED,
    PAIRWISE,
    CONCURRENT,
};

static void block_send(struct cw_emit *emit, uint32_t to)
{
    cw_pair_send(emit, to, cw_problem_pair_bytes(emit->problem, emit->rank, to));
}

static void block_receive(struct cw_emit *emit, uint32_t from)
{
    cw_pair_receive(emit, from, cw_problem_pair_bytes(emit->problem, from, emit->rank));
}

/* All at once. Direct: every rank begins with rank 0; rotated: each with its neighbour. */
static void build_direct(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    uint32_t ranks = emit->problem->ranks;
    uint32_t rank = emit->rank;
    cw_pair_copy_own(emit);
    for (uint32_t i = 0; i < ranks; i++) {
        uint32_t to = recipe->variant == ROTATED ? (rank + i) % ranks : i;
        uint32_t from = recipe->variant == ROTATED ? (rank + ranks - i) % ranks : i;
        if (to != rank) {
            block_send(emit, to);
        }
        if (from != rank) {
            block_receive(emit, from);
        }
    }
}

/* `width` exchanges at a time: with the ranks at the next `width` distances; for a power of two and one at a time with
 * one partner in both directions. */
static void build_steps(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    uint32_t ranks = emit->problem->ranks;
    uint32_t rank = emit->rank;
    uint32_t width = recipe->variant == PAIRWISE ? 1 : emit->parameters.concurrency;
    bool partners = width == 1 && (ranks & (ranks - 1)) == 0;
    emit->schedule.promise.fan_in = width;
    emit->schedule.promise.fan_out = width;
    cw_pair_copy_own(emit);
    for (uint32_t i = 1; i < ranks; i++) {
        if ((i - 1) % width == 0) {
            cw_emit_fence(emit);
            cw_emit_phase(emit, (i - 1) / width);
        }
        block_send(emit, partners ? rank ^ i : (rank + i) % ranks);
        block_receive(emit, partners ? rank ^ i : (rank + ranks - i) % ranks);
    }
}

/* Blocks with bit k of their index set: runs of 2^k blocks, 2^(k+1) apart, the last one perhaps shorter. */
struct bit_runs {
    uint32_t first;
    uint32_t count;
    uint64_t run_bytes;
    uint64_t last_bytes;
    uint64_t stride;
    uint64_t bytes;
};

static struct bit_runs bit_runs(uint32_t ranks, uint32_t bit, uint64_t block_bytes)
{
    struct bit_runs runs = {.first = bit, .run_bytes = bit * block_bytes, .stride = 2ull * bit * block_bytes};
    for (uint64_t begin = bit; begin < ranks; begin += 2ull * bit) {
        uint64_t blocks = begin + bit <= ranks ? bit : ranks - begin;
        runs.last_bytes = blocks * block_bytes;
        runs.bytes += runs.last_bytes;
        runs.count++;
    }
    if (runs.count == 1) {
        runs.run_bytes = runs.last_bytes;
    }
    return runs;
}

/* log2(P) messages of half the blocks each. Entry j of the work space is the block for rank + j; in step k those with
 * bit k travel on by 2^k. At the end entry j is the block from rank - j. */
static void build_bruck(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    const struct cw_problem *problem = emit->problem;
    uint32_t ranks = problem->ranks;
    uint32_t rank = emit->rank;
    uint64_t block = cw_problem_pair_bytes(problem, 0, 0);
    struct cw_place work = cw_emit_scratch(emit, ranks * block);
    struct cw_place out = cw_emit_scratch(emit, (ranks / 2 + 1) * block);
    struct cw_place in = cw_emit_scratch(emit, (ranks / 2 + 1) * block);
    cw_emit_copy(emit, work, cw_place(CW_BUFFER_SEND, rank * block), (ranks - rank) * block);
    cw_emit_copy(emit, cw_place_add(work, (ranks - rank) * block), cw_place(CW_BUFFER_SEND, 0), rank * block);
    uint32_t phase = 0;
    for (uint32_t bit = 1; bit < ranks; bit *= 2) {
        struct bit_runs runs = bit_runs(ranks, bit, block);
        struct cw_place first = cw_place_add(work, runs.first * block);
        cw_emit_phase(emit, phase++);
        cw_emit_copy_blocks(emit, out, runs.run_bytes, first, runs.stride, runs.count, runs.run_bytes, runs.last_bytes);
        cw_emit_send(emit, (rank + bit) % ranks, out, in, runs.bytes);
        cw_emit_receive(emit, (rank + ranks - bit) % ranks, in, runs.bytes);
        cw_emit_copy_blocks(emit, first, runs.stride, in, runs.run_bytes, runs.count, runs.run_bytes, runs.last_bytes);
    }
    for (uint32_t j = 0; j < ranks; j++) {
        cw_emit_copy(emit, cw_place(CW_BUFFER_RECEIVE, (rank + ranks - j) % ranks * block),
                     cw_place_add(work, j * block), block);
    }
}

#define ALLTOALL(name, takes, needs, summary, source)    \
    {                                                    \
        CW_ALLTOALL, name, takes, needs, summary, source \
    }
#define PAPER "Barchet-Estefanel and Mounie 2004, section 5"

const struct cw_recipe cw_recipes_alltoall[] = {
    {ALLTOALL("direct", 0, 0, "all messages at once, every rank beginning with rank 0", PAPER), build_direct, DIRECT,
     NULL},
    {ALLTOALL("rotated", 0, 0, "all messages at once, each rank beginning with its neighbour", PAPER), build_direct,
     ROTATED, NULL},
    {ALLTOALL("pairwise", 0, 0, "P - 1 steps with one exchange each; a power of two in pairs",
              "Thakur, Rabenseifner and Gropp 2005"),
     build_steps, PAIRWISE, NULL},
    {ALLTOALL("concurrent", CW_TAKES_CONCURRENCY, 0, "steps of C exchanges at once",
              "Tipparaju and Nieplocha 2005, section 5"),
     build_steps, CONCURRENT, NULL},
    {ALLTOALL("bruck", 0, CW_NEEDS_EQUAL, "log2(P) messages of half the blocks each",
              "Bruck, Ho, Kipnis, Upfal and Weathersby 1997"),
     build_bruck, 0, NULL},
};
const uint32_t cw_recipes_alltoall_count = sizeof(cw_recipes_alltoall) / sizeof(cw_recipes_alltoall[0]);
