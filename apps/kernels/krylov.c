/* A sparse system on an unstructured graph, by BiCGSTAB (van der Vorst, 1992) with a diagonal preconditioner. A rank
 * has a block of rows. Before a product of matrix and vector, ranks exchange the elements that rows of others need:
 * each gathers a list for each neighbour, as the library AZTEC does (Hutchinson, Shadid and Tuminaro, 1995). */
#include "apps/kernels/krylov_graph.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KRYLOV_ITERATIONS_MAX = 1000 };

static const double reduction = 1e-11; /* of the residual, by iterating */
static const double residual_tolerance = 1e-10;
static const double error_tolerance = 1e-7;

static const int class_lengths[KERNEL_CLASSES] = {32, 112, 160}; /* nodes of the mesh's edge */

/* Compressed rows of this rank. Columns below `count` are its own rows, the others are in the exchange's order. */
struct krylov_rows {
    int first;
    int count;
    int *begin; /* count + 1 entries */
    int *column;
    double *value;
};

/* Elements of other ranks that this one's rows need, ascending; and those of this rank that others need. */
struct krylov_exchange {
    int *wanted; /* rows' numbers */
    int wanted_count;
    int receive_counts[KERNEL_RANKS_MAX];
    int receive_offsets[KERNEL_RANKS_MAX];
    int *list; /* of own rows, for each rank in turn */
    int send_counts[KERNEL_RANKS_MAX];
    int send_offsets[KERNEL_RANKS_MAX];
    double *sent;
};

struct krylov_solver {
    struct kernel kernel;
    struct krylov_graph graph;
    int share_begin[KERNEL_RANKS_MAX + 1];
    struct krylov_rows rows;
    struct krylov_exchange exchange;
    double *inverse; /* of the diagonal */
    double *right;
    double *solution;
    int iterations;
};

/* ---- the matrix ---- */

static int number_compare(const void *left, const void *right)
{
    int a = *(const int *)left;
    int b = *(const int *)right;
    return (a > b) - (a < b);
}

static bool is_own(const struct krylov_rows *rows, int number)
{
    return number >= rows->first && number < rows->first + rows->count;
}

/* Begins of rows, and the columns of other ranks, each once, ascending. */
static void wanted_list(struct krylov_solver *solver)
{
    struct krylov_rows *rows = &solver->rows;
    struct krylov_exchange *exchange = &solver->exchange;
    struct krylov_row row;
    int count = 0;
    rows->begin = kernel_allocate((size_t)rows->count + 1, sizeof(*rows->begin));
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (int i = 0; i < rows->count; i++) {
            krylov_row_make(&row, &solver->graph, rows->first + i);
            rows->begin[i + 1] = rows->begin[i] + row.count;
            for (int k = 1; k < row.count; k++) {
                if (is_own(rows, row.column[k]))
                    continue;
                if (pass == 1)
                    exchange->wanted[count] = row.column[k];
                count++;
            }
        }
        if (pass == 0)
            exchange->wanted = kernel_allocate((size_t)count, sizeof(*exchange->wanted));
    }
    qsort(exchange->wanted, (size_t)count, sizeof(*exchange->wanted), number_compare);
    for (int i = 0; i < count; i++) {
        if (i == 0 || exchange->wanted[i] != exchange->wanted[i - 1])
            exchange->wanted[exchange->wanted_count++] = exchange->wanted[i];
    }
}

static int column_find(const struct krylov_solver *solver, int number)
{
    if (is_own(&solver->rows, number))
        return number - solver->rows.first;
    const struct krylov_exchange *exchange = &solver->exchange;
    const int *found =
        bsearch(&number, exchange->wanted, (size_t)exchange->wanted_count, sizeof(number), number_compare);
    assert(found);
    return solver->rows.count + (int)(found - exchange->wanted);
}

/* Compresses the rows; the right side is that of the exact solution. */
static void rows_fill(struct krylov_solver *solver)
{
    struct krylov_rows *rows = &solver->rows;
    struct krylov_row row;
    rows->column = kernel_allocate((size_t)rows->begin[rows->count], sizeof(*rows->column));
    rows->value = kernel_allocate((size_t)rows->begin[rows->count], sizeof(*rows->value));
    for (int i = 0; i < rows->count; i++) {
        krylov_row_make(&row, &solver->graph, rows->first + i);
        solver->inverse[i] = 1 / row.value[0];
        for (int k = 0; k < row.count; k++) {
            rows->column[rows->begin[i] + k] = column_find(solver, row.column[k]);
            rows->value[rows->begin[i] + k] = row.value[k];
            solver->right[i] += row.value[k] * krylov_exact(&solver->graph, row.column[k]);
        }
    }
}

/* ---- the exchange ---- */

/* Every rank learns which of its rows others want. */
static void exchange_init(struct krylov_solver *solver)
{
    struct krylov_exchange *exchange = &solver->exchange;
    int ranks = solver->kernel.ranks;
    for (int i = 0, rank = 0; i < exchange->wanted_count; i++) {
        while (exchange->wanted[i] >= solver->share_begin[rank + 1])
            rank++;
        exchange->receive_counts[rank]++;
    }
    MPI_Alltoall(exchange->receive_counts, 1, MPI_INT, exchange->send_counts, 1, MPI_INT, MPI_COMM_WORLD);
    kernel_offsets(exchange->receive_offsets, exchange->receive_counts, ranks);
    int count = kernel_offsets(exchange->send_offsets, exchange->send_counts, ranks);
    exchange->list = kernel_allocate((size_t)count, sizeof(*exchange->list));
    exchange->sent = kernel_allocate((size_t)count, sizeof(*exchange->sent));
    MPI_Alltoallv(exchange->wanted, exchange->receive_counts, exchange->receive_offsets, MPI_INT, exchange->list,
                  exchange->send_counts, exchange->send_offsets, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        exchange->list[i] -= solver->rows.first;
}

/* Fills what stands behind the vector's own elements. */
static void elements_exchange(struct krylov_solver *solver, double *vector)
{
    struct krylov_exchange *exchange = &solver->exchange;
    MPI_Request requests[2 * KERNEL_RANKS_MAX];
    int pending = 0;
    kernel_communication_begin(&solver->kernel);
    for (int rank = 0; rank < solver->kernel.ranks; rank++) {
        if (exchange->receive_counts[rank] > 0)
            MPI_Irecv(vector + solver->rows.count + exchange->receive_offsets[rank], exchange->receive_counts[rank],
                      MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, &requests[pending++]);
    }
    kernel_communication_end(&solver->kernel);
    for (int rank = 0; rank < solver->kernel.ranks; rank++) {
        int first = exchange->send_offsets[rank];
        int count = exchange->send_counts[rank];
        for (int i = first; i < first + count; i++)
            exchange->sent[i] = vector[exchange->list[i]];
        kernel_communication_begin(&solver->kernel);
        if (count > 0)
            MPI_Isend(exchange->sent + first, count, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, &requests[pending++]);
        kernel_communication_end(&solver->kernel);
    }
    kernel_communication_begin(&solver->kernel);
    MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
    kernel_communication_end(&solver->kernel);
}

/* ---- vectors ---- */

/* out = A in; `in` has room for elements of others. */
static void multiply(struct krylov_solver *solver, double *in, double *out)
{
    const struct krylov_rows *rows = &solver->rows;
    elements_exchange(solver, in);
    for (int i = 0; i < rows->count; i++) {
        double sum = 0;
        for (int k = rows->begin[i]; k < rows->begin[i + 1]; k++)
            sum += rows->value[k] * in[rows->column[k]];
        out[i] = sum;
    }
}

/* Two dot products at a time: one message. */
static void dots(struct krylov_solver *solver, double sums[2], const double *left, const double *right,
                 const double *right_too)
{
    sums[0] = sums[1] = 0;
    for (int i = 0; i < solver->rows.count; i++) {
        sums[0] += left[i] * right[i];
        sums[1] += left[i] * right_too[i];
    }
    kernel_communication_begin(&solver->kernel);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    kernel_communication_end(&solver->kernel);
}

/* ---- the method ---- */

/* Vectors named as is usual for the method. */
struct krylov_vectors {
    double *r;
    double *shadow; /* of r: the first one */
    double *p;
    double *v;
    double *t;
    double *scaled; /* preconditioned, with room for elements of others */
};

static void vectors_init(struct krylov_vectors *vectors, const struct krylov_solver *solver)
{
    size_t count = (size_t)solver->rows.count;
    double **each[] = {&vectors->r, &vectors->shadow, &vectors->p, &vectors->v, &vectors->t};
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
        *each[i] = kernel_allocate(count, sizeof(double));
    vectors->scaled = kernel_allocate(count + (size_t)solver->exchange.wanted_count, sizeof(double));
    memcpy(vectors->r, solver->right, count * sizeof(double));
    memcpy(vectors->shadow, solver->right, count * sizeof(double));
}

static void vectors_dispose(struct krylov_vectors *vectors)
{
    double *each[] = {vectors->r, vectors->shadow, vectors->p, vectors->v, vectors->t, vectors->scaled};
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++)
        free(each[i]);
}

/* out = A M^-1 in; M^-1 in, of which the solution is made, stays in `scaled`. */
static void multiply_scaled(struct krylov_solver *solver, struct krylov_vectors *vectors, const double *in, double *out)
{
    for (int i = 0; i < solver->rows.count; i++)
        vectors->scaled[i] = solver->inverse[i] * in[i];
    multiply(solver, vectors->scaled, out);
}

/* out += factor * in */
static void add(const struct krylov_solver *solver, double *out, double factor, const double *in)
{
    for (int i = 0; i < solver->rows.count; i++)
        out[i] += factor * in[i];
}

/* Solves from nought until the residual is small. */
static void solve(struct krylov_solver *solver, struct krylov_vectors *vectors)
{
    double *r = vectors->r;
    double *p = vectors->p;
    double *v = vectors->v;
    double *t = vectors->t;
    double sums[2];
    dots(solver, sums, r, r, r);
    double allowed = sums[0] * reduction * reduction;
    double rho = sums[0];
    double beta = 0;
    double omega = 0;
    while (solver->iterations < KRYLOV_ITERATIONS_MAX && sums[0] > allowed) {
        for (int i = 0; i < solver->rows.count; i++)
            p[i] = r[i] + beta * (p[i] - omega * v[i]);
        multiply_scaled(solver, vectors, p, v);
        dots(solver, sums, vectors->shadow, v, v);
        double alpha = rho / sums[0];
        add(solver, solver->solution, alpha, vectors->scaled);
        add(solver, r, -alpha, v);
        multiply_scaled(solver, vectors, r, t);
        dots(solver, sums, t, r, t);
        omega = sums[0] / sums[1];
        add(solver, solver->solution, omega, vectors->scaled);
        add(solver, r, -omega, t);
        dots(solver, sums, r, r, vectors->shadow);
        beta = sums[1] / rho * (alpha / omega);
        rho = sums[1];
        solver->iterations++;
    }
}

/* ---- verification ---- */

/* Rows are made again and multiplied by the solution of all ranks, without the exchange. */
static void solution_verify(struct krylov_solver *solver)
{
    int counts[KERNEL_RANKS_MAX];
    for (int i = 0; i < solver->kernel.ranks; i++)
        counts[i] = solver->share_begin[i + 1] - solver->share_begin[i];
    double *whole = kernel_allocate((size_t)solver->graph.nodes, sizeof(*whole));
    MPI_Allgatherv(solver->solution, solver->rows.count, MPI_DOUBLE, whole, counts, solver->share_begin, MPI_DOUBLE,
                   MPI_COMM_WORLD);
    double sums[2] = {0};
    double error_most = 0;
    for (int i = 0; i < solver->rows.count; i++) {
        struct krylov_row row;
        krylov_row_make(&row, &solver->graph, solver->rows.first + i);
        double residual = solver->right[i];
        for (int k = 0; k < row.count; k++)
            residual -= row.value[k] * whole[row.column[k]];
        sums[0] += residual * residual;
        sums[1] += solver->right[i] * solver->right[i];
        double error = fabs(solver->solution[i] - krylov_exact(&solver->graph, solver->rows.first + i));
        error_most = kernel_most(error_most, error);
    }
    free(whole);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double residual = sqrt(sums[0] / sums[1]);
    kernel_require(&solver->kernel, solver->kernel.rank > 0 || residual <= residual_tolerance,
                   "after %d iterations the residual is %.3g", solver->iterations, residual);
    kernel_require(&solver->kernel, error_most <= error_tolerance, "the solution is off by %.3g", error_most);
}

/* ---- the program ---- */

static void solver_init(struct krylov_solver *solver)
{
    const struct kernel *kernel = &solver->kernel;
    int length = class_lengths[kernel->class_index];
    for (int i = 0; i <= kernel->ranks; i++)
        solver->share_begin[i] = (int)kernel_share_begin(length * length * length, kernel->ranks, i);
    solver->rows.first = solver->share_begin[kernel->rank];
    solver->rows.count = solver->share_begin[kernel->rank + 1] - solver->rows.first;
    krylov_graph_init(&solver->graph, length, solver->rows.first, solver->rows.count);
    double **vectors[] = {&solver->inverse, &solver->right, &solver->solution};
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
        *vectors[i] = kernel_allocate((size_t)solver->rows.count, sizeof(double));
    wanted_list(solver);
    exchange_init(solver);
    rows_fill(solver);
}

static void solver_dispose(struct krylov_solver *solver)
{
    void *memory[] = {solver->rows.begin,      solver->rows.column,   solver->rows.value,
                      solver->exchange.wanted, solver->exchange.list, solver->exchange.sent,
                      solver->inverse,         solver->right,         solver->solution};
    krylov_graph_dispose(&solver->graph);
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
        free(memory[i]);
}

/* Floating-point operations of the whole run. */
static double operations_count(const struct krylov_solver *solver)
{
    int64_t nonzeros = solver->rows.begin[solver->rows.count];
    MPI_Allreduce(MPI_IN_PLACE, &nonzeros, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    /* two products, two preconditioners, five dot products, four sums and p */
    return solver->iterations * (4 * (double)nonzeros + (2 + 10 + 8 + 4) * (double)solver->graph.nodes);
}

static const struct kernel_about about = {
    .name = "krylov",
    .purpose = "BiCGSTAB on an unstructured graph: gathered elements between neighbours, all-reduce of dot products.",
    .classes = {"32,768 nodes", "1,404,928 nodes", "4,096,000 nodes"},
    .work = "Mflop",
};

int main(int argc, char **argv)
{
    static struct krylov_solver solver;
    struct krylov_vectors vectors;
    int exit_code;
    if (!kernel_start(&solver.kernel, &about, argc, argv, &exit_code))
        return exit_code;
    solver_init(&solver);
    vectors_init(&vectors, &solver);
    kernel_timer_start(&solver.kernel);
    solve(&solver, &vectors);
    kernel_timer_stop(&solver.kernel);
    vectors_dispose(&vectors);
    solution_verify(&solver);
    double operations = operations_count(&solver);
    solver_dispose(&solver);
    return kernel_finish(&solver.kernel, operations);
}
