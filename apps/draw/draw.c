/* `causeway draw`: pictures of what a switch's links did, and of predicted beside measured times. */
#include "apps/draw/draw.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "apps/draw/gnuplot.h"

/* As short as statistics are written at most. */
#define WIDTH_NS 1000000ull

struct settings {
    const char *output;
    const char *times;
    const char *data;
    const char *link;
    const char *direction;
    uint64_t bin_ns;
    uint64_t from_ns;
    uint64_t to_ns;
    uint32_t label_count;
    const char *labels[DRAW_RUNS_MAX];
};

static const char usage[] =
    "draw [STATISTICS.csv...] -o PICTURE.svg|.png [OPTION...]\n\n"
    "Draws what `causeway switch --stats FILE` writes, or `causeway run --simulate stats=FILE`, "
    "or --emulate topology=FILE,memif,stats=FILE: the throughput of a link over time,\n"
    "by the hosts that send across it, beside the link's rate, and the queue in front of it, "
    "with its limit and the times at which frames were\n"
    "dropped. Several files (up to 4) stand beside one another, on the same scales. With "
    "--times, also or alone: predicted beside measured times.\n"
    "Throughput is what has come to the link's end, in bytes as they are on the line: 24 for "
    "Ethernet more than a frame has.";

static int label_take(void *context, const char *text)
{
    struct settings *settings = context;
    if (settings->label_count == DRAW_RUNS_MAX) {
        app_error("more labels than files can be drawn", text, "4 files are possible");
        return APP_EXIT_USAGE;
    }
    if (strpbrk(text, ",\n") != NULL || strlen(text) >= DRAW_NAME_BYTES) {
        app_error("bad value", text, "a label is short and has no comma");
        return APP_EXIT_USAGE;
    }
    settings->labels[settings->label_count++] = text;
    return APP_EXIT_SUCCESS;
}

/* ---- files ---- */

static const char *label_of(const struct settings *settings, uint32_t number, const char *path)
{
    const char *slash = strrchr(path, '/');
    return number < settings->label_count ? settings->labels[number] : slash != NULL ? slash + 1 : path;
}

static uint64_t width_first(const struct settings *settings)
{
    return settings->bin_ns > 0 ? settings->bin_ns : WIDTH_NS;
}

static int run_trim(const struct settings *settings, struct draw_run *run)
{
    if (settings->bin_ns > 0 && run->total->bins.width_ns != settings->bin_ns) {
        char todo[96];
        snprintf(todo, sizeof(todo), "--bin %llums, or longer",
                 (unsigned long long)run->total->bins.width_ns / 1000000 + 1);
        app_error("with so short bins there are too many", run->stats.path, todo);
        return APP_EXIT_USAGE;
    }
    return draw_run_trim(run, settings->from_ns, settings->to_ns);
}

/* A bin's length of 1, 2 or 5 times a power of ten, at which the longest run has no more than can be shown. */
static uint64_t width_choose(const struct draw_picture *picture)
{
    static const uint64_t steps[] = {2, 5, 10};
    uint64_t longest_ns = 0, ten_ns = WIDTH_NS, width_ns = WIDTH_NS;
    for (uint32_t i = 0; i < picture->run_count; i++) {
        const struct draw_run *run = &picture->runs[i];
        uint64_t length_ns = (run->end - run->first) * run->total->bins.width_ns;
        longest_ns = length_ns > longest_ns ? length_ns : longest_ns;
    }
    for (uint32_t i = 0; longest_ns / width_ns > DRAW_BINS_SHOWN; i++) {
        width_ns = steps[i % 3] * ten_ns;
        ten_ns = i % 3 == 2 ? width_ns : ten_ns;
    }
    return width_ns;
}

static int runs_read(const struct settings *settings, struct draw_picture *picture)
{
    int code = APP_EXIT_SUCCESS;
    for (uint32_t i = 0; i < picture->run_count && code == APP_EXIT_SUCCESS; i++) {
        code = draw_stats_read(&picture->runs[i].stats, picture->runs[i].stats.path, settings->link,
                               width_first(settings));
    }
    code = code == APP_EXIT_SUCCESS ? draw_runs_choose(picture, settings->direction) : code;
    for (uint32_t i = 0; i < picture->run_count && code == APP_EXIT_SUCCESS; i++) {
        code = run_trim(settings, &picture->runs[i]);
    }
    if (code != APP_EXIT_SUCCESS || settings->bin_ns > 0) {
        for (uint32_t i = 0; i < picture->run_count && code == APP_EXIT_SUCCESS; i++) {
            draw_run_join(&picture->runs[i], 1);
        }
        return code;
    }
    uint64_t width_ns = width_choose(picture);
    for (uint32_t i = 0; i < picture->run_count; i++) {
        uint64_t own_ns = picture->runs[i].total->bins.width_ns;
        draw_run_join(&picture->runs[i], (uint32_t)((width_ns + own_ns - 1) / own_ns));
    }
    return code;
}

/* ---- the command ---- */

/* What can be seen, in words. */
static void runs_tell(const struct draw_picture *picture)
{
    for (uint32_t i = 0; i < picture->run_count; i++) {
        const struct draw_run *run = &picture->runs[i];
        const struct draw_bins *bins = &run->total->bins;
        uint64_t limit_bytes = bins->list[bins->count - 1].queue_limit_bytes, bytes = 0;
        for (uint32_t j = 0; j < bins->count; j++) {
            bytes += bins->list[j].bytes;
        }
        printf("%s: link %s, %s: %" PRIu64 " bytes in %.3g s; queue up to %" PRIu64, run->label, run->total->name,
               run->total->direction, bytes, (double)(bins->count * bins->width_ns) / 1e9, run->queue_max_bytes);
        if (limit_bytes > 0) {
            printf(" of %" PRIu64, limit_bytes);
        }
        printf(" bytes, %" PRIu64 " frames dropped\n", run->dropped_frames);
    }
}

static int data_write(const struct draw_picture *picture, const char *path)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        app_error("the data cannot be written there", path, strerror(errno));
        return APP_EXIT_USAGE;
    }
    draw_data_write(picture, file);
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        app_error("not all data could be written", path, "is the disk full?");
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

static int picture_draw(const struct settings *settings, const struct draw_picture *picture)
{
    struct gnuplot plot;
    int code = gnuplot_begin(&plot, settings->output, draw_script_width(picture), draw_script_height(picture));
    if (code == APP_EXIT_SUCCESS) {
        draw_script_write(picture, plot.script);
        code = gnuplot_end(&plot);
    }
    if (code == APP_EXIT_SUCCESS) {
        runs_tell(picture);
    }
    return code == APP_EXIT_SUCCESS && settings->data != NULL ? data_write(picture, settings->data) : code;
}

static int settings_check(const struct settings *settings, uint32_t files)
{
    if (settings->output == NULL) {
        app_error("nowhere to draw", "-o FILE is missing", "-o x.svg or -o x.png");
        return APP_EXIT_USAGE;
    }
    if (files == 0 && settings->times == NULL) {
        app_error("nothing to draw", "no file is named",
                  "causeway draw x.csv -o x.svg; `causeway switch --stats x.csv` writes one");
        return APP_EXIT_USAGE;
    }
    if (settings->label_count > files) {
        app_error("a label without a file", settings->labels[files], "--label is for the files in their order");
        return APP_EXIT_USAGE;
    }
    if (settings->to_ns > 0 && settings->to_ns <= settings->from_ns) {
        app_error("there is no time between --from and --to", "--to", "it is to be the later one");
        return APP_EXIT_USAGE;
    }
    return gnuplot_check(settings->output);
}

int draw_main(int argc, char **argv)
{
    struct settings settings = {.output = NULL};
    int code;
    const struct app_option rows[] = {
        OPTION_TEXT("output", "FILE", "the picture, .svg or .png", &settings.output),
        OPTION_EACH("label", "TEXT", "of the first file, given again of the next one (their names)", &settings,
                    label_take),
        OPTION_TEXT("link", "NAME", "which link, or host (the one between sites where most was dropped, or carried)",
                    &settings.link),
        OPTION_TEXT("direction", "TEXT",
                    "of it, as delft>leiden, or up or down of a host (where more was dropped, or carried)",
                    &settings.direction),
        OPTION_TIME("bin", "what is drawn as one (so that there are up to 400)", &settings.bin_ns, 1000, 0),
        OPTION_TIME("from", "of the file's time_ns, where to begin (where traffic does)", &settings.from_ns, 0, 0),
        OPTION_TIME("to", "likewise, where to end", &settings.to_ns, 0, 0),
        OPTION_TEXT("times", "FILE", "CSV with columns name, predicted_ns, measured_ns", &settings.times),
        OPTION_TEXT("data", "FILE", "also writes what is drawn of the links, as CSV", &settings.data),
        {0},
    };
    int first = app_options_parse(usage, rows, DRAW_RUNS_MAX, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    struct draw_picture *picture = calloc(1, sizeof(*picture));
    if (picture == NULL) {
        app_error("out of memory", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    picture->run_count = (uint32_t)(argc - first);
    for (uint32_t i = 0; i < picture->run_count; i++) {
        picture->runs[i].stats.path = argv[first + (int)i];
        picture->runs[i].label = label_of(&settings, i, argv[first + (int)i]);
    }
    code = settings_check(&settings, picture->run_count);
    code = code == APP_EXIT_SUCCESS ? runs_read(&settings, picture) : code;
    code = code == APP_EXIT_SUCCESS && settings.times != NULL ? draw_times_read(&picture->times, settings.times) : code;
    code = code == APP_EXIT_SUCCESS ? picture_draw(&settings, picture) : code;
    for (uint32_t i = 0; i < picture->run_count; i++) {
        draw_stats_dispose(&picture->runs[i].stats);
    }
    free(picture);
    return code;
}
