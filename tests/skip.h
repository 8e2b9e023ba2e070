/* How a test says that it cannot run here. ./check prints the reason and, where it could have installed what the test
 * needs, counts the skip as a failure. A reason that starts with "machine: " names what no package brings (a kernel
 * feature, a device, cores) and stays a skip. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

enum { TEST_EXIT_SKIPPED = 77 };

/* Ends the process as skipped, for `reason` (one line). Call it before anything has been tested. */
_Noreturn static inline void test_skip(const char *reason)
{
    printf("SKIPPED: %s\n", reason);
    exit(TEST_EXIT_SKIPPED);
}
