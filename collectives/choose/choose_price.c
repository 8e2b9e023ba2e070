/* The price of one candidate, by the cheapest means that is exact enough. */
#include <math.h>
#include <string.h>

#include "collectives/choose/choose_private.h"
#include "collectives/phases/count_matrix.h"
#include "dataplane/limits.h"
#include "dataplane/status.h"

uint64_t choose_vector_bytes(const struct cw_problem *problem)
{
    return problem->count * problem->element_bytes;
}

/* Estimated number of ops of the plan, iterations counted one by one: the cost to interpret it. */
static uint64_t ops_estimate(const struct cw_problem *problem, const struct cw_candidate *candidate)
{
    uint64_t ranks = problem->ranks;
    bool pairs = problem->collective == CW_ALLTOALL || problem->collective == CW_ALLGATHER ||
                 problem->collective == CW_REDUCE_SCATTER || problem->collective == CW_ALLREDUCE;
    uint64_t segments = 1;
    if ((candidate->algorithm->takes & CW_TAKES_SEGMENT) != 0) {
        segments += choose_vector_bytes(problem) / candidate->parameters.segment_bytes;
    }
    return ranks * (pairs ? 4 * ranks : 64) + 2 * ranks * segments;
}

/* Builds all ranks' schedules and runs them in model time. */
static int price_interpret(const struct cw_choose_request *request, struct cw_candidate *candidate)
{
    char error[200];
    struct cw_plan *plan;
    struct cw_price price;
    if (ops_estimate(request->problem, candidate) > CW_CHOOSE_INTERPRET_OPS_MAX) {
        return CW_ERROR_UNSUPPORTED;
    }
    int status = cw_plan_build((struct cw_problem *)request->problem, candidate->algorithm, &candidate->parameters,
                               &plan, error, sizeof(error));
    if (status != CW_OK) {
        return status == CW_ERROR_MEMORY ? status : CW_ERROR_UNSUPPORTED;
    }
    status = cw_price_interpret(plan, request->network, &price, NULL);
    cw_plan_release(plan); /* the problem is the caller's */
    if (status == CW_OK) {
        candidate->time_ns = price.time_ns;
        candidate->priced = CW_PRICED_INTERPRETER;
    }
    return status;
}

/* ---- Algorithms that know nothing of clusters, too large to interpret ---- */

static bool sends_to_all(const struct cw_candidate *candidate)
{
    const char *name = candidate->algorithm->name;
    return candidate->algorithm->collective == CW_ALLTOALL && strcmp(name, "bruck") != 0;
}

/* Effect of a rank's credit for messages to other clusters on a pipeline of segments without handshakes: that many
 * cross in a round trip. */
static double credit_time_ns(const struct cw_choose_request *request, const struct cw_candidate *candidate)
{
    const struct cw_parameters *parameters = &candidate->parameters;
    bool eager = (candidate->algorithm->takes & CW_TAKES_SEGMENT) != 0 &&
                 parameters->segment_bytes <= parameters->eager_max_bytes;
    if (!eager || request->network->wan_messages == 0) {
        return 0;
    }
    double segments = (double)(choose_vector_bytes(request->problem) / parameters->segment_bytes);
    double trip_ns = 2 * request->network->paths[CW_PATH_WAN].latency_ns;
    return segments / request->network->wan_messages * trip_ns;
}

/* As if all paths were long: any hop may be across, and the last one to be through counts. */
static int price_wan(const struct cw_choose_request *request, struct cw_candidate *candidate)
{
    const struct cw_formula *formula = cw_formula_find(request->problem->collective, candidate->algorithm->name);
    struct cw_problem problem = *request->problem;
    struct cw_network network = *request->network;
    struct cw_parameters parameters = candidate->parameters;
    struct cw_formula_value value;
    problem.cluster_count = 1;
    problem.clusters.of = NULL;
    problem.cluster_via = NULL;
    network.paths[CW_PATH_LAN] = network.paths[CW_PATH_WAN];
    /* where more have short messages for a rank than it has slots, these wait for one as long ones do for their
     * place */
    if (sends_to_all(candidate) && problem.ranks > CW_DEFAULT_SLOTS) {
        parameters.eager_max_bytes = 0;
    }
    if (formula == NULL || formula->kind == CW_FORMULA_LOWER_BOUND ||
        cw_formula_evaluate(formula, &problem, &parameters, &network, &value) != CW_OK) {
        return CW_ERROR_UNSUPPORTED;
    }
    candidate->time_ns = fmax(value.time_ns, credit_time_ns(request, candidate));
    candidate->priced = CW_PRICED_ESTIMATE;
    return CW_OK;
}

/* ---- Count matrices too large to interpret ---- */

static int phases_make(const struct cw_candidate *candidate, const struct cw_count_matrix *count_matrix,
                       struct cw_phases *phases)
{
    const char *name = candidate->algorithm->name;
    uint64_t threshold = candidate->parameters.threshold_bytes;
    if (strncmp(name, "greedy", strlen("greedy")) == 0) {
        return cw_schedule_greedy(count_matrix, threshold, phases);
    }
    if (strncmp(name, "all-to-all-based", strlen("all-to-all-based")) == 0) {
        return cw_schedule_all_to_all_based(count_matrix, threshold, phases);
    }
    return CW_ERROR_UNSUPPORTED;
}

/* Each phase takes its longest message and its separation from the next: a ready signal, or a barrier. */
static int price_phases(const struct cw_choose_request *request, struct cw_candidate *candidate)
{
    const struct cw_plogp *path = &request->network->paths[CW_PATH_LAN];
    struct cw_count_matrix count_matrix;
    struct cw_phases phases;
    int status = cw_count_matrix_create(request->problem, &count_matrix);
    if (status != CW_OK) {
        return status == CW_ERROR_LIMIT ? CW_ERROR_UNSUPPORTED : status;
    }
    status = phases_make(candidate, &count_matrix, &phases);
    cw_count_matrix_dispose(&count_matrix);
    if (status != CW_OK) {
        return status;
    }
    bool barriers = strstr(candidate->algorithm->name, "barriers") != NULL;
    double hop = path->latency_ns + cw_plogp_gap(path, 0);
    double apart = barriers ? ceil(log2((double)request->problem->ranks)) * hop : hop;
    double time = 0;
    uint64_t longest = 0;
    for (uint32_t i = 0; i < phases.message_count; i++) {
        const struct cw_phase_message *part = &phases.messages[i];
        longest = part->bytes > longest ? part->bytes : longest;
        if (i + 1 == phases.message_count || phases.messages[i + 1].phase != part->phase) {
            time += cw_plogp_gap(path, longest) + path->latency_ns + apart;
            longest = 0;
        }
    }
    cw_phases_dispose(&phases);
    candidate->time_ns = time;
    candidate->priced = CW_PRICED_PHASES;
    return CW_OK;
}

/* A lower bound that ignores real costs of a plan is no basis for a search. */
static bool formula_applies(const struct cw_choose_request *request, struct cw_candidate *candidate)
{
    const struct cw_formula *formula = cw_formula_find(request->problem->collective, candidate->algorithm->name);
    struct cw_formula_value value;
    if (formula == NULL || formula->kind == CW_FORMULA_LOWER_BOUND ||
        cw_formula_evaluate(formula, request->problem, &candidate->parameters, request->network, &value) != CW_OK) {
        return false;
    }
    candidate->time_ns = value.time_ns;
    candidate->priced = value.kind == CW_FORMULA_EXACT ? CW_PRICED_FORMULA : CW_PRICED_ESTIMATE;
    return true;
}

int choose_refine(const struct cw_choose_request *request, struct cw_candidate *candidate)
{
    int status = candidate->priced == CW_PRICED_ESTIMATE ? price_interpret(request, candidate) : CW_OK;
    return status == CW_ERROR_UNSUPPORTED ? CW_OK : status;
}

int choose_price(const struct cw_choose_request *request, struct cw_candidate *candidate)
{
    if (formula_applies(request, candidate)) {
        return CW_OK;
    }
    int status = price_interpret(request, candidate);
    if (status == CW_ERROR_UNSUPPORTED && request->problem->cluster_count > 1) {
        status = price_wan(request, candidate);
    }
    if (status == CW_ERROR_UNSUPPORTED && request->problem->collective == CW_ALLTOALL) {
        status = price_phases(request, candidate);
    }
    return status;
}
