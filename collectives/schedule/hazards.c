#include "collectives/schedule/hazards.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void cw_hazards_dispose(struct cw_hazards *hazards)
{
    for (uint32_t i = 0; i < 4; i++) {
        free(hazards->buffers[i].segments);
    }
    free(hazards->readers);
    memset(hazards, 0, sizeof(*hazards));
}

/* The first segment that ends after `begin`. */
static uint32_t segment_find(const struct cw_hazard_buffer *buffer, uint64_t begin)
{
    uint32_t low = 0;
    uint32_t high = buffer->count;
    if (high > 0 && buffer->segments[high - 1].end <= begin) {
        return high; /* most ops append */
    }
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (buffer->segments[middle].end <= begin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool segment_insert(struct cw_hazard_buffer *buffer, uint32_t at, struct cw_hazard_segment segment)
{
    if (buffer->count == buffer->capacity) {
        uint32_t capacity = buffer->capacity == 0 ? 16 : buffer->capacity * 2;
        struct cw_hazard_segment *segments = realloc(buffer->segments, capacity * sizeof(*segments));
        if (segments == NULL) {
            return false;
        }
        buffer->segments = segments;
        buffer->capacity = capacity;
    }
    memmove(&buffer->segments[at + 1], &buffer->segments[at], (buffer->count - at) * sizeof(segment));
    buffer->segments[at] = segment;
    buffer->count++;
    return true;
}

/* Cuts the segment at index `at` in two at byte `cut`, which lies inside it. */
static bool segment_cut(struct cw_hazard_buffer *buffer, uint32_t at, uint64_t cut)
{
    struct cw_hazard_segment left = buffer->segments[at];
    assert(left.begin < cut && cut < left.end);
    left.end = cut;
    buffer->segments[at].begin = cut;
    return segment_insert(buffer, at, left);
}

static void segment_visit(const struct cw_hazards *hazards, const struct cw_hazard_segment *segment, bool write,
                          cw_hazard_visit visit, void *context)
{
    if (write && segment->readers != CW_HAZARD_NONE) {
        /* every reader has waited for the writer */
        for (uint32_t i = segment->readers; i != CW_HAZARD_NONE; i = hazards->readers[i].next) {
            visit(context, hazards->readers[i].op);
        }
    } else if (segment->writer != CW_HAZARD_NONE) {
        visit(context, segment->writer);
    }
}

static bool reader_add(struct cw_hazards *hazards, struct cw_hazard_segment *segment, uint32_t op)
{
    if (hazards->reader_count == hazards->reader_capacity) {
        uint32_t capacity = hazards->reader_capacity == 0 ? 16 : hazards->reader_capacity * 2;
        struct cw_hazard_reader *readers = realloc(hazards->readers, capacity * sizeof(*readers));
        if (readers == NULL) {
            return false;
        }
        hazards->readers = readers;
        hazards->reader_capacity = capacity;
    }
    hazards->readers[hazards->reader_count] = (struct cw_hazard_reader){op, segment->readers};
    segment->readers = hazards->reader_count++;
    return true;
}

/* Makes [begin, end) whole segments: cuts segments at its ends and fills the gaps. *first and *past are the range of
 * indices. */
static bool segments_cover(struct cw_hazard_buffer *buffer, uint64_t begin, uint64_t end, uint32_t *first,
                           uint32_t *past)
{
    uint32_t at = segment_find(buffer, begin);
    if (at < buffer->count && buffer->segments[at].begin < begin) {
        if (!segment_cut(buffer, at, begin)) {
            return false;
        }
        at++;
    }
    *first = at;
    uint64_t position = begin;
    while (position < end) {
        if (at == buffer->count || buffer->segments[at].begin > position) {
            uint64_t gap_end =
                at < buffer->count && buffer->segments[at].begin < end ? buffer->segments[at].begin : end;
            struct cw_hazard_segment gap = {position, gap_end, CW_HAZARD_NONE, CW_HAZARD_NONE};
            if (!segment_insert(buffer, at, gap)) {
                return false;
            }
        } else if (buffer->segments[at].end > end && !segment_cut(buffer, at, end)) {
            return false;
        }
        position = buffer->segments[at].end;
        at++;
    }
    *past = at;
    return true;
}

/* After a write the whole range has one history: one segment is enough. */
static void segments_merge(struct cw_hazard_buffer *buffer, uint32_t first, uint32_t past, uint32_t op)
{
    struct cw_hazard_segment *segment = &buffer->segments[first];
    segment->end = buffer->segments[past - 1].end;
    segment->writer = op;
    segment->readers = CW_HAZARD_NONE;
    memmove(segment + 1, &buffer->segments[past], (buffer->count - past) * sizeof(*segment));
    buffer->count -= past - first - 1;
}

bool cw_hazards_access(struct cw_hazards *hazards, uint32_t buffer_index, uint64_t begin, uint64_t end, bool write,
                       uint32_t op, bool record, cw_hazard_visit visit, void *context)
{
    struct cw_hazard_buffer *buffer = &hazards->buffers[buffer_index];
    if (begin == end) {
        return true;
    }
    for (uint32_t i = segment_find(buffer, begin); i < buffer->count && buffer->segments[i].begin < end; i++) {
        segment_visit(hazards, &buffer->segments[i], write, visit, context);
    }
    if (!record) {
        return true;
    }
    uint32_t first;
    uint32_t past;
    if (!segments_cover(buffer, begin, end, &first, &past)) {
        return false;
    }
    if (write) {
        segments_merge(buffer, first, past, op);
        return true;
    }
    for (uint32_t i = first; i < past; i++) {
        if (!reader_add(hazards, &buffer->segments[i], op)) {
            return false;
        }
    }
    return true;
}
