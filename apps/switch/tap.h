/* Switch tap: frames at the end of a link or host's own link, both directions, as a file that tcpdump, Wireshark and
 * tshark read.
 *
 * The times are those at which frames arrive by the model (nanoseconds, of the system's clock as it was at the start):
 * on a lossless link they are exactly the delay apart from those in front of it. Frames that are lost are not in it.
 *
 * Order of calls: switch_tap_open, { switch_tap_frame }*, switch_tap_close. One thread. The file is complete when it is
 * closed; up to a megabyte is in memory before. */
#pragma once

#include <stdint.h>

struct switch_tap;

/* Begins a file; of each frame `snap_bytes` are kept. APP_EXIT_SUCCESS, or an exit code after reporting the error. */
int switch_tap_open(const char *path, uint32_t snap_bytes, struct switch_tap **tap);

/* `time_ns` by cw_clock_ns. */
void switch_tap_frame(struct switch_tap *tap, uint64_t time_ns, const uint8_t *data, uint32_t length);

/* Writes the rest. APP_EXIT_SUCCESS, or an exit code after an error: something could not be written. NULL is
 * allowed. */
int switch_tap_close(struct switch_tap *tap);
