/* Reductions (MPI 5.0, 6.9 to 6.12) against a serial reference: predefined and user operations, commutative or not,
 * derived types, in place, all forms. */
#include "tests/mpi/conformance/forms.h"

#include <string.h>

static MPI_Comm comm;
static int rank, size;

/* x -> a x + b modulo a prime: composing is associative, and does not commute. */
struct affine {
    unsigned a, b;
};

enum { PRIME = 32749 };

static struct affine compose(struct affine left, struct affine right)
{
    return (struct affine){left.a * right.a % PRIME, (left.a * right.b + left.b) % PRIME};
}

static void affine_op(void *in, void *inout, int *length, MPI_Datatype *datatype)
{
    struct affine *left = in, *right = inout;
    (void)datatype;
    for (int i = 0; i < *length; i++) {
        right[i] = compose(left[i], right[i]);
    }
}

static struct affine affine_of(int of, int i)
{
    return (struct affine){(unsigned)(of * 31 + i * 7 + 3) % PRIME, (unsigned)(of * 17 + i + 1) % PRIME};
}

/* Of ranks 0 .. last. */
static struct affine affine_wanted(int last, int i)
{
    struct affine value = affine_of(0, i);
    for (int of = 1; of <= last; of++) {
        value = compose(value, affine_of(of, i));
    }
    return value;
}

/* A call of any reduction; the caller compares the result. */
enum call { REDUCE, ALLREDUCE, SCAN, EXSCAN, REDUCE_SCATTER_BLOCK };

static void call_run(enum call call, int form, const void *out, void *in, int count, MPI_Datatype type, MPI_Op op,
                     int root)
{
    switch (call) {
    case REDUCE:
        RUN(form, Reduce, Ireduce, out, in, count, type, op, root, comm);
        break;
    case ALLREDUCE:
        RUN(form, Allreduce, Iallreduce, out, in, count, type, op, comm);
        break;
    case SCAN:
        RUN(form, Scan, Iscan, out, in, count, type, op, comm);
        break;
    case EXSCAN:
        RUN(form, Exscan, Iexscan, out, in, count, type, op, comm);
        break;
    case REDUCE_SCATTER_BLOCK:
        RUN(form, Reduce_scatter_block, Ireduce_scatter_block, out, in, count, type, op, comm);
        break;
    }
}

/* The last rank whose contribution is in this rank's result; -1: this rank has none. */
static int last_of(enum call call, int root)
{
    switch (call) {
    case REDUCE:
        return rank == root ? size - 1 : -1;
    case SCAN:
        return rank;
    case EXSCAN:
        return rank - 1;
    default:
        return size - 1;
    }
}

static void test_affine(enum call call, int form, int count, int root, MPI_Op op, MPI_Datatype type)
{
    int blocks = call == REDUCE_SCATTER_BLOCK ? size : 1;
    int offset = call == REDUCE_SCATTER_BLOCK ? rank * count : 0;
    struct affine *out = calloc((size_t)(count * blocks) + 1, sizeof(*out)),
                  *in = calloc((size_t)count + 1, sizeof(*in));
    for (int i = 0; i < count * blocks; i++) {
        out[i] = affine_of(rank, i);
    }
    in[count].a = 77;
    call_run(call, form, out, in, count, type, op, root);
    int last = last_of(call, root), wrong = 0;
    for (int i = 0; last >= 0 && i < count; i++) {
        struct affine wanted = affine_wanted(last, i + offset);
        wrong += in[i].a != wanted.a || in[i].b != wanted.b;
    }
    EXPECT_EQUAL(wrong, 0);
    EXPECT_EQUAL(in[count].a, 77);
    for (int i = 0; i < count * blocks; i++) {
        wrong += out[i].a != affine_of(rank, i).a;
    }
    EXPECT_EQUAL(wrong, 0);
    free(out), free(in);
}

/* Sums in place; a sum of ranks is known. */
static void test_in_place(enum call call, int form, int count, int root)
{
    int blocks = call == REDUCE_SCATTER_BLOCK ? size : 1;
    int offset = call == REDUCE_SCATTER_BLOCK ? rank * count : 0;
    long *buffer = malloc(((size_t)(count * blocks) + 1) * sizeof(*buffer)),
         *other = calloc((size_t)count + 1, sizeof(*other));
    for (int i = 0; i < count * blocks; i++) {
        buffer[i] = rank + i;
    }
    const void *out = call == REDUCE && rank != root ? (void *)buffer : MPI_IN_PLACE;
    void *in = call == REDUCE && rank != root ? other : buffer;
    call_run(call, form, out, in, count, MPI_LONG, MPI_SUM, root);
    int last = last_of(call, root), wrong = 0;
    for (int i = 0; last >= 0 && i < count; i++) {
        wrong += buffer[i] != (long)last * (last + 1) / 2 + (long)(last + 1) * (i + offset);
    }
    EXPECT_EQUAL(wrong, 0);
    free(buffer), free(other);
}

static void test_reduce_scatter(int form, int count)
{
    int *counts = malloc((size_t)size * sizeof(int)), total = 0, before = 0;
    for (int of = 0; of < size; of++) {
        counts[of] = of % 3 == 1 ? 0 : count + of;
        before += of < rank ? counts[of] : 0;
        total += counts[of];
    }
    int *out = malloc(((size_t)total + 1) * sizeof(int)), *in = malloc(((size_t)counts[rank] + 1) * sizeof(int));
    for (int i = 0; i < total; i++) {
        out[i] = rank * 2 + i;
    }
    RUN(form, Reduce_scatter, Ireduce_scatter, out, in, counts, MPI_INT, MPI_MAX, comm);
    int wrong = 0;
    for (int i = 0; i < counts[rank]; i++) {
        wrong += in[i] != (size - 1) * 2 + before + i;
    }
    EXPECT_EQUAL(wrong, 0);
    free(counts), free(out), free(in);
}

/* Pairs of value and index have a hole in memory (double and int); equal values go by the lower index. */
static void test_pairs(void)
{
    struct {
        double value;
        int index;
    } out[3], in[3];
    for (int i = 0; i < 3; i++) {
        out[i].value = i == 0 ? 5.0 : (rank * 7 + i) % size;
        out[i].index = rank + 10;
    }
    MPI_Allreduce(out, in, 3, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    EXPECT(in[0].value == 5.0 && in[0].index == 10);
    for (int i = 1; i < 3; i++) {
        int best = 0;
        for (int of = 1; of < size; of++) {
            best = (of * 7 + i) % size < (best * 7 + i) % size ? of : best;
        }
        EXPECT(in[i].value == (best * 7 + i) % size);
        EXPECT_EQUAL(in[i].index, best + 10);
    }
    MPI_Allreduce(out, in, 3, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    EXPECT(in[0].value == 5.0 && in[0].index == 10);
}

static void test_local(void)
{
    int in[4] = {1, 2, 3, 4}, inout[4] = {10, 20, 30, 40}, commutes;
    MPI_Reduce_local(in, inout, 4, MPI_INT, MPI_SUM);
    EXPECT(inout[0] == 11 && inout[3] == 44);
    MPI_Op_commutative(MPI_SUM, &commutes);
    EXPECT(commutes);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    MPI_Comm reversed;
    MPI_Op affine;
    MPI_Datatype pair;
    MPI_Comm_split(MPI_COMM_WORLD, expect_rank % 2, -expect_rank, &reversed);
    MPI_Comm_set_errhandler(reversed, MPI_ERRORS_RETURN);
    MPI_Op_create(affine_op, 0, &affine);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_commit(&pair);
    MPI_Comm comms[] = {MPI_COMM_WORLD, reversed, MPI_COMM_SELF};
    for (int c = 0; c < 3; c++) {
        comm = comms[c];
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        const int counts[] = {0, 1, 5, 1000, 30011};
        for (int j = 0; j < (c == 0 ? 5 : 3); j++) {
            for (int form = 0; form < 3; form++) {
                for (enum call call = REDUCE; call <= REDUCE_SCATTER_BLOCK; call++) {
                    int root = (counts[j] + form) % size;
                    test_affine(call, form, counts[j], root, affine, pair);
                    if (form != 2) {
                        test_in_place(call, form, counts[j], root);
                    }
                }
                test_reduce_scatter(form, counts[j]);
            }
        }
        test_pairs();
        test_local();
        double value = 0, sum = 0;
        EXPECT_CLASS(MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_BAND, comm), MPI_ERR_OP);
    }
    MPI_Op_free(&affine);
    EXPECT(affine == MPI_OP_NULL);
    MPI_Type_free(&pair);
    MPI_Comm_free(&reversed);
    return expect_end();
}
