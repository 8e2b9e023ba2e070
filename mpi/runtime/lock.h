/* lock: one lock a process, for all state of mpi/.
 *
 * Nearly always one thread of the application is all there is, while the control thread wants the lock only when the
 * application has not been here for a millisecond. So the application's thread takes and gives it by plain stores, and
 * the control thread pays: it says that it wants in, has the kernel run a barrier on all cores (membarrier(2)), and
 * then sees whether the other is inside. With MPI_THREAD_MULTIPLE, and where the kernel has no such barrier, all
 * threads use a mutex.
 *
 * Invariants
 *   - mpi_lock_acquire and mpi_lock_release nest within a thread.
 *   - Only the control thread calls mpi_lock_try_control; at most one thread of the application takes the lock at a
 *     time unless it is shared.
 *   - Code of the program (operations, error handlers, attribute functions) never runs while the control thread has the
 *     lock: it could call MPI, and the program does not expect another thread. An operation that needs such code checks
 *     mpi_lock_is_control, and stays for the program's next call.
 *
 * Source of the idea: biased locks (Dice, Moir, Scherer 2003: "Quickly reacquirable locks"). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct mpi_lock {
    _Atomic int inside;  /* how deep the application's thread is in */
    _Atomic int wanted;  /* by the control thread */
    _Atomic bool shared; /* several threads of the application: the mutex decides */
    bool by_control;     /* within the lock only: the control thread has it */
};

extern struct mpi_lock mpi_lock;

void mpi_lock_acquire_slowly(void);
void mpi_lock_release_slowly(void);

static inline void mpi_lock_acquire(void)
{
    int inside = atomic_load_explicit(&mpi_lock.inside, memory_order_relaxed);
    if (!atomic_load_explicit(&mpi_lock.shared, memory_order_relaxed)) {
        atomic_store_explicit(&mpi_lock.inside, inside + 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst); /* the control thread's membarrier turns this into a real one */
        if (inside > 0 || atomic_load_explicit(&mpi_lock.wanted, memory_order_acquire) == 0) {
            return;
        }
    }
    mpi_lock_acquire_slowly();
}

static inline void mpi_lock_release(void)
{
    if (!atomic_load_explicit(&mpi_lock.shared, memory_order_relaxed)) {
        int inside = atomic_load_explicit(&mpi_lock.inside, memory_order_relaxed);
        /* pairs with the acquire in mpi_lock_try_control */
        atomic_store_explicit(&mpi_lock.inside, inside - 1, memory_order_release);
        return;
    }
    mpi_lock_release_slowly();
}

/* Makes the lock one for several threads; by the one thread that there is, inside at one level (MPI_Init_thread). */
void mpi_lock_share(void);

/* Control thread: takes the lock, unless the application is inside. */
bool mpi_lock_try_control(void);
void mpi_lock_release_control(void);

/* Within the lock: whether this is the control thread, on which no code of the program may run. */
static inline bool mpi_lock_is_control(void)
{
    return mpi_lock.by_control;
}

/* Within the lock: lets others have it for a moment, however deep it is nested; for waits. Cheap if no other thread can
 * want it. */
void mpi_lock_breathe(void);
/* The same for a number of microseconds. Only if the lock is shared. */
void mpi_lock_pause(unsigned microseconds);

static inline bool mpi_lock_is_shared(void)
{
    return atomic_load_explicit(&mpi_lock.shared, memory_order_relaxed);
}
