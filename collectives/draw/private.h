/* What the pictures share: colours of phases, frame and text. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "collectives/schedule/plan.h"

/* Neighbouring phases get colours far apart; they come again after twelve. */
const char *draw_colour(uint32_t phase);

/* The head of an SVG of this size, with the styles that both pictures use and a title line. */
void draw_open(FILE *stream, double width, double height, const struct cw_plan *plan, const char *what);
void draw_close(FILE *stream);

/* "12.3 us": with the unit that makes it readable. */
void draw_time(char *text, size_t text_bytes, double time_ns);

/* "64 KiB". */
void draw_bytes(char *text, size_t text_bytes, uint64_t bytes);
