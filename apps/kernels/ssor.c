/* Symmetric successive over-relaxation: solves - div (k grad u) + B u = f for five coupled quantities in a cube. An
 * iteration computes the residual r, for which neighbours exchange the faces of their blocks, and then solves
 *
 *    (D + w L) D^-1 (D + w U) correction = w (2 - w) r
 *
 * by a sweep upwards and one downwards; D, L and U are the diagonal (blocks of 5 x 5), lower and upper part of the
 * matrix. Blocks divide x and y. A sweep goes plane by plane along z as a wavefront: a rank begins a plane when both
 * neighbours it depends on have sent their edges of it. It is the shape of the NAS benchmark LU (Bailey et al.,
 * RNR-94-007).
 *
 * No cell's result depends on how the cube is divided: it is the same, bit for bit, on any number of ranks. */
#include "apps/kernels/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SSOR_SIZE = 5, /* quantities */
    SSOR_BLOCK = SSOR_SIZE * SSOR_SIZE,
    SSOR_LENGTH_MAX = 96,
};

static const double reaction = 2; /* of B, in squares of the cube's edge */
static const double pi = 3.14159265358979323846;

struct ssor_class {
    int length;        /* cells of the cube's edge */
    double relaxation; /* w: the larger the cube, the closer to 2 */
    int iterations;
    double reduction; /* of the residual and of the error, which must be reached */
};

static const struct ssor_class classes[KERNEL_CLASSES] = {
    {24, 1.78, 120, 1e-8}, {64, 1.91, 350, 1e-7}, {96, 1.94, 500, 1e-7}};

/* Fields are [quantity][cell]. */
struct ssor_solver {
    struct kernel *kernel;
    const struct ssor_class *class;
    struct grid grid;
    struct grid_halo halo;
    double conductance[GRID_AXES][SSOR_LENGTH_MAX + 1]; /* between cells i - 1 and i along the axis */
    double *state;
    double *right;
    double *residual; /* becomes the correction */
    double *strength; /* of the reaction in each cell */
    double *inverse;  /* [cell][block]: of the diagonal blocks */
    double *edge[2];  /* across x and y: of the neighbours, [quantity][cell of the edge] */
    double *own[2];   /* ... of this rank */
};

/* ---- the problem ---- */

static double coordinate(const struct ssor_solver *solver, double place)
{
    return (place + 1) / (solver->class->length + 1);
}

/* The solution; also at places -1 and length, which are the border. */
static double exact(const void *context, int quantity, const int place[GRID_AXES])
{
    const struct ssor_solver *solver = context;
    double x = coordinate(solver, place[0]);
    double y = coordinate(solver, place[1]);
    double z = coordinate(solver, place[2]);
    return 1 + 0.5 * x * (1 + y) * (quantity - 2) + 0.3 * sin(pi * (2 * x + y + 0.5 * quantity * z)) * (1 + z * z);
}

/* B is a block times the strength of the reaction in a cell, in squares of the cells' distance. */
static double strength(const struct ssor_solver *solver, const int place[GRID_AXES])
{
    double distance = coordinate(solver, 0);
    double product = reaction * distance * distance;
    for (int axis = 0; axis < GRID_AXES; axis++)
        product *= 1 + 0.5 * sin(pi * (axis + 1) * coordinate(solver, place[axis]));
    return product;
}

/* The block, symmetric and positive. */
static inline double coupling(size_t row, size_t column)
{
    return row == column ? 2 : 1.0 / (2 + (double)(row > column ? row - column : column - row));
}

static void conductance_fill(struct ssor_solver *solver)
{
    for (int axis = 0; axis < GRID_AXES; axis++) {
        for (int i = 0; i <= solver->class->length; i++)
            solver->conductance[axis][i] = 1 + 0.4 * sin(pi * (axis + 1) * coordinate(solver, i - 0.5));
    }
}

/* Between a cell and the next one at an end. */
static inline double conductance_at(const struct ssor_solver *solver, int axis, int place, enum grid_end end)
{
    return solver->conductance[axis][end == GRID_LOW ? place : place + 1];
}

/* The strengths, and the right side of which the exact solution is the solution. */
static void right_fill(struct ssor_solver *solver)
{
    for (size_t cell = 0; cell < solver->grid.cells; cell++) {
        int place[GRID_AXES];
        double u[SSOR_SIZE];
        grid_place(place, &solver->grid, cell);
        solver->strength[cell] = strength(solver, place);
        for (int i = 0; i < SSOR_SIZE; i++)
            u[i] = exact(solver, i, place);
        for (int row = 0; row < SSOR_SIZE; row++) {
            double sum = 0;
            for (int i = 0; i < SSOR_SIZE; i++)
                sum += solver->strength[cell] * coupling((size_t)row, (size_t)i) * u[i];
            for (int i = 0; i < GRID_AXES * GRID_ENDS; i++) {
                int axis = i / GRID_ENDS;
                enum grid_end end = (enum grid_end)(i % GRID_ENDS);
                int near[GRID_AXES] = {place[0], place[1], place[2]};
                near[axis] += end == GRID_LOW ? -1 : 1;
                sum += conductance_at(solver, axis, place[axis], end) * (u[row] - exact(solver, row, near));
            }
            solver->right[(size_t)row * solver->grid.cells + cell] = sum;
        }
    }
}

/* inverse = block^-1, by Gauss and Jordan without pivots; the block is positive, and is overwritten. */
static void block_invert(double *inverse, double block[SSOR_SIZE][SSOR_SIZE])
{
    for (int i = 0; i < SSOR_BLOCK; i++)
        inverse[i] = i % (SSOR_SIZE + 1) == 0;
    for (int pivot = 0; pivot < SSOR_SIZE; pivot++) {
        double factor = 1 / block[pivot][pivot];
        for (int column = 0; column < SSOR_SIZE; column++) {
            block[pivot][column] *= factor;
            inverse[pivot * SSOR_SIZE + column] *= factor;
        }
        for (int row = 0; row < SSOR_SIZE; row++) {
            double multiple = row == pivot ? 0 : block[row][pivot];
            for (int column = 0; column < SSOR_SIZE; column++) {
                block[row][column] -= multiple * block[pivot][column];
                inverse[row * SSOR_SIZE + column] -= multiple * inverse[pivot * SSOR_SIZE + column];
            }
        }
    }
}

static double conductance_sum(const struct ssor_solver *solver, const int place[GRID_AXES])
{
    double sum = 0;
    for (int axis = 0; axis < GRID_AXES; axis++)
        sum +=
            conductance_at(solver, axis, place[axis], GRID_LOW) + conductance_at(solver, axis, place[axis], GRID_HIGH);
    return sum;
}

static void inverses_fill(struct ssor_solver *solver)
{
    for (size_t cell = 0; cell < solver->grid.cells; cell++) {
        int place[GRID_AXES];
        double block[SSOR_SIZE][SSOR_SIZE];
        grid_place(place, &solver->grid, cell);
        for (size_t row = 0; row < SSOR_SIZE; row++) {
            for (size_t column = 0; column < SSOR_SIZE; column++)
                block[row][column] = solver->strength[cell] * coupling(row, column);
            block[row][row] += conductance_sum(solver, place);
        }
        block_invert(solver->inverse + cell * SSOR_BLOCK, block);
    }
}

/* ---- the residual ---- */

/* residual += what flows into each cell along the axis */
static void flow_add(struct ssor_solver *solver, int axis)
{
    const struct grid *grid = &solver->grid;
    grid_exchange(solver->kernel, grid, &solver->halo, axis, solver->state);
    size_t face = grid_face(grid, axis);
    size_t step = grid->step[axis];
    int last = grid->count[axis] - 1;
    const double *conductance = solver->conductance[axis] + grid->first[axis];
    for (size_t i = 0; i < SSOR_SIZE * face; i++) {
        size_t cell = i / face * grid->cells + grid_line(grid, axis, i % face);
        double before = solver->halo.received[axis][GRID_LOW][i];
        for (int k = 0; k <= last; k++, cell += step) {
            double here = solver->state[cell];
            double after = k < last ? solver->state[cell + step] : solver->halo.received[axis][GRID_HIGH][i];
            solver->residual[cell] += conductance[k] * (before - here) + conductance[k + 1] * (after - here);
            before = here;
        }
    }
}

static void residual_compute(struct ssor_solver *solver)
{
    size_t cells = solver->grid.cells;
    for (size_t cell = 0; cell < cells; cell++) {
        for (size_t row = 0; row < SSOR_SIZE; row++) {
            double product = 0;
            for (size_t i = 0; i < SSOR_SIZE; i++)
                product += coupling(row, i) * solver->state[i * cells + cell];
            solver->residual[row * cells + cell] = solver->right[row * cells + cell] - solver->strength[cell] * product;
        }
    }
    for (int axis = 0; axis < GRID_AXES; axis++)
        flow_add(solver, axis);
}

/* ---- sweeps ---- */

/* One cell of a sweep: `near` has what its three neighbours in the sweep's past bring, for each quantity. Upwards the
 * residual is divided too, downwards it was. */
static inline void cell_sweep(struct ssor_solver *solver, size_t cell, const double near[SSOR_SIZE], bool upwards)
{
    double sum[SSOR_SIZE];
    double *residual = solver->residual + cell;
    size_t cells = solver->grid.cells;
    const double *inverse = solver->inverse + cell * SSOR_BLOCK;
    for (size_t i = 0; i < SSOR_SIZE; i++)
        sum[i] = solver->class->relaxation * near[i] + (upwards ? residual[i * cells] : 0);
    for (size_t row = 0; row < SSOR_SIZE; row++) {
        double product = 0;
        for (size_t i = 0; i < SSOR_SIZE; i++)
            product += inverse[row * SSOR_SIZE + i] * sum[i];
        residual[row * cells] = upwards ? product : residual[row * cells] + product;
    }
}

/* Values of a neighbour one step back in the sweep: in the block, or of the edge that came from the other rank. */
struct ssor_past {
    const double *value; /* NULL: the border, nothing */
    size_t between;      /* quantities */
    double conductance;
};

static inline struct ssor_past past_find(const struct ssor_solver *solver, int axis, const int at[GRID_AXES],
                                         size_t cell, bool upwards)
{
    const struct grid *grid = &solver->grid;
    enum grid_end end = upwards ? GRID_LOW : GRID_HIGH;
    struct ssor_past past = {.conductance = conductance_at(solver, axis, grid->first[axis] + at[axis], end)};
    if (at[axis] != (upwards ? 0 : grid->count[axis] - 1)) {
        past.value = solver->residual + (upwards ? cell - grid->step[axis] : cell + grid->step[axis]);
        past.between = grid->cells;
    } else if (axis < 2 && grid->neighbour[axis][end] != MPI_PROC_NULL) {
        past.value = solver->edge[axis] + at[1 - axis];
        past.between = (size_t)grid->count[1 - axis];
    }
    return past;
}

static inline void place_sweep(struct ssor_solver *solver, const int at[GRID_AXES], bool upwards)
{
    const size_t *step = solver->grid.step;
    size_t cell = (size_t)at[0] * step[0] + (size_t)at[1] * step[1] + (size_t)at[2] * step[2];
    double near[SSOR_SIZE] = {0};
    for (int axis = 0; axis < GRID_AXES; axis++) {
        struct ssor_past past = past_find(solver, axis, at, cell, upwards);
        for (size_t i = 0; past.value && i < SSOR_SIZE; i++)
            near[i] += past.conductance * past.value[i * past.between];
    }
    cell_sweep(solver, cell, near, upwards);
}

/* The cells of a plane next to the rank that waits for them, to solver->own[axis]; returns how many numbers. */
static int edge_pack(struct ssor_solver *solver, int axis, int plane, bool upwards)
{
    const struct grid *grid = &solver->grid;
    size_t count = (size_t)grid->count[1 - axis];
    size_t at = upwards ? (size_t)grid->count[axis] - 1 : 0;
    const double *first = solver->residual + (size_t)plane * grid->step[2] + at * grid->step[axis];
    for (size_t i = 0; i < SSOR_SIZE * count; i++)
        solver->own[axis][i] = first[i / count * grid->cells + i % count * grid->step[1 - axis]];
    return (int)(SSOR_SIZE * count);
}

static void plane_sweep(struct ssor_solver *solver, int plane, bool upwards)
{
    const struct grid *grid = &solver->grid;
    enum grid_end from = upwards ? GRID_LOW : GRID_HIGH;
    enum grid_end to = upwards ? GRID_HIGH : GRID_LOW;
    kernel_communication_begin(solver->kernel);
    for (int axis = 0; axis < 2; axis++)
        MPI_Recv(solver->edge[axis], SSOR_SIZE * grid->count[1 - axis], MPI_DOUBLE, grid->neighbour[axis][from], axis,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    kernel_communication_end(solver->kernel);
    for (int y = 0; y < grid->count[1]; y++) {
        for (int x = 0; x < grid->count[0]; x++) {
            int at[GRID_AXES] = {upwards ? x : grid->count[0] - 1 - x, upwards ? y : grid->count[1] - 1 - y, plane};
            place_sweep(solver, at, upwards);
        }
    }
    for (int axis = 0; axis < 2; axis++) {
        int count = edge_pack(solver, axis, plane, upwards);
        kernel_communication_begin(solver->kernel);
        MPI_Send(solver->own[axis], count, MPI_DOUBLE, grid->neighbour[axis][to], axis, MPI_COMM_WORLD);
        kernel_communication_end(solver->kernel);
    }
}

static void iterate(struct ssor_solver *solver)
{
    residual_compute(solver);
    for (int plane = 0; plane < solver->grid.count[2]; plane++)
        plane_sweep(solver, plane, true);
    for (int plane = solver->grid.count[2] - 1; plane >= 0; plane--)
        plane_sweep(solver, plane, false);
    double factor = solver->class->relaxation * (2 - solver->class->relaxation);
    for (size_t i = 0; i < SSOR_SIZE * solver->grid.cells; i++)
        solver->state[i] += factor * solver->residual[i];
}

/* ---- memory ---- */

/* Everything but the grid. */
static void solver_fill(struct ssor_solver *solver)
{
    size_t cells = solver->grid.cells;
    grid_halo_init(&solver->halo, &solver->grid, SSOR_SIZE, 1);
    solver->state = kernel_allocate(cells, SSOR_SIZE * sizeof(double));
    solver->right = kernel_allocate(cells, SSOR_SIZE * sizeof(double));
    solver->residual = kernel_allocate(cells, SSOR_SIZE * sizeof(double));
    solver->strength = kernel_allocate(cells, sizeof(double));
    solver->inverse = kernel_allocate(cells, SSOR_BLOCK * sizeof(double));
    for (int axis = 0; axis < 2; axis++) {
        solver->edge[axis] = kernel_allocate((size_t)solver->grid.count[1 - axis], SSOR_SIZE * sizeof(double));
        solver->own[axis] = kernel_allocate((size_t)solver->grid.count[1 - axis], SSOR_SIZE * sizeof(double));
    }
    conductance_fill(solver);
    right_fill(solver);
    grid_border_fill(&solver->grid, &solver->halo, exact, solver);
    inverses_fill(solver);
}

static void solver_dispose(struct ssor_solver *solver)
{
    void *memory[] = {solver->state,   solver->right,   solver->residual, solver->strength, solver->inverse,
                      solver->edge[0], solver->edge[1], solver->own[0],   solver->own[1]};
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
        free(memory[i]);
    grid_halo_dispose(&solver->halo);
}

/* ---- verification ---- */

static double error_compute(struct ssor_solver *solver)
{
    size_t cells = solver->grid.cells;
    for (size_t i = 0; i < SSOR_SIZE * cells; i++) {
        int place[GRID_AXES];
        grid_place(place, &solver->grid, i % cells);
        solver->residual[i] = solver->state[i] - exact(solver, (int)(i / cells), place);
    }
    return grid_most(&solver->grid, SSOR_SIZE, solver->residual);
}

static double residual_norm(struct ssor_solver *solver)
{
    residual_compute(solver);
    return grid_most(&solver->grid, SSOR_SIZE, solver->residual);
}

/* Rank 0 solves the whole problem; each rank compares its block, bit for bit. */
static void serial_verify(const struct ssor_solver *solver)
{
    static struct ssor_solver whole;
    whole = (struct ssor_solver){.kernel = solver->kernel, .class = solver->class};
    grid_whole(&whole.grid, solver->grid.length);
    solver_fill(&whole);
    for (int i = 0; solver->kernel->rank == 0 && i < solver->class->iterations; i++)
        iterate(&whole);
    MPI_Bcast(whole.state, (int)(SSOR_SIZE * whole.grid.cells), MPI_DOUBLE, 0, MPI_COMM_WORLD);
    size_t different = 0;
    size_t cells = solver->grid.cells;
    for (size_t i = 0; i < SSOR_SIZE * cells; i++) {
        int place[GRID_AXES];
        grid_place(place, &solver->grid, i % cells);
        size_t cell = i / cells * whole.grid.cells;
        for (int axis = 0; axis < GRID_AXES; axis++)
            cell += (size_t)place[axis] * whole.grid.step[axis];
        different += memcmp(&solver->state[i], &whole.state[cell], sizeof(double)) != 0;
    }
    kernel_require(solver->kernel, different == 0, "%zu numbers differ from those of one rank", different);
    solver_dispose(&whole);
}

static void falls_verify(struct ssor_solver *solver, const char *what, double before, double after)
{
    bool right = after <= before * solver->class->reduction;
    kernel_require(solver->kernel, solver->kernel->rank > 0 || right, "the %s fell from %.3g to %.3g only", what,
                   before, after);
}

/* ---- the program ---- */

static const struct kernel_about about = {
    .name = "ssor",
    .purpose = "Symmetric over-relaxation: wavefronts of planes through blocks, faces of blocks for the residual.",
    .classes = {"24 x 24 x 24, 120 iterations", "64 x 64 x 64, 350 iterations", "96 x 96 x 96, 500 iterations"},
    .work = "Mcells",
};

int main(int argc, char **argv)
{
    static struct ssor_solver solver;
    struct kernel kernel;
    int exit_code;
    if (!kernel_start(&kernel, &about, argc, argv, &exit_code))
        return exit_code;
    solver.kernel = &kernel;
    solver.class = &classes[kernel.class_index];
    int length = solver.class->length;
    struct grid_division division = {.length = {length, length, length}, .is_divided = {true, true, false}, .least = 1};
    if (!grid_start(&solver.grid, &kernel, &division, &exit_code))
        return exit_code;
    solver_fill(&solver);
    double error_before = error_compute(&solver);
    double residual_before = residual_norm(&solver);
    kernel_timer_start(&kernel);
    for (int i = 0; i < solver.class->iterations; i++)
        iterate(&solver);
    kernel_timer_stop(&kernel);

    falls_verify(&solver, "residual", residual_before, residual_norm(&solver));
    falls_verify(&solver, "error", error_before, error_compute(&solver));
    if (kernel.class_index == 0)
        serial_verify(&solver);
    double work = pow(length, GRID_AXES) * solver.class->iterations;
    solver_dispose(&solver);
    return kernel_finish(&kernel, work);
}
