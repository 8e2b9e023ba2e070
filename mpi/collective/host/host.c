#include "mpi/collective/host/host.h"

#include <stdio.h>
#include <string.h>

#include "dataplane/base/clock.h"
#include "dataplane/status.h"
#include "mpi/collective/choice/choice.h"
#include "mpi/collective/host/state.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/state/process.h"

enum {
    HOST_CALLS_BEFORE = 2, /* on a communicator, before it gets a segment */
    HOST_SPINS = 200,      /* looks before anything else is done meanwhile, where a rank has a core of its own */
};

struct service {
    int (*copied)(struct host_call *call); /* through the slots */
    int (*direct)(struct host_call *call); /* long blocks; NULL: never */
    bool in_place; /* `copied` may find what is sent in the receive buffer; `direct`: see takes_in_place */
    bool by_block; /* slots are shared by the blocks of all ranks */
};

static const struct service services[CW_COLLECTIVE_COUNT] = {
    [CW_BARRIER] = {.copied = host_barrier},
    [CW_BCAST] = {.copied = host_bcast, .direct = host_bcast_direct},
    [CW_SCATTER] = {.copied = host_scatter, .direct = host_scatter_direct, .by_block = true},
    [CW_GATHER] = {.copied = host_gather, .direct = host_gather_direct, .in_place = true},
    [CW_ALLGATHER] = {.copied = host_allgather, .direct = host_allgather_direct, .in_place = true},
    [CW_ALLTOALL] = {.copied = host_alltoall, .direct = host_alltoall_direct, .in_place = true, .by_block = true},
    [CW_REDUCE] = {.copied = host_reduce, .in_place = true},
    [CW_ALLREDUCE] = {.copied = host_allreduce, .in_place = true},
    [CW_REDUCE_SCATTER] = {.copied = host_reduce_scatter, .by_block = true},
    [CW_SCAN] = {.copied = host_scan, .in_place = true},
    [CW_EXSCAN] = {.copied = host_scan, .in_place = true},
};

/* Bytes of a block, or the mean of unequal ones. */
static uint64_t block_bytes(const struct mpi_collective *call)
{
    uint64_t count = call->problem.count;
    for (uint32_t rank = 0; call->counts != NULL && rank < call->problem.ranks; rank++) {
        count += call->counts[rank];
    }
    return count * call->problem.element_bytes / (call->counts != NULL ? call->problem.ranks : 1);
}

static uint32_t class_of(uint64_t bytes)
{
    return bytes == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(bytes);
}

/* Overridden, or measured; kept per class of sizes. */
static enum mpi_choice_verdict verdict_on(const struct mpi_collective *call)
{
    struct mpi_collectives *collectives = call->comm->collectives;
    uint8_t *kept =
        &collectives->host_verdicts[call->counts != NULL][call->problem.collective][class_of(block_bytes(call))];
    if (*kept == 0) {
        *kept = (uint8_t)(1 + mpi_choice_judge(call->comm, &call->problem, MPI_HOST_NAME));
    }
    return (enum mpi_choice_verdict)(*kept - 1);
}

bool mpi_host_serves(struct mpi_collective *call)
{
    struct mpi_comm *comm = call->comm;
    struct mpi_collectives *collectives = comm->collectives;
    bool is_scatterv = call->problem.collective == CW_SCATTER && call->counts != NULL;
    if (call->has_rows || call->count_matrix != NULL || is_scatterv || comm->size < 2 ||
        comm->size > CW_SEGMENT_MEMBERS_MAX || collectives->has_no_host) {
        return false;
    }
    const struct service *service = &services[call->problem.collective];
    uint64_t piece = CW_SEGMENT_LONG_BYTES / (service->by_block ? (uint32_t)comm->size : 1u);
    enum mpi_choice_verdict verdict = verdict_on(call);
    if (call->problem.element_bytes > piece || verdict == MPI_CHOICE_NO) {
        return false;
    }
    if (collectives->host == NULL) {
        if (!host_all_are_here(comm)) {
            collectives->has_no_host = true;
            return false;
        }
        if (verdict == MPI_CHOICE_OPEN && collectives->calls_before_host < HOST_CALLS_BEFORE) {
            collectives->calls_before_host++;
            return false;
        }
        collectives->host = host_make(comm);
        collectives->has_no_host = collectives->host == NULL;
    }
    return collectives->host != NULL;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* ---- rounds ---- */

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

/* Tells all ranks what host->why says. Returns `code`. */
static int broken(struct host_call *call, int code)
{
    cw_segment_break(call->segment, code, call->host->why);
    wake(call);
    return code;
}

/* What another rank has said. */
static int broken_by_another(struct host_call *call)
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
        if (cw_paths_medium(mpi_process.paths, host->comm->group->ranks[rank]) != CW_MEDIUM_SHARED) {
            snprintf(host->why, sizeof(host->why), "the process of rank %u has ended", rank);
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

/* Another rank was seen in another call; says so, and returns MPI_ERR_NOT_SAME. */
static int differs(struct host_call *call, uint32_t rank)
{
    snprintf(call->host->why, sizeof(call->host->why),
             "rank %u is in %s (root %u, %llu bytes), which rank %u has not called", call->rank,
             cw_collective_name((enum cw_collective)call->entry.kind), call->entry.root,
             (unsigned long long)call->entry.bytes, rank);
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
            return differs(call, rank);
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
    return differs(call, awaited->owner);
}

static void hope_check(const struct awaited *awaited)
{
    int code = hopeless_find(awaited);
    if (code != MPI_SUCCESS) {
        (void)broken(awaited->call, code);
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
    struct awaited awaited = {.call = call, .word = word, .least = least, .owner = owner};
    mpi_progress_wait(&(struct mpi_wait){.is_over = is_over, .doze = doze, .describe = describe, .context = &awaited});
    if (atomic_load_explicit(word, memory_order_acquire) >= least) {
        return MPI_SUCCESS;
    }
    int code = trouble_find(call);
    return code != MPI_SUCCESS ? code : broken_by_another(call);
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
    call->host->passed = mix(call->host->passed, call->entry.signature);
    call->host->passed_last = call->entry;
    return MPI_SUCCESS;
}

bool host_arrive_last(struct host_call *call, uint64_t round)
{
    struct mpi_host *host = call->host;
    cw_segment_sign(call->segment, round, call->entry.signature);
    enum cw_segment_arrival arrival = cw_segment_arrive(call->segment, round, mix(host->passed, call->entry.signature));
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
        (void)broken(call, MPI_ERR_NOT_SAME);
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
    return broken(call, is_notified ? MPI_ERR_NOT_SAME : differs(call, rank));
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
    return broken(call, MPI_ERR_OTHER);
}

int host_copy_from(struct host_call *call, uint32_t rank, void *to, uint64_t address, uint64_t bytes)
{
    uint32_t world = call->host->comm->group->ranks[rank];
    return copied(call, rank, cw_paths_copy_from(mpi_process.paths, world, to, address, bytes));
}

int host_copy_to(struct host_call *call, uint32_t rank, uint64_t address, const void *from, uint64_t bytes)
{
    if (cw_segment_is_broken(call->segment)) {
        return broken_by_another(call);
    }
    uint32_t world = call->host->comm->group->ranks[rank];
    return copied(call, rank, cw_paths_copy_to(mpi_process.paths, world, address, from, bytes));
}

/* ---- calls ---- */

/* Of everything that must be the same at all ranks. */
static uint64_t signature_of(const struct mpi_collective *call)
{
    const struct cw_problem_request *problem = &call->problem;
    uint64_t hash = mix(problem->collective + 1, problem->root);
    hash = call->comm->collectives->outer == 0 ? hash : mix(hash, call->comm->collectives->outer);
    hash = mix(hash, problem->element_bytes << 1 | problem->ordered);
    if (call->op != NULL && call->op->predefined) {
        hash = mix(hash, (uintptr_t)call->op->handle);
    }
    if (call->counts == NULL) {
        return mix(hash, problem->count);
    }
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        hash = mix(hash, call->counts[rank]);
    }
    return hash;
}

static bool goes_direct(const struct mpi_collective *call)
{
    return services[call->problem.collective].direct != NULL && call->comm->collectives->host->copies_once &&
           block_bytes(call) >= HOST_DIRECT_MIN_BYTES;
}

/* The longest block fits a short slot, with those that share it. */
static bool is_short(const struct mpi_collective *call, bool direct)
{
    uint64_t longest = call->problem.count;
    for (uint32_t rank = 0; call->counts != NULL && rank < call->problem.ranks; rank++) {
        longest = call->counts[rank] > longest ? call->counts[rank] : longest;
    }
    uint64_t blocks = services[call->problem.collective].by_block ? call->problem.ranks : 1;
    return direct || longest <= CW_SEGMENT_SHORT_BYTES / blocks / call->problem.element_bytes;
}

bool mpi_host_takes_in_place(const struct mpi_collective *call)
{
    /* alltoall: others read what this rank would already have overwritten */
    return services[call->problem.collective].in_place &&
           (call->problem.collective != CW_ALLTOALL || !goes_direct(call));
}

const char *mpi_host_why(const struct mpi_collective *call)
{
    return call->comm->collectives->host->why;
}

static void account(const struct host_call *call, uint64_t bytes, uint64_t took_ns)
{
    struct host_account *account = &call->host->accounts[call->entry.kind][class_of(bytes)];
    account->calls++;
    account->verdict = verdict_on(call->of);
    account->measured_ns += took_ns;
    account->bytes = bytes;
}

void mpi_host_abandon(struct mpi_collective *of)
{
    struct mpi_host *host = of->comm->collectives->host;
    struct host_call call = {
        .host = host, .segment = &host->segment, .rank = (uint32_t)of->comm->rank, .ranks = (uint32_t)of->comm->size};
    snprintf(host->why, sizeof(host->why), "rank %d has no memory for its part", of->comm->rank);
    (void)broken(&call, MPI_ERR_NO_MEM);
}

bool mpi_host_mismatch(struct mpi_comm *comm, int peer)
{
    struct mpi_host *host = comm->collectives->host;
    if (host == NULL || host->call == NULL) {
        return false;
    }
    (void)differs(host->call, (uint32_t)peer);
    (void)broken(host->call, MPI_ERR_NOT_SAME);
    return true;
}

int mpi_host_run(struct mpi_collective *of, const void *send, void *receive)
{
    struct mpi_host *host = of->comm->collectives->host;
    const struct service *service = &services[of->problem.collective];
    uint64_t bytes = block_bytes(of);
    bool direct = goes_direct(of);
    bool short_slots = is_short(of, direct);
    struct host_call call = {
        .host = host,
        .segment = &host->segment,
        .of = of,
        .entry = {.signature = signature_of(of),
                  .bytes = bytes,
                  .kind = of->problem.collective,
                  .root = of->problem.root},
        .rank = (uint32_t)of->comm->rank,
        .ranks = (uint32_t)of->comm->size,
        .root = of->problem.root,
        .bytes = of->counts == NULL ? bytes : 0,
        .is_short = short_slots,
        .slot_bytes = short_slots ? CW_SEGMENT_SHORT_BYTES : CW_SEGMENT_LONG_BYTES,
        .send = send,
        .receive = receive,
    };
    if (cw_segment_is_broken(call.segment)) {
        return broken_by_another(&call);
    }
    uint64_t started_ns = host->accounts != NULL ? cw_clock_ns() : 0;
    cw_segment_enter(call.segment, host->round + 1, &call.entry);
    host->call = &call;
    int code = direct ? service->direct(&call) : service->copied(&call);
    host->call = NULL;
    if (host->accounts != NULL) {
        account(&call, bytes, cw_clock_ns() - started_ns);
    }
    return code != MPI_SUCCESS ? code : call.reduce_error;
}
