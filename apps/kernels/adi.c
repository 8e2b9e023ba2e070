/* Alternating directions: steps of an implicit scheme towards the steady state of five coupled diffusing quantities,
 * u_t = K(u) (u_xx + u_yy + u_zz) + f, in a cube. A step solves, one axis after the other,
 *
 *    (1 - dt K d_xx) (1 - dt K d_yy) (1 - dt K d_zz) increment = dt (K (d_xx + d_yy + d_zz) u + f)
 *
 * by elimination along the lines of the axis: block tridiagonal systems of 5 x 5 blocks, the shape of the NAS
 * benchmarks BT and SP (Bailey et al., RNR-94-007). Blocks divide x and y. A line across ranks is eliminated as a
 * pipeline: batches of lines go upwards with the eliminated block and right side of their last cell (240 bytes a line),
 * and come back with the solution of their first one.
 *
 * The forcing f makes a known function the steady state of the discrete equations. */
#include "apps/kernels/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ADI_SIZE = 5, /* quantities; a block is ADI_SIZE x ADI_SIZE */
    ADI_COLUMNS = ADI_SIZE + 1,
    ADI_CARRY = ADI_SIZE * ADI_COLUMNS,
    ADI_BATCH = 128, /* lines */
    ADI_MODE_STEPS = 3,
};

static const double time_step = 0.001;
static const double diffusion = 1;  /* of each quantity */
static const double coupling = 0.1; /* of each with each */
static const double nonlinearity = 0.1;
static const double slowest = 0.25; /* all eigenvalues of K are larger than this while |u| <= 1.5 */
static const double mode_tolerance = 1e-12;
static const double residual_tolerance = 1e-10; /* relative; rounding is multiplied by all three factors */
static const double pi = 3.14159265358979323846;

struct adi_class {
    int length; /* cells of the cube's edge */
    int steps;
};

static const struct adi_class classes[KERNEL_CLASSES] = {{24, 60}, {60, 100}, {80, 200}};

/* An eliminated row of blocks: the block right of the diagonal, and the right side. */
typedef double adi_carry[ADI_SIZE][ADI_COLUMNS];

struct adi_solver {
    struct kernel kernel;
    const struct adi_class *class;
    struct grid grid;
    struct grid_halo halo;
    double exact_amplitude; /* 0: the steady state is nought */
    double nonlinearity;
    double ratio; /* of the time step and the square of the cells' distance */
    double *state;
    double *forcing;
    double *increment;
    double *other; /* for checks */
    double *upper; /* [line][place][block] of the axis being solved */
    double *up[2]; /* batches on their way to the next rank, in turn */
    double *down[2];
};

/* ---- the problem ---- */

static double coordinate(const struct adi_solver *solver, int place)
{
    return (place + 1.0) / (solver->grid.length[0] + 1.0);
}

/* The steady state; also at places -1 and length, which are the border. */
static double exact(const void *context, int quantity, const int place[GRID_AXES])
{
    const struct adi_solver *solver = context;
    double x = coordinate(solver, place[0]);
    double y = coordinate(solver, place[1]);
    double z = coordinate(solver, place[2]);
    return solver->exact_amplitude * (1 + 0.3 * x * (1 - y) + 0.2 * sin(pi * (x + 0.5 * (quantity + 1) * y + z)));
}

/* A mode that is nought at the border. */
static double mode(const struct adi_solver *solver, const int waves[GRID_AXES], const int place[GRID_AXES])
{
    double product = 1;
    for (int axis = 0; axis < GRID_AXES; axis++)
        product *= sin(pi * waves[axis] * coordinate(solver, place[axis]));
    return product;
}

/* K, from the quantities in a cell: symmetric and positive. */
static inline void block_make(double block[ADI_SIZE][ADI_SIZE], const struct adi_solver *solver,
                              const double u[ADI_SIZE])
{
    for (int row = 0; row < ADI_SIZE; row++) {
        for (int column = 0; column < ADI_SIZE; column++)
            block[row][column] = coupling + solver->nonlinearity * u[(row + column) % ADI_SIZE];
        block[row][row] += diffusion;
    }
}

static inline void cell_read(double values[ADI_SIZE], const struct adi_solver *solver, const double *field, size_t cell)
{
    for (int i = 0; i < ADI_SIZE; i++)
        values[i] = field[(size_t)i * solver->grid.cells + cell];
}

static inline void cell_write(const struct adi_solver *solver, double *field, size_t cell,
                              const double values[ADI_SIZE])
{
    for (int i = 0; i < ADI_SIZE; i++)
        field[(size_t)i * solver->grid.cells + cell] = values[i];
}

/* The forcing for balance: K times the second differences of the steady state. */
static void forcing_fill(struct adi_solver *solver)
{
    for (size_t cell = 0; cell < solver->grid.cells; cell++) {
        int place[GRID_AXES];
        double u[ADI_SIZE];
        double sum[ADI_SIZE];
        grid_place(place, &solver->grid, cell);
        for (int i = 0; i < ADI_SIZE; i++) {
            u[i] = exact(solver, i, place);
            sum[i] = -2 * GRID_AXES * u[i];
            for (int axis = 0; axis < GRID_AXES; axis++) {
                int near[GRID_AXES] = {place[0], place[1], place[2]};
                near[axis]--;
                sum[i] += exact(solver, i, near);
                near[axis] += 2;
                sum[i] += exact(solver, i, near);
            }
        }
        double block[ADI_SIZE][ADI_SIZE];
        block_make(block, solver, u);
        for (int row = 0; row < ADI_SIZE; row++) {
            double product = 0;
            for (int i = 0; i < ADI_SIZE; i++)
                product += block[row][i] * sum[i];
            solver->forcing[(size_t)row * solver->grid.cells + cell] = -product;
        }
    }
}

/* ---- second differences ---- */

/* sum += the second difference of the field along the axis */
static void difference_add(struct adi_solver *solver, int axis, const double *field, double *sum)
{
    const struct grid *grid = &solver->grid;
    grid_exchange(&solver->kernel, grid, &solver->halo, axis, field);
    size_t face = grid_face(grid, axis);
    size_t step = grid->step[axis];
    int last = grid->count[axis] - 1;
    for (size_t i = 0; i < ADI_SIZE * face; i++) {
        size_t cell = i / face * grid->cells + grid_line(grid, axis, i % face);
        double before = solver->halo.received[axis][GRID_LOW][i];
        for (int k = 0; k <= last; k++, cell += step) {
            double after = k < last ? field[cell + step] : solver->halo.received[axis][GRID_HIGH][i];
            sum[cell] += before - 2 * field[cell] + after;
            before = field[cell];
        }
    }
}

/* out = left + factor K right, K by the state; out may be one of them. */
static void blocks_multiply(struct adi_solver *solver, double *out, const double *left, double factor,
                            const double *right)
{
    for (size_t cell = 0; cell < solver->grid.cells; cell++) {
        double u[ADI_SIZE];
        double in[ADI_SIZE];
        double result[ADI_SIZE];
        double block[ADI_SIZE][ADI_SIZE];
        cell_read(u, solver, solver->state, cell);
        cell_read(in, solver, right, cell);
        cell_read(result, solver, left, cell);
        block_make(block, solver, u);
        for (int row = 0; row < ADI_SIZE; row++) {
            for (int i = 0; i < ADI_SIZE; i++)
                result[row] += factor * block[row][i] * in[i];
        }
        cell_write(solver, out, cell, result);
    }
}

/* The right side, into the increment. */
static void right_compute(struct adi_solver *solver)
{
    size_t count = ADI_SIZE * solver->grid.cells;
    memset(solver->other, 0, count * sizeof(double));
    for (int axis = 0; axis < GRID_AXES; axis++)
        difference_add(solver, axis, solver->state, solver->other);
    for (size_t i = 0; i < count; i++)
        solver->increment[i] = solver->ratio * solver->forcing[i];
    blocks_multiply(solver, solver->increment, solver->increment, solver->ratio, solver->other);
}

/* ---- elimination ---- */

/* right = matrix^-1 right, without pivots: the matrix is positive. The matrix is overwritten. */
static inline void block_solve(double matrix[ADI_SIZE][ADI_SIZE], adi_carry right)
{
    for (int pivot = 0; pivot < ADI_SIZE; pivot++) {
        double inverse = 1 / matrix[pivot][pivot];
        for (int column = pivot + 1; column < ADI_SIZE; column++)
            matrix[pivot][column] *= inverse;
        for (int column = 0; column < ADI_COLUMNS; column++)
            right[pivot][column] *= inverse;
        for (int row = 0; row < ADI_SIZE; row++) {
            if (row == pivot)
                continue;
            double factor = matrix[row][pivot];
            for (int column = pivot + 1; column < ADI_SIZE; column++)
                matrix[row][column] -= factor * matrix[pivot][column];
            for (int column = 0; column < ADI_COLUMNS; column++)
                right[row][column] -= factor * right[pivot][column];
        }
    }
}

/* Eliminates a cell's row: `carry` is that of the cell before and becomes that of this one. */
static inline void cell_eliminate(const struct adi_solver *solver, size_t cell, adi_carry carry)
{
    double u[ADI_SIZE];
    double right_side[ADI_SIZE];
    double block[ADI_SIZE][ADI_SIZE];
    double matrix[ADI_SIZE][ADI_SIZE];
    adi_carry right;
    cell_read(u, solver, solver->state, cell);
    cell_read(right_side, solver, solver->increment, cell);
    block_make(block, solver, u);
    double ratio = solver->ratio;
    for (int row = 0; row < ADI_SIZE; row++) {
        double sum[ADI_COLUMNS] = {0};
        for (int i = 0; i < ADI_SIZE; i++) {
            for (int column = 0; column < ADI_COLUMNS; column++)
                sum[column] += block[row][i] * carry[i][column];
        }
        for (int column = 0; column < ADI_SIZE; column++) {
            matrix[row][column] = ratio * (2 * block[row][column] + sum[column]) + (row == column);
            right[row][column] = -ratio * block[row][column];
        }
        right[row][ADI_SIZE] = right_side[row] + ratio * sum[ADI_SIZE];
    }
    block_solve(matrix, right);
    memcpy(carry, right, sizeof(right));
}

static void line_eliminate(struct adi_solver *solver, int axis, size_t line, adi_carry carry)
{
    const struct grid *grid = &solver->grid;
    size_t cell = grid_line(grid, axis, line);
    double *upper = solver->upper + line * (size_t)grid->count[axis] * ADI_SIZE * ADI_SIZE;
    for (int k = 0; k < grid->count[axis]; k++, cell += grid->step[axis]) {
        cell_eliminate(solver, cell, carry);
        for (int row = 0; row < ADI_SIZE; row++) {
            memcpy(upper, carry[row], ADI_SIZE * sizeof(double));
            upper += ADI_SIZE;
            solver->increment[(size_t)row * grid->cells + cell] = carry[row][ADI_SIZE];
        }
    }
}

/* From the last cell to the first; `solution` is that of the cell behind and becomes that of the first one. */
static void line_substitute(struct adi_solver *solver, int axis, size_t line, double solution[ADI_SIZE])
{
    const struct grid *grid = &solver->grid;
    int count = grid->count[axis];
    size_t cell = grid_line(grid, axis, line) + (size_t)count * grid->step[axis];
    const double *upper = solver->upper + (line + 1) * (size_t)count * ADI_SIZE * ADI_SIZE;
    for (int k = 0; k < count; k++) {
        double result[ADI_SIZE];
        cell -= grid->step[axis];
        upper -= ADI_SIZE * ADI_SIZE;
        cell_read(result, solver, solver->increment, cell);
        for (int row = 0; row < ADI_SIZE; row++) {
            for (int i = 0; i < ADI_SIZE; i++)
                result[row] -= upper[row * ADI_SIZE + i] * solution[i];
        }
        cell_write(solver, solver->increment, cell, result);
        memcpy(solution, result, sizeof(result));
    }
}

/* A pass of all lines along the axis, upwards or downwards: batches come from one neighbour and go to the other. */
static void lines_pass(struct adi_solver *solver, int axis, bool upwards)
{
    int from = solver->grid.neighbour[axis][upwards ? GRID_LOW : GRID_HIGH];
    int to = solver->grid.neighbour[axis][upwards ? GRID_HIGH : GRID_LOW];
    int each = upwards ? ADI_CARRY : ADI_SIZE;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    size_t face = grid_face(&solver->grid, axis);
    int turn = 0;
    for (size_t line = 0; line < face; turn = 1 - turn) {
        int lines = face - line < ADI_BATCH ? (int)(face - line) : ADI_BATCH;
        double *batch = upwards ? solver->up[turn] : solver->down[turn];
        kernel_communication_begin(&solver->kernel);
        MPI_Wait(&requests[turn], MPI_STATUS_IGNORE);
        memset(batch, 0, (size_t)(lines * each) * sizeof(double)); /* at the border */
        MPI_Recv(batch, lines * each, MPI_DOUBLE, from, axis, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        kernel_communication_end(&solver->kernel);
        for (int i = 0; i < lines; i++, line++) {
            if (upwards)
                line_eliminate(solver, axis, line, (double(*)[ADI_COLUMNS])(batch + i * each));
            else
                line_substitute(solver, axis, line, batch + i * each);
        }
        kernel_communication_begin(&solver->kernel);
        MPI_Isend(batch, lines * each, MPI_DOUBLE, to, axis, MPI_COMM_WORLD, &requests[turn]);
        kernel_communication_end(&solver->kernel);
    }
    kernel_communication_begin(&solver->kernel);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    kernel_communication_end(&solver->kernel);
}

static void increment_compute(struct adi_solver *solver)
{
    for (int axis = 0; axis < GRID_AXES; axis++) {
        lines_pass(solver, axis, true);
        lines_pass(solver, axis, false);
    }
}

static void step(struct adi_solver *solver)
{
    right_compute(solver);
    increment_compute(solver);
    for (size_t i = 0; i < ADI_SIZE * solver->grid.cells; i++)
        solver->state[i] += solver->increment[i];
}

/* ---- verification ---- */

/* How far the state is from the steady one. */
static double error_compute(struct adi_solver *solver)
{
    for (size_t i = 0, cells = solver->grid.cells; i < ADI_SIZE * cells; i++) {
        int place[GRID_AXES];
        grid_place(place, &solver->grid, i % cells);
        solver->other[i] = solver->state[i] - exact(solver, (int)(i / cells), place);
    }
    return grid_most(&solver->grid, ADI_SIZE, solver->other);
}

/* Solves again and multiplies the increment by the three factors, which must give the right side. */
static void factors_verify(struct adi_solver *solver)
{
    size_t count = ADI_SIZE * solver->grid.cells;
    double *right = kernel_allocate(count, sizeof(double));
    right_compute(solver);
    memcpy(right, solver->increment, count * sizeof(double));
    increment_compute(solver);
    solver->exact_amplitude = 0; /* increments are nought at the border */
    grid_border_fill(&solver->grid, &solver->halo, exact, solver);
    for (int axis = GRID_AXES - 1; axis >= 0; axis--) {
        memset(solver->other, 0, count * sizeof(double));
        difference_add(solver, axis, solver->increment, solver->other);
        blocks_multiply(solver, solver->increment, solver->increment, -solver->ratio, solver->other);
    }
    double largest = grid_most(&solver->grid, ADI_SIZE, right);
    for (size_t i = 0; i < count; i++)
        right[i] -= solver->increment[i];
    double residual = grid_most(&solver->grid, ADI_SIZE, right) / largest;
    kernel_require(&solver->kernel, solver->kernel.rank > 0 || residual <= residual_tolerance,
                   "the factored equations have a residual of %.3g", residual);
    free(right);
}

/* By which a step of the linear equations multiplies a mode that K multiplies by `factor`. */
static double mode_factor(const struct adi_solver *solver, const int waves[GRID_AXES], double factor)
{
    double sum = 0;
    double product = 1;
    for (int axis = 0; axis < GRID_AXES; axis++) {
        double half = sin(0.5 * pi * waves[axis] / (solver->grid.length[axis] + 1));
        double eigenvalue = 4 * solver->ratio * factor * half * half;
        sum += eigenvalue;
        product *= 1 + eigenvalue;
    }
    return 1 - sum / product;
}

/* Two modes, each with an eigenvector of the constant K, must decay as the scheme says. */
static void modes_verify(struct adi_solver *solver)
{
    static const int waves[2][GRID_AXES] = {{1, 2, 3}, {4, 1, 2}};
    static const double vectors[2][ADI_SIZE] = {{1, -1, 0, 0, 0}, {1, 1, 1, 1, 1}};
    const double factors[2] = {mode_factor(solver, waves[0], diffusion),
                               mode_factor(solver, waves[1], diffusion + ADI_SIZE * coupling)};
    solver->nonlinearity = 0;
    solver->exact_amplitude = 0;
    grid_border_fill(&solver->grid, &solver->halo, exact, solver);
    size_t cells = solver->grid.cells;
    memset(solver->forcing, 0, ADI_SIZE * cells * sizeof(double));
    for (int steps = 0; steps <= ADI_MODE_STEPS; steps++) {
        double error = 0;
        for (size_t i = 0; i < ADI_SIZE * cells; i++) {
            int place[GRID_AXES];
            grid_place(place, &solver->grid, i % cells);
            double expected = 0;
            for (int k = 0; k < 2; k++)
                expected += vectors[k][i / cells] * pow(factors[k], steps) * mode(solver, waves[k], place);
            if (steps == 0)
                solver->state[i] = expected;
            error = kernel_most(error, fabs(solver->state[i] - expected));
        }
        kernel_require(&solver->kernel, error <= mode_tolerance, "step %d: modes are off by %.3g", steps, error);
        if (steps < ADI_MODE_STEPS)
            step(solver);
    }
}

/* ---- the program ---- */

static bool solver_init(struct adi_solver *solver, int *exit_code)
{
    solver->class = &classes[solver->kernel.class_index];
    int length = solver->class->length;
    struct grid_division division = {.length = {length, length, length}, .is_divided = {true, true, false}, .least = 1};
    if (!grid_start(&solver->grid, &solver->kernel, &division, exit_code))
        return false;
    grid_halo_init(&solver->halo, &solver->grid, ADI_SIZE, 1);
    solver->exact_amplitude = 1;
    solver->nonlinearity = nonlinearity;
    solver->ratio = time_step * (length + 1) * (length + 1);
    size_t cells = solver->grid.cells;
    double **fields[] = {&solver->state, &solver->forcing, &solver->increment, &solver->other};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        *fields[i] = kernel_allocate(cells, ADI_SIZE * sizeof(double));
    solver->upper = kernel_allocate(cells, ADI_SIZE * ADI_SIZE * sizeof(double));
    for (int i = 0; i < 2; i++) {
        solver->up[i] = kernel_allocate(ADI_BATCH, ADI_CARRY * sizeof(double));
        solver->down[i] = kernel_allocate(ADI_BATCH, ADI_SIZE * sizeof(double));
    }
    forcing_fill(solver);
    grid_border_fill(&solver->grid, &solver->halo, exact, solver);
    static const int waves[GRID_AXES] = {1, 1, 1};
    for (size_t i = 0; i < ADI_SIZE * cells; i++) {
        int place[GRID_AXES];
        grid_place(place, &solver->grid, i % cells);
        solver->state[i] = exact(solver, (int)(i / cells), place) + 0.2 * mode(solver, waves, place);
    }
    return true;
}

static void solver_dispose(struct adi_solver *solver)
{
    void *memory[] = {solver->state, solver->forcing, solver->increment, solver->other,  solver->upper,
                      solver->up[0], solver->up[1],   solver->down[0],   solver->down[1]};
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
        free(memory[i]);
    grid_halo_dispose(&solver->halo);
}

static const struct kernel_about about = {
    .name = "adi",
    .purpose = "Alternating directions: block tridiagonal systems along lines; pipelines of batches, faces of blocks.",
    .classes = {"24 x 24 x 24, 60 steps", "60 x 60 x 60, 100 steps", "80 x 80 x 80, 200 steps"},
    .work = "Mcells",
};

int main(int argc, char **argv)
{
    static struct adi_solver solver;
    int exit_code;
    if (!kernel_start(&solver.kernel, &about, argc, argv, &exit_code) || !solver_init(&solver, &exit_code))
        return exit_code;
    double error_before = error_compute(&solver);
    kernel_timer_start(&solver.kernel);
    for (int i = 0; i < solver.class->steps; i++)
        step(&solver);
    kernel_timer_stop(&solver.kernel);

    double error = error_compute(&solver);
    double allowed = error_before * exp(-slowest * GRID_AXES * pi * pi * time_step * solver.class->steps);
    kernel_require(&solver.kernel, solver.kernel.rank > 0 || error <= allowed,
                   "the error fell from %.3g to %.3g, not to %.3g", error_before, error, allowed);
    factors_verify(&solver);
    modes_verify(&solver);
    double work = pow(solver.class->length, GRID_AXES) * solver.class->steps;
    solver_dispose(&solver);
    return kernel_finish(&solver.kernel, work);
}
