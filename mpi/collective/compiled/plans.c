#include "mpi/collective/compiled/plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "dataplane/status.h"
#include "mpi/collective/choice/choice.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/runtime/explain.h"
#include "mpi/state/process.h"

/* Counts are kept as their digest: those of an all-to-all are as many as the ranks squared. */
static void counts_digest(const struct cw_problem_request *request, uint64_t digest[2])
{
    uint64_t entries = request->collective == CW_ALLTOALL ? (uint64_t)request->ranks * request->ranks : request->ranks;
    XXH128_hash_t hash = {0, 0};
    if (request->counts != NULL) {
        hash = XXH3_128bits(request->counts, entries * sizeof(uint64_t));
        hash.low64 += hash.low64 == 0;
    }
    digest[0] = hash.low64;
    digest[1] = hash.high64;
}

static bool has_counts(const struct mpi_plan *plan)
{
    return plan->counts_digest[0] != 0;
}

/* Bytes of a block, or the mean of those that this rank sends or, of its own counts, receives; for messages. */
static uint64_t block_bytes(const struct mpi_plan *plan)
{
    uint64_t sends = plan->buffer_bytes[CW_BUFFER_SEND], gets = plan->buffer_bytes[CW_BUFFER_RECEIVE];
    if (plan->own_waits != NULL) {
        bool is_one = plan->collective != CW_ALLTOALL && plan->root != plan->schedule.rank;
        return (sends > gets ? sends : gets) / (is_one ? 1 : plan->ranks);
    }
    return has_counts(plan) && plan->collective == CW_ALLTOALL ? sends / plan->ranks
                                                               : plan->count * plan->element_bytes;
}

/* Of the call, for users; a constant. */
static const char *call_name(const struct mpi_plan *plan)
{
    static const char *const unequal[CW_COLLECTIVE_COUNT] = {
        [CW_SCATTER] = "scatterv", [CW_GATHER] = "gatherv", [CW_ALLTOALL] = "alltoallv"};
    bool has_unequal = plan->own_waits != NULL || (has_counts(plan) && plan->collective == CW_ALLTOALL);
    return has_unequal ? unequal[plan->collective] : cw_collective_name(plan->collective);
}

static void plan_free(struct mpi_plan *plan)
{
    if (plan->calls > 0) {
        char name[2 * CW_ALGORITHM_NAME_MAX];
        bool has_inner = plan->parameters.inner != NULL && (plan->algorithm->takes & CW_TAKES_INNER) != 0;
        snprintf(name, sizeof(name), "%s%s%s", plan->algorithm->name, has_inner ? ", among hosts " : "",
                 has_inner ? plan->parameters.inner : "");
        const char *origin = plan->own_origin != NULL ? plan->own_origin : cw_measured_origin_name(plan->origin);
        mpi_explain_calls(call_name(plan), name, plan->ranks, block_bytes(plan), origin, plan->calls,
                          plan->predicted_ns, plan->measured_ns);
    }
    while (plan->idle != NULL) {
        struct mpi_run *run = plan->idle;
        plan->idle = run->next;
        cw_execution_destroy(run->execution);
        free(run->scratch);
        free(run);
    }
    cw_schedule_dispose(&plan->schedule);
    if (plan->throttled != NULL) {
        mpi_plan_drop(plan->throttled);
    }
    free(plan->own_waits);
    free(plan);
}

struct mpi_plan *mpi_plan_make(const struct cw_problem *problem, uint32_t rank, const struct cw_algorithm *algorithm,
                               const struct cw_parameters *parameters, const struct cw_schedule *schedule)
{
    struct mpi_plan *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    *made = (struct mpi_plan){
        .collective = problem->collective,
        .ranks = problem->ranks,
        .root = problem->root,
        .element_bytes = problem->element_bytes,
        .ordered = problem->ordered,
        .count = problem->count,
        .counts_digest = {problem->has_counts, 0}, /* no look-up uses them */
        .algorithm = algorithm,
        .parameters = *parameters,
        .origin = CW_BY_NAME,
        .schedule = *schedule,
    };
    made->buffer_bytes[CW_BUFFER_SEND] = cw_problem_buffer_bytes(problem, rank, CW_BUFFER_SEND);
    made->buffer_bytes[CW_BUFFER_RECEIVE] = cw_problem_buffer_bytes(problem, rank, CW_BUFFER_RECEIVE);
    made->buffer_bytes[CW_BUFFER_SCRATCH] = schedule->scratch_bytes;
    return made;
}

void mpi_plan_drop(struct mpi_plan *plan)
{
    plan->is_dropped = true;
    if (plan->runs_open == 0) {
        plan_free(plan);
    }
}

static int plan_build(struct mpi_comm *comm, const struct cw_problem_request *request, bool has_levels,
                      const struct mpi_choice *choice, struct mpi_plan **plan, char *error, size_t error_bytes)
{
    struct cw_problem *problem;
    struct cw_schedule schedule;
    const struct cw_problem_request wide = mpi_clusters_request(comm, request, has_levels);
    uint32_t rank = (uint32_t)comm->rank;
    int status = cw_problem_create(&wide, &problem, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    status = cw_schedule_build(problem, choice->algorithm, &choice->parameters, rank, &schedule, error, error_bytes);
    if (status == CW_OK) {
        *plan = mpi_plan_make(problem, rank, choice->algorithm, &choice->parameters, &schedule);
        if (*plan == NULL) {
            cw_schedule_dispose(&schedule);
            status = CW_ERROR_MEMORY;
        }
    }
    cw_problem_destroy(problem);
    return status;
}

static int plan_make(struct mpi_comm *comm, const struct cw_problem_request *request, bool has_levels,
                     struct mpi_plan **plan, char *error, size_t error_bytes)
{
    struct mpi_choice choice;
    int status = mpi_choice_find(comm, request, has_levels, &choice, error, error_bytes);
    if (status == CW_OK) {
        status = plan_build(comm, request, has_levels, &choice, plan, error, error_bytes);
    }
    if (status == CW_OK) {
        (*plan)->predicted_ns = choice.time_ns;
        (*plan)->origin = choice.origin;
        (*plan)->has_levels = has_levels;
        counts_digest(request, (*plan)->counts_digest);
    }
    return status;
}

/* As MPI has it. */
static int code_of_status(int status)
{
    return status == CW_OK ? MPI_SUCCESS : status == CW_ERROR_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_INTERN;
}

int mpi_plan_make_named(struct mpi_comm *comm, const struct cw_problem_request *request, const char *name, bool eager,
                        struct mpi_plan **plan)
{
    char error[200];
    struct mpi_choice choice = {
        .algorithm = cw_algorithm_find(request->collective, name),
        .parameters = cw_parameters_default(),
    };
    choice.parameters.eager_max_bytes = eager ? mpi_process.eager_max_bytes : 0;
    choice.parameters.multicast_eager_max_bytes = eager ? mpi_clusters_multicast_eager_max() : 0;
    return code_of_status(plan_build(comm, request, false, &choice, plan, error, sizeof(error)));
}

/* Whether some rank may go from call to call without waiting, though others have not begun: roots, senders to roots,
 * and the first ranks of scans. */
static bool may_be_ahead(const struct cw_problem_request *request)
{
    switch (request->collective) {
    case CW_BCAST:
    case CW_SCATTER:
    case CW_GATHER:
    case CW_REDUCE:
    case CW_SCAN:
    case CW_EXSCAN:
        return true;
    default:
        return request->counts != NULL; /* ranks without a block need not be waited for, or wait */
    }
}

int mpi_plan_throttle(struct mpi_comm *comm, const struct cw_problem_request *request, uint32_t number,
                      struct mpi_plan **plan)
{
    struct mpi_plan *usual = *plan;
    uint32_t most =
        request->count * request->element_bytes > MPI_AHEAD_SHORT_BYTES ? MPI_AHEAD_MAX : MPI_AHEAD_SHORT_MAX;
    if (number % most != most - 1 || !may_be_ahead(request)) {
        return MPI_SUCCESS;
    }
    if (usual->throttled == NULL) {
        char error[200];
        struct mpi_choice choice = {.algorithm = usual->algorithm, .parameters = usual->parameters};
        choice.parameters.eager_max_bytes = 0;
        choice.parameters.multicast_eager_max_bytes = 0;
        int code = code_of_status(
            plan_build(comm, request, usual->has_levels, &choice, &usual->throttled, error, sizeof(error)));
        if (code != MPI_SUCCESS) {
            return code;
        }
        usual->throttled->predicted_ns = usual->predicted_ns;
        usual->throttled->origin = usual->origin;
        usual->throttled->is_throttled = true;
    }
    *plan = usual->throttled;
    return MPI_SUCCESS;
}

static bool plan_fits(const struct mpi_plan *plan, const struct cw_problem_request *request, bool has_levels,
                      const uint64_t digest[2])
{
    return plan->has_levels == has_levels && plan->collective == request->collective && plan->root == request->root &&
           plan->element_bytes == request->element_bytes && plan->count == request->count &&
           plan->ordered == request->ordered && plan->counts_digest[0] == digest[0] &&
           plan->counts_digest[1] == digest[1];
}

/* Drops the plan used longest ago; one that runs goes with its last run. */
static void plans_trim(struct mpi_collectives *collectives)
{
    struct mpi_plan **link = &collectives->plans;
    while ((*link)->next != NULL) {
        link = &(*link)->next;
    }
    struct mpi_plan *plan = *link;
    *link = NULL;
    collectives->plan_count--;
    mpi_plan_drop(plan);
}

/* The plan, which becomes the last used; NULL: there is none. */
static struct mpi_plan *plan_find(struct mpi_collectives *collectives, const struct cw_problem_request *request,
                                  bool has_levels, const uint64_t digest[2])
{
    struct mpi_plan **link = &collectives->plans;
    while (*link != NULL && !plan_fits(*link, request, has_levels, digest)) {
        link = &(*link)->next;
    }
    struct mpi_plan *found = *link;
    if (found != NULL) {
        *link = found->next;
        found->next = collectives->plans;
        collectives->plans = found;
    }
    return found;
}

static void plan_add(struct mpi_collectives *collectives, struct mpi_plan *plan)
{
    if (collectives->plan_count++ == MPI_PLANS_MAX) {
        plans_trim(collectives);
    }
    plan->next = collectives->plans;
    collectives->plans = plan;
}

int mpi_plan_find(struct mpi_comm *comm, const struct cw_problem_request *request, bool has_levels,
                  struct mpi_plan **plan, char *error, size_t error_bytes)
{
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    if (collectives == NULL) {
        return MPI_ERR_NO_MEM;
    }
    uint64_t digest[2];
    counts_digest(request, digest);
    *plan = plan_find(collectives, request, has_levels, digest);
    if (*plan != NULL) {
        return MPI_SUCCESS;
    }
    int status = plan_make(comm, request, has_levels, plan, error, error_bytes);
    if (status == CW_OK) {
        plan_add(collectives, *plan);
    }
    return code_of_status(status);
}

static struct mpi_plan *own_make(const struct mpi_comm *comm, const struct mpi_own_request *request,
                                 const uint64_t digest[2])
{
    uint32_t ranks = (uint32_t)comm->size;
    struct mpi_plan *made = calloc(1, sizeof(*made));
    uint32_t *waits = malloc(ranks * sizeof(*waits));
    if (made == NULL || waits == NULL ||
        cw_own_build((uint32_t)comm->rank, ranks, request->sends, request->receives, &made->schedule) != CW_OK) {
        free(made);
        free(waits);
        return NULL;
    }
    made->collective = request->collective;
    made->ranks = ranks;
    made->root = request->root;
    made->element_bytes = 1;
    memcpy(made->counts_digest, digest, sizeof(made->counts_digest));
    made->algorithm = &cw_own_algorithm;
    made->origin = CW_BY_NAME;
    made->is_throttled = request->is_throttled;
    made->own_origin = request->origin;
    made->own_waits = waits;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        made->buffer_bytes[CW_BUFFER_SEND] += request->sends[rank].bytes;
        made->buffer_bytes[CW_BUFFER_RECEIVE] += request->receives[rank].bytes;
        waits[rank] = UINT32_MAX;
    }
    for (uint32_t op = 0; op < made->schedule.op_count; op++) {
        if (made->schedule.ops[op].kind == CW_OP_WAIT) {
            waits[made->schedule.ops[op].peer] = op;
        }
    }
    return made;
}

int mpi_plan_find_own(struct mpi_comm *comm, const struct mpi_own_request *request, struct mpi_plan **plan)
{
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    const struct cw_problem_request like = {
        .collective = request->collective, .root = request->root, .element_bytes = 1};
    XXH128_hash_t hash = XXH3_128bits_withSeed(request->sends, 2 * (size_t)comm->size * sizeof(*request->sends),
                                               1 + request->is_throttled);
    const uint64_t digest[2] = {hash.low64 + (hash.low64 == 0), hash.high64};
    *plan = collectives == NULL ? NULL : plan_find(collectives, &like, false, digest);
    if (collectives != NULL && *plan == NULL) {
        *plan = own_make(comm, request, digest);
        if (*plan != NULL) {
            plan_add(collectives, *plan);
        }
    }
    return *plan == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

static struct mpi_run *run_make(struct mpi_comm *comm, struct mpi_plan *plan, const struct mpi_reduction *reduction)
{
    struct mpi_run *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return NULL;
    }
    run->plan = plan;
    run->scratch = malloc(plan->schedule.scratch_bytes + 1);
    mpi_exchange_init(&run->exchange);
    struct cw_execution_request request = {
        .schedule = &plan->schedule,
        .ranks = (uint32_t)comm->size,
        .element_bytes = plan->element_bytes,
        .transport = &run->exchange.transport,
        .reduce = reduction == NULL ? NULL : reduction->reduce,
        .may_reduce = reduction == NULL ? NULL : reduction->may_reduce,
    };
    if (run->scratch == NULL || cw_execution_create(&request, &run->execution) != CW_OK) {
        free(run->scratch);
        free(run);
        return NULL;
    }
    run->exchange.execution = run->execution;
    run->exchange.schedule = &plan->schedule;
    run->exchange.own_waits = plan->own_waits;
    run->exchange.offers_all = plan->own_waits != NULL && plan->is_throttled;
    return run;
}

struct mpi_run *mpi_run_acquire(struct mpi_comm *comm, struct mpi_plan *plan, const void *send, void *receive,
                                const struct mpi_reduction *reduction, void *context)
{
    struct mpi_run *run = plan->idle;
    if (run != NULL) {
        plan->idle = run->next;
    } else {
        run = run_make(comm, plan, reduction);
        if (run == NULL) {
            return NULL;
        }
    }
    plan->runs_open++;
    void *const buffers[4] = {NULL, (void *)(uintptr_t)send, receive, run->scratch};
    memcpy(run->exchange.buffers, buffers, sizeof(buffers));
    memcpy(run->exchange.buffer_bytes, plan->buffer_bytes, sizeof(plan->buffer_bytes));
    cw_execution_rebind(run->execution, buffers, context);
    return run;
}

void mpi_run_release(struct mpi_run *run, bool is_whole)
{
    struct mpi_plan *plan = run->plan;
    plan->runs_open--;
    if (is_whole && !plan->is_dropped) {
        cw_execution_reset(run->execution);
        run->next = plan->idle;
        plan->idle = run;
        return;
    }
    cw_execution_destroy(run->execution);
    free(run->scratch);
    free(run);
    if (plan->is_dropped && plan->runs_open == 0) {
        plan_free(plan);
    }
}

void mpi_plans_destroy(struct mpi_plan *plans)
{
    while (plans != NULL) {
        struct mpi_plan *next = plans->next;
        plan_free(plans);
        plans = next;
    }
}
