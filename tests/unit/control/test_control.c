/* The control thread: ticks while something is pending, beats in any case, and stays away from signals. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "control/job/control.h"
#include "dataplane/status.h"
#include "tests/unit/dataplane/pair_host.h"

/* The loop that the thread assists; NULL: none. */
static struct cw_loop *loop;
/* Whether it is a dataplane thread. */
static bool has_core;

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
    const struct cw_control_config config = {.loop = loop,
                                             .has_core = has_core,
                                             .core = sched_getcpu(),
                                             .context = counts,
                                             .tick = tick,
                                             .heartbeat = heartbeat};
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
    assert_string_equal(counts.name, has_core ? "cw-dataplane" : "cw-control");
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

/* After `quiet` no callback runs, while the thread still assists. */
static void test_quiet_before_the_end(void **state)
{
    struct counts counts;
    struct cw_control *control = start(&counts);
    cw_control_pending(control, 1);
    await(&counts.ticked, 2);
    cw_control_quiet(control);
    uint32_t ticks = atomic_load(&counts.ticks);
    uint64_t turns = loop != NULL ? cw_loop_counters(loop).turns : 0;
    while (loop != NULL && cw_loop_counters(loop).turns < turns + 3) {
    }
    assert_int_equal(atomic_load(&counts.ticks), ticks);
    cw_control_destroy(control);
    cw_control_quiet(NULL);
}

static void test_no_such_core(void **state)
{
    struct cw_control *control;
    char error[256] = "";
    const struct cw_control_config config = {.has_core = true, .core = 1023, .tick = tick, .heartbeat = heartbeat};
    assert_int_equal(cw_control_create(&config, &control, error, sizeof(error)), CW_ERROR_SYSTEM);
    assert_non_null(strstr(error, "on core 1023"));
}

/* Where the thread is: alone, at a loop, or on a core of its own. */
enum place { ALONE, AT_LOOP, ON_CORE };

static int place_run(enum place place)
{
    static const char *const names[] = {"alone", "at a loop", "on a core of its own"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks_while_pending),  cmocka_unit_test(test_beats_when_idle),
        cmocka_unit_test(test_every_wake_arrives),   cmocka_unit_test(test_destroy_at_once),
        cmocka_unit_test(test_quiet_before_the_end), cmocka_unit_test(test_no_such_core),
    };
    struct cw_port *ports[2];
    struct pair_host host;
    has_core = place == ON_CORE;
    if (place == ALONE) {
        return cmocka_run_group_tests_name(names[place], tests, NULL, NULL);
    }
    pair_port_open(ports);
    pair_host_init(&host, 0, ports[0]);
    host.loop_config.fallback = CW_FALLBACK_CALLER;
    host.loop_config.stands_by = has_core;
    pair_host_open(&host, NULL, 0);
    pair_host_begin(&host);
    loop = host.loop;
    int failed = cmocka_run_group_tests_name(names[place], tests, NULL, NULL);
    pair_host_end(&host);
    cw_port_close(ports[0]);
    cw_port_close(ports[1]);
    return failed;
}

/* A process for each place: all wait for heartbeats at the same time. */
int main(void)
{
    int failed = 0, status;
    for (enum place place = ALONE; place <= ON_CORE; place++) {
        pid_t child = fork();
        if (child == 0) {
            exit(place_run(place) != 0);
        }
        failed += child < 0;
    }
    while (wait(&status) > 0) {
        failed += status != 0;
    }
    return failed;
}
