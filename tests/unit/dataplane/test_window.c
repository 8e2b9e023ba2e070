/* The window of seen numbers against a plain array of flags. */
#include "dataplane/base/random.h"
#include "dataplane/state/window.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { NUMBERS = 20000, STEPS = 30000 };

/* The reference of the window, number by number. */
struct reference {
    uint64_t first;
    bool seen[NUMBERS];
};

static uint64_t reference_base(const struct reference *reference)
{
    uint64_t i = 0;
    while (i < NUMBERS && reference->seen[i]) {
        i++;
    }
    return reference->first + i;
}

static uint64_t reference_end(const struct reference *reference)
{
    uint64_t i = NUMBERS;
    while (i > 0 && !reference->seen[i - 1]) {
        i--;
    }
    return reference->first + i;
}

static uint64_t reference_next(const struct reference *reference, uint64_t from, uint64_t end, bool seen)
{
    while (from < end && reference->seen[from - reference->first] != seen) {
        from++;
    }
    return from;
}

static void check_against(const struct cw_window *window, const struct reference *reference, struct cw_random *random)
{
    uint64_t base = reference_base(reference);
    uint64_t end = reference_end(reference);
    end = end < base ? base : end;
    assert_true(window->base == base && window->end == end);
    for (uint32_t i = 0; i < 20 && end > base; i++) {
        uint64_t from = base + cw_random_below(random, end - base);
        assert_true(cw_window_seen(window, from) == reference->seen[from - reference->first]);
        assert_true(cw_window_next(window, from, true) == reference_next(reference, from, end, true));
        assert_true(cw_window_next(window, from, false) == reference_next(reference, from, end, false));
        uint64_t run = from + 1;
        while (run > base && reference->seen[run - 1 - reference->first]) {
            run--;
        }
        while (run > base && !reference->seen[run - 1 - reference->first]) {
            run--;
        }
        assert_true(cw_window_previous_run(window, from + 1) == run);
    }
}

/* Numbers come in an order that is shuffled within `spread`. */
static void check_random_order(uint64_t seed, uint64_t first, uint32_t delivery)
{
    struct cw_random random;
    cw_random_seed(&random, seed);
    struct cw_pool pool;
    assert_int_equal(cw_pool_init(&pool, 16, CW_WINDOW_BLOCK_BYTES), CW_OK);
    struct reference *reference = calloc(1, sizeof(*reference));
    assert_non_null(reference);
    reference->first = first;
    struct cw_window window;
    cw_window_init(&window, first);
    for (uint32_t step = 0; step < STEPS; step++) {
        uint64_t base = reference_base(reference);
        if (base == first + NUMBERS) {
            break;
        }
        uint64_t number = base + cw_random_below(&random, delivery);
        if (number < first + NUMBERS && !reference->seen[number - first]) {
            assert_true(cw_window_mark(&window, &pool, number));
            reference->seen[number - first] = true;
        }
        if (step % 1000 == 0) {
            check_against(&window, reference, &random);
        }
    }
    for (uint32_t i = 0; i < NUMBERS; i++) { /* close all holes */
        if (!reference->seen[i]) {
            assert_true(cw_window_mark(&window, &pool, first + i));
            reference->seen[i] = true;
        }
    }
    check_against(&window, reference, &random);
    assert_int_equal(pool.used, 0); /* no holes, no memory */
    assert_int_equal(cw_window_block_count(&window), 0);
    free(reference);
    cw_pool_dispose(&pool);
}

static void test_random_orders(void **state)
{
    static const uint32_t spreads[] = {1, 2, 63, 65, 1000, 9000, 15000};
    static const uint64_t firsts[] = {0, 1, 8191, 0xffffff00, 0xfffffffffull};
    for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]); i++) {
        for (size_t k = 0; k < sizeof(firsts) / sizeof(firsts[0]); k++) {
            check_random_order(i * 10 + k, firsts[k], spreads[i]);
        }
    }
}

static void test_without_memory_only_the_oldest_goes_on(void **state)
{
    struct cw_pool pool;
    assert_int_equal(cw_pool_init(&pool, 1, CW_WINDOW_BLOCK_BYTES), CW_OK);
    void *taken = cw_pool_acquire(&pool);
    struct cw_window window;
    cw_window_init(&window, 100);
    assert_false(cw_window_mark(&window, &pool, 102));
    assert_true(window.base == 100 && window.end == 100);
    assert_true(cw_window_mark(&window, &pool, 100));
    assert_true(window.base == 101);
    cw_pool_release(&pool, taken);
    assert_true(cw_window_mark(&window, &pool, 102));
    assert_true(cw_window_seen(&window, 102) && !cw_window_seen(&window, 101));
    cw_window_dispose(&window, &pool);
    assert_int_equal(pool.used, 0);
    cw_pool_dispose(&pool);
}

static void test_whole_span(void **state)
{
    struct cw_pool pool;
    assert_int_equal(cw_pool_init(&pool, CW_WINDOW_BLOCKS, CW_WINDOW_BLOCK_BYTES), CW_OK);
    struct cw_window window;
    uint64_t first = 5000; /* in the middle of a block, so that the span touches all of them */
    cw_window_init(&window, first);
    uint64_t last = first + cw_window_span() - 1;
    for (uint64_t number = first + 1; number <= last; number++) {
        assert_true(cw_window_mark(&window, &pool, number));
    }
    assert_true(window.base == first && window.end == last + 1);
    assert_true(cw_window_mark(&window, &pool, first));
    assert_true(window.base == last + 1 && window.end == last + 1);
    assert_int_equal(pool.used, 0);
    cw_pool_dispose(&pool);
}

int main(void)
{
    return TESTS_RUN(test_random_orders, test_without_memory_only_the_oldest_goes_on, test_whole_span);
}
