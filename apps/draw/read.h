/* Draw read: what `causeway draw` reads: the statistics of a switch (switch/stats.h), and times that were predicted and
 * measured.
 *
 * Bad input is reported with the file, the line and the column. A last line that does not end is left out: the file may
 * be growing, or what wrote it may have been killed. */
#pragma once

#include "apps/draw/bins.h"

enum {
    DRAW_NAME_BYTES = 256, /* with its final 0 */
    DRAW_SERIES_MAX = 4096,
    DRAW_TIMES_MAX = 64,
};

/* One direction of a link, or what one host has sent of it. */
struct draw_series {
    char name[DRAW_NAME_BYTES];      /* of the link or host */
    char direction[DRAW_NAME_BYTES]; /* "delft>leiden", "up", "down" */
    char host[DRAW_NAME_BYTES];      /* empty: all */
    uint64_t bytes;                  /* on the line, all that was delivered */
    uint64_t dropped_frames;         /* since the queue was full */
    struct draw_bins bins;
};

struct draw_stats {
    const char *path;
    uint32_t count;
    struct draw_series *series;
};

/* Reads the lines of `link` and their hosts, NULL: of all links between sites, into bins that are `width_ns` long at
 * least. APP_EXIT_SUCCESS, or an exit code after reporting. draw_stats_dispose is due in both cases. `path` is kept. */
int draw_stats_read(struct draw_stats *stats, const char *path, const char *link, uint64_t width_ns);
void draw_stats_dispose(struct draw_stats *stats);

struct draw_time {
    char name[DRAW_NAME_BYTES];
    double predicted_ns;
    double measured_ns;
};

struct draw_times {
    uint32_t count;
    struct draw_time list[DRAW_TIMES_MAX];
};

/* Reads name,predicted_ns,measured_ns. Likewise. */
int draw_times_read(struct draw_times *times, const char *path);
