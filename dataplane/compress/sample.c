#include "dataplane/compress/sample.h"

enum {
    SAMPLE_BYTES = 16 << 10, /* that a sample looks at, at most */
    SLOW_LINK_NS = 60,       /* a byte: from here on zstd is tried, too */
    CANDIDATES_MAX = 8,
};

struct candidate {
    enum cw_codec codec;
    enum cw_element element;
};

static uint32_t candidates_list(const struct cw_endpoint *endpoint, enum cw_element element, double byte_ns,
                                struct candidate *list)
{
    enum cw_codec only = endpoint->compress->config.codec;
    uint32_t count = 0;
    if (only != CW_CODEC_NONE) {
        if (cw_codec_accepts(only, element)) {
            list[count++] = (struct candidate){only, element};
        }
        return count;
    }
    if (element == CW_ELEMENT_BYTES) { /* whatever they are */
        list[count++] = (struct candidate){CW_CODEC_LZ4, element};
        list[count++] = (struct candidate){CW_CODEC_LORENZO, CW_ELEMENT_DOUBLE};
        list[count++] = (struct candidate){CW_CODEC_LORENZO, CW_ELEMENT_FLOAT};
        list[count++] = (struct candidate){CW_CODEC_LORENZO, CW_ELEMENT_INTEGER_4};
    } else {
        if (cw_codec_accepts(CW_CODEC_LORENZO, element)) {
            list[count++] = (struct candidate){CW_CODEC_LORENZO, element};
        }
        list[count++] = (struct candidate){CW_CODEC_SHUFFLE, element};
        list[count++] = (struct candidate){CW_CODEC_LZ4, element}; /* where numbers recur unchanged */
    }
    if (byte_ns >= SLOW_LINK_NS) {
        list[count++] = (struct candidate){CW_CODEC_ZSTD, element};
    }
    return count;
}

double cw_sample_packed_ns(const struct cw_endpoint *endpoint, enum cw_codec codec, double byte_ns, double rate,
                           double taken, double *own_ns)
{
    const struct cw_codec_speed *speed = &endpoint->compress->config.speeds[codec];
    *own_ns = (double)speed->fill_ns + (double)speed->expand_ns + (double)speed->fixed_ns / taken;
    return byte_ns / rate + *own_ns;
}

bool cw_sample_measure(struct cw_endpoint *endpoint, const struct cw_sample_question *question)
{
    struct cw_compress_kind *kind = question->kind;
    struct cw_codec_scratch *scratch = cw_chunk_scratch(endpoint);
    uint64_t left = question->data->left;
    uint32_t wanted = left < SAMPLE_BYTES ? (uint32_t)left : SAMPLE_BYTES;
    uint8_t chunk[CW_PORT_MTU_MAX];
    if (scratch == NULL) {
        return false;
    }
    kind->samples++;
    cw_count(endpoint, CW_COUNTER_CHUNK_SAMPLES, 1);
    const void *data;
    uint32_t bytes = cw_chunk_source(endpoint, question->data, wanted, wanted, &data);
    struct candidate list[CANDIDATES_MAX];
    uint32_t count = candidates_list(endpoint, question->element, question->byte_ns, list);
    double best = CW_SAMPLE_GAIN * question->byte_ns;
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        struct cw_codec_plan plan = cw_codec_plan(scratch, list[i].codec, list[i].element, data, bytes);
        uint32_t taken = 0;
        uint32_t chunk_bytes = cw_codec_fill(scratch, plan, data, bytes, chunk, question->path->chunk_bytes, &taken);
        if (chunk_bytes == 0) {
            continue;
        }
        double rate = (double)taken / chunk_bytes;
        double own_ns;
        double ns = cw_sample_packed_ns(endpoint, list[i].codec, question->byte_ns, rate, taken, &own_ns);
        if (endpoint->compress->config.mode == CW_COMPRESSION_ON ? !found || rate > (double)kind->rate : ns < best) {
            best = ns;
            found = true;
            kind->plan = plan;
            kind->rate = kind->plan_rate = (float)rate;
            kind->taken = taken;
            kind->plan_bytes = 0;
        }
    }
    return found;
}
