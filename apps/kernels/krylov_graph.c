#include "apps/kernels/krylov_graph.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum {
    KRYLOV_AXES = 3,
    KRYLOV_WINDOW = 64,        /* nodes among which numbers are swapped ... */
    KRYLOV_SWAPS = 4,          /* ... so often */
    KRYLOV_NODES_PER_EDGE = 6, /* long ones */
    KRYLOV_RUN = 32,           /* long edges between consecutive numbers */
    KRYLOV_REGIONS = 4,        /* along each axis, of one material each */
};

static const double convection = 0.3;
static const double absorption = 0.05;
static const double long_weight = 0.05; /* at most; edges of the mesh have 1 to 2 */
static const double pi = 3.14159265358979323846;

/* ---- the graph ---- */

/* Swaps numbers within each window of nodes; every rank does it, which takes less time than sending them. */
static void numbers_draw(struct krylov_graph *graph)
{
    uint64_t state = KERNEL_RANDOM_SEED;
    for (int i = 0; i < graph->nodes; i++)
        graph->node[i] = i;
    for (int first = 0; first < graph->nodes; first += KRYLOV_WINDOW) {
        int *window = graph->node + first;
        int size = graph->nodes - first < KRYLOV_WINDOW ? graph->nodes - first : KRYLOV_WINDOW;
        for (int i = 0; i < KRYLOV_SWAPS; i++) {
            int *one = window + (int)(size * kernel_random(&state));
            int *other = window + (int)(size * kernel_random(&state));
            int node = *one;
            *one = *other;
            *other = node;
        }
    }
    for (int i = 0; i < graph->nodes; i++)
        graph->number[graph->node[i]] = i;
}

struct krylov_edge {
    int end[2];
    double weight;
};

/* The long edge after another one: a run continues, or the next one begins somewhere else. */
static struct krylov_edge edge_next(const struct krylov_graph *graph, struct krylov_edge edge, int index,
                                    uint64_t *state)
{
    if (index % KRYLOV_RUN > 0)
        return (struct krylov_edge){{edge.end[0] + 1, edge.end[1] + 1}, edge.weight};
    for (int end = 0; end < 2; end++)
        edge.end[end] = (int)((graph->nodes - KRYLOV_RUN) * kernel_random(state));
    edge.weight = long_weight * kernel_random(state);
    return edge;
}

/* Draws all long edges twice: counts those of this rank's rows, and lists them. */
static void partners_list(struct krylov_graph *graph)
{
    int count = graph->count;
    int *begin = kernel_allocate((size_t)count + 2, sizeof(*begin));
    uint64_t seed = kernel_random_skip(KERNEL_RANDOM_SEED, (uint64_t)graph->nodes);
    graph->partner_begin = begin;
    for (int pass = 0; pass < 2; pass++) {
        uint64_t state = seed;
        struct krylov_edge edge = {0};
        for (int i = 0; i < graph->nodes / KRYLOV_NODES_PER_EDGE; i++) {
            edge = edge_next(graph, edge, i, &state);
            for (int end = 0; end < 2; end++) {
                int row = edge.end[end] - graph->first;
                if (row < 0 || row >= count || edge.end[0] == edge.end[1])
                    continue;
                if (pass == 1) {
                    graph->partner[begin[row + 1]] = edge.end[1 - end];
                    graph->partner_weight[begin[row + 1]] = edge.weight;
                }
                /* in the first pass the count of row i is at i + 2, in the second the next place of row i at i + 1 */
                begin[row + (pass == 0 ? 2 : 1)]++;
            }
        }
        if (pass == 0) {
            for (int row = 0; row < count; row++)
                begin[row + 2] += begin[row + 1];
            graph->partner = kernel_allocate((size_t)begin[count + 1], sizeof(int));
            graph->partner_weight = kernel_allocate((size_t)begin[count + 1], sizeof(double));
        }
    }
}

/* ---- rows ---- */

static void row_add(struct krylov_row *row, int column, double value)
{
    assert(row->count < KRYLOV_ROW_MAX);
    row->column[row->count] = column;
    row->value[row->count++] = value;
    row->value[0] -= value;
}

/* Of the edge from a node upwards along the axis: the weight of its region's material. */
static double mesh_weight(const struct krylov_graph *graph, int node, int axis)
{
    int region = 0;
    for (int i = 0; i < KRYLOV_AXES; i++, node /= graph->length)
        region = region * KRYLOV_REGIONS + node % graph->length * KRYLOV_REGIONS / graph->length;
    return 1 + 0.125 * ((region * 5 + axis * 3) % 8);
}

void krylov_row_make(struct krylov_row *row, const struct krylov_graph *graph, int number)
{
    int node = graph->node[number];
    *row = (struct krylov_row){.count = 1};
    row->column[0] = number;
    row->value[0] = absorption;
    int step = 1;
    for (int axis = 0; axis < KRYLOV_AXES; axis++, step *= graph->length) {
        int place = node / step % graph->length;
        if (place > 0)
            row_add(row, graph->number[node - step], -(1 + convection) * mesh_weight(graph, node - step, axis));
        if (place < graph->length - 1)
            row_add(row, graph->number[node + step], -(1 - convection) * mesh_weight(graph, node, axis));
    }
    int local = number - graph->first;
    for (int i = graph->partner_begin[local]; i < graph->partner_begin[local + 1]; i++)
        row_add(row, graph->partner[i], -graph->partner_weight[i]);
}

double krylov_exact(const struct krylov_graph *graph, int number)
{
    int node = graph->node[number];
    double length = graph->length;
    double x = (node % graph->length + 0.5) / length;
    double y = (node / graph->length % graph->length + 0.5) / length;
    double z = (double)(node / graph->length / graph->length) / length;
    return 1 + x * y + sin(2 * pi * x) * cos(pi * y) * (1 + z) + z * z;
}

/* ---- memory ---- */

void krylov_graph_init(struct krylov_graph *graph, int length, int first, int count)
{
    *graph = (struct krylov_graph){.length = length, .nodes = length * length * length, .first = first, .count = count};
    graph->number = kernel_allocate((size_t)graph->nodes, sizeof(*graph->number));
    graph->node = kernel_allocate((size_t)graph->nodes, sizeof(*graph->node));
    numbers_draw(graph);
    partners_list(graph);
}

void krylov_graph_dispose(struct krylov_graph *graph)
{
    free(graph->number);
    free(graph->node);
    free(graph->partner_begin);
    free(graph->partner);
    free(graph->partner_weight);
}
