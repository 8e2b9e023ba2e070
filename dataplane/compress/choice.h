/* choice: which data of a path travels compressed, and by which codec. A path is a flow to a peer, or a stream to a
 * group.
 *
 * The rule is inequality (3) of Ke, Burtscher and Speight (cMPI, 2004): with R the rate, l1' what the codec takes of
 * both ends for a byte and l0' for a message, S its bytes, and 1/BW what the path takes for a byte,
 *
 *    ((1 / BW) (R - 1) / R - l1') S - l0' > 0
 *
 * R and the codec come from a sample of the data, l1' and l0' were measured on this processor, 1/BW is the rate that is
 * known of the path or else what its own long operations have taken. As a path may be slow for want of
 * processors, where compression makes it slower still, the rule only admits to a trial: a part of the data goes with
 * compression, a part without, in turn, and what took less is done from then on. Both are asked again after ever more
 * bytes: a sample that says no costs some microseconds in 8 MiB, in 16 MiB after the next, and so on.
 *
 * Of each kind of elements apart. Owner: whoever turns the endpoint. */
#pragma once

#include "dataplane/compress/chunk.h"

/* By what data travels. */
struct cw_compress_path {
    struct cw_compress_flow *state;
    uint64_t rate_bps;     /* that is known of it, and no measurement; 0: none is */
    uint64_t window_bytes; /* that may be under way */
    uint32_t part_bytes;   /* of a packet, as they are */
    uint32_t chunk_bytes;  /* of a packet, compressed */
};

/* What a packet of the path has had for data. */
struct cw_compress_packet {
    enum cw_element element;
    struct cw_codec_plan plan; /* CW_CODEC_NONE: as it was, and the parameter, enum cw_sent_plain, says why */
    uint32_t raw_bytes;
    uint32_t chunk_bytes; /* of a chunk */
};

/* Whether anything may be compressed at all. */
static inline bool cw_compress_may(const struct cw_endpoint *endpoint)
{
    return endpoint->compress != NULL && endpoint->compress->config.mode != CW_COMPRESSION_OFF;
}

/* How the next packet is to be compressed, of an endpoint that may; CW_CODEC_NONE: not, with parameter of enum
 * cw_sent_plain. */
struct cw_codec_plan cw_compress_plan(struct cw_endpoint *endpoint, const struct cw_compress_path *path,
                                      enum cw_element element, const struct cw_chunk_data *data);

/* A packet has been written for the first time. */
void cw_compress_sent(struct cw_endpoint *endpoint, const struct cw_compress_path *path,
                      const struct cw_compress_packet *packet);

/* ... and was acknowledged. */
void cw_compress_acknowledged(struct cw_endpoint *endpoint, struct cw_compress_flow *state,
                              const struct cw_compress_packet *packet);

/* What was under way is gone. */
void cw_compress_reset(struct cw_compress_flow *state);

/* The numbers of inequality (3), for a kind of elements. */
void cw_compress_tell(const struct cw_endpoint *endpoint, const struct cw_compress_path *path, enum cw_element element,
                      struct cw_compression_report *report);

/* Gives back what cw_endpoint_compress has taken. */
void cw_compress_dispose(struct cw_endpoint *endpoint);
