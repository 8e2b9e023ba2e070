/* choice: the data of a path to compress, and the codec. A path is a flow to a peer, or a stream to a
 * group.
 *
 * The rule is inequality (3) of Ke, Burtscher and Speight (cMPI, 2004): with R the ratio, l1' the codec's time at
 * both ends for a byte and l0' for a message, S its bytes, and 1/BW the time of the path for a byte,
 *
 *    ((1 / BW) (R - 1) / R - l1') S - l0' > 0
 *
 * R and the codec come from a sample of the data, l1' and l0' were measured on this processor, 1/BW comes from the
 * known rate of the path, or else from its own long operations. A path may also be slow for lack of processors, and
 * then compression makes it slower. So the rule only permits a trial: parts of the data travel with and without
 * compression in turn, and the faster of the two is kept. Samples and trials are repeated at growing distances: a
 * sample against compression costs some microseconds in 8 MiB, in 16 MiB after the next, and so on.
 *
 * Each kind of elements has a separate choice. Owner: the thread that turns the endpoint. */
#pragma once

#include "dataplane/compress/chunk.h"

/* A path of data. */
struct cw_compress_path {
    struct cw_compress_flow *state;
    uint64_t rate_bps;     /* known, not measured; 0: not known */
    uint64_t window_bytes; /* that may be in flight */
    uint32_t part_bytes;   /* of a packet, without compression */
    uint32_t chunk_bytes;  /* of a packet, compressed */
};

/* The data of a packet of the path. */
struct cw_compress_packet {
    enum cw_element element;
    struct cw_codec_plan plan; /* CW_CODEC_NONE: not compressed; the parameter, enum cw_sent_plain, is the reason */
    uint32_t raw_bytes;
    uint32_t chunk_bytes; /* of a chunk */
};

/* True: the endpoint may compress. */
static inline bool cw_compress_may(const struct cw_endpoint *endpoint)
{
    return endpoint->compress != NULL && endpoint->compress->config.mode != CW_COMPRESSION_OFF;
}

/* The plan of the next packet, of an endpoint that may compress; CW_CODEC_NONE: not compressed, with parameter of enum
 * cw_sent_plain. */
struct cw_codec_plan cw_compress_plan(struct cw_endpoint *endpoint, const struct cw_compress_path *path,
                                      enum cw_element element, const struct cw_chunk_data *data);

/* A packet has been written for the first time. */
void cw_compress_sent(struct cw_endpoint *endpoint, const struct cw_compress_path *path,
                      const struct cw_compress_packet *packet);

/* ... and was acknowledged. */
void cw_compress_acknowledged(struct cw_endpoint *endpoint, struct cw_compress_flow *state,
                              const struct cw_compress_packet *packet);

/* Packets in flight are lost. */
void cw_compress_reset(struct cw_compress_flow *state);

/* The numbers of inequality (3), for a kind of elements. */
void cw_compress_report(const struct cw_endpoint *endpoint, const struct cw_compress_path *path,
                        enum cw_element element, struct cw_compression_report *report);

/* Frees the memory of cw_endpoint_compress. */
void cw_compress_dispose(struct cw_endpoint *endpoint);
