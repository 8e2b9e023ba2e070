#include "apps/switch/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/cli/cli.h"
#include "apps/links/rows.h"
#include "control/topology/topology.h"

enum {
    RING_BYTES = 16 << 20,
    RING_SAMPLES_MIN = 4,
    BUFFER_BYTES = 1 << 18,
    LOOK_NS = 5000000, /* between two looks of the writer */
};

enum { STREAM_COUNTS = LINKS_DOWN }; /* the first ones are counted by host, too */

struct stream_row {
    uint64_t fields[STREAM_COUNTS];
};

struct sample {
    uint64_t time_ns;
    struct links_row rows[]; /* behind them the rows of streams */
};

struct switch_stats {
    const char *path;
    const struct switch_line *lines; /* names and directions only, which do not change */
    uint32_t line_count;
    const struct switch_streams *streams; /* the writer: lines and hosts only */
    FILE *file;
    char *buffer;
    struct links_row *before; /* the writer's: the last one written of each line */
    struct stream_row *streams_before;
    uint8_t *ring; /* ring_count samples */
    size_t sample_bytes;
    uint64_t ring_count;
    _Atomic uint64_t taken;   /* samples; released by the forwarding thread, acquired by the writer */
    _Atomic uint64_t written; /* released by the writer, acquired by the forwarding thread */
    _Atomic bool is_over;     /* likewise as `taken` */
    bool is_running;
    pthread_t writer;
};

static struct sample *sample_at(const struct switch_stats *stats, uint64_t number)
{
    return (struct sample *)(void *)(stats->ring + number % stats->ring_count * stats->sample_bytes);
}

static struct stream_row *stream_rows(const struct switch_stats *stats, struct sample *sample)
{
    return (struct stream_row *)(void *)(sample->rows + stats->line_count);
}

/* ---- the forwarding thread ---- */

static void streams_sample(const struct switch_stats *stats, struct stream_row *rows)
{
    for (uint32_t i = 0; i < stats->streams->count; i++) {
        const struct switch_stream *stream = &stats->streams->list[i];
        rows[i] = (struct stream_row){{
            [LINKS_OFFERED] = stream->offered_frames,
            [LINKS_OFFERED_BYTES] = stream->offered_bytes,
            [LINKS_DELIVERED] = stream->delivered_frames,
            [LINKS_DELIVERED_BYTES] = stream->delivered_bytes,
            [LINKS_LOST] = stream->lost_frames,
            [LINKS_QUEUE] = stream->queue_frames,
        }};
    }
}

void switch_stats_sample(struct switch_stats *stats, struct switch_line *lines, uint64_t elapsed_ns, uint64_t now_ns)
{
    uint64_t taken = atomic_load_explicit(&stats->taken, memory_order_relaxed);
    /* acquire: pairs with the release in stats_write: the slot has been read */
    if (taken - atomic_load_explicit(&stats->written, memory_order_acquire) == stats->ring_count) {
        return;
    }
    struct sample *sample = sample_at(stats, taken);
    sample->time_ns = elapsed_ns;
    for (uint32_t i = 0; i < stats->line_count; i++) {
        struct switch_line *line = &lines[i];
        struct links_row *row = &sample->rows[i];
        *row = links_row_read(&line->link, now_ns);
        row->fields[LINKS_OFFERED] += line->dropped_oversize;
        row->fields[LINKS_POOL] = line->dropped_pool;
        row->fields[LINKS_OVERSIZE] = line->dropped_oversize;
        row->fields[LINKS_PORT] = line->dropped_port;
    }
    streams_sample(stats, stream_rows(stats, sample));
    atomic_store_explicit(&stats->taken, taken + 1, memory_order_release); /* pairs with the acquire in stats_write */
}

/* ---- the writer ---- */

static void stream_write(const struct switch_stats *stats, uint32_t index, uint64_t time_ns,
                         const struct stream_row *row)
{
    const struct switch_stream *stream = &stats->streams->list[index];
    const struct switch_line *line = stream->line;
    struct stream_row *before = &stats->streams_before[index];
    char text[(STREAM_COUNTS + 1) * (LINKS_DIGITS + 1)];
    char *end = text;
    if (memcmp(row, before, sizeof(*row)) == 0) {
        return;
    }
    for (int field = 0; field < STREAM_COUNTS; field++) {
        *end++ = ',';
        end = links_number_write(end, row->fields[field] - before->fields[field]);
    }
    fprintf(stats->file, "%" PRIu64 ",%s,%s/%s%.*s,,,,,,,,\n", time_ns, line->name, line->direction, stream->host,
            (int)(end - text), text);
    *before = *row;
}

/* Writes what there is. */
static void stats_write(struct switch_stats *stats)
{
    uint64_t written = atomic_load_explicit(&stats->written, memory_order_relaxed);
    /* acquire: pairs with the release in switch_stats_sample */
    while (written < atomic_load_explicit(&stats->taken, memory_order_acquire)) {
        struct sample *sample = sample_at(stats, written);
        for (uint32_t i = 0; i < stats->line_count; i++) {
            links_row_write(stats->file, sample->time_ns, stats->lines[i].name, stats->lines[i].direction,
                            &sample->rows[i], &stats->before[i]);
        }
        for (uint32_t i = 0; i < stats->streams->count; i++) {
            stream_write(stats, i, sample->time_ns, &stream_rows(stats, sample)[i]);
        }
        written++;
        atomic_store_explicit(&stats->written, written,
                              memory_order_release); /* pairs with switch_stats_sample's acquire */
    }
}

static void *writer_run(void *context)
{
    struct switch_stats *stats = context;
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    while (!atomic_load_explicit(&stats->is_over, memory_order_acquire)) {
        stats_write(stats);
        nanosleep(&pause, NULL);
    }
    stats_write(stats);
    return NULL;
}

/* ---- beginning and end ---- */

static void stats_free(struct switch_stats *stats)
{
    free(stats->buffer);
    free(stats->before);
    free(stats->streams_before);
    free(stats->ring);
    free(stats);
}

int switch_stats_open(const char *path, const struct switch_line *lines, uint32_t line_count,
                      const struct switch_streams *streams, struct switch_stats **stats_out)
{
    struct switch_stats *stats = calloc(1, sizeof(*stats));
    if (stats == NULL) {
        app_error("out of memory", path, NULL);
        return APP_EXIT_MACHINE;
    }
    stats->path = path;
    stats->lines = lines;
    stats->line_count = line_count;
    stats->streams = streams;
    stats->sample_bytes =
        sizeof(struct sample) + line_count * sizeof(struct links_row) + streams->count * sizeof(struct stream_row);
    stats->ring_count = RING_BYTES / stats->sample_bytes;
    stats->ring_count = stats->ring_count < RING_SAMPLES_MIN ? RING_SAMPLES_MIN : stats->ring_count;
    stats->buffer = malloc(BUFFER_BYTES);
    stats->before = calloc(line_count, sizeof(*stats->before));
    stats->streams_before = calloc(streams->count + 1, sizeof(*stats->streams_before));
    stats->ring = malloc(stats->ring_count * stats->sample_bytes);
    if (stats->buffer == NULL || stats->before == NULL || stats->streams_before == NULL || stats->ring == NULL) {
        app_error("out of memory", path, NULL);
        stats_free(stats);
        return APP_EXIT_MACHINE;
    }
    if (!app_csv_open("the statistics", path, &stats->file)) {
        stats_free(stats);
        return APP_EXIT_USAGE;
    }
    setvbuf(stats->file, stats->buffer, _IOFBF, BUFFER_BYTES);
    links_rows_begin(stats->file);
    /* the switch's signals are blocked at this time, and stay so in the writer */
    stats->is_running = pthread_create(&stats->writer, NULL, writer_run, stats) == 0;
    *stats_out = stats;
    if (!stats->is_running) {
        app_error("no thread for the statistics", path, "raise `ulimit -u`");
        *stats_out = NULL;
        (void)switch_stats_close(stats);
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

int switch_stats_close(struct switch_stats *stats)
{
    if (stats == NULL) {
        return APP_EXIT_SUCCESS;
    }
    if (stats->is_running) {
        atomic_store_explicit(&stats->is_over, true, memory_order_release); /* pairs with the acquire in writer_run */
        pthread_join(stats->writer, NULL);
    }
    bool written = app_csv_close("the statistics", stats->path, stats->file);
    stats_free(stats);
    return written ? APP_EXIT_SUCCESS : APP_EXIT_MACHINE;
}
