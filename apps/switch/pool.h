/* Switch pool: room for the frames that are on their way, in slots of a few sizes.
 *
 * Invariants
 *  - There is room for all frames on the lines and in their queues, for any sizes of frames from SWITCH_POOL_FRAME_MIN
 *    bytes on: each size of slot alone has room for all of it. A frame that finds no slot of its size takes none: the
 *    caller counts it.
 *  - Slots are address space until they are used, and are reused before new ones are touched: the resident size is the
 *    maximum that was ever in flight at once.
 *
 * Order of calls: switch_pool_open, { switch_pool_acquire | switch_pool_release }*, switch_pool_close. One thread. */
#pragma once

#include <stdint.h>

enum {
    SWITCH_POOL_SIZES = 4,
    SWITCH_POOL_FRAME_MIN = 60, /* Ethernet's shortest, without its check sequence; shorter ones count as such */
};

/* Address space for all slots: some 8 bytes for each byte on the lines. */
#define SWITCH_POOL_BYTES_MAX (8ull << 30)

/* A frame in flight, with the notes of the pool, its line and its route. */
struct switch_frame {
    struct switch_frame *next; /* behind it on the line; free: the next free one */
    uint64_t arrival_ns;
    uint32_t length;
    uint16_t port;       /* it has come in by, or goes out of */
    uint8_t clusters[2]; /* across the wide area: from, to */
    uint8_t hop;         /* of its route */
    uint8_t size;        /* of the slot */
    uint8_t reserved[6];
    uint8_t data[];
};

struct switch_pool_slots {
    uint32_t data_bytes; /* room for a frame */
    uint32_t stride;
    uint64_t count;
    uint64_t touched;
    struct switch_frame *free;
    uint8_t *memory;
};

struct switch_pool {
    uint64_t line_bytes; /* room on the lines, for frames with the overhead of Ethernet */
    struct switch_pool_slots slots[SWITCH_POOL_SIZES];
};

/* Room for `line_bytes` on the lines, or as many as SWITCH_POOL_BYTES_MAX allows (pool->line_bytes tells), of frames of
 * up to `frame_bytes_max` (<= 9,640). CW_OK or CW_ERROR_MEMORY. */
int switch_pool_open(struct switch_pool *pool, uint64_t line_bytes, uint32_t frame_bytes_max);

/* A zeroed one is allowed. */
void switch_pool_close(struct switch_pool *pool);

/* A slot for a frame of `length` bytes, which is set; NULL: there is none left. */
struct switch_frame *switch_pool_acquire(struct switch_pool *pool, uint32_t length);
void switch_pool_release(struct switch_pool *pool, struct switch_frame *frame);
