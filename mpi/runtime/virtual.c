#include "mpi/runtime/virtual.h"

#include <stdatomic.h>
#include <stdio.h>

#include "dataplane/base/clock.h"
#include "mpi/runtime/enter.h"
#include "mpi/runtime/lock.h"
#include "mpi/runtime/progress.h"
#include "mpi/runtime/waiting.h"
#include "mpi/state/process.h"

enum { EXIT_STUCK = 1, POLLS_A_DOUBLING = 16, DOUBLINGS_MAX = 7 };

static void pass(uint64_t duration_ns)
{
    uint64_t now_ns = cw_clock_ns();
    uint64_t until_ns = duration_ns < CW_VIRTUAL_NEVER - now_ns ? now_ns + duration_ns : CW_VIRTUAL_NEVER;
    while (cw_clock_ns() < until_ns) {
        cw_virtual_wait_until(until_ns);
        while (mpi_process.state == MPI_PROCESS_RUNNING && mpi_progress() > 0) {
        }
    }
}

void mpi_virtual_enter(void)
{
    uint64_t duration_ns = cw_virtual_page->call_ns + cw_virtual_computed_ns();
    if (duration_ns > 0) {
        pass(duration_ns);
    }
}

/* A program that looks again and again finds what arrives at its time of arrival, so its looks may come less and less
 * often: each one of several such ranks is a turn of the simulation. */
void mpi_virtual_poll(void)
{
    static uint32_t in_a_row;
    static uint64_t left_ns;
    uint64_t now_ns = cw_clock_ns();
    in_a_row = now_ns == left_ns ? in_a_row + 1 : 0;
    uint32_t doublings = in_a_row / POLLS_A_DOUBLING;
    doublings = doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX;
    pass((cw_virtual_page->poll_ns << doublings) + cw_virtual_computed_ns());
    left_ns = cw_clock_ns();
    mpi_virtual_look();
}

void mpi_virtual_sleep(uint64_t duration_ns)
{
    mpi_lock_acquire();
    if (atomic_load_explicit(&mpi_lock.inside, memory_order_relaxed) == 1) {
        pass(duration_ns + cw_virtual_computed_ns());
    } else {
        cw_virtual_spend(duration_ns); /* code of the program that an MPI call has called */
    }
    mpi_lock_release();
}

static void stuck_end(void)
{
    fprintf(stderr,
            "causeway: rank %u: no rank of the job can continue (virtual time %.6f s). See above which calls the ranks "
            "wait in\n",
            mpi_process.rank, (double)cw_clock_ns() / 1e9);
    mpi_process_abort(EXIT_STUCK);
}

void mpi_virtual_look(void)
{
    cw_virtual_page->moved = cw_job_moved(mpi_process.job) - mpi_process.questions_taken +
                             atomic_load_explicit(&mpi_activity.calls, memory_order_relaxed);
    mpi_waiting_look();
    if (cw_virtual_page->is_stuck != 0) {
        stuck_end();
    }
}
