/* Compiled communication of many to many (mpix.h): the three levels with every scheduler, phases that are kept in
 * files, and everything that does not fit. */
#include "tests/mpi/many_to_many.h"

#include <mpix.h>
#include <unistd.h>

enum { RUNS = 3 };

static const char *const schedulings[] = {
    NULL, /* the default */
    "alltoallv=all-to-all-based",
    "alltoallv=greedy",
    "alltoallv=greedy:threshold=1024",
    "alltoallv=all-to-all-based-barriers:threshold=1024",
    "alltoallv=direct",
    "alltoallv=phased-barriers",
};
enum { SCHEDULINGS = sizeof(schedulings) / sizeof(schedulings[0]) };

static MPI_Comm comm;
static int rank, size;
static char directory[200]; /* rank 0's, seen by all */

static void comm_set(MPI_Comm to)
{
    comm = to;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
}

static MPI_Info info_of(const char *words)
{
    MPI_Info info = MPI_INFO_NULL;
    if (words != NULL) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "causeway_algorithm", words);
    }
    return info;
}

static void info_free(MPI_Info info)
{
    if (info != MPI_INFO_NULL) {
        MPI_Info_free(&info);
    }
}

static MPIX_Alltoallv_phases control1(const struct many *many, const char *words)
{
    MPIX_Alltoallv_phases phases;
    MPI_Info info = info_of(words);
    EXPECT_EQUAL(
        MPIX_Alltoallv_control1(many->send.counts, MPI_INT, many->receive.counts, MPI_INT, info, comm, &phases),
        MPI_SUCCESS);
    EXPECT(phases != MPIX_ALLTOALLV_PHASES_NULL);
    info_free(info);
    return phases;
}

static int *matrix_make(int pattern, int both)
{
    int *matrix = malloc((unsigned)size * (size_t)(unsigned)size * sizeof(int));
    for (int pair = 0; pair < size * size; pair++) {
        matrix[pair] = both ? pattern_count_both(pattern, pair / size, pair % size, size)
                            : pattern_count(pattern, pair / size, pair % size, size);
    }
    return matrix;
}

static MPIX_Alltoallv_phases control2(int pattern, int both, const char *words)
{
    MPIX_Alltoallv_phases phases;
    MPI_Info info = info_of(words);
    int *matrix = matrix_make(pattern, both);
    EXPECT_EQUAL(MPIX_Alltoallv_control2(matrix, MPI_INT, info, comm, &phases), MPI_SUCCESS);
    free(matrix);
    info_free(info);
    return phases;
}

static int data(const struct many *many, int in_place, MPIX_Alltoallv_phases phases)
{
    return MPIX_Alltoallv_data_trans2(in_place ? MPI_IN_PLACE : many->send.buffer, many->send.counts, many->send.places,
                                      MPI_INT, many->receive.buffer, many->receive.counts, many->receive.places,
                                      MPI_INT, phases, comm);
}

/* Other data, other buffers and other places each time. */
static void data_moves(int pattern, int both, MPIX_Alltoallv_phases phases)
{
    for (int run = 0; run < RUNS; run++) {
        int in_place = both && run != 1;
        struct many many = many_make(comm, pattern, both, run % LAYOUTS, 1, 1);
        many_fill(&many, in_place ? &many.receive : &many.send, 1, run);
        EXPECT_EQUAL(data(&many, in_place, phases), MPI_SUCCESS);
        EXPECT_EQUAL(many_differences(&many, 1, run), 0);
        many_free(&many);
    }
}

/* Ints with gaps, and large counts of bytes: only the number of bytes counts. */
static void other_types_move(int pattern, MPIX_Alltoallv_phases phases)
{
    MPI_Datatype second;
    struct many many = many_make(comm, pattern, 0, LAYOUT_PACKED, 1, 2);
    size_t room = (unsigned)size * sizeof(MPI_Count);
    MPI_Count *send_counts = malloc(room), *receive_counts = malloc(room);
    MPI_Aint *send_places = malloc(room), *receive_places = malloc(room);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &second);
    MPI_Type_commit(&second);
    for (int of = 0; of < size; of++) {
        send_counts[of] = many.send.counts[of] * (MPI_Count)sizeof(int);
        send_places[of] = many.send.places[of] * (MPI_Aint)sizeof(int);
        receive_counts[of] = many.receive.counts[of];
        receive_places[of] = many.receive.places[of] / 2;
    }
    many_fill(&many, &many.send, 1, 9);
    EXPECT_EQUAL(MPIX_Alltoallv_data_trans2_c(many.send.buffer, send_counts, send_places, MPI_BYTE, many.receive.buffer,
                                              receive_counts, receive_places, second, phases, comm),
                 MPI_SUCCESS);
    EXPECT_EQUAL(many_differences(&many, 2, 9), 0);
    MPI_Type_free(&second);
    free(send_counts), free(receive_counts), free(send_places), free(receive_places);
    many_free(&many);
}

static void place_of(const char *name, char *path, size_t path_bytes)
{
    snprintf(path, path_bytes, "%s/%s", directory, name);
}

/* Level 3 from a file: one rank writes, all read. */
static MPIX_Alltoallv_phases kept(MPIX_Alltoallv_phases phases)
{
    char path[256];
    MPIX_Alltoallv_phases loaded;
    place_of(comm == MPI_COMM_SELF ? "self.plan" : "kept.plan", path, sizeof(path));
    if (rank == 0 && (comm != MPI_COMM_SELF || expect_rank == 0)) {
        EXPECT_EQUAL(MPIX_Alltoallv_phases_save(phases, path), MPI_SUCCESS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQUAL(MPIX_Alltoallv_phases_load(path, comm, &loaded), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    return loaded;
}

static void test_levels(int pattern, int both, const char *words)
{
    struct many many = many_make(comm, pattern, both, LAYOUT_PACKED, 1, 1);
    MPIX_Alltoallv_phases levels[3];
    levels[0] = control1(&many, words);
    levels[1] = control2(pattern, both, words);
    levels[2] = kept(levels[1]);
    many_free(&many);
    for (int level = 0; level < 3; level++) {
        data_moves(pattern, both, levels[level]);
        if (!both) {
            other_types_move(pattern, levels[level]);
        }
    }
    /* the same counts make the same phases, however they came about */
    data_moves(pattern, both, levels[rank % 3]);
    for (int level = 0; level < 3; level++) {
        EXPECT_EQUAL(MPIX_Alltoallv_phases_free(&levels[level]), MPI_SUCCESS);
        EXPECT(levels[level] == MPIX_ALLTOALLV_PHASES_NULL);
    }
}

static void other_calls_go_on_between(void)
{
    MPIX_Alltoallv_phases first = control2(6, 0, NULL), second = control2(7, 0, "alltoallv=greedy");
    struct many many = many_make(comm, 5, 0, LAYOUT_PACKED, 1, 1);
    MPI_Request request;
    int sum = 0, one = 1;
    many_fill(&many, &many.send, 1, 4);
    MPI_Ialltoallv(many.send.buffer, many.send.counts, many.send.places, MPI_INT, many.receive.buffer,
                   many.receive.counts, many.receive.places, MPI_INT, comm, &request);
    data_moves(6, 0, first);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    data_moves(7, 0, second);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(sum, size);
    EXPECT_EQUAL(many_differences(&many, 1, 4), 0);
    many_free(&many);
    MPIX_Alltoallv_phases_free(&first);
    MPIX_Alltoallv_phases_free(&second);
}

/* ---- what does not fit ---- */

static void wrong_handles_are_reported(void)
{
    MPIX_Alltoallv_phases phases = control2(0, 0, NULL);
    struct many many = many_make(comm, 0, 0, LAYOUT_PACKED, 1, 1);
    MPI_Comm world = comm, other = many_comm(comm, "");
    EXPECT_CLASS(data(&many, 0, MPIX_ALLTOALLV_PHASES_NULL), MPI_ERR_ARG);
    comm = other;
    EXPECT_CLASS(data(&many, 0, phases), MPI_ERR_COMM);
    comm = MPI_COMM_SELF;
    EXPECT_CLASS(data(&many, 0, phases), size == 1 ? MPI_ERR_COMM : MPI_ERR_ARG);
    comm = world;
    MPI_Comm_free(&other);
    EXPECT_EQUAL(MPIX_Alltoallv_phases_free(&phases), MPI_SUCCESS);
    many_free(&many);
}

static void wrong_counts_are_reported(void)
{
    MPIX_Alltoallv_phases phases = control2(0, 0, NULL), other;
    struct many many = many_make(comm, 0, 0, LAYOUT_PACKED, 1, 1);
    int *matrix = matrix_make(0, 0);
    matrix[size * size - 1] = -1;
    EXPECT_CLASS(MPIX_Alltoallv_control2(matrix, MPI_INT, MPI_INFO_NULL, comm, &other), MPI_ERR_COUNT);
    EXPECT(other == MPIX_ALLTOALLV_PHASES_NULL);
    many.send.counts[size - 1] -= 1; /* all find it at themselves, before they send */
    EXPECT_CLASS(data(&many, 0, phases), MPI_ERR_COUNT);
    many.send.counts[size - 1] += 1;
    data_moves(0, 0, phases);
    many.receive.counts[0] += rank == 0; /* one rank finds it; the others need its data, and are notified */
    EXPECT_CLASS(data(&many, 0, phases), rank == 0 ? MPI_ERR_COUNT : MPI_ERR_NOT_SAME);
    many.receive.counts[0] -= rank == 0;
    data_moves(0, 0, phases);
    int count = many.send.counts[0]; /* the same with one that is none at all */
    many.send.counts[0] = rank == 0 ? -1 : count;
    EXPECT_CLASS(data(&many, 0, phases), rank == 0 ? MPI_ERR_COUNT : MPI_ERR_NOT_SAME);
    many.send.counts[0] = count;
    data_moves(0, 0, phases);
    /* control1: all ranks know the same */
    many.receive.counts[size - 1] += rank == 0;
    EXPECT_CLASS(
        MPIX_Alltoallv_control1(many.send.counts, MPI_INT, many.receive.counts, MPI_INT, MPI_INFO_NULL, comm, &other),
        MPI_ERR_COUNT);
    many.receive.counts[size - 1] -= 2 * (rank == 0);
    EXPECT_CLASS(
        MPIX_Alltoallv_control1(many.send.counts, MPI_INT, many.receive.counts, MPI_INT, MPI_INFO_NULL, comm, &other),
        MPI_ERR_TRUNCATE);
    EXPECT(other == MPIX_ALLTOALLV_PHASES_NULL);
    MPIX_Alltoallv_phases_free(&phases);
    free(matrix);
    many_free(&many);
}

/* Rank 0 has other phases for the same counts, or is in another call: all need its data, and are notified. */
static void other_phases_are_reported(void)
{
    MPIX_Alltoallv_phases mine = control2(0, 0, rank == 0 ? "alltoallv=greedy" : "alltoallv=all-to-all-based");
    MPIX_Alltoallv_phases ours = control2(0, 0, NULL);
    struct many many = many_make(comm, 0, 0, LAYOUT_PACKED, 1, 1);
    for (int round = 0; size > 1 && round < 10; round++) {
        EXPECT_CLASS(data(&many, 0, mine), MPI_ERR_NOT_SAME);
        EXPECT_EQUAL(MPI_Barrier(comm), MPI_SUCCESS); /* late notices of the others do not apply to this one */
        data_moves(0, 0, ours);
    }
    many_free(&many);
    MPIX_Alltoallv_phases_free(&mine);
    MPIX_Alltoallv_phases_free(&ours);
}

static void another_call_is_reported(void)
{
    MPIX_Alltoallv_phases phases = control2(0, 0, NULL);
    struct many many = many_make(comm, 0, 0, LAYOUT_PACKED, 1, 1);
    int *all = calloc((unsigned)size, sizeof(int));
    MPI_Request request;
    if (size > 1 && rank == 0) {
        MPI_Iallgather(&rank, 1, MPI_INT, all, 1, MPI_INT, comm, &request);
        EXPECT_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_NOT_SAME);
    } else if (size > 1) {
        EXPECT_CLASS(data(&many, 0, phases), MPI_ERR_NOT_SAME);
    }
    data_moves(0, 0, phases);
    free(all);
    many_free(&many);
    MPIX_Alltoallv_phases_free(&phases);
}

static void wrong_words_are_reported(void)
{
    const char *const words[] = {"alltoallv=bruck", "alltoallv=pairs", "greedy", "alltoallv=greedy:threshold=lots"};
    int *matrix = matrix_make(0, 0);
    MPIX_Alltoallv_phases phases;
    for (int i = 0; i < 4; i++) {
        MPI_Info info = info_of(words[i]);
        EXPECT_CLASS(MPIX_Alltoallv_control2(matrix, MPI_INT, info, comm, &phases), MPI_ERR_INFO);
        MPI_Info_free(&info);
    }
    free(matrix);
}

static void file_write(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    EXPECT(file != NULL);
    if (file != NULL) {
        EXPECT_EQUAL(fwrite(bytes, 1, length, file), length);
        EXPECT_EQUAL(fclose(file), 0);
    }
}

static size_t file_read(const char *path, char *bytes, size_t room)
{
    size_t length = 0;
    FILE *file = fopen(path, "rb");
    EXPECT(file != NULL);
    if (file != NULL) {
        length = fread(bytes, 1, room, file);
        EXPECT_EQUAL(fclose(file), 0);
    }
    EXPECT(length < room);
    return length;
}

static void load_fails(const char *path, int wanted)
{
    MPIX_Alltoallv_phases phases;
    EXPECT_CLASS(MPIX_Alltoallv_phases_load(path, comm, &phases), wanted);
    EXPECT(phases == MPIX_ALLTOALLV_PHASES_NULL);
}

/* Each rank with files of its own. */
static void wrong_files_are_reported(void)
{
    static char bytes[1 << 20];
    char path[256], missing[300], name[32];
    MPI_Comm world = comm;
    MPIX_Alltoallv_phases phases = control2(5, 0, NULL);
    snprintf(name, sizeof(name), "rank%d.plan", expect_rank);
    place_of(name, path, sizeof(path));
    snprintf(missing, sizeof(missing), "%s.missing", path);
    EXPECT_EQUAL(MPIX_Alltoallv_phases_save(phases, path), MPI_SUCCESS);
    size_t length = file_read(path, bytes, sizeof(bytes));
    EXPECT(length > 32);
    for (size_t at = 0; at < length; at += 1 + length / 40) {
        bytes[at] ^= 4;
        file_write(path, bytes, length);
        load_fails(path, MPI_ERR_IO);
        bytes[at] ^= 4;
    }
    file_write(path, bytes, length / 2);
    load_fails(path, MPI_ERR_IO);
    file_write(path, bytes, 0);
    load_fails(path, MPI_ERR_IO);
    load_fails(missing, MPI_ERR_NO_SUCH_FILE);
    load_fails(directory, MPI_ERR_IO);
    snprintf(missing, sizeof(missing), "%s/missing/x.plan", directory);
    EXPECT_CLASS(MPIX_Alltoallv_phases_save(phases, missing), MPI_ERR_NO_SUCH_FILE);
    if (size > 1) { /* of another number of ranks */
        file_write(path, bytes, length);
        comm = MPI_COMM_SELF;
        load_fails(path, MPI_ERR_ARG);
        comm = world;
    }
    EXPECT_EQUAL(unlink(path), 0);
    MPIX_Alltoallv_phases_free(&phases);
}

static void directory_make(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof(directory), "%s/causeway-phases-XXXXXX", base != NULL ? base : "/tmp");
    if (expect_rank == 0) {
        EXPECT(mkdtemp(directory) != NULL);
    }
    MPI_Bcast(directory, sizeof(directory), MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void directory_remove(void)
{
    char path[256];
    MPI_Barrier(MPI_COMM_WORLD);
    if (expect_rank == 0) {
        place_of("kept.plan", path, sizeof(path));
        (void)unlink(path);
        place_of("self.plan", path, sizeof(path));
        (void)unlink(path);
        EXPECT_EQUAL(rmdir(directory), 0);
    }
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    directory_make();
    comm_set(MPI_COMM_WORLD);
    for (int i = 0; i < SCHEDULINGS; i++) {
        for (int pattern = 0; pattern < PATTERNS; pattern += 1 + (i > 3)) {
            test_levels(pattern, 0, schedulings[i]);
        }
        test_levels(PATTERNS - 1, 1, schedulings[i]);
    }
    other_calls_go_on_between();
    wrong_handles_are_reported();
    wrong_counts_are_reported();
    other_phases_are_reported();
    another_call_is_reported();
    wrong_words_are_reported();
    wrong_files_are_reported();
    comm_set(MPI_COMM_SELF);
    test_levels(5, 0, NULL);
    directory_remove();
    return expect_end();
}
