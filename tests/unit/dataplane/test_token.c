/* The token: each pushed and announced command is run by the thread that gives the token back or by the pusher, in
 * every case. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "dataplane/base/random.h"
#include "dataplane/loop/token.h"
#include "tests/test.h"

enum { ROUNDS = 20000, JITTER = 200 };

/* One round: the owner has the token, gives it back and looks; meanwhile the pusher pushes, announces and tries to take
 * it. */
struct meeting {
    struct cw_token token;
    atomic_uint round;   /* that both may begin */
    atomic_uint owner;   /* that the owner has ended */
    atomic_uint pusher;  /* that the pusher has ended */
    atomic_uint pending; /* pushed and not taken care of */
};

static void idle(uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        atomic_signal_fence(memory_order_seq_cst);
    }
}

static void await(atomic_uint *number, unsigned value)
{
    while (atomic_load_explicit(number, memory_order_acquire) != value) {
        sched_yield();
    }
}

static void *push(void *argument)
{
    struct meeting *meeting = argument;
    struct cw_random random;
    cw_random_seed(&random, 1);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        await(&meeting->round, round);
        idle(cw_random_below(&random, JITTER));
        atomic_store_explicit(&meeting->pending, 1, memory_order_release);
        cw_token_announce(&meeting->token);
        if (cw_token_acquire(&meeting->token)) {
            atomic_store_explicit(&meeting->pending, 0, memory_order_relaxed);
            cw_token_release(&meeting->token);
        }
        atomic_store_explicit(&meeting->pusher, round, memory_order_release);
    }
    return NULL;
}

/* `always_alone` makes every round the first one with an announcement, which is when the kernel's barrier is needed. */
static void run_meetings(bool always_alone)
{
    struct meeting meeting = {0};
    cw_token_init(&meeting.token);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, push, &meeting), 0);
    struct cw_random random;
    cw_random_seed(&random, 2);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        if (always_alone) {
            cw_token_init(&meeting.token);
        }
        assert_true(cw_token_acquire(&meeting.token));
        atomic_store_explicit(&meeting.round, round, memory_order_release);
        idle(cw_random_below(&random, JITTER));
        cw_token_release(&meeting.token);
        if (atomic_load_explicit(&meeting.pending, memory_order_acquire) != 0 && cw_token_acquire(&meeting.token)) {
            atomic_store_explicit(&meeting.pending, 0, memory_order_relaxed);
            cw_token_release(&meeting.token);
        }
        atomic_store_explicit(&meeting.owner, round, memory_order_release);
        await(&meeting.pusher, round);
        assert_int_equal(atomic_load(&meeting.pending), 0);
    }
    pthread_join(thread, NULL);
}

static void test_first_announcement_reaches_an_owner_that_pays_nothing(void **state)
{
    run_meetings(true);
}

static void test_later_announcements_reach_the_owner(void **state)
{
    run_meetings(false);
}

static void test_one_has_it_at_a_time(void **state)
{
    struct cw_token token;
    cw_token_init(&token);
    assert_true(cw_token_acquire(&token));
    assert_true(cw_token_is_held(&token));
    assert_false(cw_token_acquire(&token));
    cw_token_announce(&token);
    assert_false(cw_token_acquire(&token));
    cw_token_release(&token);
    assert_false(cw_token_is_held(&token));
    assert_int_equal(atomic_load(&token.use), CW_TOKEN_SHARED);
    assert_true(cw_token_acquire(&token));
}

/* An owner that never gives the token back, since it turns a dedicated loop, must not cost announcers the kernel's
 * barrier for ever. */
static void test_an_owner_that_keeps_it_notices(void **state)
{
    struct cw_token token;
    cw_token_init(&token);
    assert_true(cw_token_acquire(&token));
    int use = atomic_load(&token.use);
    cw_token_notice(&token);
    assert_int_equal(atomic_load(&token.use), use); /* nothing to notice */
    cw_token_announce(&token);
    cw_token_notice(&token);
    assert_int_equal(atomic_load(&token.use), CW_TOKEN_SHARED);
}

int main(void)
{
    return TESTS_RUN(test_one_has_it_at_a_time, test_an_owner_that_keeps_it_notices,
                     test_first_announcement_reaches_an_owner_that_pays_nothing,
                     test_later_announcements_reach_the_owner);
}
