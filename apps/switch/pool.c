#include "apps/switch/pool.h"

#include <assert.h>
#include <stddef.h>
#include <sys/mman.h>

#include "dataplane/fabric/link.h"
#include "dataplane/limits.h"
#include "dataplane/status.h"

/* Of the slots, in bytes: some 3.5 times each. */
static const uint32_t strides[SWITCH_POOL_SIZES] = {192, 640, 2048, 9728};

enum { SLOTS_MIN = 1024 };

static_assert(offsetof(struct switch_frame, data) == 32, "the part before a frame is half a cache line");

/* The fewest bytes that a frame of this size takes on the line. */
static uint64_t line_bytes_min(uint32_t size)
{
    uint32_t frame_bytes = size == 0 ? (uint32_t)SWITCH_POOL_FRAME_MIN
                                     : strides[size - 1] - (uint32_t)offsetof(struct switch_frame, data) + 1;
    return frame_bytes + CW_ETHERNET_OVERHEAD_BYTES;
}

/* Address space for this number of bytes on the lines. */
static uint64_t pool_bytes(uint64_t line_bytes)
{
    uint64_t bytes = 0;
    for (uint32_t size = 0; size < SWITCH_POOL_SIZES; size++) {
        bytes += (line_bytes / line_bytes_min(size) + SLOTS_MIN) * strides[size];
    }
    return bytes;
}

int switch_pool_open(struct switch_pool *pool, uint64_t line_bytes, uint32_t frame_bytes_max)
{
    *pool = (struct switch_pool){.line_bytes = line_bytes};
    while (pool_bytes(pool->line_bytes) > SWITCH_POOL_BYTES_MAX) {
        pool->line_bytes -= pool->line_bytes / 64;
    }
    assert(frame_bytes_max <= strides[SWITCH_POOL_SIZES - 1] - offsetof(struct switch_frame, data));
    for (uint32_t size = 0; size < SWITCH_POOL_SIZES; size++) {
        struct switch_pool_slots *slots = &pool->slots[size];
        slots->stride = strides[size];
        slots->data_bytes = strides[size] - (uint32_t)offsetof(struct switch_frame, data);
        if (size > 0 && slots[-1].data_bytes >= frame_bytes_max) {
            continue;
        }
        slots->count = pool->line_bytes / line_bytes_min(size) + SLOTS_MIN;
        void *memory = mmap(NULL, slots->count * slots->stride, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            switch_pool_close(pool);
            return CW_ERROR_MEMORY;
        }
        slots->memory = memory;
    }
    return CW_OK;
}

void switch_pool_close(struct switch_pool *pool)
{
    for (uint32_t size = 0; size < SWITCH_POOL_SIZES; size++) {
        if (pool->slots[size].memory != NULL) {
            munmap(pool->slots[size].memory, pool->slots[size].count * pool->slots[size].stride);
        }
    }
    *pool = (struct switch_pool){.line_bytes = 0};
}

struct switch_frame *switch_pool_acquire(struct switch_pool *pool, uint32_t length)
{
    uint8_t size = 0;
    while (length > pool->slots[size].data_bytes) {
        size++;
    }
    struct switch_pool_slots *slots = &pool->slots[size];
    struct switch_frame *frame = slots->free;
    if (frame != NULL) {
        slots->free = frame->next;
    } else if (slots->touched < slots->count) {
        frame = (struct switch_frame *)(void *)(slots->memory + slots->touched++ * slots->stride);
        frame->size = size;
    } else {
        return NULL;
    }
    frame->length = length;
    return frame;
}

void switch_pool_release(struct switch_pool *pool, struct switch_frame *frame)
{
    struct switch_pool_slots *slots = &pool->slots[frame->size];
    frame->next = slots->free;
    slots->free = frame;
}
