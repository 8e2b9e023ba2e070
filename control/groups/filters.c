#include "control/groups/filters.h"

#include <assert.h>

#define RESORT (UINT64_C(1))
#define FLOOD  (UINT64_C(1) << (CW_GROUPS_ADDRESSES - 1))
#define DEVICE (UINT64_MAX << CW_GROUPS_BY_DEVICE & ~FLOOD)

/* One bit per address that has groups. */
static uint64_t used(const struct groups_filters *filters)
{
    uint64_t bits = 0;
    for (uint32_t address = 0; address < CW_GROUPS_ADDRESSES; address++) {
        bits |= (uint64_t)(filters->uses[address] > 0) << address;
    }
    return bits;
}

struct groups_offer groups_filters_offer(struct groups_filters *filters, bool *is_reserved)
{
    uint64_t has = used(filters);
    uint32_t own = (uint32_t)__builtin_popcountll(has & ~RESORT);
    *is_reserved = CW_GROUPS_FILTERS_LEAST + own + filters->reserved < filters->budget;
    filters->reserved += *is_reserved;
    uint64_t able = filters->has_device ? ~FLOOD : ~(FLOOD | DEVICE);
    return (struct groups_offer){.may = *is_reserved ? able : (has | RESORT) & able, .has = has};
}

void groups_filters_finish(struct groups_filters *filters, bool is_reserved)
{
    filters->reserved -= is_reserved;
}

/* The first bit that is set from `from` on, round about. */
static uint32_t bit_from(uint64_t bits, uint32_t from)
{
    uint32_t bit = from % CW_GROUPS_ADDRESSES;
    while ((bits >> bit & 1) == 0) {
        bit = (bit + 1) % CW_GROUPS_ADDRESSES;
    }
    return bit;
}

uint32_t groups_filters_choose(uint64_t may, uint64_t has, uint64_t draw)
{
    uint64_t others = may & ~(RESORT | FLOOD);
    others = (others & DEVICE) != 0 ? others & DEVICE : others;
    uint64_t fresh = others & ~has;
    if (fresh != 0) {
        return bit_from(fresh, (uint32_t)(draw % CW_GROUPS_ADDRESSES));
    }
    return others != 0 ? bit_from(others, (uint32_t)(draw % CW_GROUPS_ADDRESSES)) : 0;
}

void groups_filters_acquire(struct groups_filters *filters, uint32_t address)
{
    filters->uses[address]++;
}

void groups_filters_release(struct groups_filters *filters, uint32_t address)
{
    assert(filters->uses[address] > 0);
    filters->uses[address]--;
}

uint32_t groups_filters_count(const struct groups_filters *filters)
{
    return 1 + (uint32_t)__builtin_popcountll(used(filters));
}
