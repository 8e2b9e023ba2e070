/* Collectives that move data (MPI 5.0, 6.3 to 6.8), blocking, non-blocking and persistent: all counts, roots and
 * in-place forms; v and w forms with gaps. MPI_Scatterv: scatterv.c. */
#include "tests/mpi/conformance/forms.h"

#include <string.h>

static MPI_Comm comm;
static int rank, size;

/* Element i of the data from `from` for `to`. */
static int element(int from, int to, int i)
{
    return from * 1000003 + to * 1009 + i;
}

static void fill(int *buffer, int from, int to, int count)
{
    for (int i = 0; i < count; i++) {
        buffer[i] = element(from, to, i);
    }
}

static int differences(const int *buffer, int from, int to, int count)
{
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        wrong += buffer[i] != element(from, to, i);
    }
    return wrong;
}

static int *ints(int count)
{
    int *memory = malloc(((size_t)count + 1) * sizeof(int));
    for (int i = 0; i <= count; i++) {
        memory[i] = -1;
    }
    return memory;
}

static void test_bcast(int form, int count, int root)
{
    int *buffer = ints(count);
    if (rank == root) {
        fill(buffer, root, 0, count);
    }
    RUN(form, Bcast, Ibcast, buffer, count, MPI_INT, root, comm);
    EXPECT_EQUAL(differences(buffer, root, 0, count), 0);
    EXPECT_EQUAL(buffer[count], -1);
    free(buffer);
}

static void test_gather(int form, int count, int root, int in_place)
{
    int *out = ints(count), *in = ints(count * size);
    fill(out, rank, 0, count);
    if (in_place && rank == root) {
        memcpy(in + rank * count, out, (size_t)count * sizeof(int));
    }
    const void *send = in_place && rank == root ? MPI_IN_PLACE : out;
    RUN(form, Gather, Igather, send, count, MPI_INT, in, count, MPI_INT, root, comm);
    for (int from = 0; rank == root && from < size; from++) {
        EXPECT_EQUAL(differences(in + from * count, from, 0, count), 0);
    }
    EXPECT_EQUAL(in[count * size], -1);
    free(out);
    free(in);
}

static void test_scatter(int form, int count, int root, int in_place)
{
    int *out = ints(count * size), *in = ints(count);
    for (int to = 0; rank == root && to < size; to++) {
        fill(out + to * count, root, to, count);
    }
    void *receive = in_place && rank == root ? MPI_IN_PLACE : in;
    RUN(form, Scatter, Iscatter, out, count, MPI_INT, receive, count, MPI_INT, root, comm);
    EXPECT_EQUAL(differences(receive == MPI_IN_PLACE ? out + rank * count : in, root, rank, count), 0);
    free(out);
    free(in);
}

static void test_allgather(int form, int count, int in_place)
{
    int *out = ints(count), *in = ints(count * size);
    fill(out, rank, 0, count);
    if (in_place) {
        memcpy(in + rank * count, out, (size_t)count * sizeof(int));
    }
    const void *send = in_place ? MPI_IN_PLACE : out;
    RUN(form, Allgather, Iallgather, send, count, MPI_INT, in, count, MPI_INT, comm);
    for (int from = 0; from < size; from++) {
        EXPECT_EQUAL(differences(in + from * count, from, 0, count), 0);
    }
    free(out);
    free(in);
}

static void test_alltoall(int form, int count, int in_place)
{
    int *out = ints(count * size), *in = ints(count * size);
    for (int to = 0; to < size; to++) {
        fill((in_place ? in : out) + to * count, rank, to, count);
    }
    const void *send = in_place ? MPI_IN_PLACE : out;
    if (in_place && form == 2) { /* twice in place would exchange what was exchanged */
        form = 1;
    }
    RUN(form, Alltoall, Ialltoall, send, count, MPI_INT, in, count, MPI_INT, comm);
    for (int from = 0; from < size; from++) {
        EXPECT_EQUAL(differences(in + from * count, from, rank, count), 0);
    }
    free(out);
    free(in);
}

/* Counts and displacements of all ranks' shares, with a gap of two elements before each; returns where they end. */
static int layout(int count, int *counts, int *displacements)
{
    int at = 0;
    for (int of = 0; of < size; of++) {
        counts[of] = of % 3 == 1 ? 0 : count + of;
        displacements[of] = at + 2;
        at += counts[of] + 2;
    }
    return at;
}

static void gaps_are_untouched(const int *buffer, const int *displacements)
{
    for (int of = 0; of < size; of++) {
        EXPECT_EQUAL(buffer[displacements[of] - 1], -1);
        EXPECT_EQUAL(buffer[displacements[of] - 2], -1);
    }
}

static void test_allgatherv(int form, int count, int in_place)
{
    int *counts = ints(size), *displacements = ints(size);
    int *in = ints(layout(count, counts, displacements)), *out = ints(counts[rank]);
    fill(in_place ? in + displacements[rank] : out, rank, 0, counts[rank]);
    const void *send = in_place ? MPI_IN_PLACE : out;
    RUN(form, Allgatherv, Iallgatherv, send, counts[rank], MPI_INT, in, counts, displacements, MPI_INT, comm);
    for (int from = 0; from < size; from++) {
        EXPECT_EQUAL(differences(in + displacements[from], from, 0, counts[from]), 0);
    }
    gaps_are_untouched(in, displacements);
    free(counts), free(displacements), free(in), free(out);
}

static void test_gatherv(int form, int count, int root, int in_place)
{
    int *counts = ints(size), *displacements = ints(size);
    int *in = ints(layout(count, counts, displacements)), *out = ints(counts[rank]);
    int is_in_place = in_place && rank == root;
    fill(is_in_place ? in + displacements[rank] : out, rank, 0, counts[rank]);
    const void *send = is_in_place ? MPI_IN_PLACE : out;
    const int *given = rank == root ? counts : NULL, *places = rank == root ? displacements : NULL;
    RUN(form, Gatherv, Igatherv, send, counts[rank], MPI_INT, in, given, places, MPI_INT, root, comm);
    for (int from = 0; rank == root && from < size; from++) {
        EXPECT_EQUAL(differences(in + displacements[from], from, 0, counts[from]), 0);
    }
    gaps_are_untouched(in, displacements);
    free(counts), free(displacements), free(in), free(out);
}

/* Elements from one rank to another. */
static int pair_count(int from, int to, int count)
{
    return (from + 2 * to) % 3 == 0 ? 0 : count + (from + 3 * to) % 5;
}

struct pairs {
    int *send_counts, *send_places, *receive_counts, *receive_places;
    int *out, *in;
};

static struct pairs pairs_make(int count)
{
    struct pairs pairs = {.send_counts = ints(size),
                          .send_places = ints(size),
                          .receive_counts = ints(size),
                          .receive_places = ints(size)};
    int out_end = 0, in_end = 0;
    for (int of = 0; of < size; of++) {
        pairs.send_counts[of] = pair_count(rank, of, count);
        pairs.receive_counts[of] = pair_count(of, rank, count);
        pairs.send_places[of] = out_end + 1;
        pairs.receive_places[of] = in_end + 2;
        out_end += pairs.send_counts[of] + 1;
        in_end += pairs.receive_counts[of] + 2;
    }
    pairs.out = ints(out_end);
    pairs.in = ints(in_end);
    for (int to = 0; to < size; to++) {
        fill(pairs.out + pairs.send_places[to], rank, to, pairs.send_counts[to]);
    }
    return pairs;
}

static void pairs_check(struct pairs *pairs)
{
    for (int from = 0; from < size; from++) {
        EXPECT_EQUAL(differences(pairs->in + pairs->receive_places[from], from, rank, pairs->receive_counts[from]), 0);
    }
    gaps_are_untouched(pairs->in, pairs->receive_places);
    free(pairs->send_counts), free(pairs->send_places), free(pairs->receive_counts), free(pairs->receive_places);
    free(pairs->in), free(pairs->out);
}

static void test_alltoallv(int form, int count)
{
    struct pairs p = pairs_make(count);
    RUN(form, Alltoallv, Ialltoallv, p.out, p.send_counts, p.send_places, MPI_INT, p.in, p.receive_counts,
        p.receive_places, MPI_INT, comm);
    pairs_check(&p);
}

static void test_alltoallw(int form, int count)
{
    struct pairs p = pairs_make(count);
    MPI_Datatype *types = malloc((size_t)size * sizeof(*types));
    for (int of = 0; of < size; of++) {
        types[of] = MPI_INT;
        p.send_places[of] *= (int)sizeof(int);
        p.receive_places[of] *= (int)sizeof(int);
    }
    RUN(form, Alltoallw, Ialltoallw, p.out, p.send_counts, p.send_places, types, p.in, p.receive_counts,
        p.receive_places, types, comm);
    for (int of = 0; of < size; of++) {
        p.receive_places[of] /= (int)sizeof(int);
    }
    free(types);
    pairs_check(&p);
}

/* Every second element: data sent with gaps may be received without, and the other way round. */
static void test_types(int form, int count, int root)
{
    MPI_Datatype gapped;
    int *dense = ints(count), *wide = ints(2 * count);
    MPI_Type_vector(count, 1, 2, MPI_INT, &gapped);
    MPI_Type_commit(&gapped);
    int is_root = rank == root;
    if (is_root) {
        for (int i = 0; i < count; i++) {
            wide[2 * i] = element(root, 0, i);
        }
    }
    void *buffer = is_root ? (void *)wide : dense;
    int elements = is_root ? 1 : count;
    MPI_Datatype type = is_root ? gapped : MPI_INT;
    RUN(form, Bcast, Ibcast, buffer, elements, type, root, comm);
    if (!is_root) {
        EXPECT_EQUAL(differences(dense, root, 0, count), 0);
    }
    MPI_Type_free(&gapped);
    free(dense), free(wide);
}

static void test_all(int count)
{
    for (int form = 0; form < FORMS; form++) {
        for (int root = 0; root < size; root += 1 + (size > 4)) {
            test_bcast(form, count, root);
            test_types(form, count, root);
            for (int in_place = 0; in_place < 2; in_place++) {
                test_gather(form, count, root, in_place);
                test_scatter(form, count, root, in_place);
                test_gatherv(form, count, root, in_place);
            }
        }
        for (int in_place = 0; in_place < 2; in_place++) {
            test_allgather(form, count, in_place);
            test_allgatherv(form, count, in_place);
            test_alltoall(form, count, in_place);
        }
        test_alltoallv(form, count);
        test_alltoallw(form, count);
        RUN(form, Barrier, Ibarrier, comm);
    }
}

/* Several at a time, completed in another order; persistent ones started in an order of each rank's own (6.13). */
static void several_are_under_way(void)
{
    enum { COUNT = 12 };
    MPI_Request requests[COUNT];
    int values[COUNT], sums[COUNT];
    for (int i = 0; i < COUNT; i++) {
        values[i] = rank + i;
        if (i % 3 == 0) {
            MPI_Iallreduce(&values[i], &sums[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
        } else {
            sums[i] = rank == i % size ? 100 + i : -1;
            MPI_Ibcast(&sums[i], 1, MPI_INT, i % size, comm, &requests[i]);
        }
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        EXPECT_EQUAL(sums[i], i % 3 == 0 ? size * (size - 1) / 2 + i * size : 100 + i);
    }
    for (int i = 0; i < COUNT; i++) {
        MPI_Allreduce_init(&values[i], &sums[i], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[i]);
    }
    for (int run = 0; run < 3; run++) {
        for (int i = 0; i < COUNT; i++) {
            MPI_Start(&requests[(i + rank + run) % COUNT]);
        }
        MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < COUNT; i++) {
            EXPECT_EQUAL(sums[i], size * (size - 1) / 2 + i * size);
            sums[i] = 0;
        }
    }
    for (int i = 0; i < COUNT; i++) {
        MPI_Request_free(&requests[i]);
    }
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, expect_rank % 2, -expect_rank, &reversed);
    MPI_Comm_set_errhandler(reversed, MPI_ERRORS_RETURN);
    MPI_Comm comms[] = {MPI_COMM_WORLD, reversed, MPI_COMM_SELF};
    for (int i = 0; i < 3; i++) {
        comm = comms[i];
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        const int counts[] = {0, 1, 7, 1000, 2048, 20011}; /* 2048: just what is sent at once */
        for (int j = 0; j < (i == 0 ? 6 : 3); j++) {
            test_all(counts[j]);
        }
        several_are_under_way();
    }
    MPI_Comm_free(&reversed);
    return expect_end();
}
