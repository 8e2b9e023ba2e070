/* A picture of what the model predicts against what was measured: a panel for each collective, a kind of point for each
 * algorithm; on the line they agree. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apps/draw/gnuplot.h"
#include "apps/plogp/arithmetic.h"
#include "apps/plogp/plogp.h"
#include "dataplane/status.h"

enum { PANELS_ACROSS = 3 };

/* The model's time for the test's algorithm; 0: it has none. */
static double predicted(const struct cw_measured *known, const struct cw_measured_test *test)
{
    static struct cw_choice choice;
    struct cw_network network;
    double time_ns = 0;
    struct cw_problem *problem = plogp_problem(test);
    if (problem == NULL) {
        return 0;
    }
    struct cw_choose_request request = {.problem = problem, .network = &network, .eager_max_bytes = PLOGP_EAGER_BYTES};
    (void)cw_measured_network(known, test->path, test->ranks, &network);
    int status = cw_choose(&request, &choice);
    for (uint32_t i = 0; status == CW_OK && i < choice.count; i++) {
        time_ns =
            strcmp(choice.candidates[i].algorithm->name, test->algorithm) == 0 ? choice.candidates[i].time_ns : time_ns;
    }
    cw_problem_destroy(problem);
    return time_ns;
}

/* Data block "$d7" for algorithm number 7 of the registry; returns how many points it has. */
static uint32_t block_write(FILE *script, uint32_t number, const struct cw_algorithm *algorithm,
                            const struct cw_measured *known, const struct cw_measured *times)
{
    uint32_t points = 0;
    for (uint32_t i = 0; i < times->test_count; i++) {
        const struct cw_measured_test *test = &times->tests[i];
        double model_ns = test->collective == algorithm->collective && strcmp(test->algorithm, algorithm->name) == 0
                              ? predicted(known, test)
                              : 0;
        if (model_ns > 0) {
            if (points++ == 0) {
                fprintf(script, "$d%" PRIu32 " << EOD\n", number);
            }
            fprintf(script, "%.6g %.6g\n", test->time_ns / 1e3, model_ns / 1e3);
        }
    }
    if (points > 0) {
        fprintf(script, "EOD\n");
    }
    return points;
}

static void panel_write(FILE *script, uint32_t collective, const struct cw_measured *known,
                        const struct cw_measured *times)
{
    const struct cw_algorithm *algorithm;
    bool shown[256] = {false};
    bool any = false;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL && i < 256; i++) {
        shown[i] = algorithm->collective == collective && block_write(script, i, algorithm, known, times) > 0;
        any = any || shown[i];
    }
    if (!any) {
        return;
    }
    fprintf(script, "set title '%s'\nplot x notitle with lines lc 'gray'", cw_collective_name(collective));
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL && i < 256; i++) {
        if (shown[i]) {
            fprintf(script, ", $d%" PRIu32 " title '%s' with points", i, algorithm->name);
        }
    }
    fprintf(script, "\n");
}

static void script_write(FILE *script, const struct cw_measured *known, const struct cw_measured *times)
{
    fprintf(script,
            "set logscale xy\nset key outside right\n"
            "set xlabel 'measured, us'\nset ylabel 'predicted, us'\nset xrange [0.1:1e5]\nset yrange [0.1:1e5]\n"
            "set multiplot layout 4,%d\n",
            PANELS_ACROSS);
    for (uint32_t collective = 0; collective < CW_COLLECTIVE_COUNT; collective++) {
        panel_write(script, collective, known, times);
    }
    fprintf(script, "unset multiplot\n");
}

int plogp_plot(const char *file, const struct cw_measured *known, const struct cw_measured *times)
{
    struct gnuplot plot;
    int code = gnuplot_begin(&plot, file, 1500, 1600);
    if (code == APP_EXIT_SUCCESS) {
        script_write(plot.script, known, times);
        code = gnuplot_end(&plot);
    }
    return code;
}
