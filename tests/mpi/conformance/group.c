/* Groups (MPI 5.0, 7.3). Most need no other process: groups are made of those of MPI_COMM_WORLD, for any size. */
#include "tests/mpi/expect.h"

static MPI_Group world;

static int size_of(MPI_Group group)
{
    int size = -1;
    EXPECT_EQUAL(MPI_Group_size(group, &size), MPI_SUCCESS);
    return size;
}

/* Expects a group of these ranks of the world, in this order; frees it. */
static void expect_group(MPI_Group group, int count, const int ranks[])
{
    int mine = MPI_UNDEFINED, found;
    EXPECT_EQUAL(size_of(group), count);
    for (int i = 0; i < count; i++) {
        int at = -1;
        MPI_Group_translate_ranks(group, 1, &i, world, &at);
        EXPECT_EQUAL(at, ranks[i]);
        mine = ranks[i] == expect_rank ? i : mine;
    }
    MPI_Group_rank(group, &found);
    EXPECT_EQUAL(found, mine);
    if (group != MPI_GROUP_EMPTY) {
        EXPECT_EQUAL(MPI_Group_free(&group), MPI_SUCCESS);
        EXPECT(group == MPI_GROUP_NULL);
    }
}

/* The ranks of the world that a rule names; how many. */
static int choose(int ranks[], int (*rule)(int rank))
{
    int count = 0;
    for (int rank = 0; rank < expect_size; rank++) {
        if (rule(rank)) {
            ranks[count++] = rank;
        }
    }
    return count;
}

static int is_even(int rank)
{
    return rank % 2 == 0;
}

static int is_late(int rank)
{
    return rank >= expect_size / 2;
}

static int is_even_or_late(int rank)
{
    return is_even(rank) || is_late(rank);
}

static int is_even_and_late(int rank)
{
    return is_even(rank) && is_late(rank);
}

static int is_even_not_late(int rank)
{
    return is_even(rank) && !is_late(rank);
}

static int is_late_not_even(int rank)
{
    return is_late(rank) && !is_even(rank);
}

static MPI_Group group_of(int (*rule)(int rank))
{
    int *ranks = malloc((size_t)expect_size * sizeof(int));
    MPI_Group group;
    EXPECT_EQUAL(MPI_Group_incl(world, choose(ranks, rule), ranks, &group), MPI_SUCCESS);
    free(ranks);
    return group;
}

static void the_world_and_self(void)
{
    int rank, size;
    MPI_Group self;
    MPI_Group_rank(world, &rank);
    MPI_Group_size(world, &size);
    EXPECT_EQUAL(rank, expect_rank);
    EXPECT_EQUAL(size, expect_size);
    MPI_Comm_group(MPI_COMM_SELF, &self);
    expect_group(self, 1, &expect_rank);
}

/* Union: first all of the first group, then those of the second that are not in it. The others: in the order of the
 * first. */
static void sets(void)
{
    MPI_Group even = group_of(is_even), late = group_of(is_late), made;
    int *ranks = calloc(2 * (size_t)expect_size, sizeof(int)), count;
    MPI_Group_union(even, late, &made);
    count = choose(ranks, is_even);
    count += choose(ranks + count, is_late_not_even);
    expect_group(made, count, ranks);
    EXPECT_EQUAL(count, choose(ranks, is_even_or_late));
    MPI_Group_intersection(even, late, &made);
    expect_group(made, choose(ranks, is_even_and_late), ranks);
    MPI_Group_difference(even, late, &made);
    expect_group(made, choose(ranks, is_even_not_late), ranks);
    MPI_Group_union(even, even, &made);
    expect_group(made, choose(ranks, is_even), ranks);
    MPI_Group_difference(late, late, &made);
    EXPECT(made == MPI_GROUP_EMPTY);
    MPI_Group_free(&even);
    MPI_Group_free(&late);
    free(ranks);
}

/* The order of a set operation is the order of its first group, which need not be that of the world. */
static void sets_keep_the_first_order(void)
{
    if (expect_size < 4) {
        return;
    }
    const int a_ranks[] = {3, 1, 0}, b_ranks[] = {0, 2, 3};
    MPI_Group a, b, made;
    MPI_Group_incl(world, 3, a_ranks, &a);
    MPI_Group_incl(world, 3, b_ranks, &b);
    MPI_Group_union(a, b, &made);
    expect_group(made, 4, (const int[]){3, 1, 0, 2});
    MPI_Group_union(b, a, &made);
    expect_group(made, 4, (const int[]){0, 2, 3, 1});
    MPI_Group_intersection(a, b, &made);
    expect_group(made, 2, (const int[]){3, 0});
    MPI_Group_intersection(b, a, &made);
    expect_group(made, 2, (const int[]){0, 3});
    MPI_Group_difference(a, b, &made);
    expect_group(made, 1, (const int[]){1});
    MPI_Group_difference(b, a, &made);
    expect_group(made, 1, (const int[]){2});
    int translated[4];
    MPI_Group_translate_ranks(a, 4, (const int[]){0, 1, MPI_PROC_NULL, 2}, b, translated);
    EXPECT_EQUAL(translated[0], 2);
    EXPECT_EQUAL(translated[1], MPI_UNDEFINED);
    EXPECT_EQUAL(translated[2], MPI_PROC_NULL);
    EXPECT_EQUAL(translated[3], 0);
    MPI_Group_free(&a);
    MPI_Group_free(&b);
}

static int compare(MPI_Group a, MPI_Group b)
{
    int result = -1;
    EXPECT_EQUAL(MPI_Group_compare(a, b, &result), MPI_SUCCESS);
    return result;
}

static void comparison(void)
{
    MPI_Group again, self, reversed;
    int ranges[1][3] = {{expect_size - 1, 0, -1}};
    MPI_Comm_group(MPI_COMM_WORLD, &again);
    MPI_Comm_group(MPI_COMM_SELF, &self);
    MPI_Group_range_incl(world, 1, ranges, &reversed);
    EXPECT_EQUAL(compare(world, again), MPI_IDENT);
    EXPECT_EQUAL(compare(world, self), expect_size == 1 ? MPI_IDENT : MPI_UNEQUAL);
    EXPECT_EQUAL(compare(world, reversed), expect_size == 1 ? MPI_IDENT : MPI_SIMILAR);
    EXPECT_EQUAL(compare(world, MPI_GROUP_EMPTY), MPI_UNEQUAL);
    EXPECT_EQUAL(compare(MPI_GROUP_EMPTY, MPI_GROUP_EMPTY), MPI_IDENT);
    MPI_Group_free(&again);
    MPI_Group_free(&self);
    MPI_Group_free(&reversed);
}

static void lists(void)
{
    int *ranks = malloc((size_t)expect_size * sizeof(int)), last = expect_size - 1;
    MPI_Group made;
    MPI_Group_excl(world, 1, &last, &made);
    for (int i = 0; i < expect_size; i++) {
        ranks[i] = i;
    }
    expect_group(made, last, ranks);
    MPI_Group_excl(world, 0, NULL, &made);
    EXPECT_EQUAL(compare(made, world), MPI_IDENT);
    expect_group(made, expect_size, ranks);
    MPI_Group_excl(world, expect_size, ranks, &made);
    EXPECT(made == MPI_GROUP_EMPTY);
    MPI_Group_incl(world, 0, ranks, &made);
    EXPECT(made == MPI_GROUP_EMPTY);
    for (int i = 0; i < expect_size; i++) {
        ranks[i] = last - i;
    }
    MPI_Group_incl(world, expect_size, ranks, &made);
    expect_group(made, expect_size, ranks);
    free(ranks);
}

/* 7.3.2: the ranks of a triplet are first, first + stride, ... up to last, which need not be among them. */
static void ranges_of_eight(void)
{
    if (expect_size < 8) {
        return;
    }
    int up[2][3] = {{0, 3, 2}, {7, 7, 5}}, down[1][3] = {{6, 0, -3}}, off[1][3] = {{1, 6, 4}}, none[1][3] = {{3, 2, 1}};
    MPI_Group made;
    MPI_Group_range_incl(world, 2, up, &made);
    expect_group(made, 3, (const int[]){0, 2, 7});
    MPI_Group_range_incl(world, 1, down, &made);
    expect_group(made, 3, (const int[]){6, 3, 0});
    MPI_Group_range_incl(world, 1, off, &made);
    expect_group(made, 2, (const int[]){1, 5});
    MPI_Group_range_excl(world, 1, down, &made);
    EXPECT_EQUAL(size_of(made), expect_size - 3);
    MPI_Group_free(&made);
    if (MPI_Group_range_incl(world, 1, none, &made) ==
        MPI_SUCCESS) { /* floor((last - first) / stride) is -1: no rank */
        EXPECT(made == MPI_GROUP_EMPTY);
    }
}

static void ranges(void)
{
    int *ranks = malloc((size_t)expect_size * sizeof(int));
    int all[1][3] = {{0, expect_size - 1, 1}}, every_second[1][3] = {{0, expect_size - 1, 2}};
    MPI_Group made;
    MPI_Group_range_incl(world, 1, every_second, &made);
    expect_group(made, choose(ranks, is_even), ranks);
    MPI_Group_range_incl(world, 1, all, &made);
    EXPECT_EQUAL(compare(made, world), MPI_IDENT);
    MPI_Group_free(&made);
    MPI_Group_range_excl(world, 1, all, &made);
    EXPECT(made == MPI_GROUP_EMPTY);
    MPI_Group_range_incl(world, 0, all, &made);
    EXPECT(made == MPI_GROUP_EMPTY);
    MPI_Group_range_excl(world, 0, all, &made);
    EXPECT_EQUAL(compare(made, world), MPI_IDENT);
    MPI_Group_free(&made);
    free(ranks);
    ranges_of_eight();
}

static void the_empty_group(void)
{
    MPI_Group made;
    int rank = 0;
    EXPECT_EQUAL(size_of(MPI_GROUP_EMPTY), 0);
    MPI_Group_rank(MPI_GROUP_EMPTY, &rank);
    EXPECT_EQUAL(rank, MPI_UNDEFINED);
    MPI_Group_union(MPI_GROUP_EMPTY, MPI_GROUP_EMPTY, &made);
    EXPECT(made == MPI_GROUP_EMPTY);
    MPI_Group_intersection(world, MPI_GROUP_EMPTY, &made);
    EXPECT(made == MPI_GROUP_EMPTY);
    MPI_Group_union(MPI_GROUP_EMPTY, world, &made);
    EXPECT_EQUAL(compare(made, world), MPI_IDENT);
    MPI_Group_free(&made);
    MPI_Group_difference(world, MPI_GROUP_EMPTY, &made);
    EXPECT_EQUAL(compare(made, world), MPI_IDENT);
    MPI_Group_free(&made);
}

/* A group outlives the communicator it was taken from (7.4.3). */
static void groups_outlive_communicators(void)
{
    MPI_Comm comm;
    MPI_Group group;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_group(comm, &group);
    MPI_Comm_free(&comm);
    EXPECT_EQUAL(compare(group, world), MPI_IDENT);
    MPI_Group_free(&group);
}

static void many_groups(void)
{
    for (int i = 0; i < 10000; i++) {
        MPI_Group group, even = group_of(is_even);
        MPI_Group_union(even, world, &group);
        EXPECT_EQUAL(size_of(group), expect_size);
        MPI_Group_free(&group);
        MPI_Group_free(&even);
    }
}

static void ranks_are_in_a_group_once(void)
{
    MPI_Group made;
    int ranks[2] = {0, 0}, ranges[2][3] = {{0, 0, 1}, {0, 0, 1}};
    EXPECT(MPI_Group_incl(world, 2, ranks, &made) != MPI_SUCCESS);
    EXPECT(MPI_Group_excl(world, 2, ranks, &made) != MPI_SUCCESS);
    EXPECT(MPI_Group_range_incl(world, 2, ranges, &made) != MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    the_world_and_self();
    sets();
    sets_keep_the_first_order();
    comparison();
    lists();
    ranges();
    the_empty_group();
    groups_outlive_communicators();
    many_groups();
    ranks_are_in_a_group_once();
    MPI_Group_free(&world);
    return expect_end();
}
