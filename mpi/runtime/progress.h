/* progress: work without a call for it: arriving messages, sends that find room, next steps of collectives.
 *
 * mpi_progress is called by every call that waits or tests, and by the control thread when the application has not been
 * here for a while.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* One round; returns how much it did. */
uint32_t mpi_progress(void);

/* One round for a call that asks and does not wait (MPI_Test, MPI_Iprobe). A rank that polls repeatedly lets the others
 * of its core run if there are more ranks than cores: it may depend on one of them. */
void mpi_progress_poll(void);

/* A wait. It ends when `is_over` says so. */
struct mpi_said;
struct mpi_wait {
    bool (*is_over)(void *context);
    /* NULL, or called before and after each sleep, if the wait is for memory that others write
     * (collective/host/host.h): so they can wake it */
    void (*doze)(void *context, bool asleep);
    void (*describe)(void *context, struct mpi_said *said); /* the awaited event (waiting.h) */
    void *context;
};
/* Waits in grades: looks, lets others have the core, sleeps until something comes. */
void mpi_progress_wait(const struct mpi_wait *wait);

/* How many looks a wait makes before it lets others have the core: none if more threads of ranks and of hosts'
 * dataplanes are busy on this machine than there are cores for. */
uint32_t mpi_progress_spin_rounds(uint32_t busy_here);

/* An operation is in progress that the control thread must service while the application computes; or it has ended. */
void mpi_progress_pending(int change);
/* The control thread has found nothing to do: it may rest if nothing is pending any more. */
void mpi_progress_rest(void);

/* Parts of the library that may be left with something to do, such as a message for which there was no room. When one
 * says so, all have a turn in the next round, in the order of adding; it returns how much it did. A part with more to
 * do after its turn requests another. */
enum { MPI_PROGRESS_TURNS_MAX = 4 };
typedef uint32_t (*mpi_progress_turn)(void);
void mpi_progress_add(mpi_progress_turn turn);
extern bool mpi_progress_is_due;
/* No event reports the awaited change: waiting threads sleep for moments only. */
extern bool mpi_progress_is_blind;

/* Memory of other processes that calls in progress wait for (collective/host/host.h), in addition to the memory of this
 * thread's wait: `doze` is called before and after each sleep, `can_continue` between them and the sleep. */
struct mpi_progress_memory {
    void (*doze)(bool asleep);
    bool (*can_continue)(void);
};
void mpi_progress_watch_memory(const struct mpi_progress_memory *memory);

/* Registers something that wants a turn in every round while it is in progress: a collective. */
struct mpi_progress_user {
    uint32_t (*turn)(struct mpi_progress_user *user);
    struct mpi_progress_user *next;
};
void mpi_progress_join(struct mpi_progress_user *user);
void mpi_progress_leave(struct mpi_progress_user *user);
