/* The clock that interpolates is the kernel's, to the microsecond, and never goes back. */
#include <pthread.h>
#include <time.h>

#include "dataplane/base/clock.h"
#include "tests/test.h"

enum { READINGS = 2000000, SLACK_NS = 20000 };

static uint64_t kernel_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

/* Read between two readings of the kernel's clock, so how long anything takes does not matter. */
static void *compare(void *argument)
{
    uint64_t *wrong = argument;
    uint64_t before = kernel_ns();
    uint64_t last = 0;
    for (uint32_t i = 0; i < READINGS; i++) {
        uint64_t now = cw_clock_ns();
        if (now < last) {
            ++*wrong;
        }
        last = now;
        if (i % 16 == 0) {
            uint64_t after = kernel_ns();
            if (now + SLACK_NS < before || now > after + SLACK_NS) {
                ++*wrong;
            }
            before = after;
        }
    }
    return NULL;
}

static void test_it_is_the_kernels(void **state)
{
    uint64_t wrong = 0;
    (void)compare(&wrong);
    assert_int_equal(wrong, 0);
}

static void test_each_thread_has_its_own(void **state)
{
    pthread_t threads[3];
    uint64_t wrong[3] = {0};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, compare, &wrong[i]), 0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

#if defined(__x86_64__)

/* A virtual machine that was moved, or a thread that slept: the counter has any value, and so has its former rate. */
static void test_a_counter_that_jumps_is_found_out(void **state)
{
    static const int64_t jumps[] = {-1000000000000, -1000, 1000000000, 1000000000000, INT64_MAX};
    for (uint32_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
        uint64_t wrong = 0;
        (void)compare(&wrong);
        uint64_t said = cw_clock_ns();
        cw_clock_base.ticks += (uint64_t)jumps[i];
        uint64_t before = kernel_ns();
        uint64_t now = cw_clock_ns();
        /* a jump of less than a span cannot be distinguished from time that passed; it ends with the span */
        uint64_t slack = SLACK_NS + 2000000;
        assert_true(now + slack >= before && now <= kernel_ns() + slack);
        assert_true(jumps[i] == -1000 || now + SLACK_NS >= said);
        (void)compare(&wrong);
        assert_true(wrong <= 10000); /* of the comparisons in that span */
        wrong = 0;
        (void)compare(&wrong);
        assert_int_equal(wrong, 0);
    }
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_the_kernels),
        cmocka_unit_test(test_each_thread_has_its_own),
#if defined(__x86_64__)
        cmocka_unit_test(test_a_counter_that_jumps_is_found_out),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
