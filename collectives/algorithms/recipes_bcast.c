/* The broadcasts of one cluster, by name. */
#include "collectives/algorithms/registry.h"

enum {
    RENDEZVOUS = 16, /* beside enum cw_tree */
    SEGMENTED = 32,
    BINARY = 64,
    TREE_MASK = 15,
};

static struct cw_bcast_part whole(const struct cw_emit *emit)
{
    return (struct cw_bcast_part){
        .team = cw_team_all(emit),
        .root = emit->problem->root,
        .from = cw_place(CW_BUFFER_SEND, 0),
        .to = cw_place(CW_BUFFER_RECEIVE, 0),
        .bytes = emit->problem->count * emit->problem->element_bytes,
    };
}

static void build_tree(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    struct cw_bcast_part part = whole(emit);
    uint64_t segment = (recipe->variant & SEGMENTED) != 0 ? cw_emit_segment_bytes(emit, part.bytes) : part.bytes;
    uint32_t degree = (recipe->variant & BINARY) != 0 ? 2 : emit->parameters.degree;
    emit->rendezvous = (recipe->variant & RENDEZVOUS) != 0;
    if (emit->rendezvous) {
        emit->parameters.eager_max_bytes = 0;
    }
    emit->schedule.promise.fan_in = 1;
    cw_bcast_tree(emit, &part, recipe->variant & TREE_MASK, degree, segment);
}

static void build_van_de_geijn(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_bcast_part part = whole(emit);
    cw_bcast_van_de_geijn(emit, &part);
}

static void build_multicast(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct cw_bcast_part part = whole(emit);
    emit->schedule.promise.fan_in = 1;
    emit->schedule.promise.fan_out = 1;
    cw_bcast_multicast(emit, &part, 0);
}

#define PAPER "Barchet-Estefanel and Mounie 2004, Table 1"
#define BCAST(name, takes, needs, summary, source)    \
    {                                                 \
        CW_BCAST, name, takes, needs, summary, source \
    }

const struct cw_recipe cw_recipes_bcast[] = {
    {BCAST("flat", 0, 0, "the root sends to each rank in turn", PAPER), build_tree, CW_TREE_FLAT, NULL},
    {BCAST("flat-rendezvous", 0, 0, "the same, each message asked for and granted first", PAPER), build_tree,
     CW_TREE_FLAT | RENDEZVOUS, NULL},
    {BCAST("segmented-flat", CW_TAKES_SEGMENT, 0, "the root sends segment after segment to each rank in turn", PAPER),
     build_tree, CW_TREE_FLAT | SEGMENTED, NULL},
    {BCAST("chain", 0, 0, "each rank passes the whole message to the next", PAPER), build_tree, CW_TREE_CHAIN, NULL},
    {BCAST("chain-rendezvous", 0, 0, "the same, each message asked for and granted first", PAPER), build_tree,
     CW_TREE_CHAIN | RENDEZVOUS, NULL},
    {BCAST("segmented-chain", CW_TAKES_SEGMENT, 0, "a pipeline: each rank passes segment after segment to the next",
           PAPER),
     build_tree, CW_TREE_CHAIN | SEGMENTED, NULL},
    {BCAST("binary", 0, 0, "each rank passes the message to two others", PAPER), build_tree, CW_TREE_DARY | BINARY,
     NULL},
    {BCAST("segmented-binary", CW_TAKES_SEGMENT, 0, "the same in segments", PAPER), build_tree,
     CW_TREE_DARY | BINARY | SEGMENTED, NULL},
    {BCAST("d-ary", CW_TAKES_DEGREE | CW_TAKES_SEGMENT, 0,
           "each rank passes the message to `degree` others, in segments",
           "Barchet-Estefanel and Mounie 2004, section 3"),
     build_tree, CW_TREE_DARY | SEGMENTED, NULL},
    {BCAST("binomial", 0, 0, "a rank with the message sends it to one without, largest subtree first", PAPER),
     build_tree, CW_TREE_BINOMIAL, NULL},
    {BCAST("binomial-rendezvous", 0, 0, "the same, each message asked for and granted first", PAPER), build_tree,
     CW_TREE_BINOMIAL | RENDEZVOUS, NULL},
    {BCAST("segmented-binomial", CW_TAKES_SEGMENT, 0, "the same as binomial, in segments", PAPER), build_tree,
     CW_TREE_BINOMIAL | SEGMENTED, NULL},
    {BCAST("van-de-geijn", 0, 0, "scatter down a binomial tree, then all-gather around a ring",
           "Barnett, Gupta, Payne, Shuler, van de Geijn and Watts 1994"),
     build_van_de_geijn, 0, NULL},
    {BCAST("multicast", 0, CW_NEEDS_MULTICAST, "one reliable multicast",
           "Karwande, Yuan and Lowenthal 2003, section 4.1"),
     build_multicast, 0, NULL},
};
const uint32_t cw_recipes_bcast_count = sizeof(cw_recipes_bcast) / sizeof(cw_recipes_bcast[0]);
