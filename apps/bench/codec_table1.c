/* Table 1 of Ke, Burtscher and Speight (2004) for this processor. The bytes that a rate R saves are worth (R-1)/R of
 * what the link takes for all: (4) leaves that much to compress and to expand. Beside it what codecs take, and the
 * latencies of a message by (1) and (2), without l0 + l1 S, which both have, and without what overlaps. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/bench/codec.h"
#include "apps/cli/cli.h"
#include "dataplane/base/clock.h"
#include "dataplane/codec/speed.h"
#include "dataplane/status.h"

enum { RATES = 4, LINKS = 3, TICKS_NS = 50000000 };

static const double rates[RATES] = {1.2, 1.5, 2.0, 4.0};

static const struct {
    const char *name;
    double bps;
} links[LINKS] = {{"100 Mb/s", 1e8}, {"1 Gb/s", 1e9}, {"10 Gb/s", 1e10}};

/* Ticks of the time stamp counter in a nanosecond; 0: there is none. */
static double ticks_measure(void)
{
    uint64_t begin_ns = cw_clock_ns(), begin = bench_ticks(), now_ns;
    do {
        now_ns = cw_clock_ns();
    } while (now_ns - begin_ns < TICKS_NS);
    return (double)(bench_ticks() - begin) / (double)(now_ns - begin_ns);
}

static void left_report(struct app_report *report, const char *of, const char *link, const double cycles[RATES])
{
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "codec-table1"),
        app_text("of", "cycles/byte that (4) leaves", 29, of),
        app_text("link", "link", 8, link),
        app_number("cycles_1_2", "rate 1.2", 2, 1, cycles[0]),
        app_number("cycles_1_5", "1.5", 2, 1, cycles[1]),
        app_number("cycles_2_0", "2.0", 2, 1, cycles[2]),
        app_number("cycles_4_0", "4.0", 2, 1, cycles[3]),
    };
    APP_REPORT(report, cells);
}

static void left_all(double byte_ticks, bool json)
{
    static const double printed[RATES] = {4, 8, 12, 18};
    struct app_report report = {.json = json};
    double cycles[RATES];
    left_report(&report, "the paper, printed (3 GHz)", "1 Gb/s", printed);
    for (uint32_t i = 0; i < RATES; i++) {
        cycles[i] = 3 * 8 * (rates[i] - 1) / rates[i];
    }
    left_report(&report, "the paper, by (4) (3 GHz)", "1 Gb/s", cycles);
    char here[32];
    snprintf(here, sizeof(here), "here (%.2f GHz)", byte_ticks);
    for (uint32_t link = 0; link < LINKS && byte_ticks > 0; link++) {
        for (uint32_t i = 0; i < RATES; i++) {
            cycles[i] = byte_ticks * 8e9 / links[link].bps * (rates[i] - 1) / rates[i];
        }
        left_report(&report, here, links[link].name, cycles);
    }
}

/* The least rate with which a codec that takes so long for a byte is worth it; 0: none is. */
static double least_rate(double byte_ns, double bps)
{
    double share = byte_ns * bps / 8e9;
    return share < 1 ? 1 / (1 - share) : 0;
}

static void taken_all(const struct cw_codec_speed *speeds, double byte_ticks, bool json)
{
    struct app_report report = {.json = json};
    for (enum cw_codec codec = CW_CODEC_LORENZO; codec < CW_CODECS; codec++) {
        const struct cw_codec_speed *speed = &speeds[codec];
        double fill_ns = (double)speed->fill_ns, expand_ns = (double)speed->expand_ns;
        double both_ns = fill_ns + expand_ns;
        const double least[LINKS] = {least_rate(both_ns, links[0].bps), least_rate(both_ns, links[1].bps),
                                     least_rate(both_ns, links[2].bps)};
        const struct app_cell cells[] = {
            app_text("bench", NULL, 0, "codec-speed"),
            app_text("codec", "what codecs take", 16, cw_codec_name(codec)),
            app_number("fill_ns", "in ns/byte", 3, 1, fill_ns),
            app_number("expand_ns", "out ns/byte", 3, 1, expand_ns),
            app_number("fixed_ns", "ns/chunk", 0, 1, (double)speed->fixed_ns),
            app_when(byte_ticks > 0, app_number("fill_cycles", "in cycles/byte", 2, 1, fill_ns * byte_ticks)),
            app_when(byte_ticks > 0, app_number("expand_cycles", "out cycles/byte", 2, 1, expand_ns * byte_ticks)),
            app_when(byte_ticks > 0, app_number("cycles", "both", 2, 1, both_ns * byte_ticks)),
            app_when(least[0] > 0, app_number("least_rate_100mbps", "pays from R at 100 Mb/s", 3, 1, least[0])),
            app_when(least[1] > 0, app_number("least_rate_1gbps", "at 1 Gb/s", 3, 1, least[1])),
            app_when(least[2] > 0, app_number("least_rate_10gbps", "at 10 Gb/s", 3, 1, least[2])),
        };
        APP_REPORT(&report, cells);
    }
}

static void latency_report(struct app_report *report, enum cw_codec codec, uint32_t link, uint64_t message_bytes,
                           const struct codec_figures *figures, double fixed_ns)
{
    double size = (double)message_bytes, byte_ns = 8e9 / links[link].bps;
    double own_ns = figures->fill_ns + figures->expand_ns;
    double plain_ns = size * byte_ns;
    double packed_ns = fixed_ns + own_ns * size + size / figures->rate * byte_ns;
    double saved_ns = (byte_ns * (figures->rate - 1) / figures->rate - own_ns) * size - fixed_ns;
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "codec-latency"),
        app_text("codec", "latencies", 9, cw_codec_name(codec)),
        app_text("link", "link", 8, links[link].name),
        app_count("size_bytes", "bytes", message_bytes),
        app_number("rate", "rate", 3, 1, figures->rate),
        app_number("plain_ns", "(1) us", 1, 1e-3, plain_ns),
        app_number("packed_ns", "(2) us", 1, 1e-3, packed_ns),
        app_number("saved_ns", "(3) us", 1, 1e-3, saved_ns),
        app_text(NULL, "", 10, saved_ns > 0 ? "compressed" : "plain"),
        app_flag("gains", NULL, saved_ns > 0),
    };
    APP_REPORT(report, cells);
}

int codec_table1(uint32_t chunk_bytes, uint64_t rounds, uint64_t field_bytes, uint64_t message_bytes, bool json)
{
    struct cw_codec_speed speeds[CW_CODECS];
    struct codec_figures figures[CODEC_METHODS];
    struct codec_fields fields = {.count = 0};
    struct app_report report = {.json = json};
    const char *culprit = NULL;
    int status = cw_codec_measure(speeds);
    status = status == CW_OK ? codec_fields_make(&fields, "noisy", field_bytes) : status;
    struct codec_bench *bench = status == CW_OK ? codec_bench_create(field_bytes) : NULL;
    bool good = bench != NULL && codec_bench_run(bench, &fields.fields[0], chunk_bytes, rounds, figures, &culprit);
    codec_bench_destroy(bench);
    codec_fields_dispose(&fields);
    if (!good) {
        return culprit != NULL ? app_error_status(CW_ERROR_SYSTEM, "what was expanded differs: a bug", culprit)
                               : app_error_status(CW_ERROR_MEMORY, "no memory for the field", NULL);
    }
    const char *between = json ? "" : "\n";
    double byte_ticks = ticks_measure();
    left_all(byte_ticks, json);
    fputs(between, stdout);
    taken_all(speeds, byte_ticks, json);
    fputs(between, stdout);
    for (enum cw_codec codec = CW_CODEC_LORENZO; codec < CW_CODECS; codec++) {
        for (uint32_t link = 0; link < LINKS && figures[codec].is_there; link++) {
            latency_report(&report, codec, link, message_bytes, &figures[codec], (double)speeds[codec].fixed_ns);
        }
    }
    return APP_EXIT_SUCCESS;
}
