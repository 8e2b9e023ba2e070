/* causeway plogp --verify: what choosing by measured parameters costs against the best measured algorithm. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/progress.h"
#include "apps/plogp/arithmetic.h"
#include "apps/plogp/plogp.h"
#include "dataplane/status.h"

/* The claim: on average at most 5 % longer than with the best algorithm, never more than half as long again. */
#define AVERAGE_MAX 1.05
#define RATIO_MAX   1.5

struct sum {
    uint32_t cells;
    uint32_t beyond; /* RATIO_MAX */
    double ratios;
    double worst;
};

struct cell {
    const struct cw_measured_test *first; /* of its tests, and how many there are */
    uint32_t count;
    const struct cw_measured_test *best;
    const struct cw_measured_test *chosen; /* NULL: it was not measured */
    const char *chosen_name;
    double expected_ns;
    enum cw_measured_origin origin;
};

/* The problem that a test is about; NULL: reported. */
static struct cw_problem *problem_of(const struct cw_measured_test *test)
{
    struct cw_problem *problem;
    char error[200];
    uint32_t element = cw_collective_reduces(test->collective) ? sizeof(double) : 1;
    struct cw_problem_request request = {
        .collective = test->collective, .ranks = test->ranks, .element_bytes = element, .count = test->bytes / element};
    if (cw_problem_create(&request, &problem, error, sizeof(error)) != CW_OK) {
        app_error("no such problem", error, NULL);
        return NULL;
    }
    return problem;
}

/* Where people read, times of all algorithms are left out. */
static void cell_report(struct app_report *report, const struct cell *cell)
{
    const struct cw_measured_test *best = cell->best;
    const struct app_cell cells[] = {
        app_text("path", "path", 6, cw_measured_path_name(best->path)),
        app_text("collective", "collective", 14, cw_collective_name(best->collective)),
        app_count("ranks", "ranks", best->ranks),
        app_count("bytes", "bytes", best->bytes),
        app_text("chosen", "chosen", 20, cell->chosen->algorithm),
        app_text("by", "by", 10, cw_measured_origin_name(cell->origin)),
        app_number("chosen_ns", "us", 2, 1e-3, cell->chosen->time_ns),
        app_number("expected_ns", "expected us", 2, 1e-3, cell->expected_ns),
        app_text("best", "best", 20, best->algorithm),
        app_number("best_ns", "us", 2, 1e-3, best->time_ns),
        app_number("ratio", "ratio", 2, 1, cell->chosen->time_ns / best->time_ns),
    };
    if (!report->json) {
        APP_REPORT(report, cells);
        return;
    }
    json_t *line = APP_REPORT_BEGIN(report, cells);
    json_t *times = app_json_new();
    for (uint32_t i = 0; i < cell->count; i++) {
        app_json_number(times, cell->first[i].algorithm, cell->first[i].time_ns);
    }
    app_json_child(line, "measured_ns", times);
    app_json_emit(line);
}

/* What MPI would take: on one host also what no schedule describes, unless tests have found it to be behind. */
static int cell_choose(const struct cw_measured *known, const struct cw_problem *problem, enum cw_measured_path path,
                       struct cell *cell)
{
    struct cw_candidate candidate;
    const struct cw_choose_request request = {.problem = problem,
                                              .eager_max_bytes = PLOGP_EAGER_BYTES,
                                              .multicast_eager_max_bytes = PLOGP_CAST_EAGER_BYTES,
                                              .multicast = path != CW_MEASURED_SHARED};
    int status = cw_measured_choose(known, path, NULL, &request, &candidate, &cell->origin);
    if (status != CW_OK) {
        return status;
    }
    cell->chosen_name = candidate.algorithm->name;
    cell->expected_ns = candidate.time_ns;
    if (path == CW_MEASURED_SHARED) {
        double time_ns = 0;
        enum cw_measured_standing standing = cw_measured_standing(known, path, problem, "host", &time_ns);
        if (standing != CW_STANDING_BEHIND) {
            cell->chosen_name = "host";
            cell->expected_ns = time_ns;
            cell->origin = standing == CW_STANDING_FIRST ? CW_BY_TEST : CW_BY_DEFAULTS;
        }
    }
    return CW_OK;
}

/* The cell that begins with `first`. False: reported. */
static bool cell_take(const struct cw_measured *known, const struct cw_measured *times, uint32_t first,
                      struct cell *cell)
{
    const struct cw_measured_test *test = &times->tests[first];
    *cell = (struct cell){.first = test, .best = test};
    struct cw_problem *problem = problem_of(test);
    if (problem == NULL) {
        return false;
    }
    int status = cell_choose(known, problem, test->path, cell);
    cw_problem_destroy(problem);
    if (status != CW_OK) {
        app_error_status(status, "nothing can be chosen", cw_collective_name(test->collective));
        return false;
    }
    for (uint32_t i = first; i < times->test_count; i++) {
        const struct cw_measured_test *row = &times->tests[i];
        if (row->path != test->path || row->collective != test->collective || row->ranks != test->ranks ||
            row->bytes != test->bytes) {
            break;
        }
        cell->count++;
        cell->best = row->time_ns < cell->best->time_ns ? row : cell->best;
        cell->chosen = strcmp(row->algorithm, cell->chosen_name) == 0 ? row : cell->chosen;
    }
    return true;
}

static void sum_add(struct sum *sum, double ratio)
{
    sum->cells++;
    sum->beyond += ratio > RATIO_MAX;
    sum->ratios += ratio;
    sum->worst = fmax(sum->worst, ratio);
}

static void sum_report(const struct plogp_options *options, enum cw_measured_path path, const struct sum *sum)
{
    double average = sum->ratios / sum->cells;
    bool holds = average <= AVERAGE_MAX && sum->worst <= RATIO_MAX;
    const struct app_cell cells[] = {
        app_text("path", NULL, 0, cw_measured_path_name(path)),
        app_count("cells", "cells", sum->cells),
        app_number("ratio_average", "ratio to the best on average", 3, 1, average),
        app_number("ratio_max", "at most", 2, 1, sum->worst),
        app_count("cells_above_1.5", "above 1.5", sum->beyond),
        app_number(NULL, "claimed: on average", 2, 1, AVERAGE_MAX),
        app_number(NULL, "at most", 1, 1, RATIO_MAX),
        app_flag("holds", "holds", holds),
    };
    struct app_report report = {.json = options->report.json, .form = APP_REPORT_LINE};
    APP_REPORT(&report, cells);
}

static int cells_report(const struct plogp_options *options, const struct cw_measured *known,
                        const struct cw_measured *times)
{
    struct sum sums[CW_MEASURED_PATHS] = {0};
    struct cell cell;
    struct app_report report = options->report;
    for (uint32_t i = 0; i < times->test_count; i += cell.count) {
        if (!cell_take(known, times, i, &cell)) {
            return APP_EXIT_FAILURE;
        }
        if (cell.chosen == NULL) {
            app_error("what is chosen was not measured", cell.chosen_name, "this is a bug");
            return APP_EXIT_INTERNAL;
        }
        cell_report(&report, &cell);
        sum_add(&sums[cell.first->path], cell.chosen->time_ns / cell.best->time_ns);
    }
    for (uint32_t path = 0; path < CW_MEASURED_PATHS; path++) {
        if (sums[path].cells > 0) {
            sum_report(options, path, &sums[path]);
        }
    }
    return APP_EXIT_SUCCESS;
}

static int times_measure(const struct plogp_options *options, const char *known, struct cw_measured *times)
{
    int code = APP_EXIT_SUCCESS;
    for (uint32_t path = 0; path < CW_MEASURED_PATHS; path++) {
        for (uint32_t i = 0; i < options->rank_count && plogp_path_is_asked(options, path) && code == 0; i++) {
            struct cw_measured *one;
            double noise = 0; /* no parameters are measured */
            plogp_progress_tell(options, path, i);
            code = plogp_job_run(options, path, options->ranks[i], PLOGP_VERIFY, known, &one, &noise);
            if (code == APP_EXIT_SUCCESS) {
                code = cw_measured_merge(times, one) == CW_OK ? code
                                                              : app_error_status(CW_ERROR_MEMORY, "cannot keep", NULL);
                cw_measured_destroy(one);
            }
        }
    }
    return code;
}

/* The model's time for the test's algorithm; 0: it has none. */
static double predict(const struct cw_measured *known, const struct cw_measured_test *test)
{
    static struct cw_choice choice;
    struct cw_network network;
    double time_ns = 0;
    struct cw_problem *problem = problem_of(test);
    if (problem == NULL) {
        return 0;
    }
    struct cw_choose_request request = {.problem = problem, .network = &network, .eager_max_bytes = PLOGP_EAGER_BYTES};
    (void)cw_measured_network(known, test->path, test->ranks, &network);
    int status = cw_choose(&request, &choice);
    for (uint32_t i = 0; status == CW_OK && i < choice.count; i++) {
        if (strcmp(choice.candidates[i].algorithm->name, test->algorithm) == 0) {
            time_ns = choice.candidates[i].time_ns;
        }
    }
    cw_problem_destroy(problem);
    return time_ns;
}

/* A line for each test that the model has a time for. */
static void data_write(FILE *file, const struct cw_measured *known, const struct cw_measured *times)
{
    for (uint32_t i = 0; i < times->test_count; i++) {
        const struct cw_measured_test *test = &times->tests[i];
        double predicted_ns = predict(known, test);
        if (predicted_ns > 0) {
            fprintf(file, "%s,%s,%s,%" PRIu32 ",%" PRIu64 ",%.10g,%.10g\n", cw_collective_name(test->collective),
                    test->algorithm, cw_measured_path_name(test->path), test->ranks, test->bytes, test->time_ns,
                    predicted_ns);
        }
    }
}

int plogp_verify(const struct plogp_options *options)
{
    struct cw_measured *known = NULL;
    FILE *data = NULL;
    int code = plogp_file_read(options->file, &known);
    if (code == APP_EXIT_SUCCESS &&
        !app_csv_open("the table", options->data, "collective,algorithm,path,ranks,bytes,measured_ns,predicted_ns\n",
                      &data)) {
        code = APP_EXIT_USAGE; /* before measuring, which takes a while */
    }
    struct cw_measured *times = cw_measured_create();
    if (code == APP_EXIT_SUCCESS && times == NULL) {
        code = app_error_status(CW_ERROR_MEMORY, "cannot measure", NULL);
    }
    if (code == APP_EXIT_SUCCESS) {
        code = times_measure(options, options->file, times);
        app_progress_end();
    }
    if (code == APP_EXIT_SUCCESS) {
        code = cells_report(options, known, times);
    }
    if (code == APP_EXIT_SUCCESS && data != NULL) {
        data_write(data, known, times);
    }
    if (!app_csv_close("the table", options->data, data) && code == APP_EXIT_SUCCESS) {
        code = APP_EXIT_MACHINE;
    }
    cw_measured_destroy(known);
    cw_measured_destroy(times);
    return code;
}
