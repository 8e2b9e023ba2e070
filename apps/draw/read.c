#include "apps/draw/read.h"

#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "apps/draw/table.h"
#include "dataplane/fabric/link.h"
#include "dataplane/limits.h"

/* ---- statistics ---- */

enum column {
    TIME,
    NAME,
    DIRECTION,
    FRAMES,
    BYTES,
    DROPPED,
    QUEUE_MAX,
    RATE,
    QUEUE_LIMIT,
    COLUMNS,
};

static const char *const columns[COLUMNS] = {
    [TIME] = "time_ns",
    [NAME] = "name",
    [DIRECTION] = "direction",
    [FRAMES] = "delivered_frames",
    [BYTES] = "delivered_bytes",
    [DROPPED] = "queue_frames",
    [QUEUE_MAX] = "queue_max_bytes",
    [RATE] = "rate_bps",
    [QUEUE_LIMIT] = "queue_limit_bytes",
};

/* What is known while a file is read. */
struct reader {
    struct draw_table table;
    struct draw_stats *stats;
    const char *link;
    uint64_t width_ns;
    uint64_t now_ns;    /* of the sample that lines are read of */
    uint64_t before_ns; /* of the one before */
    uint32_t next;      /* samples have their lines in the same order: where to look first */
};

static bool series_is(const struct draw_series *series, const char *name, const char *direction, size_t length,
                      const char *host)
{
    return strcmp(series->name, name) == 0 && strncmp(series->direction, direction, length) == 0 &&
           series->direction[length] == '\0' && strcmp(series->host, host) == 0;
}

static struct draw_series *series_add(struct reader *reader, const char *name, const char *direction, size_t length,
                                      const char *host, int *code)
{
    struct draw_stats *stats = reader->stats;
    if (stats->count == DRAW_SERIES_MAX) {
        app_error("more links than can be drawn", stats->path, "--link NAME draws one of them");
        *code = APP_EXIT_USAGE;
        return NULL;
    }
    struct draw_series *list = realloc(stats->series, (stats->count + 1) * sizeof(*list));
    if (list == NULL) {
        app_error("out of memory", stats->path, NULL);
        *code = APP_EXIT_MACHINE;
        return NULL;
    }
    stats->series = list;
    struct draw_series *series = &list[stats->count++];
    *series = (struct draw_series){.bytes = 0};
    snprintf(series->name, sizeof(series->name), "%s", name);
    snprintf(series->direction, sizeof(series->direction), "%.*s", (int)length, direction);
    snprintf(series->host, sizeof(series->host), "%s", host);
    draw_bins_init(&series->bins, reader->width_ns);
    return series;
}

/* Whose line it is; NULL: nobody's that is asked for, or with an exit code in *code after reporting. */
static struct draw_series *series_of(struct reader *reader, int *code)
{
    const char *name = reader->table.cells[NAME], *direction = reader->table.cells[DIRECTION];
    size_t length = strcspn(direction, "/");
    const char *host = direction[length] == '/' ? direction + length + 1 : "";
    struct draw_stats *stats = reader->stats;
    if (strlen(name) >= DRAW_NAME_BYTES || length >= DRAW_NAME_BYTES || strlen(host) >= DRAW_NAME_BYTES) {
        draw_table_refuse(&reader->table, strlen(name) >= DRAW_NAME_BYTES ? NAME : DIRECTION, "longer than names are");
        *code = APP_EXIT_USAGE;
        return NULL;
    }
    if (reader->link != NULL ? strcmp(name, reader->link) != 0 : memchr(direction, '>', length) == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < stats->count; i++) {
        uint32_t at = (reader->next + i) % stats->count;
        if (series_is(&stats->series[at], name, direction, length, host)) {
            reader->next = at + 1;
            return &stats->series[at];
        }
    }
    return series_add(reader, name, direction, length, host, code);
}

/* Lines of a sample have the same time; it goes on from sample to sample. */
static bool time_take(struct reader *reader)
{
    uint64_t time_ns;
    if (!draw_table_count(&reader->table, TIME, &time_ns)) {
        return false;
    }
    if (time_ns < reader->now_ns) {
        draw_table_refuse(&reader->table, TIME, "before the line above");
        return false;
    }
    if (time_ns > reader->now_ns) {
        reader->before_ns = reader->now_ns;
        reader->now_ns = time_ns;
    }
    return true;
}

static int line_take(struct reader *reader)
{
    int code = APP_EXIT_SUCCESS;
    uint64_t frames, bytes;
    struct draw_bin what = {0};
    if (!time_take(reader)) {
        return APP_EXIT_USAGE;
    }
    struct draw_series *series = series_of(reader, &code);
    if (series == NULL) {
        return code;
    }
    bool right = draw_table_count(&reader->table, FRAMES, &frames) && draw_table_count(&reader->table, BYTES, &bytes) &&
                 draw_table_count(&reader->table, DROPPED, &what.dropped_frames);
    if (right && series->host[0] == '\0') { /* a host has no queue of its own */
        right = draw_table_count(&reader->table, QUEUE_MAX, &what.queue_bytes) &&
                draw_table_count(&reader->table, RATE, &what.rate_bps) &&
                draw_table_count(&reader->table, QUEUE_LIMIT, &what.queue_limit_bytes);
    }
    if (!right) {
        return APP_EXIT_USAGE;
    }
    what.bytes = bytes + frames * CW_ETHERNET_OVERHEAD_BYTES;
    series->bytes += what.bytes;
    series->dropped_frames += what.dropped_frames;
    if (!draw_bins_add(&series->bins, reader->before_ns, reader->now_ns, &what)) {
        app_error("out of memory", reader->stats->path, NULL);
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

/* All bins as wide as the widest. */
static void widths_level(struct draw_stats *stats)
{
    uint64_t widest_ns = 0;
    for (uint32_t i = 0; i < stats->count; i++) {
        uint64_t width_ns = stats->series[i].bins.width_ns;
        widest_ns = width_ns > widest_ns ? width_ns : widest_ns;
    }
    for (uint32_t i = 0; i < stats->count; i++) {
        draw_bins_join(&stats->series[i].bins, 0, (uint32_t)(widest_ns / stats->series[i].bins.width_ns));
    }
}

int draw_stats_read(struct draw_stats *stats, const char *path, const char *link, uint64_t width_ns)
{
    struct reader reader = {.stats = stats, .link = link, .width_ns = width_ns};
    *stats = (struct draw_stats){.path = path};
    int code =
        draw_table_open(&reader.table, path, columns, COLUMNS, "`causeway switch --stats FILE` writes such files");
    while (code == APP_EXIT_SUCCESS && draw_table_next(&reader.table, &code)) {
        code = line_take(&reader);
    }
    bool is_bare = reader.table.number == 1;
    draw_table_close(&reader.table);
    if (code == APP_EXIT_SUCCESS && stats->count == 0) {
        app_error(is_bare        ? "there is nothing behind the first line"
                  : link != NULL ? "no such link or host"
                                 : "there is no link between sites",
                  path,
                  is_bare        ? "`causeway switch --stats-interval 1ms` writes lines as long as it runs"
                  : link != NULL ? "--link wants a name of the column `name`"
                                 : "--link NAME draws another one, by its name in the column `name`");
        code = APP_EXIT_USAGE;
    }
    widths_level(stats);
    return code;
}

void draw_stats_dispose(struct draw_stats *stats)
{
    for (uint32_t i = 0; i < stats->count; i++) {
        draw_bins_dispose(&stats->series[i].bins);
    }
    free(stats->series);
    *stats = (struct draw_stats){.path = NULL};
}

/* ---- times ---- */

enum { TIME_NAME, TIME_PREDICTED, TIME_MEASURED, TIME_COLUMNS };

int draw_times_read(struct draw_times *times, const char *path)
{
    static const char *const names[TIME_COLUMNS] = {"name", "predicted_ns", "measured_ns"};
    struct draw_table table;
    times->count = 0;
    int code = draw_table_open(&table, path, names, TIME_COLUMNS,
                               "it is a table of times: each line has a name and two times in nanoseconds");
    while (code == APP_EXIT_SUCCESS && draw_table_next(&table, &code)) {
        if (times->count == DRAW_TIMES_MAX) {
            app_error("more times than can be drawn", path, "64 are possible");
            code = APP_EXIT_USAGE;
            break;
        }
        struct draw_time *time = &times->list[times->count++];
        snprintf(time->name, sizeof(time->name), "%s", table.cells[TIME_NAME]);
        bool right = draw_table_number(&table, TIME_PREDICTED, &time->predicted_ns) &&
                     draw_table_number(&table, TIME_MEASURED, &time->measured_ns);
        code = right ? APP_EXIT_SUCCESS : APP_EXIT_USAGE;
    }
    draw_table_close(&table);
    if (code == APP_EXIT_SUCCESS && times->count == 0) {
        app_error("there is nothing behind the first line", path, "a line is NAME,PREDICTED,MEASURED in nanoseconds");
        code = APP_EXIT_USAGE;
    }
    return code;
}
