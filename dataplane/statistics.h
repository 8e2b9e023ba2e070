/* Statistics of measured numbers, for everyone who measures: no library is needed. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

static inline int cw_statistics_compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The number that a share 0 .. 1 of `count` sorted ones lies below; 0 of none. */
static inline double cw_statistics_percentile(const double *sorted, size_t count, double share)
{
    size_t at = (size_t)((double)count * share);
    return count == 0 ? 0 : sorted[at < count ? at : count - 1];
}

/* The middle of `count` numbers, or that of the two in the middle; sorts them. 0 of none. */
static inline double cw_statistics_median(double *numbers, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(numbers, count, sizeof(*numbers), cw_statistics_compare);
    return count % 2 == 1 ? numbers[count / 2] : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}
