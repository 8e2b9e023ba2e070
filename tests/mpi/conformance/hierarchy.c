/* Calls on communicators whose ranks share hosts in part, often enough that they go by way of the hosts' first ranks:
 * every root, in place, types with gaps, operations that do not commute, communicators that come and go, and that end
 * the program's way. Results are compared with each rank's own computation. */
#include "../expect.h"

#include <string.h>

enum { ROUNDS = 6, COUNT = 1000, COMMS = 40 };

static int rank, size;

static int value_of(int of, int index, int round)
{
    return of * 1000003 + index * 17 + round;
}

static void broadcasts(MPI_Comm comm)
{
    for (int root = 0; root < size; root++) {
        for (int round = 0; round < ROUNDS; round++) {
            int data[COUNT];
            for (int i = 0; i < COUNT; i++)
                data[i] = rank == root ? value_of(root, i, round) : -1;
            EXPECT_EQUAL(MPI_Bcast(data, COUNT, MPI_INT, root, comm), MPI_SUCCESS);
            for (int i = 0; i < COUNT; i++)
                EXPECT_EQUAL(data[i], value_of(root, i, round));
        }
    }
}

/* Every second element: the others stay as they are. */
static void broadcasts_with_gaps(MPI_Comm comm)
{
    MPI_Datatype vector;
    MPI_Type_vector(COUNT / 2, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    for (int root = 0; root < size; root++) {
        int data[COUNT];
        for (int i = 0; i < COUNT; i++)
            data[i] = rank == root ? value_of(root, i, 0) : -i;
        EXPECT_EQUAL(MPI_Bcast(data, 1, vector, root, comm), MPI_SUCCESS);
        for (int i = 0; i < COUNT; i++)
            EXPECT_EQUAL(data[i], rank == root || i % 2 == 0 ? value_of(root, i, 0) : -i);
    }
    MPI_Type_free(&vector);
}

static long long sum_of(int index, int round)
{
    long long sum = 0;
    for (int of = 0; of < size; of++)
        sum += value_of(of, index, round);
    return sum;
}

static void sums(MPI_Comm comm, int in_place)
{
    for (int round = 0; round < ROUNDS; round++) {
        int root = round % size;
        long long own[COUNT], all[COUNT], one[COUNT];
        for (int i = 0; i < COUNT; i++) {
            own[i] = value_of(rank, i, round);
            all[i] = one[i] = in_place ? own[i] : -1;
        }
        EXPECT_EQUAL(MPI_Allreduce(in_place ? MPI_IN_PLACE : own, all, COUNT, MPI_LONG_LONG, MPI_SUM, comm),
                     MPI_SUCCESS);
        const void *from = in_place && rank == root ? MPI_IN_PLACE : own;
        EXPECT_EQUAL(MPI_Reduce(from, one, COUNT, MPI_LONG_LONG, MPI_SUM, root, comm), MPI_SUCCESS);
        for (int i = 0; i < COUNT; i++) {
            EXPECT_EQUAL(all[i], sum_of(i, round));
            EXPECT_EQUAL(one[i], rank == root ? sum_of(i, round) : in_place ? own[i] : -1);
        }
    }
}

static void where_the_greatest_is(MPI_Comm comm)
{
    struct {
        double value;
        int index;
    } own = {.value = rank == size / 2 ? 1e9 : rank, .index = rank}, greatest;
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT_EQUAL(MPI_Allreduce(&own, &greatest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm), MPI_SUCCESS);
        EXPECT_EQUAL(greatest.index, size / 2);
    }
}

/* x -> a x + b, one after the other: associative, and the order counts. */
static void maps_join(void *in, void *in_out, int *count, MPI_Datatype *type)
{
    (void)type;
    unsigned(*first)[2] = in, (*second)[2] = in_out;
    for (int i = 0; i < *count; i++) {
        second[i][1] = second[i][0] * first[i][1] + second[i][1];
        second[i][0] = second[i][0] * first[i][0];
    }
}

static void order_is_kept(MPI_Comm comm)
{
    MPI_Datatype map;
    MPI_Op join;
    MPI_Type_contiguous(2, MPI_UNSIGNED, &map);
    MPI_Type_commit(&map);
    MPI_Op_create(maps_join, 0, &join);
    unsigned wanted[2] = {1, 0};
    for (int of = 0; of < size; of++) {
        unsigned next[2] = {3u + (unsigned)of, 7u * (unsigned)of + 1};
        wanted[1] = next[0] * wanted[1] + next[1];
        wanted[0] *= next[0];
    }
    for (int round = 0; round < ROUNDS; round++) {
        unsigned own[2] = {3u + (unsigned)rank, 7u * (unsigned)rank + 1}, all[2];
        EXPECT_EQUAL(MPI_Allreduce(own, all, 1, map, join, comm), MPI_SUCCESS);
        EXPECT_EQUAL(all[0], wanted[0]);
        EXPECT_EQUAL(all[1], wanted[1]);
    }
    MPI_Op_free(&join);
    MPI_Type_free(&map);
}

/* No rank leaves a barrier before all have entered it: the count that each sends the next one after it has left proves
 * that all counts have gone up. */
static void barriers(MPI_Comm comm)
{
    for (int round = 1; round <= ROUNDS; round++) {
        int next = (rank + 1) % size, before = (rank + size - 1) % size, flag = 0, count = -1;
        MPI_Request request;
        EXPECT_EQUAL(MPI_Isend(&round, 1, MPI_INT, next, 5, comm, &request), MPI_SUCCESS);
        EXPECT_EQUAL(MPI_Barrier(comm), MPI_SUCCESS);
        while (!flag)
            MPI_Iprobe(before, 5, comm, &flag, MPI_STATUS_IGNORE);
        MPI_Recv(&count, 1, MPI_INT, before, 5, comm, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(count, round);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void all_of_it(MPI_Comm comm)
{
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    broadcasts(comm);
    broadcasts_with_gaps(comm);
    sums(comm, 0);
    sums(comm, 1);
    where_the_greatest_is(comm);
    order_is_kept(comm);
    barriers(comm);
}

int main(int argc, char **argv)
{
    MPI_Comm turned, half, many[COMMS];
    expect_start(&argc, &argv);
    all_of_it(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -expect_rank,
                   &turned); /* ranks of a host in another order, and no first one first */
    all_of_it(turned);
    MPI_Comm_split(MPI_COMM_WORLD, expect_rank % 2, expect_rank, &half); /* of each host some */
    all_of_it(half);
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_dup(i % 2 == 0 ? turned : half, &many[i]);
        for (int round = 0; round < ROUNDS; round++) {
            int one = 1, sum = 0, there;
            MPI_Comm_size(many[i], &there);
            EXPECT_EQUAL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, many[i]), MPI_SUCCESS);
            EXPECT_EQUAL(sum, there);
        }
        if (i % 3 != 0)
            MPI_Comm_free(&many[i]);
    }
    MPI_Comm_free(&turned); /* others are left to MPI_Finalize */
    return expect_end();
}
