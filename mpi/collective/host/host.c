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

/* ---- calls ---- */

/* Of everything that must be the same at all ranks. */
static uint64_t signature_of(const struct mpi_collective *call)
{
    const struct cw_problem_request *problem = &call->problem;
    uint64_t hash = host_mix(problem->collective + 1, problem->root);
    hash = call->comm->collectives->outer == 0 ? hash : host_mix(hash, call->comm->collectives->outer);
    hash = host_mix(hash, problem->element_bytes << 1 | problem->ordered);
    if (call->op != NULL && call->op->predefined) {
        hash = host_mix(hash, (uintptr_t)call->op->handle);
    }
    if (call->counts == NULL) {
        return host_mix(hash, problem->count);
    }
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        hash = host_mix(hash, call->counts[rank]);
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
    (void)host_break(&call, MPI_ERR_NO_MEM);
}

bool mpi_host_mismatch(struct mpi_comm *comm, int peer)
{
    struct mpi_host *host = comm->collectives->host;
    if (host == NULL || host->call == NULL) {
        return false;
    }
    (void)host_differs(host->call, peer);
    (void)host_break(host->call, MPI_ERR_NOT_SAME);
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
        return host_broken(&call);
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
