/* causeway plan price, choose: the time of a plan on a network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/plan/plan.h"
#include "collectives/choose/choose.h"
#include "dataplane/status.h"

/* ---- price ---- */

static const char price_usage[] =
    "plan price FILE [--network NAME|@FILE] [--json]\n\n"
    "Runs the plan in model time on a network given by its pLogP parameters, and prints the closed form beside "
    "it, where\nthere is one.";

static const char *class_name(enum cw_formula_class kind)
{
    static const char *const names[] = {"not comparable: it is for eager messages", "exact", "upper bound",
                                        "lower bound", "fitted"};
    return names[kind];
}

static void price_print(const struct cw_plan *plan, const char *name, const struct cw_network *network,
                        const struct cw_price *price, bool json)
{
    const struct cw_formula *formula = cw_formula_find(plan->problem->collective, plan->algorithm);
    struct cw_formula_value value;
    bool valued =
        formula != NULL && cw_formula_evaluate(formula, plan->problem, &plan->parameters, network, &value) == CW_OK;
    char text[32];
    if (json) {
        json_t *line = app_json_new();
        app_json_text(line, "collective", cw_collective_name(plan->problem->collective));
        app_json_text(line, "algorithm", plan->algorithm);
        app_json_text(line, "network", name);
        app_json_number(line, "time_ns", price->time_ns);
        app_json_count(line, "last_rank", price->last_rank);
        app_json_count(line, "messages", price->messages);
        app_json_count(line, "wan_bytes", price->wan_bytes);
        if (valued) {
            app_json_number(line, "formula_ns", value.time_ns);
            app_json_text(line, "formula", formula->text);
            app_json_text(line, "formula_class", class_name(value.kind));
            app_json_text(line, "formula_source", formula->source);
        }
        app_json_emit(line);
        return;
    }
    printf("%s %s on %s: %s, rank %u is the last; %llu messages", cw_collective_name(plan->problem->collective),
           plan->algorithm, name, plan_time_text(price->time_ns, text, sizeof(text)), price->last_rank,
           (unsigned long long)price->messages);
    if (price->wan_bytes > 0) {
        printf(", %llu bytes between clusters", (unsigned long long)price->wan_bytes);
    }
    putchar('\n');
    if (valued) {
        printf("closed form: %s (%s): %s\n  %s\n", plan_time_text(value.time_ns, text, sizeof(text)),
               class_name(value.kind), formula->text, formula->source);
    }
}

int plan_price_main(int argc, char **argv)
{
    const char *name = "gigabit";
    bool json = false;
    int code;
    const struct app_option rows[] = {
        {"network", "NAME", "`causeway plan networks` names them; @FILE: your own (gigabit)", APP_OPTION_TEXT, &name, 0,
         0, NULL},
        {"json", NULL, "as a JSON object", APP_OPTION_FLAG, &json, 0, 0, NULL},
        {0},
    };
    struct cw_network network;
    int first = app_options_parse(price_usage, rows, 1, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    if (!plan_network_parse(name, &network)) {
        return APP_EXIT_USAGE;
    }
    struct cw_plan *plan = plan_operand_read(first, argc, argv, true, &code);
    if (plan == NULL) {
        return code;
    }
    struct cw_price price;
    int status = cw_price_interpret(plan, &network, &price, NULL);
    if (status == CW_OK) {
        price_print(plan, name, &network, &price, json);
    } else {
        code = app_error_status(status, "the plan cannot be priced; does causeway plan check pass it?", argv[first]);
    }
    cw_plan_destroy(plan);
    return code;
}

/* ---- choose ---- */

static const char choose_usage[] =
    "plan choose --collective NAME --ranks P --size BYTES --network NAME|@FILE [OPTION...]\n"
    "\n"
    "Ranks all algorithms by their expected time with their best parameters. With -o the best one's plan is written.";

/* The candidate's parameters, as options of `plan build`; barriers have no messages that could be eager. */
static void parameters_text(const struct cw_candidate *candidate, char *text, size_t text_bytes)
{
    uint32_t takes = candidate->algorithm->takes;
    const struct cw_parameters *parameters = &candidate->parameters;
    size_t used = 0;
    text[0] = '\0';
    if ((takes & CW_TAKES_SEGMENT) != 0) {
        used += (size_t)snprintf(text + used, text_bytes - used, " --segment %llu",
                                 (unsigned long long)parameters->segment_bytes);
    }
    if ((takes & CW_TAKES_DEGREE) != 0) {
        used += (size_t)snprintf(text + used, text_bytes - used, " --degree %u", parameters->degree);
    }
    if ((takes & CW_TAKES_CONCURRENCY) != 0) {
        used += (size_t)snprintf(text + used, text_bytes - used, " --concurrency %u", parameters->concurrency);
    }
    if ((takes & CW_TAKES_SENDERS) != 0) {
        used += (size_t)snprintf(text + used, text_bytes - used, " --senders %u", parameters->senders);
    }
    if ((takes & CW_TAKES_THRESHOLD) != 0) {
        used += (size_t)snprintf(text + used, text_bytes - used, " --threshold %llu",
                                 (unsigned long long)parameters->threshold_bytes);
    }
    if (candidate->algorithm->collective != CW_BARRIER && parameters->eager_max_bytes == CW_EAGER_ALL) {
        snprintf(text + used, text_bytes - used, " --eager all");
    } else if (candidate->algorithm->collective != CW_BARRIER) {
        snprintf(text + used, text_bytes - used, " --eager %llu", (unsigned long long)parameters->eager_max_bytes);
    }
}

static void choice_print(const struct cw_choice *choice, uint64_t top, bool json)
{
    static const char *const priced[] = {"closed form", "run in model time", "sum of its phases", "estimate"};
    for (uint32_t i = 0; i < choice->count && i < top; i++) {
        const struct cw_candidate *candidate = &choice->candidates[i];
        char time[32];
        char parameters[200];
        parameters_text(candidate, parameters, sizeof(parameters));
        if (json) {
            json_t *line = app_json_new();
            app_json_text(line, "algorithm", candidate->algorithm->name);
            app_json_number(line, "time_ns", candidate->time_ns);
            app_json_text(line, "priced", priced[candidate->priced]);
            app_json_text(line, "parameters", parameters[0] == ' ' ? parameters + 1 : parameters);
            app_json_emit(line);
            continue;
        }
        printf("%2u. %-26s %-10s %5.2f x  %s%s%s\n", i + 1, candidate->algorithm->name,
               plan_time_text(candidate->time_ns, time, sizeof(time)),
               choice->candidates[0].time_ns > 0 ? candidate->time_ns / choice->candidates[0].time_ns : 1.0,
               priced[candidate->priced], parameters[0] != '\0' ? ";" : "", parameters);
    }
}

static int best_write(struct cw_problem *problem, const struct cw_candidate *best, const char *output)
{
    int code;
    struct cw_plan *plan = plan_request_build(problem, best->algorithm, &best->parameters, &code);
    if (plan == NULL) {
        return code;
    }
    code = plan_write(plan, output);
    cw_plan_release(plan);
    return code;
}

int plan_choose_main(int argc, char **argv)
{
    struct plan_request request = {0};
    struct app_option rows[PLAN_REQUEST_OPTIONS + 8];
    const char *name = "gigabit";
    const char *output = NULL;
    const char *eager = NULL;
    uint64_t eager_max_bytes = cw_parameters_default().eager_max_bytes;
    uint64_t top = CW_CANDIDATES_MAX;
    bool multicast = false;
    bool json = false;
    int code;
    size_t count = plan_request_options(&request, false, rows);
    const struct app_option own[] = {
        {"network", "NAME", "`causeway plan networks` names them; @FILE: your own (gigabit)", APP_OPTION_TEXT, &name, 0,
         0, NULL},
        {"multicast", NULL, "the network multicasts", APP_OPTION_FLAG, &multicast, 0, 0, NULL},
        {"eager", "BYTES", "messages up to this go without a handshake, or `all` (4096)", APP_OPTION_TEXT, &eager, 0, 0,
         NULL},
        {"top", "N", "print only the first N", APP_OPTION_COUNT, &top, 1, 0, NULL},
        {"output", "FILE", "write the best one's plan", APP_OPTION_TEXT, &output, 0, 0, NULL},
        {"json", NULL, "a JSON object a candidate", APP_OPTION_FLAG, &json, 0, 0, NULL},
        {0},
    };
    memcpy(rows + count, own, sizeof(own));
    if (app_options_parse(choose_usage, rows, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (output != NULL && strcmp(output, "-") == 0) {
        app_error("the ranking and the plan cannot both go to standard output", "-o -", "name a file");
        return APP_EXIT_USAGE;
    }
    if (eager != NULL && !plan_eager_parse(eager, &eager_max_bytes)) {
        return APP_EXIT_USAGE;
    }
    struct cw_network network;
    struct cw_problem *problem = plan_network_parse(name, &network) ? plan_request_problem(&request) : NULL;
    if (problem == NULL) {
        return APP_EXIT_USAGE;
    }
    struct cw_choose_request asked = {
        .problem = problem, .network = &network, .eager_max_bytes = eager_max_bytes, .multicast = multicast};
    struct cw_choice choice;
    int status = cw_choose(&asked, &choice);
    if (status != CW_OK) {
        code = app_error_status(status, "nothing can be chosen", cw_collective_name(problem->collective));
    } else {
        choice_print(&choice, top, json);
        code = output != NULL ? best_write(problem, &choice.candidates[0], output) : APP_EXIT_SUCCESS;
    }
    cw_problem_destroy(problem);
    return code;
}
