#include "dataplane/base/pool.h"

#include <sys/mman.h>

#include "dataplane/status.h"

int cw_pool_init(struct cw_pool *pool, uint32_t count, uint32_t object_bytes)
{
    memset(pool, 0, sizeof(*pool));
    pool->object_bytes = (object_bytes + 63u) & ~63u;
    pool->count = count;
    if (count == 0) {
        return CW_OK;
    }
    void *base =
        mmap(NULL, cw_pool_bytes(pool), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        pool->count = 0;
        return CW_ERROR_MEMORY;
    }
    pool->base = base;
    return CW_OK;
}

void cw_pool_dispose(struct cw_pool *pool)
{
    if (pool->base != NULL) {
        munmap(pool->base, cw_pool_bytes(pool));
    }
    memset(pool, 0, sizeof(*pool));
}
