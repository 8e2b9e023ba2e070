#include "collectives/algorithms/chains.h"

static uint32_t head_of(uint32_t count, uint32_t part, uint32_t parts)
{
    return (uint32_t)((uint64_t)part * count / parts);
}

struct cw_chain cw_chain_make(const struct cw_team *team, uint32_t skip, uint32_t part, uint32_t parts)
{
    struct cw_chain chain = {.team = *team, .skip = skip, .count = team->size - skip};
    if (chain.count > 0) {
        chain.first = head_of(chain.count, part, parts);
        chain.next = (head_of(chain.count, (part + 1) % parts, parts) + chain.count - chain.first) % chain.count;
    }
    return chain;
}

uint32_t cw_chain_rank(const struct cw_chain *chain, uint32_t node)
{
    uint32_t offset = node;
    if (chain->next > 0 && node > 0) {
        offset = node + 1 == chain->count ? chain->next : node < chain->next ? node : node + 1;
    }
    return cw_team_rank(&chain->team, chain->skip + (chain->first + offset) % chain->count);
}

uint32_t cw_chain_me(const struct cw_chain *chain)
{
    uint32_t me = chain->team.me;
    if (me >= chain->team.size || me < chain->skip) {
        return chain->count;
    }
    uint32_t offset = (me - chain->skip + chain->count - chain->first) % chain->count;
    if (chain->next == 0 || offset < chain->next) {
        return offset;
    }
    return offset == chain->next ? chain->count - 1 : offset - 1;
}

uint32_t cw_chain_parts_max(uint32_t count, uint32_t parts)
{
    return (parts + count - 1) / count;
}
