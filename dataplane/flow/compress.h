/* compress: long operations of a flow, in the form of the choice (dataplane/compress/choice.h). Owner: the thread that
 * turns the endpoint. */
#pragma once

#include "dataplane/compress/choice.h"

/* The plan for the next packet of a long operation, from its position on. */
struct cw_codec_plan cw_flow_compress_plan(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                           struct cw_operation *operation);

/* Fills `at` by the record's plan: the first time with as much of its operation as fits, and the record's bytes become
 * that; later with the same again. Returns the bytes written; 0: it would become no shorter, or the source has changed
 * meanwhile. */
uint32_t cw_flow_chunk_fill(struct cw_endpoint *endpoint, struct cw_sent *record, uint8_t *at);

/* A packet of a long operation has been written for the first time; and was acknowledged. */
void cw_flow_compress_sent(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_sent *record);
void cw_flow_compress_acknowledged(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_sent *record);

/* A session ends: trials in progress are void; the peer is gone. */
void cw_flow_compress_reset(struct cw_endpoint *endpoint, const struct cw_flow *flow);
void cw_flow_compress_clear(struct cw_endpoint *endpoint, const struct cw_flow *flow);

/* True if a record is a packet of a long operation. */
static inline bool cw_flow_compress_counts(const struct cw_sent *record)
{
    return record->plan.codec != CW_CODEC_NONE || record->plan.parameter != CW_SENT_SHORT;
}
