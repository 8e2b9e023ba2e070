/* The picture of bench scale: a panel for time, for packets of a rank, and for its memory, each against the number of
 * ranks, all axes logarithmic: a power is a straight line. */
#include "apps/bench/collectives/scale.h"
#include "apps/cli/cli.h"
#include "apps/draw/gnuplot.h"

enum { WIDTH = 1560, PLOT_HEIGHT = 560, KEY_HEIGHT = 30, LINE_HEIGHT = 20 };

/* Colours that people with any sort of colour vision tell apart (Okabe and Ito 2008). */
static const char *const colours[] = {"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"};

struct panel {
    const char *name; /* in the legend */
    const char *title;
    const char *axis;
    uint32_t column; /* of the data blocks */
    double (*value)(const struct bench_scale_point *point);
};

static double time_ms(const struct bench_scale_point *point)
{
    return point->time_ns / 1e6;
}

static double packets(const struct bench_scale_point *point)
{
    return point->packets;
}

static double memory_kib(const struct bench_scale_point *point)
{
    return (double)point->memory.rank_bytes / 1024;
}

static const struct panel panels[] = {
    {"time", "time", "ms", 2, time_ms},
    {"packets", "packets sent by a rank", "packets", 3, packets},
    {"memory", "memory of the rank that takes most", "KiB", 4, memory_kib},
};

enum { PANELS = sizeof(panels) / sizeof(panels[0]) };

/* "$s0": ranks, then the value of each panel. */
static void block_write(FILE *script, const struct bench_scale_series *series, uint32_t number)
{
    fprintf(script, "$s%u << EOD\n", number);
    for (uint32_t i = 0; i < series->count; i++) {
        fprintf(script, "%u", series->points[i].ranks);
        for (uint32_t j = 0; j < PANELS; j++) {
            fprintf(script, " %.6g", panels[j].value(&series->points[i]));
        }
        fputc('\n', script);
    }
    fprintf(script, "EOD\n");
}

/* "alltoall, rotated: time P^0.50, packets P^0.80, memory P^1.00": the exponents from the first point to the last. */
static void key_write(FILE *script, const struct bench_scale_series *series)
{
    char text[300];
    size_t used = (size_t)snprintf(text, sizeof(text), "%s, %s", cw_collective_name(series->collective),
                                   series->flat ? "without clusters" : series->points[series->count - 1].algorithm);
    for (uint32_t j = 0; j < PANELS && series->count > 1; j++) {
        const struct bench_scale_point *first = &series->points[0], *last = &series->points[series->count - 1];
        double exponent =
            bench_scale_exponent(first->ranks, panels[j].value(first), last->ranks, panels[j].value(last));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s P^%.2f", j > 0 ? "," : ":", panels[j].name,
                                 exponent);
    }
    gnuplot_text(script, text);
}

/* A curve that lies on another one is thinner than it, and its points are rings around the other's. */
static void panel_write(FILE *script, const struct panel *panel, const struct bench_scale_series *series,
                        uint32_t count)
{
    static const int points[][2] = {{7, 6}, {5, 4}, {9, 8}}; /* discs, squares, triangles: full, empty */
    fprintf(script, "set title '%s'\nset ylabel '%s'\nplot", panel->title, panel->axis);
    for (uint32_t i = 0; i < count; i++) {
        bool flat = series[i].flat;
        fprintf(script, "%s $s%u using 1:%u with linespoints pointtype %d pointsize %.1f linewidth %.1f dashtype %d",
                i > 0 ? "," : "", i, panel->column, points[i / 2 % 3][flat], flat ? 1.6 : 0.9, 1.5 + 0.7 * (count - i),
                flat ? 2 : 1);
        fprintf(script, " linecolor rgb '%s' title ", colours[i % (sizeof(colours) / sizeof(colours[0]))]);
        key_write(script, &series[i]);
    }
    fputc('\n', script);
}

int bench_scale_plot(const char *path, const struct bench_scale_series *series, uint32_t count)
{
    struct gnuplot plot;
    uint32_t height = PLOT_HEIGHT + KEY_HEIGHT + count * LINE_HEIGHT;
    double bottom = (double)(height - PLOT_HEIGHT) / height;
    int code = gnuplot_begin(&plot, path, WIDTH, height);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    for (uint32_t i = 0; i < count; i++) {
        block_write(plot.script, &series[i], i);
    }
    fprintf(plot.script,
            "set logscale x 2\nset logscale y 10\nset xlabel 'ranks P'\nset grid\n"
            "set offsets graph 0.05, graph 0.05, 0, 0\n"
            "set multiplot layout 1,%d margins 0.06, 0.985, %.4f, 0.94 spacing 0.07, 0\n",
            PANELS, bottom + 50.0 / height);
    for (uint32_t j = 0; j < PANELS; j++) { /* the legend is that of all panels */
        if (j == 0) {
            fprintf(plot.script, "set key at screen 0.5, screen %.4f center top Left reverse maxcols 1 noenhanced\n",
                    bottom - 0.01);
        } else {
            fputs("unset key\n", plot.script);
        }
        panel_write(plot.script, &panels[j], series, count);
    }
    fprintf(plot.script, "unset multiplot\n");
    return gnuplot_end(&plot);
}
