/* MPI_Alltoallv by pairs and by every schedule that serves it (MPI 5.0, 6.9), blocking, non-blocking and persistent:
 * any counts, places, types, in place; and counts that do not match. */
#include "tests/mpi/conformance/forms.h"
#include "tests/mpi/many_to_many.h"

enum { RUNS = 2 }; /* of a persistent one */

static const char *const algorithms[] = {
    "pairs",
    "direct",
    "rotated",
    "pairwise",
    "concurrent:concurrency=3",
    "phased",
    "phased-barriers",
    "greedy",
    "greedy-barriers",
    "greedy:threshold=1000",
    "all-to-all-based",
    "all-to-all-based-barriers:threshold=100000",
};
enum { ALGORITHMS = sizeof(algorithms) / sizeof(algorithms[0]) };

static MPI_Comm comm;

/* The arguments of the call, in addition to counts and places. */
struct call {
    struct many *many;
    int in_place;
    MPI_Datatype send_type, receive_type;
    int send_stride, receive_stride;
};

/* A persistent one is only made, once. */
static int call_post(const struct call *call, int form, MPI_Request *request)
{
    const struct many_side *send = &call->many->send, *receive = &call->many->receive;
    const void *out = call->in_place ? MPI_IN_PLACE : send->buffer;
    return *request != MPI_REQUEST_NULL
               ? MPI_SUCCESS
               : CALL(form, Alltoallv, Ialltoallv, request, out, send->counts, send->places, call->send_type,
                      receive->buffer, receive->counts, receive->places, call->receive_type, comm);
}

static void call_run(const struct call *call, int form)
{
    MPI_Request request = MPI_REQUEST_NULL;
    struct many_side *from = call->in_place ? &call->many->receive : &call->many->send;
    for (int run = 0; run < (form == 2 ? RUNS : 1); run++) {
        many_fill(call->many, from, call->in_place ? call->receive_stride : call->send_stride, run);
        EXPECT_EQUAL(call_post(call, form, &request), MPI_SUCCESS);
        if (form == 2) {
            EXPECT_EQUAL(MPI_Start(&request), MPI_SUCCESS);
        }
        EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQUAL(many_differences(call->many, call->receive_stride, run), 0);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
}

static void test_pattern(int pattern, int form)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            struct many many = many_make(comm, pattern, in_place, layout, 1, 1);
            call_run(&(struct call){.many = &many,
                                    .in_place = in_place,
                                    .send_type = MPI_INT,
                                    .receive_type = MPI_INT,
                                    .send_stride = 1,
                                    .receive_stride = 1},
                     form);
            many_free(&many);
        }
    }
}

/* Every second int is sent, every third one received; displacements count extents. */
static void test_types(int pattern, int form)
{
    MPI_Datatype second, third;
    struct many many = many_make(comm, pattern, 0, LAYOUT_PACKED, 2, 3);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &second);
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &third);
    MPI_Type_commit(&second);
    MPI_Type_commit(&third);
    struct call call = {
        .many = &many, .send_type = second, .receive_type = third, .send_stride = 2, .receive_stride = 3};
    int *send_places = malloc((unsigned)many.size * sizeof(int)),
        *receive_places = malloc((unsigned)many.size * sizeof(int));
    for (int of = 0; of < many.size; of++) { /* in ints they are multiples of the extents */
        send_places[of] = many.send.places[of] / 2;
        receive_places[of] = many.receive.places[of] / 3;
    }
    many_fill(&many, &many.send, 2, 0);
    RUN(form, Alltoallv, Ialltoallv, many.send.buffer, many.send.counts, send_places, second, many.receive.buffer,
        many.receive.counts, receive_places, third, comm);
    EXPECT_EQUAL(many_differences(&many, call.receive_stride, 0), 0);
    free(send_places), free(receive_places);
    MPI_Type_free(&second);
    MPI_Type_free(&third);
    many_free(&many);
}

/* Bytes at one side, ints at the other, with large counts. */
static void test_large_counts(int pattern)
{
    struct many many = many_make(comm, pattern, 0, LAYOUT_REVERSED, 1, 1);
    size_t room = (unsigned)many.size * sizeof(MPI_Count);
    MPI_Count *send_counts = malloc(room), *receive_counts = malloc(room);
    MPI_Aint *send_places = malloc(room), *receive_places = malloc(room);
    for (int of = 0; of < many.size; of++) {
        send_counts[of] = many.send.counts[of] * (MPI_Count)sizeof(int);
        send_places[of] = many.send.places[of] * (MPI_Aint)sizeof(int);
        receive_counts[of] = many.receive.counts[of];
        receive_places[of] = many.receive.places[of];
    }
    many_fill(&many, &many.send, 1, 5);
    EXPECT_EQUAL(MPI_Alltoallv_c(many.send.buffer, send_counts, send_places, MPI_BYTE, many.receive.buffer,
                                 receive_counts, receive_places, MPI_INT, comm),
                 MPI_SUCCESS);
    EXPECT_EQUAL(many_differences(&many, 1, 5), 0);
    free(send_counts), free(receive_counts), free(send_places), free(receive_places);
    many_free(&many);
}

/* Several at a time, with other calls between, waited for in another order; persistent ones are started in an order of
 * each rank's own. */
static void several_are_under_way(int form)
{
    enum { COUNT = 4 };
    struct many many[COUNT];
    MPI_Request requests[2 * COUNT];
    int values[COUNT], rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < COUNT; i++) {
        many[i] = many_make(comm, PATTERNS - COUNT + i, 0, i % LAYOUTS, 1, 1);
        many_fill(&many[i], &many[i].send, 1, i);
        requests[2 * i] = MPI_REQUEST_NULL;
        struct call call = {.many = &many[i], .send_type = MPI_INT, .receive_type = MPI_INT};
        EXPECT_EQUAL(call_post(&call, form, &requests[2 * i]), MPI_SUCCESS);
        values[i] = rank == i % size ? 100 + i : -1;
        MPI_Ibcast(&values[i], 1, MPI_INT, i % size, comm, &requests[2 * i + 1]);
    }
    for (int i = 0; form == 2 && i < COUNT; i++) {
        MPI_Start(&requests[2 * ((i + rank) % COUNT)]);
    }
    for (int i = 2 * COUNT - 1; i >= 0; i--) {
        EXPECT_EQUAL(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    for (int i = 0; i < COUNT; i++) {
        EXPECT_EQUAL(many_differences(&many[i], 1, i), 0);
        EXPECT_EQUAL(values[i], 100 + i);
        if (form == 2) {
            MPI_Request_free(&requests[2 * i]);
        }
        many_free(&many[i]);
    }
}

/* Rank 0 sends the last rank one element more, or less, than that one expects: all ranks are notified, before data is
 * sent; the communicator stays usable. */
static void counts_that_differ_are_reported(int form, int change)
{
    struct many many = many_make(comm, 0, 0, LAYOUT_PACKED, 1, 1);
    struct call call = {.many = &many, .send_type = MPI_INT, .receive_type = MPI_INT};
    MPI_Request request = MPI_REQUEST_NULL;
    int wanted = change > 0 ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT;
    many_fill(&many, &many.send, 1, 0);
    many.send.counts[many.size - 1] += many.rank == 0 ? change : 0;
    for (int run = 0; run < (form == 2 ? RUNS : 1); run++) { /* persistent ones say it each time */
        int code = call_post(&call, form, &request);
        if (form == 2) {
            MPI_Start(&request);
        }
        EXPECT_CLASS(form == 0 ? code : MPI_Wait(&request, MPI_STATUS_IGNORE), wanted);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    for (size_t i = 0; i < many.receive.length; i++) {
        EXPECT_EQUAL(many.receive.buffer[i], -1);
    }
    many_free(&many);
    test_pattern(0, form);
}

static void test_algorithm(MPI_Comm from, const char *name, int is_thorough)
{
    char words[80];
    snprintf(words, sizeof(words), "alltoallv=%s", name);
    comm = many_comm(from, words);
    for (int form = 0; form < FORMS; form++) {
        for (int pattern = 0; pattern < (is_thorough ? PATTERNS : 6); pattern++) {
            test_pattern(pattern, form);
        }
        if (form < 2) {
            test_types(PATTERNS - 1, form);
        }
        several_are_under_way(form == 0 ? 1 : form);
        if (strcmp(name, "pairs") != 0) {
            counts_that_differ_are_reported(form, 1);
            counts_that_differ_are_reported(form, -1);
        }
    }
    test_large_counts(PATTERNS - 2);
    MPI_Comm_free(&comm);
}

static void hints_that_do_not_fit_are_passed_over(void)
{
    const char *const words[] = {"alltoallv=bruck", "alltoallv=clusters-heads", "alltoallv", "alltoall=greedy"};
    for (int i = 0; i < 4; i++) {
        comm = many_comm(MPI_COMM_WORLD, words[i]);
        test_pattern(PATTERNS - 1, 0);
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    MPI_Comm halves;
    MPI_Comm_split(MPI_COMM_WORLD, expect_rank % 2, -expect_rank, &halves);
    for (int i = 0; i < ALGORITHMS; i++) {
        test_algorithm(MPI_COMM_WORLD, algorithms[i], i % 3 == 1);
        test_algorithm(halves, algorithms[i], 0);
    }
    test_algorithm(MPI_COMM_SELF, "all-to-all-based", 1);
    hints_that_do_not_fit_are_passed_over();
    MPI_Comm_free(&halves);
    return expect_end();
}
