/* Bench mcast on real processes: a job of mcast_measure (which stands beside the command) on emulated hosts, one rank
 * each, and what it found. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/bench/mcast/mcast.h"
#include "apps/cli/cli.h"
#include "apps/cli/job.h"
#include "control/job/wire.h"

enum {
    ARGUMENTS = 40,
    TIMEOUT_S = 540,
    NAMES_MAX = 16,
    SIZES_BYTES = 400,
    RUNS_LEAST = 5 /* mcast_measure has as many rounds */
};

/* Of one way, one size; see measure.c. */
struct found {
    char name[BENCH_MCAST_NAME_BYTES];
    uint64_t bytes;
    double median_us;
    double p999_us;
    double each_us;
    double processor_us;
    double frames;
};

static void sizes_write(const struct bench_mcast_wire *of, char *text)
{
    size_t used = 0;
    for (size_t i = 0; i < of->sizes->count; i++) {
        used += (size_t)snprintf(text + used, SIZES_BYTES - used, "%s%" PRIu64, i > 0 ? "," : "", of->sizes->values[i]);
    }
}

/* Its lines, or NULL with an exit code. */
static char *job_run(const struct bench_mcast_wire *of, int *code)
{
    char program[600], count[16], network[200], sizes[SIZES_BYTES], runs[24], timeout[16];
    char *arguments[ARGUMENTS] = {"causeway", "run", "-n", count, "--emulate", network, "--timeout", timeout};
    size_t at = 8, length;
    if (!app_job_program("mcast_measure", program, sizeof(program))) {
        *code = APP_EXIT_MACHINE;
        return NULL;
    }
    snprintf(count, sizeof(count), "%" PRIu32, of->members);
    snprintf(timeout, sizeof(timeout), "%d", TIMEOUT_S);
    snprintf(network, sizeof(network), "%" PRIu32 ",%s", of->members, of->fabric);
    snprintf(runs, sizeof(runs), "%" PRIu64, of->runs);
    sizes_write(of, sizes);
    arguments[at++] = program;
    arguments[at++] = (char *)(uintptr_t)of->collective;
    arguments[at++] = sizes;
    arguments[at++] = runs;
    arguments[at++] = (char *)(uintptr_t)of->multicast;
    for (size_t i = 0; of->unicasts[i] != NULL; i++) {
        arguments[at++] = (char *)(uintptr_t)of->unicasts[i];
    }
    arguments[at++] = "-";
    return app_job_run(arguments, NULL, network, &length, code);
}

static bool line_take(char **text, struct found *found)
{
    char *end = strchr(*text, '\n');
    int words = end == NULL
                    ? 0
                    : sscanf(*text, "%47s %" SCNu64 " %lf %lf %lf %lf %lf", found->name, &found->bytes,
                             &found->median_us, &found->p999_us, &found->each_us, &found->processor_us, &found->frames);
    *text = end == NULL ? *text : end + 1;
    return words == 7;
}

static void size_report(const struct bench_mcast_wire *of, const struct found *found, size_t count)
{
    size_t best = 1;
    for (size_t i = 2; i + 1 < count; i++) {
        best = found[i].median_us < found[best].median_us ? i : best;
    }
    const struct app_cell head[] = {
        app_count("members", NULL, of->members),
        app_text("collective", NULL, 0, of->collective),
        app_text("fabric", NULL, 0, of->fabric),
        app_count("bytes", NULL, found[0].bytes),
    };
    const struct app_cell tail[] = {
        app_text("best_unicast", "best unicast", 0, found[best].name),
        app_number("ratio_latency_unicast", "ratio", 2, 1, found[best].median_us / found[0].median_us),
        app_number("ratio_processor_unicast", "processors", 2, 1, found[best].processor_us / found[0].processor_us),
    };
    json_t *line = APP_REPORT_BEGIN(of->report, head);
    for (size_t i = 0; i < count; i++) {
        bool chosen = strcmp(found[i].name, "-") == 0;
        const struct app_cell cells[] = {
            app_count(NULL, "bytes", found[i].bytes),
            app_text(NULL, "way", 20, chosen ? "(chosen)" : found[i].name),
            app_number("median_ns", "median/us", 1, 1e-3, found[i].median_us * 1e3),
            app_number("p999_ns", "p99.9/us", 1, 1e-3, found[i].p999_us * 1e3),
            app_number("each_ns", "each/us", 1, 1e-3, found[i].each_us * 1e3),
            app_number("processor_ns", "processor/us", 1, 1e-3, found[i].processor_us * 1e3),
            app_number("root_frames", "at root", 1, 1, found[i].frames),
        };
        APP_REPORT_PART(of->report, line, chosen ? "chosen" : found[i].name, cells);
    }
    APP_REPORT_END(of->report, line, tail);
}

static int all_print(const struct bench_mcast_wire *of, char *text)
{
    size_t count = 2; /* the multicast, and the choice */
    while (of->unicasts[count - 2] != NULL) {
        count++;
    }
    if (!of->report->json) {
        printf("%s, %" PRIu32 " emulated hosts, %s, %" PRIu64 " messages of each size\n", of->collective, of->members,
               of->fabric, of->runs);
    }
    for (size_t size = 0; size < of->sizes->count; size++) {
        struct found found[NAMES_MAX];
        for (size_t i = 0; i < count; i++) {
            if (!line_take(&text, &found[i])) {
                app_error("the measuring job wrote what cannot be understood", text, NULL);
                return APP_EXIT_INTERNAL;
            }
        }
        size_report(of, found, count);
    }
    return APP_EXIT_SUCCESS;
}

int bench_mcast_wire(const struct bench_mcast_wire *of)
{
    int code = APP_EXIT_SUCCESS;
    if (of->members > CW_EMULATED_RANKS_MAX) {
        app_error("too many members for emulated hosts", "--members", "63 are possible");
        return APP_EXIT_USAGE;
    }
    if (of->runs < RUNS_LEAST) {
        app_error("too few messages for a median", "--runs", "5 or more on emulated hosts");
        return APP_EXIT_USAGE;
    }
    char *text = job_run(of, &code);
    if (text != NULL) {
        code = all_print(of, text);
    }
    free(text);
    return code;
}
