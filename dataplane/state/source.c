#include "dataplane/state/source.h"

#include <assert.h>
#include <string.h>

#include "dataplane/wire/wire.h"

bool cw_source_measure(const struct cw_source *source, uint64_t *bytes)
{
    uint64_t total = 0;
    if ((unsigned)source->element > CW_ELEMENT_PLAIN) {
        return false;
    }
    switch (source->kind) {
    case CW_SOURCE_CONTIGUOUS:
        if (source->contiguous.bytes > 0 && source->contiguous.data == NULL) {
            return false;
        }
        total = source->contiguous.bytes;
        break;
    case CW_SOURCE_STRIDED:
        if (__builtin_mul_overflow(source->strided.block_bytes, source->strided.block_count, &total) ||
            (total > 0 && source->strided.data == NULL)) {
            return false;
        }
        break;
    case CW_SOURCE_SLICES:
        if (source->slices.count > CW_SLICES_MAX || (source->slices.count > 0 && source->slices.list == NULL)) {
            return false;
        }
        for (uint64_t i = 0; i < source->slices.count; i++) {
            const struct cw_slice *slice = &source->slices.list[i];
            if ((slice->bytes > 0 && slice->data == NULL) || __builtin_add_overflow(total, slice->bytes, &total)) {
                return false;
            }
        }
        break;
    default:
        return false;
    }
    if (total > INT64_MAX) {
        return false;
    }
    *bytes = total;
    return true;
}

static bool run_within(const void *data, uint64_t bytes, const void *base, uint64_t base_bytes)
{
    uintptr_t first = (uintptr_t)data;
    uintptr_t start = (uintptr_t)base;
    return bytes == 0 || (first >= start && first - start <= base_bytes && bytes <= base_bytes - (first - start));
}

bool cw_source_within(const struct cw_source *source, const void *base, uint64_t bytes)
{
    switch (source->kind) {
    case CW_SOURCE_CONTIGUOUS:
        return run_within(source->contiguous.data, source->contiguous.bytes, base, bytes);
    case CW_SOURCE_STRIDED: {
        if (source->strided.block_count == 0) {
            return true;
        }
        /* the first and the last block bound the rest */
        int64_t last;
        if (__builtin_mul_overflow(source->strided.stride_bytes, (int64_t)(source->strided.block_count - 1), &last)) {
            return false;
        }
        const uint8_t *first_block = source->strided.data;
        const void *last_block = (const void *)((uintptr_t)first_block + (uintptr_t)last);
        return run_within(first_block, source->strided.block_bytes, base, bytes) &&
               run_within(last_block, source->strided.block_bytes, base, bytes);
    }
    case CW_SOURCE_SLICES:
        for (uint64_t i = 0; i < source->slices.count; i++) {
            if (!run_within(source->slices.list[i].data, source->slices.list[i].bytes, base, bytes)) {
                return false;
            }
        }
        return true;
    }
    return false;
}

static inline uint32_t at_most(uint64_t bytes, uint32_t bytes_max)
{
    return bytes < bytes_max ? (uint32_t)bytes : bytes_max;
}

uint32_t cw_source_run(const struct cw_source *source, struct cw_source_cursor *cursor, uint64_t position,
                       uint32_t bytes_max, const void **data)
{
    if (source->kind == CW_SOURCE_CONTIGUOUS) {
        assert(position < source->contiguous.bytes);
        *data = (const uint8_t *)source->contiguous.data + position;
        return at_most(source->contiguous.bytes - position, bytes_max);
    }
    if (source->kind == CW_SOURCE_STRIDED) {
        uint64_t block = position / source->strided.block_bytes;
        uint64_t within = position % source->strided.block_bytes;
        assert(block < source->strided.block_count);
        *data = (const uint8_t *)source->strided.data + (int64_t)block * source->strided.stride_bytes + within;
        return at_most(source->strided.block_bytes - within, bytes_max);
    }
    if (position < cursor->start) {
        *cursor = (struct cw_source_cursor){0};
    }
    const struct cw_slice *list = source->slices.list;
    while (position - cursor->start >= list[cursor->slice].bytes) {
        cursor->start += list[cursor->slice].bytes;
        cursor->slice++;
        assert(cursor->slice < source->slices.count);
    }
    uint64_t within = position - cursor->start;
    *data = (const uint8_t *)list[cursor->slice].data + within;
    return at_most(list[cursor->slice].bytes - within, bytes_max);
}

void cw_source_copy(const struct cw_source *source, struct cw_source_cursor *cursor, uint64_t position, uint32_t bytes,
                    void *target, uint32_t *checksum)
{
    uint8_t *out = target;
    while (bytes > 0) {
        const void *data;
        uint32_t run = cw_source_run(source, cursor, position, bytes, &data);
        if (checksum != NULL) {
            *checksum = cw_wire_checksum_copy(*checksum, out, data, run);
        } else {
            memcpy(out, data, run);
        }
        out += run;
        position += run;
        bytes -= run;
    }
}
