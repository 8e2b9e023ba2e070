/* The picture of bench scale: a panel for time, for packets of a rank, and for its memory, each against the number of
 * ranks, all axes logarithmic: a power is a straight line. */
#include "apps/bench/scale.h"
#include "apps/cli/cli.h"
#include "apps/draw/gnuplot.h"

enum { WIDTH = 1560, HEIGHT = 620 };

/* Colours that people with any sort of colour vision tell apart (Okabe and Ito 2008). */
static const char *const colours[] = {"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"};

struct panel {
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
    {"time", "ms", 2, time_ms},
    {"packets sent by a rank", "packets", 3, packets},
    {"memory of the rank that takes most", "KiB", 4, memory_kib},
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

/* "alltoall, chosen: P^0.5, P^0.8": the exponents from each point to the next. */
static void key_write(FILE *script, const struct bench_scale_series *series, const struct panel *panel)
{
    char text[300];
    size_t used = (size_t)snprintf(text, sizeof(text), "%s, %s:", cw_collective_name(series->collective),
                                   series->flat ? "without clusters" : series->points[series->count - 1].algorithm);
    for (uint32_t i = 1; i < series->count && used + 20 < sizeof(text); i++) {
        const struct bench_scale_point *one = &series->points[i - 1], *next = &series->points[i];
        double exponent = bench_scale_exponent(one->ranks, panel->value(one), next->ranks, panel->value(next));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s P^%.2f", i > 1 ? "," : "", exponent);
    }
    gnuplot_text(script, text);
}

static void panel_write(FILE *script, const struct panel *panel, const struct bench_scale_series *series,
                        uint32_t count)
{
    fprintf(script, "set title '%s'\nset ylabel '%s'\nplot", panel->title, panel->axis);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(script, "%s $s%u using 1:%u with linespoints pointtype 7 linewidth 2 %s linecolor rgb '%s' title ",
                i > 0 ? "," : "", i, panel->column, series[i].flat ? "dashtype 2" : "dashtype 1",
                colours[i % (sizeof(colours) / sizeof(colours[0]))]);
        key_write(script, &series[i], panel);
    }
    fputc('\n', script);
}

int bench_scale_plot(const char *path, const struct bench_scale_series *series, uint32_t count)
{
    struct gnuplot plot;
    int code = gnuplot_begin(&plot, path, WIDTH, HEIGHT);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    for (uint32_t i = 0; i < count; i++) {
        block_write(plot.script, &series[i], i);
    }
    fprintf(plot.script,
            "set logscale x 2\nset logscale y 10\nset xlabel 'ranks P'\nset grid\n"
            "set key below left Left reverse maxcols 1 noenhanced\nset offsets graph 0.05, graph 0.05, 0, 0\n"
            "set multiplot layout 1,%d\n",
            PANELS);
    for (uint32_t j = 0; j < PANELS; j++) {
        panel_write(plot.script, &panels[j], series, count);
    }
    fprintf(plot.script, "unset multiplot\n");
    return gnuplot_end(&plot);
}
