/* LORENZO's two widths of words: lorenzo_words.h, compiled for each. Private to this folder. */
#pragma once

#include "dataplane/codec/codecs.h"

/* The residual of a value is up to three differences, one after the other, each with the value this many words before;
 * 0 is none. (1): the value before. (1, 1): values on a straight line, (1, 1, 1): on a parabola. (1, n): Lorenzo's
 * predictor of fields whose rows have n values (Ibarria et al., 2003), in three dimensions (1, n, m). (5): records of
 * five values. */
struct cw_lorenzo {
    uint16_t steps[3];
};

struct cw_lorenzo_source {
    const uint8_t *at;
    uint32_t count; /* words */
    bool is_float;
};

struct cw_lorenzo_calls {
    /* words taken; *bytes is their compressed size */
    uint32_t (*fill)(struct cw_codec_scratch *scratch, struct cw_lorenzo predictor,
                     const struct cw_lorenzo_source *source, uint8_t *to, uint32_t capacity, uint32_t *bytes);
    bool (*expand)(struct cw_codec_scratch *scratch, struct cw_lorenzo predictor, const uint8_t *chunk, uint32_t bytes,
                   uint8_t *to, uint32_t count, bool is_float);
    /* bits that the residuals of a sample would take; more than `most` if they are */
    uint32_t (*price)(struct cw_codec_scratch *scratch, struct cw_lorenzo predictor, uint32_t count, uint32_t most);
    void (*load)(struct cw_codec_scratch *scratch, const struct cw_lorenzo_source *source);
};
