/* Broadcast across clusters (Matsuda, Kudoh, Kodama, Takano and Ishikawa 2006, 2.2, 2.4, 2.5): something inside the
 * root's cluster, a crossing to the others, something inside each cluster. */
#include "collectives/algorithms/crossing.h"
#include "collectives/algorithms/registry.h"

enum {
    FARFIRST,
    FORWARDED,
    HEADS,
    CHAINED,
};

enum {
    PHASE_SCATTER,
    PHASE_CROSSING,
    PHASE_INSIDE,
};

/* This cluster's team; in the root's cluster the root is index 0. */
static struct cw_team team_of(const struct cw_emit *emit, uint32_t cluster)
{
    struct cw_team team = cw_team_cluster(emit, cluster);
    uint32_t root = emit->problem->root;
    return cw_problem_cluster(emit->problem, root) == cluster ? cw_team_turned(&team, cw_team_index(&team, root))
                                                              : team;
}

/* Members between two holders of a cluster. */
static uint32_t stride_of(const struct cw_emit *emit, uint32_t variant, uint32_t size)
{
    uint32_t senders = emit->parameters.senders;
    uint32_t all = cw_span_all(size);
    if (variant == FARFIRST) {
        return all;
    }
    if (variant != HEADS || senders == 0 || senders >= all) {
        return 1;
    }
    return all >> cw_log2_floor(senders);
}

static struct cw_holders holders_of(const struct cw_emit *emit, uint32_t variant, uint32_t cluster, uint64_t bytes)
{
    struct cw_team team = team_of(emit, cluster);
    return cw_holders_make(emit, &team, stride_of(emit, variant, team.size), bytes);
}

static struct cw_crossing crossing_from(struct cw_emit *emit, uint32_t variant, uint32_t cluster, uint64_t bytes,
                                        struct cw_place relay)
{
    return (struct cw_crossing){
        .from = holders_of(emit, variant, cluster, bytes),
        .source = cw_place(emit->rank == emit->problem->root ? CW_BUFFER_SEND : CW_BUFFER_RECEIVE, 0),
        .relay = relay,
        .senders = variant == FARFIRST ? 1 : emit->parameters.senders,
        .chained = variant == CHAINED || variant == FARFIRST,
    };
}

/* From the parent cluster to this one, and from this one to those behind it. */
static void cross(struct cw_emit *emit, uint32_t variant, uint64_t bytes)
{
    const struct cw_problem *problem = emit->problem;
    uint32_t own = cw_problem_cluster(problem, emit->rank);
    uint32_t root = cw_problem_cluster(problem, problem->root);
    struct cw_place target = cw_place(CW_BUFFER_RECEIVE, 0);
    bool forwards = variant == FORWARDED && emit->parameters.senders > 0;
    struct cw_place relay = cw_emit_scratch(emit, forwards ? bytes : 0);
    struct cw_crossing crossing = crossing_from(emit, variant, own, bytes, relay);
    if (own != root) {
        struct cw_crossing before = crossing_from(emit, variant, cw_cluster_parent(problem, root, own), bytes, relay);
        cw_crossing_receive(emit, &before, &crossing.from, target, false);
    }
    cw_crossing_begin(emit, &crossing);
    for (uint32_t i = 1; i < problem->cluster_count; i++) {
        uint32_t cluster = (root + i) % problem->cluster_count;
        if (cluster != root && cluster != own && cw_cluster_parent(problem, root, cluster) == own) {
            struct cw_holders to = holders_of(emit, variant, cluster, bytes);
            cw_crossing_send(emit, &crossing, &to, target, false);
        }
    }
    cw_crossing_end(emit, &crossing);
    if (variant == FARFIRST) {
        cw_emit_fence_at(
            emit, crossing.sent); /* far first: nothing may get in before what crosses, which waits for its handshake */
    }
}

static void build_farfirst(struct cw_emit *emit, uint64_t bytes)
{
    uint32_t own = cw_problem_cluster(emit->problem, emit->rank);
    bool root = emit->rank == emit->problem->root;
    struct cw_bcast_part part = {
        .team = team_of(emit, own),
        .root = 0,
        .from = cw_place(root ? CW_BUFFER_SEND : CW_BUFFER_RECEIVE, 0),
        .to = cw_place(CW_BUFFER_RECEIVE, 0),
        .bytes = bytes,
    };
    cw_emit_phase(emit, PHASE_CROSSING);
    cross(emit, FARFIRST, bytes);
    cw_emit_phase(emit, PHASE_INSIDE);
    cw_bcast_van_de_geijn(emit, &part);
}

static void build_van_de_geijn(struct cw_emit *emit, uint32_t variant, uint64_t bytes)
{
    const struct cw_problem *problem = emit->problem;
    uint32_t own = cw_problem_cluster(problem, emit->rank);
    bool at_root = cw_problem_cluster(problem, problem->root) == own;
    struct cw_team team = team_of(emit, own);
    uint32_t stride = stride_of(emit, variant, team.size);
    struct cw_vector_part part = {
        .team = team,
        .blocks = cw_blocks_even(emit, bytes, team.size),
        .root = 0,
        .span_max = at_root ? cw_span_all(team.size) : stride,
        .span_min = stride,
        .complete = at_root ? 0 : team.size,
        .source = cw_place(CW_BUFFER_SEND, 0),
        .base = cw_place(CW_BUFFER_RECEIVE, 0),
    };
    cw_emit_in_turn(emit, true); /* no stage takes anything from the one before, on which others wait */
    if (at_root) {
        cw_scatter_in_place(emit, &part);
    }
    cw_emit_phase(emit, PHASE_CROSSING);
    cross(emit, variant, bytes);
    cw_emit_phase(emit, PHASE_INSIDE);
    cw_emit_fence_sent(emit);
    struct cw_vector_part rest = part;
    rest.span_max = stride;
    rest.span_min = 1;
    cw_scatter_in_place(emit, &rest);
    part.span_min = 1;
    cw_allgather_ring(emit, &part);
    cw_emit_in_turn(emit, false);
}

static void build_clusters(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    uint64_t bytes = emit->problem->count * emit->problem->element_bytes;
    emit->schedule.promise.wan_bytes = bytes;
    emit->schedule.promise.wan_senders = recipe->variant == FARFIRST ? 1 : emit->parameters.senders;
    if (recipe->variant == FARFIRST) {
        build_farfirst(emit, bytes);
    } else {
        build_van_de_geijn(emit, recipe->variant, bytes);
    }
}

#define PAPER "Matsuda, Kudoh, Kodama, Takano and Ishikawa 2006"
#define BCAST(name, takes, summary, section)                                  \
    {                                                                         \
        CW_BCAST, name, takes, CW_NEEDS_CLUSTERS, summary, PAPER ", " section \
    }

const struct cw_recipe cw_recipes_clusters_bcast[] = {
    {BCAST("clusters-farfirst", 0, "the whole message to one rank of each other cluster, then van-de-geijn in each",
           "3.1"),
     build_clusters, FARFIRST, NULL},
    {BCAST("clusters-van-de-geijn", CW_TAKES_SENDERS,
           "scatter, copy to the other clusters by n senders that others hand their parts to, all-gather", "2.2"),
     build_clusters, FORWARDED, NULL},
    {BCAST("clusters-heads", CW_TAKES_SENDERS, "copy to the other clusters when the scatter has reached 2^i ranks",
           "2.4"),
     build_clusters, HEADS, NULL},
    {BCAST("clusters-chained", CW_TAKES_SENDERS, "n ranks copy to the other clusters, then the next n, and so on",
           "2.4"),
     build_clusters, CHAINED, NULL},
};
const uint32_t cw_recipes_clusters_bcast_count =
    sizeof(cw_recipes_clusters_bcast) / sizeof(cw_recipes_clusters_bcast[0]);
