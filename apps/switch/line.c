#include "apps/switch/line.h"

#include <assert.h>

#define RATE_UNLIMITED_BPS 10000000000ull

enum { QUEUE_BYTES_UNLIMITED = 16 << 20 /* a queue without limit has room for so much */ };

void switch_line_init(struct switch_line *line, enum switch_line_kind kind, uint32_t index,
                      const struct cw_link_config *link, uint64_t seed)
{
    *line = (struct switch_line){.kind = kind, .index = index, .name = "", .position = CW_HEAP_OUT};
    cw_link_init(&line->link, link, seed);
}

bool switch_line_offer(struct switch_line *line, uint64_t time_ns, uint32_t length, enum cw_link_fate *fate,
                       uint64_t *arrival_ns)
{
    struct cw_link_verdict verdict;
    line->offer_ns = time_ns > line->offer_ns ? time_ns : line->offer_ns;
    cw_link_offer(&line->link, line->offer_ns, length, &verdict);
    *fate = verdict.fate;
    if (verdict.delivery_count == 0) {
        return false;
    }
    assert(verdict.delivery_count == 1 && "no line duplicates");
    uint64_t due_ns = verdict.deliveries[0].arrival_ns;
    line->arrival_ns = due_ns > line->arrival_ns ? due_ns : line->arrival_ns;
    *arrival_ns = line->arrival_ns;
    return true;
}

static void heap_enter(struct switch_line *line, struct cw_heap *heap)
{
    struct cw_heap_entry entry = {
        .time_ns = line->first->arrival_ns, .sequence = line->index, .object = line, .position = &line->position};
    bool pushed = cw_heap_push(heap, &entry, true);
    assert(pushed && "the heap has room for all lines");
    (void)pushed;
}

void switch_line_hold(struct switch_line *line, struct switch_frame *frame, struct cw_heap *heap)
{
    frame->next = NULL;
    line->held++;
    if (line->first != NULL) {
        line->last->next = frame;
        line->last = frame;
        return;
    }
    line->first = frame;
    line->last = frame;
    heap_enter(line, heap);
}

struct switch_frame *switch_line_next(struct cw_heap *heap, struct switch_line **line_out)
{
    struct switch_line *line = cw_heap_remove(heap, 0, true).object;
    struct switch_frame *frame = line->first;
    line->first = frame->next;
    line->held--;
    if (line->first != NULL) {
        heap_enter(line, heap);
    }
    *line_out = line;
    return frame;
}

uint64_t switch_line_bytes(const struct cw_link_config *link)
{
    if (link->rate_bps == 0 && link->delay_ns == 0) {
        return 0;
    }
    double rate_bps = (double)(link->rate_bps != 0 ? link->rate_bps : RATE_UNLIMITED_BPS);
    double line_bytes = rate_bps / 8e9 * (double)link->delay_ns;
    uint64_t queue_bytes = link->queue_limit_bytes != 0 ? link->queue_limit_bytes : (uint64_t)QUEUE_BYTES_UNLIMITED;
    line_bytes += (double)(link->rate_bps != 0 ? queue_bytes : 0);
    return line_bytes > 1e12 ? (uint64_t)1e12 : (uint64_t)line_bytes;
}
