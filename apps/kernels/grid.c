#include "apps/kernels/grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- division ---- */

void grid_ranks(int ranks[GRID_AXES], const struct kernel *kernel, const bool is_divided[GRID_AXES])
{
    for (int axis = 0; axis < GRID_AXES; axis++)
        ranks[axis] = is_divided[axis] ? 0 : 1; /* 0: to be chosen */
    MPI_Dims_create(kernel->ranks, GRID_AXES, ranks);
}

static int rank_at(const struct grid *grid, const int at[GRID_AXES])
{
    return (at[2] * grid->ranks[1] + at[1]) * grid->ranks[0] + at[0];
}

static void steps_compute(struct grid *grid)
{
    grid->cells = 1;
    for (int axis = 0; axis < GRID_AXES; axis++) {
        grid->step[axis] = grid->cells;
        grid->cells *= (size_t)grid->count[axis];
    }
}

/* The rank one place further along the axis, `by` is 1 or -1. */
static int neighbour_find(const struct grid *grid, int axis, int by, bool is_periodic)
{
    int at[GRID_AXES] = {grid->at[0], grid->at[1], grid->at[2]};
    int ranks = grid->ranks[axis];
    at[axis] += by;
    if (!is_periodic && (at[axis] < 0 || at[axis] >= ranks))
        return MPI_PROC_NULL;
    at[axis] = (at[axis] + ranks) % ranks;
    return rank_at(grid, at);
}

bool grid_start(struct grid *grid, const struct kernel *kernel, const struct grid_division *division, int *exit_code)
{
    grid_ranks(grid->ranks, kernel, division->is_divided);
    int rest = kernel->rank;
    for (int axis = 0; axis < GRID_AXES; axis++) {
        int ranks = grid->ranks[axis];
        if (division->is_divided[axis] && division->length[axis] / ranks < division->least) {
            if (kernel->rank == 0)
                fprintf(stderr, "%s: too many ranks: %d of them along %c, where %d cells are enough for %d\n",
                        kernel->about->name, ranks, "xyz"[axis], division -> length[axis],
                        division -> length[axis] / division -> least);
            kernel_close();
            *exit_code = KERNEL_EXIT_USAGE;
            return false;
        }
        grid->at[axis] = rest % ranks;
        rest /= ranks;
        grid->length[axis] = division->length[axis];
        grid->first[axis] = (int)kernel_share_begin(grid->length[axis], ranks, grid->at[axis]);
        grid->count[axis] = (int)kernel_share_begin(grid->length[axis], ranks, grid->at[axis] + 1) - grid->first[axis];
    }
    for (int axis = 0; axis < GRID_AXES; axis++) {
        grid->neighbour[axis][GRID_LOW] = neighbour_find(grid, axis, -1, division->is_periodic[axis]);
        grid->neighbour[axis][GRID_HIGH] = neighbour_find(grid, axis, 1, division->is_periodic[axis]);
    }
    steps_compute(grid);
    return true;
}

void grid_whole(struct grid *grid, const int length[GRID_AXES])
{
    for (int axis = 0; axis < GRID_AXES; axis++) {
        grid->length[axis] = grid->count[axis] = length[axis];
        grid->ranks[axis] = 1;
        grid->at[axis] = grid->first[axis] = 0;
        grid->neighbour[axis][GRID_LOW] = grid->neighbour[axis][GRID_HIGH] = MPI_PROC_NULL;
    }
    steps_compute(grid);
}

/* ---- places ---- */

size_t grid_face(const struct grid *grid, int axis)
{
    return grid->cells / (size_t)grid->count[axis];
}

size_t grid_line(const struct grid *grid, int axis, size_t face_cell)
{
    int inner = axis == 0 ? 1 : 0;
    int outer = axis == 2 ? 1 : 2;
    size_t count = (size_t)grid->count[inner];
    return face_cell / count * grid->step[outer] + face_cell % count * grid->step[inner];
}

void grid_place(int place[GRID_AXES], const struct grid *grid, size_t cell)
{
    for (int axis = 0; axis < GRID_AXES; axis++) {
        place[axis] = grid->first[axis] + (int)(cell % (size_t)grid->count[axis]);
        cell /= (size_t)grid->count[axis];
    }
}

/* ---- halos ---- */

static size_t halo_count(const struct grid_halo *halo, const struct grid *grid, int axis)
{
    return (size_t)(halo->variables * halo->depth) * grid_face(grid, axis);
}

void grid_halo_init(struct grid_halo *halo, const struct grid *grid, int variables, int depth)
{
    *halo = (struct grid_halo){.variables = variables, .depth = depth};
    size_t most = 0;
    for (int axis = 0; axis < GRID_AXES; axis++) {
        size_t count = halo_count(halo, grid, axis);
        most = count > most ? count : most;
        for (int end = 0; end < GRID_ENDS; end++)
            halo->received[axis][end] = kernel_allocate(count, sizeof(double));
    }
    for (int end = 0; end < GRID_ENDS; end++)
        halo->sent[end] = kernel_allocate(most, sizeof(double));
}

void grid_halo_dispose(struct grid_halo *halo)
{
    for (int end = 0; end < GRID_ENDS; end++) {
        for (int axis = 0; axis < GRID_AXES; axis++)
            free(halo->received[axis][end]);
        free(halo->sent[end]);
    }
}

static void layers_pack(double *packed, const struct grid_halo *halo, const struct grid *grid, int axis,
                        int layer_first, const double *field)
{
    size_t face = grid_face(grid, axis);
    for (int variable = 0; variable < halo->variables; variable++) {
        for (int layer = layer_first; layer < layer_first + halo->depth; layer++) {
            const double *at = field + (size_t)variable * grid->cells + (size_t)layer * grid->step[axis];
            for (size_t cell = 0; cell < face; cell++)
                *packed++ = at[grid_line(grid, axis, cell)];
        }
    }
}

void grid_exchange(struct kernel *kernel, const struct grid *grid, struct grid_halo *halo, int axis,
                   const double *field)
{
    int count = (int)halo_count(halo, grid, axis);
    MPI_Request requests[2 * GRID_ENDS];
    int pending = 0;
    for (int end = 0; end < GRID_ENDS; end++) {
        int neighbour = grid->neighbour[axis][end];
        if (neighbour == MPI_PROC_NULL)
            continue;
        layers_pack(halo->sent[end], halo, grid, axis, end == GRID_LOW ? 0 : grid->count[axis] - halo->depth, field);
        kernel_communication_begin(kernel);
        /* the tag is the end at which a message leaves: both neighbours may be the same rank */
        MPI_Irecv(halo->received[axis][end], count, MPI_DOUBLE, neighbour, 1 - end, MPI_COMM_WORLD,
                  &requests[pending++]);
        MPI_Isend(halo->sent[end], count, MPI_DOUBLE, neighbour, end, MPI_COMM_WORLD, &requests[pending++]);
        kernel_communication_end(kernel);
    }
    kernel_communication_begin(kernel);
    MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
    kernel_communication_end(kernel);
}

/* ---- norms ---- */

double grid_most(const struct grid *grid, int variables, const double *field)
{
    double most = 0;
    for (size_t i = 0; i < (size_t)variables * grid->cells; i++)
        most = kernel_most(most, fabs(field[i]));
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

void grid_border_fill(const struct grid *grid, struct grid_halo *halo, grid_value value, const void *context)
{
    for (int axis = 0; axis < GRID_AXES; axis++) {
        size_t face = grid_face(grid, axis);
        for (int end = 0; end < GRID_ENDS; end++) {
            if (grid->neighbour[axis][end] != MPI_PROC_NULL)
                continue;
            for (size_t i = 0; i < (size_t)halo->variables * face; i++) {
                int place[GRID_AXES];
                grid_place(place, grid, grid_line(grid, axis, i % face));
                place[axis] = end == GRID_LOW ? -1 : grid->length[axis];
                halo->received[axis][end][i] = value(context, (int)(i / face), place);
            }
        }
    }
}
