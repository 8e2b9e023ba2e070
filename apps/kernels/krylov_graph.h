/* A sparse matrix by definition: an unstructured graph, and the known solution of a system with it. The graph is a mesh
 * in three dimensions of regions of different materials. Some numbers of its nodes are swapped with others nearby, and
 * long edges join runs of nodes anywhere, both drawn by kernel_random. Rows and columns are the nodes' numbers.
 *
 * Row i of the matrix: - weight (1 +- convection) for each edge of the mesh, + for neighbours at lower places; - weight
 * for each long edge; the diagonal makes the row's sum `absorption`.
 *
 * Invariant
 *  - A row depends on its number and the graph's length only, not on which rank has it. */
#pragma once

#include "apps/kernels/kernel.h"

enum { KRYLOV_ROW_MAX = 64 };

struct krylov_graph {
    int length; /* nodes of the mesh's edge */
    int nodes;
    int first; /* rows that can be made: those of this rank */
    int count;
    int *number;        /* of a node */
    int *node;          /* of a number */
    int *partner_begin; /* long edges of the rows: count + 1 entries */
    int *partner;
    double *partner_weight;
};

struct krylov_row {
    int count;
    int column[KRYLOV_ROW_MAX]; /* numbers; the first is the row's own */
    double value[KRYLOV_ROW_MAX];
};

void krylov_graph_init(struct krylov_graph *graph, int length, int first, int count);
void krylov_graph_dispose(struct krylov_graph *graph);

/* A row from first to first + count - 1. */
void krylov_row_make(struct krylov_row *row, const struct krylov_graph *graph, int number);

/* The known solution's element. */
double krylov_exact(const struct krylov_graph *graph, int number);
