#include "mpi/runtime/progress.h"

#include <assert.h>
#include <sched.h>
#include <unistd.h>

#include "control/job/control.h"
#include "control/job/dedicate.h"
#include "control/job/job.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/process.h"
#include "dataplane/base/yield_policy.h"
#include "mpi/runtime/lock.h"
#include "mpi/runtime/virtual.h"
#include "mpi/runtime/waiting.h"
#include "mpi/state/process.h"

/* How long a wait looks before it lets others have the core, and yields before it sleeps. */
enum { SPIN_ROUNDS = 2000, SPINS_TO_DOUBT = 64, SPINS_TO_PAUSE = 16, YIELDS = 20, ASKS_TO_SLEEP = 32 };
#define MOVE_INTERVAL_NS 20000000ull
#define YIELD_NS         1000000ull
#define SLEEP_NS         100000000ull /* then it checks whether the others are still there */
#define SLEEP_VIRTUAL_NS 1000000000ull
#define ASK_AGAIN_NS     5000ull /* from call to call of a program that does nothing in between */
#define ASK_SLEEP_NS     200000ull
#define BLIND_SLEEP_NS   500000ull
#define NAP_US           100 /* between looks of one of several threads: they cannot all sleep on the inbox */

static mpi_progress_turn turns[MPI_PROGRESS_TURNS_MAX];
static uint32_t turn_count;
bool mpi_progress_is_due;
bool mpi_progress_is_blind;
static struct mpi_progress_user *users;
static void no_doze(bool asleep)
{
    (void)asleep;
}

static bool no_memory(void)
{
    return false;
}

static struct mpi_progress_memory memory = {.doze = no_doze, .can_continue = no_memory};

static bool memory_can_continue(void *context)
{
    (void)context;
    return memory.can_continue();
}

uint32_t mpi_progress(void)
{
    uint32_t count = cw_paths_poll(mpi_process.paths);
    if (mpi_progress_is_due) {
        mpi_progress_is_due = false;
        for (uint32_t i = 0; i < turn_count; i++) {
            count += turns[i]();
        }
    }
    for (struct mpi_progress_user *user = users, *next; user != NULL; user = next) {
        next = user->next;
        count += user->turn(user);
    }
    return count;
}

void mpi_progress_add(mpi_progress_turn turn)
{
    assert(turn_count < MPI_PROGRESS_TURNS_MAX);
    turns[turn_count++] = turn;
}

void mpi_progress_watch_memory(const struct mpi_progress_memory *watched)
{
    memory = *watched;
}

void mpi_progress_join(struct mpi_progress_user *user)
{
    user->next = users;
    users = user;
}

void mpi_progress_leave(struct mpi_progress_user *user)
{
    struct mpi_progress_user **link = &users;
    while (*link != user) {
        link = &(*link)->next;
    }
    *link = user->next;
}

/* The control thread is notified of the first. It finds out itself that nothing is pending any more: requests come and
 * go all the time. */
static int pending_count;
static bool pending_is_notified;

static void pending_notify(bool pending)
{
    if (pending_is_notified != pending) {
        pending_is_notified = pending;
        cw_control_pending(mpi_process.control, pending ? 1 : -1);
    }
}

void mpi_progress_pending(int change)
{
    pending_count += change;
    if (!pending_is_notified && pending_count > 0) {
        pending_notify(true);
    }
}

void mpi_progress_rest(void)
{
    pending_notify(pending_count > 0);
}

/* One of several threads waits: outside of the lock, so that the others get on. */
static void wait_among_threads(uint64_t waited_ns)
{
    mpi_lock_breathe();
    if (waited_ns > YIELD_NS) {
        mpi_lock_pause(NAP_US);
    }
}

static bool sleep_is_over(void *context)
{
    const struct mpi_wait *wait = context;
    return (wait->doze != NULL && wait->is_over(wait->context)) || memory.can_continue();
}

/* Sleeps until an event; then checks whether the awaited ranks are still there. */
static void wait_asleep(const struct mpi_wait *wait, uint64_t compare_ns)
{
    static uint64_t watch_ns;
    uint64_t before_ns = cw_clock_ns();
    pending_notify(false); /* this thread is inside, and services everything itself */
    if (wait->doze != NULL) {
        wait->doze(wait->context, true);
    }
    memory.doze(true);
    uint64_t sleep_ns = cw_virtual_is_on() ? SLEEP_VIRTUAL_NS : SLEEP_NS;
    sleep_ns = compare_ns > before_ns && compare_ns - before_ns < sleep_ns ? compare_ns - before_ns : sleep_ns;
    bool is_blind = mpi_progress_is_blind || cw_job_is_busy(mpi_process.job);
    sleep_ns = is_blind && sleep_ns > BLIND_SLEEP_NS ? BLIND_SLEEP_NS : sleep_ns;
    cw_paths_wait(mpi_process.paths, sleep_ns, sleep_is_over, (void *)(uintptr_t)wait);
    memory.doze(false);
    if (wait->doze != NULL) {
        wait->doze(wait->context, false);
    }
    mpi_progress_rest();
    if (before_ns >= watch_ns) { /* sleeps may be shorter all the time */
        watch_ns = before_ns + SLEEP_NS;
        cw_paths_watch(mpi_process.paths);
    }
}

/* The wait is no short one: it is noted, and speaks when it has lasted too long. */
static void wait_note(struct mpi_waiting *waiting, const struct mpi_wait *wait, uint64_t now_ns)
{
    if (waiting->since_ns == 0) {
        mpi_waiting_begin(waiting, wait, now_ns);
        return;
    }
    if (now_ns >= waiting->ask_ns) {
        mpi_waiting_probe(waiting, now_ns);
    }
    if (now_ns >= waiting->compare_ns) {
        mpi_waiting_compare(waiting, now_ns);
    }
    if (now_ns >= waiting->speak_ns) {
        mpi_waiting_speak(waiting, now_ns);
    }
}

/* Two ranks that communicate have come to share a core, though there are enough for all: the kernel places a woken
 * thread next to its waker. One of them moves. */
static void core_leave(uint32_t core)
{
    static uint64_t next_ns;
    cpu_set_t cores, others;
    uint64_t now_ns = cw_clock_ns();
    if (now_ns < next_ns || sched_getaffinity(0, sizeof(cores), &cores) != 0 || CPU_COUNT(&cores) < 2) {
        return;
    }
    next_ns = now_ns + MOVE_INTERVAL_NS;
    others = cores;
    CPU_CLR(core, &others);
    if (sched_setaffinity(0, sizeof(others), &others) == 0) {
        (void)sched_setaffinity(0, sizeof(cores), &cores);
        (void)cw_paths_share_core(mpi_process.paths, (uint32_t)sched_getcpu());
    }
}

/* Whether spinning keeps the very rank from running that is waited for. */
static bool core_is_shared(void)
{
    int core = sched_getcpu();
    if (core < 0 || !cw_paths_share_core(mpi_process.paths, (uint32_t)core)) {
        return false;
    }
    core_leave((uint32_t)core);
    return true;
}

/* A program that asks again at once does nothing else. If yields do not pay, because another process computes on the
 * core, such a call sleeps for a moment, and an event wakes it: otherwise its time slice would be wasted. */
void mpi_progress_poll(void)
{
    static struct cw_yield_policy yield_policy;
    static uint64_t left_ns;
    static uint32_t in_a_row;
    if (mpi_waiting_is_queried()) {
        mpi_waiting_answer_asking();
    }
    if (cw_virtual_is_on()) {
        if (mpi_progress() == 0) {
            mpi_virtual_poll();
        }
        return;
    }
    if (mpi_progress() > 0 || mpi_process.spin_rounds > 0 || mpi_lock_is_shared()) {
        in_a_row = 0;
        return;
    }
    uint64_t now_ns = cw_clock_ns();
    in_a_row = now_ns - left_ns < ASK_AGAIN_NS ? in_a_row + 1 : 0;
    if (!cw_yield_policy_yield(&yield_policy, now_ns) && in_a_row > ASKS_TO_SLEEP) {
        memory.doze(true);
        cw_paths_wait(mpi_process.paths, ASK_SLEEP_NS, memory_can_continue, NULL);
        memory.doze(false);
    }
    left_ns = cw_clock_ns();
}

void mpi_progress_wait(const struct mpi_wait *wait)
{
    static struct cw_yield_policy yield_policy;
    struct mpi_waiting waiting = {.since_ns = 0};
    uint32_t spins = 0, yields = 0;
    uint64_t idle_since_ns = 0;
    for (;;) {
        uint32_t done = mpi_progress();
        if (wait->is_over(wait->context)) {
            break;
        }
        if (mpi_waiting_is_queried()) {
            wait_note(&waiting, wait, cw_clock_ns());
            mpi_waiting_answer();
        }
        if (done > 0) {
            spins = yields = 0;
            idle_since_ns = 0;
            continue;
        }
        if (cw_virtual_is_on()) {
            wait_note(&waiting, wait, cw_clock_ns());
            mpi_virtual_look();
            cw_virtual_page->needs_others = 1;
            wait_asleep(wait, waiting.compare_ns);
            cw_virtual_page->needs_others = 0;
            continue;
        }
        if (++spins < mpi_process.spin_rounds) {
            if (spins % SPINS_TO_DOUBT == 0 && core_is_shared()) {
                sched_yield();
            }
            if (spins % SPINS_TO_PAUSE == 0) { /* a look takes longer than a pause is there for */
                __builtin_ia32_pause();
            }
            continue;
        }
        uint64_t now_ns = cw_clock_ns();
        wait_note(&waiting, wait, now_ns);
        idle_since_ns = idle_since_ns == 0 ? now_ns : idle_since_ns;
        if (mpi_lock_is_shared()) {
            wait_among_threads(now_ns - idle_since_ns);
        } else if ((yields++ > YIELDS && now_ns - idle_since_ns > YIELD_NS) ||
                   !cw_yield_policy_yield(&yield_policy, now_ns)) {
            wait_asleep(wait, waiting.compare_ns);
        }
    }
    if (waiting.since_ns != 0) {
        mpi_waiting_end(&waiting);
    }
}

uint32_t mpi_progress_spin_rounds(uint32_t busy_here)
{
    if (cw_virtual_is_on()) {
        return 0;
    }
    struct cw_process_cores cores = cw_process_cores();
    /* as at the other ranks of the machine, mostly */
    uint32_t taken = busy_here * cw_job_dedicated(mpi_process.job)->count;
    cores.all = taken == 0 ? cores.all : cores.all > taken ? (uint16_t)(cores.all - taken) : 1;
    return cw_process_crowding(busy_here, cores) == 1 ? SPIN_ROUNDS : 0; /* else core_is_shared notices */
}
