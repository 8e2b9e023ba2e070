/* 3-D Fourier transform: solves a diffusion equation by transforming the initial state, damping each coefficient, and
 * transforming back for each time. A rank has some planes of the third dimension (slabs) and, for transforming along
 * it, some planes of the second one (sheets): between the two everything moves (all-to-all).
 *
 *    slabs:  [z of this rank][y][x]        sheets: [y of this rank][x][z] */
#include "apps/kernels/kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FT_ITERATIONS = 6,
    FT_LENGTH_MAX = 256,
    FT_BATCH = 8, /* lines transformed together: their elements lie side by side, as vector registers want them */
    FT_CHECKSUM_POINTS = 1024,
    FT_SAMPLES = 5,
};

static const double diffusion = 1e-6;
static const double tolerance = 1e-12; /* relative */
static const double pi = 3.14159265358979323846;

struct ft_complex {
    double re;
    double im;
};

struct ft_class {
    int length[3]; /* x, y, z */
    struct ft_complex checksums[FT_ITERATIONS];
};

static const struct ft_class classes[KERNEL_CLASSES] = {
    {{64, 64, 64},
     {{5.546087004964e+02, 4.845363331978e+02},
      {5.546385409189e+02, 4.865304269511e+02},
      {5.546148406171e+02, 4.883910722336e+02},
      {5.545423607415e+02, 4.901273169046e+02},
      {5.544255039624e+02, 4.917475857993e+02},
      {5.542683411902e+02, 4.932597244941e+02}}},
    {{128, 128, 32},
     {{5.673612178944e+02, 5.293246849175e+02},
      {5.631436885271e+02, 5.282149986629e+02},
      {5.594024089970e+02, 5.270996558037e+02},
      {5.560698047020e+02, 5.260027904925e+02},
      {5.530898991250e+02, 5.249400845633e+02},
      {5.504159734538e+02, 5.239212247086e+02}}},
    {{256, 256, 128},
     {{5.046735008193e+02, 5.114047905510e+02},
      {5.059412319734e+02, 5.098809666433e+02},
      {5.069376896287e+02, 5.098144042213e+02},
      {5.077892868474e+02, 5.101336130759e+02},
      {5.085233095391e+02, 5.104914655194e+02},
      {5.091487099959e+02, 5.107917842803e+02}}},
};

/* Lines that are transformed together: line i begins at data + i * between, its elements are `stride` apart. */
struct ft_lines {
    struct ft_complex *data;
    int length;
    size_t stride;
    size_t between;
    int count;
};

struct ft_exchange {
    int send_counts[KERNEL_RANKS_MAX]; /* doubles */
    int send_offsets[KERNEL_RANKS_MAX];
    int receive_counts[KERNEL_RANKS_MAX];
    int receive_offsets[KERNEL_RANKS_MAX];
};

struct ft_solver {
    struct kernel kernel;
    const struct ft_class *class;
    int nx;
    int ny;
    int nz;
    int y_begin[KERNEL_RANKS_MAX + 1];
    int z_begin[KERNEL_RANKS_MAX + 1];
    int y_first; /* this rank's planes */
    int y_count;
    int z_first;
    int z_count;
    struct ft_exchange to_sheets; /* back to slabs: sent and received swapped */
    bool even;                    /* every rank has as many planes as the others */

    struct ft_complex *coefficients;            /* of the initial state, as sheets */
    struct ft_complex *state;                   /* the transforms work on it */
    struct ft_complex *other;                   /* ... and move through it */
    struct ft_complex roots[FT_LENGTH_MAX / 2]; /* exp(-2 pi i k / FT_LENGTH_MAX) */
    struct ft_complex lines[2][FT_LENGTH_MAX * FT_BATCH];
};

static struct ft_complex add(struct ft_complex a, struct ft_complex b)
{
    return (struct ft_complex){a.re + b.re, a.im + b.im};
}

static struct ft_complex subtract(struct ft_complex a, struct ft_complex b)
{
    return (struct ft_complex){a.re - b.re, a.im - b.im};
}

static struct ft_complex multiply(struct ft_complex a, struct ft_complex b)
{
    return (struct ft_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static struct ft_complex scale(struct ft_complex a, double factor)
{
    return (struct ft_complex){a.re * factor, a.im * factor};
}

static double magnitude(struct ft_complex a)
{
    return hypot(a.re, a.im);
}

/* exp(-2 pi i turns) */
static struct ft_complex root(double turns)
{
    return (struct ft_complex){cos(2 * pi * turns), -sin(2 * pi * turns)};
}

/* ---- transforms of lines ---- */

/* One pass of Stockham's transform: of each group the `run` elements of the lower half meet those of the upper one, and
 * share a root. */
static void pass(const struct ft_solver *solver, const struct ft_complex *restrict in, struct ft_complex *restrict out,
                 int groups, int run, bool inverse)
{
    int half = groups * run;
    for (int group = 0; group < groups; group++) {
        struct ft_complex turn = solver->roots[group * (FT_LENGTH_MAX / 2 / groups)];
        if (inverse)
            turn.im = -turn.im;
        const struct ft_complex *low = in + group * run;
        struct ft_complex *to = out + 2 * group * run;
        for (int i = 0; i < run; i++) {
            to[i] = add(low[i], low[i + half]);
            to[i + run] = multiply(turn, subtract(low[i], low[i + half]));
        }
    }
}

/* Transforms FT_BATCH lines side by side in lines[0]; returns which of lines[] has the result. */
static int transform_batch(struct ft_solver *solver, int length, bool inverse)
{
    int from = 0;
    for (int groups = length / 2, run = FT_BATCH; groups >= 1; groups /= 2, run *= 2, from = !from)
        pass(solver, solver->lines[from], solver->lines[!from], groups, run, inverse);
    return from;
}

static void transform_lines(struct ft_solver *solver, const struct ft_lines *lines, bool inverse)
{
    double factor = inverse ? 1.0 / lines->length : 1.0;
    for (int first = 0; first < lines->count; first += FT_BATCH) {
        int width = lines->count - first < FT_BATCH ? lines->count - first : FT_BATCH;
        struct ft_complex *data = lines->data + (size_t)first * lines->between;
        for (int i = 0; i < lines->length; i++) {
            for (int line = 0; line < width; line++)
                solver->lines[0][i * FT_BATCH + line] = data[(size_t)i * lines->stride + (size_t)line * lines->between];
        }
        const struct ft_complex *result = solver->lines[transform_batch(solver, lines->length, inverse)];
        for (int i = 0; i < lines->length; i++) {
            for (int line = 0; line < width; line++)
                data[(size_t)i * lines->stride + (size_t)line * lines->between] =
                    scale(result[i * FT_BATCH + line], factor);
        }
    }
}

/* Slabs along x and y. */
static void transform_slabs(struct ft_solver *solver, bool inverse)
{
    size_t nx = (size_t)solver->nx;
    size_t plane = nx * (size_t)solver->ny;
    for (int z = 0; z < solver->z_count; z++) {
        struct ft_complex *data = solver->state + (size_t)z * plane;
        transform_lines(solver, &(struct ft_lines){data, solver->nx, 1, nx, solver->ny}, inverse);
        transform_lines(solver, &(struct ft_lines){data, solver->ny, nx, 1, solver->nx}, inverse);
    }
}

/* Sheets along z. */
static void transform_sheets(struct ft_solver *solver, bool inverse)
{
    struct ft_lines lines = {solver->state, solver->nz, 1, (size_t)solver->nz, solver->y_count * solver->nx};
    transform_lines(solver, &lines, inverse);
}

/* ---- the transpose ---- */

static struct ft_complex *slabs_at(const struct ft_solver *solver, int y, int x, int z)
{
    return solver->state + ((size_t)z * (size_t)solver->ny + (size_t)y) * (size_t)solver->nx + (size_t)x;
}

/* As [y][x][z of this rank], so that the parts of the ranks lie one after the other. */
static void slabs_pack(struct ft_solver *solver)
{
    struct ft_complex *to = solver->other;
    for (int y = 0; y < solver->ny; y++) {
        for (int x = 0; x < solver->nx; x++) {
            for (int z = 0; z < solver->z_count; z++)
                *to++ = *slabs_at(solver, y, x, z);
        }
    }
}

static void slabs_unpack(struct ft_solver *solver)
{
    const struct ft_complex *from = solver->other;
    for (int y = 0; y < solver->ny; y++) {
        for (int x = 0; x < solver->nx; x++) {
            for (int z = 0; z < solver->z_count; z++)
                *slabs_at(solver, y, x, z) = *from++;
        }
    }
}

/* Where the run of z that `peer` has begins in a line (y, x) of the sheets, and where in the part exchanged with it. */
static struct ft_complex *sheet_run(const struct ft_solver *solver, int peer, int line)
{
    return solver->state + (size_t)line * (size_t)solver->nz + (size_t)solver->z_begin[peer];
}

static struct ft_complex *part_run(const struct ft_solver *solver, int peer, int line)
{
    int z_count = solver->z_begin[peer + 1] - solver->z_begin[peer];
    return solver->other + solver->to_sheets.receive_offsets[peer] / 2 + (size_t)line * (size_t)z_count;
}

static void sheets_pack(struct ft_solver *solver)
{
    for (int peer = 0; peer < solver->kernel.ranks; peer++) {
        size_t run = (size_t)(solver->z_begin[peer + 1] - solver->z_begin[peer]) * sizeof(struct ft_complex);
        for (int line = 0; line < solver->y_count * solver->nx; line++)
            memcpy(part_run(solver, peer, line), sheet_run(solver, peer, line), run);
    }
}

static void sheets_unpack(struct ft_solver *solver)
{
    for (int peer = 0; peer < solver->kernel.ranks; peer++) {
        size_t run = (size_t)(solver->z_begin[peer + 1] - solver->z_begin[peer]) * sizeof(struct ft_complex);
        for (int line = 0; line < solver->y_count * solver->nx; line++)
            memcpy(sheet_run(solver, peer, line), part_run(solver, peer, line), run);
    }
}

/* From `other` into `state`; then they change places, so that the received data is in `other` again. */
static void exchange(struct ft_solver *solver, const struct ft_exchange *parts)
{
    kernel_communication_begin(&solver->kernel);
    if (solver->even)
        MPI_Alltoall(solver->other, parts->send_counts[0], MPI_DOUBLE, solver->state, parts->receive_counts[0],
                     MPI_DOUBLE, MPI_COMM_WORLD);
    else
        MPI_Alltoallv(solver->other, parts->send_counts, parts->send_offsets, MPI_DOUBLE, solver->state,
                      parts->receive_counts, parts->receive_offsets, MPI_DOUBLE, MPI_COMM_WORLD);
    kernel_communication_end(&solver->kernel);
    struct ft_complex *came = solver->state;
    solver->state = solver->other;
    solver->other = came;
}

static void slabs_to_sheets(struct ft_solver *solver)
{
    slabs_pack(solver);
    exchange(solver, &solver->to_sheets);
    sheets_unpack(solver);
}

static void sheets_to_slabs(struct ft_solver *solver)
{
    struct ft_exchange back;
    memcpy(back.send_counts, solver->to_sheets.receive_counts, sizeof(back.send_counts));
    memcpy(back.send_offsets, solver->to_sheets.receive_offsets, sizeof(back.send_offsets));
    memcpy(back.receive_counts, solver->to_sheets.send_counts, sizeof(back.receive_counts));
    memcpy(back.receive_offsets, solver->to_sheets.send_offsets, sizeof(back.receive_offsets));
    sheets_pack(solver);
    exchange(solver, &back);
    slabs_unpack(solver);
}

/* ---- the equation ---- */

static size_t slabs_size(const struct ft_solver *solver)
{
    return (size_t)solver->z_count * (size_t)solver->ny * (size_t)solver->nx;
}

static size_t sheets_size(const struct ft_solver *solver)
{
    return (size_t)solver->y_count * (size_t)solver->nx * (size_t)solver->nz;
}

/* A generator at the first element of this rank's slabs: the initial state is random numbers in order. */
static uint64_t initial_generator(const struct ft_solver *solver)
{
    size_t before = (size_t)solver->z_first * (size_t)solver->ny * (size_t)solver->nx;
    return kernel_random_skip(KERNEL_RANDOM_SEED, 2 * before);
}

static struct ft_complex initial_next(uint64_t *generator)
{
    struct ft_complex value;
    value.re = kernel_random(generator);
    value.im = kernel_random(generator);
    return value;
}

static void coefficients_compute(struct ft_solver *solver)
{
    uint64_t generator = initial_generator(solver);
    size_t size = slabs_size(solver);
    for (size_t i = 0; i < size; i++)
        solver->state[i] = initial_next(&generator);
    transform_slabs(solver, false);
    slabs_to_sheets(solver);
    transform_sheets(solver, false);
    memcpy(solver->coefficients, solver->state, sheets_size(solver) * sizeof(*solver->state));
}

/* exp(-4 alpha pi^2 k^2 time) for each index of a dimension: the upper half of the indices are negative frequencies. */
static void damping_fill(double *damping, int length, int time)
{
    for (int i = 0; i < length; i++) {
        int frequency = i < length / 2 ? i : i - length;
        damping[i] = exp(-4 * diffusion * pi * pi * frequency * frequency * time);
    }
}

/* The state at a time, as slabs. */
static void evolve(struct ft_solver *solver, int time)
{
    double x_damping[FT_LENGTH_MAX];
    double y_damping[FT_LENGTH_MAX];
    double z_damping[FT_LENGTH_MAX];
    damping_fill(x_damping, solver->nx, time);
    damping_fill(y_damping, solver->ny, time);
    damping_fill(z_damping, solver->nz, time);
    size_t i = 0;
    for (int y = 0; y < solver->y_count; y++) {
        for (int x = 0; x < solver->nx; x++) {
            double factor = y_damping[solver->y_first + y] * x_damping[x];
            for (int z = 0; z < solver->nz; z++, i++)
                solver->state[i] = scale(solver->coefficients[i], factor * z_damping[z]);
        }
    }
    transform_sheets(solver, true);
    sheets_to_slabs(solver);
    transform_slabs(solver, true);
}

static struct ft_complex checksum(struct ft_solver *solver)
{
    struct ft_complex mine = {0};
    struct ft_complex all = {0};
    for (int i = 1; i <= FT_CHECKSUM_POINTS; i++) {
        int z = 5 * i % solver->nz - solver->z_first;
        if (z >= 0 && z < solver->z_count)
            mine = add(mine, *slabs_at(solver, 3 * i % solver->ny, i % solver->nx, z));
    }
    kernel_communication_begin(&solver->kernel);
    MPI_Allreduce(&mine, &all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    kernel_communication_end(&solver->kernel);
    return all;
}

/* ---- verification ---- */

static void checksums_verify(struct ft_solver *solver, const struct ft_complex *checksums)
{
    if (solver->kernel.rank > 0) /* all have the same numbers */
        return;
    for (int i = 0; i < FT_ITERATIONS; i++) {
        struct ft_complex published = solver->class->checksums[i];
        double error = magnitude(subtract(checksums[i], published)) / magnitude(published);
        kernel_require(&solver->kernel, error <= tolerance, "time %d: the checksum is off by %.3g", i + 1, error);
    }
}

/* At time 0 nothing is damped: the way back must end where the way there began. Errors are relative to the elements'
 * root mean square and not to each element: all take part in each, and some are 10,000 times smaller than others. */
static void inverse_verify(struct ft_solver *solver)
{
    evolve(solver, 0);
    uint64_t generator = initial_generator(solver);
    double error_most = 0;
    double squares = 0;
    size_t wrong = 0;
    size_t size = slabs_size(solver);
    for (size_t i = 0; i < size; i++) {
        struct ft_complex initial = initial_next(&generator);
        double error = magnitude(subtract(solver->state[i], initial));
        squares += initial.re * initial.re + initial.im * initial.im;
        error_most = fmax(error_most, error);
        wrong += isnan(error) != 0; /* which fmax passes over */
    }
    double allowed = size ? tolerance * sqrt(squares / (double)size) : 0;
    kernel_require(&solver->kernel, error_most <= allowed && wrong == 0, "the inverse is off by up to %.3g",
                   error_most);
}

/* This rank's part of coefficient (kx, ky, kz), by definition. */
static struct ft_complex coefficient_sum(const struct ft_solver *solver, const int k[static 3])
{
    uint64_t generator = initial_generator(solver);
    struct ft_complex sum = {0};
    for (int z = solver->z_first; z < solver->z_first + solver->z_count; z++) {
        for (int y = 0; y < solver->ny; y++) {
            double turns = (double)(k[1] * y) / solver->ny + (double)(k[2] * z) / solver->nz;
            for (int x = 0; x < solver->nx; x++)
                sum = add(sum, multiply(initial_next(&generator), root(turns + (double)(k[0] * x) / solver->nx)));
        }
    }
    return sum;
}

/* Some coefficients against their definition; takes long for the larger classes. */
static void samples_verify(struct ft_solver *solver)
{
    static const int samples[FT_SAMPLES][3] = {{0, 0, 0}, {1, 2, 3}, {63, 0, 31}, {17, 40, 5}, {32, 63, 62}};
    for (int i = 0; i < FT_SAMPLES; i++) {
        const int *k = samples[i];
        struct ft_complex mine = coefficient_sum(solver, k);
        struct ft_complex all = {0};
        MPI_Allreduce(&mine, &all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        int y = k[1] - solver->y_first;
        if (y < 0 || y >= solver->y_count)
            continue;
        size_t line = (size_t)(y * solver->nx + k[0]);
        struct ft_complex found = solver->coefficients[line * (size_t)solver->nz + (size_t)k[2]];
        double error = magnitude(subtract(found, all)) / magnitude(all);
        /* a direct sum of 2^18 terms rounds more often than the transform does */
        kernel_require(&solver->kernel, error <= 100 * tolerance, "coefficient (%d, %d, %d) is off by %.3g", k[0], k[1],
                       k[2], error);
    }
}

/* ---- the program ---- */

static void exchange_init(struct ft_solver *solver)
{
    struct ft_exchange *parts = &solver->to_sheets;
    int ranks = solver->kernel.ranks;
    for (int peer = 0; peer < ranks; peer++) {
        int y_count = solver->y_begin[peer + 1] - solver->y_begin[peer];
        int z_count = solver->z_begin[peer + 1] - solver->z_begin[peer];
        parts->send_counts[peer] = 2 * y_count * solver->nx * solver->z_count;
        parts->receive_counts[peer] = 2 * solver->y_count * solver->nx * z_count;
    }
    kernel_offsets(parts->send_offsets, parts->send_counts, ranks);
    kernel_offsets(parts->receive_offsets, parts->receive_counts, ranks);
    solver->even = solver->ny % ranks == 0 && solver->nz % ranks == 0;
}

static void solver_init(struct ft_solver *solver)
{
    const struct kernel *kernel = &solver->kernel;
    solver->class = &classes[kernel->class_index];
    solver->nx = solver->class->length[0];
    solver->ny = solver->class->length[1];
    solver->nz = solver->class->length[2];
    for (int i = 0; i <= kernel->ranks; i++) {
        solver->y_begin[i] = (int)kernel_share_begin(solver->ny, kernel->ranks, i);
        solver->z_begin[i] = (int)kernel_share_begin(solver->nz, kernel->ranks, i);
    }
    solver->y_first = solver->y_begin[kernel->rank];
    solver->z_first = solver->z_begin[kernel->rank];
    solver->y_count = solver->y_begin[kernel->rank + 1] - solver->y_first;
    solver->z_count = solver->z_begin[kernel->rank + 1] - solver->z_first;
    exchange_init(solver);

    for (int i = 0; i < FT_LENGTH_MAX / 2; i++)
        solver->roots[i] = root((double)i / FT_LENGTH_MAX);
    size_t size = slabs_size(solver) > sheets_size(solver) ? slabs_size(solver) : sheets_size(solver);
    solver->coefficients = kernel_allocate(size, sizeof(struct ft_complex));
    solver->state = kernel_allocate(size, sizeof(struct ft_complex));
    solver->other = kernel_allocate(size, sizeof(struct ft_complex));
}

static void solver_dispose(struct ft_solver *solver)
{
    free(solver->coefficients);
    free(solver->state);
    free(solver->other);
}

/* Floating-point operations: 5 n log2 n for each transform, of which there is one more than there are times. */
static double operations_count(const struct ft_solver *solver)
{
    double points = (double)solver->nx * solver->ny * solver->nz;
    return (FT_ITERATIONS + 1) * 5 * points * log2(points) + FT_ITERATIONS * 2 * points;
}

static const struct kernel_about about = {
    .name = "ft",
    .purpose = "3-D Fourier transform: solves a diffusion equation; all-to-all of everything, once a transform.",
    .classes = {"64 x 64 x 64", "128 x 128 x 32", "256 x 256 x 128"},
    .work = "Mflop",
};

int main(int argc, char **argv)
{
    static struct ft_solver solver;
    int exit_code;
    if (!kernel_start(&solver.kernel, &about, argc, argv, &exit_code))
        return exit_code;
    solver_init(&solver);
    struct ft_complex checksums[FT_ITERATIONS];
    kernel_timer_start(&solver.kernel);
    coefficients_compute(&solver);
    for (int i = 0; i < FT_ITERATIONS; i++) {
        evolve(&solver, i + 1);
        checksums[i] = checksum(&solver);
    }
    kernel_timer_stop(&solver.kernel);

    checksums_verify(&solver, checksums);
    inverse_verify(&solver);
    if (solver.kernel.class_index == 0)
        samples_verify(&solver);
    double operations = operations_count(&solver);
    solver_dispose(&solver);
    return kernel_finish(&solver.kernel, operations);
}
