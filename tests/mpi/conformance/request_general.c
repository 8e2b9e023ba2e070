/* Generalized requests, and statuses that programs fill (MPI 5.0, 13.2, 13.3). */
#include "tests/mpi/expect.h"

#include <string.h>

/* The calls for a request so far, and the answer of its query. */
struct operation {
    int queries, frees, cancels, cancelled_complete;
    int query_code, free_code;
    int is_cancelled;
};

static int query(void *state, MPI_Status *status)
{
    struct operation *operation = state;
    EXPECT(status != MPI_STATUS_IGNORE); /* a valid status even if the caller ignores it */
    EXPECT_EQUAL(operation->frees, 0);
    operation->queries++;
    MPI_Status_set_elements(status, MPI_INT, 12);
    MPI_Status_set_cancelled(status, operation->is_cancelled);
    status->MPI_SOURCE = 34;
    status->MPI_TAG = 56;
    return operation->query_code;
}

static int release(void *state)
{
    struct operation *operation = state;
    operation->frees++;
    return operation->free_code;
}

static int cancel(void *state, int complete)
{
    struct operation *operation = state;
    operation->cancels++;
    operation->cancelled_complete = complete;
    return MPI_SUCCESS;
}

static MPI_Request start(struct operation *operation)
{
    MPI_Request request = MPI_REQUEST_NULL;
    *operation = (struct operation){.query_code = MPI_SUCCESS, .free_code = MPI_SUCCESS};
    EXPECT_EQUAL(MPI_Grequest_start(query, release, cancel, operation, &request), MPI_SUCCESS);
    EXPECT(request != MPI_REQUEST_NULL);
    return request;
}

static void expect_reported(const MPI_Status *status)
{
    EXPECT_EQUAL(expect_count(status, MPI_INT), 12);
    EXPECT_EQUAL(status->MPI_SOURCE, 34);
    EXPECT_EQUAL(status->MPI_TAG, 56);
    EXPECT_EQUAL(expect_cancelled(status), 0);
}

static void they_complete_when_the_program_asks_for_it(void)
{
    struct operation operation;
    MPI_Request request = start(&operation);
    MPI_Status status;
    int flag = 1;
    MPI_Test(&request, &flag, &status);
    EXPECT_EQUAL(flag, 0);
    EXPECT_EQUAL(operation.queries, 0);
    EXPECT_EQUAL(MPI_Grequest_complete(request), MPI_SUCCESS);
    EXPECT_EQUAL(operation.frees, 0);
    flag = 0;
    MPI_Request_get_status(request, &flag, &status);
    EXPECT(flag);
    expect_reported(&status);
    EXPECT_EQUAL(operation.frees, 0);
    memset(&status, 0, sizeof(status));
    EXPECT_EQUAL(MPI_Wait(&request, &status), MPI_SUCCESS);
    expect_reported(&status);
    EXPECT(operation.queries >= 2);
    EXPECT_EQUAL(operation.frees, 1);
    EXPECT_EQUAL(operation.cancels, 0);
    EXPECT(request == MPI_REQUEST_NULL);
    request = start(&operation);
    MPI_Grequest_complete(request);
    EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT(operation.queries >= 1);
    EXPECT_EQUAL(operation.frees, 1);
}

/* Among other requests, by all calls for several. */
static void they_mix_with_others(void)
{
    struct operation operations[2];
    MPI_Request requests[4];
    MPI_Status statuses[4], status;
    int out = 5, in = -1, flag = 1, index = -1, count = 0, indices[4];
    for (int some = 0; some < 2; some++) {
        requests[0] = start(&operations[0]);
        MPI_Irecv(&in, 1, MPI_INT, 0, 8, MPI_COMM_SELF, &requests[1]);
        requests[2] = start(&operations[1]);
        requests[3] = MPI_REQUEST_NULL;
        MPI_Grequest_complete(requests[2]);
        if (some) {
            MPI_Testsome(4, requests, &count, indices, statuses);
            EXPECT_EQUAL(count, 1);
            EXPECT_EQUAL(indices[0], 2);
            expect_reported(&statuses[0]);
        } else {
            MPI_Waitany(4, requests, &index, &status);
            EXPECT_EQUAL(index, 2);
            expect_reported(&status);
        }
        EXPECT_EQUAL(operations[1].frees, 1);
        MPI_Send(&out, 1, MPI_INT, 0, 8, MPI_COMM_SELF);
        MPI_Testall(4, requests, &flag, statuses);
        EXPECT_EQUAL(flag, 0);
        MPI_Grequest_complete(requests[0]);
        EXPECT_EQUAL(MPI_Waitall(4, requests, statuses), MPI_SUCCESS);
        expect_reported(&statuses[0]);
        EXPECT_EQUAL(statuses[1].MPI_TAG, 8);
        EXPECT_EQUAL(in, 5);
        EXPECT_EQUAL(operations[0].frees, 1);
        EXPECT(requests[0] == MPI_REQUEST_NULL);
    }
}

/* A request that is freed before it is complete is freed by completing it. */
static void they_may_be_freed(void)
{
    struct operation operation;
    MPI_Request request = start(&operation), copy = request;
    EXPECT_EQUAL(MPI_Request_free(&request), MPI_SUCCESS);
    EXPECT(request == MPI_REQUEST_NULL);
    EXPECT_EQUAL(operation.frees, 0);
    EXPECT_EQUAL(MPI_Grequest_complete(copy), MPI_SUCCESS);
    EXPECT_EQUAL(operation.frees, 1);
    EXPECT_EQUAL(operation.queries, 0);
    request = start(&operation);
    MPI_Grequest_complete(request);
    EXPECT_EQUAL(MPI_Request_free(&request), MPI_SUCCESS);
    EXPECT_EQUAL(operation.frees, 1);
}

static void they_may_be_cancelled(void)
{
    struct operation operation;
    MPI_Request request = start(&operation);
    MPI_Status status;
    EXPECT_EQUAL(MPI_Cancel(&request), MPI_SUCCESS);
    EXPECT_EQUAL(operation.cancels, 1);
    EXPECT_EQUAL(operation.cancelled_complete, 0);
    operation.is_cancelled = 1; /* the program's decision */
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    EXPECT_EQUAL(expect_cancelled(&status), 1);
    request = start(&operation);
    MPI_Grequest_complete(request);
    MPI_Cancel(&request);
    EXPECT_EQUAL(operation.cancels, 1);
    EXPECT(operation.cancelled_complete != 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The functions' results are those of the completing call, or lie in its statuses. */
static void their_functions_may_fail(void)
{
    struct operation operations[2];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    requests[0] = start(&operations[0]);
    operations[0].query_code = MPI_ERR_OTHER;
    MPI_Grequest_complete(requests[0]);
    EXPECT_CLASS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_OTHER);
    requests[0] = start(&operations[0]);
    operations[0].free_code = MPI_ERR_NO_SPACE;
    MPI_Grequest_complete(requests[0]);
    EXPECT_CLASS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE);
    requests[0] = start(&operations[0]);
    requests[1] = start(&operations[1]);
    operations[1].query_code = MPI_ERR_OTHER;
    MPI_Grequest_complete(requests[0]);
    MPI_Grequest_complete(requests[1]);
    EXPECT_CLASS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    EXPECT_EQUAL(statuses[0].MPI_ERROR, MPI_SUCCESS);
    EXPECT_CLASS(statuses[1].MPI_ERROR, MPI_ERR_OTHER);
    EXPECT_EQUAL(operations[0].frees, 1);
    EXPECT_EQUAL(operations[1].frees, 1);
}

static void statuses_have_fields(void)
{
    MPI_Status status;
    int source = 0, tag = 0, error = 0;
    memset(&status, 0, sizeof(status));
    EXPECT_EQUAL(MPI_Status_set_source(&status, 11), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Status_set_tag(&status, 22), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Status_set_error(&status, MPI_ERR_TAG), MPI_SUCCESS);
    EXPECT_EQUAL(status.MPI_SOURCE, 11);
    EXPECT_EQUAL(status.MPI_TAG, 22);
    EXPECT_EQUAL(status.MPI_ERROR, MPI_ERR_TAG);
    MPI_Status_get_source(&status, &source);
    MPI_Status_get_tag(&status, &tag);
    MPI_Status_get_error(&status, &error);
    EXPECT(source == 11 && tag == 22 && error == MPI_ERR_TAG);
    for (int is_cancelled = 1; is_cancelled >= 0; is_cancelled--) {
        MPI_Status_set_cancelled(&status, is_cancelled);
        EXPECT_EQUAL(!expect_cancelled(&status), !is_cancelled);
    }
}

/* Elements are of the basic types, counts are of whole ones (5.1.11); a count that does not fit an int is
 * MPI_UNDEFINED. */
static void statuses_count_elements(void)
{
    MPI_Status status;
    MPI_Datatype pair;
    MPI_Count large = 0;
    const MPI_Count huge = (MPI_Count)1 << 40;
    memset(&status, 0, sizeof(status));
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    EXPECT_EQUAL(MPI_Status_set_elements(&status, pair, 6), MPI_SUCCESS);
    EXPECT_EQUAL(expect_elements(&status, pair), 6);
    EXPECT_EQUAL(expect_count(&status, pair), 3);
    MPI_Status_set_elements(&status, pair, 7);
    EXPECT_EQUAL(expect_elements(&status, pair), 7);
    EXPECT_EQUAL(expect_count(&status, pair), MPI_UNDEFINED);
    MPI_Type_free(&pair);
    EXPECT_EQUAL(MPI_Status_set_elements_c(&status, MPI_INT, huge), MPI_SUCCESS);
    EXPECT_EQUAL(expect_count(&status, MPI_INT), MPI_UNDEFINED);
    EXPECT_EQUAL(expect_elements(&status, MPI_INT), MPI_UNDEFINED);
    MPI_Get_count_c(&status, MPI_INT, &large);
    EXPECT_EQUAL(large, huge);
    MPI_Get_elements_c(&status, MPI_INT, &large);
    EXPECT_EQUAL(large, huge);
    MPI_Status_set_elements_x(&status, MPI_DOUBLE, 5);
    MPI_Get_elements_x(&status, MPI_DOUBLE, &large);
    EXPECT_EQUAL(large, 5);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    they_complete_when_the_program_asks_for_it();
    they_mix_with_others();
    they_may_be_freed();
    they_may_be_cancelled();
    their_functions_may_fail();
    statuses_have_fields();
    statuses_count_elements();
    return expect_end();
}
