/* MPI_Dims_create (MPI 5.0, 8.5.2): sizes of a grid "as close to each other as possible": the difference between the
 * greatest and the smallest is minimal, as Traeff and Luebbe read it ("Specification guideline violations by
 * MPI_Dims_create", 2015); of several such ways the one with the smallest sum, then that with the smallest greatest
 * one. */
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/runtime/error.h"
#include "mpi_functions.h"

enum {
    DIVISORS_MAX = 1600, /* of 2095133040; no other int has as many */
    FACTORS_MAX = 30,    /* 2^31 is no int: no other product has more factors above 1 */
};

struct dims {
    int divisor_count;
    int divisors[DIVISORS_MAX]; /* of the number, ascending */
    int prime_count;            /* prime factors of the number, each as often as it divides */
    int greatest_prime;
    int factor_count;
    long long best_range, best_sum;
    int best[FACTORS_MAX]; /* descending */
    int chosen[FACTORS_MAX];
};

static void divisors_find(struct dims *dims, int number)
{
    int below = 0;
    for (int small = 1; small <= number / small; small++) {
        if (number % small == 0) {
            dims->divisors[below++] = small;
        }
    }
    dims->divisor_count = below;
    for (int index = below - 1; index >= 0; index--) {
        int large = number / dims->divisors[index];
        if (large > dims->divisors[below - 1]) {
            dims->divisors[dims->divisor_count++] = large;
        }
    }
    int rest = number;
    for (int index = 1; index < dims->divisor_count && rest > 1; index++) { /* the first that divides is a prime */
        while (rest % dims->divisors[index] == 0) {
            rest /= dims->divisors[index];
            dims->greatest_prime = dims->divisors[index];
            dims->prime_count++;
        }
    }
}

/* factor^n, or INT_MAX + 1 if it is more than an int. */
static long long power(int factor, int n)
{
    long long result = 1;
    for (int i = 0; i < n && result <= INT_MAX; i++) {
        result *= factor;
    }
    return result <= INT_MAX ? result : (long long)INT_MAX + 1;
}

/* Writes `number` as a product of `n` divisors within `low` .. `high`, ascending, each way that may be the best: `sum`
 * is that of the factors chosen so far, all of them behind chosen[n]. */
static void middle_search(struct dims *dims, int number, int n, int low, int high, long long sum)
{
    if (n == 0) {
        int greatest = dims->chosen[0], smallest = dims->chosen[dims->factor_count - 1];
        if (number == 1 && (greatest - smallest < dims->best_range || sum < dims->best_sum)) {
            dims->best_range = greatest - smallest;
            dims->best_sum = sum;
            memcpy(dims->best, dims->chosen, sizeof(dims->best));
        }
        return;
    }
    if (power(high, n) < number) {
        return;
    }
    for (int index = 0; index < dims->divisor_count && dims->divisors[index] <= high; index++) {
        int factor = dims->divisors[index];
        if (factor < low || number % factor != 0) {
            continue;
        }
        if (power(factor, n) > number) {
            return;
        }
        dims->chosen[n] = factor;
        middle_search(dims, number / factor, n - 1, factor, high, sum + factor);
    }
}

/* All ways with this greatest factor, the greatest of smallest ones first: none that follows is better in range. */
static void smallest_search(struct dims *dims, int number, int greatest)
{
    int last = dims->factor_count - 1;
    int rest = number / greatest;
    dims->chosen[0] = greatest;
    if (last == 0) {
        middle_search(dims, rest, 0, 1, 1, greatest);
        return;
    }
    for (int index = dims->divisor_count - 1; index >= 0; index--) {
        int smallest = dims->divisors[index];
        if (smallest > greatest || rest % smallest != 0 || power(smallest, last) > rest) {
            continue;
        }
        if (greatest - smallest > dims->best_range) {
            return;
        }
        dims->chosen[last] = smallest;
        middle_search(dims, rest / smallest, last - 1, smallest, greatest, (long long)greatest + smallest);
        if (greatest - smallest == dims->best_range) {
            return;
        }
    }
}

static void factors_find(int number, int n, int factors[])
{
    struct dims dims = {.best_range = LLONG_MAX, .best_sum = LLONG_MAX};
    divisors_find(&dims, number);
    for (int i = 0; i < n; i++) {
        factors[i] = 1;
    }
    if (number == 1) {
        return;
    }
    dims.factor_count = n < dims.prime_count ? n : dims.prime_count; /* the others are 1 */
    for (int index = 0; index < dims.divisor_count; index++) {
        int greatest = dims.divisors[index];
        if (greatest < dims.greatest_prime || power(greatest, dims.factor_count) < number) {
            continue;
        }
        if (power(greatest - (int)(dims.best_range < greatest ? dims.best_range : greatest), dims.factor_count) >
            number) {
            break; /* even the smallest one would be too great */
        }
        smallest_search(&dims, number, greatest);
    }
    for (int i = 0; i < dims.factor_count; i++) {
        factors[i] = dims.best[i];
    }
}

/* Computes the product left for the sizes that are 0; *free_count: their number. */
static int sizes_check(int nnodes, int ndims, const int dims[], int *rest, int *free_count)
{
    long long fixed = 1;
    *free_count = 0;
    if (nnodes <= 0 || ndims < 0) {
        return mpi_error(MPI_COMM_NULL, ndims < 0 ? MPI_ERR_DIMS : MPI_ERR_ARG, "%d nodes in %d dimensions", nnodes,
                         ndims);
    }
    for (int dimension = 0; dimension < ndims; dimension++) {
        if (dims[dimension] < 0) {
            return mpi_error(MPI_COMM_NULL, MPI_ERR_DIMS, "dimension %d has size %d", dimension, dims[dimension]);
        }
        fixed *= dims[dimension] > 0 ? dims[dimension] : 1;
        *free_count += dims[dimension] == 0;
        if (fixed > nnodes) {
            break;
        }
    }
    if (nnodes % fixed != 0 || (*free_count == 0 && fixed != nnodes && ndims > 0)) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_DIMS, "%d nodes cannot be divided by the %lld that are fixed", nnodes,
                         fixed);
    }
    *rest = nnodes / (int)fixed;
    return MPI_SUCCESS;
}

int mpi_dims_create(int nnodes, int ndims, int dims[])
{
    int rest = 0, free_count = 0;
    int code = sizes_check(nnodes, ndims, dims, &rest, &free_count);
    if (code != MPI_SUCCESS || free_count == 0) {
        return code;
    }
    int *factors = malloc((size_t)free_count * sizeof(int));
    if (factors == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for %d dimensions", ndims);
    }
    factors_find(rest, free_count, factors);
    for (int dimension = 0, next = 0; dimension < ndims; dimension++) {
        if (dims[dimension] == 0) {
            dims[dimension] = factors[next++];
        }
    }
    free(factors);
    return MPI_SUCCESS;
}
