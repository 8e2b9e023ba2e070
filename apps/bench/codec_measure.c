/* Measuring codecs: a field is cut into chunks as flows cut the data of puts (dataplane/compress/), each chunk for a
 * packet of its own, and the expanded data is compared with it. Unlike in flows, a codec that fails is tried again with
 * the next packet, and stretches of one value are not RUN's: each codec is measured alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/codec.h"
#include "dataplane/base/clock.h"
#include "dataplane/codec/dfcm.h"

enum { PLAN_BYTES = 1 << 20, PLAN_BYTES_MIN = 32 << 10 }; /* from one plan to the next, as compress/choice.c has it */

static const double plan_worn = 0.85; /* of its ratio: another plan is made, as in flows */

/* A packet. */
struct piece {
    struct cw_codec_plan plan; /* CW_CODEC_NONE: its bytes go as they are */
    uint32_t bytes;
    uint32_t taken;
};

struct codec_bench {
    struct cw_codec_scratch *scratch;
    struct piece *pieces;
    uint64_t piece_count;
    uint8_t *chunks; /* one behind the other; of a stream all */
    uint8_t *back;
};

/* The cost of one round. */
struct pass {
    uint64_t sent_bytes;
    uint64_t expanded_bytes;
    uint64_t raw_packets;
    double fill_ns;
    double expand_ns;
};

void codec_bench_destroy(struct codec_bench *bench)
{
    if (bench != NULL) {
        cw_codec_scratch_destroy(bench->scratch);
        free(bench->pieces);
        free(bench->chunks);
        free(bench->back);
        free(bench);
    }
}

struct codec_bench *codec_bench_create(uint64_t bytes_max)
{
    struct codec_bench *bench = calloc(1, sizeof(*bench));
    if (bench != NULL) {
        uint64_t stream_bytes = cw_dfcm_bound(bytes_max / sizeof(double));
        bench->scratch = cw_codec_scratch_create();
        bench->pieces = calloc(bytes_max / CW_CHUNK_RAW_MIN + 2, sizeof(*bench->pieces));
        bench->chunks = malloc((stream_bytes > bytes_max ? stream_bytes : bytes_max) + CW_CHUNK_MAX);
        bench->back = malloc(bytes_max + 1);
        if (bench->scratch == NULL || bench->pieces == NULL || bench->chunks == NULL || bench->back == NULL) {
            codec_bench_destroy(bench);
            return NULL;
        }
    }
    return bench;
}

/* State from earlier data: the method for the next chunk, and its likely size. */
struct course {
    struct cw_codec_plan plan;
    uint64_t planned_at;
    uint32_t likely;
    double ratio; /* smoothed; 0: not known */
    double plan_ratio;
};

/* Makes a new plan if the plan is old, or the ratio is no longer that of the plan. */
static void course_plan(struct course *course, struct codec_bench *bench, const struct codec_field *field,
                        enum cw_codec codec, uint64_t at)
{
    bool is_first = course->plan.codec == CW_CODEC_NONE;
    uint64_t bytes = at - course->planned_at;
    bool is_worn = bytes >= PLAN_BYTES_MIN && course->ratio < plan_worn * course->plan_ratio;
    if (is_first || bytes >= PLAN_BYTES || is_worn) {
        uint64_t left = field->bytes - at;
        course->plan = cw_codec_plan(bench->scratch, codec, field->element, field->data + at,
                                     left < CW_CODEC_SAMPLE ? (uint32_t)left : CW_CODEC_SAMPLE);
        course->planned_at = at;
        course->plan_ratio = course->ratio;
    }
}

static void course_chunk(struct course *course, uint32_t taken, uint32_t bytes, uint32_t chunk_bytes)
{
    double ratio = (double)taken / bytes;
    bool is_first = course->ratio <= 0;
    course->ratio = is_first ? ratio : course->ratio + (ratio - course->ratio) / 8;
    course->plan_ratio = is_first ? ratio : course->plan_ratio;
    course->likely = (uint32_t)((uint64_t)taken * 97 * chunk_bytes / 100 / bytes);
}

/* Makes all packets of a field; uncompressed data is not copied. */
static void fill(struct codec_bench *bench, const struct codec_field *field, enum cw_codec codec, uint32_t chunk_bytes,
                 struct pass *pass)
{
    struct course course = {.plan = {.codec = CW_CODEC_NONE}};
    uint64_t at = 0;
    uint8_t *to = bench->chunks;
    bench->piece_count = 0;
    while (at < field->bytes) {
        uint64_t left = field->bytes - at;
        uint32_t available = left < CW_CHUNK_RAW_MAX ? (uint32_t)left : CW_CHUNK_RAW_MAX;
        course_plan(&course, bench, field, codec, at);
        uint32_t taken = course.likely;
        uint32_t bytes =
            cw_codec_fill(bench->scratch, course.plan, field->data + at, available, to, chunk_bytes, &taken);
        struct piece *piece = &bench->pieces[bench->piece_count++];
        if (bytes == 0) {
            taken = available < chunk_bytes ? available : chunk_bytes & ~7u; /* whole elements */
            *piece = (struct piece){.bytes = taken, .taken = taken};
            pass->raw_packets++;
            pass->sent_bytes += taken;
            course.likely = 0;
        } else {
            *piece = (struct piece){.plan = course.plan, .bytes = bytes, .taken = taken};
            course_chunk(&course, taken, bytes, chunk_bytes);
            to += bytes;
            pass->sent_bytes += bytes;
        }
        at += taken;
    }
}

/* Expands all chunks to where they belong. */
static bool expand(struct codec_bench *bench, struct pass *pass)
{
    const uint8_t *from = bench->chunks;
    uint64_t at = 0;
    bool good = true;
    for (uint64_t i = 0; i < bench->piece_count && good; i++) {
        const struct piece *piece = &bench->pieces[i];
        if (piece->plan.codec != CW_CODEC_NONE) {
            good = cw_codec_expand(bench->scratch, piece->plan, from, piece->bytes, bench->back + at, piece->taken);
            from += piece->bytes;
            pass->expanded_bytes += piece->taken;
        }
        at += piece->taken;
    }
    return good;
}

static bool is_same(const struct codec_bench *bench, const struct codec_field *field)
{
    uint64_t at = 0;
    bool same = true;
    for (uint64_t i = 0; i < bench->piece_count && same; i++) {
        const struct piece *piece = &bench->pieces[i];
        same = piece->plan.codec == CW_CODEC_NONE || memcmp(bench->back + at, field->data + at, piece->taken) == 0;
        at += piece->taken;
    }
    return same && at == field->bytes;
}

static bool chunks_pass(struct codec_bench *bench, const struct codec_field *field, enum cw_codec codec,
                        uint32_t chunk_bytes, struct pass *pass)
{
    memset(bench->back, 0xa5, field->bytes);
    uint64_t begin_ns = cw_clock_ns();
    fill(bench, field, codec, chunk_bytes, pass);
    uint64_t filled_ns = cw_clock_ns();
    bool good = expand(bench, pass);
    pass->expand_ns = (double)(cw_clock_ns() - filled_ns);
    pass->fill_ns = (double)(filled_ns - begin_ns);
    return good && is_same(bench, field);
}

/* A broken number at the end goes as it is. */
static bool stream_pass(struct codec_bench *bench, const struct codec_field *field, struct pass *pass)
{
    size_t count = field->bytes / sizeof(double);
    struct cw_dfcm *in = cw_dfcm_create(), *out = cw_dfcm_create();
    bool good = in != NULL && out != NULL;
    if (good) {
        memset(bench->back, 0xa5, field->bytes);
        uint64_t begin_ns = cw_clock_ns();
        size_t bytes = cw_dfcm_compress(in, field->data, count, bench->chunks);
        uint64_t filled_ns = cw_clock_ns();
        good = cw_dfcm_expand(out, bench->chunks, bytes, count, bench->back);
        pass->expand_ns = (double)(cw_clock_ns() - filled_ns);
        pass->fill_ns = (double)(filled_ns - begin_ns);
        pass->expanded_bytes = count * sizeof(double);
        pass->sent_bytes = bytes + field->bytes % sizeof(double);
        good = good && memcmp(bench->back, field->data, count * sizeof(double)) == 0;
    }
    bench->piece_count = 0;
    cw_dfcm_destroy(in);
    cw_dfcm_destroy(out);
    return good;
}

const char *codec_method_name(uint32_t method)
{
    return method == CODEC_STREAM ? "dfcm stream" : cw_codec_name((enum cw_codec)method);
}

static bool accepts(uint32_t method, enum cw_element element)
{
    return method == CODEC_STREAM ? element == CW_ELEMENT_DOUBLE : cw_codec_accepts((enum cw_codec)method, element);
}

bool codec_bench_run(struct codec_bench *bench, const struct codec_field *field, uint32_t chunk_bytes, uint64_t rounds,
                     struct codec_figures figures[CODEC_METHODS], const char **culprit)
{
    struct bench_series fill_ns[CODEC_METHODS] = {{.count = 0}}, expand_ns[CODEC_METHODS] = {{.count = 0}};
    double field_bytes = (double)field->bytes;
    memset(figures, 0, CODEC_METHODS * sizeof(*figures));
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < CODEC_METHODS; i++) {
            if (!accepts(i, field->element)) {
                continue;
            }
            struct pass pass = {.sent_bytes = 0};
            bool good = i == CODEC_STREAM ? stream_pass(bench, field, &pass)
                                          : chunks_pass(bench, field, (enum cw_codec)i, chunk_bytes, &pass);
            if (!good) {
                *culprit = codec_method_name(i);
                return false;
            }
            bench_series_add(&fill_ns[i], pass.fill_ns / field_bytes);
            bench_series_add(&expand_ns[i], pass.expand_ns / field_bytes);
            figures[i] = (struct codec_figures){
                .is_there = true,
                .ratio = field_bytes / (double)pass.sent_bytes,
                .expanded = (double)pass.expanded_bytes / field_bytes,
                .packets = bench->piece_count,
                .raw_packets = pass.raw_packets,
            };
        }
    }
    for (uint32_t i = 0; i < CODEC_METHODS; i++) {
        figures[i].fill_ns = bench_series_median(fill_ns[i]);
        figures[i].expand_ns = bench_series_median(expand_ns[i]);
    }
    return true;
}

double codec_break_even_bps(const struct codec_figures *figures)
{
    double byte_ns = figures->fill_ns + figures->expand_ns;
    return figures->ratio > 1 && byte_ns > 0 ? 8e9 * (figures->ratio - 1) / figures->ratio / byte_ns : 0;
}

void codec_rate_text(double rate_bps, char *text, size_t size)
{
    if (rate_bps < 1e9) {
        snprintf(text, size, "%.0f Mb/s", rate_bps / 1e6);
    } else {
        snprintf(text, size, "%.2f Gb/s", rate_bps / 1e9);
    }
}
