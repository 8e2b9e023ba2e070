/* Rounds on a segment, and how long ranks wait for each other in them. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/collective/host/state.h"
#include "mpi/point/lost.h"
#include "mpi/state/process.h"

enum {
    HOST_SPINS = 200, /* looks before anything else is done meanwhile, where a rank has a core of its own */
    HOST_YIELDS = 4,  /* ... where it has not: what is waited for is here, and a look at the network costs more */
};

/* Wakes those who sleep, after something that they may wait for. */
static void wake(const struct host_call *call)
{
    if (!cw_segment_sleepers(call->segment)) {
        return;
    }
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        if (rank != call->rank && cw_segment_sleeps(call->segment, rank)) {
            cw_paths_kick(mpi_process.paths, call->host->comm->group->ranks[rank]);
        }
    }
}

int host_break(struct host_call *call, int code)
{
    cw_segment_break(call->segment, code, call->host->why);
    wake(call);
    return code;
}

int host_broken(struct host_call *call)
{
    int code = cw_segment_why(call->segment, call->host->why, sizeof(call->host->why));
    return code != MPI_SUCCESS ? code : MPI_ERR_OTHER;
}

/* MPI_ERR_NOT_SAME: somebody's call differs from the own one, though it is in the same round; MPI_ERR_PROC_ABORTED:
 * somebody has ended; MPI_SUCCESS: neither. */
static int trouble_find(struct host_call *call)
{
    struct mpi_host *host = call->host;
    const struct cw_segment *segment = call->segment;
    uint64_t entered = atomic_load_explicit(&segment->lines[call->rank].entered, memory_order_relaxed);
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        struct cw_segment_call other;
        if (cw_segment_call_of(segment, rank, &other) == entered && other.signature != call->entry.signature) {
            snprintf(host->why, sizeof(host->why),
                     "rank %u is in %s (root %u, %llu bytes), rank %u in %s (root %u, %llu bytes)", rank,
                     cw_collective_name((enum cw_collective)other.kind), other.root, (unsigned long long)other.bytes,
                     call->rank, cw_collective_name((enum cw_collective)call->entry.kind), call->entry.root,
                     (unsigned long long)call->entry.bytes);
            return MPI_ERR_NOT_SAME;
        }
        if (mpi_lost(host->comm, (int)rank)) {
            mpi_comm_lost_text(host->comm, (int)rank, host->why, sizeof(host->why));
            return MPI_ERR_PROC_ABORTED;
        }
    }
    return MPI_SUCCESS;
}

struct awaited {
    struct host_call *call;
    const _Atomic uint64_t *word;
    uint64_t least;
    uint32_t owner; /* of the word; UINT32_MAX: all */
    uint32_t looks;
};

enum { LOOKS_BEFORE_DOUBT = 1024 };

int host_differs(struct host_call *call, int rank)
{
    char who[32] = "somebody else";
    if (rank >= 0) {
        snprintf(who, sizeof(who), "rank %d", rank);
    }
    snprintf(call->host->why, sizeof(call->host->why),
             "rank %u is in %s (root %u, %llu bytes), which %s has not called", call->rank,
             cw_collective_name((enum cw_collective)call->entry.kind), call->entry.root,
             (unsigned long long)call->entry.bytes, who);
    return MPI_ERR_NOT_SAME;
}

/* MPI_ERR_NOT_SAME: a rank has not done in this round what this one did, and has gone on: it called something at whose
 * end nobody waits. */
static int passed_find(struct host_call *call, uint64_t entered, uint64_t round)
{
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        struct cw_segment_call other;
        bool has_left = cw_segment_call_of(call->segment, rank, &other) > entered;
        bool is_signed =
            atomic_load_explicit(cw_segment_published(call->segment, rank, round), memory_order_acquire) >= round;
        if (is_signed ? cw_segment_published_in(call->segment, rank, round) != call->entry.signature : has_left) {
            return host_differs(call, (int)rank);
        }
    }
    return MPI_SUCCESS;
}

/* An error if nothing that could still come would end this wait. Whoever is in a later call has published all that it
 * will of the present one. */
static int hopeless_find(const struct awaited *awaited)
{
    struct host_call *call = awaited->call;
    struct cw_segment_call other;
    int code = trouble_find(call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    uint64_t own = atomic_load_explicit(&call->segment->lines[call->rank].entered, memory_order_relaxed);
    if (awaited->owner == UINT32_MAX) {
        code = awaited->least == call->host->round ? passed_find(call, own, awaited->least) : MPI_SUCCESS;
        /* if the round is over by now, what was seen may be of later ones */
        return atomic_load_explicit(awaited->word, memory_order_acquire) >= awaited->least ? MPI_SUCCESS : code;
    }
    if (cw_segment_call_of(call->segment, awaited->owner, &other) <= own ||
        atomic_load_explicit(awaited->word, memory_order_acquire) >= awaited->least) {
        return MPI_SUCCESS;
    }
    return host_differs(call, (int)awaited->owner);
}

static void hope_check(const struct awaited *awaited)
{
    int code = hopeless_find(awaited);
    if (code != MPI_SUCCESS) {
        (void)host_break(awaited->call, code);
    }
}

static bool is_over(void *context)
{
    struct awaited *awaited = context;
    if (++awaited->looks % LOOKS_BEFORE_DOUBT == 0) {
        hope_check(awaited);
    }
    /* pairs with cw_segment_publish and cw_segment_complete */
    return atomic_load_explicit(awaited->word, memory_order_acquire) >= awaited->least ||
           cw_segment_is_broken(awaited->call->segment);
}

static void doze(void *context, bool asleep)
{
    const struct awaited *awaited = context;
    if (asleep) {
        hope_check(awaited);
    }
    cw_segment_doze(awaited->call->segment, asleep);
}

static void describe(void *context, struct mpi_said *said)
{
    const struct awaited *awaited = context;
    host_describe(awaited->call, awaited->owner, said);
}

/* MPI_SUCCESS, or why the call cannot go on. */
static int await_word(struct host_call *call, const _Atomic uint64_t *word, uint64_t least, uint32_t owner)
{
    uint32_t spins = mpi_process.spin_rounds > 0 ? HOST_SPINS : 0;
    do {
        if (atomic_load_explicit(word, memory_order_acquire) >= least) {
            return MPI_SUCCESS;
        }
        __builtin_ia32_pause();
    } while (spins-- > 0);
    for (uint32_t i = 0; mpi_process.spin_rounds == 0 && i < HOST_YIELDS; i++) {
        sched_yield();
        if (atomic_load_explicit(word, memory_order_acquire) >= least) {
            return MPI_SUCCESS;
        }
    }
    struct awaited awaited = {.call = call, .word = word, .least = least, .owner = owner};
    mpi_progress_wait(&(struct mpi_wait){.is_over = is_over, .doze = doze, .describe = describe, .context = &awaited});
    if (atomic_load_explicit(word, memory_order_acquire) >= least) {
        return MPI_SUCCESS;
    }
    int code = trouble_find(call);
    return code != MPI_SUCCESS ? code : host_broken(call);
}

int host_round(struct host_call *call, bool writes, uint64_t *round)
{
    struct mpi_host *host = call->host;
    *round = ++host->round;
    if (cw_segment_may_write(*round, call->is_short) > host->arrived) {
        /* all have passed by since: before long slots are used again, somebody must have seen all ranks. A flag is
         * written only when nobody looks at the one that was there before. */
        int code =
            await_word(call, cw_segment_completed(call->segment), cw_segment_may_write(*round, true), UINT32_MAX);
        if (code == MPI_SUCCESS) {
            code = host_arrive(call, *round);
        }
        if (code != MPI_SUCCESS) {
            return code;
        }
        *round = ++host->round;
    }
    return writes ? await_word(call, cw_segment_completed(call->segment), cw_segment_may_write(*round, call->is_short),
                               UINT32_MAX)
                  : MPI_SUCCESS;
}

void host_publish(struct host_call *call, uint64_t round)
{
    cw_segment_publish(call->segment, round, call->entry.signature);
    wake(call);
}

int host_pass(struct host_call *call, uint64_t round)
{
    if (!cw_segment_may_pass(round)) {
        return host_arrive(call, round);
    }
    call->host->passed = host_mix(call->host->passed, call->entry.signature);
    call->host->passed_last = call->entry;
    return MPI_SUCCESS;
}

bool host_arrive_last(struct host_call *call, uint64_t round)
{
    struct mpi_host *host = call->host;
    cw_segment_sign(call->segment, round, call->entry.signature);
    enum cw_segment_arrival arrival =
        cw_segment_arrive(call->segment, round, host_mix(host->passed, call->entry.signature));
    if (arrival == CW_SEGMENT_DIFFERENT) {
        if (trouble_find(call) ==
            MPI_SUCCESS) { /* who differs has gone on to its next call, or did so in one that was passed by */
            const struct cw_segment_call *last = host->passed != 0 ? &host->passed_last : &call->entry;
            snprintf(host->why, sizeof(host->why),
                     "the calls did not match when rank %u was in %s (root %u, %llu bytes), or shortly before",
                     call->rank, cw_collective_name((enum cw_collective)last->kind), last->root,
                     (unsigned long long)last->bytes);
        }
        call->is_different = true;
        (void)host_break(call, MPI_ERR_NOT_SAME);
    }
    host->arrived = round;
    host->passed = 0;
    return arrival == CW_SEGMENT_LAST;
}

void host_complete(struct host_call *call, uint64_t round)
{
    cw_segment_complete(call->segment, round);
    wake(call);
}

int host_arrive(struct host_call *call, uint64_t round)
{
    if (host_arrive_last(call, round)) {
        host_complete(call, round);
    }
    return call->is_different ? MPI_ERR_NOT_SAME : MPI_SUCCESS;
}

int host_await(struct host_call *call, uint32_t rank, uint64_t round)
{
    int code = await_word(call, cw_segment_published(call->segment, rank, round), round, rank);
    if (code != MPI_SUCCESS || cw_segment_published_in(call->segment, rank, round) == call->entry.signature) {
        return code;
    }
    bool is_notified = trouble_find(call) == MPI_ERR_NOT_SAME; /* names both calls, if the other rank is in it still */
    return host_break(call, is_notified ? MPI_ERR_NOT_SAME : host_differs(call, (int)rank));
}

int host_await_all(struct host_call *call, uint64_t round)
{
    return await_word(call, cw_segment_completed(call->segment), round, UINT32_MAX);
}

/* A copy that fails leaves the others waiting for nothing. */
static int copied(struct host_call *call, uint32_t rank, int status)
{
    if (status == CW_OK) {
        return MPI_SUCCESS;
    }
    snprintf(call->host->why, sizeof(call->host->why), "memory of rank %u cannot be reached: %s", rank,
             cw_status_text(status));
    return host_break(call, MPI_ERR_OTHER);
}

int host_copy_from(struct host_call *call, uint32_t rank, void *to, uint64_t address, uint64_t bytes)
{
    uint32_t world = call->host->comm->group->ranks[rank];
    return copied(call, rank, cw_paths_copy_from(mpi_process.paths, world, to, address, bytes));
}

int host_copy_to(struct host_call *call, uint32_t rank, uint64_t address, const void *from, uint64_t bytes)
{
    if (cw_segment_is_broken(call->segment)) {
        return host_broken(call);
    }
    uint32_t world = call->host->comm->group->ranks[rank];
    return copied(call, rank, cw_paths_copy_to(mpi_process.paths, world, address, from, bytes));
}
