/* A picture of codecs: a group of bars for each field, of rates above, and below of the links for which they pay. */
#include <stdio.h>
#include <string.h>

#include "apps/bench/codec.h"
#include "apps/cli/cli.h"
#include "apps/draw/gnuplot.h"

enum { WIDTH_LEAST = 700, WIDTH_FIELD = 95, HEIGHT = 900, NAME_MAX_SHOWN = 14 };

static const char *const colours[CODEC_METHODS] = {
    [CW_CODEC_RUN] = "#999999", [CW_CODEC_LORENZO] = "#d55e00", [CW_CODEC_DFCM] = "#0072b2",
    [CW_CODEC_LZ4] = "#009e73", [CW_CODEC_SHUFFLE] = "#e69f00", [CW_CODEC_ZSTD] = "#cc79a7",
    [CODEC_STREAM] = "#56b4e9",
};

/* A file's name without its folders, and its end if it is long. */
static const char *short_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    name = slash != NULL ? slash + 1 : name;
    size_t length = strlen(name);
    return length > NAME_MAX_SHOWN ? name + length - NAME_MAX_SHOWN : name;
}

/* $d2: x, rate and Gb/s of method 2 for each field; a bar that is not there is NaN. */
static void block_write(FILE *script, uint32_t method, const struct codec_fields *fields,
                        const struct codec_figures (*figures)[CODEC_METHODS])
{
    fprintf(script, "$d%u << EOD\n", method);
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct codec_figures *each = &figures[i][method];
        double gbps = codec_break_even_bps(each) / 1e9;
        double x = i + 0.8 * ((double)method - (double)CODEC_METHODS / 2) / (CODEC_METHODS - 1);
        char rate[32] = "NaN", link[32] = "NaN";
        if (each->is_there) {
            snprintf(rate, sizeof(rate), "%.5g", each->rate);
        }
        if (gbps > 0) {
            snprintf(link, sizeof(link), "%.5g", gbps);
        }
        fprintf(script, "%.4f %s %s\n", x, rate, link);
    }
    fprintf(script, "EOD\n");
}

static void panel_write(FILE *script, const char *title, const char *axis, uint32_t column)
{
    fprintf(script, "set title '%s'\nset ylabel '%s'\nplot", title, axis);
    for (uint32_t method = CW_CODEC_RUN; method < CODEC_METHODS; method++) {
        fprintf(script, "%s $d%u using 1:%u with boxes fillstyle solid linecolor rgb '%s' title '%s'",
                method > CW_CODEC_RUN ? "," : "", method, column, colours[method], codec_method_name(method));
    }
    fputc('\n', script);
}

int codec_plot(const char *path, const struct codec_fields *fields,
               const struct codec_figures (*figures)[CODEC_METHODS])
{
    struct gnuplot plot;
    uint32_t width = fields->count * WIDTH_FIELD + 150;
    int code = gnuplot_begin(&plot, path, width > WIDTH_LEAST ? width : WIDTH_LEAST, HEIGHT);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    for (uint32_t method = CW_CODEC_RUN; method < CODEC_METHODS; method++) {
        block_write(plot.script, method, fields, figures);
    }
    fprintf(plot.script, "set xtics scale 0 (");
    for (uint32_t i = 0; i < fields->count; i++) {
        fputs(i > 0 ? ", " : "", plot.script);
        gnuplot_text(plot.script, short_name(fields->fields[i].name));
        fprintf(plot.script, " %u", i);
    }
    fprintf(plot.script,
            ")\nset xrange [-0.6:%.1f]\nset boxwidth %.4f\nset grid ytics\nset logscale y\n"
            "set key outside bottom center horizontal\nset lmargin 9\nset multiplot layout 2,1\n",
            fields->count - 0.4, 0.75 / (CODEC_METHODS - 1));
    fprintf(plot.script, "set yrange [0.9:100]\nset format y '%%g'\n");
    panel_write(plot.script, "rates (bars of zeros go on)", "bytes before / bytes sent", 2);
    fprintf(plot.script, "set yrange [0.01:200]\n");
    panel_write(plot.script, "links for which a codec pays: those slower than", "Gb/s", 3);
    fprintf(plot.script, "unset multiplot\n");
    return gnuplot_end(&plot);
}
