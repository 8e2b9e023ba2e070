/* The compression state of an endpoint and its flows: compress/choice.c decides, compress/chunk.c executes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/codec/codec.h"
#include "dataplane/dataplane.h"

enum cw_compress_state {
    CW_COMPRESS_RAW = 0,   /* not compressed, until `wait_bytes` have been sent */
    CW_COMPRESS_TRIAL = 1, /* alternating with and without, for comparison */
    CW_COMPRESS_PACKED = 2,
};

/* The data sent with, or without, compression, and its time. */
struct cw_compress_way {
    uint64_t bytes;
    uint64_t ns;
};

/* One kind of elements to a peer, or a group. */
struct cw_compress_kind {
    uint8_t state;     /* enum cw_compress_state */
    bool packs;        /* current data is compressed */
    uint8_t epochs;    /* TRIAL: completed ones */
    uint8_t failures;  /* samples and trials in a row against compression */
    uint8_t successes; /* trials in a row for compression */
    uint8_t mixed;     /* trials in a row whose halves disagreed */
    uint8_t unfit;     /* packets in a row that did not become shorter */
    uint16_t skip;     /* packets that are not tried, because of `unfit` */
    struct cw_codec_plan plan;
    uint32_t taken;       /* of the source by the latest chunk: the estimate for the next one */
    float rate;           /* raw to travelled, of the latest chunks */
    float plan_rate;      /* ... when the plan was made */
    uint64_t plan_bytes;  /* raw bytes by this plan */
    uint64_t wait_bytes;  /* RAW, PACKED: until the next sample, or trial */
    uint64_t epoch_bytes; /* TRIAL: of an epoch; left of it */
    uint64_t epoch_left;
    struct cw_compress_way ways[2];     /* raw and packed; halved now and then */
    struct cw_compress_way block;       /* the latest raw bytes: the best block shows the rate of the link */
    float best_ns[2];                   /* a byte, in the best block of this span and of the one before; 0: none yet */
    uint8_t blocks;                     /* of this span */
    struct cw_compress_way trial[2][2]; /* its halves, each raw and packed */
    uint64_t samples;
    uint64_t trials;
    uint64_t raw_bytes; /* of chunks */
    uint64_t chunk_bytes;
};

/* Of a flow, or the own stream of a group, from the first compressible data on. */
struct cw_compress_flow {
    struct cw_compress_kind kinds[CW_ELEMENTS];
    uint64_t mark_ns; /* the time before this has been assigned to a kind */
    bool is_used;
    uint32_t under_way; /* packets of long operations, or messages, sent and not acknowledged */
};

/* Of an endpoint. */
struct cw_compress {
    struct cw_compression config;
    struct cw_compress_flow *flows; /* by the flow's index; unused pages are never touched */
};
