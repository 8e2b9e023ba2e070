/* Discrete ordinates: the flux of particles in a cube that emits, scatters and absorbs them, by source iteration. An
 * iteration sweeps the cube from each of its eight corners, in the directions that point away from the corner, by
 * diamond differences: the flux in a cell follows from the flux that enters through three of its faces. Blocks divide x
 * and y. A sweep is a pipeline over the ranks: for one group of planes after the other a rank receives the entering
 * flux, and sends the leaving one, for all directions of the octant. It is the shape of the ASCI benchmark Sweep3D
 * (Koch, Baker and Alcouffe, 1992).
 *
 * The problem is the same in a mirror across each axis, and when axes change places; so must the flux be. */
#include "apps/kernels/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SWEEP_ANGLES = 6, /* directions of an octant */
    SWEEP_OCTANTS = 8,
    SWEEP_PLANES = 10, /* of a group */
    SWEEP_ITERATIONS = 40,
    SWEEP_LENGTH_MAX = 200,
};

static const double cube_edge = 4;             /* mean free paths of the outer material */
static const double scattering = 0.5;          /* of what collides; the rest is absorbed */
static const double core_density = 2;          /* of the middle of the cube, where the outer material has 1 */
static const double core_edge = 0.5;           /* of the cube's */
static const double core_source = 3;           /* where the outer material emits 1 */
static const double balance_tolerance = 1e-10; /* relative */
static const double mirror_tolerance = 1e-11;  /* relative */

/* S6, fully symmetric: the cosines with the axes are these, in every order whose indices add up to 2. */
static const double cosines[3] = {0.2666355, 0.6815076, 0.9261808};
static const int cosine_index[SWEEP_ANGLES][GRID_AXES] = {{0, 0, 2}, {0, 2, 0}, {2, 0, 0},
                                                          {0, 1, 1}, {1, 0, 1}, {1, 1, 0}};
static const double weights[2] = {0.1761263, 0.1572071}; /* of the first three directions, and of the others */

static const int class_lengths[KERNEL_CLASSES] = {40, 120, 200};

/* Faces are [plane or line][cell][angle] of the flux through them. */
struct sweep_solver {
    struct kernel kernel;
    struct grid grid;
    double cosine[GRID_AXES][SWEEP_ANGLES];
    double weight[SWEEP_ANGLES]; /* of one octant's direction: all of all octants are 1 */
    double cell_edge;
    double *flux; /* scalar: of all directions */
    double *next;
    double *emission;                     /* source and scattered */
    double *face[GRID_AXES];              /* into the cells at hand: x and y of a group of planes, z of a whole layer */
    double leakage[GRID_AXES][GRID_ENDS]; /* through the faces of the cube, this rank's part, of an iteration */
};

/* ---- the problem ---- */

static bool is_core(const struct sweep_solver *solver, const int place[GRID_AXES])
{
    bool inside = true;
    for (int axis = 0; axis < GRID_AXES; axis++) {
        int length = solver->grid.length[axis];
        inside = inside && abs(2 * place[axis] + 1 - length) < core_edge * length;
    }
    return inside;
}

static double density(const struct sweep_solver *solver, const int place[GRID_AXES])
{
    return is_core(solver, place) ? core_density : 1;
}

static double source(const struct sweep_solver *solver, const int place[GRID_AXES])
{
    return is_core(solver, place) ? core_source : 1;
}

static void angles_fill(struct sweep_solver *solver)
{
    double sum = 3 * (weights[0] + weights[1]);
    for (int m = 0; m < SWEEP_ANGLES; m++) {
        solver->weight[m] = weights[m / 3] / sum / SWEEP_OCTANTS;
        for (int axis = 0; axis < GRID_AXES; axis++)
            solver->cosine[axis][m] = cosines[cosine_index[m][axis]];
    }
}

static void emission_fill(struct sweep_solver *solver)
{
    for (size_t cell = 0; cell < solver->grid.cells; cell++) {
        int place[GRID_AXES];
        grid_place(place, &solver->grid, cell);
        solver->emission[cell] = source(solver, place) + scattering * density(solver, place) * solver->flux[cell];
    }
}

/* ---- a sweep ---- */

/* The corner that a sweep begins at: bit `axis` of the octant is set if it goes downwards along it. */
static inline bool is_down(int octant, int axis)
{
    return octant >> axis & 1;
}

/* One cell, all directions of an octant: the entering flux becomes the leaving one. */
static inline void cell_sweep(struct sweep_solver *solver, size_t cell, double total, double *restrict x,
                              double *restrict y, double *restrict z)
{
    double emission = solver->emission[cell];
    double factor = 2 / solver->cell_edge;
    double flux = 0;
    for (int m = 0; m < SWEEP_ANGLES; m++) {
        double a = factor * solver->cosine[0][m];
        double b = factor * solver->cosine[1][m];
        double c = factor * solver->cosine[2][m];
        double middle = (emission + a * x[m] + b * y[m] + c * z[m]) / (total + a + b + c);
        x[m] = 2 * middle - x[m];
        y[m] = 2 * middle - y[m];
        z[m] = 2 * middle - z[m];
        flux += solver->weight[m] * middle;
    }
    solver->next[cell] += flux;
}

/* Planes first to first + planes - 1 in the order of the sweep. */
static void planes_sweep(struct sweep_solver *solver, int octant, int first, int planes)
{
    const struct grid *grid = &solver->grid;
    const int *count = grid->count;
    for (int k = 0; k < planes; k++) {
        int z = is_down(octant, 2) ? count[2] - 1 - first - k : first + k;
        for (int j = 0; j < count[1]; j++) {
            int y = is_down(octant, 1) ? count[1] - 1 - j : j;
            for (int i = 0; i < count[0]; i++) {
                int x = is_down(octant, 0) ? count[0] - 1 - i : i;
                int place[GRID_AXES] = {grid->first[0] + x, grid->first[1] + y, z};
                size_t cell = (size_t)z * grid->step[2] + (size_t)y * grid->step[1] + (size_t)x;
                cell_sweep(solver, cell, density(solver, place), solver->face[0] + (k * count[1] + y) * SWEEP_ANGLES,
                           solver->face[1] + (k * count[0] + x) * SWEEP_ANGLES,
                           solver->face[2] + (y * count[0] + x) * SWEEP_ANGLES);
            }
        }
    }
}

/* Particles that go through `cells` cells of a face across the axis in a unit of time. */
static double flow(const struct sweep_solver *solver, int axis, int cells)
{
    double sum = 0;
    const double *face = solver->face[axis];
    for (int i = 0; i < cells * SWEEP_ANGLES; i++)
        sum += solver->weight[i % SWEEP_ANGLES] * solver->cosine[axis][i % SWEEP_ANGLES] * face[i];
    return sum * solver->cell_edge * solver->cell_edge;
}

/* The flux that enters a group of planes from the ranks before, or zero at the border. */
static void faces_receive(struct sweep_solver *solver, int octant, int planes)
{
    const struct grid *grid = &solver->grid;
    for (int axis = 0; axis < 2; axis++) {
        int numbers = planes * grid->count[1 - axis] * SWEEP_ANGLES;
        int from = grid->neighbour[axis][is_down(octant, axis) ? GRID_HIGH : GRID_LOW];
        if (from == MPI_PROC_NULL)
            memset(solver->face[axis], 0, (size_t)numbers * sizeof(double));
        kernel_communication_begin(&solver->kernel);
        MPI_Recv(solver->face[axis], numbers, MPI_DOUBLE, from, axis, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        kernel_communication_end(&solver->kernel);
    }
}

static void faces_send(struct sweep_solver *solver, int octant, int planes)
{
    const struct grid *grid = &solver->grid;
    for (int axis = 0; axis < 2; axis++) {
        int cells = planes * grid->count[1 - axis];
        enum grid_end end = is_down(octant, axis) ? GRID_LOW : GRID_HIGH;
        int to = grid->neighbour[axis][end];
        if (to == MPI_PROC_NULL)
            solver->leakage[axis][end] += flow(solver, axis, cells);
        kernel_communication_begin(&solver->kernel);
        MPI_Send(solver->face[axis], cells * SWEEP_ANGLES, MPI_DOUBLE, to, axis, MPI_COMM_WORLD);
        kernel_communication_end(&solver->kernel);
    }
}

static void octant_sweep(struct sweep_solver *solver, int octant)
{
    const int *count = solver->grid.count;
    int layer = count[0] * count[1];
    memset(solver->face[2], 0, (size_t)(layer * SWEEP_ANGLES) * sizeof(double));
    for (int first = 0; first < count[2]; first += SWEEP_PLANES) {
        int planes = count[2] - first < SWEEP_PLANES ? count[2] - first : SWEEP_PLANES;
        faces_receive(solver, octant, planes);
        planes_sweep(solver, octant, first, planes);
        faces_send(solver, octant, planes);
    }
    solver->leakage[2][is_down(octant, 2) ? GRID_LOW : GRID_HIGH] += flow(solver, 2, layer);
}

static void iterate(struct sweep_solver *solver)
{
    emission_fill(solver);
    memset(solver->next, 0, solver->grid.cells * sizeof(double));
    memset(solver->leakage, 0, sizeof(solver->leakage));
    for (int octant = 0; octant < SWEEP_OCTANTS; octant++)
        octant_sweep(solver, octant);
    double *flux = solver->flux;
    solver->flux = solver->next;
    solver->next = flux;
}

/* ---- verification ---- */

/* As many particles are emitted as are absorbed and leave; equally many through each face. */
static void balance_verify(struct sweep_solver *solver)
{
    enum { EMITTED, ABSORBED, LEAKED };
    double sums[LEAKED + GRID_AXES * GRID_ENDS] = {0};
    double volume = pow(solver->cell_edge, GRID_AXES);
    size_t negative = 0;
    for (size_t cell = 0; cell < solver->grid.cells; cell++) {
        int place[GRID_AXES];
        grid_place(place, &solver->grid, cell);
        sums[EMITTED] += volume * source(solver, place);
        sums[ABSORBED] += volume * (1 - scattering) * density(solver, place) * solver->flux[cell];
        negative += !(solver->flux[cell] > 0);
    }
    kernel_require(&solver->kernel, negative == 0, "%zu fluxes are not positive", negative);
    memcpy(&sums[LEAKED], solver->leakage, sizeof(solver->leakage));
    MPI_Allreduce(MPI_IN_PLACE, sums, LEAKED + GRID_AXES * GRID_ENDS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (solver->kernel.rank > 0) /* all have the same numbers */
        return;
    double rest = sums[EMITTED] - sums[ABSORBED];
    for (int i = 0; i < GRID_AXES * GRID_ENDS; i++) {
        rest -= sums[LEAKED + i];
        double error = fabs(sums[LEAKED + i] / sums[LEAKED] - 1);
        kernel_require(&solver->kernel, error <= mirror_tolerance, "face %d leaks otherwise than the first by %.3g", i,
                       error);
    }
    double error = fabs(rest) / sums[EMITTED];
    kernel_require(&solver->kernel, error <= balance_tolerance, "%.3g of the particles are lost", error);
}

/* The sums of the flux over planes across each axis: the same from both ends and along all axes. */
static void mirror_verify(struct sweep_solver *solver)
{
    double sums[GRID_AXES * SWEEP_LENGTH_MAX] = {0};
    int length = solver->grid.length[0];
    for (size_t cell = 0; cell < solver->grid.cells; cell++) {
        int place[GRID_AXES];
        grid_place(place, &solver->grid, cell);
        for (int axis = 0; axis < GRID_AXES; axis++)
            sums[axis * length + place[axis]] += solver->flux[cell];
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, GRID_AXES * length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double most = 0;
    for (int i = 0; i < GRID_AXES * length; i++) {
        int at = i % length;
        double error = fabs(sums[i] / sums[at] - 1) + fabs(sums[i] / sums[length - 1 - at] - 1);
        most = kernel_most(most, error);
    }
    kernel_require(&solver->kernel, solver->kernel.rank > 0 || most <= mirror_tolerance,
                   "the flux is asymmetric by %.3g", most);
}

/* ---- the program ---- */

static bool solver_init(struct sweep_solver *solver, int *exit_code)
{
    int length = class_lengths[solver->kernel.class_index];
    struct grid_division division = {.length = {length, length, length}, .is_divided = {true, true, false}, .least = 1};
    if (!grid_start(&solver->grid, &solver->kernel, &division, exit_code))
        return false;
    const struct grid *grid = &solver->grid;
    solver->cell_edge = cube_edge / length;
    solver->flux = kernel_allocate(grid->cells, sizeof(double));
    solver->next = kernel_allocate(grid->cells, sizeof(double));
    solver->emission = kernel_allocate(grid->cells, sizeof(double));
    solver->face[0] = kernel_allocate((size_t)(SWEEP_PLANES * grid->count[1]), SWEEP_ANGLES * sizeof(double));
    solver->face[1] = kernel_allocate((size_t)(SWEEP_PLANES * grid->count[0]), SWEEP_ANGLES * sizeof(double));
    solver->face[2] = kernel_allocate((size_t)(grid->count[0] * grid->count[1]), SWEEP_ANGLES * sizeof(double));
    angles_fill(solver);
    return true;
}

static void solver_dispose(struct sweep_solver *solver)
{
    for (int axis = 0; axis < GRID_AXES; axis++)
        free(solver->face[axis]);
    free(solver->flux);
    free(solver->next);
    free(solver->emission);
}

static const struct kernel_about about = {
    .name = "sweep",
    .purpose = "Discrete ordinates: particles in a cube; pipelines of groups of planes from all eight corners.",
    .classes = {"40 x 40 x 40", "120 x 120 x 120", "200 x 200 x 200"},
    .work = "Mfluxes",
};

int main(int argc, char **argv)
{
    static struct sweep_solver solver;
    int exit_code;
    if (!kernel_start(&solver.kernel, &about, argc, argv, &exit_code) || !solver_init(&solver, &exit_code))
        return exit_code;
    kernel_timer_start(&solver.kernel);
    for (int i = 0; i < SWEEP_ITERATIONS; i++)
        iterate(&solver);
    kernel_timer_stop(&solver.kernel);

    balance_verify(&solver);
    mirror_verify(&solver);
    solver_dispose(&solver);
    /* a flux is that of one direction in one cell in one iteration */
    double work = pow(solver.grid.length[0], GRID_AXES) * SWEEP_OCTANTS * SWEEP_ANGLES * SWEEP_ITERATIONS;
    return kernel_finish(&solver.kernel, work);
}
