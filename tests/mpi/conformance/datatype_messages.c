/* Messages of derived datatypes (MPI 5.0, 3.3.1, 5.1): the selection of a constructor at one side arrives in the order
 * of its type map at the other, short or long. */
#include "tests/mpi/expect.h"

#include <string.h>

/* A type of ints, with the places of its ints within an array of `room`, in the order of the type map. */
struct sample {
    const char *name;
    MPI_Datatype type;
    int count;  /* of ints */
    int room;   /* ints from the lowest to the highest place */
    int origin; /* where the buffer argument points */
    int *places;
};

static struct sample sample_begin(const char *name, int count, int room, int origin)
{
    int *places = malloc((size_t)count * sizeof(int));
    return (struct sample){.name = name, .count = count, .room = room, .origin = origin, .places = places};
}

static struct sample contiguous(int n)
{
    struct sample sample = sample_begin("contiguous", n, n, 0);
    MPI_Type_contiguous(n, MPI_INT, &sample.type);
    for (int i = 0; i < n; i++) {
        sample.places[i] = i;
    }
    return sample;
}

static struct sample vector(int n)
{
    struct sample sample = sample_begin("vector", 2 * n, 5 * n, 0);
    MPI_Type_vector(n, 2, 5, MPI_INT, &sample.type);
    for (int i = 0; i < 2 * n; i++) {
        sample.places[i] = i / 2 * 5 + i % 2;
    }
    return sample;
}

static struct sample backward(int n)
{
    struct sample sample = sample_begin("vector with a negative stride", 2 * n, 3 * n, 3 * (n - 1));
    MPI_Type_vector(n, 2, -3, MPI_INT, &sample.type);
    for (int i = 0; i < 2 * n; i++) {
        sample.places[i] = 3 * (n - 1) - i / 2 * 3 + i % 2;
    }
    return sample;
}

static struct sample hvector(int n)
{
    struct sample sample = sample_begin("hvector", n, 4 * n, 0);
    MPI_Type_create_hvector(n, 1, 4 * sizeof(int), MPI_INT, &sample.type);
    for (int i = 0; i < n; i++) {
        sample.places[i] = 4 * i;
    }
    return sample;
}

/* Blocks of 0 to 3, the later ones first. */
static struct sample indexed(int n, int in_bytes)
{
    struct sample sample =
        sample_begin(in_bytes ? "hindexed" : "indexed", 6 * (n / 4) + (n % 4) * (n % 4 - 1) / 2, 4 * n, 0);
    int *lengths = malloc((size_t)n * sizeof(int)), *displacements = malloc((size_t)n * sizeof(int)), at = 0;
    MPI_Aint *bytes = malloc((size_t)n * sizeof(*bytes));
    for (int i = 0; i < n; i++) {
        lengths[i] = i % 4;
        displacements[i] = 4 * (n - 1 - i);
        bytes[i] = displacements[i] * (MPI_Aint)sizeof(int);
        for (int j = 0; j < lengths[i]; j++) {
            sample.places[at++] = displacements[i] + j;
        }
    }
    EXPECT_EQUAL(at, sample.count);
    if (in_bytes) {
        MPI_Type_create_hindexed(n, lengths, bytes, MPI_INT, &sample.type);
    } else {
        MPI_Type_indexed(n, lengths, displacements, MPI_INT, &sample.type);
    }
    free(lengths);
    free(displacements);
    free(bytes);
    return sample;
}

static struct sample indexed_block(int n, int in_bytes)
{
    struct sample sample = sample_begin(in_bytes ? "hindexed_block" : "indexed_block", 3 * n, 7 * n, 0);
    int *displacements = malloc((size_t)n * sizeof(int));
    MPI_Aint *bytes = malloc((size_t)n * sizeof(*bytes));
    for (int i = 0; i < n; i++) {
        displacements[i] = 7 * (i ^ 1) < 7 * n - 3 ? 7 * (i ^ 1) : 7 * i; /* neighbours change places */
        bytes[i] = displacements[i] * (MPI_Aint)sizeof(int);
        for (int j = 0; j < 3; j++) {
            sample.places[3 * i + j] = displacements[i] + j;
        }
    }
    if (in_bytes) {
        MPI_Type_create_hindexed_block(n, 3, bytes, MPI_INT, &sample.type);
    } else {
        MPI_Type_create_indexed_block(n, 3, displacements, MPI_INT, &sample.type);
    }
    free(displacements);
    free(bytes);
    return sample;
}

/* A vector, a hole, a run. */
static struct sample structure(int n)
{
    struct sample parts = vector(n), sample = sample_begin("struct", 3 * n, 6 * n + 4, 0);
    const int lengths[] = {1, n};
    const MPI_Aint displacements[] = {0, (5 * n + 4) * (MPI_Aint)sizeof(int)};
    const MPI_Datatype types[] = {parts.type, MPI_INT};
    MPI_Type_create_struct(2, lengths, displacements, types, &sample.type);
    for (int i = 0; i < 3 * n; i++) {
        sample.places[i] = i < 2 * n ? parts.places[i] : 5 * n + 4 + i - 2 * n;
    }
    MPI_Type_free(&parts.type);
    free(parts.places);
    return sample;
}

/* Of a matrix of n times 10 the rows from 1 on, the columns 2 to 4. */
static struct sample subarray(int n, int order)
{
    struct sample sample =
        sample_begin(order == MPI_ORDER_C ? "subarray" : "subarray in Fortran's order", 3 * n, 10 * (n + 1), 0);
    const int c_sizes[] = {n + 1, 10}, c_part[] = {n, 3}, c_starts[] = {1, 2};
    const int f_sizes[] = {10, n + 1}, f_part[] = {3, n}, f_starts[] = {2, 1};
    if (order == MPI_ORDER_C) {
        MPI_Type_create_subarray(2, c_sizes, c_part, c_starts, order, MPI_INT, &sample.type);
    } else {
        MPI_Type_create_subarray(2, f_sizes, f_part, f_starts, order, MPI_INT, &sample.type);
    }
    for (int i = 0; i < 3 * n; i++) {
        sample.places[i] = 10 * (1 + i / 3) + 2 + i % 3;
    }
    return sample;
}

/* Ints three apart, by an extent larger than their size; a lower bound that is none of theirs. */
static struct sample resized(int n)
{
    struct sample sample = sample_begin("resized", n, 3 * n, 0);
    MPI_Datatype wide;
    MPI_Type_create_resized(MPI_INT, -(MPI_Aint)sizeof(int), 3 * sizeof(int), &wide);
    MPI_Type_contiguous(n, wide, &sample.type);
    MPI_Type_free(&wide);
    for (int i = 0; i < n; i++) {
        sample.places[i] = 3 * i;
    }
    return sample;
}

/* A copy of a copy of a type that is freed before it is used. */
static struct sample duplicate(int n)
{
    struct sample sample = vector(n);
    MPI_Datatype original = sample.type;
    MPI_Type_dup(original, &sample.type);
    MPI_Type_free(&original);
    sample.name = "dup";
    return sample;
}

/* The ints that a type selects become first, first + 1, ...; the others -1. */
static void fill(int *memory, const struct sample *sample, int first)
{
    for (int i = 0; i < sample->room; i++) {
        memory[i] = -1;
    }
    for (int i = 0; i < sample->count; i++) {
        memory[sample->places[i]] = first + i;
    }
}

static void expect_same(const int *found, const int *wanted, int count, const char *name, const char *how)
{
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        wrong += found[i] != wanted[i];
    }
    if (wrong > 0) {
        fprintf(stderr, "%s, %d ints, %s\n", name, count, how);
    }
    EXPECT_EQUAL(wrong, 0);
}

/* From the type to a run of ints, from a run to the type, and from type to type: the gaps between the places stay. */
static void there_and_back(struct sample sample)
{
    size_t bytes = (size_t)sample.room * sizeof(int);
    int *memory = malloc(bytes), *wanted = malloc(bytes);
    int *run = malloc((size_t)sample.count * sizeof(int)), *wanted_run = malloc((size_t)sample.count * sizeof(int));
    MPI_Status status;
    for (int i = 0; i < sample.count; i++) {
        wanted_run[i] = 1000 * expect_left + i;
    }
    MPI_Type_commit(&sample.type);
    fill(memory, &sample, 1000 * expect_rank);
    MPI_Sendrecv(memory + sample.origin, 1, sample.type, expect_right, 1, run, sample.count, MPI_INT, expect_left, 1,
                 MPI_COMM_WORLD, &status);
    EXPECT_EQUAL(expect_count(&status, MPI_INT), sample.count);
    expect_same(run, wanted_run, sample.count, sample.name, "to a run");
    memset(memory, 0xff, bytes);
    fill(wanted, &sample, 1000 * expect_left); /* the run goes back to where it came from, and on to here */
    MPI_Sendrecv_replace(run, sample.count, MPI_INT, expect_left, 2, expect_right, 2, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    MPI_Sendrecv(run, sample.count, MPI_INT, expect_right, 3, memory + sample.origin, 1, sample.type, expect_left, 3,
                 MPI_COMM_WORLD, &status);
    EXPECT_EQUAL(expect_count(&status, sample.type), sample.count == 0 ? 0 : 1);
    EXPECT_EQUAL(expect_elements(&status, sample.type), sample.count);
    expect_same(memory, wanted, sample.room, sample.name, "from a run");
    fill(memory, &sample, 1000 * expect_rank);
    MPI_Sendrecv_replace(memory + sample.origin, 1, sample.type, expect_right, 4, expect_left, 4, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    expect_same(memory, wanted, sample.room, sample.name, "to itself");
    MPI_Type_free(&sample.type);
    free(sample.places);
    free(memory);
    free(wanted);
    free(run);
    free(wanted_run);
}

static void all_constructors(int n)
{
    there_and_back(contiguous(n));
    there_and_back(vector(n));
    there_and_back(backward(n));
    there_and_back(hvector(n));
    there_and_back(indexed(n, 0));
    there_and_back(indexed(n, 1));
    there_and_back(indexed_block(n, 0));
    there_and_back(indexed_block(n, 1));
    there_and_back(structure(n));
    there_and_back(subarray(n, MPI_ORDER_C));
    there_and_back(subarray(n, MPI_ORDER_FORTRAN));
    there_and_back(resized(n));
    there_and_back(duplicate(n));
}

/* 5.1.11: a message may end within a type: elements are counted, whole types are not. */
static void partial_receives(int whole)
{
    struct {
        double d;
        int i;
        char c;
    } *out = calloc((size_t)whole + 1, sizeof(*out)), *in = calloc((size_t)whole + 1, sizeof(*in));
    MPI_Datatype packed, type;
    const int lengths[] = {1, 1, 1};
    const MPI_Aint displacements[] = {0, sizeof(double), sizeof(double) + sizeof(int)};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR};
    MPI_Status status;
    MPI_Request request;
    MPI_Type_create_struct(3, lengths, displacements, types, &packed);
    MPI_Type_create_resized(packed, 0, sizeof(*out), &type);
    MPI_Type_free(&packed);
    MPI_Type_commit(&type);
    MPI_Type_create_struct(2, lengths, displacements, types, &packed);
    MPI_Type_commit(&packed);
    for (int i = 0; i <= whole; i++) {
        out[i].d = i + 0.5;
        out[i].i = i;
        out[i].c = 'x';
    }
    MPI_Isend(out, whole, type, expect_right, 1, MPI_COMM_WORLD, &request);
    MPI_Recv(in, whole + 1, type, expect_left, 1, MPI_COMM_WORLD, &status);
    EXPECT_EQUAL(expect_count(&status, type), whole);
    EXPECT_EQUAL(expect_elements(&status, type), 3 * whole);
    EXPECT(in[whole - 1].d == whole - 0.5 && in[whole - 1].i == whole - 1 && in[whole - 1].c == 'x');
    EXPECT(in[whole].d == 0 && in[whole].c == 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(&out[1], 1, packed, expect_right, 2, MPI_COMM_WORLD, &request);
    MPI_Recv(in, whole + 1, type, expect_left, 2, MPI_COMM_WORLD, &status);
    EXPECT_EQUAL(expect_count(&status, type), MPI_UNDEFINED);
    EXPECT_EQUAL(expect_elements(&status, type), 2);
    EXPECT(in[0].d == 1.5 && in[0].i == 1 && in[0].c == 'x'); /* the char is from before */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    MPI_Type_free(&packed);
    free(out);
    free(in);
}

/* 5.2: packed by hand and received as what it is; sent as what it is and unpacked by hand. */
static void packed_messages(int n)
{
    int *out = malloc((size_t)n * sizeof(int)), *in = malloc((size_t)n * sizeof(int)), size, more, position = 0,
        count = n;
    double tail = 2.5, found = 0;
    MPI_Status status;
    MPI_Pack_size(1 + n, MPI_INT, MPI_COMM_WORLD, &size);
    MPI_Pack_size(1, MPI_DOUBLE, MPI_COMM_WORLD, &more);
    size += more;
    char *buffer = malloc((size_t)size), *received = malloc((size_t)size);
    for (int i = 0; i < n; i++) {
        out[i] = i * expect_rank;
    }
    MPI_Pack(&count, 1, MPI_INT, buffer, size, &position, MPI_COMM_WORLD);
    MPI_Pack(out, n, MPI_INT, buffer, size, &position, MPI_COMM_WORLD);
    EXPECT_EQUAL(MPI_Pack(&tail, 1, MPI_DOUBLE, buffer, size, &position, MPI_COMM_WORLD), MPI_SUCCESS);
    MPI_Sendrecv(buffer, position, MPI_PACKED, expect_right, 1, received, size, MPI_PACKED, expect_left, 1,
                 MPI_COMM_WORLD, &status);
    EXPECT_EQUAL(expect_count(&status, MPI_PACKED), position);
    position = count = 0;
    MPI_Unpack(received, size, &position, &count, 1, MPI_INT, MPI_COMM_WORLD);
    EXPECT_EQUAL(count, n);
    MPI_Unpack(received, size, &position, in, n, MPI_INT, MPI_COMM_WORLD);
    EXPECT_EQUAL(MPI_Unpack(received, size, &position, &found, 1, MPI_DOUBLE, MPI_COMM_WORLD), MPI_SUCCESS);
    EXPECT(found == 2.5);
    EXPECT_EQUAL(in[n - 1], (n - 1) * expect_left);
    position = 0;
    MPI_Sendrecv(out, n, MPI_INT, expect_right, 2, received, size, MPI_PACKED, expect_left, 2, MPI_COMM_WORLD, &status);
    memset(in, 0, (size_t)n * sizeof(int));
    MPI_Unpack(received, size, &position, in, n, MPI_INT, MPI_COMM_WORLD);
    EXPECT_EQUAL(in[n - 1], (n - 1) * expect_left);
    free(out);
    free(in);
    free(buffer);
    free(received);
}

/* The forms with large counts do the same for small ones. */
static void large_count_forms(MPI_Count n)
{
    int *out = malloc((size_t)n * sizeof(int)), *in = calloc((size_t)n, sizeof(int));
    MPI_Datatype type, every_second;
    MPI_Request request;
    MPI_Status status;
    MPI_Count count = 0, size = 0;
    MPI_Type_contiguous_c(n, MPI_INT, &type);
    MPI_Type_vector_c(n / 2, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&type);
    MPI_Type_commit(&every_second);
    MPI_Type_size_c(type, &size);
    EXPECT_EQUAL(size, n * (MPI_Count)sizeof(int));
    for (int i = 0; i < n; i++) {
        out[i] = i + expect_rank;
    }
    MPI_Irecv_c(in, n, MPI_INT, expect_left, 1, MPI_COMM_WORLD, &request);
    MPI_Send_c(out, 1, type, expect_right, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Get_count_c(&status, MPI_INT, &count);
    EXPECT_EQUAL(count, n);
    EXPECT_EQUAL(in[n - 1], n - 1 + expect_left);
    memset(in, 0, (size_t)n * sizeof(int));
    MPI_Isend_c(out, n / 2, MPI_INT, expect_right, 2, MPI_COMM_WORLD, &request);
    MPI_Recv_c(in, 1, every_second, expect_left, 2, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Get_elements_c(&status, every_second, &count);
    EXPECT_EQUAL(count, n / 2);
    EXPECT_EQUAL(in[2], 1 + expect_left);
    EXPECT_EQUAL(in[1], 0);
    MPI_Type_free(&type);
    MPI_Type_free(&every_second);
    free(out);
    free(in);
    const MPI_Count huge = (MPI_Count)3 << 40;
    MPI_Type_contiguous_c(huge, MPI_BYTE, &type);
    MPI_Type_size_c(type, &size);
    EXPECT_EQUAL(size, huge);
    MPI_Type_free(&type);
}

/* A type of 0 bytes, and 0 of a type; a freed type whose message is under way. */
static void edges(void)
{
    MPI_Datatype none, vector_type;
    MPI_Status status;
    MPI_Request requests[2];
    static int out[60000], in[30000];
    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_commit(&none);
    MPI_Sendrecv(out, 5, none, expect_right, 1, in, 0, MPI_INT, expect_left, 1, MPI_COMM_WORLD, &status);
    EXPECT_EQUAL(expect_count(&status, none), 0);
    MPI_Type_free(&none);
    out[59998] = 1 + expect_rank;
    MPI_Type_vector(30000, 1, 2, MPI_INT, &vector_type);
    MPI_Type_commit(&vector_type);
    MPI_Isend(out, 1, vector_type, expect_right, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Type_free(&vector_type);
    MPI_Irecv(in, 30000, MPI_INT, expect_left, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQUAL(in[29999], 1 + expect_left);
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector_type);
    EXPECT_CLASS(MPI_Send(out, 1, vector_type, expect_right, 3, MPI_COMM_WORLD), MPI_ERR_TYPE); /* not committed */
    MPI_Type_free(&vector_type);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    const int sizes[] = {1, 2, 10, 1000, 5000, 150000};
    for (int with_itself = 0; with_itself < 2; with_itself++) {
        expect_right = with_itself ? expect_rank : (expect_rank + 1) % expect_size;
        expect_left = with_itself ? expect_rank : (expect_rank + expect_size - 1) % expect_size;
        for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
            all_constructors(sizes[i]);
            packed_messages(sizes[i]);
            partial_receives(sizes[i]);
        }
        large_count_forms(10);
        large_count_forms(400000);
        edges();
    }
    return expect_end();
}
