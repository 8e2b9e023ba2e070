/* Calls on groups (MPI 5.0, 7.3). */
#include <stdlib.h>

#include "mpi/runtime/error.h"
#include "mpi/state/comm.h"
#include "mpi/state/group.h"
#include "mpi_functions.h"

static int group_find(MPI_Group handle, struct mpi_group **group)
{
    *group = mpi_group_find(handle);
    return *group != NULL ? MPI_SUCCESS
                          : mpi_error(MPI_COMM_NULL, MPI_ERR_GROUP, "%s",
                                      handle == MPI_GROUP_NULL ? "the group is MPI_GROUP_NULL" : "unknown group");
}

static int groups_find(MPI_Group handle_a, MPI_Group handle_b, struct mpi_group **a, struct mpi_group **b)
{
    int code = group_find(handle_a, a);
    return code != MPI_SUCCESS ? code : group_find(handle_b, b);
}

/* Gives a new group with `size` of these ranks to the program. */
static int group_return(uint32_t *ranks, int size, MPI_Group *newgroup)
{
    struct mpi_group *group = mpi_group_make(ranks, size);
    MPI_Group handle = group == NULL ? NULL : mpi_group_handle(group);
    if (handle == NULL) {
        if (group != NULL) {
            mpi_group_release(group);
        }
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for a group of %d", size);
    }
    *newgroup = handle;
    return MPI_SUCCESS;
}

static uint32_t *ranks_make(int count)
{
    return malloc(((size_t)count + 1) * sizeof(uint32_t));
}

int mpi_group_size(MPI_Group group, int *size)
{
    struct mpi_group *found;
    int code = group_find(group, &found);
    if (code == MPI_SUCCESS) {
        *size = found->size;
    }
    return code;
}

int mpi_group_rank(MPI_Group group, int *rank)
{
    struct mpi_group *found;
    int code = group_find(group, &found);
    if (code == MPI_SUCCESS) {
        *rank = found->rank;
    }
    return code;
}

int mpi_group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[])
{
    struct mpi_group *from, *to;
    int code = groups_find(group1, group2, &from, &to);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (n < 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "%d ranks", n);
    }
    for (int at = 0; at < n; at++) {
        if (ranks1[at] != MPI_PROC_NULL && (ranks1[at] < 0 || ranks1[at] >= from->size)) {
            return mpi_error(MPI_COMM_NULL, MPI_ERR_RANK, "rank %d is none of the %d of the group", ranks1[at],
                             from->size);
        }
        ranks2[at] = ranks1[at] == MPI_PROC_NULL ? MPI_PROC_NULL : mpi_group_rank_of(to, from->ranks[ranks1[at]]);
    }
    return MPI_SUCCESS;
}

int mpi_group_compare(MPI_Group group1, MPI_Group group2, int *result)
{
    struct mpi_group *a, *b;
    int code = groups_find(group1, group2, &a, &b);
    if (code == MPI_SUCCESS) {
        *result = mpi_group_relation(a, b);
    }
    return code;
}

/* Adds the members of `from` that are (`in`) or are not members of `other`. */
static int ranks_add(uint32_t *ranks, int size, const struct mpi_group *from, const struct mpi_group *other, bool in)
{
    for (int rank = 0; rank < from->size; rank++) {
        if ((mpi_group_rank_of(other, from->ranks[rank]) != MPI_UNDEFINED) == in) {
            ranks[size++] = from->ranks[rank];
        }
    }
    return size;
}

int mpi_group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    struct mpi_group *a, *b;
    int code = groups_find(group1, group2, &a, &b);
    if (code != MPI_SUCCESS) {
        return code;
    }
    uint32_t *ranks = ranks_make(a->size + b->size);
    int size = ranks == NULL ? 1 : ranks_add(ranks, 0, a, a, true);
    if (ranks != NULL) {
        size = ranks_add(ranks, size, b, a, false);
    }
    return group_return(ranks, size, newgroup);
}

/* The members of group1 that are (`in`) or are not members of group2. */
static int group_filter(MPI_Group group1, MPI_Group group2, bool in, MPI_Group *newgroup)
{
    struct mpi_group *a, *b;
    int code = groups_find(group1, group2, &a, &b);
    if (code != MPI_SUCCESS) {
        return code;
    }
    uint32_t *ranks = ranks_make(a->size);
    return group_return(ranks, ranks == NULL ? 1 : ranks_add(ranks, 0, a, b, in), newgroup);
}

int mpi_group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    return group_filter(group1, group2, true, newgroup);
}

int mpi_group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    return group_filter(group1, group2, false, newgroup);
}

/* Marks each of the ranks given; a rank that is out of range or comes twice is an error. */
static int ranks_mark(const struct mpi_group *group, int n, const int ranks[], bool *marks)
{
    for (int at = 0; at < n; at++) {
        if (ranks[at] < 0 || ranks[at] >= group->size) {
            return mpi_error(MPI_COMM_NULL, MPI_ERR_RANK, "rank %d is none of the %d of the group", ranks[at],
                             group->size);
        }
        if (marks[ranks[at]]) {
            return mpi_error(MPI_COMM_NULL, MPI_ERR_RANK, "rank %d is given twice", ranks[at]);
        }
        marks[ranks[at]] = true;
    }
    return MPI_SUCCESS;
}

static int group_choose(const struct mpi_group *group, int n, const int ranks[], bool in, MPI_Group *newgroup)
{
    if (n < 0 || n > group->size) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "%d ranks of a group of %d", n, group->size);
    }
    bool *marks = calloc((size_t)group->size + 1, sizeof(*marks));
    uint32_t *chosen = ranks_make(group->size);
    int code = marks == NULL || chosen == NULL ? mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for a group")
                                               : ranks_mark(group, n, ranks, marks);
    int size = 0;
    for (int at = 0; code == MPI_SUCCESS && in && at < n; at++) {
        chosen[size++] = group->ranks[ranks[at]];
    }
    for (int rank = 0; code == MPI_SUCCESS && !in && rank < group->size; rank++) {
        if (!marks[rank]) {
            chosen[size++] = group->ranks[rank];
        }
    }
    free(marks);
    if (code != MPI_SUCCESS) {
        free(chosen);
        return code;
    }
    return group_return(chosen, size, newgroup);
}

int mpi_group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
    struct mpi_group *found;
    int code = group_find(group, &found);
    return code != MPI_SUCCESS ? code : group_choose(found, n, ranks, true, newgroup);
}

int mpi_group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
    struct mpi_group *found;
    int code = group_find(group, &found);
    return code != MPI_SUCCESS ? code : group_choose(found, n, ranks, false, newgroup);
}

/* The ranks of (first, last, stride) triplets; *list is freed by the caller. */
static int ranges_expand(const struct mpi_group *group, int n, int ranges[][3], int **list, int *count)
{
    *count = 0;
    *list = n < 0 ? NULL : malloc(((size_t)group->size + 1) * sizeof(int));
    if (*list == NULL) {
        return mpi_error(MPI_COMM_NULL, n < 0 ? MPI_ERR_ARG : MPI_ERR_NO_MEM, "%d ranges", n);
    }
    for (int range = 0; range < n; range++) {
        int first = ranges[range][0], last = ranges[range][1], stride = ranges[range][2];
        if (stride == 0) {
            free(*list);
            return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "range %d has stride 0", range);
        }
        for (long long rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
            if (*count == group->size || rank < 0 || rank >= group->size) {
                free(*list);
                return mpi_error(MPI_COMM_NULL, MPI_ERR_RANK,
                                 "range %d (%d to %d by %d) leaves the %d ranks of the group, or names one twice",
                                 range, first, last, stride, group->size);
            }
            (*list)[(*count)++] = (int)rank;
        }
    }
    return MPI_SUCCESS;
}

static int group_choose_ranges(MPI_Group group, int n, int ranges[][3], bool in, MPI_Group *newgroup)
{
    struct mpi_group *found;
    int *list;
    int count;
    int code = group_find(group, &found);
    if (code == MPI_SUCCESS) {
        code = ranges_expand(found, n, ranges, &list, &count);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = group_choose(found, count, list, in, newgroup);
    free(list);
    return code;
}

int mpi_group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
    return group_choose_ranges(group, n, ranges, true, newgroup);
}

int mpi_group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
    return group_choose_ranges(group, n, ranges, false, newgroup);
}

int mpi_group_free(MPI_Group *group)
{
    struct mpi_group *found;
    int code = group_find(*group, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (*group != MPI_GROUP_EMPTY) {
        mpi_group_deregister(found); /* a communicator may hold the group still, but a freed handle names nothing */
        mpi_group_release(found);
    }
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

int mpi_comm_group(MPI_Comm comm, MPI_Group *group)
{
    struct mpi_comm *found = mpi_comm_find(comm);
    if (found == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
    }
    uint32_t *ranks = ranks_make(found->size);
    for (int rank = 0; ranks != NULL && rank < found->size; rank++) {
        ranks[rank] = found->group->ranks[rank];
    }
    return group_return(ranks, found->size, group);
}
