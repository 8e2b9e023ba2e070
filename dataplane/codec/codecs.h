/* The interface of each codec: one file a codec, and the scratch that they share, one at a time. Private to this
 * folder. */
#pragma once

#include "dataplane/codec/codec.h"

enum {
    CW_DFCM_LINES = 1 << 15,
    CW_LORENZO_PAD = 64, /* bytes that vectors may read or write behind what counts */
};

/* Words that a predictor compares: of a chunk, and room for the last vector. */
union cw_codec_words {
    uint64_t wide[CW_CHUNK_RAW_MAX / 8 + CW_LORENZO_PAD];
    uint32_t narrow[CW_CHUNK_RAW_MAX / 4 + 2 * CW_LORENZO_PAD];
    uint8_t bytes[CW_CHUNK_RAW_MAX + 8];
};

struct cw_dfcm_line {
    double latest;
    double before;
};

struct cw_codec_scratch {
    union cw_codec_words words;
    uint8_t packed[CW_CHUNK_MAX + 2 * CW_LORENZO_PAD];
    struct cw_dfcm_line lines[CW_DFCM_LINES]; /* all zero between chunks */
    uint16_t touched[CW_CHUNK_RAW_MAX / 8];
    enum cw_codec_vectors vectors;
    void *lz4;       /* LZ4's state */
    void *zstd;      /* ZSTD_CCtx, made when it is first wanted */
    void *zstd_back; /* ZSTD_DCtx */
};

typedef uint32_t (*cw_codec_fill_call)(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source,
                                       uint32_t available, uint8_t *to, uint32_t capacity, uint32_t *taken);
typedef bool (*cw_codec_expand_call)(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *chunk,
                                     uint32_t bytes, uint8_t *to, uint32_t raw_bytes);

struct cw_codec_calls {
    const char *name;
    cw_codec_fill_call fill;
    cw_codec_expand_call expand;
    /* the best parameter for a sample; NULL: the codec has none */
    uint8_t (*plan)(struct cw_codec_scratch *scratch, enum cw_element element, const uint8_t *sample, uint32_t bytes);
    uint32_t elements; /* one bit for each that it takes */
};

/* Compresses `length` bytes, no more and no less; 0: they do not fit. */
typedef uint32_t (*cw_codec_attempt_call)(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source,
                                          uint32_t length, uint8_t *to, uint32_t capacity);

/* The fill of a codec that must know before how much it takes: begins with *taken bytes, or with all if that is 0, and
 * tries less where they do not fit. */
uint32_t cw_codec_fill_whole(cw_codec_attempt_call attempt, struct cw_codec_scratch *scratch, uint8_t parameter,
                             const uint8_t *source, uint32_t available, uint8_t *to, uint32_t capacity,
                             uint32_t *taken);

extern const struct cw_codec_calls cw_codec_run;
extern const struct cw_codec_calls cw_codec_lorenzo;
extern const struct cw_codec_calls cw_codec_dfcm;
extern const struct cw_codec_calls cw_codec_lz4;
extern const struct cw_codec_calls cw_codec_shuffle;
extern const struct cw_codec_calls cw_codec_zstd;
