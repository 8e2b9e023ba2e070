/* Window: which numbers of a sliding range have been seen.
 *
 * Invariants
 *   - every number below `base` has been seen, `base` itself has not; none at or above `end` has been seen.
 *   - while everything comes in order (base == end) no memory is held; blocks are lent from a pool and given back when
 *     the holes close.
 * Used twice per flow: for packet numbers and for put numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/base/pool.h"

enum {
    CW_WINDOW_BLOCK_NUMBERS = 8192,
    CW_WINDOW_BLOCK_BYTES = CW_WINDOW_BLOCK_NUMBERS / 8,
    CW_WINDOW_BLOCKS = 8, /* numbers from base on that can be distinguished: 65,536 less one block's slack */
};

struct cw_window {
    uint64_t base;
    uint64_t end;
    uint64_t *blocks[CW_WINDOW_BLOCKS];
};

/* Everything below `first` counts as seen. */
void cw_window_init(struct cw_window *window, uint64_t first);

/* Gives the blocks back. */
void cw_window_dispose(struct cw_window *window, struct cw_pool *pool);

/* True if `number` has been seen. */
bool cw_window_seen(const struct cw_window *window, uint64_t number);

/* Marks a number at or above base, not seen before and below base + cw_window_span(). False if the pool has no block
 * left: then nothing has changed. A number equal to base always succeeds. */
bool cw_window_mark(struct cw_window *window, struct cw_pool *pool, uint64_t number);

/* The first number at or after `from` (>= base) that has not been seen (`seen` false) or has been seen (`seen` true),
 * at most `end`. */
uint64_t cw_window_next(const struct cw_window *window, uint64_t from, bool seen);

/* The last number before `from` (<= end, > base) at which a run of missing numbers begins, that is: going down from
 * `from`, passes the seen run directly below and then the missing run below that; at least base. */
uint64_t cw_window_previous_run(const struct cw_window *window, uint64_t from);

/* Blocks held. */
uint32_t cw_window_block_count(const struct cw_window *window);

static inline uint64_t cw_window_span(void)
{
    return (uint64_t)(CW_WINDOW_BLOCKS - 1) * CW_WINDOW_BLOCK_NUMBERS;
}
