#include "mpi/collective/hierarchy/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/collective/compiled/record.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/collective/host/host.h"
#include "mpi/collective/run/describe.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/collective/transport/refusal.h"
#include "mpi/group/communicator.h"
#include "mpi/group/hosts.h"
#include "mpi/runtime/errhandler.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"

enum { HIERARCHY_CALLS_BEFORE = 2 /* on a communicator, before it gets inner ones */, HIERARCHY_TAG = 0 };

/* Contexts are a rank and a number of 32 bits each, of which ranks need 20. */
#define CONTEXT_INSIDE (UINT64_C(1) << 60)
#define CONTEXT_HEADS  (UINT64_C(1) << 61)

/* Whether a collective can be served at all. */
static bool is_served(const struct mpi_collective *call)
{
    const struct mpi_type *element = call->element;
    switch (call->problem.collective) {
    case CW_BARRIER:
    case CW_BCAST:
        return true;
    case CW_REDUCE:
    case CW_ALLREDUCE:
        return !call->problem.ordered && element->dense && element->size == element->extent && element->true_lb == 0;
    case CW_ALLTOALL:
        return call->count_matrix == NULL && call->counts == NULL && !call->has_rows && !call->by_pairs;
    default:
        return false;
    }
}

void mpi_hierarchy_introduce(void)
{
    static const enum cw_collective served[] = {CW_BARRIER, CW_BCAST, CW_REDUCE, CW_ALLREDUCE, CW_ALLTOALL};
    for (size_t i = 0; i < sizeof(served) / sizeof(served[0]); i++) {
        mpi_choice_know(served[i], MPI_HIERARCHY_NAME);
    }
}

/* ---- inner communicators ---- */

/* The ranks of each host, one host after the other; how many each has, or 0 if they differ. `starts` has room for one number
 * for each host. */
static int hosts_list(const int *host_of, int ranks, int hosts, int *by_host, int *starts)
{
    int per_host = ranks / hosts;
    memset(starts, 0, (size_t)hosts * sizeof(*starts));
    for (int rank = 0; rank < ranks; rank++) {
        starts[host_of[rank]]++;
    }
    for (int host = 0, start = 0; host < hosts; host++) {
        int count = starts[host];
        per_host = count == per_host ? per_host : 0;
        starts[host] = start;
        start += count;
    }
    for (int rank = 0; rank < ranks; rank++) {
        by_host[starts[host_of[rank]]++] = rank;
    }
    return per_host;
}

static struct mpi_comm *inner_make(const struct mpi_comm *comm, const int *ranks, int count, uint64_t context,
                                   const char *what)
{
    struct mpi_comm *made = mpi_comm_among(comm, ranks, count, comm->context | context);
    if (made != NULL) {
        snprintf(made->name, sizeof(made->name), "%.100s (%s)", comm->name, what);
    }
    return made;
}

static bool hierarchy_fill(struct mpi_hierarchy *hierarchy, const struct mpi_comm *comm, const int *firsts, int hosts,
                           int *members)
{
    int count = 0;
    int own = hierarchy->host_of[comm->rank];
    for (int rank = 0; rank < comm->size; rank++) {
        if (hierarchy->host_of[rank] == own) {
            members[count++] = rank;
        }
    }
    hierarchy->inside = inner_make(comm, members, count, CONTEXT_INSIDE, "this host");
    if (firsts[own] == comm->rank) {
        hierarchy->heads = inner_make(comm, firsts, hosts, CONTEXT_HEADS, "hosts");
    }
    return hierarchy->inside != NULL && (firsts[own] != comm->rank || hierarchy->heads != NULL);
}

/* NULL: all ranks are on one host, or each is alone on its own, or there is no memory. */
static struct mpi_hierarchy *hierarchy_make(const struct mpi_comm *comm)
{
    struct mpi_hierarchy *hierarchy = calloc(1, sizeof(*hierarchy));
    int *lists = calloc(2 * (size_t)comm->size, sizeof(*lists));
    if (hierarchy != NULL) {
        hierarchy->host_of = calloc((size_t)comm->size, sizeof(*hierarchy->host_of));
    }
    if (hierarchy != NULL) {
        hierarchy->by_host = calloc((size_t)comm->size, sizeof(*hierarchy->by_host));
    }
    bool good = hierarchy != NULL && lists != NULL && hierarchy->host_of != NULL && hierarchy->by_host != NULL;
    if (good) {
        int hosts = mpi_hosts_number(comm, hierarchy->host_of, lists);
        good = hosts > 1 && hosts < comm->size && hierarchy_fill(hierarchy, comm, lists, hosts, lists + comm->size);
        hierarchy->hosts = hosts;
        hierarchy->per_host = good ? hosts_list(hierarchy->host_of, comm->size, hosts, hierarchy->by_host, lists) : 0;
    }
    free(lists);
    if (!good) {
        mpi_hierarchy_destroy(hierarchy);
        return NULL;
    }
    return hierarchy;
}

void mpi_hierarchy_destroy(struct mpi_hierarchy *hierarchy)
{
    if (hierarchy == NULL) {
        return;
    }
    if (hierarchy->inside != NULL) {
        mpi_comm_forget(hierarchy->inside);
    }
    if (hierarchy->heads != NULL) {
        mpi_comm_forget(hierarchy->heads);
    }
    free(hierarchy->host_of);
    free(hierarchy->by_host);
    free(hierarchy);
}

void mpi_hierarchy_stop(void)
{
    struct mpi_comm *comm = mpi_comm_first();
    while (comm != NULL) {
        struct mpi_hierarchy *hierarchy = comm->collectives == NULL ? NULL : comm->collectives->hierarchy;
        if (hierarchy == NULL) {
            comm = mpi_comm_after(comm);
            continue;
        }
        comm->collectives->hierarchy = NULL;
        mpi_hierarchy_destroy(hierarchy);
        comm = mpi_comm_first(); /* the next one may have gone */
    }
}

/* Makes an inner communicator ready for its part of a call: which one that is counts when it is compared with other
 * ranks' calls. Errors are raised once: by the outer call, or at once, with more to say, if that ends the job. */
static int inner_prepare(struct mpi_comm *inner, const struct mpi_collective *call)
{
    struct mpi_errhandler *wanted = call->comm->errhandler;
    struct mpi_collectives *collectives = mpi_collectives_of(inner);
    if (collectives == NULL) {
        return MPI_ERR_NO_MEM;
    }
    collectives->outer = 1 + mpi_describe_kind(call);
    if (wanted->comm_function != NULL) {
        wanted = mpi_errhandler_find(MPI_ERRORS_RETURN);
    }
    if (inner->errhandler != wanted) {
        mpi_errhandler_retain(wanted);
        mpi_errhandler_release(inner->errhandler);
        inner->errhandler = wanted;
    }
    return MPI_SUCCESS;
}

/* Overridden, or measured; kept per class of sizes. */
static enum mpi_choice_verdict verdict_on(const struct mpi_collective *call)
{
    uint64_t bytes = call->problem.count * call->problem.element_bytes;
    uint32_t class = bytes == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(bytes);
    uint8_t *kept = &call->comm->collectives->hierarchy_verdicts[call->problem.collective][class];
    if (*kept == 0) {
        *kept = (uint8_t)(1 + mpi_choice_judge(call->comm, &call->problem, MPI_HIERARCHY_NAME));
    }
    return (enum mpi_choice_verdict)(*kept - 1);
}

void mpi_hierarchy_reconsider(struct mpi_comm *comm)
{
    if (comm->collectives != NULL) {
        memset(comm->collectives->hierarchy_verdicts, 0, sizeof(comm->collectives->hierarchy_verdicts));
    }
}

bool mpi_hierarchy_serves(struct mpi_collective *call)
{
    struct mpi_collectives *collectives = call->comm->collectives;
    if (collectives->has_no_hierarchy || !is_served(call) || mpi_record_is_on() || mpi_replay_is_on()) {
        return false;
    }
    enum mpi_choice_verdict verdict = verdict_on(call);
    if (verdict == MPI_CHOICE_NO) {
        return false;
    }
    if (collectives->hierarchy == NULL) {
        if (verdict == MPI_CHOICE_OPEN && collectives->calls_before_hierarchy < HIERARCHY_CALLS_BEFORE) {
            collectives->calls_before_hierarchy++;
            return false;
        }
        collectives->hierarchy = hierarchy_make(call->comm);
        collectives->has_no_hierarchy = collectives->hierarchy == NULL;
    }
    return collectives->hierarchy != NULL &&
           (call->problem.collective != CW_ALLTOALL || hierarchy_alltoall_serves(call, verdict));
}

/* ---- calls ---- */

static struct passage passage_of(const struct mpi_collective *call)
{
    const struct mpi_hierarchy *hierarchy = call->comm->collectives->hierarchy;
    int root = (int)call->problem.root;
    struct passage passage = {
        .hierarchy = hierarchy,
        .call = call,
        .inside = hierarchy->inside->handle,
        .heads = hierarchy->heads == NULL ? MPI_COMM_NULL : hierarchy->heads->handle,
        .is_head = hierarchy->heads != NULL,
        .is_alone = hierarchy->inside->size == 1,
        .root_host = hierarchy->host_of[root],
        .is_at_root = hierarchy->host_of[root] == hierarchy->host_of[call->comm->rank],
        .count = (MPI_Count)call->problem.count,
        .type = call->element == NULL ? MPI_BYTE : call->element->handle,
        .op = call->op == NULL ? MPI_OP_NULL : call->op->handle,
    };
    for (int rank = 0; rank < root; rank++) {
        passage.root_inside += hierarchy->host_of[rank] == passage.root_host;
    }
    return passage;
}

int hierarchy_verdict_tell(const struct passage *passage, int code)
{
    int told = code;
    int told_code = passage->is_alone ? MPI_SUCCESS : mpi_bcast(&told, sizeof(told), MPI_BYTE, 0, passage->inside);
    return code != MPI_SUCCESS ? code : told_code != MPI_SUCCESS ? told_code : told;
}

bool hierarchy_goes_on(const struct passage *passage, int code)
{
    if (passage->is_head && code != MPI_SUCCESS) {
        const struct mpi_refusal refusal = {.reason = MPI_REFUSAL_MISMATCH, .peer = -1};
        mpi_collective_refuse(passage->hierarchy->heads, &refusal);
    }
    return passage->is_head && code == MPI_SUCCESS;
}

static int run_barrier(const struct passage *passage)
{
    int code = passage->is_alone ? MPI_SUCCESS : mpi_barrier(passage->inside);
    if (hierarchy_goes_on(passage, code)) {
        code = mpi_barrier(passage->heads);
    }
    return hierarchy_verdict_tell(passage,
                                  code); /* which nobody gets before its first rank has left the barrier of the hosts */
}

static int run_bcast(const struct passage *passage, void *data)
{
    int code = MPI_SUCCESS;
    if (passage->is_at_root && !passage->is_alone) {
        code = mpi_bcast(data, passage->count, MPI_BYTE, passage->root_inside, passage->inside);
    }
    if (hierarchy_goes_on(passage, code)) {
        code = mpi_bcast(data, passage->count, MPI_BYTE, passage->root_host, passage->heads);
    }
    if (passage->is_at_root || passage->is_alone) {
        return code;
    }
    code = hierarchy_verdict_tell(passage, code);
    return code != MPI_SUCCESS ? code : mpi_bcast(data, passage->count, MPI_BYTE, 0, passage->inside);
}

/* What the ranks of a host have, at the first of them, in `sum`. */
static int host_reduce(const struct passage *passage, const void *send, void *sum)
{
    return passage->is_alone ? MPI_SUCCESS
                             : mpi_reduce(send, sum, passage->count, passage->type, passage->op, 0, passage->inside);
}

static int run_allreduce(const struct passage *passage, const void *send, void *receive)
{
    int code = host_reduce(passage, send, receive);
    if (hierarchy_goes_on(passage, code)) {
        const void *own = passage->is_alone ? send : MPI_IN_PLACE;
        code = mpi_allreduce(own, receive, passage->count, passage->type, passage->op, passage->heads);
    }
    code = hierarchy_verdict_tell(passage, code);
    return code != MPI_SUCCESS || passage->is_alone
               ? code
               : mpi_bcast(receive, passage->count, passage->type, 0, passage->inside);
}

/* From the first rank of the root's host to the root. */
static int result_hand_over(const struct passage *passage, void *sum, void *receive)
{
    bool is_root = passage->call->comm->rank == (int)passage->call->problem.root;
    if (passage->is_head) {
        return mpi_send(sum, passage->count, passage->type, passage->root_inside, HIERARCHY_TAG, passage->inside);
    }
    return is_root
               ? mpi_recv(receive, passage->count, passage->type, 0, HIERARCHY_TAG, passage->inside, MPI_STATUS_IGNORE)
               : MPI_SUCCESS;
}

static int run_reduce(const struct passage *passage, const void *send, void *receive)
{
    bool is_root = passage->call->comm->rank == (int)passage->call->problem.root;
    uint64_t bytes = passage->call->problem.count * passage->call->problem.element_bytes;
    void *sum = passage->is_head && !is_root ? malloc(bytes + 1) : NULL; /* at the root the result's place serves */
    if (passage->is_head && !is_root && sum == NULL) {
        mpi_hierarchy_abandon((struct mpi_collective *)(uintptr_t)passage->call);
        return MPI_ERR_NO_MEM;
    }
    void *at = is_root ? receive : sum;
    int code = host_reduce(passage, send, at);
    if (hierarchy_goes_on(passage, code)) {
        bool is_first = passage->is_at_root; /* the root among the hosts */
        const void *own = passage->is_alone ? send : is_first ? MPI_IN_PLACE : at;
        code = mpi_reduce(own, at, passage->count, passage->type, passage->op, passage->root_host, passage->heads);
    }
    if (passage->is_at_root && passage->root_inside != 0) {
        code = hierarchy_verdict_tell(passage, code);
        code = code == MPI_SUCCESS ? result_hand_over(passage, sum, receive) : code;
    }
    free(sum);
    return code;
}

/* Of one inner communicator: by messages, and by shared memory if it goes that way by now. */
static void inner_abandon(struct mpi_comm *inner)
{
    const struct mpi_refusal refusal = {
        .reason = MPI_REFUSAL_FAILED, .peer = -1, .given = (uint64_t)(int64_t)CW_ERROR_MEMORY};
    struct mpi_collective call = {.comm = inner};
    mpi_collective_refuse(inner, &refusal);
    if (inner->collectives != NULL && inner->collectives->host != NULL) {
        mpi_host_abandon(&call);
    }
}

void mpi_hierarchy_abandon(struct mpi_collective *call)
{
    const struct mpi_hierarchy *hierarchy = call->comm->collectives->hierarchy;
    inner_abandon(hierarchy->inside);
    if (hierarchy->heads != NULL) {
        inner_abandon(hierarchy->heads);
    }
}

/* Of one inner communicator, whatever is under way there. */
static void inner_differs(struct mpi_comm *inner)
{
    struct mpi_exchange *exchange = inner->collectives == NULL ? NULL : inner->collectives->exchanges;
    for (; exchange != NULL; exchange = exchange->next) {
        mpi_exchange_mismatch_tell(exchange, -1);
        mpi_exchange_fail(exchange, CW_ERROR_ARGUMENT);
    }
    if (inner->collectives != NULL && inner->collectives->host != NULL) {
        (void)mpi_host_mismatch(inner, -1);
    }
}

/* Some rank's call goes by one schedule of all ranks: its count, say, is another one. */
static void outer_differs(struct mpi_comm *comm)
{
    const struct mpi_hierarchy *hierarchy = comm->collectives->hierarchy;
    inner_differs(hierarchy->inside);
    if (hierarchy->heads != NULL) {
        inner_differs(hierarchy->heads);
    }
}

static int passage_run(const struct passage *passage, void *send, void *receive)
{
    const struct mpi_collective *call = passage->call;
    switch (call->problem.collective) {
    case CW_BARRIER:
        return run_barrier(passage);
    case CW_BCAST:
        return run_bcast(passage, call->comm->rank == (int)call->problem.root ? send : receive);
    case CW_ALLREDUCE:
        return run_allreduce(passage, send, receive);
    case CW_ALLTOALL:
        return hierarchy_alltoall(passage, send, receive);
    default:
        return run_reduce(passage, send, receive);
    }
}

int mpi_hierarchy_run(struct mpi_collective *call, void *send, void *receive)
{
    const struct mpi_hierarchy *hierarchy = call->comm->collectives->hierarchy;
    int code = inner_prepare(hierarchy->inside, call);
    if (code == MPI_SUCCESS && hierarchy->heads != NULL) {
        code = inner_prepare(hierarchy->heads, call);
    }
    if (code != MPI_SUCCESS) {
        return code; /* nobody hears of it: there is no memory for that */
    }
    struct passage passage = passage_of(call);
    call->comm->collectives->inner_mismatch = outer_differs;
    code = passage_run(&passage, send, receive);
    call->comm->collectives->inner_mismatch = NULL;
    return code;
}
