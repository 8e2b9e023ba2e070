/* Handles distinguished from freed and foreign ones, and the lock: never two inside, for any threads. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "mpi/runtime/lock.h"
#include "mpi/state/handle.h"
#include "tests/test.h"

static int objects[3000];

static void handles_name_their_object_until_they_are_freed(void **state)
{
    uintptr_t handles[3000];
    for (int i = 0; i < 3000; i++) {
        handles[i] = mpi_handle_make(MPI_KIND_GROUP, &objects[i]);
        assert_true(handles[i] >= 0x1000 && handles[i] < 0x80000000u);
    }
    for (int i = 0; i < 3000; i++) {
        assert_ptr_equal(mpi_handle_object(MPI_KIND_GROUP, handles[i]), &objects[i]);
        assert_null(mpi_handle_object(MPI_KIND_COMM, handles[i]));
        mpi_handle_free(MPI_KIND_GROUP, handles[i]);
        assert_null(mpi_handle_object(MPI_KIND_GROUP, handles[i]));
    }
    assert_null(mpi_handle_object(MPI_KIND_GROUP, 0));
    assert_null(mpi_handle_object(MPI_KIND_GROUP, 0x7fffffff));
    assert_null(mpi_handle_object(MPI_KIND_GROUP, UINTPTR_MAX));
}

static void an_old_handle_is_not_mistaken_for_a_new_one(void **state)
{
    uintptr_t old = mpi_handle_make(MPI_KIND_INFO, &objects[0]);
    mpi_handle_free(MPI_KIND_INFO, old);
    for (int i = 0; i < 5000; i++) {
        uintptr_t handle = mpi_handle_make(MPI_KIND_INFO, &objects[1]);
        assert_true(handle != old);
        assert_null(mpi_handle_object(MPI_KIND_INFO, old));
        mpi_handle_free(MPI_KIND_INFO, handle);
    }
}

enum { ROUNDS = 50000 };

static long long inside_count; /* plain: only the lock keeps it right */
static atomic_bool is_over;
static atomic_llong rounds_done;
static long long control_count;

/* As the control thread does: tries now and then, and is often refused. */
static void *control_run(void *context)
{
    long long next = 0;
    while (!atomic_load(&is_over)) {
        if (atomic_load(&rounds_done) < next) {
            sched_yield();
            continue;
        }
        next = atomic_load(&rounds_done) + 97;
        if (mpi_lock_try_control()) {
            for (int i = 0; i < 10; i++) {
                inside_count++;
            }
            control_count++;
            mpi_lock_release_control();
        }
    }
    return NULL;
}

static void application_run(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        mpi_lock_acquire();
        inside_count++;
        mpi_lock_acquire(); /* a callback calls MPI */
        inside_count++;
        mpi_lock_release();
        inside_count++;
        mpi_lock_release();
        atomic_fetch_add_explicit(&rounds_done, 1, memory_order_relaxed);
    }
}

static void the_control_thread_and_the_application_exclude_each_other(void **state)
{
    pthread_t control;
    inside_count = control_count = 0;
    atomic_store(&rounds_done, 0);
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&control, NULL, control_run, NULL), 0);
    do {
        application_run();
    } while (control_count == 0 && inside_count < 1000ll * ROUNDS);
    long long rounds_total = 0;
    atomic_store(&is_over, true);
    pthread_join(control, NULL);
    rounds_total = inside_count - 10 * control_count;
    assert_true(control_count > 0);
    assert_int_equal(rounds_total % (3ll * ROUNDS), 0);
}

static void *application_thread(void *context)
{
    for (int round = 0; round < ROUNDS / 10; round++) {
        mpi_lock_acquire();
        inside_count++;
        if (round % 100 == 0) {
            mpi_lock_breathe();
        }
        inside_count++;
        mpi_lock_release();
        atomic_fetch_add_explicit(&rounds_done, 1, memory_order_relaxed);
    }
    return NULL;
}

/* The last test: a lock stays shared. */
static void threads_exclude_each_other_once_the_lock_is_shared(void **state)
{
    pthread_t threads[4], control;
    mpi_lock_acquire();
    mpi_lock_share();
    mpi_lock_release();
    inside_count = control_count = 0;
    atomic_store(&rounds_done, 0);
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&control, NULL, control_run, NULL), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, application_thread, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    atomic_store(&is_over, true);
    pthread_join(control, NULL);
    assert_int_equal(inside_count, 4 * 2 * (ROUNDS / 10) + 10 * control_count);
}

int main(void)
{
    return TESTS_RUN(handles_name_their_object_until_they_are_freed, an_old_handle_is_not_mistaken_for_a_new_one,
                     the_control_thread_and_the_application_exclude_each_other,
                     threads_exclude_each_other_once_the_lock_is_shared);
}
