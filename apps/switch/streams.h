/* Switch streams: the frames of each host on a line between sites; counted for the statistics only.
 *
 * Invariants
 *  - There is a stream for each line and each host whose frames may cross it, by the routes of the topology.
 *  - Of each line: the sums over its streams are the frames offered, delivered, lost, and dropped at its full queue.
 *
 * Order of calls: switch_streams_open when all lines are there, { switch_streams_offered | switch_streams_delivered }*,
 * switch_streams_close. One thread. */
#pragma once

#include <stdint.h>

#include "apps/switch/line.h"
#include "control/topology/topology.h"

struct switch_stream {
    const struct switch_line *line;
    const char *host;
    uint64_t offered_frames;
    uint64_t offered_bytes;
    uint64_t delivered_frames;
    uint64_t delivered_bytes;
    uint64_t lost_frames;
    uint64_t queue_frames; /* dropped, since the queue was full */
};

/* A zeroed one counts nothing. */
struct switch_streams {
    struct switch_stream *list; /* by line, then host */
    uint32_t count;
    uint32_t host_count;
    const struct switch_line *lines; /* those between sites */
    struct switch_stream **of;       /* [line * host_count + host]; NULL: never crosses it */
};

/* `lines`: those between sites, two a link, which stay where they are. CW_OK, or CW_ERROR_MEMORY; switch_streams_close
 * is due in both cases. */
int switch_streams_open(struct switch_streams *streams, const struct cw_topology *topology,
                        const struct switch_line *lines);
void switch_streams_close(struct switch_streams *streams);

/* A frame of that host was offered to the line, with that fate; it has come to the line's end. */
void switch_streams_offered(struct switch_streams *streams, const struct switch_line *line, uint32_t host,
                            uint32_t length, enum cw_link_fate fate);
void switch_streams_delivered(struct switch_streams *streams, const struct switch_line *line, uint32_t host,
                              uint32_t length);
