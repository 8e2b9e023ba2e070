/* MPI_Scatterv by pairs and by multicast, to the group of the communicator and to a group of the receivers (MPI 5.0,
 * 6.6), blocking, non-blocking and persistent: any counts, places, types, in place; several at a time; and receives
 * that do not fit. `scatterv roots`: of ranks that name different roots, which only multicast can tell. */
#include <stdint.h>
#include <string.h>

#include "tests/mpi/conformance/forms.h"

enum {
    RANKS_MAX = 64,
    GAP = 3,
    ROUNDS = 24,
    RUNS = 3,      /* of a persistent one */
    SEVERAL = 4,   /* at a time, of a communicator */
    LONG = 100000, /* ints of a block */
    SHORT = 1500,
};

static const char *const ways[] = {"pairs", "static", "dynamic"};

static uint64_t random_state = 1;

/* The same at all ranks. */
static int drawn(int below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((random_state >> 33) % (uint64_t)below);
}

/* Element `at` of a rank's data of call `number`, in run `run`. */
static int value_of(int number, int run, int rank, int at)
{
    return (int)((unsigned)number * 1000003u + (unsigned)run * 8191u + (unsigned)rank * 10007u + (unsigned)at * 7u);
}

struct call {
    MPI_Comm comm;
    int number, rank, size, root;
    int send_stride, receive_stride; /* ints per element */
    int in_place;                    /* at the root */
    int counts[RANKS_MAX], places[RANKS_MAX];
    int expected; /* of the own block */
    int *send, *receive;
    size_t send_room, receive_room; /* ints */
    MPI_Request request;
};

enum pattern { ALL, SOME, ONE, NONE, LONG_SOME, LONG_ALL, PATTERNS };

static int count_drawn(enum pattern pattern, int is_the_one)
{
    static const int sizes[] = {1, 20, SHORT};
    int most = sizes[drawn(3)], length = drawn(LONG), some = drawn(2), count = 1 + drawn(most);
    switch (pattern) {
    case ALL:
        return count;
    case SOME:
        return some ? count : 0;
    case ONE:
        return is_the_one ? count : 0;
    case LONG_SOME:
        return some ? LONG + length : 0;
    case LONG_ALL:
        return length;
    default:
        return 0;
    }
}

/* Blocks lie apart, in falling order; counts and places are known to the root alone. */
static struct call call_make(MPI_Comm comm, enum pattern pattern, int send_stride, int receive_stride)
{
    static int calls;
    struct call call = {.comm = comm, .number = ++calls, .send_stride = send_stride, .receive_stride = receive_stride};
    int at = 0;
    MPI_Comm_rank(comm, &call.rank);
    MPI_Comm_size(comm, &call.size);
    call.root = drawn(call.size);
    call.in_place = drawn(4) == 0;
    int one = drawn(call.size);
    for (int rank = call.size - 1; rank >= 0; rank--) {
        call.counts[rank] = count_drawn(pattern, rank == one);
        call.places[rank] = at;
        at += call.counts[rank] + drawn(GAP);
    }
    call.expected = call.counts[call.rank];
    call.send_room = call.rank == call.root ? (size_t)(at + 1) * (size_t)send_stride : 0;
    call.receive_room = (size_t)(call.expected + 2) * (size_t)receive_stride;
    call.send = malloc(call.send_room * sizeof(int) + 1);
    call.receive = malloc(call.receive_room * sizeof(int));
    call.request = MPI_REQUEST_NULL;
    return call;
}

static void call_free(struct call *call)
{
    free(call->send);
    free(call->receive);
    if (call->request != MPI_REQUEST_NULL) {
        MPI_Request_free(&call->request);
    }
}

static void call_fill(struct call *call, int run)
{
    memset(call->send, -1, call->send_room * sizeof(int));
    memset(call->receive, -1, call->receive_room * sizeof(int));
    for (int rank = 0; call->rank == call->root && rank < call->size; rank++) {
        for (int at = 0; at < call->counts[rank]; at++) {
            call->send[(call->places[rank] + at) * call->send_stride] = value_of(call->number, run, rank, at);
        }
    }
}

/* Of `got` elements of the own block, and of the memory around them. */
static void call_verify(const struct call *call, int run, int got)
{
    int in_place = call->in_place && call->rank == call->root;
    const int *found = in_place ? call->send + call->places[call->rank] * call->send_stride : call->receive;
    int stride = in_place ? call->send_stride : call->receive_stride;
    long wrong = 0;
    for (int at = 0; at < got; at++) {
        wrong += found[at * stride] != value_of(call->number, run, call->rank, at);
    }
    for (size_t at = 0; at < call->receive_room; at++) {
        int is_hole = in_place || at % (size_t)stride != 0 || at / (size_t)stride >= (size_t)got;
        wrong += is_hole && call->receive[at] != -1;
    }
    if (wrong != 0) {
        fprintf(stderr, "call %d, run %d, root %d of %d, %d elements\n", call->number, run, call->root, call->size,
                got);
    }
    EXPECT_EQUAL(wrong, 0);
}

/* A persistent one is made with the first start. */
static int call_start(struct call *call, int form, MPI_Datatype send_type, MPI_Datatype receive_type)
{
    int is_root = call->rank == call->root;
    const void *send = is_root ? call->send : NULL;
    const int *counts = is_root ? call->counts : NULL, *places = is_root ? call->places : NULL;
    void *receive = is_root && call->in_place ? MPI_IN_PLACE : call->receive;
    int code = call->request != MPI_REQUEST_NULL
                   ? MPI_SUCCESS
                   : CALL(form, Scatterv, Iscatterv, &call->request, send, counts, places, send_type, receive,
                          call->expected, receive_type, call->root, call->comm);
    return code == MPI_SUCCESS && form == 2 ? MPI_Start(&call->request) : code;
}

static void any_counts(MPI_Comm comm, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        int form = round % FORMS;
        struct call call = call_make(comm, (enum pattern)(round % PATTERNS), 1, 1);
        for (int run = 0; run < (form == 2 ? RUNS : 1); run++) {
            call_fill(&call, run);
            EXPECT_EQUAL(call_start(&call, form, MPI_INT, MPI_INT), MPI_SUCCESS);
            EXPECT_EQUAL(MPI_Wait(&call.request, MPI_STATUS_IGNORE), MPI_SUCCESS);
            call_verify(&call, run, call.expected);
        }
        call_free(&call);
    }
}

/* Every second int is sent, every third one received. */
static void any_types(MPI_Comm comm)
{
    MPI_Datatype second, third;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &second);
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &third);
    MPI_Type_commit(&second);
    MPI_Type_commit(&third);
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        struct call call = call_make(comm, (enum pattern)pattern, 2, 3);
        call_fill(&call, 0);
        EXPECT_EQUAL(call_start(&call, pattern % 2, second, third), MPI_SUCCESS);
        EXPECT_EQUAL(MPI_Wait(&call.request, MPI_STATUS_IGNORE), MPI_SUCCESS);
        call_verify(&call, 0, call.expected);
        call_free(&call);
    }
    MPI_Type_free(&second);
    MPI_Type_free(&third);
}

/* Several at a time on two communicators, waited for from the last to the first. */
static void several_are_under_way(MPI_Comm first, MPI_Comm second)
{
    struct call calls[2 * SEVERAL];
    for (int i = 0; i < 2 * SEVERAL; i++) {
        calls[i] = call_make(i % 2 == 0 ? first : second, (enum pattern)drawn(PATTERNS), 1, 1);
        call_fill(&calls[i], 0);
        EXPECT_EQUAL(call_start(&calls[i], 1, MPI_INT, MPI_INT), MPI_SUCCESS);
    }
    for (int i = 2 * SEVERAL - 1; i >= 0; i--) {
        EXPECT_EQUAL(MPI_Wait(&calls[i].request, MPI_STATUS_IGNORE), MPI_SUCCESS);
        call_verify(&calls[i], 0, calls[i].expected);
        call_free(&calls[i]);
    }
}

/* One rank has no room for all of its block, or more than it needs: the part with room arrives, without effect on
 * others. */
static void room_that_differs(MPI_Comm comm, int form, int more)
{
    struct call call = call_make(comm, SOME, 1, 1);
    while (call.counts[call.size - 1] < 2) { /* nothing at all would be no message by pairs */
        call_free(&call);
        call = call_make(comm, SOME, 1, 1);
    }
    call.in_place = 0;
    int is_other = call.rank == call.size - 1;
    call_fill(&call, 0);
    int got = call.expected + (is_other && more < 0 ? more : 0);
    call.expected += is_other ? more : 0;
    int code = call_start(&call, form, MPI_INT, MPI_INT);
    code = form == 0 ? code : MPI_Wait(&call.request, MPI_STATUS_IGNORE);
    EXPECT_CLASS(code, is_other && more < 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    call_verify(&call, 0, got);
    call_free(&call);
}

/* A communicator with this algorithm for scatter-v; NULL: the environment's. */
static MPI_Comm comm_by(MPI_Comm from, const char *way)
{
    MPI_Info info;
    MPI_Comm made;
    char words[40];
    if (way == NULL) {
        MPI_Comm_dup(from, &made);
        return made;
    }
    snprintf(words, sizeof(words), "scatterv=%s", way);
    MPI_Info_create(&info);
    MPI_Info_set(info, "causeway_algorithm", words);
    MPI_Comm_dup_with_info(from, info, &made);
    MPI_Info_free(&info);
    return made;
}

static void by_way(MPI_Comm from, const char *way, int rounds)
{
    MPI_Comm comm = comm_by(from, way), other = comm_by(from, way);
    any_counts(comm, rounds);
    any_types(comm);
    several_are_under_way(comm, other);
    for (int form = 0; form < 2; form++) {
        room_that_differs(comm, form, -1);
        room_that_differs(comm, form, 1);
    }
    MPI_Comm_free(&comm);
    MPI_Comm_free(&other);
}

/* The last rank names another root, with long blocks: all are notified. */
static void roots_that_differ(const char *way)
{
    MPI_Comm comm = comm_by(MPI_COMM_WORLD, way);
    int counts[RANKS_MAX], places[RANKS_MAX];
    int *send = calloc((size_t)expect_size * LONG, sizeof(int)), *receive = malloc(LONG * sizeof(int));
    for (int rank = 0; rank < expect_size; rank++) {
        counts[rank] = LONG;
        places[rank] = rank * LONG;
    }
    EXPECT_CLASS(
        MPI_Scatterv(send, counts, places, MPI_INT, receive, LONG, MPI_INT, expect_rank == expect_size - 1, comm),
        MPI_ERR_NOT_SAME);
    free(send);
    free(receive);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    if (argc > 1 && strcmp(argv[1], "roots") == 0) {
        roots_that_differ("static");
        roots_that_differ("dynamic");
        return expect_end();
    }
    MPI_Comm halves;
    MPI_Comm_split(MPI_COMM_WORLD, expect_rank % 2, -expect_rank, &halves);
    by_way(MPI_COMM_WORLD, NULL, ROUNDS / 2);
    for (int i = 0; i < 3; i++) {
        by_way(MPI_COMM_WORLD, ways[i], ROUNDS);
    }
    random_state += (uint64_t)(expect_rank % 2); /* the halves go their own ways */
    for (int i = 0; i < 3; i++) {
        by_way(halves, ways[i], ROUNDS / 2);
    }
    MPI_Comm_free(&halves);
    return expect_end();
}
