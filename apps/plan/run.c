/* causeway plan run: carries a plan out, over an adversarial transport in memory or over puts between simulated hosts,
 * and compares every byte that the ranks receive. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/progress.h"
#include "apps/plan/plan.h"
#include "apps/plan/puts.h"
#include "apps/plan/trial.h"
#include "dataplane/status.h"

enum {
    SEEDS_MAX = 1000000,
    REASON_BYTES = 4096,
    SLOT_UNIT_BYTES = 64,
    PUTS_RUNS = 2, /* the first one sets the connections up */
};

/* The same whatever the seed: one of many seeds run again alone finds what it found among the others. */
#define SALT 1

#define LIMIT_NS 1000000000000ull /* of virtual time: some networks are slow */

static const char run_usage[] =
    "plan run FILE [OPTION...]\n\n"
    "Carries the plan out once per seed and compares every byte that the ranks receive.\n"
    "--over memory: in any order that the plan allows, as a seed draws it. --over puts: over the dataplane between\n"
    "simulated hosts; tells the virtual time until the last rank is through: of a first run, which sets the\n"
    "connections up, and of a second one. Exit code 1: something is wrong, and the lines say how to see it again.";

struct run {
    const char *path;
    const char *over;
    bool puts;
    uint64_t seeds;
    uint64_t first_seed;
    uint64_t eager_buffers; /* UINT64_MAX: none, two and many in turn */
    bool json;
    struct plan_puts_options options;
    struct plan_puts_report *reports; /* by seed */
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

static int run_puts(struct run *run, const struct cw_plan *plan)
{
    uint64_t message_bytes = plan_puts_message_bytes(plan);
    run->reports = calloc(run->seeds, sizeof(*run->reports));
    if (run->reports == NULL) {
        app_error("no memory for the results", run->path, "give fewer --seeds");
        return APP_EXIT_MACHINE;
    }
    if (message_bytes > run->options.endpoint.pool_slot_bytes) {
        uint64_t slot_bytes = (message_bytes + SLOT_UNIT_BYTES - 1) / SLOT_UNIT_BYTES * SLOT_UNIT_BYTES;
        if (slot_bytes > PLAN_PUTS_SLOT_BYTES_MAX) {
            app_error("the plan has longer messages without a handshake than a slot may hold", run->path,
                      "build it with --eager 64K or less");
            return APP_EXIT_USAGE;
        }
        run->options.endpoint.pool_slot_bytes = (uint32_t)slot_bytes;
    }
    int result = 0;
    for (uint64_t i = 0; i < run->seeds && result == 0; i++) {
        app_progress_step(i, run->seeds, "");
        run->options.seed = run->failed_seed = run->first_seed + i;
        result = plan_puts_run(plan, &run->options, &run->reports[i], run->reason, sizeof(run->reason));
    }
    return result;
}

/* ---- Printing ---- */

static int reports_compare(const void *a, const void *b)
{
    uint64_t left = ((const struct plan_puts_report *)a)->last_ns;
    uint64_t right = ((const struct plan_puts_report *)b)->last_ns;
    return left < right ? -1 : left > right;
}

/* Whether an argument is the option `name`, as getopt takes it: abbreviated perhaps, its value behind '=' or in the
 * next argument. */
static bool argument_is(const char *argument, const char *name)
{
    if (strncmp(argument, "--", 2) != 0) {
        return false;
    }
    size_t length = strcspn(argument + 2, "=");
    return length > 0 && strncmp(argument + 2, name, length) == 0;
}

/* As a shell takes it for one word. */
static void word_print(FILE *stream, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./%@";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        fprintf(stream, " %s", word);
        return;
    }
    fputs(" '", stream);
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            fputs("'\\''", stream);
        } else {
            fputc(*word, stream);
        }
    }
    fputc('\'', stream);
}

/* The arguments again, but for the one seed. To be freed; NULL without memory. */
static char *replay_make(const struct run *run, int argc, char **argv)
{
    static const char *const replaced[] = {"seeds", "first-seed", "eager-buffers"};
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    if (stream == NULL) {
        return NULL;
    }
    fputs("causeway plan run", stream);
    for (int i = 1; i < argc; i++) {
        bool skip = false;
        for (size_t j = 0; j < sizeof(replaced) / sizeof(replaced[0]) && !skip; j++) {
            skip = argument_is(argv[i], replaced[j]);
        }
        if (!skip) {
            word_print(stream, argv[i]);
        } else if (strchr(argv[i], '=') == NULL) {
            i++; /* its value */
        }
    }
    fprintf(stream, " --seeds 1 --first-seed %" PRIu64, run->failed_seed);
    if (!run->puts) {
        fprintf(stream, " --eager-buffers %" PRIu64, run->failed_eager_buffers);
    }
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

static void print_text(const struct run *run, const struct cw_plan *plan, bool passed, const char *replay)
{
    if (!passed) {
        printf("%s over %s: failed: ", run->path, run->over);
        print_reason(run->reason);
        printf("  again: %s\n", replay);
        return;
    }
    printf("%s %s, %u ranks, over %s: %" PRIu64 " seed%s, every byte right\n",
           cw_collective_name(plan->problem->collective), plan->algorithm, plan->problem->ranks, run->over, run->seeds,
           run->seeds > 1 ? "s" : "");
    if (run->puts) {
        const struct plan_puts_report *middle = &run->reports[run->seeds / 2];
        printf("  virtual time %.3f us (%.3f to %.3f); the first run, with set-up, %.3f us\n",
               (double)middle->last_ns / 1e3, (double)run->reports[0].last_ns / 1e3,
               (double)run->reports[run->seeds - 1].last_ns / 1e3, (double)middle->first_ns / 1e3);
        printf("  both runs: %" PRIu64 " packets, %" PRIu64 " of them sent again\n", middle->packets,
               middle->retransmitted);
        if (plan->problem->cluster_count > 1) {
            printf("  between clusters: longest queue %" PRIu64 " bytes, %" PRIu64 " frames found it full\n",
                   middle->wan_queue_max_bytes, middle->wan_dropped);
        }
    }
}

static void print_json(const struct run *run, const struct cw_plan *plan, bool passed, const char *replay)
{
    json_t *line = app_json_new();
    app_json_text(line, "collective", cw_collective_name(plan->problem->collective));
    app_json_text(line, "algorithm", plan->algorithm);
    app_json_count(line, "ranks", plan->problem->ranks);
    app_json_text(line, "over", run->over);
    app_json_count(line, "seeds", run->seeds);
    app_json_count(line, "first_seed", run->first_seed);
    app_json_flag(line, "passed", passed);
    if (!passed) {
        app_json_count(line, "failed_seed", run->failed_seed);
        app_json_text(line, "reason", run->reason);
        app_json_text(line, "replay", replay);
    } else if (run->puts) {
        const struct plan_puts_report *middle = &run->reports[run->seeds / 2];
        app_json_count(line, "rate_bps", run->options.rate_bps);
        app_json_count(line, "delay_ns", run->options.delay_ns);
        app_json_number(line, "loss_fraction", run->options.loss);
        app_json_count(line, "time_p50_ns", middle->last_ns);
        app_json_count(line, "time_min_ns", run->reports[0].last_ns);
        app_json_count(line, "time_max_ns", run->reports[run->seeds - 1].last_ns);
        app_json_count(line, "first_run_p50_ns", middle->first_ns);
        app_json_count(line, "packets", middle->packets);
        app_json_count(line, "retransmitted", middle->retransmitted);
        app_json_count(line, "wan_queue_max_bytes", middle->wan_queue_max_bytes);
        app_json_count(line, "wan_dropped_frames", middle->wan_dropped);
    }
    app_json_emit(line);
}

/* ---- The command ---- */

static int run_plan(struct run *run, const struct cw_plan *plan, int argc, char **argv)
{
    char *replay = NULL;
    app_progress_begin("plan run", run->json);
    int result = run->puts ? run_puts(run, plan) : run_memory(run, plan);
    app_progress_end();
    if (result > 0) {
        return result;
    }
    if (result < 0) {
        replay = replay_make(run, argc, argv);
    } else if (run->puts) {
        qsort(run->reports, run->seeds, sizeof(*run->reports), reports_compare);
    }
    (run->json ? print_json : print_text)(run, plan, result == 0, replay != NULL ? replay : "no memory to say how");
    free(replay);
    return result == 0 ? APP_EXIT_SUCCESS : APP_EXIT_FAILURE;
}

/* Options that only the other transport looks at are mistakes. False: reported. */
static bool options_fit(const struct run *run, int argc, char **argv)
{
    static const char *const for_memory[] = {"eager-buffers", NULL};
    static const char *const for_puts[] = {"rate", "delay", "loss", "wan-rate", "wan-delay", "wan-loss", "wan", NULL};
    const char *const *others = run->puts ? for_memory : for_puts;
    for (int i = 1; i < argc; i++) {
        for (size_t j = 0; others[j] != NULL; j++) {
            if (argument_is(argv[i], others[j])) {
                app_error(run->puts ? "this option is for --over memory" : "this option is for --over puts", argv[i],
                          run->puts ? "leave it out" : "leave it out, or add --over puts");
                return false;
            }
        }
    }
    return true;
}

int plan_run_main(int argc, char **argv)
{
    struct run run = {.over = "memory", .seeds = 10, .first_seed = 1, .eager_buffers = UINT64_MAX};
    struct plan_puts_options *options = &run.options;
    const char *wan = "known";
    int code;
    plan_puts_options_init(options);
    options->runs = PUTS_RUNS;
    options->together = true;
    options->limit_ns = LIMIT_NS;
    const struct app_option rows[] = {
        {"over", "memory|puts", "what carries it (memory)", APP_OPTION_TEXT, &run.over, 0, 0, NULL},
        {"seeds", "N", "how many seeds (10)", APP_OPTION_COUNT, &run.seeds, 1, SEEDS_MAX, NULL},
        {"first-seed", "S", "the first of them (1)", APP_OPTION_COUNT, &run.first_seed, 0, 0, NULL},
        {"eager-buffers", "N", "memory: messages that may wait at a rank (0, 2 and any number in turn)",
         APP_OPTION_COUNT, &run.eager_buffers, 0, UINT32_MAX, NULL},
        {"rate", "RATE", "puts: of every host's link (10Gbps)", APP_OPTION_RATE, &options->rate_bps, 1000000, 0, NULL},
        {"delay", "TIME", "puts: one way, end to end (20us)", APP_OPTION_DURATION, &options->delay_ns, 0, 1000000000,
         NULL},
        {"loss", "PERCENT", "puts: of frames, at random (0)", APP_OPTION_PERCENT, &options->loss, 0, 0, NULL},
        {"wan-rate", "RATE", "puts: between two clusters (1Gbps)", APP_OPTION_RATE, &options->wan_rate_bps, 1000000, 0,
         NULL},
        {"wan-delay", "TIME", "puts: one way between two clusters, beside --delay (5ms)", APP_OPTION_DURATION,
         &options->wan_delay_ns, 0, 1000000000, NULL},
        {"wan-loss", "PERCENT", "puts: of frames between two clusters, at random (0)", APP_OPTION_PERCENT,
         &options->wan_loss, 0, 0, NULL},
        {"wan", "known|found|lan|free",
         "puts: what goes to other clusters is paced at its share of the rate (known), finds its rate (found), is sent "
         "as on a LAN (lan), or unpaced "
         "(free); default known",
         APP_OPTION_TEXT, &wan, 0, 0, NULL},
        {"json", NULL, "the result as a JSON object", APP_OPTION_FLAG, &run.json, 0, 0, NULL},
        {0},
    };
    int first = app_options_parse(run_usage, rows, 1, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    if (!plan_wan_take(wan, &options->wan)) {
        return APP_EXIT_USAGE;
    }
    run.puts = strcmp(run.over, "puts") == 0;
    if (!run.puts && strcmp(run.over, "memory") != 0) {
        app_error("no such transport", run.over, "--over memory or --over puts");
        return APP_EXIT_USAGE;
    }
    if (!options_fit(&run, first, argv)) {
        return APP_EXIT_USAGE;
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
    code = run_plan(&run, plan, argc, argv);
    free(run.reports);
    cw_plan_destroy(plan);
    return code;
}
