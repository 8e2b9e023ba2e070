#include "mpi/runtime/waiting.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/settings/settings.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/virtual.h"
#include "mpi/runtime/enter.h"
#include "mpi/runtime/errhandler.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/lock.h"
#include "mpi/state/process.h"

enum {
    ASKED_BY_LAUNCHER = 1,
    ASKED_BY_ALARM = 2,
    ANSWER_TRIES = 150, /* of the control thread, each 2 ms: waiting threads look at least every 100 ms */
    ANSWER_PAUSE_US = 2000,
    LINE_BYTES = 1024,
};
#define NS_PER_SECOND    1000000000ull
#define ASK_NS           NS_PER_SECOND
#define COMPARE_FIRST_NS 20000000ull /* most waits have ended by then */

_Atomic uint32_t mpi_waiting_asked;

static struct mpi_waiting *first;
static struct cw_watch *watch;
static const struct mpi_waiting_parts *parts;
static uint64_t patience_ns;       /* 0: forever */
static _Atomic uint64_t spoken_ns; /* when this process last spoke on standard error */

/* ---- writing ---- */

void mpi_describe(struct mpi_said *said, const char *format, ...)
{
    size_t room = sizeof(said->answer.text) - said->used;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(said->answer.text + said->used, room, format, arguments);
    va_end(arguments);
    said->used += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

void mpi_describe_comm(struct mpi_said *said, const struct mpi_comm *comm)
{
    mpi_describe(said, "%s", comm->name[0] != '\0' ? comm->name : "a communicator without a name");
}

static void awaited_add(struct cw_watch_answer *answer, uint32_t rank)
{
    for (uint32_t i = 0; i < answer->awaited_count; i++) {
        if (answer->awaited[i] == rank) {
            return;
        }
    }
    if (answer->awaited_count < CW_WATCH_AWAITED_MAX) {
        answer->awaited[answer->awaited_count++] = rank;
    }
}

void mpi_describe_awaited(struct mpi_said *said, const struct mpi_comm *comm, int rank)
{
    for (int at = 0; at < comm->size; at++) {
        if (at == rank || (rank == MPI_ANY_SOURCE && at != comm->rank)) {
            awaited_add(&said->answer, comm->group->ranks[at]);
        }
    }
}

static void duration_describe(struct mpi_said *said, uint64_t duration_ns)
{
    mpi_describe(said, duration_ns < 10 * NS_PER_SECOND ? "%.1f s" : "%.0f s", (double)duration_ns / NS_PER_SECOND);
}

/* ---- answering, within the lock ---- */

static void waits_describe(struct mpi_said *said, uint64_t now_ns)
{
    for (const struct mpi_waiting *waiting = first; waiting != NULL; waiting = waiting->next) {
        mpi_describe(said, "%s", waiting == first ? "" : "; and ");
        duration_describe(said, now_ns - waiting->since_ns);
        if (now_ns - waiting->since_ns > said->answer.waited_ns) {
            said->answer.waited_ns = now_ns - waiting->since_ns;
        }
        mpi_describe(said, " in %s", waiting->call);
        if (waiting->wait->describe != NULL) {
            mpi_describe(said, ": ");
            waiting->wait->describe(waiting->wait->context, said);
        }
    }
    snprintf(said->answer.brief, sizeof(said->answer.brief), "in %s", first->call);
}

static void line_print(const struct cw_watch_answer *answer)
{
    char line[LINE_BYTES];
    int length = snprintf(line, sizeof(line), "causeway: rank %" PRIu32 ": %s\n", mpi_process.rank, answer->text);
    ssize_t done = write(STDERR_FILENO, line, (size_t)length); /* in one piece: lines of several ranks stay whole */
    (void)done;
}

/* To the processes that have asked. */
static void hand_over(uint32_t asked, struct cw_watch_answer *answer, uint64_t now_ns)
{
    if ((asked & ASKED_BY_ALARM) != 0) {
        atomic_store_explicit(&spoken_ns, now_ns, memory_order_relaxed);
        line_print(answer);
        mpi_process.has_notified_launcher |= cw_virtual_is_on(); /* from now on the simulator sees what moves */
    }
    if ((asked & ASKED_BY_LAUNCHER) != 0) {
        answer->moved = cw_job_moved(mpi_process.job) - mpi_process.questions_taken;
        mpi_process.has_notified_launcher = true;
        cw_watch_reply(watch, cw_watch_query_number(watch), answer);
    }
}

void mpi_waiting_answer(void)
{
    struct mpi_said said = {.used = 0};
    uint32_t asked = atomic_exchange_explicit(&mpi_waiting_asked, 0, memory_order_relaxed);
    if (asked == 0) {
        return; /* another one has taken the question */
    }
    uint64_t now_ns = cw_clock_ns();
    waits_describe(&said, now_ns);
    hand_over(asked, &said.answer, now_ns);
    for (struct mpi_waiting *waiting = first; (asked & ASKED_BY_ALARM) != 0 && waiting != NULL;
         waiting = waiting->next) {
        waiting->speak_ns = UINT64_MAX;
    }
}

void mpi_waiting_begin(struct mpi_waiting *waiting, const struct mpi_wait *wait, uint64_t now_ns)
{
    waiting->wait = wait;
    waiting->call = mpi_call_name();
    waiting->since_ns = now_ns;
    waiting->ask_ns = now_ns + ASK_NS;
    waiting->compare_ns = now_ns + COMPARE_FIRST_NS;
    waiting->speak_ns = patience_ns == 0 ? UINT64_MAX : now_ns + patience_ns;
    waiting->next = first;
    first = waiting;
}

void mpi_waiting_end(struct mpi_waiting *waiting)
{
    struct mpi_waiting **link = &first;
    while (*link != waiting) {
        link = &(*link)->next;
    }
    *link = waiting->next;
}

/* An awaited rank may wait for the dead rank, and only the dead rank could report it. */
static void dead_check(const struct mpi_waiting *waiting, uint64_t now_ns)
{
    uint32_t rank = mpi_process.dead_rank;
    if (rank != UINT32_MAX && !mpi_process.returns_errors && mpi_errhandler_is_fatal(MPI_COMM_WORLD)) {
        (void)mpi_error(MPI_COMM_WORLD, MPI_ERR_PROC_ABORTED,
                        "rank %" PRIu32 " is declared failed, and this call has waited for others for %.1f s", rank,
                        (double)(now_ns - waiting->since_ns) / NS_PER_SECOND);
    }
}

void mpi_waiting_probe(struct mpi_waiting *waiting, uint64_t now_ns)
{
    struct mpi_said said = {.used = 0};
    waiting->ask_ns = now_ns + ASK_NS;
    dead_check(waiting, now_ns);
    if (waiting->wait->describe != NULL) {
        waiting->wait->describe(waiting->wait->context, &said);
    }
    for (uint32_t i = 0; i < said.answer.awaited_count; i++) {
        uint32_t rank = said.answer.awaited[i];
        if (rank != mpi_process.rank) {
            cw_paths_probe(mpi_process.paths, rank);
        }
    }
    if (said.answer.awaited_count == 0 || said.answer.awaited_count == CW_WATCH_AWAITED_MAX) {
        cw_paths_probe_here(mpi_process.paths); /* it cannot name the ranks, or not all of them */
    }
}

void mpi_waiting_compare(struct mpi_waiting *waiting, uint64_t now_ns)
{
    waiting->compare_ns = now_ns + ASK_NS;
    parts->compare();
}

static uint32_t alarms_seen;
static uint32_t launcher_seen; /* questions */

void mpi_waiting_speak(struct mpi_waiting *waiting, uint64_t now_ns)
{
    uint64_t spoken = atomic_load_explicit(&spoken_ns, memory_order_relaxed);
    waiting->speak_ns = UINT64_MAX;
    if (spoken != 0 && now_ns - spoken < patience_ns / 2) {
        return; /* has been reported already, with another wait or another rank's */
    }
    patience_ns *= 2;
    if (watch != NULL) {
        cw_watch_alarm_raise(watch); /* the others will speak, too; so will this rank, which is asked like them */
    }
    atomic_fetch_or_explicit(&mpi_waiting_asked, ASKED_BY_ALARM, memory_order_relaxed);
    mpi_waiting_answer();
}

/* ---- the control thread ---- */

/* Knowledge about calls that come and go; the count is that of the last heartbeat. Relaxed: only figures. */
static struct {
    uint64_t calls;
    _Atomic uint64_t calls_since; /* in the time before it */
    _Atomic uint64_t changed_ns;
} seen;

static void calls_look(uint64_t now_ns)
{
    uint64_t calls = atomic_load_explicit(&mpi_activity.calls, memory_order_relaxed);
    seen.calls_since = calls - seen.calls;
    seen.calls = calls;
    if (seen.calls_since != 0 || seen.changed_ns == 0) {
        seen.changed_ns = now_ns;
    }
}

/* No thread of the program waits. `is_outside`: none is inside either, and we have the lock. */
static void absence_answer(bool is_outside)
{
    struct mpi_said said = {.used = 0};
    const char *call = atomic_load_explicit(&mpi_activity.call, memory_order_relaxed);
    uint32_t asked = atomic_exchange_explicit(&mpi_waiting_asked, 0, memory_order_relaxed);
    uint64_t now_ns = cw_clock_ns();
    if (asked == 0) {
        return;
    }
    if (!is_outside) {
        mpi_describe(&said, "in %s, where it does not wait", call);
        snprintf(said.answer.brief, sizeof(said.answer.brief), "in %s, where it does not wait", call);
    } else if (seen.calls_since > 1) {
        mpi_describe(&said, "in no call that waits; about %" PRIu64 " calls in the last half second, the last one %s",
                     seen.calls_since, call);
        snprintf(said.answer.brief, sizeof(said.answer.brief), "which calls %s again and again", call);
        parts->describe_posted(&said);
    } else {
        mpi_describe(&said, "outside of MPI for ");
        duration_describe(&said, now_ns - seen.changed_ns);
        mpi_describe(&said, "; last call %s", call);
        snprintf(said.answer.brief, sizeof(said.answer.brief), "outside of MPI; its last call was %s", call);
        parts->describe_posted(&said);
        said.answer.awaited_count = 0; /* it waits for no rank yet */
    }
    hand_over(asked, &said.answer, now_ns);
}

void mpi_waiting_answer_asking(void)
{
    if (first != NULL) {
        mpi_waiting_answer(); /* several threads: waiting ones release the lock */
    } else {
        absence_answer(true);
    }
}

/* Questions of the launcher and of other ranks' alarms that have come since the last look. */
static uint32_t questions_look(uint64_t now_ns)
{
    uint32_t asked = cw_watch_query_number(watch), alarms = cw_watch_alarms(watch), questions = 0;
    if (asked != launcher_seen) {
        launcher_seen = asked;
        questions |= ASKED_BY_LAUNCHER;
    }
    if (alarms != alarms_seen) {
        alarms_seen = alarms;
        uint64_t spoken = atomic_load_explicit(&spoken_ns, memory_order_relaxed);
        /* several ranks may raise an alarm at about the same time */
        questions |= spoken == 0 || now_ns - spoken > NS_PER_SECOND ? ASKED_BY_ALARM : 0;
    }
    if (questions != 0) {
        atomic_fetch_or_explicit(&mpi_waiting_asked, questions, memory_order_relaxed);
    }
    return questions;
}

void mpi_waiting_look(void)
{
    if (watch != NULL && questions_look(cw_clock_ns()) != 0) {
        mpi_waiting_answer_asking();
    }
}

/* Ensures that a question is answered: by waiting or polling threads, or, if there are none, by us. */
static void answer_await(void)
{
    for (int try = 0; try < ANSWER_TRIES; try++) {
        if (!mpi_waiting_is_queried()) {
            return;
        }
        if (mpi_lock_try_control()) {
            mpi_waiting_answer_asking();
            mpi_lock_release_control();
            return;
        }
        usleep(ANSWER_PAUSE_US);
    }
    absence_answer(false);
}

void mpi_waiting_heartbeat(void)
{
    uint64_t now_ns = cw_clock_ns();
    calls_look(now_ns);
    if (watch == NULL) {
        return;
    }
    if (questions_look(now_ns) != 0) {
        answer_await();
    }
}

/* ---- life ---- */

bool mpi_waiting_start(uint32_t rank, uint32_t size, const struct mpi_waiting_parts *all_parts)
{
    parts = all_parts;
    const char *origin;
    if (!cw_settings_watchdog(&patience_ns, &origin)) {
        return false;
    }
    watch = cw_watch_open(rank, size);
    if (watch != NULL) {
        alarms_seen = cw_watch_alarms(watch);
    }
    return true;
}

void mpi_waiting_stop(void)
{
    cw_watch_close(watch);
    watch = NULL;
}
