/* Groups for one-to-many (mpix.h, MPIX_Scatterv_*): random subsets of receivers, many movements, several groups open at
 * a time, and errors. */
#include <mpix.h>
#include <string.h>

#include "tests/mpi/expect.h"

enum { RANKS_MAX = 64, COUNT_MAX = 3000, GROUPS = 6 };

static unsigned long long random_state = 1;

/* The same at all ranks. */
static int drawn(int below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((random_state >> 33) % (unsigned long long)below);
}

/* Element `at` of a rank's data in round `round`. */
static int value_of(int round, int rank, int at)
{
    return round * 1000003 + rank * 10007 + at;
}

struct group {
    int root;
    int counts[RANKS_MAX], displacements[RANKS_MAX];
    MPIX_Scatterv_group handle;
};

/* Every second rank or so gets nothing; blocks lie apart, in falling order. */
static void group_open(struct group *group, int most, MPI_Comm comm)
{
    int at = 0;
    group->root = drawn(expect_size);
    for (int rank = expect_size - 1; rank >= 0; rank--) {
        group->counts[rank] = drawn(2) == 0 ? 0 : 1 + drawn(most);
        group->displacements[rank] = at;
        at += group->counts[rank] + drawn(3);
    }
    /* counts are significant at the root only */
    int code = MPIX_Scatterv_open_group(expect_rank == group->root ? group->counts : NULL, MPI_INT,
                                        group->counts[expect_rank], MPI_INT, group->root, comm, &group->handle);
    EXPECT_EQUAL(code, MPI_SUCCESS);
    EXPECT(group->handle != MPIX_SCATTERV_GROUP_NULL);
}

static void group_move(struct group *group, int round, int in_place)
{
    static int send[RANKS_MAX * (COUNT_MAX + 3)], receive[COUNT_MAX + 1];
    int own = group->counts[expect_rank];
    int is_root = expect_rank == group->root;
    for (int rank = 0; is_root && rank < expect_size; rank++) {
        for (int at = 0; at < group->counts[rank]; at++) {
            send[group->displacements[rank] + at] = value_of(round, rank, at);
        }
    }
    memset(receive, 0, sizeof(receive));
    receive[own] = 77;
    in_place = in_place && is_root;
    int code = MPIX_Scatterv_data_movement(is_root ? send : NULL, is_root ? group->counts : NULL,
                                           is_root ? group->displacements : NULL, MPI_INT,
                                           in_place ? MPI_IN_PLACE : receive, own, MPI_INT, group->root, group->handle);
    EXPECT_EQUAL(code, MPI_SUCCESS);
    long wrong = 0;
    for (int at = 0; at < own; at++) {
        int found = in_place ? send[group->displacements[expect_rank] + at] : receive[at];
        wrong += found != value_of(round, expect_rank, at);
    }
    EXPECT_EQUAL(wrong, 0);
    EXPECT_EQUAL(receive[own], 77);
}

static void groups_are_used(void)
{
    static const int sizes[] = {1, 20, 500, COUNT_MAX};
    struct group groups[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        group_open(&groups[i], sizes[i % 4], MPI_COMM_WORLD);
    }
    for (int round = 0; round < 40; round++) {
        group_move(&groups[drawn(GROUPS)], round, round % 5 == 0);
    }
    for (int i = 0; i < GROUPS; i++) {
        MPIX_Scatterv_group copy = groups[i].handle;
        EXPECT_EQUAL(MPIX_Scatterv_close_group(&groups[i].handle), MPI_SUCCESS);
        EXPECT(groups[i].handle == MPIX_SCATTERV_GROUP_NULL);
        EXPECT_CLASS(MPIX_Scatterv_close_group(&copy), MPI_ERR_ARG); /* twice */
    }
}

/* MPI_Comm_disconnect and MPI_Comm_free wait for no group of the communicator, and groups go on without it. */
static void groups_outlive_communicators(void)
{
    struct group groups[2];
    MPI_Comm copies[2];
    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copies[i]);
        group_open(&groups[i], COUNT_MAX, copies[i]);
        group_move(&groups[i], 50 + i, 0);
    }
    EXPECT_EQUAL(MPI_Comm_disconnect(&copies[0]), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Comm_free(&copies[1]), MPI_SUCCESS);
    for (int i = 0; i < 2; i++) {
        group_move(&groups[i], 52 + i, 1);
        EXPECT_EQUAL(MPIX_Scatterv_close_group(&groups[i].handle), MPI_SUCCESS);
    }
}

/* A type with holes, and large counts. */
static void derived_types(void)
{
    MPI_Datatype spaced;
    MPIX_Scatterv_group group;
    MPI_Count counts[RANKS_MAX];
    MPI_Aint displacements[RANKS_MAX];
    int send[RANKS_MAX * 4], receive[2] = {-1, -1};
    MPI_Type_vector(2, 1, 2, MPI_INT, &spaced);
    MPI_Type_commit(&spaced);
    for (int rank = 0; rank < expect_size; rank++) {
        counts[rank] = 1;
        displacements[rank] = rank;
    }
    for (int at = 0; at < expect_size * 4; at++) {
        send[at] = at;
    }
    EXPECT_EQUAL(MPIX_Scatterv_open_group_c(counts, spaced, 2, MPI_INT, 0, MPI_COMM_WORLD, &group), MPI_SUCCESS);
    EXPECT_EQUAL(MPIX_Scatterv_data_movement_c(send, counts, displacements, spaced, receive, 2, MPI_INT, 0, group),
                 MPI_SUCCESS);
    EXPECT_EQUAL(receive[0], 3 * expect_rank); /* the type's extent is three ints */
    EXPECT_EQUAL(receive[1], 3 * expect_rank + 2);
    EXPECT_EQUAL(MPIX_Scatterv_close_group(&group), MPI_SUCCESS);
    MPI_Type_free(&spaced);
}

static void what_is_wrong(void)
{
    MPIX_Scatterv_group group = MPIX_SCATTERV_GROUP_NULL;
    int counts[RANKS_MAX], displacements[RANKS_MAX], send[RANKS_MAX] = {0}, receive[4] = {0};
    for (int rank = 0; rank < expect_size; rank++) {
        counts[rank] = 1;
        displacements[rank] = rank;
    }
    /* before opening */
    EXPECT_CLASS(MPIX_Scatterv_data_movement(send, counts, displacements, MPI_INT, receive, 1, MPI_INT, 0, group),
                 MPI_ERR_ARG);
    EXPECT_CLASS(MPIX_Scatterv_close_group(&group), MPI_ERR_ARG);
    EXPECT_CLASS(MPIX_Scatterv_open_group(counts, MPI_INT, 1, MPI_INT, expect_size, MPI_COMM_WORLD, &group),
                 MPI_ERR_ROOT);
    /* one expects more: an error at all */
    int last = expect_size - 1;
    EXPECT_CLASS(
        MPIX_Scatterv_open_group(counts, MPI_INT, expect_rank == last ? 2 : 1, MPI_INT, 0, MPI_COMM_WORLD, &group),
        MPI_ERR_COUNT);
    EXPECT(group == MPIX_SCATTERV_GROUP_NULL);
    EXPECT_EQUAL(MPIX_Scatterv_open_group(counts, MPI_INT, 1, MPI_INT, 0, MPI_COMM_WORLD, &group), MPI_SUCCESS);
    if (expect_size > 1) {
        EXPECT_CLASS(MPIX_Scatterv_data_movement(send, counts, displacements, MPI_INT, receive, 1, MPI_INT, 1, group),
                     MPI_ERR_ROOT);
    }
    /* an altered count: an error at the root, and at the ranks that would wait for it */
    counts[last] = 2;
    int code = MPIX_Scatterv_data_movement(send, counts, displacements, MPI_INT, receive,
                                           expect_rank == 0 && last == 0 ? 2 : 1, MPI_INT, 0, group);
    if (expect_rank == 0) {
        EXPECT_CLASS(code, MPI_ERR_COUNT);
    } else {
        EXPECT(code != MPI_SUCCESS);
    }
    EXPECT_EQUAL(MPIX_Scatterv_close_group(&group), MPI_SUCCESS);
}

/* One rank's arguments are wrong, once: its movement has ended, no rank waits, and later data reaches the right
 * call. */
static void one_is_wrong_once(void)
{
    enum { ROUNDS = 6 };
    MPIX_Scatterv_group group;
    int counts[RANKS_MAX], displacements[RANKS_MAX], send[RANKS_MAX];
    for (int rank = 0; rank < expect_size; rank++) {
        counts[rank] = 1;
        displacements[rank] = rank;
    }
    EXPECT_EQUAL(MPIX_Scatterv_open_group(counts, MPI_INT, 1, MPI_INT, 0, MPI_COMM_WORLD, &group), MPI_SUCCESS);
    for (int round = 0; round < ROUNDS; round++) {
        int receive = -1;
        int wrong = expect_size == 1 || round % 2 != 0 ? -1
                    : round == 0                       ? expect_size - 1
                    : round == 2                       ? 0
                                                       : expect_size / 2;
        for (int rank = 0; rank < expect_size; rank++) {
            send[rank] = value_of(round, rank, 0);
        }
        int is_wrong = wrong == expect_rank;
        int code = MPIX_Scatterv_data_movement(send, counts, displacements, MPI_INT, &receive,
                                               is_wrong && round == 4 ? -1 : 1, MPI_INT, is_wrong && round < 4, group);
        if (is_wrong) {
            EXPECT_CLASS(code, round == 4 ? MPI_ERR_COUNT : MPI_ERR_ROOT);
        } else if (wrong < 0) {
            EXPECT_EQUAL(code, MPI_SUCCESS);
        } else if (code != MPI_SUCCESS) { /* a rank that has its data before the notice ends without an error */
            EXPECT_CLASS(code, MPI_ERR_NOT_SAME);
        }
        if (code == MPI_SUCCESS) {
            EXPECT_EQUAL(receive, value_of(round, expect_rank, 0));
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    EXPECT_EQUAL(MPIX_Scatterv_close_group(&group), MPI_SUCCESS);
    /* a root that differs at one rank: an error at all */
    if (expect_size > 2) {
        int code =
            MPIX_Scatterv_open_group(counts, MPI_INT, 1, MPI_INT, expect_rank == 2 ? 1 : 0, MPI_COMM_WORLD, &group);
        EXPECT(code != MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    groups_are_used();
    groups_outlive_communicators();
    derived_types();
    what_is_wrong();
    one_is_wrong_once();
    return expect_end();
}
