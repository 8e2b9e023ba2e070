/* causeway bench replay: what compression is worth to a program: its trace in virtual time, without and with it. As
 * Tables 3 and 5 of Ke, Burtscher and Speight, Runtime Compression of MPI Messages (2004). */
#include "apps/bench/replay.h"

#include <stdio.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/cli/progress.h"
#include "dataplane/codec/speed.h"

enum { FOLDERS_MAX = 16, RATE_LEAST_BPS = 1000000 };

struct options {
    struct app_list rates;
    uint64_t delay_ns;
    uint64_t seed;
    uint64_t codec_bps; /* 0: as measured */
    struct app_report report;
    struct cw_compression compression;
    int width;     /* of the longest name */
    uint64_t done; /* runs, of all that there are to do */
    uint64_t all;
};

/* The last part of a path: what people call a trace. */
static const char *name_of(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash != NULL && slash[1] != 0 ? slash + 1 : folder;
}

static void line_report(struct options *options, const struct replay *replay, uint64_t rate_bps,
                        const struct replay_result *off, const struct replay_result *packed)
{
    double saved_ns = (double)off->time_ns - (double)packed->time_ns;
    double model_ns = off->model_ns - packed->model_ns;
    bool is_packed = packed->chunk_bytes > 0;
    const struct cw_codec_speed *lorenzo = &options->compression.speeds[CW_CODEC_LORENZO];
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "replay"),
        app_text("trace", "trace", options->width, name_of(replay->folder)),
        app_count("ranks", "ranks", replay->ranks),
        app_scaled("rate_bps", "link Mb/s", 0, 1e-6, rate_bps),
        app_count("delay_ns", NULL, options->delay_ns),
        app_number("lorenzo_fill_ns", NULL, 0, 1, (double)lorenzo->fill_ns),
        app_number("lorenzo_expand_ns", NULL, 0, 1, (double)lorenzo->expand_ns),
        app_count("bytes_most", NULL, replay->bytes_most),
        app_scaled("off_ns", "off s", 4, 1e-9, off->time_ns),
        app_scaled("auto_ns", "auto s", 4, 1e-9, packed->time_ns),
        app_number("speed_up", "speed-up", 3, 1, (double)off->time_ns / (double)packed->time_ns),
        app_count("chunk_raw_bytes", NULL, packed->raw_bytes),
        app_count("chunk_bytes", NULL, packed->chunk_bytes),
        app_when(is_packed,
                 app_number("compression_rate", "rate", 3, 1, (double)packed->raw_bytes / (double)packed->chunk_bytes)),
        app_number("saved_ns", "saved s", 4, 1e-9, saved_ns),
        app_number("inequality_ns", "by (3) s", 4, 1e-9, model_ns),
        app_when(model_ns > 0, app_number("saved_to_inequality", "of it", 2, 1, saved_ns / model_ns)),
    };
    APP_REPORT(&options->report, cells);
}

static int rate_run(struct options *options, const struct replay *replay, uint64_t rate_bps)
{
    struct replay_case of = {.rate_bps = rate_bps, .delay_ns = options->delay_ns, .seed = options->seed};
    struct replay_result off, packed;
    app_progress_step(options->done++, options->all, name_of(replay->folder));
    int code = replay_run(replay, &of, &off);
    of.compression = options->compression;
    app_progress_step(options->done++, options->all, name_of(replay->folder));
    code = code == APP_EXIT_SUCCESS ? replay_run(replay, &of, &packed) : code;
    if (code == APP_EXIT_SUCCESS) {
        line_report(options, replay, rate_bps, &off, &packed);
    }
    return code;
}

static int folder_run(struct options *options, const char *folder)
{
    struct replay replay;
    int code = replay_load(&replay, folder);
    for (size_t i = 0; i < options->rates.count && code == APP_EXIT_SUCCESS; i++) {
        code = rate_run(options, &replay, options->rates.values[i]);
    }
    replay_dispose(&replay);
    return code;
}

/* What codecs cost: as told, or as on this core. */
static int compression_take(struct options *options)
{
    struct cw_compression *compression = &options->compression;
    *compression = (struct cw_compression){.mode = CW_COMPRESSION_AUTO};
    if (options->codec_bps == 0) {
        int status = cw_codec_measure(compression->speeds);
        return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "no memory to measure codecs", NULL);
    }
    float byte_ns = 8e9f / (float)options->codec_bps;
    for (enum cw_codec codec = CW_CODEC_LORENZO; codec < CW_CODECS; codec++) {
        compression->speeds[codec] = (struct cw_codec_speed){.fill_ns = byte_ns, .expand_ns = byte_ns};
    }
    return APP_EXIT_SUCCESS;
}

static bool rates_check(const struct app_list *rates)
{
    for (size_t i = 0; i < rates->count; i++) {
        if (rates->values[i] < RATE_LEAST_BPS || rates->values[i] > CW_RATE_MAX_BPS) {
            char text[32];
            snprintf(text, sizeof(text), "%llu b/s", (unsigned long long)rates->values[i]);
            app_error("no link has such a rate here", text, "--rate takes 1Mbps to 10Tbps, like 100Mbps,1Gbps");
            return false;
        }
    }
    return true;
}

static const char usage[] =
    "bench replay [OPTION...] FOLDER...\n\n"
    "What compression in flight is worth to a program, in virtual time: each FOLDER has the traces of a run, as\n"
    "CAUSEWAY_TRACE=FOLDER and build/apps/kernels/trace.so, loaded by LD_PRELOAD, record them. Hosts around a switch\n"
    "compute for the times that were recorded, and send the bytes that were recorded, which are verified: without\n"
    "compression, and with what --compression auto chooses. The dataplane of a rank has a core of its own, on which\n"
    "codecs take their time; the program computes on another one. \"by (3)\": what is saved if each message takes\n"
    "what inequality (3) of Ke et al. (2004) has for it; \"of it\": what was saved, as a share of that.";

int bench_replay(int argc, char **argv)
{
    struct options options = {
        .rates = {.values = {100000000, 1000000000}, .count = 2},
        .delay_ns = 20000,
        .seed = 1,
    };
    const struct app_option table[] = {
        OPTION_RATES("rate", "of the hosts' links (100Mbps,1Gbps)", &options.rates),
        OPTION_TIME("delay", "one way, end to end (20us)", &options.delay_ns, 0, 10000000000ull),
        OPTION_RATE("codec-rate", "of each codec, at each end, instead of what is measured on this core",
                    &options.codec_bps, 1000000),
        OPTION_COUNT("seed", "of everything random (1)", &options.seed, 0, 0),
        OPTION_JSON(" a line", &options.report.json),
        {0},
    };
    int code;
    int first = app_options_parse(usage, table, FOLDERS_MAX, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    if (first == argc) {
        app_error("which traces?", NULL, "give the FOLDER that CAUSEWAY_TRACE named");
        return APP_EXIT_USAGE;
    }
    if (!rates_check(&options.rates)) {
        return APP_EXIT_USAGE;
    }
    code = compression_take(&options);
    options.all = 2 * options.rates.count * (uint64_t)(argc - first);
    for (int i = first; i < argc; i++) {
        int width = (int)strlen(name_of(argv[i]));
        options.width = width > options.width ? width : options.width;
    }
    for (int i = first; i < argc && code == APP_EXIT_SUCCESS; i++) {
        code = folder_run(&options, argv[i]);
    }
    return code;
}
