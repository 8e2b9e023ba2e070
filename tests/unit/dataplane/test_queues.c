/* Small and bounded structures: pools, the event queue, the command queue. Between threads: test_loop.c,
 * test_loop_set.c. */
#include "dataplane/base/pool.h"
#include "dataplane/base/random.h"
#include "dataplane/loop/command.h"
#include "dataplane/state/events.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { OBJECTS = 100, STEPS = 20000, RING = 64 };

/* ---- pools ---- */

static void a_pool_hands_out_each_object_once(void **state)
{
    struct cw_pool pool;
    struct cw_random random;
    cw_random_seed(&random, 1);
    assert_int_equal(cw_pool_init(&pool, OBJECTS, 100), CW_OK);
    assert_int_equal(pool.object_bytes, 128); /* rounded up to cache lines */
    uint64_t *out[OBJECTS];
    uint32_t count = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        if (cw_random_chance(&random, 0.52)) {
            uint64_t *object = cw_pool_acquire(&pool);
            assert_true((object == NULL) == (count == OBJECTS));
            if (object != NULL) {
                assert_int_equal((uintptr_t)object % 64, 0);
                uint32_t index = cw_pool_index(&pool, object);
                assert_ptr_equal(cw_pool_at(&pool, index), object);
                assert_int_equal(cw_pool_index(&pool, (uint8_t *)object + 99), index);
                object[1] = step; /* another owner's, if it was given out twice */
                object[2] = count;
                out[count++] = object;
            }
        } else if (count > 0) {
            uint32_t i = (uint32_t)cw_random_below(&random, count);
            cw_pool_release(&pool, out[i]);
            out[i] = out[--count];
            out[i][2] = i;
        }
        assert_int_equal(cw_pool_available(&pool), OBJECTS - count);
        for (uint32_t i = 0; i < count; i += 7) {
            assert_int_equal(out[i][2], i);
        }
    }
    cw_pool_dispose(&pool);
}

static void an_empty_pool_returns_nothing(void **state)
{
    struct cw_pool pool;
    assert_int_equal(cw_pool_init(&pool, 0, 64), CW_OK);
    assert_null(cw_pool_acquire(&pool));
    cw_pool_dispose(&pool);
}

/* ---- events ---- */

static void events_keep_their_order_and_are_rejected_when_full(void **state)
{
    struct cw_events events;
    struct cw_random random;
    cw_random_seed(&random, 2);
    assert_int_equal(cw_events_init(&events, RING), CW_OK);
    uint64_t produced = 0;
    uint64_t consumed = 0;
    while (consumed < STEPS) {
        uint64_t burst = cw_random_below(&random, 2 * RING);
        for (uint64_t i = 0; i < burst; i++) {
            struct cw_event *event = cw_events_reserve(&events);
            assert_true((event == NULL) == (produced - consumed == RING));
            if (event != NULL) {
                event->offset = produced++;
                cw_events_publish(&events);
            }
        }
        assert_int_equal(cw_events_count(&events), produced - consumed);
        struct cw_event taken[RING];
        uint32_t most = (uint32_t)cw_random_below(&random, RING + 1);
        uint32_t count = cw_events_pop(&events, taken, most, NULL, NULL);
        assert_true(count <= most && (count == most || count == produced - consumed));
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(taken[i].offset, consumed++);
        }
    }
    cw_events_dispose(&events);
}

/* ---- commands ---- */

/* A thread is writing a command, and another one has pushed one behind it: nothing to take yet, but not idle. */
static void commands_behind_an_unfinished_one_are_seen(void **state)
{
    struct cw_commands commands;
    assert_int_equal(cw_commands_init(&commands, 8), CW_OK);
    assert_true(cw_commands_idle(&commands));
    uint32_t unfinished = atomic_fetch_add(&commands.head, 1); /* as cw_commands_push begins */
    assert_true(cw_commands_push(&commands, &(struct cw_command){.kind = CW_COMMAND_RELEASE, .slot = 2}));
    assert_null(cw_commands_peek(&commands));
    assert_true(cw_commands_empty(&commands));
    assert_false(cw_commands_idle(&commands));
    commands.cells[unfinished & commands.mask].command = (struct cw_command){.kind = CW_COMMAND_RELEASE, .slot = 1};
    atomic_store(&commands.cells[unfinished & commands.mask].turn, unfinished + 1); /* ... and ends */
    for (uint32_t slot = 1; slot <= 2; slot++) {
        assert_int_equal(cw_commands_peek(&commands)->slot, slot);
        assert_false(cw_commands_idle(&commands));
        cw_commands_pop(&commands);
    }
    assert_true(cw_commands_idle(&commands));
    cw_commands_dispose(&commands);
}

static void commands_are_rejected_when_full(void **state)
{
    struct cw_commands commands;
    assert_int_equal(cw_commands_init(&commands, 8), CW_OK);
    assert_true(cw_commands_empty(&commands));
    assert_null(cw_commands_peek(&commands));
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < 8; i++) {
            assert_true(cw_commands_push(&commands, &(struct cw_command){.kind = CW_COMMAND_RELEASE, .slot = i}));
        }
        assert_false(cw_commands_push(&commands, &(struct cw_command){.kind = CW_COMMAND_RELEASE, .slot = 99}));
        for (uint32_t i = 0; i < 8; i++) {
            assert_int_equal(cw_commands_peek(&commands)->slot, i);
            assert_int_equal(cw_commands_peek(&commands)->slot, i); /* still there until it is popped */
            cw_commands_pop(&commands);
        }
        assert_true(cw_commands_empty(&commands));
    }
    cw_commands_dispose(&commands);
}

int main(void)
{
    return TESTS_RUN(a_pool_hands_out_each_object_once, an_empty_pool_returns_nothing,
                     events_keep_their_order_and_are_rejected_when_full, commands_behind_an_unfinished_one_are_seen,
                     commands_are_rejected_when_full);
}
