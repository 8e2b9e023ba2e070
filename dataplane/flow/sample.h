/* sample: what codecs would make of the data that a flow sends next. */
#pragma once

#include "dataplane/state/endpoint.h"

#define CW_SAMPLE_GAIN 0.97 /* of the time without compression: a plan must save more */

/* Finds the best plan for the operation's data from its position on, where the flow takes `byte_ns` for a byte as it is:
 * by inequality (3) of cMPI, or, with CW_COMPRESSION_ON, by rate alone. Sets the kind's plan, its rate, and what a
 * packet takes. False: none is worth it, and the kind is what it was. */
bool cw_sample_take(struct cw_endpoint *endpoint, const struct cw_flow *flow, struct cw_compress_kind *kind,
                    struct cw_operation *operation, double byte_ns);

/* Nanoseconds that a byte takes with a codec of this rate, in chunks for `taken` bytes; the codec's part in *own_ns. */
double cw_sample_packed_ns(const struct cw_endpoint *endpoint, enum cw_codec codec, double byte_ns, double rate,
                           double taken, double *own_ns);
