/* A job of plogp_measure, by `causeway run`, and its output. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/job.h"
#include "apps/plogp/plogp.h"
#include "dataplane/status.h"

enum { ARGUMENTS = 20, GRACE_S = 120 };

uint64_t plogp_time_share(const struct plogp_options *options, enum cw_measured_path path, uint32_t ranks)
{
    bool is_split = strcmp(options->path, "all") == 0 && options->hosts == NULL;
    uint64_t time_ns = !is_split                    ? options->time_ns
                       : path == CW_MEASURED_SHARED ? options->time_ns / 3
                                                    : options->time_ns / 3 * 2;
    uint64_t all = 0;
    for (uint32_t i = 0; i < options->rank_count; i++) {
        all += options->ranks[i] + 2;
    }
    return all == 0 ? time_ns : time_ns * (ranks + 2) / all;
}

int plogp_job_run(const struct plogp_options *options, enum cw_measured_path path, uint32_t ranks,
                  struct cw_measured **result, double *noise)
{
    uint64_t time_ns = plogp_time_share(options, path, ranks);
    char program[600], count[16], hosts[32], budget[24], timeout[24], error[400];
    char *arguments[ARGUMENTS] = {"causeway", "run", "-n", count, "--timeout", timeout};
    size_t at = 6;
    size_t length = 0;
    int code = APP_EXIT_SUCCESS;
    if (!app_job_program("plogp_measure", program, sizeof(program))) {
        return APP_EXIT_MACHINE;
    }
    snprintf(count, sizeof(count), "%" PRIu32, ranks);
    snprintf(hosts, sizeof(hosts), "%" PRIu32 ",memif", ranks);
    snprintf(budget, sizeof(budget), "%" PRIu64, time_ns / 1000000);
    snprintf(timeout, sizeof(timeout), "%" PRIu64, 4 * time_ns / 1000000000 + GRACE_S);
    if (path == CW_MEASURED_WIRE && options->hosts != NULL) {
        arguments[at++] = "--rdma"; /* which is a path of its own */
        arguments[at++] = "off";
    }
    if (path != CW_MEASURED_SHARED) {
        arguments[at++] = options->hosts != NULL ? "--hosts" : "--emulate";
        arguments[at++] = options->hosts != NULL ? (char *)(uintptr_t)options->hosts : hosts;
    }
    if (path != CW_MEASURED_SHARED && options->launcher != NULL) {
        arguments[at++] = "--launcher";
        arguments[at++] = (char *)(uintptr_t)options->launcher;
    }
    arguments[at++] = program;
    arguments[at++] = (char *)(uintptr_t)cw_measured_path_name(path);
    arguments[at++] = budget;
    arguments[at++] = (char *)(uintptr_t) "measure";
    arguments[at++] = (char *)(uintptr_t)options->sizes;
    char *text = app_job_run(arguments, count, &length, &code);
    if (text == NULL) {
        return code;
    }
    char *json = strchr(text, '\n');
    bool has_noise = json != NULL && sscanf(text, "noise %lf", noise) == 1;
    size_t skipped = has_noise ? (size_t)(json + 1 - text) : 0;
    int status = cw_measured_decode(text + skipped, length - skipped, result, error, sizeof(error));
    free(text);
    if (status != CW_OK) {
        app_error("the measuring job wrote what cannot be understood", error, NULL);
        return APP_EXIT_INTERNAL;
    }
    return APP_EXIT_SUCCESS;
}
