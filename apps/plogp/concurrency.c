/* causeway plogp --concurrency: how many puts at once a network bears, as the tests of Tipparaju and Nieplocha 2005
 * (Section 4.1, Figure 5) have it. */
#include <inttypes.h>

#include "apps/cli/progress.h"
#include "apps/draw/gnuplot.h"
#include "apps/plogp/plogp.h"
#include "dataplane/status.h"

static void test_report(struct app_report *report, const struct cw_measured_network *row,
                        const struct cw_measured_concurrent *test)
{
    const struct app_cell cells[] = {
        app_text("path", "path", 6, cw_measured_path_name(row->path)),
        app_count("ranks", "ranks", row->ranks),
        app_count("size_bytes", "bytes", test->bytes),
        app_count("puts", "puts", test->puts),
        app_number("one_ns", "one/us", 2, 1e-3, test->one_ns),
        app_number("all_ns", "all/us", 2, 1e-3, test->all_ns),
        app_number("ratio_all", "all/one", 2, 1, test->all_ns / test->one_ns),
        app_number("first_ns", "the first/us", 2, 1e-3, test->first_ns),
        app_number("ratio_first", "first/one", 2, 1, test->first_ns / test->one_ns),
    };
    APP_REPORT(report, cells);
}

static void row_report(const struct plogp_options *options, struct app_report *report,
                       const struct cw_measured_network *row)
{
    for (uint32_t i = 0; i < row->concurrent_count; i++) {
        test_report(report, row, &row->concurrent[i]);
    }
    struct app_report sum = {.json = options->report.json, .form = APP_REPORT_LINE};
    const struct app_cell cells[] = {
        app_text("path", NULL, 0, cw_measured_path_name(row->path)),
        app_count("ranks", "ranks", row->ranks),
        app_count("concurrency_index", "concurrency index", row->network.ports),
    };
    APP_REPORT(&sum, cells);
}

/* ---- the picture ---- */

/* A curve: times over sizes, of those tests with so many puts. */
static void curve_write(FILE *script, const char *block, const struct cw_measured_network *row, uint32_t puts,
                        double (*time_of)(const struct cw_measured_concurrent *test))
{
    fprintf(script, "$%s%" PRIu32 " << EOD\n", block, puts);
    for (uint32_t i = 0; i < row->concurrent_count; i++) {
        const struct cw_measured_concurrent *test = &row->concurrent[i];
        if (test->puts == puts) {
            fprintf(script, "%" PRIu64 " %.6g\n", test->bytes, time_of(test) / 1e3);
        }
    }
    fprintf(script, "EOD\n");
}

static double one_of(const struct cw_measured_concurrent *test)
{
    return test->one_ns;
}

static double all_of(const struct cw_measured_concurrent *test)
{
    return test->all_ns;
}

static double first_of(const struct cw_measured_concurrent *test)
{
    return test->first_ns;
}

static void panel_write(FILE *script, const struct cw_measured_network *row, const char *block, const char *what)
{
    fprintf(script, "set title '%s, %" PRIu32 " ranks: %s'\nplot $one2 title '1 put' with linespoints",
            cw_measured_path_name(row->path), row->ranks, what);
    for (uint32_t puts = 2; puts <= row->concurrent[row->concurrent_count - 1].puts; puts *= 2) {
        fprintf(script, ", $%s%" PRIu32 " title '%" PRIu32 " puts' with linespoints", block, puts, puts);
    }
    fprintf(script, "\n");
}

static void row_draw(FILE *script, const struct cw_measured_network *row)
{
    curve_write(script, "one", row, 2, one_of);
    for (uint32_t puts = 2; puts <= row->concurrent[row->concurrent_count - 1].puts; puts *= 2) {
        curve_write(script, "all", row, puts, all_of);
        curve_write(script, "first", row, puts, first_of);
    }
    panel_write(script, row, "all", "all completed");
    panel_write(script, row, "first", "the first completed");
}

static int draw(const char *file, const struct cw_measured *all)
{
    struct gnuplot plot;
    int code = gnuplot_begin(&plot, file, 1200, 450 * all->network_count);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    fprintf(plot.script,
            "set logscale xy 2\nset format x '%%.0b%%B'\nset format y '%%g'\nset xlabel 'bytes'\nset ylabel 'us'\nset "
            "key left top\n"
            "set multiplot layout %" PRIu32 ",2\n",
            all->network_count);
    for (uint32_t i = 0; i < all->network_count; i++) {
        row_draw(plot.script, &all->networks[i]);
    }
    fprintf(plot.script, "unset multiplot\n");
    return gnuplot_end(&plot);
}

/* ---- the command ---- */

static int row_measure(const struct plogp_options *options, enum cw_measured_path path, uint32_t index,
                       struct cw_measured *all)
{
    struct cw_measured *one;
    double noise = 0;
    plogp_progress_tell(options, path, index);
    int code = plogp_job_run(options, path, options->ranks[index], PLOGP_CONCURRENCY, "none", &one, &noise);
    if (code == APP_EXIT_SUCCESS) {
        code = cw_measured_merge(all, one) == CW_OK ? code : app_error_status(CW_ERROR_MEMORY, "cannot keep", NULL);
        cw_measured_destroy(one);
    }
    return code;
}

int plogp_concurrency(const struct plogp_options *options)
{
    struct cw_measured *all = cw_measured_create();
    int code = all == NULL ? app_error_status(CW_ERROR_MEMORY, "cannot measure", NULL) : APP_EXIT_SUCCESS;
    for (uint32_t path = 0; path < CW_MEASURED_PATHS; path++) {
        for (uint32_t i = 0; i < options->rank_count && plogp_path_is_asked(options, path) && code == 0; i++) {
            code = row_measure(options, path, i, all);
        }
    }
    app_progress_end();
    struct app_report report = options->report;
    for (uint32_t i = 0; code == APP_EXIT_SUCCESS && i < all->network_count; i++) {
        row_report(options, &report, &all->networks[i]);
    }
    if (code == APP_EXIT_SUCCESS && options->plot != NULL) {
        code = draw(options->plot, all);
    }
    cw_measured_destroy(all);
    return code;
}
