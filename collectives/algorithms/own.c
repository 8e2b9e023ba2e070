#include "collectives/algorithms/own.h"

#include <stdlib.h>

#include "dataplane/status.h"

const struct cw_algorithm cw_own_algorithm = {.name = "pairs"};

static struct cw_op op_of(enum cw_op_kind kind, uint32_t peer, uint64_t bytes)
{
    return (struct cw_op){
        .kind = (uint8_t)kind,
        .flags = kind == CW_OP_COPY ? 0 : CW_OP_EAGER,
        .peer = peer,
        .tag = CW_TAG_DATA,
        .iterations = 1,
        .blocks = 1,
        .bytes = bytes,
        .last_bytes = bytes,
    };
}

int cw_own_build(uint32_t rank, uint32_t ranks, const struct cw_own_block *sends, const struct cw_own_block *receives,
                 struct cw_schedule *schedule)
{
    struct cw_op *ops = calloc(2 * (size_t)ranks, sizeof(*ops));
    uint32_t count = 0;
    if (ops == NULL) {
        return CW_ERROR_MEMORY;
    }
    uint64_t own = sends[rank].bytes < receives[rank].bytes ? sends[rank].bytes : receives[rank].bytes;
    if (own > 0) {
        ops[count] = op_of(CW_OP_COPY, 0, own);
        ops[count].from = (struct cw_place){CW_BUFFER_SEND, sends[rank].offset, 0};
        ops[count++].to = (struct cw_place){CW_BUFFER_RECEIVE, receives[rank].offset, 0};
    }
    for (uint32_t step = 1; step < ranks; step++) { /* waits first: then early puts need no memory */
        uint32_t from = (rank + ranks - step) % ranks;
        if (receives[from].bytes > 0) {
            ops[count] = op_of(CW_OP_WAIT, from, receives[from].bytes);
            ops[count++].to = (struct cw_place){CW_BUFFER_RECEIVE, receives[from].offset, 0};
        }
    }
    for (uint32_t step = 1; step < ranks; step++) {
        uint32_t to = (rank + step) % ranks;
        if (sends[to].bytes > 0) {
            ops[count] = op_of(CW_OP_PUT, to, sends[to].bytes);
            ops[count++].from = (struct cw_place){CW_BUFFER_SEND, sends[to].offset, 0};
        }
    }
    *schedule = (struct cw_schedule){.rank = rank, .op_count = count, .promise = {.wan_bytes = UINT64_MAX}, .ops = ops};
    return CW_OK;
}
