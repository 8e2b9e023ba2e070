/* Piecewise parabolic gas dynamics: a plane shock runs along x into a gas at rest whose density varies in a layer. Each
 * time step sweeps along all three axes, one dimension at a time; before a sweep neighbours exchange four layers of all
 * five variables. The steps along a line are in ppm_line.c. The program has the shape of the ASCI benchmark sPPM.
 *
 * Ahead of the shock the gas stays as it is, bit for bit; behind it the variables are nearly uniform. */
#include "apps/kernels/grid.h"
#include "apps/kernels/ppm_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PPM_TUBE = 128, /* cells of the shock tube */
    PPM_TUBE_STEPS_MAX = 1000,
};

static const double courant = 0.6;
static const double shock_mach = 3;
static const double shock_place = 0.12;
static const double layer_place[2] = {0.2, 0.3};
static const double quiet_place = 0.9; /* the shock does not come so far */
static const double tube_time = 0.2;
static const double tube_tolerance = 0.0032;   /* of density, on average */
static const double balance_tolerance = 1e-11; /* relative */
static const double pi = 3.14159265358979323846;

struct ppm_class {
    int length; /* cells of the cube's edge, which is 1 long */
    int steps;
};

static const struct ppm_class classes[KERNEL_CLASSES] = {{48, 40}, {96, 50}, {160, 80}};

/* Gas in a box that is open at both ends of an axis and periodic along the others. */
struct ppm_gas {
    struct kernel *kernel;
    struct grid grid;
    struct grid_halo halo;
    int open_axis;
    double cell_length;
    double *state;                 /* conserved: [variable][cell] */
    double outflow[PPM_VARIABLES]; /* of this rank's faces, in cells' contents */
};

/* ---- steps ---- */

/* The conserved variable that belongs to a primitive one of a sweep. */
static inline int conserved(int axis, int v)
{
    return v == PPM_DENSITY || v == PPM_ENERGY ? v : 1 + (axis + v - 1) % GRID_AXES;
}

/* The line's cells, from the block and both halos, as primitive variables. */
static void line_read(struct ppm_line *line, const struct ppm_gas *gas, int axis, size_t face_cell)
{
    const struct grid *grid = &gas->grid;
    size_t face = grid_face(grid, axis);
    int count = grid->count[axis];
    for (int v = 0; v < PPM_VARIABLES; v++) {
        size_t variable = (size_t)conserved(axis, v);
        double *out = line->primitive[v];
        const double *low = gas->halo.received[axis][GRID_LOW] + variable * PPM_DEPTH * face + face_cell;
        const double *high = gas->halo.received[axis][GRID_HIGH] + variable * PPM_DEPTH * face + face_cell;
        const double *cells = gas->state + variable * grid->cells + grid_line(grid, axis, face_cell);
        for (int i = 0; i < PPM_DEPTH; i++) {
            out[i] = low[(size_t)i * face];
            out[PPM_DEPTH + count + i] = high[(size_t)i * face];
        }
        for (int i = 0; i < count; i++)
            out[PPM_DEPTH + i] = cells[(size_t)i * grid->step[axis]];
    }
    line->cells = count + 2 * PPM_DEPTH;
    for (int i = 0; i < line->cells; i++) {
        double density = line->primitive[PPM_DENSITY][i];
        double squares = 0;
        for (int v = PPM_ALONG; v <= PPM_ACROSS_TOO; v++) {
            line->primitive[v][i] /= density;
            squares += line->primitive[v][i] * line->primitive[v][i];
        }
        line->primitive[PPM_PRESSURE][i] =
            (PPM_GAMMA - 1) * (line->primitive[PPM_PRESSURE][i] - 0.5 * density * squares);
    }
}

static void line_update(struct ppm_gas *gas, const struct ppm_line *line, int axis, size_t face_cell)
{
    const struct grid *grid = &gas->grid;
    int count = grid->count[axis];
    for (int v = 0; v < PPM_VARIABLES; v++) {
        int variable = conserved(axis, v);
        double *cell = gas->state + (size_t)variable * grid->cells + grid_line(grid, axis, face_cell);
        for (int i = 0; i < count; i++, cell += grid->step[axis])
            *cell -= line->ratio * (line->flux[PPM_DEPTH + i + 1].value[v] - line->flux[PPM_DEPTH + i].value[v]);
        if (grid->neighbour[axis][GRID_LOW] == MPI_PROC_NULL)
            gas->outflow[variable] -= line->ratio * line->flux[PPM_DEPTH].value[v];
        if (grid->neighbour[axis][GRID_HIGH] == MPI_PROC_NULL)
            gas->outflow[variable] += line->ratio * line->flux[PPM_DEPTH + count].value[v];
    }
}

/* At an open end the outermost cells are continued. */
static void border_fill(struct ppm_gas *gas, int axis)
{
    const struct grid *grid = &gas->grid;
    size_t face = grid_face(grid, axis);
    for (int end = 0; end < GRID_ENDS; end++) {
        if (grid->neighbour[axis][end] != MPI_PROC_NULL)
            continue;
        size_t outermost = end == GRID_LOW ? 0 : (size_t)(grid->count[axis] - 1) * grid->step[axis];
        for (size_t i = 0; i < PPM_VARIABLES * PPM_DEPTH * face; i++) {
            size_t variable = i / (PPM_DEPTH * face);
            gas->halo.received[axis][end][i] =
                gas->state[variable * grid->cells + outermost + grid_line(grid, axis, i % face)];
        }
    }
}

static void sweep(struct ppm_gas *gas, int axis, double time_step)
{
    static struct ppm_line line;
    line.ratio = time_step / gas->cell_length;
    grid_exchange(gas->kernel, &gas->grid, &gas->halo, axis, gas->state);
    border_fill(gas, axis);
    size_t face = grid_face(&gas->grid, axis);
    for (size_t i = 0; i < face; i++) {
        line_read(&line, gas, axis, i);
        ppm_line_flux(&line);
        line_update(gas, &line, axis, i);
    }
}

/* The longest time step in which no wave crosses more than a part of a cell. */
static double time_step_choose(struct ppm_gas *gas)
{
    double fastest = 0;
    size_t cells = gas->grid.cells;
    for (size_t cell = 0; cell < cells; cell++) {
        double density = gas->state[cell];
        double squares = 0;
        double speed = 0;
        for (size_t axis = 0; axis < GRID_AXES; axis++) {
            double velocity = gas->state[(1 + axis) * cells + cell] / density;
            squares += velocity * velocity;
            speed = fabs(velocity) > speed ? fabs(velocity) : speed;
        }
        double internal = gas->state[PPM_ENERGY * cells + cell] / density - 0.5 * squares;
        speed += sqrt(PPM_GAMMA * (PPM_GAMMA - 1) * internal);
        fastest = speed > fastest ? speed : fastest;
    }
    kernel_communication_begin(gas->kernel);
    MPI_Allreduce(MPI_IN_PLACE, &fastest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    kernel_communication_end(gas->kernel);
    return courant * gas->cell_length / fastest;
}

/* All axes, every other time in reverse. */
static void step(struct ppm_gas *gas, bool reverse, double time_step)
{
    for (int i = 0; i < GRID_AXES; i++)
        sweep(gas, reverse ? GRID_AXES - 1 - i : i, time_step);
}

/* ---- gas ---- */

static bool gas_init(struct ppm_gas *gas, struct kernel *kernel, const int length[GRID_AXES], int open_axis,
                     int *exit_code)
{
    *gas = (struct ppm_gas){.kernel = kernel, .open_axis = open_axis, .cell_length = 1.0 / length[open_axis]};
    struct grid_division division = {.length = {length[0], length[1], length[2]},
                                     .is_divided = {true, true, true},
                                     .is_periodic = {open_axis != 0, open_axis != 1, open_axis != 2},
                                     .least = PPM_DEPTH};
    if (!grid_start(&gas->grid, kernel, &division, exit_code))
        return false;
    grid_halo_init(&gas->halo, &gas->grid, PPM_VARIABLES, PPM_DEPTH);
    gas->state = kernel_allocate(gas->grid.cells, PPM_VARIABLES * sizeof(double));
    return true;
}

static void gas_dispose(struct ppm_gas *gas)
{
    grid_halo_dispose(&gas->halo);
    free(gas->state);
}

/* Sets a cell; `s` has the velocity along the open axis. */
static void cell_set(struct ppm_gas *gas, size_t cell, const struct ppm_state *s)
{
    gas->state[cell] = s->value[PPM_DENSITY];
    gas->state[(size_t)(1 + gas->open_axis) * gas->grid.cells + cell] = s->value[PPM_DENSITY] * s->value[PPM_ALONG];
    gas->state[PPM_ENERGY * gas->grid.cells + cell] = ppm_energy(s);
}

static double middle(const struct ppm_gas *gas, int place)
{
    return (place + 0.5) * gas->cell_length;
}

/* ---- the problem ---- */

/* The gas before anything happens: behind the shock, in the layer, at rest. */
static struct ppm_state initial(const struct ppm_gas *gas, const int place[GRID_AXES])
{
    double x = middle(gas, place[0]);
    double mach2 = shock_mach * shock_mach;
    struct ppm_state s = {{1, 0, 0, 0, 1}};
    if (x < shock_place) { /* Rankine and Hugoniot */
        s.value[PPM_DENSITY] = (PPM_GAMMA + 1) * mach2 / ((PPM_GAMMA - 1) * mach2 + 2);
        s.value[PPM_ALONG] = shock_mach * sqrt(PPM_GAMMA) * (1 - 1 / s.value[PPM_DENSITY]);
        s.value[PPM_PRESSURE] = 1 + 2 * PPM_GAMMA / (PPM_GAMMA + 1) * (mach2 - 1);
    } else if (x > layer_place[0] && x < layer_place[1]) {
        double depth = sin(pi * (x - layer_place[0]) / (layer_place[1] - layer_place[0]));
        double ripple = sin(4 * pi * middle(gas, place[1])) * sin(6 * pi * middle(gas, place[2]));
        s.value[PPM_DENSITY] += 0.5 * depth * depth * (1 + ripple);
    }
    return s;
}

static void initial_fill(struct ppm_gas *gas)
{
    for (size_t cell = 0; cell < gas->grid.cells; cell++) {
        int place[GRID_AXES];
        grid_place(place, &gas->grid, cell);
        struct ppm_state s = initial(gas, place);
        cell_set(gas, cell, &s);
    }
}

/* ---- verification ---- */

/* Totals in the box and those that have left it, of all ranks. */
static void totals_compute(const struct ppm_gas *gas, double totals[PPM_VARIABLES])
{
    size_t face = grid_face(&gas->grid, 0);
    size_t count = (size_t)gas->grid.count[0];
    for (size_t v = 0; v < PPM_VARIABLES; v++) {
        totals[v] = gas->outflow[v];
        for (size_t line = 0; line < face; line++) {
            double sum = 0; /* line by line: sums of few numbers round less */
            for (size_t i = 0; i < count; i++)
                sum += gas->state[v * gas->grid.cells + line * count + i];
            totals[v] += sum;
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, totals, PPM_VARIABLES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void balance_verify(struct ppm_gas *gas, const double before[PPM_VARIABLES])
{
    double after[PPM_VARIABLES];
    totals_compute(gas, after);
    for (int v = 0; v < PPM_VARIABLES; v++) {
        /* momenta across the shock are nought: they are measured by that along it */
        double scale = v == PPM_ACROSS || v == PPM_ACROSS_TOO ? before[PPM_ALONG] : before[v];
        double error = fabs(after[v] - before[v]) / scale;
        kernel_require(gas->kernel, gas->kernel->rank > 0 || error <= balance_tolerance,
                       "conserved variable %d is off by %.3g", v, error);
    }
}

/* Ahead of the shock nothing may have changed, and the shock must have moved. */
static void quiet_verify(struct ppm_gas *gas)
{
    size_t cells = gas->grid.cells;
    size_t changed = 0;
    double reached = 0;
    for (size_t cell = 0; cell < cells; cell++) {
        int place[GRID_AXES];
        grid_place(place, &gas->grid, cell);
        double x = middle(gas, place[0]);
        double momentum = gas->state[PPM_ALONG * cells + cell];
        bool is_initial =
            gas->state[cell] == 1 && momentum == 0 && gas->state[PPM_ENERGY * cells + cell] == 1 / (PPM_GAMMA - 1);
        changed += x > quiet_place && !is_initial;
        reached = momentum > 1 && x > reached ? x : reached;
    }
    kernel_require(gas->kernel, changed == 0, "%zu cells ahead of the shock have changed", changed);
    MPI_Allreduce(MPI_IN_PLACE, &reached, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    kernel_require(gas->kernel, gas->kernel->rank > 0 || reached > layer_place[0], "the shock is at %.3g", reached);
}

/* Sod's shock tube: gas at rest on both sides of x = 0.5. */
static const struct ppm_state tube_left = {{1, 0, 0, 0, 1}};
static const struct ppm_state tube_right = {{0.125, 0, 0, 0, 0.1}};

/* By how much the gas at rest changes its velocity until its pressure is p. */
static double velocity_change(const struct ppm_state *rest, double p)
{
    double density = rest->value[PPM_DENSITY];
    double pressure = rest->value[PPM_PRESSURE];
    if (p > pressure) /* by a shock */
        return (p - pressure) * sqrt(2 / density / ((PPM_GAMMA + 1) * p + (PPM_GAMMA - 1) * pressure));
    double sound = sqrt(PPM_GAMMA * pressure / density); /* by a rarefaction */
    return 2 * sound / (PPM_GAMMA - 1) * (pow(p / pressure, (PPM_GAMMA - 1) / (2 * PPM_GAMMA)) - 1);
}

/* The pressure between both waves. */
static double tube_pressure(void)
{
    double low = tube_right.value[PPM_PRESSURE];
    double high = tube_left.value[PPM_PRESSURE];
    for (int i = 0; i < 60; i++) {
        double p = 0.5 * (low + high);
        if (velocity_change(&tube_left, p) + velocity_change(&tube_right, p) < 0)
            low = p;
        else
            high = p;
    }
    return low;
}

/* The exact density where x - 0.5 is `speed` times the time. */
static double tube_density(double p, double speed)
{
    double contact = velocity_change(&tube_right, p);
    double left_sound = sqrt(PPM_GAMMA * tube_left.value[PPM_PRESSURE] / tube_left.value[PPM_DENSITY]);
    double right_sound = sqrt(PPM_GAMMA * tube_right.value[PPM_PRESSURE] / tube_right.value[PPM_DENSITY]);
    double g = (PPM_GAMMA - 1) / (PPM_GAMMA + 1);
    if (speed > contact) {
        double jump = p / tube_right.value[PPM_PRESSURE];
        double shock = right_sound * sqrt(((PPM_GAMMA + 1) * jump + PPM_GAMMA - 1) / (2 * PPM_GAMMA));
        return tube_right.value[PPM_DENSITY] * (speed < shock ? (jump + g) / (g * jump + 1) : 1);
    }
    double fan = 1 - g - g * speed / left_sound; /* of the speed of sound on the left */
    double fan_end = pow(p / tube_left.value[PPM_PRESSURE], (PPM_GAMMA - 1) / (2 * PPM_GAMMA));
    double sound = fan > 1 ? 1 : fan < fan_end ? fan_end : fan;
    return tube_left.value[PPM_DENSITY] * pow(sound, 2 / (PPM_GAMMA - 1));
}

/* The average error of the gas's density at a time. */
static double tube_error(const struct ppm_gas *gas, double time)
{
    double pressure = tube_pressure();
    double sum = 0;
    for (size_t cell = 0; cell < gas->grid.cells; cell++) {
        int place[GRID_AXES];
        grid_place(place, &gas->grid, cell);
        double x = middle(gas, place[gas->open_axis]);
        sum += fabs(gas->state[cell] - tube_density(pressure, (x - 0.5) / time));
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum / gas->grid.length[0] / gas->grid.length[1] / gas->grid.length[2];
}

/* A shock tube along an axis. */
static bool tube_verify(struct kernel *kernel, int axis, int *exit_code)
{
    struct ppm_gas gas;
    int length[GRID_AXES];
    grid_ranks(length, kernel, (const bool[GRID_AXES]){true, true, true});
    for (int i = 0; i < GRID_AXES; i++)
        length[i] *= PPM_DEPTH;
    length[axis] = length[axis] > PPM_TUBE ? length[axis] : PPM_TUBE;
    if (!gas_init(&gas, kernel, length, axis, exit_code))
        return false;
    for (size_t cell = 0; cell < gas.grid.cells; cell++) {
        int place[GRID_AXES];
        grid_place(place, &gas.grid, cell);
        cell_set(&gas, cell, middle(&gas, place[axis]) < 0.5 ? &tube_left : &tube_right);
    }
    double time = 0;
    for (int i = 0; time < tube_time && i < PPM_TUBE_STEPS_MAX; i++) {
        double time_step = time_step_choose(&gas);
        step(&gas, i % 2 == 1, time_step);
        time += time_step;
    }
    double error = tube_error(&gas, time);
    kernel_require(kernel, kernel->rank > 0 || error <= tube_tolerance, "the shock tube along axis %d is off by %.3g",
                   axis, error);
    gas_dispose(&gas);
    return true;
}

/* ---- the program ---- */

static const struct kernel_about about = {
    .name = "ppm",
    .purpose = "Piecewise parabolic gas dynamics: a shock runs into gas at rest; faces of four layers, five variables.",
    .classes = {"48 x 48 x 48, 40 steps", "96 x 96 x 96, 50 steps", "160 x 160 x 160, 80 steps"},
    .work = "Mcells",
};

int main(int argc, char **argv)
{
    struct kernel kernel;
    struct ppm_gas gas;
    int exit_code;
    if (!kernel_start(&kernel, &about, argc, argv, &exit_code))
        return exit_code;
    const struct ppm_class *class = &classes[kernel.class_index];
    if (!gas_init(&gas, &kernel, (const int[GRID_AXES]){class->length, class->length, class->length}, 0, &exit_code))
        return exit_code;
    initial_fill(&gas);
    double before[PPM_VARIABLES];
    totals_compute(&gas, before);
    kernel_timer_start(&kernel);
    for (int i = 0; i < class->steps; i++)
        step(&gas, i % 2 == 1, time_step_choose(&gas));
    kernel_timer_stop(&kernel);

    balance_verify(&gas, before);
    quiet_verify(&gas);
    gas_dispose(&gas);
    for (int axis = 0; axis < GRID_AXES; axis++) {
        if (!tube_verify(&kernel, axis, &exit_code))
            return exit_code;
    }
    return kernel_finish(&kernel, pow(class->length, GRID_AXES) * class->steps);
}
