/* What an endpoint and its flows know of compression, as data: compress/choice.c decides, compress/chunk.c carries out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/codec/codec.h"
#include "dataplane/dataplane.h"

enum cw_compress_state {
    CW_COMPRESS_RAW = 0,   /* as it is, until `wait_bytes` have gone */
    CW_COMPRESS_TRIAL = 1, /* in turn with and without, to be compared */
    CW_COMPRESS_PACKED = 2,
};

/* What went in one of the two ways, and how long the flow took for it. */
struct cw_compress_way {
    uint64_t bytes;
    uint64_t ns;
};

/* One kind of elements on their way to a peer, or a group. */
struct cw_compress_kind {
    uint8_t state;     /* enum cw_compress_state */
    bool packs;        /* what is sent now */
    uint8_t epochs;    /* TRIAL: that are over */
    uint8_t failures;  /* samples and trials in a row that said no */
    uint8_t successes; /* trials in a row that said yes */
    uint8_t mixed;     /* trials in a row whose halves disagreed */
    uint8_t unfit;     /* packets in a row that became no shorter */
    uint16_t skip;     /* packets that are not tried, for that */
    struct cw_codec_plan plan;
    uint32_t taken;       /* of the source by the latest chunk: what the next one begins with */
    float rate;           /* raw to travelled, of the latest chunks */
    float plan_rate;      /* ... when the plan was made */
    uint64_t plan_bytes;  /* raw bytes by this plan */
    uint64_t wait_bytes;  /* RAW, PACKED: until the next sample, or trial */
    uint64_t epoch_bytes; /* TRIAL: of an epoch; left of it */
    uint64_t epoch_left;
    struct cw_compress_way ways[2];     /* raw and packed; halved now and then */
    struct cw_compress_way block;       /* the latest raw bytes: what the link can do is seen in the best of them */
    float best_ns[2];                   /* a byte, in the best block of this span and of the one before; 0: none yet */
    uint8_t blocks;                     /* of this span */
    struct cw_compress_way trial[2][2]; /* its halves, each raw and packed */
    uint64_t samples;
    uint64_t trials;
    uint64_t raw_bytes; /* of chunks */
    uint64_t chunk_bytes;
};

/* Of a flow, or the own stream of a group, from the first time that something could have been compressed. */
struct cw_compress_flow {
    struct cw_compress_kind kinds[CW_ELEMENTS];
    uint64_t mark_ns; /* up to here the time has been put down to somebody */
    bool is_used;
    uint32_t under_way; /* packets of long operations, or messages, that are sent and not acknowledged */
};

/* Of an endpoint. */
struct cw_compress {
    struct cw_compression config;
    struct cw_compress_flow *flows; /* by the flow's index; what nobody needs is never touched */
};
