#include "collectives/algorithms/algorithms.h"

#include <assert.h>

struct cw_team cw_team_all(const struct cw_emit *emit)
{
    return (struct cw_team){.members = NULL, .size = emit->problem->ranks, .me = emit->rank};
}

struct cw_team cw_team_cluster(const struct cw_emit *emit, uint32_t cluster)
{
    const struct cw_problem *problem = emit->problem;
    uint32_t first = problem->clusters.first[cluster];
    struct cw_team team = {
        .members = &problem->clusters.members[first],
        .size = cw_problem_cluster_size(problem, cluster),
    };
    team.me = cw_team_index(&team, emit->rank);
    return team;
}

uint32_t cw_team_index(const struct cw_team *team, uint32_t rank)
{
    assert(team->turn == 0);
    if (team->members == NULL) {
        return rank;
    }
    /* members rise */
    uint32_t low = 0;
    uint32_t high = team->size;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (team->members[middle] < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < team->size && team->members[low] == rank ? low : team->size;
}

struct cw_team cw_team_turned(const struct cw_team *team, uint32_t first)
{
    struct cw_team turned = *team;
    turned.turn = first;
    if (team->me < team->size) {
        turned.me = (uint32_t)(((uint64_t)team->me + team->size - first) % team->size);
    }
    return turned;
}

struct cw_blocks cw_blocks_even(const struct cw_emit *emit, uint64_t bytes, uint32_t parts)
{
    uint32_t element_bytes = emit->problem->element_bytes;
    return (struct cw_blocks){.elements = bytes / element_bytes, .element_bytes = element_bytes, .parts = parts};
}

struct cw_blocks cw_blocks_problem(const struct cw_emit *emit)
{
    return (struct cw_blocks){.problem = emit->problem, .parts = emit->problem->ranks};
}

uint64_t cw_blocks_offset(const struct cw_blocks *blocks, uint32_t i)
{
    if (blocks->problem != NULL) {
        return cw_problem_block_offset(blocks->problem, i < blocks->pairs ? 2 * i : i + blocks->pairs);
    }
    uint64_t whole = blocks->elements / blocks->parts;
    uint64_t rest = blocks->elements % blocks->parts;
    return (whole * i + (i < rest ? i : rest)) * blocks->element_bytes;
}

uint32_t cw_blocks_at(const struct cw_blocks *blocks, uint64_t offset)
{
    assert(blocks->problem == NULL && offset < blocks->elements * blocks->element_bytes);
    uint64_t element = offset / blocks->element_bytes;
    uint64_t whole = blocks->elements / blocks->parts;
    uint64_t rest = blocks->elements % blocks->parts;
    if (element < (whole + 1) * rest) {
        return (uint32_t)(element / (whole + 1));
    }
    return (uint32_t)(rest + (element - (whole + 1) * rest) / whole);
}
