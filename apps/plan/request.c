/* The problem, the algorithm and its parameters on the command line of `causeway plan`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/plan/plan.h"
#include "control/settings/units.h"
#include "dataplane/status.h"

/* --size sets size_bytes; its presence distinguishes 0 from nothing. */
static int size_parse(void *context, const char *text)
{
    struct plan_request *request = context;
    if (!cw_units_bytes(text, &request->size_bytes)) {
        app_error("bad value", text, "a size like 1500, 64K or 10MB is wanted for --size");
        return APP_EXIT_USAGE;
    }
    request->size_given = true;
    return APP_EXIT_SUCCESS;
}

size_t plan_request_options(struct plan_request *request, bool how, struct app_option *rows)
{
    request->ranks = 0;
    request->element_bytes = 1;
    request->segment_bytes = request->threshold_bytes = PLAN_NOT_GIVEN;
    request->degree = request->concurrency = request->senders = PLAN_NOT_GIVEN;
    const struct app_option problem[] = {
        {"collective", "NAME", "bcast, allgather, ...: `causeway plan list` names them", APP_OPTION_TEXT,
         &request->collective, 0, 0, NULL},
        {"ranks", "P", "how many take part", APP_OPTION_COUNT, &request->ranks, 1, CW_RANKS_MAX, NULL},
        {"root", "R", "of bcast, scatter, gather, reduce (0)", APP_OPTION_COUNT, &request->root, 0, CW_RANKS_MAX, NULL},
        {"size", "BYTES", "of the vector; scatter, gather, allgather, alltoall, reduce-scatter: of each block",
         APP_OPTION_EACH, request, 0, 0, size_parse},
        {"counts", "LIST", "instead: a size per rank, alltoall: per pair, row by row: 3,0,1K or @FILE", APP_OPTION_TEXT,
         &request->counts, 0, 0, NULL},
        {"element", "BYTES", "of one element; sizes are multiples of it (1)", APP_OPTION_BYTES, &request->element_bytes,
         1, CW_ELEMENT_BYTES_MAX, NULL},
        {"ordered", NULL, "the reduction's operation is not commutative", APP_OPTION_FLAG, &request->ordered, 0, 0,
         NULL},
        {"clusters", "LIST", "ranks of each cluster in turn: 8,8", APP_OPTION_TEXT, &request->clusters, 0, 0, NULL},
        {"via", "LIST", "clusters that reach each other through a third: 0-2:1,0-3:1", APP_OPTION_TEXT, &request->via,
         0, 0, NULL},
    };
    const struct app_option parameters[] = {
        {"algorithm", "NAME", "`causeway plan list` names them", APP_OPTION_TEXT, &request->algorithm, 0, 0, NULL},
        {"segment", "BYTES", "pipelines: of a segment (8192)", APP_OPTION_BYTES, &request->segment_bytes, 1, 0, NULL},
        {"eager", "BYTES", "messages up to this go without a handshake, or `all` (4096)", APP_OPTION_TEXT,
         &request->eager, 0, 0, NULL},
        {"threshold", "BYTES", "all-to-all in phases: shorter messages share one phase (0)", APP_OPTION_BYTES,
         &request->threshold_bytes, 0, 0, NULL},
        {"degree", "D", "of the d-ary tree (2)", APP_OPTION_COUNT, &request->degree, 1, CW_RANKS_MAX, NULL},
        {"concurrency", "C", "exchanges at the same time (2)", APP_OPTION_COUNT, &request->concurrency, 1, CW_RANKS_MAX,
         NULL},
        {"senders", "N", "ranks of a cluster that send to others at the same time (0: all)", APP_OPTION_COUNT,
         &request->senders, 0, CW_RANKS_MAX, NULL},
    };
    size_t count = sizeof(problem) / sizeof(problem[0]);
    memcpy(rows, problem, sizeof(problem));
    if (how) {
        memcpy(rows + count, parameters, sizeof(parameters));
        count += sizeof(parameters) / sizeof(parameters[0]);
    }
    return count;
}

/* ---- The problem ---- */

static uint64_t *counts_parse(const struct plan_request *request, enum cw_collective collective)
{
    bool pairs = collective == CW_ALLTOALL;
    uint64_t wanted = pairs ? request->ranks * request->ranks : request->ranks;
    if (request->counts[0] != '@') {
        return plan_counts_parse(request->counts, wanted, pairs, request->element_bytes);
    }
    char *text = plan_read_text(request->counts + 1);
    uint64_t *counts = text != NULL ? plan_counts_parse(text, wanted, pairs, request->element_bytes) : NULL;
    free(text);
    return counts;
}

struct lists {
    uint64_t *counts;
    uint32_t *cluster_of;
    uint32_t *via;
};

static bool lists_parse(const struct plan_request *request, struct cw_problem_request *asked, struct lists *lists)
{
    if (request->counts != NULL) {
        lists->counts = counts_parse(request, asked->collective);
        if (lists->counts == NULL) {
            return false;
        }
    }
    if (request->clusters != NULL) {
        lists->cluster_of = calloc(request->ranks, sizeof(uint32_t));
        asked->cluster_count =
            lists->cluster_of != NULL ? plan_clusters_parse(request->clusters, request->ranks, lists->cluster_of) : 0;
        if (asked->cluster_count == 0) {
            return false;
        }
    }
    if (request->via != NULL && request->clusters == NULL) {
        app_error("a way between clusters, and no clusters", request->via, "give --clusters, like 4,4,4");
        return false;
    }
    if (request->via != NULL) {
        uint32_t clusters = asked->cluster_count;
        lists->via = calloc((size_t)clusters * clusters + 1, sizeof(uint32_t));
        if (lists->via == NULL || !plan_via_parse(request->via, clusters, lists->via)) {
            return false;
        }
    }
    asked->counts = lists->counts;
    asked->cluster_of = lists->cluster_of;
    asked->cluster_via = lists->via;
    return true;
}

static bool request_complete(const struct plan_request *request, enum cw_collective *collective)
{
    if (request->collective == NULL || request->ranks == 0) {
        app_error("nothing to plan", request->collective == NULL ? "--collective is missing" : "--ranks is missing",
                  "--help lists the options");
        return false;
    }
    *collective = cw_collective_find(request->collective);
    if (*collective == CW_COLLECTIVE_COUNT) {
        app_error("no such collective", request->collective, "`causeway plan list` names them");
        return false;
    }
    if (*collective != CW_BARRIER && !request->size_given && request->counts == NULL) {
        app_error("the amount of data", "--size is missing", "like --size 64K, or --counts with a size per rank");
        return false;
    }
    if (request->size_given && request->counts != NULL) {
        app_error("both --size and --counts are given", request->collective,
                  "--counts has the size of each block: leave --size out");
        return false;
    }
    if (*collective == CW_BARRIER && request->size_bytes > 0) {
        app_error("a barrier moves nothing, but --size is given", request->collective, "leave --size out");
        return false;
    }
    if (request->size_bytes % request->element_bytes != 0) {
        app_error("--size is no multiple of --element", NULL, "give both so that whole elements are moved");
        return false;
    }
    return true;
}

struct cw_problem *plan_request_problem(const struct plan_request *request)
{
    enum cw_collective collective;
    char error[200];
    struct cw_problem *problem = NULL;
    struct lists lists = {0};
    if (!request_complete(request, &collective)) {
        return NULL;
    }
    struct cw_problem_request asked = {
        .collective = collective,
        .ranks = (uint32_t)request->ranks,
        .root = (uint32_t)request->root,
        .element_bytes = (uint32_t)request->element_bytes,
        .ordered = request->ordered,
        .count = request->size_bytes / request->element_bytes,
    };
    if (lists_parse(request, &asked, &lists) && cw_problem_create(&asked, &problem, error, sizeof(error)) != CW_OK) {
        app_error(error, request->collective, NULL);
    }
    free(lists.counts);
    free(lists.cluster_of);
    free(lists.via);
    return problem;
}

/* ---- How ---- */

const struct cw_algorithm *plan_request_algorithm(const struct plan_request *request, enum cw_collective collective)
{
    char names[1024] = "there are";
    const struct cw_algorithm *algorithm;
    if (request->algorithm != NULL) {
        algorithm = cw_algorithm_find(collective, request->algorithm);
        if (algorithm != NULL) {
            return algorithm;
        }
    }
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        size_t used = strlen(names);
        if (algorithm->collective == collective) {
            snprintf(names + used, sizeof(names) - used, " %s", algorithm->name);
        }
    }
    app_error(request->algorithm != NULL ? "no such algorithm" : "--algorithm is missing",
              request->algorithm != NULL ? request->algorithm : cw_collective_name(collective), names);
    return NULL;
}

/* Takes what was given for a parameter that the algorithm looks at. False: it does not; reported. */
static bool parameter_set(const struct cw_algorithm *algorithm, uint32_t bit, const char *option, uint64_t given,
                          uint64_t *parameter)
{
    if (given == PLAN_NOT_GIVEN) {
        return true;
    }
    if ((algorithm->takes & bit) == 0) {
        char what[80];
        snprintf(what, sizeof(what), "this algorithm does not look at %s", option);
        app_error(what, algorithm->name, "leave it out; `causeway plan list` shows the parameters of each");
        return false;
    }
    *parameter = given;
    return true;
}

bool plan_request_parameters(const struct plan_request *request, const struct cw_algorithm *algorithm,
                             struct cw_parameters *parameters)
{
    *parameters = cw_parameters_default();
    uint64_t degree = parameters->degree;
    uint64_t concurrency = parameters->concurrency;
    uint64_t senders = parameters->senders;
    if (!parameter_set(algorithm, CW_TAKES_SEGMENT, "--segment", request->segment_bytes, &parameters->segment_bytes) ||
        !parameter_set(algorithm, CW_TAKES_THRESHOLD, "--threshold", request->threshold_bytes,
                       &parameters->threshold_bytes) ||
        !parameter_set(algorithm, CW_TAKES_DEGREE, "--degree", request->degree, &degree) ||
        !parameter_set(algorithm, CW_TAKES_CONCURRENCY, "--concurrency", request->concurrency, &concurrency) ||
        !parameter_set(algorithm, CW_TAKES_SENDERS, "--senders", request->senders, &senders)) {
        return false;
    }
    parameters->degree = (uint32_t)degree;
    parameters->concurrency = (uint32_t)concurrency;
    parameters->senders = (uint32_t)senders;
    return request->eager == NULL || plan_eager_parse(request->eager, &parameters->eager_max_bytes);
}

/* Half of the machine's memory, or the limit of a plan. */
static uint64_t memory_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t half = pages > 0 && page_bytes > 0 ? (uint64_t)pages / 2 * (uint64_t)page_bytes : CW_PLAN_BYTES_MAX;
    return half < CW_PLAN_BYTES_MAX ? half : CW_PLAN_BYTES_MAX;
}

/* False: the plan would not fit into memory, or cannot be built at all; reported. */
static bool memory_suffices(const struct cw_problem *problem, const struct cw_algorithm *algorithm,
                            const struct cw_parameters *parameters)
{
    char error[300];
    char todo[160];
    uint64_t limit = memory_limit();
    uint64_t bytes;
    if (cw_plan_estimate(problem, algorithm, parameters, &bytes, error, sizeof(error)) != CW_OK) {
        app_error(error, NULL, "`causeway plan list` shows the requirements of each algorithm");
        return false;
    }
    if (bytes <= limit) {
        return true;
    }
    snprintf(error, sizeof(error), "%s %s among %u ranks", cw_collective_name(problem->collective), algorithm->name,
             problem->ranks);
    snprintf(todo, sizeof(todo),
             "more than about %llu MiB, where %llu are the limit: plan for fewer --ranks, or by another algorithm",
             (unsigned long long)(bytes >> 20), (unsigned long long)(limit >> 20));
    app_error("the plan would take too much memory", error, todo);
    return false;
}

struct cw_plan *plan_request_build(struct cw_problem *problem, const struct cw_algorithm *algorithm,
                                   const struct cw_parameters *parameters, int *exit_code)
{
    struct cw_plan *plan = NULL;
    char error[300];
    *exit_code = APP_EXIT_USAGE;
    if (!memory_suffices(problem, algorithm, parameters)) {
        return NULL;
    }
    int status = cw_plan_build(problem, algorithm, parameters, &plan, error, sizeof(error));
    if (status != CW_OK) {
        app_error(error, NULL, "`causeway plan list` shows the requirements of each algorithm");
        *exit_code = status == CW_ERROR_MEMORY ? APP_EXIT_MACHINE : APP_EXIT_USAGE;
        return NULL;
    }
    *exit_code = APP_EXIT_SUCCESS;
    return plan;
}

bool plan_eager_parse(const char *text, uint64_t *bytes)
{
    if (strcmp(text, "all") == 0) {
        *bytes = CW_EAGER_ALL;
        return true;
    }
    if (!cw_units_bytes(text, bytes)) {
        app_error("bad value", text, "a size, or `all`, is wanted for --eager");
        return false;
    }
    return true;
}
