/* compress: which data of a flow travels compressed, and by which codec.
 *
 * The rule is inequality (3) of Ke, Burtscher and Speight (cMPI, 2004): with R the rate, l1' what the codec takes of
 * both ends for a byte and l0' for a message, S its bytes, and 1/BW what the flow takes for a byte,
 *
 *    ((1 / BW) (R - 1) / R - l1') S - l0' > 0
 *
 * R and the codec come from a sample of the data, l1' and l0' were measured on this processor, 1/BW is the rate that is
 * known of the path or else what the flow's own long operations have taken. As a flow may be slow for want of
 * processors, where compression makes it slower still, the rule only admits to a trial: a part of the data goes with
 * compression, a part without, in turn, and what took less is done from then on. Both are asked again after ever more
 * bytes: a sample that says no costs some microseconds in 8 MiB, in 16 MiB after the next, and so on.
 *
 * Of each kind of elements apart. Owner: whoever turns the endpoint. */
#pragma once

#include "dataplane/state/endpoint.h"

/* How the next packet of a long operation is to be compressed, from its position on; CW_CODEC_NONE: not, with parameter
 * of enum cw_sent_plain. */
struct cw_codec_plan cw_compress_plan(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                      struct cw_operation *operation);

/* A packet of a long operation has been written for the first time. */
void cw_compress_sent(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_sent *record);

/* ... and was acknowledged. */
void cw_compress_acknowledged(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_sent *record);

/* A session ends: what was under way is gone. */
void cw_compress_reset(struct cw_endpoint *endpoint, const struct cw_flow *flow);

/* The peer is no more. */
void cw_compress_forget(struct cw_endpoint *endpoint, const struct cw_flow *flow);

/* True if a record is a packet of a long operation. */
static inline bool cw_compress_counts(const struct cw_sent *record)
{
    return record->plan.codec != CW_CODEC_NONE || record->plan.parameter != CW_SENT_SHORT;
}

/* Gives back what cw_endpoint_compress has taken. */
void cw_compress_dispose(struct cw_endpoint *endpoint);
