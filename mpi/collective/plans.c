#include "mpi/collective/plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/choose/choose.h"
#include "dataplane/status.h"
#include "mpi/collective/state.h"
#include "mpi/runtime/explain.h"
#include "mpi/runtime/process.h"

/* What a network within a host costs, roughly, until it is measured: 0.4 us from call to call, 8 bytes/ns. */
#define DEFAULT_LATENCY_NS  300.0
#define DEFAULT_OVERHEAD_NS 150.0
#define DEFAULT_RATE        8.0

/* What was chosen for a class of sizes of a collective on so many ranks. */
struct choice {
    struct choice *next;
    enum cw_collective collective;
    uint32_t ranks;
    uint32_t element_bytes;
    uint32_t size_class;
    bool ordered;
    struct cw_candidate best;
};

static struct choice *choices;

static struct cw_network network_default(void)
{
    struct cw_plogp path = cw_plogp_linear(DEFAULT_LATENCY_NS, DEFAULT_OVERHEAD_NS, DEFAULT_RATE);
    return (struct cw_network){
        .paths = {path, path},
        .ports = 1,
        .copy_ns_per_byte = 1 / DEFAULT_RATE,
        .reduce_ns_per_byte = 1 / DEFAULT_RATE,
        .contention = 0.4,
    };
}

/* Sizes of a class differ by less than a factor of two. */
static uint32_t size_class(uint64_t count)
{
    uint32_t class = 0;
    while (count >> class != 0) {
        class ++;
    }
    return class;
}

/* The smallest size of a class. */
static uint64_t class_count(uint32_t class)
{
    return class == 0 ? 0 : 1ull << (class - 1);
}

/* Asks for the class, with root 0 and equal counts. */
static int choice_make(const struct cw_problem_request *request, uint32_t class, struct choice *choice, char *error,
                       size_t error_bytes)
{
    struct cw_problem_request asked = *request;
    struct cw_network network = network_default();
    struct cw_problem *problem;
    struct cw_choice ranking;
    asked.root = 0;
    asked.count = class_count(class);
    asked.counts = NULL;
    int status = cw_problem_create(&asked, &problem, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_choose_request choose = {
        .problem = problem,
        .network = &network,
        .eager_max_bytes = mpi_process.eager_max_bytes,
    };
    status = cw_choose(&choose, &ranking);
    cw_problem_destroy(problem);
    if (status != CW_OK) {
        snprintf(error, error_bytes, "no algorithm fits");
        return status;
    }
    choice->best = ranking.candidates[0];
    return CW_OK;
}

static int choice_find(const struct cw_problem_request *request, struct choice **found, char *error, size_t error_bytes)
{
    uint32_t class = size_class(request->count);
    for (struct choice *choice = choices; choice != NULL; choice = choice->next) {
        if (choice->collective == request->collective && choice->ranks == request->ranks &&
            choice->size_class == class && choice->element_bytes == request->element_bytes &&
            choice->ordered == request->ordered) {
            *found = choice;
            return CW_OK;
        }
    }
    struct choice *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CW_ERROR_MEMORY;
    }
    *made = (struct choice){
        .collective = request->collective,
        .ranks = request->ranks,
        .element_bytes = request->element_bytes,
        .size_class = class,
        .ordered = request->ordered,
    };
    int status = choice_make(request, class, made, error, error_bytes);
    if (status != CW_OK) {
        free(made);
        return status;
    }
    made->next = choices;
    *found = choices = made;
    return CW_OK;
}

/* An algorithm for the very problem: the one of its class, or, where that one does not fit (other counts), the first that does. */
static const struct cw_algorithm *algorithm_for(const struct cw_problem *problem, const struct cw_algorithm *chosen)
{
    char reason[128];
    if (cw_algorithm_fits(chosen, problem, reason, sizeof(reason)) == CW_OK) {
        return chosen;
    }
    const struct cw_algorithm *algorithm;
    for (uint32_t index = 0; (algorithm = cw_algorithm_at(index)) != NULL; index++) {
        if (algorithm->collective == problem->collective &&
            (algorithm->needs & (CW_NEEDS_CLUSTERS | CW_NEEDS_MULTICAST)) == 0 &&
            cw_algorithm_fits(algorithm, problem, reason, sizeof(reason)) == CW_OK) {
            return algorithm;
        }
    }
    return NULL;
}

static int schedule_make(struct mpi_comm *comm, const struct cw_problem *problem, const struct choice *choice,
                         struct mpi_plan *plan, char *error, size_t error_bytes)
{
    uint32_t rank = (uint32_t)comm->rank;
    plan->algorithm = algorithm_for(problem, choice->best.algorithm);
    if (plan->algorithm == NULL) {
        snprintf(error, error_bytes, "no algorithm fits");
        return CW_ERROR_UNSUPPORTED;
    }
    plan->parameters = choice->best.parameters;
    plan->parameters.eager_max_bytes = mpi_process.eager_max_bytes;
    plan->predicted_ns = choice->best.time_ns;
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
                          plan->count * plan->element_bytes, plan->calls, plan->predicted_ns, plan->measured_ns);
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
    struct choice *choice;
    struct cw_problem *problem;
    int status = choice_find(request, &choice, error, error_bytes);
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
    status = schedule_make(comm, problem, choice, made, error, error_bytes);
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

void mpi_choices_forget(void)
{
    while (choices != NULL) {
        struct choice *next = choices->next;
        free(choices);
        choices = next;
    }
}
