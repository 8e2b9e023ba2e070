/* Rounds on a segment: the flags that ranks await, and how a rank notices that a flag will never change. */
#include <stdio.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/collective/host/state.h"
#include "mpi/point/lost.h"
#include "mpi/state/process.h"

/* Wakes sleeping members after a change that they may await. */
static void wake(const struct mpi_host_call *call)
{
    if (!cw_segment_sleepers(call->segment)) {
        return;
    }
    for (uint32_t member = 0; member < call->members; member++) {
        if (member != call->member && cw_segment_sleeps(call->segment, member)) {
            cw_paths_kick(mpi_process.paths, call->host->comm->group->ranks[host_rank(call->host, member)]);
        }
    }
}

int host_break(struct mpi_host_call *call, int code)
{
    cw_segment_break(call->segment, call->number, code, call->host->why);
    wake(call);
    return code;
}

int host_broken(struct mpi_host_call *call)
{
    uint64_t number;
    int code = cw_segment_why(call->segment, &number, call->host->why, sizeof(call->host->why));
    return code != MPI_SUCCESS ? code : MPI_ERR_OTHER;
}

/* Names the call of a member, for reports. */
static void call_name(const struct mpi_host_call *call, const struct cw_segment_call *entry, uint32_t member,
                      char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "rank %d in %s (root %u, %llu bytes)", host_rank(call->host, member),
             cw_collective_name((enum cw_collective)entry->kind), entry->root, (unsigned long long)entry->bytes);
}

/* MPI_ERR_NOT_SAME: another member is in the same round with another call; MPI_ERR_PROC_ABORTED: a member is lost;
 * MPI_SUCCESS: neither. */
static int host_trouble(struct mpi_host_call *call)
{
    struct mpi_host *host = call->host;
    const struct cw_segment *segment = call->segment;
    uint64_t entered = atomic_load_explicit(&segment->lines[call->member].entered, memory_order_relaxed);
    for (uint32_t member = 0; member < call->members; member++) {
        struct cw_segment_call other;
        if (cw_segment_call_of(segment, member, &other) == entered && other.signature != call->entry.signature) {
            char theirs[96], ours[96];
            call_name(call, &other, member, theirs, sizeof(theirs));
            call_name(call, &call->entry, call->member, ours, sizeof(ours));
            char *is = strstr(theirs, " in ");
            snprintf(host->why, sizeof(host->why), "%.*s is%s, %s", (int)(is - theirs), theirs, is, ours);
            return MPI_ERR_NOT_SAME;
        }
        if (mpi_lost(host->comm, host_rank(host, member))) {
            mpi_comm_lost_text(host->comm, host_rank(host, member), host->why, sizeof(host->why));
            return MPI_ERR_PROC_ABORTED;
        }
    }
    return MPI_SUCCESS;
}

int host_differs(struct mpi_host_call *call, int rank)
{
    char who[32] = "somebody else";
    if (rank >= 0) {
        snprintf(who, sizeof(who), "rank %d", rank);
    }
    snprintf(call->host->why, sizeof(call->host->why),
             "rank %d is in %s (root %u, %llu bytes), which %s has not called", host_rank(call->host, call->member),
             cw_collective_name((enum cw_collective)call->entry.kind), call->entry.root,
             (unsigned long long)call->entry.bytes, who);
    return MPI_ERR_NOT_SAME;
}

/* MPI_ERR_NOT_SAME: a member has left this round with another call, one that no member has to wait for. */
static int passed_find(struct mpi_host_call *call, uint64_t entered, uint64_t round)
{
    for (uint32_t member = 0; member < call->members; member++) {
        struct cw_segment_call other;
        bool has_left = cw_segment_call_of(call->segment, member, &other) > entered;
        bool is_signed =
            atomic_load_explicit(cw_segment_published(call->segment, member, round), memory_order_acquire) >= round;
        if (is_signed ? cw_segment_published_in(call->segment, member, round) != call->entry.signature : has_left) {
            return host_differs(call, host_rank(call->host, member));
        }
    }
    return MPI_SUCCESS;
}

/* An error if no event can end this wait: a member in a later call has published all its slots of the present one. */
static int hopeless_find(struct mpi_host_call *call)
{
    struct cw_segment_call other;
    int code = host_trouble(call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    uint64_t own = atomic_load_explicit(&call->segment->lines[call->member].entered, memory_order_relaxed);
    if (call->owner == UINT32_MAX) {
        code = call->least == call->host->round ? passed_find(call, own, call->least) : MPI_SUCCESS;
        /* if the round has ended by now, the signatures may be of later rounds */
        return host_has_arrived(call) ? MPI_SUCCESS : code;
    }
    if (cw_segment_call_of(call->segment, call->owner, &other) <= own || host_has_arrived(call)) {
        return MPI_SUCCESS;
    }
    return host_differs(call, host_rank(call->host, call->owner));
}

void host_doubt(struct mpi_host_call *call)
{
    int code = call->word == NULL || host_has_arrived(call) ? MPI_SUCCESS : hopeless_find(call);
    if (code != MPI_SUCCESS) {
        (void)host_break(call, code);
    }
}

/* ---- Stages ---- */

static int await_word(struct mpi_host_call *call, const _Atomic uint64_t *word, uint64_t least, uint32_t owner,
                      mpi_host_stage *then)
{
    call->word = word;
    call->least = least;
    call->owner = owner;
    call->next = then;
    return HOST_GO_ON;
}

static int round_writable(struct mpi_host_call *call)
{
    if (!call->writes) {
        call->next = call->then;
        return HOST_GO_ON;
    }
    return await_word(call, cw_segment_completed(call->segment), cw_segment_may_write(call->round, call->is_short),
                      UINT32_MAX, call->then);
}

/* All have passed by since: before long slots are reused, one rank must have seen all ranks. A flag is written only
 * when no rank reads its previous value. */
static int round_skip(struct mpi_host_call *call)
{
    int code = host_arrive(call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    call->round = ++call->host->round;
    return round_writable(call);
}

int host_round(struct mpi_host_call *call, bool writes, mpi_host_stage *then)
{
    struct mpi_host *host = call->host;
    call->writes = writes;
    call->then = then;
    call->round = ++host->round;
    return cw_segment_may_write(call->round, call->is_short) > host->arrived
               ? await_word(call, cw_segment_completed(call->segment), cw_segment_may_write(call->round, true),
                            UINT32_MAX, round_skip)
               : round_writable(call);
}

int host_await(struct mpi_host_call *call, uint32_t member, mpi_host_stage *then)
{
    return await_word(call, cw_segment_published(call->segment, member, call->round), call->round, member, then);
}

int host_await_all(struct mpi_host_call *call, mpi_host_stage *then)
{
    return await_word(call, cw_segment_completed(call->segment), call->round, UINT32_MAX, then);
}

void host_publish(struct mpi_host_call *call)
{
    cw_segment_publish(call->segment, call->round, call->entry.signature);
    wake(call);
}

int host_pass(struct mpi_host_call *call)
{
    if (!cw_segment_may_pass(call->round)) {
        return host_arrive(call);
    }
    call->host->passed = host_mix(call->host->passed, call->entry.signature);
    call->host->passed_last = call->entry;
    return MPI_SUCCESS;
}

bool host_arrive_last(struct mpi_host_call *call)
{
    struct mpi_host *host = call->host;
    uint64_t round = call->round;
    cw_segment_sign(call->segment, round, call->entry.signature);
    enum cw_segment_arrival arrival =
        cw_segment_arrive(call->segment, round, host_mix(host->passed, call->entry.signature));
    if (arrival == CW_SEGMENT_DIFFERENT) {
        if (host_trouble(call) == MPI_SUCCESS) { /* a rank in its next call, or the difference was skipped */
            const struct cw_segment_call *last = host->passed != 0 ? &host->passed_last : &call->entry;
            snprintf(host->why, sizeof(host->why),
                     "the calls did not match when rank %d was in %s (root %u, %llu bytes), or shortly before",
                     host_rank(host, call->member), cw_collective_name((enum cw_collective)last->kind), last->root,
                     (unsigned long long)last->bytes);
        }
        call->is_different = true;
        (void)host_break(call, MPI_ERR_NOT_SAME);
    }
    host->arrived = round;
    host->passed = 0;
    return arrival == CW_SEGMENT_LAST;
}

void host_complete(struct mpi_host_call *call)
{
    cw_segment_complete(call->segment, call->round);
    wake(call);
}

int host_arrive(struct mpi_host_call *call)
{
    if (host_arrive_last(call)) {
        host_complete(call);
    }
    return call->is_different ? MPI_ERR_NOT_SAME : MPI_SUCCESS;
}

/* The awaited member has published the slot of another call. */
static int slot_differs(struct mpi_host_call *call)
{
    bool is_notified = host_trouble(call) == MPI_ERR_NOT_SAME; /* names both calls, if the other rank is in it still */
    return host_break(call, is_notified ? MPI_ERR_NOT_SAME : host_differs(call, host_rank(call->host, call->owner)));
}

/* The awaited word has not come: MPI_ERR_PENDING, or an error if it never will. */
static int word_pending(struct mpi_host_call *call)
{
    if (++call->looks % HOST_LOOKS_BEFORE_DOUBT == 0) {
        host_doubt(call);
    }
    if (!cw_segment_is_broken(call->segment)) {
        return MPI_ERR_PENDING;
    }
    int code = host_trouble(call);
    return code != MPI_SUCCESS ? code : host_broken(call);
}

int host_poll(struct mpi_host_call *call)
{
    int code;
    do {
        if (call->word != NULL) {
            if (!host_has_arrived(call)) {
                return word_pending(call);
            }
            if (call->owner != UINT32_MAX &&
                cw_segment_published_in(call->segment, call->owner, call->round) != call->entry.signature) {
                return slot_differs(call);
            }
            call->word = NULL;
        }
        code = call->next(call);
    } while (code == HOST_GO_ON);
    return code;
}

/* A copy that fails leaves the others waiting for nothing. */
static int copied(struct mpi_host_call *call, uint32_t member, int status)
{
    if (status == CW_OK) {
        return MPI_SUCCESS;
    }
    snprintf(call->host->why, sizeof(call->host->why), "memory of rank %d cannot be reached: %s",
             host_rank(call->host, member), cw_status_text(status));
    return host_break(call, MPI_ERR_OTHER);
}

int host_copy_from(struct mpi_host_call *call, uint32_t member, void *to, uint64_t address, uint64_t bytes)
{
    uint32_t world = call->host->comm->group->ranks[host_rank(call->host, member)];
    return copied(call, member, cw_paths_copy_from(mpi_process.paths, world, to, address, bytes));
}

int host_copy_to(struct mpi_host_call *call, uint32_t member, uint64_t address, const void *from, uint64_t bytes)
{
    if (cw_segment_is_broken(call->segment)) {
        return host_broken(call);
    }
    uint32_t world = call->host->comm->group->ranks[host_rank(call->host, member)];
    return copied(call, member, cw_paths_copy_to(mpi_process.paths, world, address, from, bytes));
}
