/* Draw bins: what happened over time, in bins of equal length: what is told of any stretch of time is divided among the
 * bins that it touches.
 *
 * Invariants
 *  - Nothing is lost or made by dividing: the sums over all bins are the sums of what was put in.
 *  - Bins begin at time 0. If there would be more than DRAW_BINS_MAX, each two become one, as often as it takes.
 *
 * Order of calls: draw_bins_init, draw_bins_add*, draw_bins_spread?, draw_bins_join*, draw_bins_dispose. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { DRAW_BINS_MAX = 1 << 14 };

struct draw_bin {
    /* divided */
    uint64_t bytes; /* on the line */
    uint64_t dropped_frames;
    /* the most of all that touches the bin */
    uint64_t queue_bytes;
    uint64_t rate_bps;
    uint64_t queue_limit_bytes;
};

struct draw_bins {
    struct draw_bin *list;
    uint64_t width_ns;
    uint32_t count; /* up to the last one that was touched */
    uint32_t room;
};

/* `width_ns` of the first bins, above 0. */
void draw_bins_init(struct draw_bins *bins, uint64_t width_ns);
void draw_bins_dispose(struct draw_bins *bins);

/* What happened after `from_ns`, up to `to_ns`, which is not earlier; at one time: if they are the same. False: no
 * memory. */
bool draw_bins_add(struct draw_bins *bins, uint64_t from_ns, uint64_t to_ns, const struct draw_bin *what);

/* Makes one bin of each `factor` of them, the first ones from bin `first` on; those before it go away. */
void draw_bins_join(struct draw_bins *bins, uint32_t first, uint32_t factor);

/* A frame is counted where its last bit arrives, and takes a while on the link: what a bin has above the link's rate
 * was on the link in the bins before, and moves there. Likewise each part's share of it; bins of parts are as wide. */
void draw_bins_spread(struct draw_bins *total, struct draw_bins *const *parts, uint32_t count);
