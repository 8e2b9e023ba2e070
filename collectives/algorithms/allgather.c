/* All-gather: ring, recursive doubling, Bruck; gather + broadcast; a series of multicasts and the phases of Karwande,
 * Yuan and Lowenthal 2003. */
#include <stdlib.h>

#include "collectives/algorithms/registry.h"
#include "dataplane/status.h"

static struct cw_place block_place(const struct cw_emit *emit, uint32_t i)
{
    return cw_place(CW_BUFFER_RECEIVE, cw_problem_block_offset(emit->problem, i));
}

static void own_copy(struct cw_emit *emit)
{
    cw_emit_copy(emit, block_place(emit, emit->rank), cw_place(CW_BUFFER_SEND, 0),
                 cw_problem_block_bytes(emit->problem, emit->rank));
}

static struct cw_vector_part whole(const struct cw_emit *emit)
{
    return (struct cw_vector_part){
        .team = cw_team_all(emit),
        .blocks = cw_blocks_problem(emit),
        .root = 0,
        .span_max = 1,
        .complete = emit->problem->ranks,
        .base = cw_place(CW_BUFFER_RECEIVE, 0),
    };
}

static void build_ring(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_vector_part part = whole(emit);
    own_copy(emit);
    cw_allgather_ring(emit, &part);
}

static void build_recursive_doubling(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_vector_part part = whole(emit);
    own_copy(emit);
    cw_allgather_recursive_doubling(emit, &part);
}

/* Blocks first, first + 1, ... (count of them, around) between this rank and a peer: one message, or two where the
 * range wraps. */
static void blocks_exchange(struct cw_emit *emit, uint32_t peer, uint32_t first, uint32_t count, bool send)
{
    uint32_t ranks = emit->problem->ranks;
    while (count > 0) {
        uint32_t run = count < ranks - first ? count : ranks - first;
        struct cw_place place = block_place(emit, first);
        uint64_t bytes = cw_problem_block_offset(emit->problem, first + run) - place.offset;
        if (send) {
            cw_emit_send(emit, peer, place, place, bytes);
        } else {
            cw_emit_receive(emit, peer, place, bytes);
        }
        count -= run;
        first = (first + run) % ranks;
    }
}

/* Blocks are received where they belong, so that there is nothing to rotate at the end. */
static void build_bruck(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint32_t ranks = emit->problem->ranks;
    uint32_t rank = emit->rank;
    own_copy(emit);
    for (uint32_t distance = 1; distance < ranks; distance *= 2) {
        uint32_t count = distance < ranks - distance ? distance : ranks - distance;
        uint32_t from = (rank + distance) % ranks;
        blocks_exchange(emit, (rank + ranks - distance) % ranks, rank, count, true);
        blocks_exchange(emit, from, from, count, false);
    }
}

static void build_gather_bcast(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint32_t ranks = emit->problem->ranks;
    uint32_t rank = emit->rank;
    uint32_t past = rank + cw_tree_span(CW_TREE_BINOMIAL, ranks, rank);
    own_copy(emit);
    /* rank 0 is the root, so that subtrees lie in one piece where they belong */
    uint32_t child;
    for (uint32_t i = 0; (child = cw_tree_child(CW_TREE_BINOMIAL, 0, ranks, rank, i)) < ranks; i++) {
        blocks_exchange(emit, child, child, cw_tree_span(CW_TREE_BINOMIAL, ranks, child), false);
    }
    if (rank > 0) {
        blocks_exchange(emit, cw_tree_parent(CW_TREE_BINOMIAL, 0, rank), rank, past - rank, true);
        /* the rest comes back */
        blocks_exchange(emit, cw_tree_parent(CW_TREE_BINOMIAL, 0, rank), 0, rank, false);
        blocks_exchange(emit, cw_tree_parent(CW_TREE_BINOMIAL, 0, rank), past % ranks, ranks - past, false);
    }
    for (uint32_t i = 0; (child = cw_tree_child(CW_TREE_BINOMIAL, 0, ranks, rank, i)) < ranks; i++) {
        uint32_t child_past = child + cw_tree_span(CW_TREE_BINOMIAL, ranks, child);
        blocks_exchange(emit, child, 0, child, true);
        blocks_exchange(emit, child, child_past % ranks, ranks - child_past, true);
    }
}

/* One rank after the other, so that multicasts do not meet at the switch. */
static void build_multicasts(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint32_t ranks = emit->problem->ranks;
    emit->schedule.promise.fan_in = 1;
    emit->schedule.promise.fan_out = 1;
    emit->schedule.promise.phases_apart = 1;
    own_copy(emit);
    cw_emit_fence(emit);
    for (uint32_t root = 0; root < ranks; root++) {
        struct cw_bcast_part part = {
            .team = cw_team_all(emit),
            .root = root,
            .from = cw_place(CW_BUFFER_SEND, 0),
            .to = block_place(emit, root),
            .bytes = cw_problem_block_bytes(emit->problem, root),
        };
        cw_emit_phase(emit, root);
        cw_bcast_multicast(emit, &part, 0);
        if (root + 1 < ranks) {
            cw_emit_barrier(emit);
        }
    }
}

/* Phase i: rank j sends its block to j + i + 1. */
static void build_phased(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    uint32_t ranks = emit->problem->ranks;
    uint32_t rank = emit->rank;
    bool barriers = recipe->variant != 0;
    emit->schedule.promise.fan_in = 1;
    emit->schedule.promise.fan_out = 1;
    emit->schedule.promise.phases_apart = 1;
    if (!barriers) {
        emit->parameters.eager_max_bytes = 0; /* the receiver's clear-to-send keeps the phases apart */
    }
    own_copy(emit);
    for (uint32_t i = 1; i < ranks; i++) {
        uint32_t to = (rank + i) % ranks;
        uint32_t from = (rank + ranks - i) % ranks;
        cw_emit_phase(emit, i - 1);
        cw_emit_send(emit, to, cw_place(CW_BUFFER_SEND, 0), block_place(emit, rank),
                     cw_problem_block_bytes(emit->problem, rank));
        cw_emit_receive(emit, from, block_place(emit, from), cw_problem_block_bytes(emit->problem, from));
        if (i + 1 < ranks && barriers) {
            cw_emit_barrier(emit);
        } else if (i + 1 < ranks) {
            cw_emit_fence(emit);
        }
    }
}

#define ALLGATHER(name, takes, needs, summary, source)    \
    {                                                     \
        CW_ALLGATHER, name, takes, needs, summary, source \
    }
#define CC_MPI "Karwande, Yuan and Lowenthal 2003, section 4.2"
#define THAKUR "Thakur, Rabenseifner and Gropp 2005"

const struct cw_recipe cw_recipes_allgather[] = {
    {ALLGATHER("ring", 0, 0, "each rank passes the block it got last to the next", THAKUR), build_ring, 0, NULL},
    {ALLGATHER("recursive-doubling", 0, 0, "pairwise exchange with distances 1, 2, 4, ..., each time all there is",
               THAKUR),
     build_recursive_doubling, 0, NULL},
    {ALLGATHER("bruck", 0, 0, "log2(P) steps for any P: all there is to the rank 1, 2, 4, ... before",
               "Bruck, Ho, Kipnis, Upfal and Weathersby 1997"),
     build_bruck, 0, NULL},
    {ALLGATHER("gather-bcast", 0, 0, "gather up a binomial tree and broadcast down the same tree", THAKUR),
     build_gather_bcast, 0, NULL},
    {ALLGATHER("multicasts", 0, CW_NEEDS_MULTICAST, "each rank in turn multicasts its block, barriers between", CC_MPI),
     build_multicasts, 0, NULL},
    {ALLGATHER("phased-barriers", 0, 0, "P - 1 phases without contention, barriers between", CC_MPI), build_phased, 1,
     NULL},
    {ALLGATHER("phased", 0, 0, "the same, neighbouring phases kept apart from rank to rank", CC_MPI), build_phased, 0,
     NULL},
};
const uint32_t cw_recipes_allgather_count = sizeof(cw_recipes_allgather) / sizeof(cw_recipes_allgather[0]);
