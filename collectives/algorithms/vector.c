/* Scatter and all-gather of a vector that keeps its place: the halves of van de Geijn's and Rabenseifner's
 * algorithms. */
#include "collectives/algorithms/algorithms.h"

static uint32_t relative(const struct cw_vector_part *part, uint32_t index)
{
    return (index + part->team.size - part->root) % part->team.size;
}

static uint32_t rank_of(const struct cw_vector_part *part, uint32_t v)
{
    return cw_team_rank(&part->team, (uint32_t)(((uint64_t)v + part->root) % part->team.size));
}

static bool receives_nothing(const struct cw_vector_part *part, uint32_t v)
{
    return part->complete < part->team.size && v == relative(part, part->complete);
}

/* Blocks [first, past) go to member v. */
static void blocks_send(struct cw_emit *emit, const struct cw_vector_part *part, uint32_t v, uint32_t first,
                        uint32_t past)
{
    if (first >= past || receives_nothing(part, v)) {
        return;
    }
    uint64_t begin = cw_blocks_offset(&part->blocks, first);
    uint64_t bytes = cw_blocks_offset(&part->blocks, past) - begin;
    struct cw_place here = receives_nothing(part, relative(part, part->team.me)) ? part->source : part->base;
    cw_emit_send(emit, rank_of(part, v), cw_place_add(here, begin), cw_place_add(part->base, begin), bytes);
}

static void blocks_receive(struct cw_emit *emit, const struct cw_vector_part *part, uint32_t v, uint32_t first,
                           uint32_t past)
{
    if (first >= past || receives_nothing(part, relative(part, part->team.me))) {
        return;
    }
    uint64_t begin = cw_blocks_offset(&part->blocks, first);
    uint64_t bytes = cw_blocks_offset(&part->blocks, past) - begin;
    cw_emit_receive(emit, rank_of(part, v), cw_place_add(part->base, begin), bytes);
}

/* Blocks of its subtree that member v has from a scatter, or as a head. */
static uint32_t span_of(const struct cw_vector_part *part, uint32_t v)
{
    uint32_t span = cw_tree_span(CW_TREE_BINOMIAL, part->team.size, v);
    return span < part->span_max ? span : part->span_max;
}

/* Whether a scatter brings member v its blocks: heads have them, and it may end above some. */
static bool is_reached(const struct cw_vector_part *part, uint32_t v)
{
    return v % part->span_max != 0 && (part->span_min <= 1 || v % part->span_min == 0);
}

void cw_scatter_in_place(struct cw_emit *emit, const struct cw_vector_part *part)
{
    uint32_t size = part->team.size;
    uint32_t v = relative(part, part->team.me);
    if (is_reached(part, v)) {
        blocks_receive(emit, part, cw_tree_parent(CW_TREE_BINOMIAL, 0, v), v, v + span_of(part, v));
    }
    uint32_t child;
    for (uint32_t i = 0; (child = cw_tree_child(CW_TREE_BINOMIAL, 0, size, v, i)) < size; i++) {
        if (is_reached(part, child)) {
            blocks_send(emit, part, child, child, child + span_of(part, child));
        }
    }
}

/* Whether member v had the block before the all-gather: a scatter went down to all (span_min 1). */
static bool has_block(const struct cw_vector_part *part, uint32_t v, uint32_t block)
{
    return block >= v && block - v < span_of(part, v);
}

void cw_allgather_ring(struct cw_emit *emit, const struct cw_vector_part *part)
{
    uint32_t size = part->team.size;
    uint32_t v = relative(part, part->team.me);
    for (uint32_t step = 0; step + 1 < size; step++) {
        uint32_t out = (v + size - step) % size;
        uint32_t in = (v + 2 * size - 1 - step) % size;
        if (!has_block(part, v, in)) { /* first: the clear-to-send must not wait for the sends */
            blocks_receive(emit, part, (v + size - 1) % size, in, in + 1);
        }
        if (!has_block(part, (v + 1) % size, out)) {
            blocks_send(emit, part, (v + 1) % size, out, out + 1);
        }
    }
}

/* With sizes that are no power of two the members beyond it first give their block to a partner, and get everything
 * from it at the end. Member v of the power of two is partner of v + power; its range of blocks stays [v, ...) and that
 * of its partner. */
void cw_allgather_recursive_doubling(struct cw_emit *emit, const struct cw_vector_part *part)
{
    uint32_t size = part->team.size;
    uint32_t v = relative(part, part->team.me);
    uint32_t power = 1u << cw_log2_floor(size);
    uint32_t rest = size - power;
    if (v >= power) {
        blocks_send(emit, part, v - power, v, v + 1);
        blocks_receive(emit, part, v - power, 0, v);
        blocks_receive(emit, part, v - power, v + 1, size);
        return;
    }
    if (v < rest) {
        blocks_receive(emit, part, v + power, v + power, v + power + 1);
    }
    for (uint32_t distance = 1; distance < power; distance *= 2) {
        uint32_t peer = v ^ distance;
        uint32_t out = v & ~(distance - 1);
        uint32_t in = peer & ~(distance - 1);
        /* the second range holds the blocks of the partners beyond the power of two */
        blocks_send(emit, part, peer, out, out + distance);
        blocks_send(emit, part, peer, out + power, out + power + distance < size ? out + power + distance : size);
        blocks_receive(emit, part, peer, in, in + distance);
        blocks_receive(emit, part, peer, in + power, in + power + distance < size ? in + power + distance : size);
    }
    if (v < rest) {
        blocks_send(emit, part, v + power, 0, v + power);
        blocks_send(emit, part, v + power, v + power + 1, size);
    }
}
