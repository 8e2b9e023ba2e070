/* What each test of cmocka's includes. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* cmocka gives each test its state, which few have. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* A bound that only a hang exceeds, on a machine as busy as it may be. */
enum { TEST_HANG_S = 600 };
#define TEST_HANG_NS (TEST_HANG_S * UINT64_C(1000000000))

/* A number from the environment; `otherwise` if it is not set or not a number. */
static inline uint64_t test_count(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long long value = text == NULL ? 0 : strtoull(text, &end, 10);
    return text == NULL || end == text || *end != 0 || value == 0 ? otherwise : value;
}

/* Whether this is a sanitized run, which asks for few seeds: every access is checked, so that fewer do. Bounds are the
 * same. */
static inline bool test_is_short(void)
{
    return test_count("CW_TEST_SEEDS", 1000) < 100;
}
