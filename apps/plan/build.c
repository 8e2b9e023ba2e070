/* causeway plan build, check, dump, list. */
#include <stdio.h>
#include <string.h>

#include "apps/plan/plan.h"
#include "collectives/check/check.h"
#include "collectives/choose/override.h"
#include "collectives/schedule/dump.h"
#include "dataplane/status.h"

/* ---- build ---- */

static const char build_usage[] =
    "plan build --collective NAME --algorithm NAME --ranks P --size BYTES -o FILE [OPTION...]\n\n"
    "Builds the schedules of all ranks and writes them to a file.";

int plan_build_main(int argc, char **argv)
{
    struct plan_request request = {0};
    struct app_option rows[PLAN_REQUEST_OPTIONS + 2];
    const char *output = NULL;
    int code;
    size_t count = plan_request_options(&request, true, rows);
    rows[count++] = (struct app_option){
        "output", "FILE", "the plan file to write; - for standard output", APP_OPTION_TEXT, &output, 0, 0, NULL};
    rows[count] = (struct app_option){0};
    if (app_options_parse(build_usage, rows, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (output == NULL) {
        app_error("nowhere to write to", "-o FILE is missing", "-o - writes to standard output");
        return APP_EXIT_USAGE;
    }
    struct cw_problem *problem = plan_request_problem(&request);
    const struct cw_algorithm *algorithm =
        problem != NULL ? plan_request_algorithm(&request, problem->collective) : NULL;
    struct cw_parameters parameters;
    if (algorithm == NULL || !plan_request_parameters(&request, algorithm, &parameters)) {
        cw_problem_destroy(problem);
        return APP_EXIT_USAGE;
    }
    struct cw_plan *plan = plan_request_build(problem, algorithm, &parameters, &code);
    if (plan == NULL) {
        cw_problem_destroy(problem);
        return code;
    }
    code = plan_write(plan, output);
    cw_plan_destroy(plan);
    return code;
}

/* ---- check ---- */

static const char check_usage[] = "plan check FILE [--json]\n"
                                  "\n"
                                  "Proves by symbolic execution that the plan is right in every order that it allows: "
                                  "each byte of the result, no race,\n"
                                  "no deadlock without buffers, and the other promises of the algorithm. Exit code 1: "
                                  "the proof fails, and the line names\n"
                                  "the place.";

static void check_print(const struct cw_plan *plan, const struct cw_check_report *report, bool json)
{
    bool passed = report->fault == CW_CHECK_PASSED;
    if (!json) {
        printf("%s %s, %u ranks: %s%s%s\n", cw_collective_name(plan->problem->collective), plan->algorithm,
               plan->problem->ranks, passed ? "passed" : cw_check_fault_name(report->fault), passed ? "" : ": ",
               passed ? "" : report->text);
        return;
    }
    json_t *line = app_json_new();
    app_json_text(line, "collective", cw_collective_name(plan->problem->collective));
    app_json_text(line, "algorithm", plan->algorithm);
    app_json_count(line, "ranks", plan->problem->ranks);
    app_json_flag(line, "passed", passed);
    if (!passed) {
        app_json_text(line, "fault", cw_check_fault_name(report->fault));
        app_json_text(line, "text", report->text);
    }
    app_json_emit(line);
}

int plan_check_main(int argc, char **argv)
{
    bool json = false;
    int code;
    const struct app_option rows[] = {
        {"json", NULL, "the verdict as a JSON object", APP_OPTION_FLAG, &json, 0, 0, NULL},
        {0},
    };
    int first = app_options_parse(check_usage, rows, 1, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    struct cw_plan *plan = plan_operand_read(first, argc, argv, false, &code);
    if (plan == NULL) {
        return code;
    }
    struct cw_check_report report;
    int status = cw_check(plan, &report);
    if (status != CW_OK) {
        code = app_error_status(status, "the plan cannot be checked", argv[first]);
    } else {
        check_print(plan, &report, json);
        code = report.fault == CW_CHECK_PASSED ? APP_EXIT_SUCCESS : APP_EXIT_FAILURE;
    }
    cw_plan_destroy(plan);
    return code;
}

/* ---- dump ---- */

static const char dump_usage[] = "plan dump FILE [--rank R]\n"
                                 "\n"
                                 "Prints the problem of the plan, and every op of every rank, or of one.";

int plan_dump_main(int argc, char **argv)
{
    uint64_t rank = UINT64_MAX;
    int code;
    const struct app_option rows[] = {
        {"rank", "R", "only this rank's ops", APP_OPTION_COUNT, &rank, 0, 0, NULL},
        {0},
    };
    int first = app_options_parse(dump_usage, rows, 1, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    struct cw_plan *plan = plan_operand_read(first, argc, argv, false, &code);
    if (plan == NULL) {
        return code;
    }
    if (rank != UINT64_MAX && rank >= plan->problem->ranks) {
        app_error("no such rank in the plan", argv[first], "ranks are numbered from 0");
        code = APP_EXIT_USAGE;
    } else {
        cw_plan_dump_head(plan, stdout);
        for (uint32_t i = 0; i < plan->problem->ranks; i++) {
            if (rank == UINT64_MAX || rank == i) {
                cw_schedule_dump(&plan->schedules[i], stdout);
            }
        }
    }
    cw_plan_destroy(plan);
    return code;
}

/* ---- list ---- */

static const char list_usage[] = "plan list [--collective NAME] [--json]\n"
                                 "\n"
                                 "Names every collective and its algorithms, their parameters and their requirements.";

static const struct {
    uint32_t bit;
    const char *text;
} takes_names[] =
    {
        {CW_TAKES_SEGMENT, "--segment"}, {CW_TAKES_DEGREE, "--degree"},       {CW_TAKES_CONCURRENCY, "--concurrency"},
        {CW_TAKES_SENDERS, "--senders"}, {CW_TAKES_THRESHOLD, "--threshold"},
},
  needs_names[] = {
      {CW_NEEDS_COMMUTATIVE, "a commutative operation"},
      {CW_NEEDS_EQUAL, "the same count everywhere"},
      {CW_NEEDS_CLUSTERS, "clusters"},
      {CW_NEEDS_MULTICAST, "multicast (else as many puts)"},
};

static void names_join(char *text, size_t text_bytes, uint32_t bits, bool needs)
{
    size_t count = needs ? sizeof(needs_names) / sizeof(needs_names[0]) : sizeof(takes_names) / sizeof(takes_names[0]);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        uint32_t bit = needs ? needs_names[i].bit : takes_names[i].bit;
        size_t used = strlen(text);
        if ((bits & bit) != 0) {
            snprintf(text + used, text_bytes - used, "%s%s", used > 0 ? ", " : "",
                     needs ? needs_names[i].text : takes_names[i].text);
        }
    }
}

static void algorithm_print(const char *collective, const struct cw_algorithm *algorithm, bool json)
{
    char takes[200];
    char needs[200];
    bool for_counts = (algorithm->needs & CW_NEEDS_COUNTS) != 0;
    names_join(takes, sizeof(takes), algorithm->takes, false);
    names_join(needs, sizeof(needs), algorithm->needs, true);
    if (!json) {
        printf("  %-26s %s", algorithm->name, algorithm->summary);
        printf("%s%s%s%s%s\n", takes[0] != '\0' ? "; takes " : "", takes, needs[0] != '\0' ? "; needs " : "", needs,
               for_counts ? "; of use only where --counts differ" : "");
        return;
    }
    json_t *line = app_json_new();
    app_json_text(line, "collective", collective);
    app_json_text(line, "algorithm", algorithm->name);
    app_json_text(line, "summary", algorithm->summary);
    app_json_text(line, "source", algorithm->source);
    app_json_text(line, "takes", takes);
    app_json_text(line, "needs", needs);
    app_json_flag(line, "only_for_different_counts", for_counts);
    app_json_emit(line);
}

/* Ways of MPI's calls that no plan can be built for. True: `name` is one of these calls. */
static bool ways_print(const char *name, bool json)
{
    const struct cw_override_way *way;
    uint32_t call = CW_OVERRIDE_COUNT;
    for (uint32_t i = 0; (way = cw_override_way_at(i)) != NULL; i++) {
        if (name != NULL && strcmp(name, cw_override_call_name(way->call)) != 0) {
            continue;
        }
        if (!json && way->call != call) {
            printf("%s (of MPI alone: CAUSEWAY_ALGORITHM%s)\n", cw_override_call_name(way->call),
                   way->call == CW_OVERRIDE_ALLTOALLV ? "; and those of alltoall for different counts" : "");
        }
        const struct cw_algorithm shown = {.name = way->name, .summary = way->summary, .source = way->source};
        algorithm_print(cw_override_call_name(way->call), &shown, json);
        call = way->call;
    }
    return call != CW_OVERRIDE_COUNT;
}

int plan_list_main(int argc, char **argv)
{
    const char *name = NULL;
    bool json = false;
    int code;
    const struct app_option rows[] = {
        {"collective", "NAME", "only this one's algorithms", APP_OPTION_TEXT, &name, 0, 0, NULL},
        {"json", NULL, "a JSON object an algorithm", APP_OPTION_FLAG, &json, 0, 0, NULL},
        {0},
    };
    if (app_options_parse(list_usage, rows, 0, argc, argv, &code) < 0) {
        return code;
    }
    bool is_known = name == NULL || cw_collective_find(name) != CW_COLLECTIVE_COUNT;
    if (!is_known && !ways_print(name, json)) {
        app_error("no such collective", name, "`causeway plan list` names them");
        return APP_EXIT_USAGE;
    }
    for (uint32_t collective = 0; collective < CW_COLLECTIVE_COUNT; collective++) {
        if (name != NULL && cw_collective_find(name) != collective) {
            continue;
        }
        if (!json) {
            printf("%s\n", cw_collective_name(collective));
        }
        const struct cw_algorithm *algorithm;
        for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
            if (algorithm->collective == collective) {
                algorithm_print(cw_collective_name(collective), algorithm, json);
            }
        }
    }
    if (name == NULL) {
        (void)ways_print(NULL, json);
    }
    return APP_EXIT_SUCCESS;
}
