/* Shared by plan_encode.c and plan_decode.c: the layout of the file and of an op. */
#pragma once

#include <stdint.h>

#include "collectives/schedule/limits.h"

enum {
    PLAN_MAGIC_BYTES = 8,
    PLAN_HEADER_BYTES = 24,
    PLAN_CHECKSUM_BYTES = 8,
};

/* How the content follows the header. */
enum plan_packing {
    PLAN_PACKING_LZ4 = 0, /* an LZ4 frame */
    PLAN_PACKING_NONE = 1,
};

/* Memory limit for a plan from a file of that length. */
static inline uint64_t plan_allowance(uint64_t file_bytes)
{
    uint64_t allowance = CW_PLAN_FILE_FREE_BYTES + CW_PLAN_FILE_FACTOR * file_bytes;
    return allowance < CW_PLAN_BYTES_MAX ? allowance : CW_PLAN_BYTES_MAX;
}

#define PLAN_MAGIC "CWPLAN\r\n"

/* The parts of an op that follow its kind and flags; absent parts are 0, or as in the op before. */
enum plan_op_parts {
    PLAN_OP_PHASE = 1, /* another phase than the op before */
    PLAN_OP_PEER = 2,  /* peer, counted from the own rank; tag */
    PLAN_OP_BODY = 4,  /* body_count, iterations */
    PLAN_OP_FROM = 8,  /* buffer, offset, step */
    PLAN_OP_TO = 16,
    PLAN_OP_BYTES = 32,
    PLAN_OP_LAST = 64,        /* last_bytes, where it is not bytes */
    PLAN_OP_BLOCKS = 128,     /* blocks, strides */
    PLAN_OP_TAG = 256,        /* a tag without a peer: barriers */
    PLAN_OP_HOST = 1024,      /* collective, root */
    PLAN_OP_ITERATIONS = 512, /* in a body: as its repeat has them, else 1 */
};
