/* Links rows: the statistics of links over time, as CSV. The switch of emulated hosts and the simulated network write
 * them, `causeway draw` reads them. A row for each link, direction and interval:
 *
 *    time_ns,name,direction,offered_frames,offered_bytes,delivered_frames,delivered_bytes,lost_frames,queue_frames,
 *    down_frames,pool_frames,oversize_frames,port_frames,queue_bytes,queue_max_bytes,rate_bps,queue_limit_bytes
 *
 * time_ns: the time of the sample, since the start. Frames and bytes: since the sample before, so that sums over time
 * are the counters. delivered: arrived at the end of the link by time_ns. queue_frames, down_frames, pool_frames and
 * oversize_frames were dropped, by reason. port_frames were delivered, but the host's port did not take them.
 * queue_bytes: the queue at that time; queue_max_bytes: the longest since the sample before. rate_bps and
 * queue_limit_bytes: at that time; 0: no limit.
 *
 * Thread: any; one at a time for a file. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "dataplane/fabric/link.h"

/* Counters up to LINKS_COUNTS; behind them values as they are. */
enum links_field {
    LINKS_OFFERED,
    LINKS_OFFERED_BYTES,
    LINKS_DELIVERED,
    LINKS_DELIVERED_BYTES,
    LINKS_LOST,
    LINKS_QUEUE,
    LINKS_DOWN,
    LINKS_POOL,
    LINKS_OVERSIZE,
    LINKS_PORT,
    LINKS_COUNTS,
    LINKS_QUEUE_BYTES = LINKS_COUNTS,
    LINKS_QUEUE_MAX_BYTES,
    LINKS_RATE_BPS,
    LINKS_QUEUE_LIMIT_BYTES,
    LINKS_FIELDS,
};

struct links_row {
    uint64_t fields[LINKS_FIELDS];
};

/* The fields of a link at `now_ns`; the others are 0. The longest queue begins afresh. */
struct links_row links_row_read(struct cw_link *link, uint64_t now_ns);

/* Writes the names of the columns. Errors are found by ferror. */
void links_rows_begin(FILE *file);

/* Writes a row; its counters are those since `before`, which becomes `row`. */
void links_row_write(FILE *file, uint64_t time_ns, const char *name, const char *direction, const struct links_row *row,
                     struct links_row *before);

/* Writes `number` in decimal, and returns the end: up to LINKS_DIGITS. printf takes three times as long. */
enum { LINKS_DIGITS = 20 };
char *links_number_write(char *to, uint64_t number);
