#include "mpi/runtime/lock.h"

#include <assert.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

struct mpi_lock mpi_lock;

/* The shared lock: recursive by hand, so that mpi_lock_breathe can release all levels. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int depth;

/* Registers for barriers at the first use; false: the kernel has none for us. */
static bool barrier_run(void)
{
    static bool is_registered;
    if (!is_registered) {
        is_registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    }
    return is_registered && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/* The control thread is inside, or about to look: step back until it is through. */
static void control_await(void)
{
    do {
        atomic_store_explicit(&mpi_lock.inside, 0, memory_order_release);
        while (atomic_load_explicit(&mpi_lock.wanted, memory_order_acquire) != 0) {
            sched_yield();
        }
        atomic_store_explicit(&mpi_lock.inside, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
    } while (atomic_load_explicit(&mpi_lock.wanted, memory_order_acquire) != 0);
}

void mpi_lock_acquire_slowly(void)
{
    if (!atomic_load_explicit(&mpi_lock.shared, memory_order_relaxed)) {
        control_await();
        return;
    }
    if (depth++ == 0) {
        pthread_mutex_lock(&mutex);
        atomic_store_explicit(&mpi_lock.inside, 1, memory_order_relaxed);
    }
}

void mpi_lock_release_slowly(void)
{
    assert(depth > 0);
    if (--depth == 0) {
        atomic_store_explicit(&mpi_lock.inside, 0, memory_order_relaxed);
        pthread_mutex_unlock(&mutex);
    }
}

void mpi_lock_share(void)
{
    assert(atomic_load_explicit(&mpi_lock.inside, memory_order_relaxed) == 1);
    pthread_mutex_lock(&mutex);
    depth = 1;
    atomic_store_explicit(&mpi_lock.shared, true, memory_order_relaxed);
}

static bool control_enter(void)
{
    if (atomic_load_explicit(&mpi_lock.shared, memory_order_relaxed)) {
        return pthread_mutex_trylock(&mutex) == 0;
    }
    if (atomic_load_explicit(&mpi_lock.inside, memory_order_relaxed) != 0) {
        return false;
    }
    atomic_store_explicit(&mpi_lock.wanted, 1, memory_order_relaxed);
    /* pairs with the release in mpi_lock_release: writes of the application's thread */
    if (barrier_run() && atomic_load_explicit(&mpi_lock.inside, memory_order_acquire) == 0 && !mpi_lock_is_shared()) {
        return true;
    }
    atomic_store_explicit(&mpi_lock.wanted, 0, memory_order_relaxed);
    return false;
}

bool mpi_lock_try_control(void)
{
    bool entered = control_enter();
    if (entered) {
        mpi_lock.by_control = true;
    }
    return entered;
}

void mpi_lock_release_control(void)
{
    mpi_lock.by_control = false;
    if (atomic_load_explicit(&mpi_lock.shared, memory_order_relaxed)) {
        pthread_mutex_unlock(&mutex);
        return;
    }
    /* pairs with the acquire in mpi_lock_acquire */
    atomic_store_explicit(&mpi_lock.wanted, 0, memory_order_release);
}

/* Releases the mutex, waits, and acquires it again. */
static void step_aside(unsigned microseconds)
{
    atomic_store_explicit(&mpi_lock.inside, 0, memory_order_relaxed);
    pthread_mutex_unlock(&mutex);
    if (microseconds == 0) {
        sched_yield();
    } else {
        usleep(microseconds);
    }
    pthread_mutex_lock(&mutex);
    atomic_store_explicit(&mpi_lock.inside, 1, memory_order_relaxed);
}

void mpi_lock_breathe(void)
{
    /* otherwise only the control thread could enter, and it does not while a thread waits inside */
    if (mpi_lock_is_shared()) {
        step_aside(0);
    }
}

void mpi_lock_pause(unsigned microseconds)
{
    assert(mpi_lock_is_shared());
    step_aside(microseconds);
}
