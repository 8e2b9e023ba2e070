/* Gather: the scatters of Barchet-Estefanel and Mounie 2004, Table 2, with their messages turned round. */
#include "collectives/algorithms/registry.h"
#include "collectives/algorithms/rooted.h"

/* The place of the blocks of node v's subtree [v, past) before it sends: its own block at a leaf, scratch elsewhere. */
static struct cw_place collected(const struct cw_rooted *rooted, uint32_t past)
{
    return past == rooted->v + 1 ? rooted->own : cw_place(CW_BUFFER_SCRATCH, 0);
}

/* To the root a subtree goes in as many messages as it has pieces there. */
static void subtree_send(const struct cw_rooted *rooted, uint32_t parent, uint32_t past)
{
    uint32_t v = rooted->v;
    struct cw_place from = collected(rooted, past);
    if (parent > 0) {
        cw_emit_send(rooted->emit, cw_rooted_rank(rooted, parent), from,
                     cw_place(CW_BUFFER_SCRATCH, cw_rooted_bytes(rooted, parent, v)), cw_rooted_bytes(rooted, v, past));
        return;
    }
    uint32_t ends[2];
    uint32_t pieces = cw_rooted_pieces(rooted, v, past, ends);
    uint32_t first = v;
    for (uint32_t i = 0; i < pieces; i++) {
        cw_emit_send(rooted->emit, rooted->root, cw_place_add(from, cw_rooted_bytes(rooted, v, first)),
                     cw_rooted_root_place(rooted, first), cw_rooted_bytes(rooted, first, ends[i]));
        first = ends[i];
    }
}

static void subtree_receive(const struct cw_rooted *rooted, uint32_t child, uint32_t past)
{
    uint32_t rank = cw_rooted_rank(rooted, child);
    if (rooted->v > 0) {
        cw_emit_receive(rooted->emit, rank, cw_place(CW_BUFFER_SCRATCH, cw_rooted_bytes(rooted, rooted->v, child)),
                        cw_rooted_bytes(rooted, child, past));
        return;
    }
    uint32_t ends[2];
    uint32_t pieces = cw_rooted_pieces(rooted, child, past, ends);
    uint32_t first = child;
    for (uint32_t i = 0; i < pieces; i++) {
        cw_emit_receive(rooted->emit, rank, cw_rooted_root_place(rooted, first),
                        cw_rooted_bytes(rooted, first, ends[i]));
        first = ends[i];
    }
}

static void build_tree(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    struct cw_rooted rooted = cw_rooted_gather(emit);
    enum cw_tree tree = recipe->variant;
    uint32_t v = rooted.v;
    uint32_t past = v + cw_tree_span(tree, rooted.size, v);
    uint64_t own_bytes = cw_rooted_bytes(&rooted, v, v + 1);
    emit->schedule.promise.fan_out = 2; /* two pieces to the root */
    if (v == 0) {
        cw_emit_copy(emit, cw_rooted_root_place(&rooted, 0), rooted.own, own_bytes);
    } else if (past > v + 1) {
        cw_emit_scratch(emit, cw_rooted_bytes(&rooted, v, past));
        cw_emit_copy(emit, cw_place(CW_BUFFER_SCRATCH, 0), rooted.own, own_bytes);
    }
    uint32_t child;
    for (uint32_t i = 0; (child = cw_tree_child(tree, 0, rooted.size, v, i)) < rooted.size; i++) {
        subtree_receive(&rooted, child, child + cw_tree_span(tree, rooted.size, child));
    }
    if (v > 0) {
        subtree_send(&rooted, cw_tree_parent(tree, 0, v), past);
    }
}

/* Where node v keeps the block of node w >= v on its way up the chain. */
static struct cw_place chain_slot(const struct cw_rooted *rooted, uint32_t v, uint32_t w)
{
    if (v == 0) {
        return cw_rooted_root_place(rooted, w);
    }
    return w == v ? rooted->own : cw_place(CW_BUFFER_SCRATCH, cw_rooted_bytes(rooted, v + 1, w));
}

/* The own block first: the others are still on their way. */
static void build_pipelined_chain(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_rooted rooted = cw_rooted_gather(emit);
    uint32_t v = rooted.v;
    if (v == 0) {
        cw_emit_copy(emit, cw_rooted_root_place(&rooted, 0), rooted.own, cw_rooted_bytes(&rooted, 0, 1));
    } else {
        cw_emit_scratch(emit, cw_rooted_bytes(&rooted, v + 1, rooted.size));
    }
    for (uint32_t w = v; w < rooted.size; w++) {
        uint64_t bytes = cw_rooted_bytes(&rooted, w, w + 1);
        if (w > v) {
            cw_emit_receive(emit, cw_rooted_rank(&rooted, v + 1), chain_slot(&rooted, v, w), bytes);
        }
        if (v > 0) {
            cw_emit_send(emit, cw_rooted_rank(&rooted, v - 1), chain_slot(&rooted, v, w), chain_slot(&rooted, v - 1, w),
                         bytes);
        }
    }
}

#define PAPER "Barchet-Estefanel and Mounie 2004, section 4"
#define GATHER(name, summary)                 \
    {                                         \
        CW_GATHER, name, 0, 0, summary, PAPER \
    }

const struct cw_recipe cw_recipes_gather[] = {
    {GATHER("flat", "each rank sends its block to the root"), build_tree, CW_TREE_FLAT, NULL},
    {GATHER("chain", "each rank passes its block and those of all that follow towards the root, in one message"),
     build_tree, CW_TREE_CHAIN, NULL},
    {GATHER("pipelined-chain", "the same block by block, the nearest one first"), build_pipelined_chain, 0, NULL},
    {GATHER("binomial", "each rank passes on the blocks of its whole subtree"), build_tree, CW_TREE_BINOMIAL, NULL},
};
const uint32_t cw_recipes_gather_count = sizeof(cw_recipes_gather) / sizeof(cw_recipes_gather[0]);
