/* Switch stats: how all lines do, over time, as CSV (apps/links/rows.h).
 *
 * After the lines of a sample come the shares of each host in links between sites, with direction "delft>leiden/delft0"
 * for frames of host delft0 from delft to leiden; only hosts with traffic, and only figures that are counted by host:
 * the cells from down_frames on are empty.
 *
 * Invariants
 *  - The thread that forwards copies counters only; another one writes. Between them is a ring of fixed size.
 *  - A sample that comes late has its true time. If the writer has fallen behind by the whole ring, samples are left
 *    out, and the next one covers their time: nothing is missing from the sums.
 *
 * Order of calls: switch_stats_open, { switch_stats_sample }*, switch_stats_close. One thread calls. */
#pragma once

#include "apps/switch/line.h"
#include "apps/switch/streams.h"

struct switch_stats;

/* Begins a file with a first line of names; `lines` and `streams` stay where they are until it is closed.
 * APP_EXIT_SUCCESS, or an exit code after reporting the error. */
int switch_stats_open(const char *path, const struct switch_line *lines, uint32_t line_count,
                      const struct switch_streams *streams, struct switch_stats **stats);

/* Takes a sample, and begins queue_max_bytes afresh. `elapsed_ns` since the switch was ready; `now_ns` by
 * cw_clock_ns. */
void switch_stats_sample(struct switch_stats *stats, struct switch_line *lines, uint64_t elapsed_ns, uint64_t now_ns);

/* Waits until all is written. APP_EXIT_SUCCESS, or an exit code after an error: something could not be. NULL is
 * allowed. */
int switch_stats_close(struct switch_stats *stats);
