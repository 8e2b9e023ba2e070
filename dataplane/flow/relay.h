/* Relay: passes on packets of others, so that only a few hosts of a cluster send across a long link, each within its
 * share, whoever the packets are from (Tasoulas et al.: n selected nodes forward across the wide area; see
 * docs/internals/wide-area.md).
 *
 * Invariants
 *   - A packet is passed on if it came to this endpoint's MAC address, from a host that may send, for one that may not;
 *     nothing else is. It is neither opened nor checked but for its IP header: its tag or seal is for its receiver.
 *     The time to live falls by one, so that none goes round for ever (RFC 1812, 5.3.1).
 *   - Frames for the same shaper leave in the order in which they came. Its queue takes turns with this endpoint's own
 *     flows.
 *   - A queue holds queue_bytes at most; what finds it full is dropped and counted: who sends finds its rate out
 *     (bandwidth.h).
 * Owner: whoever turns the endpoint. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/dataplane.h"
#include "dataplane/flow/shaper.h"

struct cw_endpoint;

/* Frames that wait for a shaper, each a length and its bytes, in a ring. */
struct cw_relay_queue {
    struct cw_shaping shaping;
    uint8_t *ring; /* NULL until a frame has to wait */
    uint64_t head; /* bytes ever taken out */
    uint64_t tail; /* ... and put in: the place is the number modulo the ring's size */
};

struct cw_relay {
    uint64_t queue_bytes;
    struct cw_relay_host *hosts; /* open addressing by ip; none: free */
    uint32_t host_count;
    uint32_t host_mask;
    struct cw_relay_queue queues[CW_SHAPERS_MAX];
};

/* Takes a received frame that is not for this endpoint. True: it was passed on, or dropped and counted, as a relay
 * does. */
bool cw_relay_take(struct cw_endpoint *endpoint, const uint8_t *frame, uint32_t length);

/* The shaper's turn: sends what it lets out, a burst at most. True: more waits. *port_full: it could not even send
 * that. */
bool cw_relay_send(struct cw_endpoint *endpoint, struct cw_shaping *shaping, bool *port_full);

void cw_relay_dispose(struct cw_endpoint *endpoint);
