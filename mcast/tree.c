#include "mcast/tree.h"

#include <assert.h>

/* How far a member stands behind the sender, among the live ones; 0: the sender. */
static uint32_t place_of(const struct cw_mcast_tree *tree, uint32_t sender, uint32_t member)
{
    assert(sender < tree->member_count && member < tree->member_count && tree->live_count > 0);
    uint32_t from = tree->places[sender];
    uint32_t at = tree->places[member];
    return at >= from ? at - from : at + tree->live_count - from;
}

uint32_t cw_mcast_tree_member(const struct cw_mcast_tree *tree, uint32_t sender, uint32_t place)
{
    assert(place < tree->live_count);
    uint32_t at = tree->places[sender] + place;
    return tree->live[at < tree->live_count ? at : at - tree->live_count];
}

uint32_t cw_mcast_tree_parent(const struct cw_mcast_tree *tree, uint32_t sender, uint32_t member)
{
    uint32_t place = place_of(tree, sender, member);
    return place == 0 ? UINT32_MAX : cw_mcast_tree_member(tree, sender, (place - 1) / tree->arity);
}

uint32_t cw_mcast_tree_children(const struct cw_mcast_tree *tree, uint32_t sender, uint32_t member, uint32_t *first)
{
    uint64_t begin = (uint64_t)place_of(tree, sender, member) * tree->arity + 1;
    uint64_t end = begin + tree->arity;
    if (begin >= tree->live_count) {
        *first = tree->live_count;
        return 0;
    }
    *first = (uint32_t)begin;
    return (uint32_t)((end < tree->live_count ? end : tree->live_count) - begin);
}
