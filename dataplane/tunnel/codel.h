/* CoDel: which frames of a queue to drop so that it stays short, by how long they have waited (Nichols and Jacobson;
 * RFC 8289).
 *
 * A queue whose frames have all waited longer than `target_ns` for `interval_ns` is a standing one, and useless: then
 * one frame is dropped, and others at shorter and shorter intervals, until waiting is short again. Bursts that drain
 * within an interval lose nothing.
 *
 * Order of calls: cw_codel_init, then cw_codel_drops for each frame as it comes to the head of the queue, until it says
 * no. `now_ns` does not go back. Owner: the queue's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CW_CODEL_TARGET_NS \
    10000000ull /* 4.4: 5 to 10 % of the interval; the thread may be off its core for milliseconds */
#define CW_CODEL_INTERVAL_NS 100000000ull /* RFC 8289, 4.3: about the longest usual round trip */

struct cw_codel {
    uint64_t target_ns;
    uint64_t interval_ns;
    uint64_t above_ns; /* when frames will have waited too long for an interval; 0: they have not */
    uint64_t next_ns;  /* of the next drop */
    uint32_t count;    /* drops since dropping began */
    uint32_t count_last;
    bool dropping;
};

void cw_codel_init(struct cw_codel *codel, uint64_t target_ns, uint64_t interval_ns);

/* Whether to drop the frame at the head, which has waited for `waited_ns`; `is_short`: at most one full frame waits. */
bool cw_codel_drops(struct cw_codel *codel, uint64_t now_ns, uint64_t waited_ns, bool is_short);
