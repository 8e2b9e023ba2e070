/* Cartesian topologies (MPI 5.0, 8.5). */
#include "tests/mpi/expect.h"

#include <string.h>

/* Expects that the sizes multiply to the nodes and do not increase; returns the greatest. */
static int expect_even(int nodes, int count)
{
    int dims[8] = {0};
    long long product = 1;
    EXPECT_EQUAL(MPI_Dims_create(nodes, count, dims), MPI_SUCCESS);
    for (int i = 0; i < count; i++) {
        product *= dims[i];
        EXPECT(dims[i] >= 1 && (i == 0 || dims[i] <= dims[i - 1]));
    }
    EXPECT_EQUAL(product, nodes);
    return dims[0];
}

static void dimensions(void)
{
    const struct {
        int nodes, count, given[4], wanted[4];
    } cases[] = {
        {6, 2, {0, 0}, {3, 2}},  {7, 2, {0, 0}, {7, 1}},    {6, 3, {0, 3, 0}, {2, 3, 1}},  {1, 3, {0, 0, 0}, {1, 1, 1}},
        {12, 2, {0, 0}, {4, 3}}, {16, 2, {0, 0}, {4, 4}},   {16, 4, {0}, {2, 2, 2, 2}},    {30, 3, {0}, {5, 3, 2}},
        {24, 1, {0}, {24}},      {24, 2, {24, 0}, {24, 1}}, {36, 3, {0, 0, 4}, {3, 3, 4}}, {6, 2, {2, 3}, {2, 3}},
        {8, 3, {0}, {2, 2, 2}},  {1024, 2, {0}, {32, 32}},  {96, 2, {0}, {12, 8}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int dims[4];
        memcpy(dims, cases[i].given, sizeof(dims));
        EXPECT_EQUAL(MPI_Dims_create(cases[i].nodes, cases[i].count, dims), MPI_SUCCESS);
        for (int j = 0; j < cases[i].count; j++) {
            EXPECT_EQUAL(dims[j], cases[i].wanted[j]);
        }
    }
    int wrong[3] = {0, 3, 0}, negative[2] = {-1, 0}, fixed[2] = {2, 2};
    EXPECT(MPI_Dims_create(7, 3, wrong) != MPI_SUCCESS);
    EXPECT(MPI_Dims_create(4, 2, negative) != MPI_SUCCESS);
    EXPECT(MPI_Dims_create(5, 2, fixed) != MPI_SUCCESS);
}

/* Also where divisors are few, or many. */
static void dimensions_of_large_numbers(void)
{
    EXPECT_EQUAL(expect_even(1000003, 3), 1000003);
    EXPECT_EQUAL(expect_even(2147483647, 8), 2147483647);
    EXPECT_EQUAL(expect_even(2147483646, 2), 49981); /* 2 * 3^2 * 7 * 11 * 31 * 151 * 331 */
    EXPECT_EQUAL(expect_even(1 << 30, 3), 1024);
    EXPECT_EQUAL(expect_even(223092870, 8), 23); /* 2 * 3 * 5 * ... * 23: one factor is 2 * 3 or so */
    EXPECT_EQUAL(expect_even(46337 * 46337, 2), 46337);
    for (int count = 1; count <= 8; count++) {
        expect_even(2095133040, count);
        expect_even(1000000000, count);
        expect_even(1999966000, count);
    }
    int cube[3] = {0};
    MPI_Dims_create(7488, 3, cube);
    EXPECT(cube[0] == 26 && cube[1] == 18 && cube[2] == 16); /* not 24 x 24 x 13 */
    for (int nodes = 1; nodes <= 2000; nodes++) {
        int greatest = expect_even(nodes, 2), wanted = nodes;
        for (int divisor = 1; divisor * divisor <= nodes; divisor++) {
            wanted = nodes % divisor == 0 ? nodes / divisor : wanted;
        }
        EXPECT_EQUAL(greatest, wanted);
    }
}

/* The smallest difference between greatest and smallest of `count` factors, and the smallest sum that goes with it. */
struct evenness {
    int range, sum;
};

/* Tries all ways to write `nodes` as a product of `count` factors that do not decrease. */
static void all_ways(int nodes, int count, int first, int last, int sum, struct evenness *best)
{
    if (count == 1) {
        int range = nodes - (first > 0 ? first : nodes);
        if (nodes >= last && (range < best->range || (range == best->range && sum + nodes < best->sum))) {
            *best = (struct evenness){range, sum + nodes};
        }
        return;
    }
    for (int factor = last; factor <= nodes; factor++) {
        if (nodes % factor == 0) {
            all_ways(nodes / factor, count - 1, first > 0 ? first : factor, factor, sum + factor, best);
        }
    }
}

static void dimensions_against_all_ways(void)
{
    for (int nodes = 1; nodes <= 8000; nodes++) {
        for (int count = 1; count <= 5; count++) {
            struct evenness best = {nodes, 8 * nodes};
            int dims[6] = {0}, sum = 0;
            all_ways(nodes, count, 0, 1, 0, &best);
            MPI_Dims_create(nodes, count, dims);
            for (int i = 0; i < count; i++) {
                sum += dims[i];
            }
            EXPECT(dims[0] - dims[count - 1] == best.range && sum == best.sum);
        }
    }
}

/* A grid of all ranks that fit; its communicator, or MPI_COMM_NULL. */
static MPI_Comm grid_make(int rows, int columns, int row_periodic, int column_periodic)
{
    const int sizes[] = {rows, columns}, periodic[] = {row_periodic, column_periodic};
    MPI_Comm grid = MPI_COMM_NULL;
    EXPECT_EQUAL(MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periodic, 0, &grid), MPI_SUCCESS);
    EXPECT_EQUAL(grid == MPI_COMM_NULL, expect_rank >= rows * columns);
    return grid;
}

static int kind_of(MPI_Comm comm)
{
    int kind = 0;
    MPI_Topo_test(comm, &kind);
    return kind;
}

static int dimensions_of(MPI_Comm grid)
{
    int count = -1;
    MPI_Cartdim_get(grid, &count);
    return count;
}

static void queries_of_a_grid(MPI_Comm grid, int rows, int columns, int row_periodic, int column_periodic)
{
    int sizes[2], periodic[2], mine[2], rank, size;
    EXPECT_EQUAL(kind_of(grid), MPI_CART);
    EXPECT_EQUAL(dimensions_of(grid), 2);
    MPI_Comm_rank(grid, &rank);
    MPI_Comm_size(grid, &size);
    EXPECT_EQUAL(size, rows * columns);
    EXPECT_EQUAL(rank, expect_rank); /* no reordering was asked for */
    EXPECT_EQUAL(MPI_Cart_get(grid, 2, sizes, periodic, mine), MPI_SUCCESS);
    EXPECT(sizes[0] == rows && sizes[1] == columns);
    EXPECT(!periodic[0] == !row_periodic && !periodic[1] == !column_periodic);
    EXPECT(mine[0] == rank / columns && mine[1] == rank % columns);
    for (int other = 0; other < size; other++) {
        int at[2] = {-1, -1}, found = -1;
        MPI_Cart_coords(grid, other, 2, at);
        EXPECT(at[0] == other / columns && at[1] == other % columns);
        MPI_Cart_rank(grid, at, &found);
        EXPECT_EQUAL(found, other);
        for (int i = 0; i < 2; i++) { /* coordinates of a periodic dimension go around, others are wrong */
            int away[2] = {at[0] + (i == 0 ? 3 * rows : 0), at[1] - (i == 1 ? 2 * columns : 0)};
            int code = MPI_Cart_rank(grid, away, &found);
            EXPECT_EQUAL(code == MPI_SUCCESS, i == 0 ? row_periodic : column_periodic);
            EXPECT(code != MPI_SUCCESS || found == other);
        }
    }
}

static int place(int at, int size, int periodic)
{
    return periodic ? (at % size + size) % size : at >= 0 && at < size ? at : -1;
}

/* 8.5.4 */
static void shifts(MPI_Comm grid, int rows, int columns, int row_periodic, int column_periodic)
{
    int row = expect_rank / columns, column = expect_rank % columns;
    for (int by = -5; by <= 5; by++) {
        for (int direction = 0; direction < 2; direction++) {
            int size = direction ? columns : rows, at = direction ? column : row, source = -9, dest = -9;
            int from = place(at - by, size, direction ? column_periodic : row_periodic);
            int to = place(at + by, size, direction ? column_periodic : row_periodic);
            EXPECT_EQUAL(MPI_Cart_shift(grid, direction, by, &source, &dest), MPI_SUCCESS);
            EXPECT_EQUAL(source, from < 0 ? MPI_PROC_NULL : direction ? row * columns + from : from * columns + column);
            EXPECT_EQUAL(dest, to < 0 ? MPI_PROC_NULL : direction ? row * columns + to : to * columns + column);
            int in = -1;
            MPI_Sendrecv(&expect_rank, 1, MPI_INT, dest, 1, &in, 1, MPI_INT, source, 1, grid, MPI_STATUS_IGNORE);
            EXPECT_EQUAL(in, source == MPI_PROC_NULL ? -1 : source);
        }
    }
}

/* Of a grid: rows, columns, all, and single places; duplicates have the topology, too. */
static void parts_of_grids(MPI_Comm grid, int rows, int columns, int column_periodic)
{
    for (int kept = 0; kept < 4; kept++) {
        const int remain[] = {kept & 1, kept >> 1 & 1};
        int size = -1, rank = -1, sizes[2], periodic[2], at[2];
        MPI_Comm part;
        EXPECT_EQUAL(MPI_Cart_sub(grid, remain, &part), MPI_SUCCESS);
        MPI_Comm_size(part, &size);
        MPI_Comm_rank(part, &rank);
        EXPECT_EQUAL(dimensions_of(part), remain[0] + remain[1]);
        EXPECT_EQUAL(size, (remain[0] ? rows : 1) * (remain[1] ? columns : 1));
        EXPECT_EQUAL(rank, (remain[0] ? expect_rank / columns * (remain[1] ? columns : 1) : 0) +
                               (remain[1] ? expect_rank % columns : 0));
        if (kept == 2) {
            MPI_Cart_get(part, 2, sizes, periodic, at);
            EXPECT(sizes[0] == columns && !periodic[0] == !column_periodic && at[0] == expect_rank % columns);
        }
        int sum = -1, one = 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part);
        EXPECT_EQUAL(sum, size);
        MPI_Comm_free(&part);
    }
    MPI_Comm copy;
    MPI_Comm_dup(grid, &copy);
    queries_of_a_grid(copy, rows, columns, 1, column_periodic);
    MPI_Comm_free(&copy);
}

static void grids(int rows, int columns)
{
    if (rows * columns > expect_size) {
        return;
    }
    for (int periodic = 0; periodic < 4; periodic++) {
        MPI_Comm grid = grid_make(rows, columns, periodic & 1, periodic >> 1);
        if (grid != MPI_COMM_NULL) {
            queries_of_a_grid(grid, rows, columns, periodic & 1, periodic >> 1);
            shifts(grid, rows, columns, periodic & 1, periodic >> 1);
            if (periodic & 1) {
                parts_of_grids(grid, rows, columns, periodic >> 1);
            }
            MPI_Comm_free(&grid);
        }
    }
}

/* 8.5.1: a grid of no dimension has one place. */
static void grids_of_no_dimension(void)
{
    MPI_Comm grid = MPI_COMM_WORLD;
    int rank = -1, size = 0;
    EXPECT_EQUAL(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &grid), MPI_SUCCESS);
    if (expect_rank > 0) {
        EXPECT(grid == MPI_COMM_NULL);
        return;
    }
    EXPECT_EQUAL(kind_of(grid), MPI_CART);
    EXPECT_EQUAL(dimensions_of(grid), 0);
    MPI_Comm_size(grid, &size);
    EXPECT_EQUAL(size, 1);
    EXPECT_EQUAL(MPI_Cart_rank(grid, NULL, &rank), MPI_SUCCESS);
    EXPECT_EQUAL(rank, 0);
    EXPECT_EQUAL(MPI_Cart_coords(grid, 0, 0, NULL), MPI_SUCCESS);
    MPI_Comm_free(&grid);
}

/* All ranks in three dimensions, in any order of the library's choice. */
static void reordered_grids(void)
{
    int sizes[3] = {0}, periodic[3] = {1, 0, 1}, at[3], rank, found, where;
    MPI_Comm grid;
    MPI_Dims_create(expect_size, 3, sizes);
    EXPECT_EQUAL(MPI_Cart_create(MPI_COMM_WORLD, 3, sizes, periodic, 1, &grid), MPI_SUCCESS);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 3, at);
    MPI_Cart_rank(grid, at, &found);
    EXPECT_EQUAL(found, rank);
    EXPECT_EQUAL(MPI_Cart_map(MPI_COMM_WORLD, 3, sizes, periodic, &where), MPI_SUCCESS);
    EXPECT(where >= 0 && where < expect_size);
    MPI_Comm_free(&grid);
    const int one[] = {1};
    MPI_Cart_map(MPI_COMM_WORLD, 1, one, periodic, &where);
    int places = where == 0, nowhere = where == MPI_UNDEFINED, sums[2], counts[2] = {places, nowhere};
    MPI_Allreduce(counts, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQUAL(sums[0], 1);
    EXPECT_EQUAL(sums[1], expect_size - 1);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    dimensions();
    dimensions_of_large_numbers();
    if (expect_size == 1) {
        dimensions_against_all_ways();
    }
    grids(1, expect_size);
    grids(expect_size, 1);
    grids(2, 2);
    grids(2, 3);
    grids(2, 4);
    grids_of_no_dimension();
    reordered_grids();
    EXPECT_EQUAL(kind_of(MPI_COMM_WORLD), MPI_UNDEFINED);
    return expect_end();
}
