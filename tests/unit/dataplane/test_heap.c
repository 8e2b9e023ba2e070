/* The heap of events: total order, entries that are moved and taken out. */
#include "dataplane/base/random.h"
#include "dataplane/fabric/heap.h"
#include "tests/test.h"

enum { COUNT = 500 };

static void test_order(void **state)
{
    struct cw_random random;
    struct cw_heap heap;
    cw_random_seed(&random, 1);
    assert_true(cw_heap_init(&heap, COUNT));
    for (int round = 0; round < 20; round++) {
        struct cw_heap_entry last = {0};
        for (uint64_t i = 0; i < COUNT; i++) {
            struct cw_heap_entry entry = {.time_ns = cw_random_below(&random, 50), .sequence = i + 1};
            assert_true(cw_heap_push(&heap, &entry, false));
        }
        assert_false(cw_heap_push(&heap, &last, false));
        for (int i = 0; i < COUNT; i++) {
            struct cw_heap_entry next = cw_heap_remove(&heap, 0, false);
            assert_true(cw_heap_before(&last, &next)); /* equal times in the order of their numbers */
            last = next;
        }
        assert_int_equal(heap.count, 0);
    }
    cw_heap_dispose(&heap);
}

static void positions_check(const struct cw_heap *heap, const uint32_t *positions)
{
    uint32_t inside = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        if (positions[i] != CW_HEAP_OUT) {
            assert_ptr_equal(heap->entries[positions[i]].position, &positions[i]);
            inside++;
        }
    }
    assert_int_equal(inside, heap->count);
    for (uint32_t i = 1; i < heap->count; i++) {
        assert_true(cw_heap_before(&heap->entries[(i - 1) / 4], &heap->entries[i]));
    }
}

/* Random insertions, removals from the middle, and moves to an earlier time. */
static void test_tracked(void **state)
{
    uint32_t positions[COUNT];
    struct cw_random random;
    struct cw_heap heap;
    cw_random_seed(&random, 2);
    assert_true(cw_heap_init(&heap, COUNT));
    for (int i = 0; i < COUNT; i++) {
        positions[i] = CW_HEAP_OUT;
    }
    for (uint64_t sequence = 1; sequence < 20000; sequence++) {
        uint32_t which = (uint32_t)cw_random_below(&random, COUNT);
        struct cw_heap_entry entry = {.sequence = sequence, .position = &positions[which]};
        if (positions[which] == CW_HEAP_OUT) {
            entry.time_ns = cw_random_below(&random, 1000);
            assert_true(cw_heap_push(&heap, &entry, true));
        } else if (cw_random_chance(&random, 0.5)) {
            cw_heap_remove(&heap, positions[which], true);
        } else if (heap.entries[positions[which]].time_ns > 0) {
            entry.time_ns = cw_random_below(&random, heap.entries[positions[which]].time_ns);
            cw_heap_up(&heap, positions[which], &entry, true);
        }
        if (sequence % 100 == 0) {
            positions_check(&heap, positions);
        }
    }
    cw_heap_dispose(&heap);
}

int main(void)
{
    return TESTS_RUN(test_order, test_tracked);
}
