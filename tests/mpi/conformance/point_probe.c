/* Probes, and messages that are matched by a probe and received later (MPI 5.0, 3.8). */
#include "tests/mpi/expect.h"

#include <string.h>

/* The ways to learn of a message. */
static void by_probe(int source, int tag, MPI_Message *message, MPI_Status *status)
{
    EXPECT_EQUAL(MPI_Probe(source, tag, MPI_COMM_WORLD, status), MPI_SUCCESS);
    *message = MPI_MESSAGE_NULL;
}

static void by_iprobe(int source, int tag, MPI_Message *message, MPI_Status *status)
{
    for (int flag = 0; !flag;) {
        MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, status);
    }
    *message = MPI_MESSAGE_NULL;
}

static void by_mprobe(int source, int tag, MPI_Message *message, MPI_Status *status)
{
    EXPECT_EQUAL(MPI_Mprobe(source, tag, MPI_COMM_WORLD, message, status), MPI_SUCCESS);
}

static void by_improbe(int source, int tag, MPI_Message *message, MPI_Status *status)
{
    for (int flag = 0; !flag;) {
        MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, message, status);
    }
}

static void (*const probes[])(int, int, MPI_Message *, MPI_Status *) = {by_probe, by_iprobe, by_mprobe, by_improbe};

/* Receives what a probe told of, by the message it gave, or else by its source and tag; `immediate`: by a request. */
static void receive(MPI_Message *message, const MPI_Status *probed, int *in, int count, int immediate,
                    MPI_Status *status)
{
    MPI_Request request;
    if (*message == MPI_MESSAGE_NULL) {
        MPI_Recv(in, count, MPI_INT, probed->MPI_SOURCE, probed->MPI_TAG, MPI_COMM_WORLD, status);
    } else if (immediate) {
        EXPECT_EQUAL(MPI_Imrecv(in, count, MPI_INT, message, &request), MPI_SUCCESS);
        EXPECT(*message == MPI_MESSAGE_NULL);
        MPI_Wait(&request, status);
    } else {
        EXPECT_EQUAL(MPI_Mrecv(in, count, MPI_INT, message, status), MPI_SUCCESS);
    }
    EXPECT(*message == MPI_MESSAGE_NULL);
}

static void probed_then_received(int count)
{
    int *out = malloc((size_t)count * sizeof(int) + 1), *in = malloc((size_t)count * sizeof(int) + 1);
    for (int i = 0; i < count; i++) {
        out[i] = i * 3 + expect_rank;
    }
    for (int way = 0; way < 16; way++) {
        int source = way & 4 ? MPI_ANY_SOURCE : expect_left, tag = way & 8 ? MPI_ANY_TAG : way;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Message message;
        MPI_Status probed, received;
        (way % 3 == 0 ? MPI_Issend : MPI_Isend)(out, count, MPI_INT, expect_right, way, MPI_COMM_WORLD, &request);
        probes[way & 3](source, tag, &message, &probed);
        EXPECT_RECEIVED(&probed, expect_left, way, MPI_INT, count);
        memset(in, 0, (size_t)count * sizeof(int));
        receive(&message, &probed, in, count, way & 4, &received);
        EXPECT_RECEIVED(&received, expect_left, way, MPI_INT, count);
        int wrong = 0;
        for (int i = 0; i < count; i++) {
            wrong += in[i] != i * 3 + expect_left;
        }
        EXPECT_EQUAL(wrong, 0);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD); /* the next one must not be what a wildcard finds */
    }
    free(out);
    free(in);
}

static int is_found(int source, int tag, MPI_Comm comm)
{
    int flag = -1;
    MPI_Iprobe(source, tag, comm, &flag, MPI_STATUS_IGNORE);
    return flag;
}

static void nothing_is_found_where_nothing_is(void)
{
    int flag = 1, value = 1;
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    EXPECT_EQUAL(flag, 0);
    flag = 1;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
    EXPECT_EQUAL(flag, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(&value, 1, MPI_INT, expect_right, 5, MPI_COMM_WORLD, &request);
    MPI_Probe(expect_left, 5, MPI_COMM_WORLD, &status);
    EXPECT_EQUAL(is_found(expect_left, 6, MPI_COMM_WORLD), 0);
    EXPECT_EQUAL(is_found(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF), 0);
    EXPECT_EQUAL(is_found(expect_left, 5, MPI_COMM_WORLD), 1);
    MPI_Recv(&value, 1, MPI_INT, expect_left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(is_found(expect_left, MPI_ANY_TAG, MPI_COMM_WORLD), 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void expect_nobody(const MPI_Status *status)
{
    EXPECT_RECEIVED(status, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
}

/* 3.10, 3.8.2 */
static void nobody_answers_at_once(void)
{
    int flag = 0, value = 7;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request request;
    MPI_Status status;
    EXPECT_EQUAL(MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status), MPI_SUCCESS);
    expect_nobody(&status);
    MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status);
    EXPECT(flag);
    expect_nobody(&status);
    for (int immediate = 0; immediate < 2; immediate++) {
        flag = 0;
        if (immediate) {
            MPI_Improbe(MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
            EXPECT(flag);
        } else {
            MPI_Mprobe(MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        }
        EXPECT(message == MPI_MESSAGE_NO_PROC);
        expect_nobody(&status);
        memset(&status, 0x5a, sizeof(status));
        if (immediate) {
            EXPECT_EQUAL(MPI_Imrecv(&value, 1, MPI_INT, &message, &request), MPI_SUCCESS);
            MPI_Wait(&request, &status);
        } else {
            EXPECT_EQUAL(MPI_Mrecv(&value, 1, MPI_INT, &message, &status), MPI_SUCCESS);
        }
        EXPECT(message == MPI_MESSAGE_NULL);
        expect_nobody(&status);
        EXPECT_EQUAL(value, 7);
    }
}

/* A message that a matched probe took is invisible to others: neither a probe nor a receive finds it; the others keep
 * their order. */
static void received_messages_are_removed(int count)
{
    enum { COUNT = 6 };
    int *out[COUNT], *in = calloc((size_t)count, sizeof(int));
    MPI_Request sends[COUNT], receives[COUNT];
    MPI_Message messages[COUNT];
    MPI_Status status;
    for (int i = 0; i < COUNT; i++) {
        out[i] = calloc((size_t)count, sizeof(int));
        out[i][count - 1] = i + 1;
        MPI_Isend(out[i], count, MPI_INT, expect_right, 4, MPI_COMM_WORLD, &sends[i]);
    }
    MPI_Mprobe(expect_left, 4, MPI_COMM_WORLD, &messages[0], &status);
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &messages[1], &status);
    MPI_Recv(in, count, MPI_INT, expect_left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in[count - 1], 3);
    MPI_Mprobe(expect_left, MPI_ANY_TAG, MPI_COMM_WORLD, &messages[3], &status);
    MPI_Recv(in, count, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in[count - 1], 5);
    MPI_Mprobe(expect_left, 4, MPI_COMM_WORLD, &messages[5], &status);
    EXPECT_EQUAL(is_found(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD), 0);
    const int order[] = {5, 0, 3, 1}; /* of receiving: as the program likes */
    for (int i = 0; i < 4; i++) {
        int *to = calloc((size_t)count, sizeof(int));
        MPI_Imrecv(to, count, MPI_INT, &messages[order[i]], &receives[0]);
        MPI_Wait(&receives[0], &status);
        EXPECT_EQUAL(to[count - 1], order[i] + 1);
        EXPECT_RECEIVED(&status, expect_left, 4, MPI_INT, count);
        free(to);
    }
    MPI_Waitall(COUNT, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COUNT; i++) {
        free(out[i]);
    }
    free(in);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* 3.8.2: a synchronous send may complete when its message has been matched and the receive begun: not before
 * MPI_Mprobe. */
static void matched_probes_match_synchronous_sends(void)
{
    int out = 4, in = 0, flag = 1;
    MPI_Request send;
    MPI_Message message;
    MPI_Issend(&out, 1, MPI_INT, expect_right, 9, MPI_COMM_WORLD, &send);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(flag, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Mprobe(expect_left, 9, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in, 4);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
}

/* Matched messages may be too long for their receive (3.2.4), too. */
static void too_long_is_truncated(int count)
{
    int *out = calloc((size_t)count, sizeof(int)), in[3] = {9, 9, 9};
    MPI_Request send, request;
    MPI_Message message;
    for (int immediate = 0; immediate < 2; immediate++) {
        MPI_Isend(out, count, MPI_INT, expect_right, 2, MPI_COMM_WORLD, &send);
        MPI_Mprobe(expect_left, 2, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        if (immediate) {
            MPI_Imrecv(in, 2, MPI_INT, &message, &request);
            EXPECT_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        } else {
            EXPECT_CLASS(MPI_Mrecv(in, 2, MPI_INT, &message, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        }
        EXPECT_EQUAL(in[2], 9);
        EXPECT_EQUAL(MPI_Wait(&send, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    free(out);
}

/* Thousands of unexpected messages: found by tag from the last to the first, then the others in their order. */
static void many_unexpected(void)
{
    enum { COUNT = 3000 };
    static int out[COUNT];
    static MPI_Request sends[COUNT];
    for (int i = 0; i < COUNT; i++) {
        out[i] = i;
        MPI_Isend(&out[i], 1, MPI_INT, expect_right, i, MPI_COMM_WORLD, &sends[i]);
    }
    for (int i = COUNT - 2; i >= 0; i -= 2) {
        int in = -1;
        MPI_Status status;
        MPI_Probe(i % 4 == 0 ? expect_left : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &status);
        EXPECT_RECEIVED(&status, expect_left, i, MPI_INT, 1);
        MPI_Recv(&in, 1, MPI_INT, expect_left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(in, i);
    }
    for (int i = 1; i < COUNT; i += 2) {
        int in = -1;
        MPI_Message message;
        MPI_Status status;
        MPI_Mprobe(i % 4 == 1 ? expect_left : MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        EXPECT_RECEIVED(&status, expect_left, i, MPI_INT, 1);
        MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(in, i);
    }
    MPI_Waitall(COUNT, sends, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* From all to rank 0, lengths unknown to it, in turn long and short. */
static void lengths_learnt_by_probes(void)
{
    enum { EACH = 20, LONG = 20000 };
    static int out[LONG + EACH];
    MPI_Request sends[EACH];
    for (int i = 0; i < EACH; i++) {
        out[i] = i;
        MPI_Isend(out + i, i % 2 ? LONG + i - EACH : i + 1, MPI_INT, 0, i, MPI_COMM_WORLD, &sends[i]);
    }
    for (int i = 0; expect_rank == 0 && i < EACH * expect_size; i++) {
        MPI_Message message;
        MPI_Status status;
        int count;
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        EXPECT_EQUAL(count, status.MPI_TAG % 2 ? LONG + status.MPI_TAG - EACH : status.MPI_TAG + 1);
        int *in = malloc((size_t)count * sizeof(int));
        MPI_Mrecv(in, count, MPI_INT, &message, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(in[0], status.MPI_TAG);
        free(in);
    }
    MPI_Waitall(EACH, sends, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    nothing_is_found_where_nothing_is();
    const int counts[] = {0, 1, 10, 2048, 5000, 300000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        probed_then_received(counts[i]);
    }
    nobody_answers_at_once();
    received_messages_are_removed(1);
    received_messages_are_removed(30000);
    matched_probes_match_synchronous_sends();
    too_long_is_truncated(5);
    too_long_is_truncated(30000);
    MPI_Barrier(MPI_COMM_WORLD);
    many_unexpected();
    lengths_learnt_by_probes();
    return expect_end();
}
