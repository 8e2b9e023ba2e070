#include "mpi/collective/compiled/phases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "collectives/check/check.h"
#include "collectives/file/plan_file.h"
#include "dataplane/status.h"
#include "mpi/runtime/error.h"
#include "mpi/state/handle.h"
#include "mpi/state/process.h"

enum { REASON_BYTES = 500 };

struct mpi_phases {
    uint32_t references; /* the handle, and calls in progress */
    uint32_t digest;
    uint64_t context; /* of the communicator */
    MPI_Comm comm;
    struct cw_problem *problem; /* elements of a byte */
    struct mpi_plan *plan;
};

static int no_memory(const struct mpi_comm *comm)
{
    return mpi_error(comm->handle, MPI_ERR_NO_MEM, "no memory for the phases of %d ranks", comm->size);
}

/* The digest on which all ranks must agree. A schedule follows from it. */
static uint32_t digest_of(const struct cw_problem *problem, const char *algorithm,
                          const struct cw_parameters *parameters)
{
    const uint64_t told[] = {parameters->segment_bytes,
                             parameters->eager_max_bytes,
                             parameters->threshold_bytes,
                             parameters->degree,
                             parameters->concurrency,
                             parameters->senders,
                             problem->ranks};
    uint64_t hash = XXH3_64bits_withSeed(told, sizeof(told), XXH3_64bits(algorithm, strlen(algorithm)));
    for (uint32_t from = 0; from < problem->ranks; from++) {
        for (uint32_t to = 0; to < problem->ranks; to++) {
            uint64_t bytes = cw_problem_pair_bytes(problem, from, to);
            hash = XXH3_64bits_withSeed(&bytes, sizeof(bytes), hash);
        }
    }
    uint32_t digest = (uint32_t)hash & 0xffffff;
    return digest != 0 ? digest : 1;
}

/* Takes problem and schedule, even if it fails. */
static int phases_join(struct mpi_comm *comm, struct cw_problem *problem, const struct cw_algorithm *algorithm,
                       const struct cw_parameters *parameters, struct cw_schedule *schedule, struct mpi_phases **phases)
{
    struct mpi_phases *made = calloc(1, sizeof(*made));
    struct mpi_plan *plan = mpi_plan_make(problem, (uint32_t)comm->rank, algorithm, parameters, schedule);
    if (made == NULL || plan == NULL) {
        if (plan != NULL) {
            mpi_plan_drop(plan);
        } else {
            cw_schedule_dispose(schedule);
        }
        free(made);
        cw_problem_destroy(problem);
        return no_memory(comm);
    }
    *made = (struct mpi_phases){
        .references = 1,
        .digest = digest_of(problem, algorithm->name, parameters),
        .context = comm->context,
        .comm = comm->handle,
        .problem = problem,
        .plan = plan,
    };
    *phases = made;
    return MPI_SUCCESS;
}

int mpi_phases_make(struct mpi_comm *comm, const uint64_t *matrix, const struct mpi_choice *choice,
                    struct mpi_phases **phases)
{
    const struct cw_problem_request request = {
        .collective = CW_ALLTOALL,
        .ranks = (uint32_t)comm->size,
        .element_bytes = 1,
        .counts = matrix,
    };
    struct cw_problem *problem;
    struct cw_schedule schedule;
    char reason[REASON_BYTES];
    int status = cw_problem_create(&request, &problem, reason, sizeof(reason));
    if (status == CW_OK) {
        status = cw_schedule_build(problem, choice->algorithm, &choice->parameters, (uint32_t)comm->rank, &schedule,
                                   reason, sizeof(reason));
        if (status != CW_OK) {
            cw_problem_destroy(problem);
        }
    }
    if (status == CW_ERROR_MEMORY) {
        return no_memory(comm);
    }
    if (status != CW_OK) {
        return mpi_error(comm->handle, MPI_ERR_COUNT, "no phases can be made of these counts: %s", reason);
    }
    return phases_join(comm, problem, choice->algorithm, &choice->parameters, &schedule, phases);
}

/* ---- files ---- */

/* The reason why MPI's transport cannot execute it, for a file of any origin. NULL: nothing. */
static const char *schedule_check(const struct cw_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        const struct cw_op *op = &schedule->ops[i];
        if (op->kind == CW_OP_REDUCE || op->kind == CW_OP_MULTICAST) {
            return "it has reductions or multicasts, which no all-to-all of MPI has";
        }
        bool is_long = op->bytes > mpi_process.eager_max_bytes || op->last_bytes > mpi_process.eager_max_bytes;
        if (op->kind == CW_OP_PUT && (op->flags & CW_OP_EAGER) != 0 && is_long) {
            return "it sends more at once than the paths of this job take; make it in a job like this one";
        }
    }
    return NULL;
}

/* MPI_SUCCESS or MPI_ERR_ARG, raised. */
static int plan_check(const struct mpi_comm *comm, const struct cw_plan *plan, const char *place)
{
    const struct cw_problem *problem = plan->problem;
    const char *reason = NULL;
    if (problem->collective != CW_ALLTOALL) {
        return mpi_error(comm->handle, MPI_ERR_ARG, "%s is a plan of %s, not of an all-to-all", place,
                         cw_collective_name(problem->collective));
    }
    if (problem->ranks != (uint32_t)comm->size) {
        return mpi_error(comm->handle, MPI_ERR_ARG, "%s holds phases for %u ranks, %s has %d; make and save others",
                         place, problem->ranks, comm->name, comm->size);
    }
    if (cw_algorithm_find(CW_ALLTOALL, plan->algorithm) == NULL) {
        reason = "its algorithm is unknown to this version; make and save it again";
    }
    for (uint32_t rank = 0; reason == NULL && rank < problem->ranks; rank++) {
        reason = schedule_check(&plan->schedules[rank]);
    }
    return reason == NULL ? MPI_SUCCESS : mpi_error(comm->handle, MPI_ERR_ARG, "%s: %s", place, reason);
}

/* Takes this rank's part out of a plan, which it frees. */
static int plan_extract(struct mpi_comm *comm, struct cw_plan *plan, struct mpi_phases **phases)
{
    struct cw_schedule schedule = plan->schedules[comm->rank];
    struct cw_parameters parameters = plan->parameters;
    const struct cw_algorithm *algorithm = cw_algorithm_find(CW_ALLTOALL, plan->algorithm);
    plan->schedules[comm->rank] = (struct cw_schedule){0};
    return phases_join(comm, cw_plan_release(plan), algorithm, &parameters, &schedule, phases);
}

int mpi_phases_decode(struct mpi_comm *comm, const void *bytes, size_t length, const char *place,
                      struct mpi_phases **phases)
{
    struct cw_plan *plan;
    char reason[REASON_BYTES];
    int status = cw_plan_decode(bytes, length, &plan, reason, sizeof(reason));
    if (status == CW_ERROR_MEMORY) {
        return no_memory(comm);
    }
    if (status != CW_OK) {
        return mpi_error(comm->handle, MPI_ERR_IO, "%s: %s; save the phases again", place, reason);
    }
    status = cw_check_validate(plan, reason, sizeof(reason));
    if (status == CW_ERROR_MEMORY) {
        cw_plan_destroy(plan);
        return no_memory(comm);
    }
    int code = status != CW_OK ? mpi_error(comm->handle, MPI_ERR_IO, "%s: %s; save the phases again", place, reason)
                               : plan_check(comm, plan, place);
    if (code != MPI_SUCCESS) {
        cw_plan_destroy(plan);
        return code;
    }
    return plan_extract(comm, plan, phases);
}

int mpi_phases_encode(const struct mpi_phases *phases, void **bytes, size_t *length)
{
    struct cw_plan *plan;
    char reason[REASON_BYTES] = "";
    int status = cw_plan_build(phases->problem, phases->plan->algorithm, &phases->plan->parameters, &plan, reason,
                               sizeof(reason));
    if (status == CW_OK) {
        status = cw_plan_encode(plan, bytes, length);
        (void)cw_plan_release(plan); /* the problem stays with the phases */
    }
    return status == CW_OK ? MPI_SUCCESS
                           : mpi_error(phases->comm, mpi_error_of_status(status), "the phases cannot be saved: %s",
                                       status == CW_ERROR_LIMIT ? "they take more than 4 GiB" : reason);
}

/* ---- life ---- */

void mpi_phases_retain(struct mpi_phases *phases)
{
    phases->references++;
}

void mpi_phases_release(struct mpi_phases *phases)
{
    if (--phases->references == 0) {
        mpi_plan_drop(phases->plan);
        cw_problem_destroy(phases->problem);
        free(phases);
    }
}

const struct cw_problem *mpi_phases_problem(const struct mpi_phases *phases)
{
    return phases->problem;
}

struct mpi_plan *mpi_phases_plan(const struct mpi_phases *phases)
{
    return phases->plan;
}

uint32_t mpi_phases_digest(const struct mpi_phases *phases)
{
    return phases->digest;
}

int mpi_phases_belong(const struct mpi_phases *phases, const struct mpi_comm *comm)
{
    if (phases->problem->ranks != (uint32_t)comm->size) {
        return mpi_error(comm->handle, MPI_ERR_ARG, "these phases are for %u ranks, but %s has %d",
                         phases->problem->ranks, comm->name, comm->size);
    }
    if (phases->context != comm->context) {
        return mpi_error(comm->handle, MPI_ERR_COMM,
                         "these phases were made for another communicator than %s; make or load them for each one",
                         comm->name);
    }
    return MPI_SUCCESS;
}

int mpi_phases_return(struct mpi_phases *phases, MPI_Comm comm, MPIX_Alltoallv_phases *handle)
{
    uintptr_t made = mpi_handle_make(MPI_KIND_PHASES, phases);
    if (made == 0) {
        mpi_phases_release(phases);
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for the handle of phases");
    }
    *handle = (MPIX_Alltoallv_phases)made;
    return MPI_SUCCESS;
}

int mpi_phases_lookup(MPIX_Alltoallv_phases handle, MPI_Comm comm, struct mpi_phases **phases)
{
    struct mpi_phases *found = mpi_handle_object(MPI_KIND_PHASES, (uintptr_t)handle);
    if (found == NULL) {
        return mpi_error(comm, MPI_ERR_ARG, "%#lx is no handle of phases, or they have been freed",
                         (unsigned long)(uintptr_t)handle);
    }
    *phases = found;
    return MPI_SUCCESS;
}

void mpi_phases_drop(MPIX_Alltoallv_phases handle)
{
    struct mpi_phases *phases = mpi_handle_object(MPI_KIND_PHASES, (uintptr_t)handle);
    mpi_handle_free(MPI_KIND_PHASES, (uintptr_t)handle);
    mpi_phases_release(phases);
}
