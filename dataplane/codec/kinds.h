/* Kinds: types of elements, codecs and their speed. */
#ifndef CW_KINDS_H
#define CW_KINDS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The type of a put's elements. BYTES is the default. */
enum cw_element {
    CW_ELEMENT_BYTES,
    CW_ELEMENT_INTEGER_2,
    CW_ELEMENT_INTEGER_4,
    CW_ELEMENT_INTEGER_8,
    CW_ELEMENT_FLOAT,
    CW_ELEMENT_DOUBLE,
    CW_ELEMENTS,
    CW_ELEMENT_PLAIN = CW_ELEMENTS /* of any type: not to be compressed */
};

/* The codecs; the numbers are part of the wire format. */
enum cw_codec {
    CW_CODEC_NONE,
    CW_CODEC_RUN,     /* eight bytes, repeated */
    CW_CODEC_LORENZO, /* predicted by neighbours, residuals packed */
    CW_CODEC_DFCM,    /* predicted by context: the paper's */
    CW_CODEC_LZ4,     /* bytes */
    CW_CODEC_SHUFFLE, /* bytes of elements transposed, then LZ4 */
    CW_CODEC_ZSTD,    /* bytes, for slow links */
    CW_CODECS
};

/* The speed of a codec on this processor. */
struct cw_codec_speed {
    float fill_ns;   /* a byte of the source */
    float expand_ns; /* a byte of the source */
    float fixed_ns;  /* a chunk, both ends together */
};

#ifdef __cplusplus
}
#endif

#endif
