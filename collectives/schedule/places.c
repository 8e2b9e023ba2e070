/* Where the ops of a schedule read and write: within the buffers, and not over each other. */
#include <stdarg.h>
#include <stdio.h>

#include "collectives/schedule/validate.h"
#include "dataplane/status.h"

int validation_reject(const struct validation *validation, const char *format, ...)
{
    const struct cw_schedule *schedule = validation->schedule;
    va_list arguments;
    char where[64] = "";
    char reason[200];
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    if (validation->index != VALIDATION_NO_OP) {
        snprintf(where, sizeof(where), ", op %u (%s)", validation->index,
                 cw_op_kind_name(schedule->ops[validation->index].kind));
    }
    snprintf(validation->error, validation->error_bytes, "rank %u%s: %s", schedule->rank, where, reason);
    return CW_ERROR_ARGUMENT;
}

/* Where a row of pieces ends: all of `bytes`, the last of `last_bytes`, `stride` apart. False: beyond any buffer. */
static bool row_end(uint64_t offset, uint64_t stride, uint32_t count, uint64_t bytes, uint64_t last_bytes,
                    uint64_t *end)
{
    if (offset > CW_BUFFER_BYTES_MAX || (count > 1 && stride > CW_BUFFER_BYTES_MAX / (count - 1))) {
        return false;
    }
    *end = offset + stride * (count - 1) + last_bytes;
    if (count > 1) {
        uint64_t before = offset + stride * (count - 2) + bytes;
        *end = before > *end ? before : *end;
    }
    return *end <= CW_BUFFER_BYTES_MAX;
}

int validation_place(const struct validation *validation, const char *name, const struct cw_place *place,
                     uint64_t stride, bool here)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    if (place->buffer != CW_BUFFER_SEND && place->buffer != CW_BUFFER_RECEIVE && place->buffer != CW_BUFFER_SCRATCH) {
        return validation_reject(validation, "`%s` is in no buffer (%u)", name, (unsigned)place->buffer);
    }
    bool in_body = validation->repeat != VALIDATION_NO_OP;
    if ((!in_body && place->step != 0) || place->step > CW_BUFFER_BYTES_MAX) {
        return validation_reject(validation, "`%s` has a step of %llu bytes%s", name, (unsigned long long)place->step,
                                 in_body ? "" : " outside a body");
    }
    uint64_t end = 0;
    if (!row_end(place->offset, in_body ? place->step : stride, in_body ? op->iterations : op->blocks, op->bytes,
                 op->last_bytes, &end)) {
        return validation_reject(validation, "`%s` ends beyond any buffer", name);
    }
    uint64_t size = CW_BUFFER_BYTES_MAX;
    if (here && validation->buffer_bytes != NULL) {
        size = validation->buffer_bytes[place->buffer];
    }
    if (here && place->buffer == CW_BUFFER_SCRATCH && size > validation->schedule->scratch_bytes) {
        size = validation->schedule->scratch_bytes;
    }
    if (end > size) {
        return validation_reject(validation, "`%s` ends at byte %llu of the %s buffer, which has %llu", name,
                                 (unsigned long long)end, cw_buffer_name(place->buffer), (unsigned long long)size);
    }
    return CW_OK;
}

int validation_written(const struct validation *validation, const struct cw_place *place, uint64_t stride, bool here)
{
    int status = validation_place(validation, "to", place, stride, here);
    if (status == CW_OK && place->buffer == CW_BUFFER_SEND) {
        return validation_reject(validation, "`to` is in the send buffer, which is never written");
    }
    return status;
}

int validation_unused(const struct validation *validation, const char *name, const struct cw_place *place)
{
    if (place->buffer != CW_BUFFER_NONE || place->offset != 0 || place->step != 0) {
        return validation_reject(validation, "has no use for `%s`", name);
    }
    return CW_OK;
}

int validation_host_place(const struct validation *validation, const char *name, const struct cw_place *place,
                          uint64_t blocks, bool is_written)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    bool is_whole = (op->flags & CW_OP_WHOLE) != 0;
    if (blocks == 0 || (op->bytes == 0 && !is_whole)) {
        return validation_unused(validation, name, place);
    }
    if (is_whole) {
        enum cw_buffer buffer = is_written ? CW_BUFFER_RECEIVE : CW_BUFFER_SEND;
        return place->buffer == buffer && place->offset == 0 && place->step == 0
                   ? CW_OK
                   : validation_reject(validation, "`%s` is not the beginning of the %s buffer", name,
                                       cw_buffer_name(buffer));
    }
    if (is_written && place->buffer == CW_BUFFER_SEND) {
        return validation_reject(validation, "`to` is in the send buffer, which is never written");
    }
    if (place->buffer != CW_BUFFER_SEND && place->buffer != CW_BUFFER_RECEIVE && place->buffer != CW_BUFFER_SCRATCH) {
        return validation_reject(validation, "`%s` is in no buffer (%u)", name, (unsigned)place->buffer);
    }
    uint64_t size = place->buffer == CW_BUFFER_SCRATCH ? validation->schedule->scratch_bytes
                    : validation->buffer_bytes != NULL ? validation->buffer_bytes[place->buffer]
                                                       : CW_BUFFER_BYTES_MAX;
    if (op->bytes > CW_BUFFER_BYTES_MAX / blocks || place->step != 0 || place->offset > size ||
        blocks * op->bytes > size - place->offset) {
        return validation_reject(validation, "`%s` ends beyond the %s buffer, which has %llu bytes", name,
                                 cw_buffer_name(place->buffer), (unsigned long long)size);
    }
    return CW_OK;
}

/* Whether [0, bytes) and [distance, distance + bytes) share a byte. */
static bool near(int64_t distance, uint64_t bytes)
{
    return (uint64_t)(distance < 0 ? -distance : distance) < bytes;
}

/* Whether `from` and `to` share a byte in the same iteration. The distance grows evenly, so it is smallest next to its
 * zero. */
static bool overlaps_in_body(const struct cw_op *op)
{
    int64_t distance = (int64_t)op->to.offset - (int64_t)op->from.offset;
    int64_t growth = (int64_t)op->to.step - (int64_t)op->from.step;
    int64_t last = (int64_t)op->iterations - 1;
    if (near(distance + growth * last, op->last_bytes)) {
        return true;
    }
    if (last == 0) {
        return false;
    }
    int64_t zero = growth == 0 ? 0 : -distance / growth;
    for (int64_t i = zero - 1; i <= zero + 1; i++) {
        int64_t iteration = i < 0 ? 0 : i > last - 1 ? last - 1 : i;
        if (near(distance + growth * iteration, op->bytes)) {
            return true;
        }
    }
    return false;
}

/* Blocks of equal strides may lie between each other; any other mixture in one range counts as an overlap. */
static bool overlaps_strided(const struct cw_op *op)
{
    uint64_t from_end = op->from.offset + op->from_stride * (op->blocks - 1) + op->last_bytes;
    uint64_t to_end = op->to.offset + op->to_stride * (op->blocks - 1) + op->last_bytes;
    if (from_end <= op->to.offset || to_end <= op->from.offset) {
        return false;
    }
    uint64_t stride = op->from_stride;
    if (stride != op->to_stride || stride == 0) {
        return true;
    }
    uint64_t distance = (op->to.offset % stride + stride - op->from.offset % stride) % stride;
    return distance < op->bytes || stride - distance < op->bytes;
}

int validation_local(const struct validation *validation)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    int status = validation_place(validation, "from", &op->from, op->from_stride, true);
    if (status == CW_OK) {
        status = validation_written(validation, &op->to, op->to_stride, true);
    }
    if (status != CW_OK) {
        return status;
    }
    if (op->blocks > 1 && op->to_stride < op->bytes) {
        return validation_reject(validation, "its blocks overlap where they are written");
    }
    if (op->from.buffer == op->to.buffer && (op->blocks > 1 ? overlaps_strided(op) : overlaps_in_body(op))) {
        return validation_reject(validation, "`from` and `to` overlap");
    }
    return CW_OK;
}
