/* Shared by emit.c and emit_message.c: the op under construction, which is always the last one. */
#pragma once

#include "collectives/schedule/emit.h"

enum {
    EMIT_NUMBERS_MAX = (1 << CW_SCHEDULE_TAG_BITS) / CW_TAG_STEP, /* per kind of tag */
    EMIT_SIGNALS_MAX = EMIT_NUMBERS_MAX / 2,                      /* the upper half is for barriers (execute.c) */
};

/* The list with room for one more entry; NULL after a failure, or if it has `limit` entries. */
void *emit_list_grow(struct cw_emit *emit, void *list, uint32_t count, uint32_t *capacity, size_t entry_bytes,
                     uint32_t limit, const char *limit_reason);

/* Opens an op of `bytes` (in a body: a segment), with the dependencies asked for by cw_emit_after. NULL after a
 * failure. */
struct cw_op *emit_op_open(struct cw_emit *emit, enum cw_op_kind kind, uint64_t bytes);

/* Its index; CW_NO_OP after a failure. */
uint32_t emit_op_close(struct cw_emit *emit);

struct cw_op *emit_op_last(struct cw_emit *emit);

void emit_dependency_add(struct cw_emit *emit, uint32_t on, uint16_t flags);
/* The same even if the op depends on that one already. False after a failure. */
bool emit_dependency_append(struct cw_emit *emit, uint32_t on, uint16_t back, uint16_t flags);
void emit_after_add(struct cw_emit *emit, uint32_t op, uint32_t flags);

/* The open op touches `place` with all its bytes, in all iterations. */
void emit_access_op(struct cw_emit *emit, struct cw_place place, bool write);

/* ... touches `bytes` at `place`; not to be remembered unless `record`. */
void emit_access_bytes(struct cw_emit *emit, struct cw_place place, uint64_t bytes, bool write, bool record);

/* The group of these ranks without this one; an index, of anything after a failure. */
uint32_t emit_group_add(struct cw_emit *emit, const uint32_t *members, uint32_t count);

/* The next tag from this rank to another, or back. */
uint32_t emit_tag_out(struct cw_emit *emit, uint32_t rank, enum cw_tag_kind kind);
uint32_t emit_tag_in(struct cw_emit *emit, uint32_t rank, enum cw_tag_kind kind);
