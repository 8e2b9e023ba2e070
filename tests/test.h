/* Common includes of each test with cmocka. */
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* cmocka gives each test its state, which few have. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* An assertion that fails with a text. */
#define assert_true_msg(condition, ...) \
    do {                                \
        if (!(condition)) {             \
            fail_msg(__VA_ARGS__);      \
        }                               \
    } while (0)

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

/* ---- the tests of a program ---- */

/* Runs tests; their names are in one text, separated by commas. Returns the number of failed ones. */
static inline int tests_run(const char *names, const CMUnitTestFunction *functions, size_t count,
                            CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    char *text = strdup(names), *rest = NULL;
    struct CMUnitTest *tests = calloc(count, sizeof(*tests));
    for (size_t i = 0; i < count; i++) {
        tests[i] = (struct CMUnitTest){.name = strtok_r(i == 0 ? text : NULL, ", ", &rest),
                                       .test_func = functions[i],
                                       .setup_func = set_up,
                                       .teardown_func = tear_down};
    }
    int failed = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
    free(tests);
    free(text);
    return failed;
}

/* The tests in this order, with a set-up before each and a tear-down after it; without them. */
#define TESTS_RUN_EACH(set_up, tear_down, ...)                         \
    tests_run(#__VA_ARGS__, (const CMUnitTestFunction[]){__VA_ARGS__}, \
              sizeof((const CMUnitTestFunction[]){__VA_ARGS__}) / sizeof(CMUnitTestFunction), set_up, tear_down)
#define TESTS_RUN(...) TESTS_RUN_EACH(NULL, NULL, __VA_ARGS__)

/* ---- seeds ---- */

enum { TEST_SEEDS_FEW = 15 }; /* fewer may not show each kind of fault */

/* The seeds of one test: a failure that one of them causes is repeated with CW_TEST_SEED alone. */
struct test_seeds {
    uint64_t next;
    uint64_t first;
    uint64_t last;
    uint64_t count;
    bool is_all; /* sums over all seeds are checked; false with CW_TEST_SEED, and with few CW_TEST_SEEDS */
};

static uint64_t test_seed_now; /* of the loop that runs, or that a failure has left; 0: none */

/* Also called from signal handlers and when a sanitizer ends the process. tests/report.py reads this line. */
static inline void test_seed_print(void)
{
    char line[64];
    int bytes = snprintf(line, sizeof(line), "failed with seed %llu\n", (unsigned long long)test_seed_now);
    if (test_seed_now != 0 && write(STDERR_FILENO, line, (size_t)bytes) == bytes) {
        test_seed_now = 0;
    }
}

static inline void test_seed_signal(int number)
{
    test_seed_print();
    (void)raise(number); /* SA_RESETHAND: this ends the process */
}

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* Seeds `first` to `first + count - 1`, at least one; or CW_TEST_SEED alone, if it is set. From here on, a failure
 * prints its seed, until test_seeds_next() has returned 0. */
static inline struct test_seeds test_seeds(uint64_t first, uint64_t count)
{
    static bool is_prepared;
    if (!is_prepared) {
        const struct sigaction action = {.sa_handler = test_seed_signal, .sa_flags = (int)SA_RESETHAND};
        (void)atexit(test_seed_print);
        (void)sigaction(SIGABRT, &action, NULL); /* an assert() */
        (void)sigaction(SIGTERM, &action, NULL); /* meson, after a hang */
        if (__sanitizer_set_death_callback != NULL) {
            __sanitizer_set_death_callback(test_seed_print);
        }
        is_prepared = true;
    }
    test_seed_print(); /* cmocka has left an earlier loop */
    uint64_t only = test_count("CW_TEST_SEED", 0);
    count = only != 0 || count == 0 ? 1 : count;
    first = only != 0 ? only : first;
    return (struct test_seeds){.next = first,
                               .first = first,
                               .last = first + count - 1,
                               .count = count,
                               .is_all = only == 0 && test_count("CW_TEST_SEEDS", TEST_SEEDS_FEW) >= TEST_SEEDS_FEW};
}

/* The next seed; 0: all were drawn. */
static inline uint64_t test_seeds_next(struct test_seeds *seeds)
{
    test_seed_now = seeds->next <= seeds->last ? seeds->next++ : 0;
    return test_seed_now;
}
