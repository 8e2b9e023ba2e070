/* A box of cells divided among the ranks: each rank has a block, and neighbours exchange the layers at their faces.
 *
 * Invariants
 *  - Fields are [variable][z][y][x] of the block's own cells. Layers of neighbours arrive in halos next to them.
 *  - A halo is [variable][layer][cell of the face]. Layers ascend along the axis; the cells of a face ascend along the
 *    two other axes, the lower one of them fastest.
 *  - Blocks differ by at most one cell along an axis, and all of them are neighbours face to face.
 *
 * Order of calls
 *    grid_start, grid_halo_init, any number of grid_exchange, grid_halo_dispose. */
#pragma once

#include "apps/kernels/kernel.h"

enum { GRID_AXES = 3 };

enum grid_end { GRID_LOW, GRID_HIGH, GRID_ENDS };

struct grid {
    int length[GRID_AXES]; /* cells of the box */
    int ranks[GRID_AXES];
    int at[GRID_AXES];                   /* this rank's place among them */
    int first[GRID_AXES];                /* the block's first cell in the box */
    int count[GRID_AXES];                /* the block's cells */
    size_t step[GRID_AXES];              /* from a cell to the next one along the axis */
    size_t cells;                        /* of the block */
    int neighbour[GRID_AXES][GRID_ENDS]; /* MPI_PROC_NULL at the border of the box */
};

/* Requirements of a division. */
struct grid_division {
    int length[GRID_AXES];
    bool is_divided[GRID_AXES];  /* among ranks; else each block has the whole length */
    bool is_periodic[GRID_AXES]; /* the last cell's neighbour is the first one */
    int least;                   /* cells that a block must have along a divided axis */
};

/* Ranks along each axis: as even as can be, and as the number of ranks allows. */
void grid_ranks(int ranks[GRID_AXES], const struct kernel *kernel, const bool is_divided[GRID_AXES]);

/* Divides the box. False: there are too many ranks along an axis, one line about it went to stderr, MPI is finalised,
 * and main returns *exit_code. */
bool grid_start(struct grid *grid, const struct kernel *kernel, const struct grid_division *division, int *exit_code);

/* The box as one block without neighbours, for a serial reference. */
void grid_whole(struct grid *grid, const int length[GRID_AXES]);

/* Cells of a layer across the axis. */
size_t grid_face(const struct grid *grid, int axis);

/* The first cell of the block on the line along the axis through a cell of the face. */
size_t grid_line(const struct grid *grid, int axis, size_t face_cell);

/* Coordinates in the box of a cell of the block. */
void grid_place(int place[GRID_AXES], const struct grid *grid, size_t cell);

/* Buffers for layers of all axes. */
struct grid_halo {
    int variables;
    int depth;
    double *received[GRID_AXES][GRID_ENDS];
    double *sent[GRID_ENDS];
};

void grid_halo_init(struct grid_halo *halo, const struct grid *grid, int variables, int depth);
void grid_halo_dispose(struct grid_halo *halo);

/* The layers next to this rank's block along the axis, from both neighbours; the halo at a border stays as it is.
 * Collective among neighbours. */
void grid_exchange(struct kernel *kernel, const struct grid *grid, struct grid_halo *halo, int axis,
                   const double *field);

/* Value of a variable at coordinates in the box, or one cell outside. */
typedef double (*grid_value)(const void *context, int variable, const int place[GRID_AXES]);

/* Halos of one layer where no neighbour sends anything: the values there. */
void grid_border_fill(const struct grid *grid, struct grid_halo *halo, grid_value value, const void *context);

/* Collective: the largest magnitude in a field of all ranks; infinity if anything is not a number. */
double grid_most(const struct grid *grid, int variables, const double *field);
