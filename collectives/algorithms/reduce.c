/* Reduce and all-reduce within one team. */
#include "collectives/algorithms/reduction.h"
#include "collectives/algorithms/registry.h"

/* How all vectors reach all ranks. */
enum {
    DIRECT,
    BRUCK,
};

static const struct cw_place send = {CW_BUFFER_SEND, 0, 0};
static const struct cw_place receive = {CW_BUFFER_RECEIVE, 0, 0};

static uint64_t vector_bytes(const struct cw_emit *emit)
{
    return emit->problem->count * emit->problem->element_bytes;
}

/* ---- Reduce ---- */

/* If order matters the tree is that of rank 0, which forwards the result to the root. */
static void build_reduce_binomial(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint32_t root = emit->problem->root;
    uint64_t bytes = vector_bytes(emit);
    struct cw_team team = cw_team_all(emit);
    if (!emit->problem->ordered || root == 0) {
        struct cw_team turned = cw_team_turned(&team, root);
        cw_reduce_binomial(emit, &turned, send, receive, bytes);
        return;
    }
    struct cw_place result = cw_emit_scratch(emit, bytes);
    cw_reduce_binomial(emit, &team, send, result, bytes);
    if (emit->rank == 0) {
        cw_emit_send(emit, root, result, receive, bytes);
    } else if (emit->rank == root) {
        cw_emit_receive(emit, 0, receive, bytes);
    }
}

static void build_reduce_rabenseifner(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_team team = cw_team_all(emit);
    cw_reduce_rabenseifner(emit, &team, emit->problem->root, send, receive, vector_bytes(emit));
}

static void build_reduce_ring(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint32_t ranks = emit->problem->ranks;
    uint32_t rank = emit->rank;
    uint32_t root = emit->problem->root;
    uint64_t bytes = vector_bytes(emit);
    struct cw_team team = cw_team_all(emit);
    struct cw_blocks blocks = cw_blocks_even(emit, bytes, ranks);
    struct cw_place travel = cw_emit_scratch(emit, bytes);
    cw_reduce_ring(emit, &team, &blocks, send, travel);
    uint64_t own = cw_blocks_offset(&blocks, rank);
    if (rank != root) {
        cw_emit_send(emit, root, cw_place_add(travel, own), cw_place_add(receive, own), cw_blocks_bytes(&blocks, rank));
        return;
    }
    cw_emit_copy(emit, cw_place_add(receive, own), cw_place_add(travel, own), cw_blocks_bytes(&blocks, rank));
    for (uint32_t i = 1; i < ranks; i++) {
        uint32_t from = (root + i) % ranks;
        cw_emit_receive(emit, from, cw_place_add(receive, cw_blocks_offset(&blocks, from)),
                        cw_blocks_bytes(&blocks, from));
    }
}

/* ---- All-reduce ---- */

static void build_allreduce_binomial(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_bcast_part part = {
        .team = cw_team_all(emit),
        .root = 0,
        .from = receive,
        .to = receive,
        .bytes = vector_bytes(emit),
    };
    cw_reduce_binomial(emit, &part.team, send, receive, part.bytes);
    cw_bcast_tree(emit, &part, CW_TREE_BINOMIAL, 0, part.bytes);
}

static void build_allreduce_doubling(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_team team = cw_team_all(emit);
    cw_allreduce_doubling(emit, &team, send, receive, vector_bytes(emit));
}

static void build_allreduce_ring(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_vector_part part = {
        .team = cw_team_all(emit),
        .blocks = cw_blocks_even(emit, vector_bytes(emit), emit->problem->ranks),
        .root = 0,
        .span_max = 1,
        .complete = emit->problem->ranks,
        .base = receive,
    };
    cw_reduce_ring(emit, &part.team, &part.blocks, send, receive);
    cw_allgather_ring(emit, &part);
}

static void build_allreduce_rabenseifner(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_team team = cw_team_all(emit);
    cw_allreduce_rabenseifner(emit, &team, send, receive, vector_bytes(emit));
}

/* Vectors of `count` ranks from `first` on, around, between this rank and a peer; that of rank r lies at r times its
 * length. */
static void vectors_exchange(struct cw_emit *emit, uint32_t peer, uint32_t first, uint32_t count, bool sends)
{
    uint32_t ranks = emit->problem->ranks;
    uint64_t bytes = vector_bytes(emit);
    while (count > 0) {
        uint32_t run = count < ranks - first ? count : ranks - first;
        struct cw_place place = cw_place(CW_BUFFER_SCRATCH, first * bytes);
        if (sends) {
            cw_emit_send(emit, peer, place, place, run * bytes);
        } else {
            cw_emit_receive(emit, peer, place, run * bytes);
        }
        count -= run;
        first = (first + run) % ranks;
    }
}

/* Every rank gets every vector, and combines them in rank order: the fewest steps of all, for short vectors. */
static void build_allreduce_vectors(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    uint32_t ranks = emit->problem->ranks;
    uint32_t rank = emit->rank;
    uint64_t bytes = vector_bytes(emit);
    cw_emit_scratch(emit, ranks * bytes);
    cw_emit_copy(emit, cw_place(CW_BUFFER_SCRATCH, rank * bytes), send, bytes);
    if (recipe->variant == DIRECT) {
        for (uint32_t i = 1; i < ranks; i++) {
            vectors_exchange(emit, (rank + i) % ranks, rank, 1, true);
            vectors_exchange(emit, (rank + ranks - i) % ranks, (rank + ranks - i) % ranks, 1, false);
        }
    } else {
        for (uint32_t distance = 1; distance < ranks; distance *= 2) {
            uint32_t count = distance < ranks - distance ? distance : ranks - distance;
            uint32_t from = (rank + distance) % ranks;
            vectors_exchange(emit, (rank + ranks - distance) % ranks, rank, count, true);
            vectors_exchange(emit, from, from, count, false);
        }
    }
    cw_emit_copy(emit, receive, cw_place(CW_BUFFER_SCRATCH, 0), bytes);
    for (uint32_t i = 1; i < ranks; i++) {
        cw_emit_reduce(emit, receive, cw_place(CW_BUFFER_SCRATCH, i * bytes), bytes, false);
    }
}

#define REDUCE(name, needs, summary, source)       \
    {                                              \
        CW_REDUCE, name, 0, needs, summary, source \
    }
#define ALLREDUCE(name, needs, summary, source)       \
    {                                                 \
        CW_ALLREDUCE, name, 0, needs, summary, source \
    }
#define RABENSEIFNER "Rabenseifner 2004"
#define THAKUR       "Thakur, Rabenseifner and Gropp 2005"
#define PATARASUK    "Patarasuk and Yuan 2009"

const struct cw_recipe cw_recipes_reduce[] = {
    {REDUCE("binomial", 0, "partial results climb a binomial tree", THAKUR), build_reduce_binomial, 0, NULL},
    {REDUCE("ring", CW_NEEDS_COMMUTATIVE, "reduce-scatter around a ring, then each rank sends its block to the root",
            PATARASUK),
     build_reduce_ring, 0, NULL},
    {REDUCE("rabenseifner", 0, "vector halving with doubling distance, then gather up a binomial tree", RABENSEIFNER),
     build_reduce_rabenseifner, 0, NULL},
    {ALLREDUCE("binomial", 0, "reduce up a binomial tree and broadcast down the same tree", THAKUR),
     build_allreduce_binomial, 0, NULL},
    {ALLREDUCE("recursive-doubling", 0, "whole vectors in pairwise exchange with distances 1, 2, 4, ...", THAKUR),
     build_allreduce_doubling, 0, NULL},
    {ALLREDUCE("ring", CW_NEEDS_COMMUTATIVE, "reduce-scatter, then all-gather around a ring", PATARASUK),
     build_allreduce_ring, 0, NULL},
    {ALLREDUCE("rabenseifner", 0, "vector halving with doubling distance, then the way back", RABENSEIFNER),
     build_allreduce_rabenseifner, 0, NULL},
    {ALLREDUCE("direct", 0, "each rank sends its vector to all, and combines all", "MPI 5.0, section 6.9"),
     build_allreduce_vectors, DIRECT, NULL},
    {ALLREDUCE("bruck", 0, "all vectors to all ranks in log2(P) steps; each rank combines all",
               "Bruck, Ho, Kipnis, Upfal and Weathersby 1997"),
     build_allreduce_vectors, BRUCK, NULL},
};
const uint32_t cw_recipes_reduce_count = sizeof(cw_recipes_reduce) / sizeof(cw_recipes_reduce[0]);
