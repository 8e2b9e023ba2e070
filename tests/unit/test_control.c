/* The control thread: ticks while something is pending, beats in any case, and stays away from signals. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "control/job/control.h"
#include "dataplane/status.h"
#include "tests/test.h"

struct counts {
    _Atomic uint32_t ticks;
    _Atomic uint32_t heartbeats;
    _Atomic bool blocked; /* all signals are */
    char name[16];
    sem_t ticked;
    sem_t beaten;
};

static void tick(void *context)
{
    struct counts *counts = context;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    atomic_store(&counts->blocked, sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGUSR1) == 1 &&
                                       sigismember(&mask, SIGALRM) == 1);
    pthread_getname_np(pthread_self(), counts->name, sizeof(counts->name));
    atomic_fetch_add(&counts->ticks, 1);
    sem_post(&counts->ticked);
}

static void heartbeat(void *context)
{
    struct counts *counts = context;
    atomic_fetch_add(&counts->heartbeats, 1);
    sem_post(&counts->beaten);
}

static struct cw_control *start(struct counts *counts)
{
    struct cw_control *control = NULL;
    char error[128] = "";
    memset(counts, 0, sizeof(*counts));
    sem_init(&counts->ticked, 0, 0);
    sem_init(&counts->beaten, 0, 0);
    const struct cw_control_config config = {.context = counts, .tick = tick, .heartbeat = heartbeat};
    assert_int_equal(cw_control_create(&config, &control, error, sizeof(error)), CW_OK);
    return control;
}

static void await(sem_t *semaphore, int times)
{
    for (int i = 0; i < times; i++) {
        while (sem_wait(semaphore) != 0) {
        }
    }
}

static void test_ticks_while_pending(void **state)
{
    struct counts counts;
    struct cw_control *control = start(&counts);
    cw_control_pending(control, 1);
    await(&counts.ticked, 5);
    cw_control_pending(control, 2);
    cw_control_pending(control, -3);
    cw_control_destroy(control);
    assert_true(atomic_load(&counts.blocked));
    assert_string_equal(counts.name, "cw-control");
    uint32_t ticks = atomic_load(&counts.ticks);
    assert_true(ticks >= 5);
}

static void test_beats_when_idle(void **state)
{
    struct counts counts;
    struct cw_control *control = start(&counts);
    await(&counts.beaten, 2);
    cw_control_destroy(control);
    /* with each beat a tick, and no others */
    assert_in_range(atomic_load(&counts.ticks), 2, atomic_load(&counts.heartbeats) + 1);
}

/* The wake-up is not lost, whenever it comes: each round the thread is somewhere between awake and asleep. */
static void test_every_wake_arrives(void **state)
{
    struct counts counts;
    struct cw_control *control = start(&counts);
    for (int round = 0; round < 100; round++) {
        cw_control_pending(control, 1);
        await(&counts.ticked, 1);
        cw_control_pending(control, -1);
    }
    cw_control_destroy(control);
}

static void test_destroy_at_once(void **state)
{
    for (int round = 0; round < 200; round++) {
        struct counts counts;
        struct cw_control *control = start(&counts);
        cw_control_pending(control, round % 2);
        cw_control_destroy(control);
    }
    cw_control_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks_while_pending),
        cmocka_unit_test(test_beats_when_idle),
        cmocka_unit_test(test_every_wake_arrives),
        cmocka_unit_test(test_destroy_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
