/* Making, comparing and freeing communicators (MPI 5.0, 7.4). */
#include "tests/mpi/expect.h"

#include <string.h>

/* Expects that a communicator works, and that it has these ranks of the world: a collective, and a message around. */
static void expect_works(MPI_Comm comm, int size, const int world_ranks[])
{
    int found_size = -1, rank = -1, from = -1, *all = malloc((size_t)size * sizeof(int));
    MPI_Comm_size(comm, &found_size);
    MPI_Comm_rank(comm, &rank);
    EXPECT_EQUAL(found_size, size);
    if (found_size == size) {
        EXPECT_EQUAL(world_ranks[rank], expect_rank);
        MPI_Allgather(&expect_rank, 1, MPI_INT, all, 1, MPI_INT, comm);
        EXPECT(memcmp(all, world_ranks, (size_t)size * sizeof(int)) == 0);
        MPI_Sendrecv(&expect_rank, 1, MPI_INT, (rank + 1) % size, 5, &from, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                     comm, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(from, world_ranks[(rank + size - 1) % size]);
    }
    free(all);
}

/* The ranks of the world from `first` by `stride`: that of many a communicator here. */
static int *ranks_from(int first, int stride, int *count)
{
    int *ranks = malloc((size_t)expect_size * sizeof(int));
    *count = 0;
    for (int rank = first; rank >= 0 && rank < expect_size; rank += stride) {
        ranks[(*count)++] = rank;
    }
    return ranks;
}

static void expect_works_and_free(MPI_Comm comm, int first, int stride)
{
    int count, *ranks = ranks_from(first, stride, &count);
    expect_works(comm, count, ranks);
    free(ranks);
    EXPECT_EQUAL(MPI_Comm_free(&comm), MPI_SUCCESS);
    EXPECT(comm == MPI_COMM_NULL);
}

static int compare(MPI_Comm a, MPI_Comm b)
{
    int result = -1;
    EXPECT_EQUAL(MPI_Comm_compare(a, b, &result), MPI_SUCCESS);
    return result;
}

static void duplicates(void)
{
    MPI_Comm copy, copy_of_copy;
    int flag = 1;
    EXPECT_EQUAL(MPI_Comm_dup(MPI_COMM_WORLD, &copy), MPI_SUCCESS);
    EXPECT_EQUAL(compare(copy, MPI_COMM_WORLD), MPI_CONGRUENT);
    EXPECT_EQUAL(compare(copy, copy), MPI_IDENT);
    MPI_Comm_test_inter(copy, &flag);
    EXPECT_EQUAL(flag, 0);
    MPI_Comm_dup(copy, &copy_of_copy);
    expect_works_and_free(copy, 0, 1);
    expect_works_and_free(copy_of_copy, 0, 1);
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    expect_works(copy, 1, &expect_rank);
    MPI_Comm_free(&copy);
}

/* Whether a hint has a value, and that is none of these. */
static int has_other(MPI_Info info, const char *key, const char *const values[3])
{
    char value[16];
    int length = sizeof(value), flag = 0;
    MPI_Info_get_string(info, key, &length, value, &flag);
    for (int i = 0; i < 3 && values[i] != NULL; i++) {
        flag = flag && strcmp(value, values[i]) != 0;
    }
    return flag;
}

static void duplicates_with_hints(void)
{
    MPI_Info info, found;
    MPI_Comm copy;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Info_set(info, "no_library_has_it", "true");
    MPI_Info_set(info, "causeway_algorithm", "bcast=no_algorithm_is_it");
    EXPECT_EQUAL(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &copy), MPI_SUCCESS);
    MPI_Info_free(&info);
    EXPECT_EQUAL(MPI_Comm_get_info(copy, &found), MPI_SUCCESS);
    EXPECT(!has_other(found, "mpi_assert_no_any_tag", (const char *const[3]){"true", "false"}));
    EXPECT(!has_other(found, "no_library_has_it", (const char *const[3]){NULL}));
    EXPECT(!has_other(found, "causeway_algorithm", (const char *const[3]){NULL})); /* a hint that is not used */
    EXPECT(!has_other(found, "causeway_path", (const char *const[3]){"shared", "wire", "rdma"})); /* if it has one */
    MPI_Info_free(&found);
    EXPECT_EQUAL(MPI_Comm_set_info(copy, MPI_INFO_ENV), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Comm_free(&copy), MPI_SUCCESS);
}

/* MPI_Comm_disconnect does not wait for inactive requests, or for complete ones without a wait. */
static void disconnects_with_requests_at_rest(void)
{
    MPI_Comm copy;
    MPI_Request requests[7], freed, by_messages;
    int *ones = calloc((size_t)expect_size * 4, sizeof(int)), *places = ones + expect_size;
    MPI_Datatype *types = malloc((size_t)expect_size * sizeof(*types));
    int to[5] = {-1, -1, -1, -1, -1}, sum = 0, flag = 0;
    int next = expect_right, before = expect_left;
    EXPECT_EQUAL(MPI_Comm_dup(MPI_COMM_WORLD, &copy), MPI_SUCCESS);
    MPI_Send_init(&expect_rank, 1, MPI_INT, next, 1, copy, &requests[0]);
    MPI_Recv_init(&to[0], 1, MPI_INT, before, 1, copy, &requests[1]);
    MPI_Allreduce_init(&expect_rank, &sum, 1, MPI_INT, MPI_SUM, copy, MPI_INFO_NULL, &requests[2]);
    MPI_Bsend_init(&expect_rank, 1, MPI_INT, MPI_PROC_NULL, 1, copy, &requests[3]); /* never started */
    for (int rank = 0; rank < expect_size; rank++) {
        ones[rank] = 1;
        types[rank] = MPI_INT;
        places[rank] = rank * (int)sizeof(int);
    }
    MPI_Alltoallw_init(ones, ones, places, types, places + expect_size, ones, places, types, copy, MPI_INFO_NULL,
                       &by_messages);
    MPI_Start(&by_messages);
    EXPECT_EQUAL(MPI_Wait(&by_messages, MPI_STATUS_IGNORE), MPI_SUCCESS);
    for (int round = 0; round < 2; round++) {
        MPI_Startall(3, requests);
        EXPECT_EQUAL(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
        EXPECT_EQUAL(to[0], before);
        EXPECT_EQUAL(sum, expect_size * (expect_size - 1) / 2);
    }
    MPI_Irecv(&to[1], 1, MPI_INT, before, 2, copy, &requests[4]);
    MPI_Isendrecv(&expect_rank, 1, MPI_INT, next, 3, &to[2], 1, MPI_INT, before, 3, copy, &requests[5]);
    MPI_Iallreduce(&expect_rank, &to[3], 1, MPI_INT, MPI_MAX, copy, &requests[6]);
    MPI_Send(&expect_rank, 1, MPI_INT, next, 2, copy);
    for (int at = 4; at < 7; at++) {
        do {
            MPI_Request_get_status(requests[at], &flag, MPI_STATUS_IGNORE);
        } while (!flag);
    }
    MPI_Isendrecv(&expect_rank, 1, MPI_INT, next, 4, &to[4], 1, MPI_INT, before, 4, copy, &freed);
    EXPECT_EQUAL(MPI_Request_free(&freed), MPI_SUCCESS); /* this one may be under way: it is waited for */
    EXPECT_EQUAL(MPI_Comm_disconnect(&copy), MPI_SUCCESS);
    EXPECT_EQUAL(to[4], before);
    EXPECT(copy == MPI_COMM_NULL);
    for (int at = 0; at < 4; at++) {
        EXPECT_EQUAL(MPI_Request_free(&requests[at]), MPI_SUCCESS);
    }
    EXPECT_EQUAL(MPI_Request_free(&by_messages), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Waitall(3, requests + 4, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    free(types);
    free(ones);
    EXPECT(to[1] == before && to[2] == before && to[3] == expect_size - 1);
}

/* Two at a time, used at once when they are there. */
static void duplicates_without_waiting(void)
{
    MPI_Comm copies[3];
    MPI_Request requests[3];
    for (int round = 0; round < 20; round++) {
        EXPECT_EQUAL(MPI_Comm_idup(MPI_COMM_WORLD, &copies[0], &requests[0]), MPI_SUCCESS);
        EXPECT_EQUAL(MPI_Comm_idup(MPI_COMM_WORLD, &copies[1], &requests[1]), MPI_SUCCESS);
        EXPECT_EQUAL(MPI_Comm_idup_with_info(MPI_COMM_SELF, MPI_INFO_NULL, &copies[2], &requests[2]), MPI_SUCCESS);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        expect_works_and_free(copies[1], 0, 1);
        EXPECT_EQUAL(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
        expect_works_and_free(copies[0], 0, 1);
        expect_works(copies[2], 1, &expect_rank);
        MPI_Comm_free(&copies[2]);
    }
}

static void splits(void)
{
    MPI_Comm part;
    EXPECT_EQUAL(MPI_Comm_split(MPI_COMM_WORLD, expect_rank % 2, 7, &part), MPI_SUCCESS); /* ties: as in the old one */
    expect_works_and_free(part, expect_rank % 2, 2);
    MPI_Comm_split(MPI_COMM_WORLD, 1000000007, -expect_rank, &part);
    expect_works_and_free(part, expect_size - 1, -1);
    MPI_Comm_split(MPI_COMM_WORLD, expect_rank % 3 == 0 ? 0 : MPI_UNDEFINED, 0, &part);
    if (expect_rank % 3 == 0) {
        expect_works_and_free(part, 0, 3);
    } else {
        EXPECT(part == MPI_COMM_NULL);
    }
    MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &part);
    EXPECT(part == MPI_COMM_NULL);
    MPI_Comm_split(MPI_COMM_WORLD, expect_rank, expect_rank, &part);
    expect_works(part, 1, &expect_rank);
    MPI_Comm_free(&part);
}

static void splits_by_host(void)
{
    MPI_Comm part, none;
    int size, flag = 0;
    EXPECT_EQUAL(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, expect_rank, MPI_INFO_NULL, &part),
                 MPI_SUCCESS);
    MPI_Comm_size(part, &size);
    EXPECT(size >= 1 && size <= expect_size);
    MPI_Allreduce(&size, &flag, 1, MPI_INT, MPI_MAX, part);
    EXPECT_EQUAL(flag, size);
    MPI_Comm_free(&part);
    EXPECT_EQUAL(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &none), MPI_SUCCESS);
    EXPECT(none == MPI_COMM_NULL);
}

/* 7.4.2: mpi_shared_memory is a resource that every library knows; of an unknown one no rank has a part. */
static void splits_by_resource(void)
{
    const int types[] = {MPI_COMM_TYPE_HW_GUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED};
    for (int i = 0; i < 2; i++) {
        MPI_Comm part, shared;
        MPI_Info info;
        int relation = -1;
        MPI_Info_create(&info);
        EXPECT_EQUAL(MPI_Comm_split_type(MPI_COMM_WORLD, types[i], 0, info, &part), MPI_SUCCESS);
        EXPECT(part == MPI_COMM_NULL);
        MPI_Info_set(info, "mpi_hw_resource_type", "a drawer");
        EXPECT_EQUAL(MPI_Comm_split_type(MPI_COMM_WORLD, types[i], 0, info, &part), MPI_SUCCESS);
        EXPECT(part == MPI_COMM_NULL);
        MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
        EXPECT_EQUAL(MPI_Comm_split_type(MPI_COMM_WORLD, types[i], 0, info, &part), MPI_SUCCESS);
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
        EXPECT_EQUAL(MPI_Comm_compare(part, shared, &relation), MPI_SUCCESS);
        EXPECT_EQUAL(relation, MPI_CONGRUENT);
        MPI_Comm_free(&shared);
        if (part != MPI_COMM_NULL) {
            MPI_Comm_free(&part);
        }
        MPI_Info_free(&info);
    }
}

static MPI_Group group_from(int first, int stride)
{
    int count, *ranks = ranks_from(first, stride, &count);
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, count, ranks, &group);
    MPI_Group_free(&world);
    free(ranks);
    return group;
}

static void made_of_groups(void)
{
    MPI_Group even = group_from(0, 2), mine = group_from(expect_rank % 2, 2), back = group_from(expect_size - 1, -1);
    MPI_Comm made;
    EXPECT_EQUAL(MPI_Comm_create(MPI_COMM_WORLD, even, &made), MPI_SUCCESS);
    if (expect_rank % 2 == 0) {
        expect_works_and_free(made, 0, 2);
    } else {
        EXPECT(made == MPI_COMM_NULL);
    }
    MPI_Comm_create(MPI_COMM_WORLD, mine, &made); /* disjoint ones in one call */
    expect_works_and_free(made, expect_rank % 2, 2);
    MPI_Comm_create(MPI_COMM_WORLD, back, &made);
    EXPECT_EQUAL(compare(made, MPI_COMM_WORLD), expect_size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
    expect_works_and_free(made, expect_size - 1, -1);
    MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &made);
    EXPECT(made == MPI_COMM_NULL);
    EXPECT_EQUAL(compare(MPI_COMM_WORLD, MPI_COMM_SELF), expect_size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
    MPI_Group_free(&even);
    MPI_Group_free(&mine);
    MPI_Group_free(&back);
}

/* 7.4.2: collective over the group only, so that groups with nothing in common make theirs at once, and others are not
 * asked. */
static void made_by_groups_alone(void)
{
    MPI_Group mine = group_from(expect_rank % 2, 2), even = group_from(0, 2);
    MPI_Comm made[3];
    for (int tag = 0; tag < 3; tag++) {
        EXPECT_EQUAL(MPI_Comm_create_group(MPI_COMM_WORLD, mine, tag, &made[tag]), MPI_SUCCESS);
    }
    for (int tag = 0; tag < 3; tag++) {
        expect_works_and_free(made[tag], expect_rank % 2, 2);
    }
    if (expect_rank % 2 == 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, even, 77, &made[0]);
        expect_works_and_free(made[0], 0, 2);
    }
    MPI_Group_free(&mine);
    MPI_Group_free(&even);
}

/* Rank 1 hears, in MPI_COMM_WORLD, that there are messages in a communicator whose making it has not yet waited for. */
static void messages_may_arrive_before_their_communicator(void)
{
    enum { LONG = 30000 };
    static int out[LONG], in[LONG];
    if (expect_size < 2) {
        return;
    }
    for (int round = 0; round < 20; round++) {
        MPI_Comm comm;
        MPI_Request making, sends[3];
        int token = 0;
        MPI_Comm_idup(MPI_COMM_WORLD, &comm, &making);
        if (expect_rank == 0) {
            MPI_Wait(&making, MPI_STATUS_IGNORE);
            out[0] = out[LONG - 1] = round;
            MPI_Isend(out, 1, MPI_INT, 1, 0, comm, &sends[0]);
            MPI_Issend(out, 1, MPI_INT, 1, 1, comm, &sends[1]);
            MPI_Isend(out, LONG, MPI_INT, 1, 2, comm, &sends[2]);
            MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
        } else if (expect_rank == 1) {
            MPI_Status status;
            MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&making, MPI_STATUS_IGNORE);
            for (int tag = 0; tag < 3; tag++) {
                MPI_Recv(in, LONG, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
                EXPECT_EQUAL(status.MPI_TAG, tag);
                EXPECT_EQUAL(in[0], round);
            }
            EXPECT_EQUAL(in[LONG - 1], round);
        } else {
            MPI_Wait(&making, MPI_STATUS_IGNORE);
        }
        MPI_Comm_free(&comm);
    }
}

/* 7.4.3: operations in progress in a freed communicator complete. */
static void freed_with_messages_under_way(void)
{
    enum { LONG = 50000 };
    static int out[LONG], in[2][LONG];
    MPI_Comm comm;
    MPI_Request requests[4];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    out[0] = out[LONG - 1] = expect_rank + 1;
    MPI_Irecv(in[0], 1, MPI_INT, expect_left, 0, comm, &requests[0]);
    MPI_Irecv(in[1], LONG, MPI_INT, expect_left, 1, comm, &requests[1]);
    MPI_Isend(out, LONG, MPI_INT, expect_right, 1, comm, &requests[2]);
    MPI_Isend(out, 1, MPI_INT, expect_right, 0, comm, &requests[3]);
    MPI_Comm_free(&comm);
    EXPECT(comm == MPI_COMM_NULL);
    EXPECT_EQUAL(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    EXPECT_EQUAL(in[0][0], expect_left + 1);
    EXPECT_EQUAL(in[1][LONG - 1], expect_left + 1);
}

static void many_one_after_the_other(void)
{
    for (int i = 0; i < 2000; i++) {
        MPI_Comm comm = MPI_COMM_NULL;
        int result = -1;
        if (i % 2 == 0) {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        } else {
            MPI_Comm_split(MPI_COMM_WORLD, 0, expect_rank, &comm);
        }
        if (i % 100 == 0) {
            MPI_Allreduce(&i, &result, 1, MPI_INT, MPI_MIN, comm);
            EXPECT_EQUAL(result, i);
        }
        EXPECT_EQUAL(MPI_Comm_free(&comm), MPI_SUCCESS);
    }
}

static void many_at_a_time(void)
{
    enum { COUNT = 300 };
    MPI_Comm comms[COUNT];
    for (int i = 0; i < COUNT; i++) {
        MPI_Comm_dup(i == 0 ? MPI_COMM_WORLD : comms[i / 2], &comms[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        MPI_Request request;
        int in = -1;
        MPI_Irecv(&in, 1, MPI_INT, expect_left, 0, comms[i], &request);
        MPI_Send(&i, 1, MPI_INT, expect_right, 0, comms[i]);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(in, i);
    }
    for (int i = 0; i < COUNT; i++) {
        MPI_Comm_free(&comms[(i * 7) % COUNT]);
    }
}

static void none_is_between_groups(void)
{
    MPI_Group group;
    int value;
    EXPECT_CLASS(MPI_Comm_remote_size(MPI_COMM_WORLD, &value), MPI_ERR_COMM);
    EXPECT_CLASS(MPI_Comm_remote_group(MPI_COMM_WORLD, &group), MPI_ERR_COMM);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    duplicates();
    duplicates_with_hints();
    disconnects_with_requests_at_rest();
    duplicates_without_waiting();
    splits();
    splits_by_host();
    splits_by_resource();
    made_of_groups();
    made_by_groups_alone();
    messages_may_arrive_before_their_communicator();
    freed_with_messages_under_way();
    many_one_after_the_other();
    many_at_a_time();
    none_is_between_groups();
    return expect_end();
}
