/* Blocking sends and receives (MPI 5.0, 3.2 to 3.6, 3.10, 3.11): modes, wildcards, order, truncation, MPI_PROC_NULL,
 * errors. */
#include "tests/mpi/expect.h"

#include <string.h>

static int (*const sends[])(const void *, int, MPI_Datatype, int, int, MPI_Comm) = {MPI_Send, MPI_Ssend, MPI_Rsend};

/* Each of three modes, in a ring and with itself, from 0 bytes to some that no path takes at once. */
static void messages_arrive_whole(int bytes)
{
    char *out = malloc((size_t)bytes + 1), *in = malloc((size_t)bytes + 1);
    MPI_Status status;
    MPI_Request request;
    for (int i = 0; i < bytes; i++) {
        out[i] = (char)(i * 7 + expect_rank);
    }
    for (int mode = 0; mode < 3; mode++) {
        memset(in, 0x55, (size_t)bytes + 1);
        MPI_Irecv(in, bytes, MPI_CHAR, expect_left, mode, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD); /* a ready send may not come before its receive */
        sends[mode](out, bytes, MPI_CHAR, expect_right, mode, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        EXPECT_RECEIVED(&status, expect_left, mode, MPI_CHAR, bytes);
        int wrong = 0;
        for (int i = 0; i < bytes; i++) {
            wrong += in[i] != (char)(i * 7 + expect_left);
        }
        EXPECT_EQUAL(wrong, 0);
        EXPECT_EQUAL(in[bytes], 0x55);
    }
    free(out);
    free(in);
}

/* Messages of one sender are received in the order of sending, long and short ones mixed, in any modes (3.5). */
static void order_is_kept(void)
{
    enum { COUNT = 200 };
    static int out[COUNT][5000], in[5000];
    MPI_Request requests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        out[i][0] = i;
        int count = i % 3 == 0 ? 5000 : i % 5;
        (i % 2 == 0 ? MPI_Isend : MPI_Issend)(out[i], count, MPI_INT, expect_right, 4, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        MPI_Status status;
        in[0] = i;
        MPI_Recv(in, 5000, MPI_INT, i % 2 == 0 ? expect_left : MPI_ANY_SOURCE, i % 3 == 0 ? 4 : MPI_ANY_TAG,
                 MPI_COMM_WORLD, &status);
        EXPECT_EQUAL(expect_count(&status, MPI_INT), i % 3 == 0 ? 5000 : i % 5);
        EXPECT_EQUAL(in[0], i);
        EXPECT_EQUAL(status.MPI_SOURCE, expect_left);
    }
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
}

/* Tags and communicators keep messages apart. */
static void tags_and_contexts_select(void)
{
    MPI_Comm other;
    int in = -1;
    int one = 1, two = 2, three = 3;
    MPI_Request requests[3];
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Isend(&one, 1, MPI_INT, expect_right, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&two, 1, MPI_INT, expect_right, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&three, 1, MPI_INT, expect_right, 1, other, &requests[2]);
    MPI_Recv(&in, 1, MPI_INT, expect_left, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in, 3);
    MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in, 2);
    MPI_Recv(&in, 1, MPI_INT, expect_left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in, 1);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&other);
    EXPECT(other == MPI_COMM_NULL);
}

/* A message that is too long is an error of the receive; the part that fits is there, the sender is done (3.2.4). */
static void too_long_is_truncated(int sent)
{
    int *out = calloc((size_t)sent, sizeof(int)), in[4] = {9, 9, 9, 9};
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < sent; i++) {
        out[i] = i;
    }
    MPI_Isend(out, sent, MPI_INT, expect_right, 3, MPI_COMM_WORLD, &request);
    EXPECT_CLASS(MPI_Recv(in, 3, MPI_INT, expect_left, 3, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
    EXPECT_EQUAL(in[3], 9);
    EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    free(out);
}

static void nobody_answers_at_once(void)
{
    int value = 5, count;
    MPI_Status status;
    EXPECT_EQUAL(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQUAL(value, 5);
    EXPECT_EQUAL(count, 0);
    EXPECT_EQUAL(status.MPI_SOURCE, MPI_PROC_NULL);
    EXPECT_EQUAL(status.MPI_TAG, MPI_ANY_TAG);
}

static void send_and_receive_in_one_call(void)
{
    int out = expect_rank, in = -1, both = expect_rank;
    MPI_Status status;
    MPI_Sendrecv(&out, 1, MPI_INT, expect_right, 6, &in, 1, MPI_INT, expect_left, 6, MPI_COMM_WORLD, &status);
    EXPECT_EQUAL(in, expect_left);
    EXPECT_EQUAL(status.MPI_SOURCE, expect_left);
    MPI_Sendrecv_replace(&both, 1, MPI_INT, expect_right, 7, expect_left, 7, MPI_COMM_WORLD, &status);
    EXPECT_EQUAL(both, expect_left);
    both = expect_rank;
    MPI_Sendrecv_replace(&both, 1, MPI_INT, MPI_PROC_NULL, 7, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &status);
    EXPECT_EQUAL(both, expect_rank);
    EXPECT_EQUAL(status.MPI_SOURCE, MPI_PROC_NULL);
}

/* Buffered sends complete without a receive as long as the attached buffer has room (3.6). */
static void buffered_sends_need_their_buffer(void)
{
    enum { COUNT = 10, BYTES = 20000 };
    static char out[BYTES], in[BYTES];
    int bytes = COUNT * (BYTES + MPI_BSEND_OVERHEAD), found_bytes;
    char *memory = malloc((size_t)bytes), *found;
    memset(out, 7, BYTES);
    EXPECT_CLASS(MPI_Bsend(out, 1, MPI_CHAR, expect_right, 8, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    EXPECT_EQUAL(MPI_Buffer_attach(memory, bytes), MPI_SUCCESS);
    for (int i = 0; i < COUNT; i++) {
        out[0] = (char)i;
        EXPECT_EQUAL(MPI_Bsend(out, BYTES, MPI_CHAR, expect_right, 8, MPI_COMM_WORLD), MPI_SUCCESS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) {
        MPI_Recv(in, BYTES, MPI_CHAR, expect_left, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(in[0], i);
        EXPECT_EQUAL(in[BYTES - 1], 7);
    }
    EXPECT_EQUAL(MPI_Buffer_detach(&found, &found_bytes), MPI_SUCCESS);
    EXPECT(found == memory);
    EXPECT_EQUAL(found_bytes, bytes);
    free(memory);
}

/* The greatest tag that MPI_TAG_UB tells can be used. */
static void the_greatest_tag_works(void)
{
    int *tag_max, flag, out = 1, in = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_max, &flag);
    EXPECT(flag);
    EXPECT(*tag_max >= 32767);
    MPI_Sendrecv(&out, 1, MPI_INT, expect_right, *tag_max, &in, 1, MPI_INT, expect_left, *tag_max, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in, 1);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    const int sizes[] = {0, 1, 39, 40, 41, 8191, 8192, 8193, 16384, 65537, 3000001};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        messages_arrive_whole(sizes[i]);
    }
    order_is_kept();
    tags_and_contexts_select();
    too_long_is_truncated(5);
    too_long_is_truncated(50000);
    nobody_answers_at_once();
    send_and_receive_in_one_call();
    buffered_sends_need_their_buffer();
    the_greatest_tag_works();
    return expect_end();
}
