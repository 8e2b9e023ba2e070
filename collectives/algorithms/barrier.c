/* Barriers as schedules of their own. */
#include <stdlib.h>

#include "collectives/algorithms/registry.h"
#include "dataplane/status.h"

static void build_dissemination(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint32_t ranks = emit->problem->ranks;
    uint32_t rank = emit->rank;
    for (uint32_t distance = 1; distance < ranks; distance *= 2) {
        cw_emit_signal(emit, (rank + distance) % ranks);
        cw_emit_await(emit, (rank + ranks - distance) % ranks);
        cw_emit_fence(emit);
    }
}

/* Signals climb a binomial tree; the release comes down the same way, or by one multicast. */
static void build_tree(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    uint32_t ranks = emit->problem->ranks;
    uint32_t rank = emit->rank;
    bool multicast = recipe->variant != 0;
    uint32_t child;
    for (uint32_t i = 0; (child = cw_tree_child(CW_TREE_BINOMIAL, 0, ranks, rank, i)) < ranks; i++) {
        cw_emit_await(emit, child);
    }
    cw_emit_fence(emit);
    if (rank > 0) {
        cw_emit_signal(emit, cw_tree_parent(CW_TREE_BINOMIAL, 0, rank));
    }
    if (multicast) {
        cw_emit_multicast_signal(emit, 0, 0);
        return;
    }
    if (rank > 0) {
        cw_emit_await(emit, cw_tree_parent(CW_TREE_BINOMIAL, 0, rank));
        cw_emit_fence(emit);
    }
    for (uint32_t i = 0; (child = cw_tree_child(CW_TREE_BINOMIAL, 0, ranks, rank, i)) < ranks; i++) {
        cw_emit_signal(emit, child);
    }
}

#define BARRIER(name, needs, summary, source)       \
    {                                               \
        CW_BARRIER, name, 0, needs, summary, source \
    }

const struct cw_recipe cw_recipes_barrier[] = {
    {BARRIER("dissemination", 0, "log2(P) rounds of signals to the rank 1, 2, 4, ... after",
             "Hensgen, Finkel and Manber 1988"),
     build_dissemination, 0, NULL},
    {BARRIER("tree", 0, "signals up a binomial tree and down again", "Mellor-Crummey and Scott 1991"), build_tree, 0,
     NULL},
    {BARRIER("tree-multicast", CW_NEEDS_MULTICAST, "signals up a binomial tree, one multicast releases all",
             "Mamidala, Liu and Panda 2004"),
     build_tree, 1, NULL},
};
const uint32_t cw_recipes_barrier_count = sizeof(cw_recipes_barrier) / sizeof(cw_recipes_barrier[0]);
