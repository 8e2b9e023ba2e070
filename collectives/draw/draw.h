/* draw: pictures of plans as SVG, for a browser. Prints to the caller's stream; errors of the stream are the caller's
 * to see (ferror).
 *
 * The timeline has a row per rank and time from left to right: above, what it sends; below, what it receives; between,
 * what it combines and copies; white, where it idles; grey, when it is done. Lines are messages. The last rank to
 * finish is red, and what it waited for can be followed back. A plan of more than some hundred messages is drawn as
 * bands: the height says how much of that time is used, the colour, with several clusters, which one is at the other
 * end; so it is some hundred kilobytes at most. The matrix has a row per sender and a column per receiver of an
 * all-to-all: which phase each message is in, and how long phases are. */
#pragma once

#include <stdio.h>

#include "collectives/price/price.h"

enum { CW_DRAW_MATRIX_RANKS_MAX = 400 }; /* more have cells too small to be seen */

/* `trace` and `price` are what cw_price_interpret found for the plan. CW_OK or CW_ERROR_MEMORY. */
int cw_draw_timeline(const struct cw_plan *plan, const struct cw_trace *trace, const struct cw_price *price,
                     FILE *stream);

/* CW_OK; CW_ERROR_UNSUPPORTED if the plan is no all-to-all; CW_ERROR_LIMIT if its ranks are more than
 * CW_DRAW_MATRIX_RANKS_MAX; CW_ERROR_MEMORY. */
int cw_draw_matrix(const struct cw_plan *plan, FILE *stream);
