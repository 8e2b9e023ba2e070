#include "collectives/algorithms/rooted.h"

static struct cw_rooted rooted_make(struct cw_emit *emit)
{
    uint32_t size = emit->problem->ranks;
    return (struct cw_rooted){
        .emit = emit,
        .size = size,
        .root = emit->problem->root,
        .v = (emit->rank + size - emit->problem->root) % size,
    };
}

struct cw_rooted cw_rooted_scatter(struct cw_emit *emit)
{
    struct cw_rooted rooted = rooted_make(emit);
    rooted.root_buffer = CW_BUFFER_SEND;
    rooted.own = cw_place(CW_BUFFER_RECEIVE, 0);
    return rooted;
}

struct cw_rooted cw_rooted_gather(struct cw_emit *emit)
{
    struct cw_rooted rooted = rooted_make(emit);
    rooted.root_buffer = CW_BUFFER_RECEIVE;
    rooted.own = cw_place(CW_BUFFER_SEND, 0);
    return rooted;
}

uint32_t cw_rooted_rank(const struct cw_rooted *rooted, uint32_t v)
{
    return (uint32_t)(((uint64_t)rooted->root + v) % rooted->size);
}

/* Bytes before node v, counted from the root around. */
static uint64_t bytes_before(const struct cw_rooted *rooted, uint32_t v)
{
    const struct cw_problem *problem = rooted->emit->problem;
    uint64_t at_root = cw_problem_block_offset(problem, rooted->root);
    uint64_t rank = (uint64_t)rooted->root + v;
    if (rank <= rooted->size) {
        return cw_problem_block_offset(problem, (uint32_t)rank) - at_root;
    }
    return cw_problem_block_offset(problem, rooted->size) - at_root +
           cw_problem_block_offset(problem, (uint32_t)(rank - rooted->size));
}

uint64_t cw_rooted_bytes(const struct cw_rooted *rooted, uint32_t first, uint32_t past)
{
    return bytes_before(rooted, past) - bytes_before(rooted, first);
}

uint32_t cw_rooted_pieces(const struct cw_rooted *rooted, uint32_t first, uint32_t past, uint32_t ends[2])
{
    uint32_t wrap = rooted->size - rooted->root; /* the node of rank 0, if the root is another */
    if (first < wrap && wrap < past) {
        ends[0] = wrap;
        ends[1] = past;
        return 2;
    }
    ends[0] = past;
    return 1;
}

struct cw_place cw_rooted_root_place(const struct cw_rooted *rooted, uint32_t v)
{
    return cw_place(rooted->root_buffer, cw_problem_block_offset(rooted->emit->problem, cw_rooted_rank(rooted, v)));
}
