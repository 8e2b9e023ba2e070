/* Conjugate gradients: estimates the smallest eigenvalue of a sparse symmetric matrix by inverse iteration; each step
 * solves A z = x by 25 steps of conjugate gradients. A rank has a block of rows. The product of the matrix and a vector
 * needs the whole vector (all-gather), the dot products are sums over all ranks (all-reduce).
 *
 * The matrix is the sum of w_i x_i x_i^T plus (0.1 - shift) I: x_i is a sparse random vector whose element i is 0.5,
 * and the weights w_i fall geometrically from 1 to 0.1. */
#include "apps/kernels/kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CG_ITERATIONS = 15,
    CG_STEPS = 25,
    CG_NONZEROS_MAX = 12, /* of a random vector, with its fixed element */
};

static const double condition = 0.1;
static const double zeta_tolerance = 1e-10;
static const double residual_tolerance = 1e-10;

struct cg_class {
    int order;
    int nonzeros; /* random ones of a vector */
    double shift;
    double zeta;
};

static const struct cg_class classes[KERNEL_CLASSES] = {
    {1400, 7, 10, 8.5971775078648},
    {7000, 8, 12, 10.362595087124},
    {14000, 11, 20, 17.130235054029},
};

struct cg_sparse {
    int count;
    int index[CG_NONZEROS_MAX];
    double value[CG_NONZEROS_MAX];
};

/* This rank's rows, compressed. */
struct cg_rows {
    int first;
    int count;
    int *begin; /* count + 1 entries */
    int *column;
    double *value;
};

struct cg_solver {
    struct kernel kernel;
    const struct cg_class *class;
    struct cg_rows rows;
    int share_counts[KERNEL_RANKS_MAX];
    int share_offsets[KERNEL_RANKS_MAX];
    double *whole; /* a vector of all ranks, for the product */

    /* this rank's shares of vectors, named as is usual for the method */
    double *x;
    double *z;
    double *r;
    double *p;
    double *q;
};

/* ---- the matrix ---- */

static bool sparse_has(const struct cg_sparse *vector, int index)
{
    for (int i = 0; i < vector->count; i++) {
        if (vector->index[i] == index)
            return true;
    }
    return false;
}

/* Random values at different random places: places are drawn below a power of two, and nonexistent or used ones are
 * drawn again. */
static void sparse_draw(struct cg_sparse *vector, const struct cg_class *class, uint64_t *state)
{
    int places = 1;
    while (places < class->order)
        places *= 2;
    vector->count = 0;
    while (vector->count < class->nonzeros) {
        double value = kernel_random(state);
        int index = (int)(places * kernel_random(state));
        if (index >= class->order || sparse_has(vector, index))
            continue;
        vector->index[vector->count] = index;
        vector->value[vector->count++] = value;
    }
}

static void sparse_set(struct cg_sparse *vector, int index, double value)
{
    int place = 0;
    while (place < vector->count && vector->index[place] != index)
        place++;
    vector->index[place] = index;
    vector->value[place] = value;
    if (place == vector->count)
        vector->count++;
}

/* All vectors x_i; every rank draws them all, which takes less time than sending them. */
static struct cg_sparse *vectors_draw(const struct cg_class *class)
{
    struct cg_sparse *vectors = kernel_allocate((size_t) class->order, sizeof(*vectors));
    uint64_t state = KERNEL_RANDOM_SEED;
    kernel_random(&state); /* the problem's definition drops the first number */
    for (int i = 0; i < class->order; i++) {
        sparse_draw(&vectors[i], class, &state);
        sparse_set(&vectors[i], i, 0.5);
    }
    return vectors;
}

/* A vector that has an element in some row, and where in the vector it is. */
struct cg_use {
    int vector;
    int place;
};

/* For each row of this rank the vectors that add to it, in order; uses of row i begin at begin[i]. */
static struct cg_use *uses_list(const struct cg_rows *rows, const struct cg_sparse *vectors, int order, int *begin)
{
    for (int i = 0; i < order; i++) {
        for (int place = 0; place < vectors[i].count; place++) {
            int row = vectors[i].index[place] - rows->first;
            if (row >= 0 && row < rows->count)
                begin[row + 1]++;
        }
    }
    for (int row = 0; row < rows->count; row++)
        begin[row + 1] += begin[row];

    struct cg_use *uses = kernel_allocate((size_t)begin[rows->count], sizeof(*uses));
    int *next = kernel_allocate((size_t)rows->count, sizeof(*next));
    memcpy(next, begin, (size_t)rows->count * sizeof(*next));
    for (int i = 0; i < order; i++) {
        for (int place = 0; place < vectors[i].count; place++) {
            int row = vectors[i].index[place] - rows->first;
            if (row >= 0 && row < rows->count)
                uses[next[row]++] = (struct cg_use){i, place};
        }
    }
    free(next);
    return uses;
}

static int column_compare(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

/* A row being summed up: dense, and which of its columns are there. */
struct cg_row {
    double *sum;
    bool *there;
    int *columns;
    int count;
};

static void row_add(struct cg_row *row, int column, double value)
{
    if (!row->there[column]) {
        row->there[column] = true;
        row->columns[row->count++] = column;
    }
    row->sum[column] += value;
}

/* Appends the row, columns ascending, to the compressed ones and clears it. */
static void row_store(struct cg_row *row, struct cg_rows *rows, int at)
{
    qsort(row->columns, (size_t)row->count, sizeof(*row->columns), column_compare);
    for (int i = 0; i < row->count; i++) {
        int column = row->columns[i];
        rows->column[at + i] = column;
        rows->value[at + i] = row->sum[column];
        row->sum[column] = 0;
        row->there[column] = false;
    }
    row->count = 0;
}

static void rows_sum(struct cg_rows *rows, const struct cg_class *class, const struct cg_sparse *vectors,
                     const struct cg_use *uses, const int *uses_begin)
{
    struct cg_row row = {
        .sum = kernel_allocate((size_t) class->order, sizeof(double)),
        .there = kernel_allocate((size_t) class->order, sizeof(bool)),
        .columns = kernel_allocate((size_t) class->order, sizeof(int)),
    };
    for (int i = 0; i < rows->count; i++) {
        for (int use = uses_begin[i]; use < uses_begin[i + 1]; use++) {
            const struct cg_sparse *vector = &vectors[uses[use].vector];
            double weight = pow(condition, (double)uses[use].vector / class->order);
            for (int k = 0; k < vector->count; k++)
                row_add(&row, vector->index[k], weight * vector->value[uses[use].place] * vector->value[k]);
        }
        row_add(&row, rows->first + i, condition - class->shift);
        rows->begin[i + 1] = rows->begin[i] + row.count;
        row_store(&row, rows, rows->begin[i]);
    }
    free(row.sum);
    free(row.there);
    free(row.columns);
}

static void rows_make(struct cg_rows *rows, const struct cg_class *class)
{
    struct cg_sparse *vectors = vectors_draw(class);
    int *uses_begin = kernel_allocate((size_t)rows->count + 1, sizeof(*uses_begin));
    struct cg_use *uses = uses_list(rows, vectors, class->order, uses_begin);
    size_t room = (size_t)uses_begin[rows->count] * CG_NONZEROS_MAX;
    rows->begin = kernel_allocate((size_t)rows->count + 1, sizeof(*rows->begin));
    rows->column = kernel_allocate(room, sizeof(*rows->column));
    rows->value = kernel_allocate(room, sizeof(*rows->value));
    rows_sum(rows, class, vectors, uses, uses_begin);
    free(vectors);
    free(uses_begin);
    free(uses);
}

/* ---- vectors ---- */

/* out = A in */
static void multiply(struct cg_solver *solver, const double *in, double *out)
{
    const struct cg_rows *rows = &solver->rows;
    kernel_communication_begin(&solver->kernel);
    if (solver->class->order % solver->kernel.ranks == 0)
        MPI_Allgather(in, rows->count, MPI_DOUBLE, solver->whole, rows->count, MPI_DOUBLE, MPI_COMM_WORLD);
    else
        MPI_Allgatherv(in, rows->count, MPI_DOUBLE, solver->whole, solver->share_counts, solver->share_offsets,
                       MPI_DOUBLE, MPI_COMM_WORLD);
    kernel_communication_end(&solver->kernel);
    for (int i = 0; i < rows->count; i++) {
        double sum = 0;
        for (int k = rows->begin[i]; k < rows->begin[i + 1]; k++)
            sum += rows->value[k] * solver->whole[rows->column[k]];
        out[i] = sum;
    }
}

static double dot_mine(const struct cg_solver *solver, const double *left, const double *right)
{
    double sum = 0;
    for (int i = 0; i < solver->rows.count; i++)
        sum += left[i] * right[i];
    return sum;
}

static void sum_all(struct cg_solver *solver, double *sums, int count)
{
    kernel_communication_begin(&solver->kernel);
    MPI_Allreduce(MPI_IN_PLACE, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    kernel_communication_end(&solver->kernel);
}

static double dot(struct cg_solver *solver, const double *left, const double *right)
{
    double sum = dot_mine(solver, left, right);
    sum_all(solver, &sum, 1);
    return sum;
}

/* out = left + factor * right; out may be one of them */
static void combine(const struct cg_solver *solver, double *out, const double *left, double factor, const double *right)
{
    for (int i = 0; i < solver->rows.count; i++)
        out[i] = left[i] + factor * right[i];
}

/* ---- the method ---- */

/* z from A z = x; returns |x - A z| */
static double solve(struct cg_solver *solver)
{
    size_t bytes = (size_t)solver->rows.count * sizeof(double);
    memset(solver->z, 0, bytes);
    memcpy(solver->r, solver->x, bytes);
    memcpy(solver->p, solver->x, bytes);
    double rho = dot(solver, solver->r, solver->r);
    for (int step = 0; step < CG_STEPS; step++) {
        multiply(solver, solver->p, solver->q);
        double alpha = rho / dot(solver, solver->p, solver->q);
        combine(solver, solver->z, solver->z, alpha, solver->p);
        combine(solver, solver->r, solver->r, -alpha, solver->q);
        double rho_before = rho;
        rho = dot(solver, solver->r, solver->r);
        combine(solver, solver->p, solver->r, rho / rho_before, solver->p);
    }
    multiply(solver, solver->z, solver->q);
    combine(solver, solver->q, solver->x, -1, solver->q);
    return sqrt(dot(solver, solver->q, solver->q));
}

/* One step of inverse iteration: x becomes z / |z|. Returns the estimate zeta. */
static double iterate(struct cg_solver *solver, double *residual)
{
    *residual = solve(solver);
    double sums[2] = {dot_mine(solver, solver->x, solver->z), dot_mine(solver, solver->z, solver->z)};
    sum_all(solver, sums, 2);
    double norm = sqrt(sums[1]);
    for (int i = 0; i < solver->rows.count; i++)
        solver->x[i] = solver->z[i] / norm;
    return solver->class->shift + 1 / sums[0];
}

/* ---- the program ---- */

static void solver_init(struct cg_solver *solver)
{
    const struct kernel *kernel = &solver->kernel;
    solver->class = &classes[kernel->class_index];
    int order = solver->class->order;
    for (int i = 0; i < kernel->ranks; i++)
        solver->share_counts[i] =
            (int)(kernel_share_begin(order, kernel->ranks, i + 1) - kernel_share_begin(order, kernel->ranks, i));
    kernel_offsets(solver->share_offsets, solver->share_counts, kernel->ranks);
    solver->rows.first = solver->share_offsets[kernel->rank];
    solver->rows.count = solver->share_counts[kernel->rank];
    rows_make(&solver->rows, solver->class);

    solver->whole = kernel_allocate((size_t)order, sizeof(double));
    double **vectors[] = {&solver->x, &solver->z, &solver->r, &solver->p, &solver->q};
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
        *vectors[i] = kernel_allocate((size_t)solver->rows.count, sizeof(double));
    for (int i = 0; i < solver->rows.count; i++)
        solver->x[i] = 1;
}

static void solver_dispose(struct cg_solver *solver)
{
    void *memory[] = {solver->rows.begin, solver->rows.column, solver->rows.value, solver->whole, solver->x,
                      solver->z,          solver->r,           solver->p,          solver->q};
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
        free(memory[i]);
}

/* Floating-point operations of the whole run. */
static double operations_count(const struct cg_solver *solver)
{
    int64_t nonzeros = solver->rows.begin[solver->rows.count];
    int64_t all = 0;
    MPI_Allreduce(&nonzeros, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    double product = 2 * (double)all;
    double step = product + 10.0 * solver->class->order; /* two dot products, three combinations */
    double rest = product + 11.0 * solver->class->order;
    return CG_ITERATIONS * (CG_STEPS * step + rest);
}

static void result_verify(struct cg_solver *solver, double zeta, double residual_most)
{
    if (solver->kernel.rank > 0) /* all have the same numbers */
        return;
    double error = fabs(zeta - solver->class->zeta);
    kernel_require(&solver->kernel, error <= zeta_tolerance, "zeta is %.13f, published is %.13f", zeta,
                   solver->class->zeta);
    kernel_require(&solver->kernel, residual_most <= residual_tolerance, "a residual of %.3g", residual_most);
}

static const struct kernel_about about = {
    .name = "cg",
    .purpose =
        "Conjugate gradients: an eigenvalue of a sparse matrix; all-gather of vectors, all-reduce of dot products.",
    .classes = {"order 1,400, shift 10", "order 7,000, shift 12", "order 14,000, shift 20"},
    .work = "Mflop",
};

int main(int argc, char **argv)
{
    struct cg_solver solver = {0};
    int exit_code;
    if (!kernel_start(&solver.kernel, &about, argc, argv, &exit_code))
        return exit_code;
    solver_init(&solver);
    double zeta = 0;
    double residual_most = 0;
    kernel_timer_start(&solver.kernel);
    for (int i = 0; i < CG_ITERATIONS; i++) {
        double residual;
        zeta = iterate(&solver, &residual);
        residual_most = fmax(residual_most, residual); /* not-a-number reaches zeta */
    }
    kernel_timer_stop(&solver.kernel);
    result_verify(&solver, zeta, residual_most);
    double operations = operations_count(&solver);
    solver_dispose(&solver);
    return kernel_finish(&solver.kernel, operations);
}
