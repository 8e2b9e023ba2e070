/* The problem, the algorithm and its parameters on the command line of `causeway plan`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/plan.h"
#include "dataplane/status.h"

/* --size sets size_bytes; that it was given tells 0 from nothing. */
static int size_take(void *context, const char *text)
{
    struct plan_request *request = context;
    if (!app_parse_bytes(text, &request->size_bytes)) {
        app_error("bad value", text, "a size like 1500, 64K or 10MB is wanted for --size");
        return APP_EXIT_USAGE;
    }
    request->size_given = true;
    return APP_EXIT_SUCCESS;
}

size_t plan_request_options(struct plan_request *request, bool how, struct app_option *rows)
{
    struct cw_parameters defaults = cw_parameters_default();
    request->ranks = 0;
    request->element_bytes = 1;
    request->segment_bytes = defaults.segment_bytes;
    request->degree = defaults.degree;
    request->concurrency = defaults.concurrency;
    const struct app_option problem[] = {
        {"collective", "NAME", "bcast, allgather, ...: `causeway plan list` names them", APP_OPTION_TEXT,
         &request->collective, 0, 0, NULL},
        {"ranks", "P", "how many take part", APP_OPTION_COUNT, &request->ranks, 1, CW_RANKS_MAX, NULL},
        {"root", "R", "of bcast, scatter, gather, reduce (0)", APP_OPTION_COUNT, &request->root, 0, CW_RANKS_MAX, NULL},
        {"size", "BYTES", "of the vector; scatter, gather, allgather, alltoall, reduce-scatter: of each block",
         APP_OPTION_EACH, request, 0, 0, size_take},
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

/* ---- Lists ---- */

/* Sizes apart by commas or white space, in elements; NULL: reported. */
static uint64_t *counts_parse(const char *text, uint64_t wanted, uint64_t element_bytes)
{
    uint64_t *counts = calloc(wanted + 1, sizeof(*counts));
    uint64_t found = 0;
    char word[32];
    int used;
    char where[128];
    while (counts != NULL && sscanf(text, " %31[^, \t\r\n]%n", word, &used) == 1) {
        uint64_t bytes;
        if (!app_parse_bytes(word, &bytes) || bytes % element_bytes != 0 || found == wanted) {
            snprintf(where, sizeof(where), "entry %llu, %s", (unsigned long long)found, word);
            app_error(found == wanted ? "more counts than ranks" : "bad count", where,
                      found == wanted ? "one size per rank; alltoall: per pair of ranks"
                                      : "a size that is a multiple of --element is wanted");
            free(counts);
            return NULL;
        }
        counts[found++] = bytes / element_bytes;
        text += used;
        text += strspn(text, ", \t\r\n");
    }
    if (counts == NULL) {
        snprintf(where, sizeof(where), "%llu of them", (unsigned long long)wanted);
        app_error("no memory for the counts", where, "plan for fewer ranks");
    }
    if (counts != NULL && found < wanted) {
        snprintf(where, sizeof(where), "%llu of %llu", (unsigned long long)found, (unsigned long long)wanted);
        app_error("fewer counts than ranks", where, "one size per rank; alltoall: per pair of ranks, row by row");
        free(counts);
        return NULL;
    }
    return counts;
}

static uint64_t *counts_take(const struct plan_request *request, enum cw_collective collective)
{
    uint64_t wanted = collective == CW_ALLTOALL ? request->ranks * request->ranks : request->ranks;
    if (request->counts[0] != '@') {
        return counts_parse(request->counts, wanted, request->element_bytes);
    }
    char *text = plan_read_text(request->counts + 1);
    uint64_t *counts = text != NULL ? counts_parse(text, wanted, request->element_bytes) : NULL;
    free(text);
    return counts;
}

/* "8,8": the cluster of each rank; returns how many clusters, 0: reported. */
static uint32_t clusters_parse(const char *text, uint64_t ranks, uint32_t *cluster_of)
{
    uint32_t clusters = 0;
    uint64_t rank = 0;
    const char *at = text;
    while (*at != '\0') {
        char *end;
        unsigned long long size = strtoull(at, &end, 10);
        if (end == at || size == 0 || size > ranks - rank || (*end != ',' && *end != '\0') ||
            clusters == CW_CLUSTERS_MAX) {
            app_error("bad clusters", text, "numbers of ranks that add up to --ranks, like 8,8");
            return 0;
        }
        for (; size > 0; size--) {
            cluster_of[rank++] = clusters;
        }
        clusters++;
        at = *end == ',' ? end + 1 : end;
    }
    if (rank != ranks) {
        app_error("bad clusters", text, "the numbers must add up to --ranks");
        return 0;
    }
    return clusters;
}

/* "0-2:1": both directions. False: reported. */
static bool via_parse(const char *text, uint32_t clusters, uint32_t *via)
{
    const char *at = text;
    for (uint32_t i = 0; i < clusters * clusters; i++) {
        via[i] = CW_DIRECT;
    }
    while (*at != '\0') {
        uint32_t numbers[3];
        static const char after[] = "-:,";
        const char *start = at;
        bool good = true;
        for (uint32_t i = 0; i < 3 && good; i++) {
            char *end = NULL;
            unsigned long number = at[0] >= '0' && at[0] <= '9' ? strtoul(at, &end, 10) : clusters;
            good = number < clusters && (*end == after[i] || (i == 2 && *end == '\0'));
            numbers[i] = good ? (uint32_t)number : 0;
            at = good ? end + (*end != '\0') : at;
        }
        if (!good || numbers[0] == numbers[1]) {
            app_error("bad way between clusters", start,
                      "like 0-2:1: between clusters 0 and 2 through 1, numbers of --clusters");
            return false;
        }
        via[numbers[0] * clusters + numbers[1]] = via[numbers[1] * clusters + numbers[0]] = numbers[2];
    }
    return true;
}

/* ---- The problem ---- */

struct lists {
    uint64_t *counts;
    uint32_t *cluster_of;
    uint32_t *via;
};

static bool lists_take(const struct plan_request *request, struct cw_problem_request *asked, struct lists *lists)
{
    if (request->counts != NULL) {
        lists->counts = counts_take(request, asked->collective);
        if (lists->counts == NULL) {
            return false;
        }
    }
    if (request->clusters != NULL) {
        lists->cluster_of = calloc(request->ranks, sizeof(uint32_t));
        asked->cluster_count =
            lists->cluster_of != NULL ? clusters_parse(request->clusters, request->ranks, lists->cluster_of) : 0;
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
        if (lists->via == NULL || !via_parse(request->via, clusters, lists->via)) {
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
        app_error("how much is to be moved", "--size is missing", "like --size 64K, or --counts with a size per rank");
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
    if (lists_take(request, &asked, &lists) && cw_problem_create(&asked, &problem, error, sizeof(error)) != CW_OK) {
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

bool plan_request_parameters(const struct plan_request *request, struct cw_parameters *parameters)
{
    *parameters = cw_parameters_default();
    parameters->segment_bytes = request->segment_bytes;
    parameters->threshold_bytes = request->threshold_bytes;
    parameters->degree = (uint32_t)request->degree;
    parameters->concurrency = (uint32_t)request->concurrency;
    parameters->senders = (uint32_t)request->senders;
    if (request->eager == NULL) {
        return true;
    }
    if (strcmp(request->eager, "all") == 0) {
        parameters->eager_max_bytes = CW_EAGER_ALL;
        return true;
    }
    if (!app_parse_bytes(request->eager, &parameters->eager_max_bytes)) {
        app_error("bad value", request->eager, "a size, or `all`, is wanted for --eager");
        return false;
    }
    return true;
}
