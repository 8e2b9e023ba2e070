/* Pool: a fixed number of objects of one size, reserved at start-up.
 *
 * Invariant: memory that was never handed out is never touched, so a generous limit costs address space and nothing
 * else. Objects are handed out last-in first-out (they are still in the cache) and are not cleared. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cw_pool {
    uint8_t *base;
    void *free; /* chain through the objects' first word */
    uint32_t object_bytes;
    uint32_t count;
    uint32_t fresh; /* objects from here on were never handed out */
    uint32_t used;
};

/* Reserves `count` objects of `object_bytes` (rounded up to 64, which is also their alignment). CW_OK,
 * CW_ERROR_MEMORY. */
int cw_pool_init(struct cw_pool *pool, uint32_t count, uint32_t object_bytes);

/* Frees the memory; objects still out are gone with it. */
void cw_pool_dispose(struct cw_pool *pool);

static inline uint64_t cw_pool_bytes(const struct cw_pool *pool)
{
    return (uint64_t)pool->count * pool->object_bytes;
}

static inline uint32_t cw_pool_available(const struct cw_pool *pool)
{
    return pool->count - pool->used;
}

/* An object with undefined content, or NULL if all are out. */
static inline void *cw_pool_acquire(struct cw_pool *pool)
{
    void *object = pool->free;
    if (object != NULL) {
        memcpy(&pool->free, object, sizeof(void *));
    } else if (pool->fresh < pool->count) {
        object = pool->base + (size_t)pool->fresh++ * pool->object_bytes;
    } else {
        return NULL;
    }
    pool->used++;
    return object;
}

static inline void cw_pool_release(struct cw_pool *pool, void *object)
{
    assert(pool->used > 0);
    memcpy(object, &pool->free, sizeof(void *));
    pool->free = object;
    pool->used--;
}

static inline uint32_t cw_pool_index(const struct cw_pool *pool, const void *object)
{
    return (uint32_t)((size_t)((const uint8_t *)object - pool->base) / pool->object_bytes);
}

static inline void *cw_pool_at(const struct cw_pool *pool, uint32_t index)
{
    assert(index < pool->fresh);
    return pool->base + (size_t)index * pool->object_bytes;
}
