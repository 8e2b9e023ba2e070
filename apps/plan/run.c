/* causeway plan run: carries a plan out over an adversarial transport in memory, and compares every byte that the ranks
 * receive. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/progress.h"
#include "apps/plan/plan.h"
#include "apps/plan/trial.h"
#include "dataplane/status.h"

enum { SEEDS_MAX = 1000000, REASON_BYTES = 4096 };

/* The same whatever the seed: one of many seeds run again alone finds what it found among the others. */
#define SALT 1

static const char run_usage[] =
    "plan run FILE [OPTION...]\n\n"
    "Runs the plan once per seed in memory, and compares every byte that the ranks receive. A seed draws one of the\n"
    "orders that the plan allows. Exit code 1: something is wrong, and the output says how to repeat it.";

struct run {
    const char *path;
    uint64_t seeds;
    uint64_t first_seed;
    uint64_t eager_buffers; /* UINT64_MAX: none, two and many in turn */
    bool json;
    char reason[REASON_BYTES];
    uint64_t failed_seed;
    uint64_t failed_eager_buffers;
};

/* ---- Running ---- */

/* -1: a seed failed, or an app_exit that is not APP_EXIT_SUCCESS. */
static int run_memory(struct run *run, const struct cw_plan *plan)
{
    static const uint32_t eager_buffers[] = {0, 2, PLAN_TRIAL_EAGER_BUFFERS_MANY};
    struct plan_trial *trial = NULL;
    int result = plan_trial_create(plan, SALT, &trial, run->reason, sizeof(run->reason));
    if (result != 0) {
        app_error(run->reason, run->path, "build it for fewer ranks, or a smaller --size");
        return APP_EXIT_MACHINE;
    }
    for (uint64_t i = 0; i < run->seeds && result == 0; i++) {
        app_progress_step(i, run->seeds, "");
        run->failed_seed = run->first_seed + i;
        run->failed_eager_buffers =
            run->eager_buffers != UINT64_MAX ? run->eager_buffers : eager_buffers[run->failed_seed % 3];
        result = plan_trial_run(trial, run->failed_seed, (uint32_t)run->failed_eager_buffers, run->reason,
                                sizeof(run->reason));
    }
    plan_trial_destroy(trial);
    return result;
}

/* ---- Printing ---- */

/* The command that repeats the failed seed alone. A shell takes the path as one word. To be freed; NULL without memory. */
static char *again_make(const struct run *run)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    if (stream == NULL) {
        return NULL;
    }
    fputs("causeway plan run '", stream);
    for (const char *at = run->path; *at != '\0'; at++) {
        fputs(*at == '\'' ? "'\\''" : (char[]){*at, '\0'}, stream);
    }
    fprintf(stream, "' --seeds 1 --first-seed %" PRIu64 " --eager-buffers %" PRIu64, run->failed_seed,
            run->failed_eager_buffers);
    fclose(stream);
    return text;
}

/* What each rank waits for comes in one line of the reason, apart by bars. */
static void print_reason(const char *reason)
{
    for (const char *bar; (bar = strstr(reason, " | ")) != NULL; reason = bar + 3) {
        printf("%.*s\n  ", (int)(bar - reason), reason);
    }
    printf("%s\n", reason);
}

static void print_text(const struct run *run, const struct cw_plan *plan, bool passed, const char *again)
{
    if (!passed) {
        printf("%s: failed: ", run->path);
        print_reason(run->reason);
        printf("  again: %s\n", again);
        return;
    }
    printf("%s %s, %u ranks: %" PRIu64 " seed%s, every byte right\n", cw_collective_name(plan->problem->collective),
           plan->algorithm, plan->problem->ranks, run->seeds, run->seeds > 1 ? "s" : "");
}

static void print_json(const struct run *run, const struct cw_plan *plan, bool passed, const char *again)
{
    json_t *line = app_json_new();
    app_json_text(line, "collective", cw_collective_name(plan->problem->collective));
    app_json_text(line, "algorithm", plan->algorithm);
    app_json_count(line, "ranks", plan->problem->ranks);
    app_json_count(line, "seeds", run->seeds);
    app_json_count(line, "first_seed", run->first_seed);
    app_json_flag(line, "passed", passed);
    if (!passed) {
        app_json_count(line, "failed_seed", run->failed_seed);
        app_json_text(line, "reason", run->reason);
        app_json_text(line, "again", again);
    }
    app_json_emit(line);
}

/* ---- The command ---- */

static int run_plan(struct run *run, const struct cw_plan *plan)
{
    app_progress_begin("plan run", run->json);
    int result = run_memory(run, plan);
    app_progress_end();
    if (result > 0) {
        return result;
    }
    char *again = result < 0 ? again_make(run) : NULL;
    (run->json ? print_json : print_text)(run, plan, result == 0, again != NULL ? again : "no memory to say how");
    free(again);
    return result == 0 ? APP_EXIT_SUCCESS : APP_EXIT_FAILURE;
}

int plan_run_main(int argc, char **argv)
{
    struct run run = {.seeds = 10, .first_seed = 1, .eager_buffers = UINT64_MAX};
    int code;
    const struct app_option rows[] = {
        {"seeds", "N", "how many seeds (10)", APP_OPTION_COUNT, &run.seeds, 1, SEEDS_MAX, NULL},
        {"first-seed", "S", "the first of them (1)", APP_OPTION_COUNT, &run.first_seed, 0, 0, NULL},
        {"eager-buffers", "N", "messages that may wait at a rank (0, 2 and any number in turn)", APP_OPTION_COUNT,
         &run.eager_buffers, 0, UINT32_MAX, NULL},
        {"json", NULL, "the result as a JSON object", APP_OPTION_FLAG, &run.json, 0, 0, NULL},
        {0},
    };
    int first = app_options_parse(run_usage, rows, 1, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    if (first == argc) {
        app_error("nothing to run", "the plan file is missing", "causeway plan run FILE");
        return APP_EXIT_USAGE;
    }
    run.path = argv[first];
    struct cw_plan *plan = plan_read_checked(run.path, &code);
    if (plan == NULL) {
        return code;
    }
    code = run_plan(&run, plan);
    cw_plan_destroy(plan);
    return code;
}
