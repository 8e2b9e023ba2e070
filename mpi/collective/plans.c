#include "mpi/collective/plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/collective/choice.h"
#include "mpi/collective/state.h"
#include "mpi/runtime/explain.h"
#include "mpi/runtime/process.h"

static int schedule_make(struct mpi_comm *comm, const struct cw_problem *problem, const struct mpi_choice *choice,
                         struct mpi_plan *plan, char *error, size_t error_bytes)
{
    uint32_t rank = (uint32_t)comm->rank;
    plan->algorithm = choice->algorithm;
    plan->parameters = choice->parameters;
    plan->predicted_ns = choice->time_ns;
    plan->origin = choice->origin;
    int status =
        cw_schedule_build(problem, plan->algorithm, &plan->parameters, rank, &plan->schedule, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    plan->buffer_bytes[CW_BUFFER_SEND] = cw_problem_buffer_bytes(problem, rank, CW_BUFFER_SEND);
    plan->buffer_bytes[CW_BUFFER_RECEIVE] = cw_problem_buffer_bytes(problem, rank, CW_BUFFER_RECEIVE);
    plan->buffer_bytes[CW_BUFFER_SCRATCH] = plan->schedule.scratch_bytes;
    return CW_OK;
}

static void plan_free(struct mpi_plan *plan)
{
    if (plan->calls > 0) {
        mpi_explain_calls(cw_collective_name(plan->collective), plan->algorithm->name, plan->ranks,
                          plan->count * plan->element_bytes, cw_measured_origin_name(plan->origin), plan->calls,
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
    free(plan->counts);
    free(plan);
}

static int plan_make(struct mpi_comm *comm, const struct cw_problem_request *request, struct mpi_plan **plan,
                     char *error, size_t error_bytes)
{
    struct mpi_choice choice;
    struct cw_problem *problem;
    int status = mpi_choice_find(comm, request, &choice, error, error_bytes);
    if (status == CW_OK) {
        status = cw_problem_create(request, &problem, error, error_bytes);
    }
    if (status != CW_OK) {
        return status;
    }
    struct mpi_plan *made = calloc(1, sizeof(*made));
    size_t counts_bytes = request->counts == NULL ? 0 : request->ranks * sizeof(uint64_t);
    if (made != NULL && counts_bytes > 0) {
        made->counts = malloc(counts_bytes);
    }
    if (made == NULL || (counts_bytes > 0 && made->counts == NULL)) {
        free(made);
        cw_problem_destroy(problem);
        return CW_ERROR_MEMORY;
    }
    if (counts_bytes > 0) {
        memcpy(made->counts, request->counts, counts_bytes);
    }
    made->collective = request->collective;
    made->ranks = request->ranks;
    made->root = request->root;
    made->element_bytes = request->element_bytes;
    made->ordered = request->ordered;
    made->count = request->count;
    status = schedule_make(comm, problem, &choice, made, error, error_bytes);
    cw_problem_destroy(problem);
    if (status != CW_OK) {
        plan_free(made);
        return status;
    }
    *plan = made;
    return CW_OK;
}

static bool plan_fits(const struct mpi_plan *plan, const struct cw_problem_request *request)
{
    return plan->collective == request->collective && plan->root == request->root &&
           plan->element_bytes == request->element_bytes && plan->count == request->count &&
           plan->ordered == request->ordered && (plan->counts == NULL) == (request->counts == NULL) &&
           (plan->counts == NULL || memcmp(plan->counts, request->counts, request->ranks * sizeof(uint64_t)) == 0);
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
    plan->is_dropped = true;
    if (plan->runs_open == 0) {
        plan_free(plan);
    }
}

int mpi_plan_find(struct mpi_comm *comm, const struct cw_problem_request *request, struct mpi_plan **plan, char *error,
                  size_t error_bytes)
{
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    if (collectives == NULL) {
        return MPI_ERR_NO_MEM;
    }
    struct mpi_plan **link = &collectives->plans;
    while (*link != NULL && !plan_fits(*link, request)) {
        link = &(*link)->next;
    }
    struct mpi_plan *found = *link;
    if (found != NULL) {
        *link = found->next;
    } else {
        int status = plan_make(comm, request, &found, error, error_bytes);
        if (status != CW_OK) {
            return status == CW_ERROR_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_INTERN;
        }
        if (collectives->plan_count++ == MPI_PLANS_MAX) {
            plans_trim(collectives);
        }
    }
    found->next = collectives->plans;
    collectives->plans = found;
    *plan = found;
    return MPI_SUCCESS;
}

static struct mpi_run *run_make(struct mpi_comm *comm, struct mpi_plan *plan, cw_reduce_function reduce)
{
    struct mpi_run *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return NULL;
    }
    run->plan = plan;
    run->scratch = malloc(plan->schedule.scratch_bytes + 1);
    struct cw_execution_request request = {
        .schedule = &plan->schedule,
        .ranks = (uint32_t)comm->size,
        .element_bytes = plan->element_bytes,
        .transport = &run->exchange.transport,
        .reduce = reduce,
    };
    if (run->scratch == NULL || cw_execution_create(&request, &run->execution) != CW_OK) {
        free(run->scratch);
        free(run);
        return NULL;
    }
    return run;
}

struct mpi_run *mpi_run_take(struct mpi_comm *comm, struct mpi_plan *plan, const void *send, void *receive,
                             cw_reduce_function reduce, void *reduce_context)
{
    struct mpi_run *run = plan->idle;
    if (run != NULL) {
        plan->idle = run->next;
    } else {
        run = run_make(comm, plan, reduce);
        if (run == NULL) {
            return NULL;
        }
    }
    plan->runs_open++;
    void *const buffers[4] = {NULL, (void *)(uintptr_t)send, receive, run->scratch};
    memcpy(run->exchange.buffers, buffers, sizeof(buffers));
    memcpy(run->exchange.buffer_bytes, plan->buffer_bytes, sizeof(plan->buffer_bytes));
    cw_execution_rebind(run->execution, buffers, reduce_context);
    return run;
}

void mpi_run_give(struct mpi_run *run, bool is_whole)
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
