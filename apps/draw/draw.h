/* Draw: what the files of `causeway draw` share.
 *
 *    apps/draw/draw.c         the command: options, files, which parts of them
 *    draw/table.c   CSV
 *    draw/read.c    statistics and times
 *    draw/bins.c    amounts over time, in bins
 *    draw/run.c     what of a file is drawn: a link's direction, its hosts, the time in which something happened
 *    draw/script.c  the picture, as a script of gnuplot's */
#pragma once

#include <stdio.h>

#include "apps/draw/read.h"

enum {
    DRAW_RUNS_MAX = 4,     /* beside one another in a picture */
    DRAW_STREAMS_MAX = 8,  /* as many as there are colours to be told apart */
    DRAW_BINS_SHOWN = 400, /* about as many as can be seen */
};

/* A file of statistics. */
struct draw_run {
    const char *label;
    struct draw_stats stats;
    struct draw_series *total; /* what is drawn of it; one of stats */
    struct draw_series
        *streams[DRAW_STREAMS_MAX]; /* of its hosts; with more of them the last one is all others together */
    uint32_t stream_count;          /* 0: only the total is known */
    uint32_t first;                 /* the bins of the part that is drawn */
    uint32_t end;
    uint64_t begin_ns; /* where it begins, in the time of the file */
    uint64_t queue_max_bytes;
    uint64_t dropped_frames;
};

struct draw_picture {
    uint32_t run_count;
    struct draw_run runs[DRAW_RUNS_MAX];
    struct draw_times times;
};

/* Chooses the direction of a link that is asked for; of several the one where most frames were dropped, or which has
 * carried most: the same one for all runs that have it. And its hosts. APP_EXIT_SUCCESS, or an exit code after
 * reporting. */
int draw_runs_choose(struct draw_picture *picture, const char *direction);

/* Finds first and end: from `from_ns` to `to_ns` (0: open), and without the bins at either end that have less than a
 * hundredth of what the fullest one has, if none of the two is given. APP_EXIT_USAGE after reporting if there is
 * nothing. */
int draw_run_trim(struct draw_run *run, uint64_t from_ns, uint64_t to_ns);

/* Leaves what first and end say, `factor` bins as one. */
void draw_run_join(struct draw_run *run, uint32_t factor);

/* Writes the script, and the bins as CSV. */
void draw_script_write(const struct draw_picture *picture, FILE *script);
uint32_t draw_script_width(const struct draw_picture *picture);
uint32_t draw_script_height(const struct draw_picture *picture);
void draw_data_write(const struct draw_picture *picture, FILE *file);
