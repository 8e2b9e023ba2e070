/* report: acknowledgements that go out. */
#pragma once

#include "dataplane/state/endpoint.h"

enum cw_ack_haste {
    CW_ACK_NOW,
    CW_ACK_ASKED,   /* the sender pauses until it comes */
    CW_ACK_SOON,    /* a put's sender waits for it */
    CW_ACK_STREAM,  /* for a full packet, after which others follow */
    CW_ACK_MESSAGE, /* of messages: their sender continues at once */
};

/* Of a packet that brings a put: a full one is of a stream; parts end at multiples of 8. */
static inline enum cw_ack_haste cw_ack_haste_of(const struct cw_flow *flow, uint32_t payload_bytes)
{
    return payload_bytes + sizeof(uint64_t) > flow->session.payload_bytes_max ? CW_ACK_STREAM : CW_ACK_SOON;
}

/* The flow owes an acknowledgement: now, or after its delay. */
void cw_ack_want(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_ack_haste haste);

/* Any packet to the flow carries the cumulative acknowledgement: reports that it makes needless are removed. */
void cw_ack_carried(struct cw_flow *flow);

/* Sends the acknowledgements that are due; returns how many. */
uint32_t cw_ack_turn(struct cw_endpoint *endpoint);

/* Sends one now. False: the port has no buffer. */
bool cw_ack_send(struct cw_endpoint *endpoint, struct cw_flow *flow);
