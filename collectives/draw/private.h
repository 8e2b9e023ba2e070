/* What the pictures share: colours, frame and text; and what the files of the timeline share. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "collectives/price/price.h"

#define DRAW_COPY    "#7f7f7f"
#define DRAW_COMBINE "#111111"

enum {
    DRAW_COLOURS = 12,
    DRAW_LEFT = 70,    /* of the timeline: room for the ranks' names */
    DRAW_WIDTH = 1120, /* of the time axis */
};

/* Neighbouring phases, or clusters, get colours far apart; they come again after DRAW_COLOURS. */
const char *draw_colour(uint32_t phase);

/* The head of an SVG of this size, with the styles that both pictures use and a title line. */
void draw_open(FILE *stream, double width, double height, const struct cw_plan *plan, const char *what);
void draw_close(FILE *stream);

/* "12.3 us": with the unit that makes it readable. */
void draw_time(char *text, size_t text_bytes, double time_ns);

/* "64 KiB". */
void draw_bytes(char *text, size_t text_bytes, uint64_t bytes);

struct timeline {
    const struct cw_plan *plan;
    const struct cw_trace *trace;
    const struct cw_price *price;
    FILE *stream;
    bool by_cluster; /* colours are those of the clusters at the other end, not of phases */
    double row;      /* height of a rank's row */
    double end_ns;
};

double draw_x(const struct timeline *timeline, double time_ns);
double draw_y(const struct timeline *timeline, uint32_t rank);

/* Where one of the three lanes of a row is: 0 sends, 1 local, 2 receives. */
void draw_lane(const struct timeline *timeline, uint32_t rank, uint32_t lane, double *y, double *height);

const struct cw_op *draw_op(const struct timeline *timeline, uint32_t rank, uint32_t op);

/* bands.c: what is too much to be drawn one by one. CW_OK or CW_ERROR_MEMORY. */
int draw_bands(const struct timeline *timeline, bool lines);
