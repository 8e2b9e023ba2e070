/* The value of a plan, and the plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/check/check.h"
#include "collectives/compile/private.h"
#include "dataplane/status.h"

/* An algorithm of the registry with similar messages between pairs: all at once, each rank beginning with its
 * neighbour. */
#define LIKE_PAIRS "rotated"

/* A choice for a problem, as MPI would make it. */
struct question {
    const struct cw_measured *measured;
    enum cw_measured_path path;
    struct cw_choose_request request;
    struct cw_network network;
    struct cw_choice choice; /* by the model */
};

static int query(struct question *question, const struct cw_problem *problem)
{
    question->request.problem = problem;
    (void)cw_measured_network(question->measured, question->path, problem->ranks, &question->network);
    question->request.network = &question->network;
    return cw_choose(&question->request, &question->choice);
}

/* The model's time of an algorithm; 0: none. */
static double model_time(const struct question *question, const char *name)
{
    for (uint32_t i = 0; i < question->choice.count; i++) {
        if (strcmp(question->choice.candidates[i].algorithm->name, name) == 0) {
            return question->choice.candidates[i].time_ns;
        }
    }
    return 0;
}

static double test_time(const struct question *question, const char *name)
{
    double time_ns = 0;
    (void)cw_measured_standing(question->measured, question->path, question->request.problem, name, &time_ns);
    return time_ns;
}

/* The fastest all-gather of this number of bytes of each rank; 0: not known. */
static double gather_price(const struct question *like, uint32_t ranks, uint64_t bytes)
{
    const struct cw_problem_request request = {
        .collective = CW_ALLGATHER, .ranks = ranks, .element_bytes = 1, .count = bytes};
    struct cw_problem *problem;
    struct question *question = malloc(sizeof(*question));
    char reason[200];
    double time_ns = 0;
    if (question == NULL || cw_problem_create(&request, &problem, reason, sizeof(reason)) != CW_OK) {
        free(question);
        return 0;
    }
    *question = *like;
    if (query(question, problem) == CW_OK) {
        time_ns = question->choice.candidates[0].time_ns;
    }
    cw_problem_destroy(problem);
    free(question);
    return time_ns;
}

/* The expected time of the call with `name`, from its recorded time; 0: not known. Model or tests are asked about both
 * ways, and the ratio of their answers counts. */
static double expect(const struct joint *joint, const struct question *question, const char *name,
                     uint32_t agreed_count)
{
    uint32_t ranks = joint->problem->ranks;
    const char *way = strcmp(joint->algorithm, CW_RECORDING_BY_PAIRS) == 0 ? LIKE_PAIRS : joint->algorithm;
    double now = test_time(question, way), then = test_time(question, name);
    if (now <= 0 || then <= 0) {
        now = model_time(question, way);
        then = model_time(question, name);
    }
    if (now <= 0 || then <= 0) {
        return 0;
    }
    if ((joint->flags & CW_RECORDING_EXCHANGED) != 0) {
        now += gather_price(question, ranks, 2ull * ranks * sizeof(uint64_t));
    }
    if (joint->row.has_rows) {
        double agreement = gather_price(question, ranks, (agreed_count + 63ull) / 64 * sizeof(uint64_t));
        then += agreement;
        now += (joint->flags & CW_RECORDING_PLANNED) != 0 ? agreement : 0;
    }
    return joint->row.now_ns * then / now;
}

/* Builds the plan and proves it. CW_OK, with *plan NULL and the reason if there is none; CW_ERROR_MEMORY. */
static int plan_make(struct joint *joint, const struct cw_candidate *best, struct cw_plan **plan)
{
    char reason[sizeof(joint->row.reason)];
    struct cw_check_report report;
    *plan = NULL;
    int status = cw_plan_build(joint->problem, best->algorithm, &best->parameters, plan, reason, sizeof(reason));
    if (status != CW_OK) {
        *plan = NULL;
        snprintf(joint->row.reason, sizeof(joint->row.reason), "%s", reason);
        return status == CW_ERROR_MEMORY ? status : CW_OK;
    }
    status = cw_check(*plan, &report);
    if (status != CW_OK || report.fault != CW_CHECK_PASSED) {
        snprintf(joint->row.reason, sizeof(joint->row.reason), "the checker: %.180s",
                 status == CW_OK ? report.text : cw_status_text(status));
        (void)cw_plan_release(*plan);
        *plan = NULL;
        return status == CW_ERROR_MEMORY ? status : CW_OK;
    }
    joint->problem = NULL; /* the plan's from now on */
    return CW_OK;
}

/* The ranks' choice without a plan; CW_OK or an error. */
static int choose(const struct question *question, struct cw_candidate *best)
{
    enum cw_measured_origin origin;
    int status = cw_measured_choose(question->measured, question->path, NULL, &question->request, best, &origin);
    best->parameters.eager_max_bytes = question->request.eager_max_bytes;
    best->parameters.multicast_eager_max_bytes = question->request.multicast_eager_max_bytes;
    return status;
}

int joint_serve(struct joint *joint, const struct cw_compile_request *request, const struct cw_recording *recording,
                uint32_t agreed_count, struct cw_plan **plan)
{
    struct cw_compile_row *row = &joint->row;
    struct cw_candidate best;
    struct question *question = malloc(sizeof(*question));
    if (question == NULL) {
        return CW_ERROR_MEMORY;
    }
    *question = (struct question){
        .measured = request->measured,
        .path = (joint->comm_flags & CW_RECORDING_RDMA) != 0   ? CW_MEASURED_RDMA
                : (joint->comm_flags & CW_RECORDING_WIRE) != 0 ? CW_MEASURED_WIRE
                                                               : CW_MEASURED_SHARED,
        .request =
            {
                .eager_max_bytes = recording->eager_max_bytes,
                .multicast = (joint->comm_flags & CW_RECORDING_MULTICASTS) != 0,
                .multicast_eager_max_bytes = recording->multicast_eager_max_bytes,
            },
    };
    int status = query(question, joint->problem);
    status = status == CW_OK ? choose(question, &best) : status;
    if (status != CW_OK) {
        row->verdict = CW_COMPILE_FAILED;
        snprintf(row->reason, sizeof(row->reason), "no algorithm fits");
        free(question);
        return status == CW_ERROR_MEMORY ? status : CW_OK;
    }
    row->then = best.algorithm->name;
    row->then_ns = expect(joint, question, best.algorithm->name, agreed_count);
    free(question);
    if (!request->all && row->then_ns <= 0) {
        row->verdict = CW_COMPILE_UNKNOWN;
        return CW_OK;
    }
    /* a call that a plan has served keeps it, even if another plan would not be faster */
    double gain_least = (joint->flags & CW_RECORDING_PLANNED) != 0 ? -CW_COMPILE_GAIN_LEAST : CW_COMPILE_GAIN_LEAST;
    if (!request->all && row->then_ns > row->now_ns * (1 - gain_least)) {
        row->verdict = CW_COMPILE_SLOWER;
        return CW_OK;
    }
    status = plan_make(joint, &best, plan);
    row->verdict = *plan == NULL ? CW_COMPILE_FAILED : CW_COMPILE_SERVED;
    return status;
}
