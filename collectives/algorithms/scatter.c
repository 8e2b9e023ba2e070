/* Scatter: flat, chain, pipelined chain, binomial (Barchet-Estefanel and Mounie 2004, Table 2), and by multicast of the
 * aggregate (Karwande, Yuan and Lowenthal 2003, section 4.1). */
#include <stdlib.h>

#include "collectives/algorithms/registry.h"
#include "collectives/algorithms/rooted.h"
#include "dataplane/status.h"

/* Where node `node` takes the blocks [node, past): a leaf at its own place, others in scratch. */
static struct cw_place landing(const struct cw_rooted *rooted, uint32_t node, uint32_t past)
{
    return past == node + 1 ? cw_place(rooted->own.buffer, 0) : cw_place(CW_BUFFER_SCRATCH, 0);
}

/* The root's part of a subtree leaves in as many messages as it has pieces there. */
static void root_send(const struct cw_rooted *rooted, uint32_t child, uint32_t past)
{
    uint32_t ends[2];
    uint32_t pieces = cw_rooted_pieces(rooted, child, past, ends);
    uint32_t first = child;
    for (uint32_t i = 0; i < pieces; i++) {
        struct cw_place to = cw_place_add(landing(rooted, child, past), cw_rooted_bytes(rooted, child, first));
        cw_emit_send(rooted->emit, cw_rooted_rank(rooted, child), cw_rooted_root_place(rooted, first), to,
                     cw_rooted_bytes(rooted, first, ends[i]));
        first = ends[i];
    }
}

static void subtree_receive(const struct cw_rooted *rooted, uint32_t parent, uint32_t past)
{
    uint32_t ends[2] = {past, past};
    uint32_t pieces = parent == 0 ? cw_rooted_pieces(rooted, rooted->v, past, ends) : 1;
    uint32_t first = rooted->v;
    for (uint32_t i = 0; i < pieces; i++) {
        struct cw_place to = cw_place_add(landing(rooted, rooted->v, past), cw_rooted_bytes(rooted, rooted->v, first));
        cw_emit_receive(rooted->emit, cw_rooted_rank(rooted, parent), to, cw_rooted_bytes(rooted, first, ends[i]));
        first = ends[i];
    }
}

static void build_tree(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    struct cw_rooted rooted = cw_rooted_scatter(emit);
    enum cw_tree tree = recipe->variant;
    uint32_t v = rooted.v;
    uint32_t past = v + cw_tree_span(tree, rooted.size, v);
    uint64_t own_bytes = cw_rooted_bytes(&rooted, v, v + 1);
    emit->schedule.promise.fan_in = 2; /* two pieces from the root */
    if (v > 0) {
        if (past > v + 1) {
            cw_emit_scratch(emit, cw_rooted_bytes(&rooted, v, past));
        }
        subtree_receive(&rooted, cw_tree_parent(tree, 0, v), past);
    }
    cw_emit_in_turn(emit, tree != CW_TREE_FLAT); /* the largest subtree first; leaves are all alike */
    uint32_t child;
    for (uint32_t i = 0; (child = cw_tree_child(tree, 0, rooted.size, v, i)) < rooted.size; i++) {
        uint32_t child_past = child + cw_tree_span(tree, rooted.size, child);
        if (v == 0) {
            root_send(&rooted, child, child_past);
        } else {
            cw_emit_send(emit, cw_rooted_rank(&rooted, child),
                         cw_place(CW_BUFFER_SCRATCH, cw_rooted_bytes(&rooted, v, child)),
                         landing(&rooted, child, child_past), cw_rooted_bytes(&rooted, child, child_past));
        }
    }
    cw_emit_in_turn(emit, false);
    if (v == 0) {
        cw_emit_copy(emit, rooted.own, cw_rooted_root_place(&rooted, 0), own_bytes);
    } else if (past > v + 1) {
        cw_emit_copy(emit, rooted.own, cw_place(CW_BUFFER_SCRATCH, 0), own_bytes);
    }
}

/* Where node `node` takes the block of node w >= node on its way down the chain. */
static struct cw_place chain_slot(const struct cw_rooted *rooted, uint32_t node, uint32_t w)
{
    return w == node ? cw_place(rooted->own.buffer, 0)
                     : cw_place(CW_BUFFER_SCRATCH, cw_rooted_bytes(rooted, node + 1, w));
}

/* The block with the longest way first. */
static void build_pipelined_chain(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_rooted rooted = cw_rooted_scatter(emit);
    uint32_t v = rooted.v;
    if (v > 0) {
        cw_emit_scratch(emit, cw_rooted_bytes(&rooted, v + 1, rooted.size));
    }
    for (uint32_t w = rooted.size - 1; w > 0 && w >= v; w--) {
        uint64_t bytes = cw_rooted_bytes(&rooted, w, w + 1);
        struct cw_place here = v == 0 ? cw_rooted_root_place(&rooted, w) : chain_slot(&rooted, v, w);
        if (v > 0) {
            cw_emit_receive(emit, cw_rooted_rank(&rooted, v - 1), here, bytes);
        }
        if (w > v) {
            cw_emit_send(emit, cw_rooted_rank(&rooted, v + 1), here, chain_slot(&rooted, v + 1, w), bytes);
        }
    }
    if (v == 0) {
        cw_emit_copy(emit, rooted.own, cw_rooted_root_place(&rooted, 0), cw_rooted_bytes(&rooted, 0, 1));
    }
}

static void build_multicast(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    const struct cw_problem *problem = emit->problem;
    uint64_t offset = cw_problem_block_offset(problem, emit->rank);
    struct cw_bcast_part part = {
        .team = cw_team_all(emit),
        .root = problem->root,
        .from = cw_place(CW_BUFFER_SEND, 0),
        .to = cw_place(CW_BUFFER_SCRATCH, 0),
        .bytes = cw_problem_block_offset(problem, problem->ranks),
    };
    bool root = emit->rank == problem->root;
    emit->schedule.promise.fan_in = 1;
    emit->schedule.promise.fan_out = 1;
    if (!root) {
        cw_emit_scratch(emit, part.bytes);
    }
    cw_bcast_multicast(emit, &part, 0);
    cw_emit_copy(emit, cw_place(CW_BUFFER_RECEIVE, 0), cw_place_add(root ? part.from : part.to, offset),
                 cw_problem_block_bytes(problem, emit->rank));
}

#define PAPER "Barchet-Estefanel and Mounie 2004, Table 2"
#define SCATTER(name, needs, summary, source)       \
    {                                               \
        CW_SCATTER, name, 0, needs, summary, source \
    }

const struct cw_recipe cw_recipes_scatter[] = {
    {SCATTER("flat", 0, "the root sends each rank its block in turn", PAPER), build_tree, CW_TREE_FLAT, NULL},
    {SCATTER("chain", 0, "each rank passes the blocks of all that follow to the next, in one message", PAPER),
     build_tree, CW_TREE_CHAIN, NULL},
    {SCATTER("pipelined-chain", 0, "the same block by block, the one with the longest way first", PAPER),
     build_pipelined_chain, 0, NULL},
    {SCATTER("binomial", 0, "each rank passes on the blocks of whole subtrees", PAPER), build_tree, CW_TREE_BINOMIAL,
     NULL},
    {SCATTER("multicast", CW_NEEDS_MULTICAST, "all blocks in one multicast; each rank takes its own",
             "Karwande, Yuan and Lowenthal 2003, section 4.1"),
     build_multicast, 0, NULL},
};
const uint32_t cw_recipes_scatter_count = sizeof(cw_recipes_scatter) / sizeof(cw_recipes_scatter[0]);
