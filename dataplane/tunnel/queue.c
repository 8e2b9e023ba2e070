#include "dataplane/tunnel/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

/* In front of each frame; a length of 0 says that the next frame is at the beginning of the memory. At most a frame's
 * size on the line, except for the rounding. */
struct entry {
    uint64_t since_ns;
    uint32_t length;
    uint32_t reserved;
};

static_assert(sizeof(struct entry) + 8 <= CW_TUNNEL_LINE_BYTES,
              "frames that fit by their bytes on the line fit the memory");

static uint64_t entry_bytes(uint32_t length)
{
    return (sizeof(struct entry) + length + 7) & ~7ull;
}

static struct entry *entry_at(const struct cw_tunnel_queue *queue, uint64_t offset)
{
    return (struct entry *)(void *)(queue->memory + offset);
}

int cw_tunnel_queue_init(struct cw_tunnel_queue *queue, uint64_t limit_bytes, uint32_t frame_bytes_max)
{
    /* at the end there may be no room for a frame, and tail must not come up to head */
    uint64_t room = ((limit_bytes + 7) & ~7ull) + 3 * entry_bytes(frame_bytes_max);
    *queue = (struct cw_tunnel_queue){.memory = malloc(room), .room = room, .limit_bytes = limit_bytes};
    return queue->memory != NULL ? CW_OK : CW_ERROR_MEMORY;
}

void cw_tunnel_queue_dispose(struct cw_tunnel_queue *queue)
{
    free(queue->memory);
    *queue = (struct cw_tunnel_queue){.memory = NULL};
}

bool cw_tunnel_queue_put(struct cw_tunnel_queue *queue, uint64_t now_ns, const uint8_t *frame, uint32_t length)
{
    uint64_t line_bytes = (uint64_t)length + CW_TUNNEL_LINE_BYTES;
    if (queue->frames > 0 && queue->bytes + line_bytes > queue->limit_bytes) {
        return false;
    }
    if (queue->frames == 0) {
        queue->head = queue->tail = 0; /* memory that is still in the cache */
    }
    if (queue->tail + entry_bytes(length) > queue->room) {
        if (queue->tail + sizeof(struct entry) <= queue->room) {
            entry_at(queue, queue->tail)->length = 0;
        }
        queue->tail = 0;
    }
    struct entry *entry = entry_at(queue, queue->tail);
    *entry = (struct entry){.since_ns = now_ns, .length = length};
    memcpy(entry + 1, frame, length);
    queue->tail += entry_bytes(length);
    queue->bytes += line_bytes;
    queue->frames++;
    return true;
}

static const struct entry *front(const struct cw_tunnel_queue *queue)
{
    bool is_over = queue->head + sizeof(struct entry) > queue->room || entry_at(queue, queue->head)->length == 0;
    return entry_at(queue, is_over ? 0 : queue->head);
}

const uint8_t *cw_tunnel_queue_front(const struct cw_tunnel_queue *queue, uint32_t *length, uint64_t *since_ns)
{
    if (queue->frames == 0) {
        return NULL;
    }
    const struct entry *entry = front(queue);
    *length = entry->length;
    *since_ns = entry->since_ns;
    return (const uint8_t *)(entry + 1);
}

void cw_tunnel_queue_pop(struct cw_tunnel_queue *queue)
{
    assert(queue->frames > 0);
    const struct entry *entry = front(queue);
    queue->head = (uint64_t)((const uint8_t *)entry - queue->memory) + entry_bytes(entry->length);
    queue->bytes -= (uint64_t)entry->length + CW_TUNNEL_LINE_BYTES;
    queue->frames--;
}
