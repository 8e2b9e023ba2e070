/* causeway plan draw: writes what a plan does as a table, and becomes `causeway draw`, which draws it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/cli/script.h"
#include "apps/plan/plan.h"
#include "collectives/price/price.h"
#include "dataplane/status.h"

static const char usage[] =
    "plan draw FILE -o PICTURE.svg [--network NAME|@FILE]\n"
    "\n"
    "Draws the plan over time: a row per rank, time from left to right; sends, receives, combinations, and idle "
    "times.\n"
    "A plan of more than some hundred messages is drawn as bands: the height of a band is the used share of that\n"
    "time, and its colour, with several clusters, the cluster at the other end.";

/* A line for each rank, with the end of its last op; then one for each message, copy and combining. */
static void trace_write(const struct cw_plan *plan, const struct cw_price *price, const struct cw_trace *trace,
                        FILE *table)
{
    const struct cw_trace_event *event = trace->events, *end = event + trace->event_count;
    fputs("kind,rank,cluster,peer,op,iteration,phase,bytes,start_ns,sent_ns,end_ns\n", table);
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        double done_ns = 0;
        for (; event < end && event->rank == rank; event++) {
            done_ns = fmax(done_ns, event->end_ns);
        }
        fprintf(table, "%s,%u,%u,,,,,,,,%.9g\n", rank == price->last_rank ? "last" : "rank", rank,
                cw_problem_cluster(plan->problem, rank), done_ns);
    }
    for (uint64_t i = 0; i < trace->message_count; i++) {
        const struct cw_trace_message *message = &trace->messages[i];
        fprintf(table, "message,%u,,%u,%u,%u,%u,%llu,%.9g,%.9g,%.9g\n", message->source, message->target, message->op,
                message->iteration, plan->schedules[message->source].ops[message->op].phase,
                (unsigned long long)message->bytes, message->start_ns, message->sent_ns, message->arrived_ns);
    }
    for (event = trace->events; event < end; event++) {
        const struct cw_op *op = &plan->schedules[event->rank].ops[event->op];
        if ((op->kind == CW_OP_COPY || op->kind == CW_OP_REDUCE) && event->end_ns > event->start_ns) {
            fprintf(table, "%s,%u,,,%u,%u,%u,%llu,%.9g,,%.9g\n", cw_op_kind_name(op->kind), event->rank, event->op,
                    event->iteration, op->phase, (unsigned long long)(cw_op_bytes(op, event->iteration) * op->blocks),
                    event->start_ns, event->end_ns);
        }
    }
}

/* One of enum app_exit. */
static int table_write(const struct cw_plan *plan, const struct cw_network *network, FILE *table)
{
    struct cw_price price;
    struct cw_trace trace;
    int status = cw_price_interpret(plan, network, &price, &trace);
    if (status != CW_OK) {
        return app_error_status(status, "the plan cannot be drawn; does causeway plan check pass it?", plan->algorithm);
    }
    trace_write(plan, &price, &trace, table);
    cw_trace_dispose(&trace);
    if (fflush(table) != 0) {
        app_error("no memory for the picture", plan->algorithm, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

/* Returns only on failure: one of enum app_exit. */
static int plan_draw(struct cw_plan *plan, const struct cw_network *network, const char *output)
{
    char path[40], title[100], name[] = "draw", label[] = "--label", option[] = "--output";
    int descriptor = memfd_create("causeway-plan", 0); /* open also in the script */
    FILE *table = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (table == NULL) {
        app_error("no memory for the picture", plan->algorithm, strerror(errno));
        return APP_EXIT_MACHINE;
    }
    int code = table_write(plan, network, table);
    if (code == APP_EXIT_SUCCESS) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
        snprintf(title, sizeof(title), "%s %s", cw_collective_name(plan->problem->collective), plan->algorithm);
        char *arguments[] = {name, path, label, title, option, (char *)output};
        code = app_script_become("draw/draw.py", sizeof(arguments) / sizeof(arguments[0]), arguments);
    }
    fclose(table);
    return code;
}

int plan_draw_main(int argc, char **argv)
{
    const char *name = "gigabit";
    const char *output = NULL;
    int code;
    const struct app_option rows[] = {
        OPTION_TEXT("network", "NAME", "`causeway plan networks` names them; @FILE: your own (gigabit)", &name),
        OPTION_TEXT("output", "FILE", "the picture to write, .svg; - for standard output", &output),
        {0},
    };
    struct cw_network network;
    int first = app_options_parse(usage, rows, 1, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    if (output == NULL) {
        app_error("nowhere to draw", "-o FILE is missing", "-o x.svg, or -o - for standard output");
        return APP_EXIT_USAGE;
    }
    if (!plan_network_parse(name, &network)) {
        return APP_EXIT_USAGE;
    }
    struct cw_plan *plan = plan_operand_read(first, argc, argv, true, &code);
    if (plan != NULL) {
        code = plan_draw(plan, &network, output);
        cw_plan_destroy(plan);
    }
    return code;
}
