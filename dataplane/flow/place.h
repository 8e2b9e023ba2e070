/* place: the requests of a data packet's frames, validated as a whole before the first byte is stored, then carried
 * out.
 *
 * Invariant: cw_frames_validate changes nothing (but that it may send a REJECT); after CW_VALID cw_frames_place cannot
 * fail. Order of calls: cw_frames_validate; on CW_VALID cw_frames_place; on CW_LATER cw_frames_place_credit. The packet
 * stays where it is meanwhile. */
#pragma once

#include "dataplane/put/reassembly.h"

enum cw_verdict {
    CW_VALID,
    CW_VALID_OLD, /* a frame only: about a put that is done, given up or only waits: nothing to do */
    CW_MALFORMED,
    CW_REFUSE,
    CW_LATER,   /* no room now */
    CW_DAMAGED, /* authentic, but made by no codec: the session ends */
};

/* One frame of a packet, checked as far as lengths go. */
struct cw_frame {
    const struct cw_wire_frame *wire;
    const uint8_t *data;
    uint8_t *target; /* where the data goes, once validated */
    bool old;        /* validated CW_VALID_OLD */
    bool is_message; /* of a put: it is one */
    bool plain;      /* nothing that another frame of the same packet does changes what was validated */
    struct cw_reassembly_frame put;
};

/* The frames of a packet, validated. */
struct cw_frames {
    uint32_t count;
    bool only_messages; /* none is awaited by its sender */
    bool goes_on;       /* it is a chunk, and not the end of its put */
    struct cw_frame list[CW_OPERATIONS_A_PACKET];
};

/* Validates all frames of an authentic packet; CW_VALID, CW_MALFORMED, CW_REFUSE (the sender has been told),
 * CW_LATER or CW_DAMAGED. */
enum cw_verdict cw_frames_validate(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                   const struct cw_wire_header *header, struct cw_frames *frames);

/* Does what the frames ask for. */
void cw_frames_place(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_frames *frames);

/* A packet that must be sent again, for lack of room, still brings its credit: the data it needs room for may wait for
 * that. If it was received before, its put number shows that. */
void cw_frames_place_credit(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header);
