/* Sends and receives that do not block, and the calls that complete them (MPI 5.0, 3.7, 3.11). */
#include "tests/mpi/expect.h"

#include <string.h>

/* The ways to complete a pair of requests. */
static void by_wait(MPI_Request requests[2], MPI_Status statuses[2])
{
    MPI_Wait(&requests[0], &statuses[0]);
    MPI_Wait(&requests[1], &statuses[1]);
}

static void by_test(MPI_Request requests[2], MPI_Status statuses[2])
{
    for (int done = 0, flag; done < 2; done += flag) {
        MPI_Test(&requests[done], &flag, &statuses[done]);
    }
}

static void by_waitall(MPI_Request requests[2], MPI_Status statuses[2])
{
    MPI_Waitall(2, requests, statuses);
}

static void by_testall(MPI_Request requests[2], MPI_Status statuses[2])
{
    for (int flag = 0; !flag;) {
        MPI_Testall(2, requests, &flag, statuses);
    }
}

static void by_waitany(MPI_Request requests[2], MPI_Status statuses[2])
{
    for (int i = 0; i < 2; i++) {
        MPI_Status status;
        int index = -1;
        MPI_Waitany(2, requests, &index, &status);
        EXPECT(index == 0 || index == 1);
        statuses[index & 1] = status;
    }
}

static void by_testany(MPI_Request requests[2], MPI_Status statuses[2])
{
    for (int done = 0, flag; done < 2; done += flag) {
        MPI_Status status;
        int index = -1;
        MPI_Testany(2, requests, &index, &flag, &status);
        if (flag) {
            EXPECT(index == 0 || index == 1);
            statuses[index & 1] = status;
        } else {
            EXPECT_EQUAL(index, MPI_UNDEFINED);
        }
    }
}

static void by_some(MPI_Request requests[2], MPI_Status statuses[2],
                    int (*some)(int, MPI_Request *, int *, int *, MPI_Status *), int least)
{
    for (int done = 0, count = 0; done < 2; done += count) {
        MPI_Status found[2];
        int indices[2];
        some(2, requests, &count, indices, found);
        EXPECT(count >= least && count <= 2 - done);
        if (count < 0) {
            return;
        }
        for (int i = 0; i < count; i++) {
            statuses[indices[i]] = found[i];
        }
    }
}

static void by_waitsome(MPI_Request requests[2], MPI_Status statuses[2])
{
    by_some(requests, statuses, MPI_Waitsome, 1);
}

static void by_testsome(MPI_Request requests[2], MPI_Status statuses[2])
{
    by_some(requests, statuses, MPI_Testsome, 0);
}

typedef int isend_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static isend_function *const modes[] = {MPI_Isend, MPI_Issend, MPI_Irsend, MPI_Ibsend};

static void (*const completions[])(MPI_Request[2], MPI_Status[2]) = {
    by_wait, by_test, by_waitall, by_testall, by_waitany, by_testany, by_waitsome, by_testsome,
};

static void all_modes_complete_by_all_calls(int count)
{
    int *out = malloc((size_t)count * sizeof(int) + 1), *in = malloc((size_t)count * sizeof(int) + 1);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    for (int i = 0; i < count; i++) {
        out[i] = i + expect_rank;
    }
    for (int mode = 0; mode < 4; mode++) {
        for (int how = 0; how < (int)(sizeof(completions) / sizeof(completions[0])); how++) {
            memset(in, 0xff, (size_t)count * sizeof(int));
            MPI_Irecv(in, count, MPI_INT, expect_left, how, MPI_COMM_WORLD, &requests[1]);
            MPI_Barrier(MPI_COMM_WORLD); /* for the ready send */
            modes[mode](out, count, MPI_INT, expect_right, how, MPI_COMM_WORLD, &requests[0]);
            completions[how](requests, statuses);
            EXPECT(requests[0] == MPI_REQUEST_NULL);
            EXPECT(requests[1] == MPI_REQUEST_NULL);
            EXPECT_RECEIVED(&statuses[1], expect_left, how, MPI_INT, count);
            for (int i = 0; i < count; i += 97) {
                EXPECT_EQUAL(in[i], i + expect_left);
            }
        }
    }
    free(out);
    free(in);
}

static void status_spoil(MPI_Status *status)
{
    memset(status, 0x5a, sizeof(*status));
}

/* 3.7.3 */
static void expect_empty(const MPI_Status *status)
{
    EXPECT_EQUAL(status->MPI_SOURCE, MPI_ANY_SOURCE);
    EXPECT_EQUAL(status->MPI_TAG, MPI_ANY_TAG);
    EXPECT_EQUAL(status->MPI_ERROR, MPI_SUCCESS);
    EXPECT_EQUAL(expect_count(status, MPI_INT), 0);
    EXPECT_EQUAL(expect_elements(status, MPI_INT), 0);
    EXPECT_EQUAL(expect_cancelled(status), 0);
}

/* Null and inactive requests only: complete at once, with empty statuses, by every call. */
static void nothing_active(MPI_Request first, MPI_Request second, int count)
{
    MPI_Request requests[2] = {first, second};
    MPI_Status statuses[2], status;
    int flag = 0, index = 0, some = 0, indices[2];
    status_spoil(&status);
    EXPECT_EQUAL(MPI_Waitany(count, requests, &index, &status), MPI_SUCCESS);
    EXPECT_EQUAL(index, MPI_UNDEFINED);
    expect_empty(&status);
    status_spoil(&status);
    EXPECT_EQUAL(MPI_Testany(count, requests, &index, &flag, &status), MPI_SUCCESS);
    EXPECT(flag);
    EXPECT_EQUAL(index, MPI_UNDEFINED);
    expect_empty(&status);
    EXPECT_EQUAL(MPI_Waitsome(count, requests, &some, indices, statuses), MPI_SUCCESS);
    EXPECT_EQUAL(some, MPI_UNDEFINED);
    EXPECT_EQUAL(MPI_Testsome(count, requests, &some, indices, statuses), MPI_SUCCESS);
    EXPECT_EQUAL(some, MPI_UNDEFINED);
    status_spoil(&statuses[0]);
    status_spoil(&statuses[1]);
    EXPECT_EQUAL(MPI_Waitall(count, requests, statuses), MPI_SUCCESS);
    for (int i = 0; i < count; i++) {
        expect_empty(&statuses[i]);
        status_spoil(&statuses[i]);
    }
    flag = 0;
    EXPECT_EQUAL(MPI_Testall(count, requests, &flag, statuses), MPI_SUCCESS);
    EXPECT(flag);
    for (int i = 0; i < count; i++) {
        expect_empty(&statuses[i]);
    }
    EXPECT(requests[0] == first && requests[1] == second);
}

static void nothing_active_to_query(MPI_Request first, MPI_Request second)
{
    MPI_Request requests[2] = {first, second};
    MPI_Status statuses[2];
    int flag = 0, index = 0, some = 0, indices[2];
    status_spoil(&statuses[0]);
    EXPECT_EQUAL(MPI_Request_get_status(first, &flag, &statuses[0]), MPI_SUCCESS);
    EXPECT(flag);
    expect_empty(&statuses[0]);
    flag = 0;
    status_spoil(&statuses[0]);
    EXPECT_EQUAL(MPI_Request_get_status_any(2, requests, &index, &flag, &statuses[0]), MPI_SUCCESS);
    EXPECT(flag);
    EXPECT_EQUAL(index, MPI_UNDEFINED);
    expect_empty(&statuses[0]);
    flag = 0;
    status_spoil(&statuses[1]);
    EXPECT_EQUAL(MPI_Request_get_status_all(2, requests, &flag, statuses), MPI_SUCCESS);
    EXPECT(flag);
    expect_empty(&statuses[1]);
    EXPECT_EQUAL(MPI_Request_get_status_some(2, requests, &some, indices, statuses), MPI_SUCCESS);
    EXPECT_EQUAL(some, MPI_UNDEFINED);
}

static void null_and_inactive_requests_are_no_work(void)
{
    MPI_Request null = MPI_REQUEST_NULL, inactive, copy;
    MPI_Status status;
    int value = 0, flag = 0;
    MPI_Recv_init(&value, 1, MPI_INT, expect_left, 0, MPI_COMM_WORLD, &inactive);
    copy = inactive;
    status_spoil(&status);
    EXPECT_EQUAL(MPI_Wait(&null, &status), MPI_SUCCESS);
    expect_empty(&status);
    status_spoil(&status);
    EXPECT_EQUAL(MPI_Test(&copy, &flag, &status), MPI_SUCCESS);
    EXPECT(flag);
    EXPECT(copy == inactive);
    expect_empty(&status);
    nothing_active(MPI_REQUEST_NULL, MPI_REQUEST_NULL, 2);
    nothing_active(inactive, MPI_REQUEST_NULL, 2);
    nothing_active(MPI_REQUEST_NULL, inactive, 2);
    nothing_active(MPI_REQUEST_NULL, MPI_REQUEST_NULL, 0);
    nothing_active_to_query(MPI_REQUEST_NULL, inactive);
    nothing_active_to_query(inactive, MPI_REQUEST_NULL);
    MPI_Request_free(&inactive);
}

static void send_now(int tag)
{
    MPI_Send(&tag, 1, MPI_INT, expect_right, tag, MPI_COMM_WORLD);
}

/* Missing messages are not reported, and requests that the calls skip can still be completed. */
static void only_complete_requests_are_reported(void)
{
    MPI_Request requests[6], inactive;
    MPI_Status status, statuses[6];
    int in[4] = {-1, -1, -1, -1}, spare, flag = 1, index = -1, count = -1, indices[6];
    for (int i = 0; i < 4; i++) {
        MPI_Irecv(&in[i], 1, MPI_INT, expect_left, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Recv_init(&spare, 1, MPI_INT, expect_left, 9, MPI_COMM_WORLD, &inactive);
    requests[4] = inactive;
    requests[5] = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Testany(6, requests, &index, &flag, &status);
    EXPECT_EQUAL(flag, 0);
    EXPECT_EQUAL(index, MPI_UNDEFINED);
    MPI_Testsome(6, requests, &count, indices, statuses);
    EXPECT_EQUAL(count, 0);
    MPI_Request_get_status_some(6, requests, &count, indices, statuses);
    EXPECT_EQUAL(count, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    send_now(2);
    MPI_Waitany(6, requests, &index, &status);
    EXPECT_EQUAL(index, 2);
    EXPECT_EQUAL(in[2], 2);
    EXPECT_EQUAL(status.MPI_TAG, 2);
    MPI_Request before[6];
    memcpy(before, requests, sizeof(before));
    MPI_Testall(6, requests, &flag, statuses);
    EXPECT_EQUAL(flag, 0);
    EXPECT(memcmp(before, requests, sizeof(before)) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    send_now(3);
    MPI_Waitsome(6, requests, &count, indices, statuses);
    EXPECT_EQUAL(count, 1);
    EXPECT_EQUAL(indices[0], 3);
    EXPECT_EQUAL(statuses[0].MPI_TAG, 3);
    EXPECT_EQUAL(statuses[0].MPI_SOURCE, expect_left);
    MPI_Barrier(MPI_COMM_WORLD);
    send_now(0);
    send_now(1);
    MPI_Waitall(6, requests, statuses);
    EXPECT_EQUAL(statuses[0].MPI_TAG, 0);
    EXPECT_EQUAL(statuses[1].MPI_TAG, 1);
    expect_empty(&statuses[2]);
    expect_empty(&statuses[4]);
    expect_empty(&statuses[5]);
    EXPECT_EQUAL(in[0] + in[1], 1);
    EXPECT(requests[4] == inactive);
    MPI_Request_free(&inactive);
}

/* 3.7.6: asking leaves the requests as they are. */
static void asking_frees_nothing(void)
{
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[3];
    int in = -1, flag = 0, index = -1, count = 0, indices[3];
    MPI_Irecv(&in, 1, MPI_INT, expect_left, 7, MPI_COMM_WORLD, &requests[1]);
    const MPI_Request request = requests[1];
    send_now(7);
    while (!flag) {
        MPI_Request_get_status(request, &flag, &status);
    }
    EXPECT_EQUAL(in, 7);
    EXPECT_EQUAL(status.MPI_TAG, 7);
    EXPECT_EQUAL(status.MPI_SOURCE, expect_left);
    flag = 0;
    MPI_Request_get_status_any(3, requests, &index, &flag, &status);
    EXPECT(flag);
    EXPECT_EQUAL(index, 1);
    EXPECT_EQUAL(status.MPI_TAG, 7);
    flag = 0;
    MPI_Request_get_status_all(3, requests, &flag, statuses);
    EXPECT(flag);
    EXPECT_EQUAL(statuses[1].MPI_TAG, 7);
    expect_empty(&statuses[0]);
    MPI_Request_get_status_some(3, requests, &count, indices, statuses);
    EXPECT_EQUAL(count, 1);
    EXPECT_EQUAL(indices[0], 1);
    EXPECT_EQUAL(statuses[0].MPI_TAG, 7);
    EXPECT(requests[1] == request);
    MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    EXPECT(flag);
    EXPECT_EQUAL(MPI_Wait(&requests[1], &status), MPI_SUCCESS);
    EXPECT_EQUAL(status.MPI_TAG, 7);
    EXPECT(requests[1] == MPI_REQUEST_NULL);
}

/* 3.4: a synchronous send completes only after its receive has begun. */
static void synchronous_sends_wait_for_their_receive(int count)
{
    int *out = calloc((size_t)count, sizeof(int)), *in = calloc((size_t)count, sizeof(int)), flag = 1;
    MPI_Request request;
    MPI_Issend(out, count, MPI_INT, expect_right, 0, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(flag, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(in, count, MPI_INT, expect_left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    free(out);
    free(in);
}

/* A buffer that a freed receive may still write to. */
static int *written_still;

/* 3.7.3: a freed request's operation continues. */
static void freed_requests_go_on(int count)
{
    int *out = calloc((size_t)count, sizeof(int)), *in = calloc((size_t)count, sizeof(int)), next;
    MPI_Request request;
    out[count - 1] = 1 + expect_rank;
    MPI_Isend(out, count, MPI_INT, expect_right, 1, MPI_COMM_WORLD, &request);
    EXPECT_EQUAL(MPI_Request_free(&request), MPI_SUCCESS);
    EXPECT(request == MPI_REQUEST_NULL);
    MPI_Recv(in, count, MPI_INT, expect_left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in[count - 1], 1 + expect_left);
    in[count - 1] = 0;
    MPI_Irecv(in, count, MPI_INT, expect_left, 2, MPI_COMM_WORLD, &request);
    EXPECT_EQUAL(MPI_Request_free(&request), MPI_SUCCESS);
    MPI_Send(out, count, MPI_INT, expect_right, 2, MPI_COMM_WORLD);
    /* messages of one sender are matched in order: the freed receive is done when a later one is, if both are short */
    MPI_Sendrecv(out, 1, MPI_INT, expect_right, 3, &next, 1, MPI_INT, expect_left, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD); /* the send was complete: its buffer has been read */
    free(out);
    if (count == 1) {
        EXPECT_EQUAL(in[0], 1 + expect_left);
        free(in);
    } else {
        written_still = in;
    }
}

/* 3.7.5: which one failed is in the statuses; 3.2.5: MPI_ERROR changes only then. */
static void failures_are_reported_in_statuses(void)
{
    int out[100] = {1, 2, 3}, small = 0, large[100], count = 0, indices[2], index = -1;
    MPI_Request requests[2], sends[2];
    MPI_Status statuses[2], status;
    for (int how = 0; how < 3; how++) {
        MPI_Irecv(&small, 1, MPI_INT, expect_left, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(large, 100, MPI_INT, expect_left, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(out, 2, MPI_INT, expect_right, 0, MPI_COMM_WORLD, &sends[0]);
        MPI_Isend(out, 50, MPI_INT, expect_right, 1, MPI_COMM_WORLD, &sends[1]);
        if (how == 0) {
            EXPECT_CLASS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
            EXPECT_CLASS(statuses[0].MPI_ERROR, MPI_ERR_TRUNCATE);
            EXPECT(statuses[1].MPI_ERROR == MPI_SUCCESS || statuses[1].MPI_ERROR == MPI_ERR_PENDING);
            if (statuses[1].MPI_ERROR == MPI_ERR_PENDING) {
                MPI_Wait(&requests[1], &statuses[1]);
            }
            EXPECT_EQUAL(expect_count(&statuses[1], MPI_INT), 50);
            EXPECT_EQUAL(statuses[1].MPI_TAG, 1);
        } else if (how == 1) {
            EXPECT_CLASS(MPI_Waitsome(1, requests, &count, indices, statuses), MPI_ERR_IN_STATUS);
            EXPECT_EQUAL(count, 1);
            EXPECT_EQUAL(indices[0], 0);
            EXPECT_CLASS(statuses[0].MPI_ERROR, MPI_ERR_TRUNCATE);
            status.MPI_ERROR = 77;
            MPI_Wait(&requests[1], &status);
            EXPECT_EQUAL(status.MPI_ERROR, 77);
        } else {
            EXPECT_CLASS(MPI_Waitany(1, requests, &index, &status), MPI_ERR_TRUNCATE);
            EXPECT_EQUAL(index, 0);
            EXPECT_CLASS(MPI_Waitall(1, &requests[1], MPI_STATUSES_IGNORE), MPI_SUCCESS);
        }
        EXPECT(requests[0] == MPI_REQUEST_NULL);
        EXPECT(requests[1] == MPI_REQUEST_NULL);
        statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = 77;
        MPI_Waitall(2, sends, statuses);
        EXPECT(statuses[0].MPI_ERROR == 77 && statuses[1].MPI_ERROR == 77);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* 3.11: send and receive as one request. */
static void send_and_receive_as_one_request(int count)
{
    int *out = malloc((size_t)count * sizeof(int)), *in = malloc((size_t)count * sizeof(int)), received;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    for (int i = 0; i < count; i++) {
        out[i] = in[i] = i ^ expect_rank;
    }
    MPI_Isendrecv_replace(in, count, MPI_INT, expect_left, 1, expect_right, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], &statuses[0]);
    EXPECT_EQUAL(in[count - 1], (count - 1) ^ expect_right);
    EXPECT_EQUAL(statuses[0].MPI_SOURCE, expect_right);
    memset(in, 0, (size_t)count * sizeof(int));
    MPI_Isendrecv(out, count, MPI_INT, expect_right, 2, in, count, MPI_INT, expect_left, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &requests[0]);
    MPI_Isendrecv(out, 1, MPI_INT, MPI_PROC_NULL, 3, &received, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD,
                  &requests[1]);
    EXPECT_EQUAL(MPI_Waitall(2, requests, statuses), MPI_SUCCESS);
    EXPECT_EQUAL(in[count - 1], (count - 1) ^ expect_left);
    EXPECT_EQUAL(statuses[0].MPI_SOURCE, expect_left);
    EXPECT_EQUAL(statuses[0].MPI_TAG, 2);
    EXPECT_EQUAL(expect_count(&statuses[0], MPI_INT), count);
    EXPECT_EQUAL(statuses[1].MPI_SOURCE, MPI_PROC_NULL);
    EXPECT_EQUAL(statuses[1].MPI_TAG, MPI_ANY_TAG);
    free(out);
    free(in);
}

/* All ranks to all, received by wildcards and completed in any order. */
static void many_from_all(void)
{
    enum { EACH = 300 };
    int total = EACH * expect_size, sum = 0, done = 0, count = 0;
    int *in = malloc((size_t)total * sizeof(int)), *indices = malloc((size_t)total * sizeof(int)), one = 1;
    MPI_Request *receives = malloc((size_t)total * sizeof(*receives)), *sends = malloc((size_t)total * sizeof(*sends));
    for (int i = 0; i < total; i++) {
        MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receives[i]);
    }
    for (int i = 0; i < total; i++) {
        MPI_Isend(&one, 1, MPI_INT, i % expect_size, i, MPI_COMM_WORLD, &sends[i]);
    }
    for (; done < total; done += count) {
        EXPECT_EQUAL(MPI_Waitsome(total, receives, &count, indices, MPI_STATUSES_IGNORE), MPI_SUCCESS);
        for (int i = 0; i < count; i++) {
            sum += in[indices[i]];
        }
    }
    EXPECT_EQUAL(sum, total);
    EXPECT_EQUAL(MPI_Waitall(total, sends, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    free(in);
    free(indices);
    free(receives);
    free(sends);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    enum { BUFFER = 4000000 };
    void *buffer = malloc(BUFFER);
    int bytes;
    MPI_Buffer_attach(buffer, BUFFER);
    all_modes_complete_by_all_calls(0);
    all_modes_complete_by_all_calls(5);
    all_modes_complete_by_all_calls(3000);
    all_modes_complete_by_all_calls(100000);
    MPI_Buffer_detach(&buffer, &bytes);
    free(buffer);
    null_and_inactive_requests_are_no_work();
    only_complete_requests_are_reported();
    asking_frees_nothing();
    synchronous_sends_wait_for_their_receive(1);
    synchronous_sends_wait_for_their_receive(50000);
    freed_requests_go_on(1);
    freed_requests_go_on(50000);
    failures_are_reported_in_statuses();
    send_and_receive_as_one_request(3);
    send_and_receive_as_one_request(70000);
    many_from_all();
    return expect_end();
}
