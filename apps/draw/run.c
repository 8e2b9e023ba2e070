#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "apps/draw/draw.h"

/* ---- which link, which hosts ---- */

static struct draw_series *series_find(const struct draw_run *run, const char *name, const char *direction)
{
    for (uint32_t i = 0; i < run->stats.count; i++) {
        struct draw_series *series = &run->stats.series[i];
        if (series->host[0] == '\0' && strcmp(series->name, name) == 0 && strcmp(series->direction, direction) == 0) {
            return series;
        }
    }
    return NULL;
}

/* What all runs have of one direction of a link. */
static void sums_find(const struct draw_picture *picture, const struct draw_series *of, uint64_t *dropped_frames,
                      uint64_t *bytes)
{
    *dropped_frames = 0;
    *bytes = 0;
    for (uint32_t number = 0; number < picture->run_count; number++) {
        const struct draw_series *series = series_find(&picture->runs[number], of->name, of->direction);
        *dropped_frames += series != NULL ? series->dropped_frames : 0;
        *bytes += series != NULL ? series->bytes : 0;
    }
}

static struct draw_series *total_find(const struct draw_picture *picture, const struct draw_run *run,
                                      const char *direction)
{
    struct draw_series *best = NULL;
    uint64_t best_dropped = 0, best_bytes = 0;
    for (uint32_t i = 0; i < run->stats.count; i++) {
        struct draw_series *series = &run->stats.series[i];
        uint64_t dropped, bytes;
        if (series->host[0] != '\0' || (direction != NULL && strcmp(direction, series->direction) != 0)) {
            continue;
        }
        sums_find(picture, series, &dropped, &bytes);
        if (best == NULL || dropped > best_dropped || (dropped == best_dropped && bytes > best_bytes)) {
            best = series;
            best_dropped = dropped;
            best_bytes = bytes;
        }
    }
    return best;
}

/* All that is in `from` into `into`, which has bins of the same length. */
static bool series_merge(struct draw_series *into, const struct draw_series *from)
{
    for (uint32_t i = 0; i < from->bins.count; i++) {
        uint64_t begin_ns = i * from->bins.width_ns;
        if (!draw_bins_add(&into->bins, begin_ns, begin_ns + from->bins.width_ns, &from->bins.list[i])) {
            return false;
        }
    }
    return true; /* into->bytes stays: ranks go by it */
}

/* How many of the link's hosts have sent more; of two that have sent as much the first one is before the other. */
static uint32_t rank_of(const struct draw_run *run, const struct draw_series *own)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < run->stats.count; i++) {
        const struct draw_series *other = &run->stats.series[i];
        bool is_beside = other != own && other->host[0] != '\0' && strcmp(other->name, own->name) == 0 &&
                         strcmp(other->direction, own->direction) == 0;
        before += is_beside && (other->bytes > own->bytes || (other->bytes == own->bytes && other < own));
    }
    return before;
}

/* The hosts in the order of their names in the file; those that have sent least are one if there are too many. False:
 * no memory. */
static bool streams_find(struct draw_run *run)
{
    struct draw_series *others = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->stats.count; i++) {
        const struct draw_series *series = &run->stats.series[i];
        count += series->host[0] != '\0' && strcmp(series->name, run->total->name) == 0 &&
                 strcmp(series->direction, run->total->direction) == 0;
    }
    for (uint32_t i = 0; i < run->stats.count; i++) {
        struct draw_series *series = &run->stats.series[i];
        if (series->host[0] == '\0' || strcmp(series->name, run->total->name) != 0 ||
            strcmp(series->direction, run->total->direction) != 0) {
            continue;
        }
        if (count <= DRAW_STREAMS_MAX || rank_of(run, series) + 1 < DRAW_STREAMS_MAX) {
            run->streams[run->stream_count++] = series;
        } else if (others == NULL) {
            others = series;
        } else if (!series_merge(others, series)) {
            return false;
        }
    }
    if (others != NULL) {
        snprintf(others->host, sizeof(others->host), "%u others", count + 1 - DRAW_STREAMS_MAX);
        run->streams[run->stream_count++] = others;
    }
    return true;
}

static int host_compare(const void *a, const void *b)
{
    const struct draw_series *const *left = a, *const *right = b;
    return strverscmp((*left)->host, (*right)->host);
}

static int run_choose(const struct draw_picture *picture, struct draw_run *run, const char *direction)
{
    run->total = total_find(picture, run, direction);
    if (run->total == NULL) {
        app_error("no such direction", direction,
                  "--direction wants a text of the column `direction`, as delft>leiden");
        return APP_EXIT_USAGE;
    }
    if (run->total->bytes == 0) {
        char what[2 * DRAW_NAME_BYTES + 64];
        snprintf(what, sizeof(what), "nothing has come over %.200s, %.200s", run->total->name, run->total->direction);
        app_error(what, run->stats.path, "--link NAME draws another link");
        return APP_EXIT_USAGE;
    }
    if (!streams_find(run)) {
        app_error("out of memory", run->stats.path, NULL);
        return APP_EXIT_MACHINE;
    }
    struct draw_bins *parts[DRAW_STREAMS_MAX];
    for (uint32_t i = 0; i < run->stream_count; i++) {
        parts[i] = &run->streams[i]->bins;
    }
    draw_bins_spread(&run->total->bins, parts, run->stream_count);
    bool has_others = run->stream_count > 0 && strchr(run->streams[run->stream_count - 1]->host, ' ') != NULL;
    qsort(run->streams, run->stream_count - has_others, sizeof(run->streams[0]), host_compare);
    return APP_EXIT_SUCCESS;
}

int draw_runs_choose(struct draw_picture *picture, const char *direction)
{
    int code = APP_EXIT_SUCCESS;
    for (uint32_t number = 0; number < picture->run_count && code == APP_EXIT_SUCCESS; number++) {
        code = run_choose(picture, &picture->runs[number], direction);
    }
    return code;
}

/* ---- which time ---- */

/* Without the idle time at both ends, but for a bin. */
static void idle_trim(struct draw_run *run)
{
    const struct draw_bins *bins = &run->total->bins;
    uint64_t fullest = 0;
    for (uint32_t i = 0; i < bins->count; i++) {
        fullest = bins->list[i].bytes > fullest ? bins->list[i].bytes : fullest;
    }
    while (bins->list[run->first].bytes < (fullest + 99) / 100) {
        run->first++;
    }
    while (bins->list[run->end - 1].bytes < (fullest + 99) / 100) {
        run->end--;
    }
    run->first -= run->first > 0;
    run->end += run->end < bins->count;
}

int draw_run_trim(struct draw_run *run, uint64_t from_ns, uint64_t to_ns)
{
    const struct draw_bins *bins = &run->total->bins;
    uint64_t end = to_ns > 0 ? (to_ns + bins->width_ns - 1) / bins->width_ns : bins->count;
    run->end = end < bins->count ? (uint32_t)end : bins->count;
    run->first = from_ns / bins->width_ns < bins->count ? (uint32_t)(from_ns / bins->width_ns) : bins->count;
    if (run->first >= run->end) {
        app_error("there is nothing in that time", run->stats.path, "--from and --to are times of the column time_ns");
        return APP_EXIT_USAGE;
    }
    if (from_ns == 0 && to_ns == 0) {
        idle_trim(run);
    }
    for (uint32_t i = run->first; i < run->end; i++) {
        const struct draw_bin *bin = &bins->list[i];
        run->queue_max_bytes = bin->queue_bytes > run->queue_max_bytes ? bin->queue_bytes : run->queue_max_bytes;
        run->dropped_frames += bin->dropped_frames;
    }
    run->begin_ns = run->first * bins->width_ns;
    return APP_EXIT_SUCCESS;
}

static void series_join(struct draw_series *series, uint32_t first, uint32_t end, uint32_t factor)
{
    struct draw_bins *bins = &series->bins;
    bins->count = bins->count < end ? bins->count : end;
    draw_bins_join(bins, first < bins->count ? first : bins->count, factor);
}

void draw_run_join(struct draw_run *run, uint32_t factor)
{
    series_join(run->total, run->first, run->end, factor);
    for (uint32_t i = 0; i < run->stream_count; i++) {
        series_join(run->streams[i], run->first, run->end, factor);
    }
    run->end = run->total->bins.count;
    run->first = 0;
}
