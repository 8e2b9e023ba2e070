/* causeway bench codec: ratios and costs of codecs, and the rate of a link below which a codec pays. Compared with the
 * paper: Ke, Burtscher and Speight, Runtime Compression of MPI Messages (2004). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/codec.h"
#include "apps/cli/cli.h"
#include "dataplane/status.h"

enum { FIELD_BYTES_MAX = 64 << 20, NAME_WIDTH = 9, METHOD_WIDTH = 11, CHUNK_SIZES = 6 };

static const uint32_t chunk_sizes[CHUNK_SIZES] = {700, 1400, 2900, 8900, 32768, 65528};

struct options {
    uint64_t bytes;
    uint64_t chunk_bytes;
    uint64_t rounds;
    const char *field;
    const char *element;
    bool chunks;
    bool json;
};

static int name_width(const struct codec_fields *fields)
{
    size_t width = NAME_WIDTH;
    for (uint32_t i = 0; i < fields->count; i++) {
        width = strlen(fields->fields[i].name) > width ? strlen(fields->fields[i].name) : width;
    }
    return (int)width;
}

static void figures_report(struct app_report *report, const struct codec_field *field, int width, uint32_t method,
                           const struct codec_figures *figures)
{
    char text[32] = "-";
    double break_even_bps = codec_break_even_bps(figures);
    bool gains = break_even_bps > 0;
    if (gains) {
        codec_rate_text(break_even_bps, text, sizeof(text));
    }
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "codec"),
        app_text("field", "field", width, field->name),
        app_text("codec", "codec", METHOD_WIDTH, codec_method_name(method)),
        app_number("ratio", "ratio", 3, 1, figures->ratio),
        app_number("fill_ns", "in ns/byte", 3, 1, figures->fill_ns),
        app_when(figures->expanded > 0, app_number("expand_ns", "out ns/byte", 3, 1, figures->expand_ns)),
        app_number("fill_gbytes_per_s", "in GB/s", 2, 1, 1 / figures->fill_ns),
        app_when(figures->expanded > 0,
                 app_number("expand_gbytes_per_s", "out GB/s", 2, 1, figures->expanded / figures->expand_ns)),
        app_when(figures->packets > 0, app_count("packets", "packets", figures->packets)),
        app_when(figures->packets > 0, app_count("raw_packets", "as they are", figures->raw_packets)),
        app_text(NULL, " pays below", 11, text),
        app_when(gains, app_number("break_even_bps", NULL, 0, 1, break_even_bps)),
    };
    APP_REPORT(report, cells);
}

/* The ratios of a field in chunks of each size. One of enum app_exit. */
static int sizes_run(struct codec_bench *bench, const struct codec_field *field, int width, struct app_report *report)
{
    static struct codec_figures figures[CHUNK_SIZES][CODEC_METHODS];
    const char *culprit;
    for (uint32_t i = 0; i < CHUNK_SIZES; i++) {
        if (!codec_bench_run(bench, field, chunk_sizes[i], 1, figures[i], &culprit)) {
            app_error(culprit, field->name, "the expanded data differs from the original: a bug");
            return APP_EXIT_INTERNAL;
        }
    }
    for (uint32_t i = 0; i < CODEC_STREAM; i++) {
        if (!figures[0][i].is_there) {
            continue;
        }
        bool has_stream = i == CW_CODEC_DFCM;
        const struct app_cell cells[] = {
            app_text("bench", NULL, 0, "codec-chunks"),
            app_text("field", "field", width, field->name),
            app_text("codec", "codec", METHOD_WIDTH, codec_method_name(i)),
            app_number("ratio_700", "700", 3, 1, figures[0][i].ratio),
            app_number("ratio_1400", "1400", 3, 1, figures[1][i].ratio),
            app_number("ratio_2900", "2900", 3, 1, figures[2][i].ratio),
            app_number("ratio_8900", "8900", 3, 1, figures[3][i].ratio),
            app_number("ratio_32768", "32768", 3, 1, figures[4][i].ratio),
            app_number("ratio_65528", "65528", 3, 1, figures[5][i].ratio),
            app_when(has_stream, app_number("ratio_stream", "stream", 3, 1, figures[0][CODEC_STREAM].ratio)),
        };
        APP_REPORT(report, cells);
    }
    return APP_EXIT_SUCCESS;
}

/* Geometric means over the numbers of simulations. */
static void means_report(const struct codec_fields *fields, const struct codec_figures (*figures)[CODEC_METHODS],
                         bool json)
{
    struct app_report report = {.json = json, .form = APP_REPORT_LINE};
    double lorenzo = 0, dfcm = 0, stream = 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i < fields->count; i++) {
        if (fields->fields[i].is_counted) {
            lorenzo += log(figures[i][CW_CODEC_LORENZO].ratio);
            dfcm += log(figures[i][CW_CODEC_DFCM].ratio);
            stream += log(figures[i][CODEC_STREAM].ratio);
            count++;
        }
    }
    if (count == 0) {
        return;
    }
    double share = 1 / (double)count;
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "codec-means"),
        app_text(NULL, NULL, 0, "geometric means of ratios"), /* the beginning of a line for users */
        app_count("fields", "fields", count),
        app_number("lorenzo", "lorenzo", 3, 1, exp(lorenzo * share)),
        app_number("dfcm", "dfcm", 3, 1, exp(dfcm * share)),
        app_number("dfcm_stream", "dfcm stream", 3, 1, exp(stream * share)),
        app_number("lorenzo_to_dfcm_stream", "lorenzo / dfcm stream", 3, 1, exp((lorenzo - stream) * share)),
        app_number("lorenzo_to_dfcm", "lorenzo / dfcm", 3, 1, exp((lorenzo - dfcm) * share)),
    };
    if (!json) {
        putchar('\n');
    }
    size_t first = json ? 0 : 1;
    app_report_cells(&report, cells + first, sizeof(cells) / sizeof(cells[0]) - first);
}

static int fields_measure(struct codec_bench *bench, const struct codec_fields *fields, const struct options *options)
{
    static struct codec_figures figures[CODEC_FIELDS_MAX][CODEC_METHODS];
    struct app_report report = {.json = options->json}, sizes = {.json = options->json};
    int width = name_width(fields);
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct codec_field *field = &fields->fields[i];
        const char *culprit;
        if (!codec_bench_run(bench, field, (uint32_t)options->chunk_bytes, options->rounds, figures[i], &culprit)) {
            app_error(culprit, field->name, "the expanded data differs from the original: a bug");
            return APP_EXIT_INTERNAL;
        }
        for (uint32_t j = 0; j < CODEC_METHODS; j++) {
            if (figures[i][j].is_there) {
                figures_report(&report, field, width, j, &figures[i][j]);
            }
        }
    }
    if (options->chunks && !options->json) {
        printf("\n"
               "ratios in chunks of at most this number of bytes:\n");
    }
    int code = APP_EXIT_SUCCESS;
    for (uint32_t i = 0; i < fields->count && options->chunks && code == APP_EXIT_SUCCESS; i++) {
        code = sizes_run(bench, &fields->fields[i], width, &sizes);
    }
    means_report(fields, figures, options->json);
    return code;
}

static int fields_run(const struct codec_fields *fields, const struct options *options)
{
    uint64_t bytes_max = 0;
    for (uint32_t i = 0; i < fields->count; i++) {
        bytes_max = fields->fields[i].bytes > bytes_max ? fields->fields[i].bytes : bytes_max;
    }
    struct codec_bench *bench = codec_bench_create(bytes_max);
    int code = bench != NULL ? fields_measure(bench, fields, options)
                             : app_error_status(CW_ERROR_MEMORY, "no memory for the fields", NULL);
    codec_bench_destroy(bench);
    return code;
}

/* One of enum app_exit. */
static int fields_gather(struct codec_fields *fields, const struct options *options, int count, char **files)
{
    static const struct {
        const char *name;
        enum cw_element element;
    } elements[] = {
        {"double", CW_ELEMENT_DOUBLE},  {"float", CW_ELEMENT_FLOAT},    {"int2", CW_ELEMENT_INTEGER_2},
        {"int4", CW_ELEMENT_INTEGER_4}, {"int8", CW_ELEMENT_INTEGER_8}, {"bytes", CW_ELEMENT_BYTES},
    };
    const uint32_t known = sizeof(elements) / sizeof(elements[0]);
    uint32_t element = 0;
    while (element < known && strcmp(elements[element].name, options->element) != 0) {
        element++;
    }
    if (element == known) {
        app_error("no such element", options->element, "--element is double, float, int2, int4, int8 or bytes");
        return APP_EXIT_USAGE;
    }
    bool only_files = options->field == NULL && count > 0;
    bool all = options->field == NULL || strcmp(options->field, "all") == 0;
    int status = only_files ? CW_OK : codec_fields_make(fields, all ? NULL : options->field, options->bytes);
    if (status == CW_ERROR_NOT_FOUND) {
        char names[160] = "all, ";
        size_t used = strlen(names);
        codec_fields_names(names + used, sizeof(names) - used);
        app_error("no such field", options->field, names);
        return APP_EXIT_USAGE;
    }
    int code = status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "no memory for the fields", NULL);
    for (int i = 0; i < count && code == APP_EXIT_SUCCESS; i++) {
        code = codec_fields_read(fields, files[i], elements[element].element);
    }
    return code;
}

static const char usage[] =
    "bench codec [OPTION...] [FILE...]\n"
    "\n"
    "Compresses fields of data, and files of raw elements, with each codec, in independent chunks. Prints the ratio\n"
    "(bytes before / bytes sent, packets that carry their bytes as they are included), the cost for a core,\n"
    "and the rate of a link below which the codec shortens messages. All chunks are expanded and compared. \"dfcm "
    "stream\"\n"
    "has one predictor for the whole channel, as cMPI has between two sockets. Geometric means are over fields\n"
    "and files of doubles, except random ones and zeros. Of a file the first 256 MiB count.";

int bench_codec(int argc, char **argv)
{
    static struct codec_fields fields;
    struct options given = {.bytes = 1 << 20, .chunk_bytes = 1400, .rounds = 5, .element = "double"};
    const struct app_option options[] = {
        OPTION_BYTES("bytes", "of each field (1M)", &given.bytes, 4096, FIELD_BYTES_MAX),
        OPTION_TEXT("field", "NAME", "only this one, or all (all; with files: none)", &given.field),
        OPTION_TEXT("element", "double|float|int2|int4|int8|bytes", "of files (double)", &given.element),
        OPTION_BYTES("chunk", "the room of a packet (1400)", &given.chunk_bytes, 128, CW_CHUNK_RAW_MAX),
        OPTION_COUNT("rounds", "codecs in turn; medians are printed (5)", &given.rounds, 1, BENCH_ROUNDS_MAX),
        OPTION_FLAG("chunks", "also ratios by the size of chunks: the cost of their independence", &given.chunks),
        OPTION_JSON(" a line", &given.json),
        {0},
    };
    int code;
    int first = app_options_parse(usage, options, CODEC_FIELDS_MAX, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    code = fields_gather(&fields, &given, argc - first, argv + first);
    code = code == APP_EXIT_SUCCESS ? fields_run(&fields, &given) : code;
    codec_fields_dispose(&fields);
    return code;
}
