/* Switch line: one direction of a link on the real clock: the model (dataplane/fabric/link.h), and the frames that are
 * on it.
 *
 * Invariants
 *  - Frames arrive in the order they were offered, also when the delay is made shorter meanwhile.
 *  - What is offered ends in exactly one counter, or is still on the line: offered = delivered + lost + queue + down
 *    (the link's) + dropped_pool + dropped_oversize + held.
 *  - A frame is offered at the time at which it arrived from the line before, not at the time at which the switch came
 *    to look: being late does not add up, and rates stay exact. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apps/switch/pool.h"
#include "dataplane/fabric/heap.h"
#include "dataplane/fabric/link.h"

enum switch_line_kind {
    SWITCH_LINE_DOWN = 0, /* towards a host: ends at its ports */
    SWITCH_LINE_UP = 1,   /* from a host: ends at the bridge of its cluster */
    SWITCH_LINE_WAN =
        2, /* between two sites: ends at the next line of a frame's route, or at the bridge of its cluster */
};

struct switch_line {
    struct cw_link link;
    enum switch_line_kind kind;
    uint32_t index;      /* among all lines */
    const char *name;    /* of the link or host */
    char direction[140]; /* "up", "down", "delft>amsterdam" */
    bool tapped;
    uint64_t offer_ns;          /* of the last frame */
    uint64_t arrival_ns;        /* likewise */
    struct switch_frame *first; /* on the line, the next to arrive first */
    struct switch_frame *last;
    uint32_t held;
    uint32_t position;         /* in the heap of lines */
    uint64_t dropped_pool;     /* more frames on their way than there is room for */
    uint64_t dropped_oversize; /* longer than the MTU */
    uint64_t dropped_port;     /* delivered, but the port did not take them */
};

void switch_line_init(struct switch_line *line, enum switch_line_kind kind, uint32_t index,
                      const struct cw_link_config *link, uint64_t seed);

/* The fate of a frame that enters at `time_ns`, or after the one before it if that is later. True: it arrives at
 * *arrival_ns. */
bool switch_line_offer(struct switch_line *line, uint64_t time_ns, uint32_t length, enum cw_link_fate *fate,
                       uint64_t *arrival_ns);

/* Puts a frame with its arrival time on the line. The heap has an entry for each line with frames. */
void switch_line_hold(struct switch_line *line, struct switch_frame *frame, struct cw_heap *heap);

/* Takes the first frame of the line whose turn it is off it; the heap is not empty. */
struct switch_frame *switch_line_next(struct cw_heap *heap, struct switch_line **line);

/* Bytes that can be on the line and in its queue at once, as they count on the line. */
uint64_t switch_line_bytes(const struct cw_link_config *link);
