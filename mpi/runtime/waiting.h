/* waiting: the waits of this process, reported on request to the launcher (control/watch/watch.h) or to its own
 * watchdog.
 *
 * Purpose
 *   A wait that has left the spinning phase is in a list, with the name of the call, since when, and a function that
 *   describes it. The holder of the lock may describe all waits. Nearly always that is the waiting thread: it checks
 *   for questions each time it has found nothing to do. If no thread of the program is inside, the control thread
 *   acquires the lock and reports that; if one is inside and does not wait, it reports that, without the lock.
 *
 * Invariants
 *   - Only the holder of the lock describes a wait, so all data that it points to stays valid meanwhile.
 *   - A question is answered once, by the one who takes it (an atomic exchange).
 *   - A wait that lasts asks the ranks on other hosts that it needs, every second, whether they are there. One that is
 *     silent for CAUSEWAY_FAILURE_TIMEOUT is declared failed: the wait ends with an error. So it does within that time
 *     and 1.5 s of the silence's beginning, or its own.
 *   - One that lasts 20 ms, and then every second, asks the ranks that collectives in progress need whether they are in
 *     the same calls: counts that differ may leave all waiting.
 *   - After CAUSEWAY_WATCHDOG seconds a wait speaks once, on standard error; under our launcher the other ranks do so
 *     with it. Each time it has spoken, a process becomes twice as patient.
 *
 * Within the lock of enter.h only, but mpi_waiting_is_queried and mpi_waiting_heartbeat (control thread). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/watch/watch.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/comm.h"

/* An answer that is being written. */
struct mpi_said {
    struct cw_watch_answer answer;
    size_t used; /* of its text */
};

/* Adds to the text; the part without room is left out. */
void mpi_describe(struct mpi_said *said, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* " on NAME". */
void mpi_describe_comm(struct mpi_said *said, const struct mpi_comm *comm);
/* It is blocked without this rank of `comm`; MPI_ANY_SOURCE: any of them. */
void mpi_describe_awaited(struct mpi_said *said, const struct mpi_comm *comm, int rank);

/* A wait, on the stack of the waiting thread. */
struct mpi_waiting {
    const struct mpi_wait *wait;
    const char *call;
    uint64_t since_ns; /* 0: not in the list */
    uint64_t ask_ns;   /* when ranks that it needs are asked next whether they are there */
    /* when calls in progress are compared next with those of other ranks (collective/exchange/refusal.h) */
    uint64_t compare_ns;
    uint64_t speak_ns; /* when it will have lasted too long; UINT64_MAX: it has spoken, or never will */
    struct mpi_waiting *next;
};
void mpi_waiting_begin(struct mpi_waiting *waiting, const struct mpi_wait *wait, uint64_t now_ns);
void mpi_waiting_end(struct mpi_waiting *waiting);
/* Asks the ranks that it needs whether they are there: one that only receives would not notice that another host is cut
 * off. */
void mpi_waiting_probe(struct mpi_waiting *waiting, uint64_t now_ns);
/* Compares calls in progress with those of other ranks. */
void mpi_waiting_compare(struct mpi_waiting *waiting, uint64_t now_ns);
/* It has lasted too long. */
void mpi_waiting_speak(struct mpi_waiting *waiting, uint64_t now_ns);

extern _Atomic uint32_t mpi_waiting_asked;
static inline bool mpi_waiting_is_queried(void)
{
    return atomic_load_explicit(&mpi_waiting_asked, memory_order_relaxed) != 0;
}
void mpi_waiting_answer(void);
/* The same by a thread that does not wait: a call that polls, or the control thread where no thread of the program is
 * inside. */
void mpi_waiting_answer_asking(void);

/* In virtual time, where there is no control thread: looks for an alarm of another rank, and answers it. */
void mpi_waiting_look(void);

/* Control thread, twice a second: looks for questions, and sees that they are answered. */
void mpi_waiting_heartbeat(void);

/* Functions of upper layers for waits: `compare` compares calls in progress with those of other ranks,
 * `describe_posted` lists operations that were begun and are not awaited. */
struct mpi_waiting_parts {
    void (*compare)(void);
    void (*describe_posted)(struct mpi_said *said);
};

/* Reads the environment; `parts` stays the caller's. False: CAUSEWAY_WATCHDOG is invalid. */
bool mpi_waiting_start(uint32_t rank, uint32_t size, const struct mpi_waiting_parts *parts);
/* The control thread asks and answers no more. */
void mpi_waiting_stop(void);
