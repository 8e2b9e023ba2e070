/* The timing wheel against a plain list of times. */
#include <stdlib.h>

#include "dataplane/base/random.h"
#include "dataplane/base/wheel.h"
#include "tests/test.h"

enum { ENTRIES = 500, STEPS = 20000 };

struct timed {
    struct cw_wheel_entry entry;
    uint64_t time_ns; /* UINT64_MAX: not in */
};

static uint64_t earliest(const struct timed *list)
{
    uint64_t time_ns = UINT64_MAX;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        time_ns = list[i].time_ns < time_ns ? list[i].time_ns : time_ns;
    }
    return time_ns;
}

/* Delays from nanoseconds to minutes, with all magnitudes alike. */
static uint64_t random_delay(struct cw_random *random)
{
    return cw_random_below(random, 1ull << cw_random_between(random, 1, 36));
}

static void expire_all(struct cw_wheel *wheel, struct timed *list, uint64_t now_ns)
{
    struct cw_wheel_entry *entry;
    while ((entry = cw_wheel_expire(wheel, now_ns)) != NULL) {
        struct timed *timed = (struct timed *)entry;
        assert_true(timed->time_ns <= now_ns); /* never before its time */
        timed->time_ns = UINT64_MAX;
    }
    assert_true(earliest(list) > now_ns);       /* and all of them */
    assert_true(cw_wheel_next(wheel) > now_ns); /* who sleeps until then does sleep */
}

static void check_seed(uint64_t seed)
{
    struct cw_random random;
    cw_random_seed(&random, seed);
    struct cw_wheel *wheel = malloc(sizeof(*wheel));
    struct timed *list = calloc(ENTRIES, sizeof(*list));
    assert_non_null(wheel);
    assert_non_null(list);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        list[i].time_ns = UINT64_MAX;
    }
    uint64_t now_ns = cw_random_below(&random, 1ull << 40);
    cw_wheel_init(wheel, now_ns);
    for (uint32_t step = 0; step < STEPS; step++) {
        struct timed *timed = &list[cw_random_below(&random, ENTRIES)];
        if (timed->time_ns == UINT64_MAX) {
            timed->time_ns = now_ns + random_delay(&random);
            cw_wheel_insert(wheel, &timed->entry, timed->time_ns);
        } else if (cw_random_below(&random, 4) == 0) {
            cw_wheel_remove(wheel, &timed->entry);
            assert_false(cw_wheel_waiting(&timed->entry));
            timed->time_ns = UINT64_MAX;
        }
        uint64_t next_ns = cw_wheel_next(wheel);
        assert_true(next_ns <= earliest(list)); /* never too late to be asked */
        if (cw_random_below(&random, 3) == 0) {
            /* now to the time it names, now to any other */
            uint64_t target_ns = cw_random_below(&random, 2) == 0 ? next_ns : now_ns + random_delay(&random) / 16;
            now_ns = target_ns == UINT64_MAX || target_ns < now_ns ? now_ns : target_ns;
            expire_all(wheel, list, now_ns);
        }
    }
    while (earliest(list) !=
           UINT64_MAX) { /* following cw_wheel_next alone everything comes out, in the end exactly on time */
        uint64_t due_ns = earliest(list);
        uint64_t next_ns = cw_wheel_next(wheel);
        assert_true(next_ns <= due_ns);
        now_ns = next_ns > now_ns ? next_ns : now_ns;
        expire_all(wheel, list, now_ns);
    }
    assert_int_equal(wheel->count, 0);
    assert_true(cw_wheel_next(wheel) == UINT64_MAX);
    free(list);
    free(wheel);
}

static void test_random_times(void **state)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        check_seed(seed);
    }
}

static void test_a_time_in_the_past_is_due_at_once(void **state)
{
    struct cw_wheel *wheel = malloc(sizeof(*wheel));
    assert_non_null(wheel);
    cw_wheel_init(wheel, 1000000);
    struct cw_wheel_entry entry = {0};
    cw_wheel_insert(wheel, &entry, 5);
    assert_true(cw_wheel_expire(wheel, 1000000) == &entry);
    assert_null(cw_wheel_expire(wheel, 1000000));
    free(wheel);
}

int main(void)
{
    return TESTS_RUN(test_random_times, test_a_time_in_the_past_is_due_at_once);
}
