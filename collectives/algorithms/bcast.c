/* Broadcast within one team: trees (Barchet-Estefanel and Mounie 2004, Table 1), scatter + all-gather (van de Geijn),
 * multicast. */
#include <stdlib.h>

#include "collectives/algorithms/algorithms.h"
#include "dataplane/status.h"

/* Where a broadcast goes at this rank. */
struct bcast_node {
    uint32_t v;        /* index counted from the root */
    uint32_t parent;   /* ranks */
    uint32_t children; /* how many */
    struct cw_place from;
};

static uint32_t rank_of(const struct cw_bcast_part *part, uint32_t v)
{
    return cw_team_rank(&part->team, (uint32_t)(((uint64_t)v + part->root) % part->team.size));
}

static struct bcast_node bcast_node(const struct cw_bcast_part *part, enum cw_tree tree, uint32_t degree)
{
    uint32_t size = part->team.size;
    struct bcast_node node = {.v = (part->team.me + size - part->root) % size};
    if (node.v > 0) {
        node.parent = rank_of(part, cw_tree_parent(tree, degree, node.v));
    }
    while (cw_tree_child(tree, degree, size, node.v, node.children) < size) {
        node.children++;
    }
    node.from = node.v == 0 ? part->from : part->to;
    return node;
}

static uint32_t child_rank(const struct cw_bcast_part *part, enum cw_tree tree, uint32_t degree, uint32_t v, uint32_t i)
{
    return rank_of(part, cw_tree_child(tree, degree, part->team.size, v, i));
}

/* All in one piece. */
static void bcast_tree_whole(struct cw_emit *emit, const struct cw_bcast_part *part, enum cw_tree tree, uint32_t degree)
{
    struct bcast_node node = bcast_node(part, tree, degree);
    if (node.v > 0) {
        cw_emit_receive(emit, node.parent, part->to, part->bytes);
    }
    cw_emit_in_turn(emit, tree != CW_TREE_FLAT); /* the largest subtree first; leaves are all alike */
    for (uint32_t i = 0; i < node.children; i++) {
        cw_emit_send(emit, child_rank(part, tree, degree, node.v, i), node.from, part->to, part->bytes);
    }
    cw_emit_in_turn(emit, false);
}

static void bcast_tree_segmented(struct cw_emit *emit, const struct cw_bcast_part *part, enum cw_tree tree,
                                 uint32_t degree, uint64_t segment_bytes)
{
    struct bcast_node node = bcast_node(part, tree, degree);
    uint32_t *opened = malloc((node.children + 1ull) * sizeof(*opened));
    if (opened == NULL) {
        cw_emit_fail(emit, CW_ERROR_MEMORY, "no memory for the children of a node");
        return;
    }
    if (node.v > 0) {
        cw_emit_receive_open(emit, node.parent, part->to, part->bytes, segment_bytes);
    }
    for (uint32_t i = 0; i < node.children; i++) {
        opened[i] = cw_emit_send_open(emit, child_rank(part, tree, degree, node.v, i), part->bytes, segment_bytes);
    }
    cw_emit_repeat(emit, part->bytes, segment_bytes);
    if (node.v > 0) {
        cw_emit_segment_receive(emit, node.parent, part->to);
    }
    for (uint32_t i = 0; i < node.children; i++) {
        cw_emit_segment_send(emit, opened[i], child_rank(part, tree, degree, node.v, i), node.from, part->to);
    }
    cw_emit_repeat_end(emit);
    free(opened);
}

void cw_bcast_tree(struct cw_emit *emit, const struct cw_bcast_part *part, enum cw_tree tree, uint32_t degree,
                   uint64_t segment_bytes)
{
    if (part->bytes == 0 || part->team.size == 1) {
        return;
    }
    if (segment_bytes < part->bytes) {
        bcast_tree_segmented(emit, part, tree, degree, segment_bytes);
    } else {
        bcast_tree_whole(emit, part, tree, degree);
    }
}

void cw_bcast_van_de_geijn(struct cw_emit *emit, const struct cw_bcast_part *part)
{
    struct cw_vector_part vector = {
        .team = part->team,
        .blocks = cw_blocks_even(emit, part->bytes, part->team.size),
        .root = part->root,
        .span_max = cw_span_all(part->team.size),
        .complete = part->root,
        .source = part->from,
        .base = part->to,
    };
    cw_emit_in_turn(emit, true); /* the ring takes nothing from the scatter, on which all wait */
    cw_scatter_in_place(emit, &vector);
    cw_emit_fence_sent(emit);
    cw_allgather_ring(emit, &vector);
    cw_emit_in_turn(emit, false);
}

void cw_bcast_multicast(struct cw_emit *emit, const struct cw_bcast_part *part, uint32_t number)
{
    const struct cw_team *team = &part->team;
    if (part->bytes == 0 || team->size == 1) {
        return;
    }
    if (team->me != part->root) {
        cw_emit_multicast_receive(emit, cw_team_rank(team, part->root), number, part->to, part->bytes);
        return;
    }
    uint32_t *members = malloc(team->size * sizeof(*members));
    if (members == NULL) {
        cw_emit_fail(emit, CW_ERROR_MEMORY, "no memory for the members of a group");
        return;
    }
    for (uint32_t i = 0; i < team->size; i++) {
        members[i] = cw_team_rank(team, i);
    }
    cw_emit_multicast(emit, members, team->size, number, part->from, part->to, part->bytes);
    free(members);
}
