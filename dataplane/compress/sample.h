/* sample: estimates the result of codecs on the next data. */
#pragma once

#include "dataplane/compress/choice.h"

#define CW_SAMPLE_GAIN 0.97 /* of the time without compression: a plan must save more */

struct cw_sample_question {
    const struct cw_compress_path *path;
    struct cw_compress_kind *kind;
    enum cw_element element;
    const struct cw_chunk_data *data;
    double byte_ns; /* the path's time for an uncompressed byte */
};

/* Finds the best plan for the data: by inequality (3) of cMPI, or, with CW_COMPRESSION_ON, by ratio alone. Sets the
 * kind's plan, its ratio, and the bytes of a packet. False: none is worth it, and the kind is unchanged. */
bool cw_sample_measure(struct cw_endpoint *endpoint, const struct cw_sample_question *question);

/* Nanoseconds that a byte takes with a codec of this rate, in chunks for `taken` bytes; the codec's part in *own_ns. */
double cw_sample_packed_ns(const struct cw_endpoint *endpoint, enum cw_codec codec, double byte_ns, double rate,
                           double taken, double *own_ns);
