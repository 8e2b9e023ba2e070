/* Frames from one dataplane thread of a node to another: all of them, in order, unaltered, though the reader sleeps;
 * and at most as many as there is room for. A wake-up that is lost hangs the test. */
#include <pthread.h>
#include <semaphore.h>

#include "apps/node/handoff.h"
#include "tests/test.h"

enum { THREADS = 3, FRAMES = 100000, FRAME_BYTES = 200 };

struct sleeper {
    struct cw_port port; /* first */
    sem_t wakes;
};

static void wake(struct cw_port *port)
{
    sem_post(&((struct sleeper *)port)->wakes);
}

static const struct cw_port_ops operations = {.wake = wake};

static struct sleeper sleepers[THREADS];
static struct cw_port *ports[THREADS];
static struct node_handoff *handoff;

static uint32_t length_of(uint32_t number)
{
    return 4 + number * 31 % (FRAME_BYTES - 4 + 1);
}

static void fill(uint8_t *frame, uint32_t from, uint32_t number)
{
    memset(frame, (int)(from * 64 + number % 61), FRAME_BYTES);
    memcpy(frame, &number, sizeof(number));
}

static void *write_all(void *argument)
{
    uint32_t from = *(const uint32_t *)argument;
    for (uint32_t number = 0; number < FRAMES; number++) {
        uint8_t frame[FRAME_BYTES];
        fill(frame, from, number);
        enum node_handoff_kind kind = number % 2 == 0 ? NODE_HANDOFF_FRAME : NODE_HANDOFF_JOIN;
        while (!node_handoff_put(handoff, from, 0, kind, frame, length_of(number))) {
            sched_yield();
        }
    }
    return NULL;
}

static void open_all(void)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        sleepers[i].port.ops = &operations;
        sem_init(&sleepers[i].wakes, 0, 0);
        ports[i] = &sleepers[i].port;
    }
    handoff = node_handoff_make(THREADS, ports, FRAME_BYTES);
    assert_non_null(handoff);
}

static void test_all_arrive_in_order(void **state)
{
    static const uint32_t writers[] = {1, 2};
    uint32_t next[THREADS] = {0};
    pthread_t threads[2];
    open_all();
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_all, (void *)(uintptr_t)&writers[i]), 0);
    }
    while (next[1] < FRAMES || next[2] < FRAMES) {
        bool any = false;
        for (uint32_t from = 1; from < THREADS; from++) {
            const struct node_handed *handed = node_handoff_first(handoff, from, 0);
            uint8_t expected[FRAME_BYTES];
            if (handed == NULL) {
                continue;
            }
            any = true;
            fill(expected, from, next[from]);
            assert_int_equal(handed->length, length_of(next[from]));
            assert_int_equal(handed->kind, next[from] % 2 == 0 ? NODE_HANDOFF_FRAME : NODE_HANDOFF_JOIN);
            assert_memory_equal(handed->bytes, expected, handed->length);
            next[from]++;
            node_handoff_next(handoff, from, 0);
        }
        if (!any) {
            if (!node_handoff_arm(handoff, 0)) {
                sem_wait(&sleepers[0].wakes);
            }
            node_handoff_disarm(handoff, 0);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_false(node_handoff_arm(handoff, 0));
    node_handoff_free(handoff);
}

static void test_room_has_an_end(void **state)
{
    uint8_t frame[FRAME_BYTES + 1] = {0};
    open_all();
    assert_false(node_handoff_put(handoff, 0, 1, NODE_HANDOFF_FRAME, frame, FRAME_BYTES + 1)); /* too long */
    for (uint32_t i = 0; i < NODE_HANDOFF_SLOTS; i++) {
        assert_true(node_handoff_put(handoff, 0, 1, NODE_HANDOFF_FRAME, frame, FRAME_BYTES));
    }
    assert_false(node_handoff_put(handoff, 0, 1, NODE_HANDOFF_FRAME, frame, 1));
    assert_true(node_handoff_put(handoff, 2, 1, NODE_HANDOFF_FRAME, frame, 1)); /* another's is not full */
    assert_true(node_handoff_put(handoff, 1, 0, NODE_HANDOFF_FRAME, frame, 1)); /* nor the way back */
    node_handoff_next(handoff, 0, 1);
    assert_true(node_handoff_put(handoff, 0, 1, NODE_HANDOFF_FRAME, frame, 1));
    assert_int_equal(node_handoff_members(handoff, 2), 0);
    node_handoff_members_set(handoff, 2, 5);
    assert_int_equal(node_handoff_members(handoff, 2), 5);
    node_handoff_free(handoff);
}

int main(void)
{
    return TESTS_RUN(test_all_arrive_in_order, test_room_has_an_end);
}
