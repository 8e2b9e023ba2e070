/* Tree: each member reports to a member that knows of it, and all paths lead to the sender, after any removals. */
#include "mcast/tree.h"
#include "tests/test.h"

enum { MEMBERS_MAX = 70 };

struct membership {
    uint32_t places[MEMBERS_MAX];
    uint32_t live[MEMBERS_MAX];
    bool is_live[MEMBERS_MAX];
    struct cw_mcast_tree tree;
};

static void membership_make(struct membership *made, uint32_t count, uint32_t arity, uint32_t gap)
{
    made->tree =
        (struct cw_mcast_tree){.member_count = count, .arity = arity, .places = made->places, .live = made->live};
    for (uint32_t member = 0; member < count; member++) {
        made->is_live[member] = gap == 0 || member % gap != gap - 1;
        made->places[member] = made->tree.live_count;
        if (made->is_live[member]) {
            made->live[made->tree.live_count++] = member;
        }
    }
}

static void check(const struct membership *of, uint32_t sender)
{
    const struct cw_mcast_tree *tree = &of->tree;
    uint32_t reported = 0;
    for (uint32_t member = 0; member < tree->member_count; member++) {
        if (!of->is_live[member]) {
            continue;
        }
        uint32_t first, steps = 0;
        uint32_t count = cw_mcast_tree_children(tree, sender, member, &first);
        assert_true(count <= tree->arity);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t child = cw_mcast_tree_member(tree, sender, first + i);
            assert_true(of->is_live[child]);
            assert_int_equal(cw_mcast_tree_parent(tree, sender, child), member);
        }
        reported += count;
        for (uint32_t at = member; at != sender; at = cw_mcast_tree_parent(tree, sender, at)) {
            assert_true(++steps < tree->live_count);
        }
    }
    assert_int_equal(reported, tree->live_count - 1); /* each once, except the sender */
    assert_int_equal(cw_mcast_tree_parent(tree, sender, sender), UINT32_MAX);
}

static void all_ways_lead_to_the_sender(void **state)
{
    static const uint32_t arities[] = {1, 2, 3, 4, 16, MEMBERS_MAX, UINT32_MAX};
    for (uint32_t count = 1; count <= MEMBERS_MAX; count++) {
        for (size_t i = 0; i < sizeof(arities) / sizeof(arities[0]); i++) {
            for (uint32_t gap = 0; gap < 5; gap += gap == 0 ? 2 : 1) {
                struct membership made;
                membership_make(&made, count, arities[i], gap);
                for (uint32_t sender = 0; sender < count; sender++) {
                    if (made.is_live[sender]) {
                        check(&made, sender);
                    }
                }
            }
        }
    }
}

static void flat_is_flat(void **state)
{
    struct membership made;
    uint32_t first;
    membership_make(&made, 40, 40, 0);
    assert_int_equal(cw_mcast_tree_children(&made.tree, 7, 7, &first), 39);
    assert_int_equal(cw_mcast_tree_children(&made.tree, 7, 8, &first), 0);
}

int main(void)
{
    return TESTS_RUN(all_ways_lead_to_the_sender, flat_is_flat);
}
