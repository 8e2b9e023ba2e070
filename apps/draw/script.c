/* The picture: a column for each run, its throughput above, its queue below; under all of them the times. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/draw/draw.h"
#include "apps/draw/gnuplot.h"

/* In points. */
enum {
    COLUMN_WIDTH = 560,
    ALONE_WIDTH = 860, /* of a single column */
    LEFT = 88,
    RIGHT = 28,
    TITLE_HEIGHT = 44,
    KEY_LINE = 20,
    KEY_WIDTH = 165,    /* of a column of the legend */
    LEGEND_ENTRIES = 4, /* beside the hosts */
    GAP_HEIGHT = 44,    /* between the panels of a run */
    RATE_HEIGHT = 250,
    QUEUE_HEIGHT = 170,
    AXIS_HEIGHT = 66,
    TIME_HEIGHT = 52, /* of a pair of bars */
    TIMES_TITLE = 60,
    TIMES_NAMES = 190, /* room for what they are called */
    TIMES_RIGHT = 150, /* likewise for what is written behind the bars */
};

/* Colours that people with any sort of colour vision tell apart: Okabe and Ito, Color Universal Design (2008). */
static const char *const colours[DRAW_STREAMS_MAX] = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                                      "#56B4E9", "#D55E00", "#F0E442", "#999999"};
#define COLOUR_LIMIT   "#000000"
#define COLOUR_QUEUE   "#8A93A6" /* of no host */
#define COLOUR_DROPPED "#D55E00"

/* The hosts of all runs, so that one legend is enough. */
struct hosts {
    uint32_t count;
    const char *names[DRAW_RUNS_MAX * DRAW_STREAMS_MAX];
};

static uint32_t host_number(const struct hosts *hosts, const char *name)
{
    uint32_t number = 0;
    while (number < hosts->count && strcmp(hosts->names[number], name) != 0) {
        number++;
    }
    return number;
}

static struct hosts hosts_find(const struct draw_picture *picture)
{
    struct hosts hosts = {0};
    for (uint32_t i = 0; i < picture->run_count; i++) {
        for (uint32_t j = 0; j < picture->runs[i].stream_count; j++) {
            const char *name = picture->runs[i].streams[j]->host;
            if (host_number(&hosts, name) == hosts.count) {
                hosts.names[hosts.count++] = name;
            }
        }
    }
    return hosts;
}

static uint32_t column_width(const struct draw_picture *picture)
{
    return picture->run_count <= 1 ? ALONE_WIDTH : COLUMN_WIDTH;
}

uint32_t draw_script_width(const struct draw_picture *picture)
{
    return column_width(picture) * (picture->run_count > 0 ? picture->run_count : 1);
}

static uint32_t legend_columns(const struct draw_picture *picture)
{
    return draw_script_width(picture) / KEY_WIDTH;
}

static uint32_t legend_height(const struct draw_picture *picture)
{
    uint32_t count = hosts_find(picture).count;
    uint32_t entries = (count > 0 ? count : 1) + LEGEND_ENTRIES, columns = legend_columns(picture);
    return KEY_LINE * ((entries + columns - 1) / columns + 1);
}

static uint32_t runs_height(const struct draw_picture *picture)
{
    return picture->run_count > 0
               ? legend_height(picture) + TITLE_HEIGHT + RATE_HEIGHT + GAP_HEIGHT + QUEUE_HEIGHT + AXIS_HEIGHT
               : 0;
}

uint32_t draw_script_height(const struct draw_picture *picture)
{
    uint32_t times = picture->times.count > 0 ? TIMES_TITLE + picture->times.count * TIME_HEIGHT + AXIS_HEIGHT : 0;
    return runs_height(picture) + times;
}

/* Where the next plot stands, in points from the left upper corner. */
static void margins_set(const struct draw_picture *picture, FILE *script, uint32_t left, uint32_t right, uint32_t top,
                        uint32_t bottom)
{
    double width = draw_script_width(picture), height = draw_script_height(picture);
    fprintf(script,
            "set lmargin at screen %.5f\nset rmargin at screen %.5f\nset tmargin at screen %.5f\nset bmargin at screen "
            "%.5f\n",
            left / width, right / width, 1 - top / height, 1 - bottom / height);
}

/* Where the key stands, below `top`. */
static void key_set(const struct draw_picture *picture, FILE *script, uint32_t top)
{
    fprintf(script, "set key at screen 0.5, screen %.5f center top horizontal Left reverse samplen 1.5 maxcols %u\n",
            1 - (double)top / draw_script_height(picture), legend_columns(picture));
}

/* ---- data ---- */

static uint64_t bin_of(const struct draw_series *series, uint32_t index)
{
    return index < series->bins.count ? series->bins.list[index].bytes : 0;
}

/* "$r0": time, throughput, queue, dropped frames; then the streams, each on top of those before. The last line is the
 * end. */
static void block_write(const struct draw_run *run, uint32_t number, FILE *script)
{
    const struct draw_bins *bins = &run->total->bins;
    double width_s = (double)bins->width_ns / 1e9;
    fprintf(script, "$r%u << EOD\n", number);
    for (uint32_t i = 0; i <= run->end; i++) {
        const struct draw_bin *bin = &bins->list[i < run->end ? i : run->end - 1];
        double sum = 0;
        fprintf(script, "%.9g %.6g %.6g %" PRIu64, i * width_s, (double)bin->bytes * 8e-6 / width_s,
                (double)bin->queue_bytes / 1e3, i < run->end ? bin->dropped_frames : 0);
        for (uint32_t j = 0; j < run->stream_count; j++) {
            sum += (double)bin_of(run->streams[j], i < run->end ? i : run->end - 1) * 8e-6 / width_s;
            fprintf(script, " %.6g", sum);
        }
        fputc('\n', script);
    }
    fprintf(script, "EOD\n");
}

/* "$l0": time, rate and queue limit of the link where they change, and at the end: dashes would begin anew at each
 * point. */
static void limits_write(const struct draw_run *run, uint32_t number, FILE *script)
{
    const struct draw_bins *bins = &run->total->bins;
    double width_s = (double)bins->width_ns / 1e9;
    fprintf(script, "$l%u << EOD\n", number);
    for (uint32_t i = 0; i <= run->end; i++) {
        const struct draw_bin *bin = &bins->list[i < run->end ? i : run->end - 1];
        bool is_new = i == 0 || i == run->end || bin->rate_bps != bins->list[i - 1].rate_bps ||
                      bin->queue_limit_bytes != bins->list[i - 1].queue_limit_bytes;
        if (is_new) {
            fprintf(script, "%.9g %.6g %.6g\n", i * width_s, (double)bin->rate_bps / 1e6,
                    (double)bin->queue_limit_bytes / 1e3);
        }
    }
    fprintf(script, "EOD\n");
}

void draw_data_write(const struct draw_picture *picture, FILE *file)
{
    fputs("run,name,direction,host,from_ns,to_ns,bytes,rate_bps,queue_max_bytes,queue_limit_bytes,queue_frames\n",
          file);
    for (uint32_t number = 0; number < picture->run_count; number++) {
        const struct draw_run *run = &picture->runs[number];
        for (uint32_t i = 0; i < run->end; i++) {
            const struct draw_bin *bin = &run->total->bins.list[i];
            uint64_t from_ns = run->begin_ns + i * run->total->bins.width_ns;
            uint64_t to_ns = from_ns + run->total->bins.width_ns;
            fprintf(file,
                    "%s,%s,%s,,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
                    run->label, run->total->name, run->total->direction, from_ns, to_ns, bin->bytes, bin->rate_bps,
                    bin->queue_bytes, bin->queue_limit_bytes, bin->dropped_frames);
            for (uint32_t j = 0; j < run->stream_count; j++) {
                fprintf(file, "%s,%s,%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",,,,\n", run->label, run->total->name,
                        run->total->direction, run->streams[j]->host, from_ns, to_ns, bin_of(run->streams[j], i));
            }
        }
    }
}

/* ---- panels of a run ---- */

/* What is the same in all columns, so that they can be compared. */
struct scale {
    double time_s;
    double rate_mbps;
    double queue_kb;
    struct hosts hosts;
};

static struct scale scale_find(const struct draw_picture *picture)
{
    struct scale scale = {.hosts = hosts_find(picture)};
    for (uint32_t number = 0; number < picture->run_count; number++) {
        const struct draw_run *run = &picture->runs[number];
        double width_s = (double)run->total->bins.width_ns / 1e9;
        scale.time_s = fmax(scale.time_s, run->end * width_s);
        for (uint32_t i = 0; i < run->end; i++) {
            const struct draw_bin *bin = &run->total->bins.list[i];
            scale.rate_mbps =
                fmax(scale.rate_mbps, fmax((double)bin->bytes * 8e-6 / width_s, (double)bin->rate_bps / 1e6));
            scale.queue_kb = fmax(scale.queue_kb, fmax((double)bin->queue_bytes, (double)bin->queue_limit_bytes) / 1e3);
        }
    }
    scale.queue_kb = fmax(scale.queue_kb, 1);
    return scale;
}

static const char *colour_of(const struct hosts *hosts, const char *name)
{
    return colours[host_number(hosts, name) % DRAW_STREAMS_MAX];
}

/* A plot of nothing, with the key of all that any panel shows. */
static void legend_draw(const struct draw_picture *picture, const struct hosts *hosts, FILE *script)
{
    margins_set(picture, script, 0, draw_script_width(picture), 0, legend_height(picture));
    key_set(picture, script, KEY_LINE / 2);
    fputs("unset border\nunset tics\nset xrange [0:1]\nset yrange [0:1]\nplot NaN notitle", script);
    for (uint32_t i = 0; i < hosts->count; i++) {
        fprintf(script, ", keyentry with boxes fc rgb '%s' title ", colours[i % DRAW_STREAMS_MAX]);
        gnuplot_text(script, hosts->names[i]);
    }
    if (hosts->count == 0) {
        fprintf(script, ", keyentry with boxes fc rgb '%s' title 'throughput'", colours[0]);
    }
    fprintf(script,
            ", keyentry with lines lw 2 dt 2 lc rgb '%s' title 'rate of the link'"
            ", keyentry with boxes fc rgb '%s' title 'longest queue'"
            ", keyentry with lines lw 2 dt 3 lc rgb '%s' title 'limit of the queue'"
            ", keyentry with points pt 7 ps 0.6 lc rgb '%s' title 'frames dropped'\n"
            "unset key\nset border 3 lc rgb '#444444'\nset xtics nomirror out\nset ytics nomirror out\n",
            COLOUR_LIMIT, COLOUR_QUEUE, COLOUR_LIMIT, COLOUR_DROPPED);
}

static void rate_panel(const struct draw_run *run, uint32_t number, const struct hosts *hosts, FILE *script)
{
    fprintf(script, "set ylabel 'on the line, Mb/s'\nplot ");
    for (uint32_t j = run->stream_count; j-- > 0;) { /* the highest first, each covered by those below */
        fprintf(script, "$r%u using 1:%u with fillsteps fc rgb '%s' notitle, ", number, 5 + j,
                colour_of(hosts, run->streams[j]->host));
    }
    if (run->stream_count == 0) {
        fprintf(script, "$r%u using 1:2 with fillsteps fc rgb '%s' notitle, ", number, colours[0]);
    }
    fprintf(script, "$l%u using 1:($2 > 0 ? $2 : NaN) with steps lw 2 dt 2 lc rgb '%s' notitle\n", number,
            COLOUR_LIMIT);
}

/* Drops stand above the limit, which they would hide. */
static void queue_panel(const struct draw_run *run, uint32_t number, const struct scale *scale, FILE *script)
{
    if (run->dropped_frames > 0) {
        fprintf(script, "set title '%" PRIu64 " frames dropped' offset 0,-0.7\n", run->dropped_frames);
    } else {
        fprintf(script, "set title 'no frame dropped' offset 0,-0.7\n");
    }
    fprintf(script,
            "set yrange [0:%.6g]\nset ylabel 'queue, KB'\n"
            "plot $r%u using 1:3 with fillsteps fc rgb '%s' notitle, "
            "$l%u using 1:($3 > 0 ? $3 : NaN) with steps lw 2 dt 3 lc rgb '%s' notitle, "
            "$r%u using 1:($4 > 0 ? %.6g : NaN) with points pt 7 ps 0.6 lc rgb '%s' notitle\nunset title\n",
            scale->queue_kb * 1.14, number, COLOUR_QUEUE, number, COLOUR_LIMIT, number, scale->queue_kb * 1.07,
            COLOUR_DROPPED);
}

static void run_draw(const struct draw_picture *picture, uint32_t number, const struct scale *scale, FILE *script)
{
    const struct draw_run *run = &picture->runs[number];
    uint32_t left = number * column_width(picture) + LEFT, right = (number + 1) * column_width(picture) - RIGHT;
    uint32_t top = legend_height(picture) + TITLE_HEIGHT;
    char title[3 * DRAW_NAME_BYTES + 16];
    block_write(run, number, script);
    limits_write(run, number, script);
    margins_set(picture, script, left, right, top, top + RATE_HEIGHT);
    snprintf(title, sizeof(title), "%s: link %s, %s", run->label, run->total->name, run->total->direction);
    fprintf(script, "set label 1 ");
    gnuplot_text(script, title);
    fprintf(script, " at screen %.5f, screen %.5f center font ',15'\nset xrange [0:%.9g]\nset yrange [0:%.6g]\n",
            (left + right) / 2.0 / draw_script_width(picture), 1 - (top - 20.0) / draw_script_height(picture),
            scale->time_s, scale->rate_mbps * 1.08);
    fprintf(script, "unset xlabel\nset format x ''\n");
    rate_panel(run, number, &scale->hosts, script);
    fprintf(script, "unset label 1\nset format x '%%g'\nset xlabel 'time, s'\n");
    top += RATE_HEIGHT + GAP_HEIGHT;
    margins_set(picture, script, left, right, top, top + QUEUE_HEIGHT);
    queue_panel(run, number, scale, script);
}

/* ---- times ---- */

static void times_draw(const struct draw_picture *picture, FILE *script)
{
    const struct draw_times *times = &picture->times;
    double most_s = 0;
    fprintf(script, "$times << EOD\n");
    for (uint32_t i = 0; i < times->count; i++) {
        const struct draw_time *time = &times->list[i];
        most_s = fmax(most_s, fmax(time->predicted_ns, time->measured_ns) / 1e9);
        fprintf(script, "%u %.9g %.9g %.6g\n", i, time->predicted_ns / 1e9, time->measured_ns / 1e9,
                time->measured_ns / time->predicted_ns);
    }
    fprintf(script, "EOD\n");
    uint32_t top = runs_height(picture) + TIMES_TITLE;
    margins_set(picture, script, TIMES_NAMES, draw_script_width(picture) - TIMES_RIGHT, top,
                top + times->count * TIME_HEIGHT);
    key_set(picture, script, top - 3 * KEY_LINE / 2);
    fprintf(script, "set xrange [0:%.9g]\nset yrange [%.1f:-0.5]\nset xlabel 'time, s'\nunset ylabel\nset ytics (",
            most_s, times->count - 0.5);
    for (uint32_t i = 0; i < times->count; i++) {
        fprintf(script, i > 0 ? ", " : "");
        gnuplot_text(script, times->list[i].name);
        fprintf(script, " %u", i);
    }
    fprintf(script,
            ") scale 0\nunset grid\nset grid xtics lc rgb '#dddddd'\n"
            "plot $times using (0):($1-0.19):(0):2:($1-0.36):($1-0.02) with boxxyerror fc rgb '#999999' title "
            "'predicted', $times using (0):($1+0.19):(0):3:($1+0.02):($1+0.36) with boxxyerror fc rgb '%s' title "
            "'measured', $times using 2:($1-0.19):(sprintf('  %%.3g s', $2)) with labels left notitle, "
            "$times using 3:($1+0.19):(sprintf('  %%.3g s, %%.2f x', $3, $4)) with labels left notitle\n",
            colours[0]);
}

void draw_script_write(const struct draw_picture *picture, FILE *script)
{
    struct scale scale = scale_find(picture);
    fputs("set multiplot\nset style fill solid 1 noborder\nset border 3 lc rgb '#444444'\nset tics nomirror out\n"
          "set grid ytics lc rgb '#dddddd'\nset boxwidth 0.5\n",
          script);
    if (picture->run_count > 0) {
        legend_draw(picture, &scale.hosts, script);
    }
    for (uint32_t number = 0; number < picture->run_count; number++) {
        run_draw(picture, number, &scale, script);
    }
    if (picture->times.count > 0) {
        times_draw(picture, script);
    }
    fputs("unset multiplot\n", script);
}
