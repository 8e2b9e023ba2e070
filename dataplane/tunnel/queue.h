/* Tunnel queue: frames that wait for their stream, oldest first, bounded by bytes.
 *
 * Invariants
 *   - Frames count as they are on the line (with their 24 bytes of preamble, check sequence and gap), so a limit is a
 *     time at a rate. One frame always finds room.
 *   - The memory is taken at the start; a queue of limit L takes L and two longest frames.
 * Order of calls: cw_tunnel_queue_init, { put | front | pop }*, cw_tunnel_queue_dispose. One owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CW_TUNNEL_LINE_BYTES = 24 };

struct cw_tunnel_queue {
    uint8_t *memory;
    uint64_t room;        /* bytes of memory */
    uint64_t head;        /* offset of the oldest frame */
    uint64_t tail;        /* ... of the next one to come */
    uint64_t limit_bytes; /* on the line */
    uint64_t bytes;       /* the same for all waiting frames */
    uint32_t frames;
};

/* `frame_bytes_max`: no longer frame will come. CW_OK, CW_ERROR_MEMORY. */
int cw_tunnel_queue_init(struct cw_tunnel_queue *queue, uint64_t limit_bytes, uint32_t frame_bytes_max);
void cw_tunnel_queue_dispose(struct cw_tunnel_queue *queue);

/* Copies the frame behind the others. False: the queue is full. */
bool cw_tunnel_queue_put(struct cw_tunnel_queue *queue, uint64_t now_ns, const uint8_t *frame, uint32_t length);

/* The oldest frame, which stays; `*since_ns`: when it came. NULL: none. */
const uint8_t *cw_tunnel_queue_front(const struct cw_tunnel_queue *queue, uint32_t *length, uint64_t *since_ns);

/* Removes the oldest frame; there is one. */
void cw_tunnel_queue_pop(struct cw_tunnel_queue *queue);
