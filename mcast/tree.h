/* Tree: the way that acknowledgements of one sender's stream take through a group.
 *
 * The sender is the root; the other members that are left follow by their index, counted from the sender's on, and fill
 * the tree level by level. So each sender of a group has another tree, and no member is an inner node of all of them.
 * With the group's size as arity the tree is flat, and all members report to the sender: the baseline of Karwande et
 * al. (PPoPP 2003).
 *
 * Pure arithmetic over shared knowledge: the number of members and the removed ones. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_mcast_tree {
    uint32_t member_count; /* taken out or not */
    uint32_t live_count;
    uint32_t arity;         /* >= 1 */
    const uint32_t *places; /* [member_count]: how many live members have a smaller index */
    const uint32_t *live;   /* [live_count]: their indices, rising */
};

/* The member that `member` reports to; UINT32_MAX: it is the sender. Both are live. */
uint32_t cw_mcast_tree_parent(const struct cw_mcast_tree *tree, uint32_t sender, uint32_t member);

/* The members that report to `member`: the first child's place in the tree, and how many there are.
 * cw_mcast_tree_member gives the member there. */
uint32_t cw_mcast_tree_children(const struct cw_mcast_tree *tree, uint32_t sender, uint32_t member, uint32_t *first);
uint32_t cw_mcast_tree_member(const struct cw_mcast_tree *tree, uint32_t sender, uint32_t place);
