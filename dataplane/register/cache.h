/* Registration cache: memory stays registered with a device for a while after its last use, so that another send from
 * the same buffer needs no registration.
 *
 * Invariants
 *   - No memory is unmapped while it is used: each cw_cache_get adds a user to an entry.
 *   - The mapping of an entry is that of the current memory: if its memory was freed (memory_watch.h), it gets no new
 *     users, and is unmapped after its last user.
 *   - Unused entries are bounded, in number and bytes, and make room for new ones; the least recently used one goes
 *     first.
 *   - Without a watch no unused entry is kept.
 *
 * Order of calls: cw_cache_init { cw_cache_get, cw_cache_put }* cw_cache_dispose. One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/register/mappings.h"
#include "dataplane/register/memory_watch.h"

enum { CW_CACHE_ENTRIES_MAX = 256 };
#define CW_CACHE_BYTES_MAX (UINT64_C(1) << 30)

struct cw_cached;

/* The functions that register memory with a device. */
struct cw_registrar {
    void *context;
    /* Registers pages; `kind` is set, and their addresses do not change. CW_OK; CW_ERROR_ARGUMENT: the device accepts
     * no such memory, even with room; CW_ERROR_BUSY; CW_ERROR_MEMORY; other errors of the device. */
    int (*add)(void *context, struct cw_pages *pages, uintptr_t first, uintptr_t end);
    /* Their memory has been freed, and their user continues for a while; NULL: no call. */
    void (*retire)(void *context, struct cw_pages *pages);
    void (*remove)(void *context, struct cw_pages *pages);
};

/* For a device that maps each page once: registrations share mappings, which must outlive the registrar. */
struct cw_registrar cw_registrar_of_mappings(struct cw_mappings *mappings);

struct cw_cache_counters {
    uint64_t registered; /* with the device */
    uint64_t found;      /* ... in the cache */
    uint64_t stale;      /* entries whose memory was freed */
    uint64_t evicted;
};

struct cw_cache {
    struct cw_registrar registrar;
    struct cw_memory_watch watch; /* zeroed: no watch */
    uintptr_t page_bytes;
    struct cw_cached *entries; /* the most recently used one is the first */
    uint32_t unused_count;
    uint64_t unused_bytes;
    struct cw_cache_counters counters;
};

/* The caller owns `watch`, which must outlive the cache. */
void cw_cache_init(struct cw_cache *cache, struct cw_registrar registrar, const struct cw_memory_watch *watch,
                   uintptr_t page_bytes);

/* Registers memory until cw_cache_put. The registrar defines kinds: only an entry of the same kind matches. For kind 0
 * any entry with the range matches, for others one of exactly those pages. CW_OK; CW_ERROR_BUSY: earlier memory of that
 * place is still used; CW_ERROR_MEMORY; errors of the registrar when no unused entry is left to make room. */
int cw_cache_get(struct cw_cache *cache, const void *base, size_t bytes, uint32_t kind, struct cw_cached **entry);
/* The pages that an entry has registered. */
const struct cw_pages *cw_cache_pages(const struct cw_cached *entry);
void cw_cache_put(struct cw_cache *cache, struct cw_cached *entry);

/* Unmaps unused entries, to make room in the device. False: there were none. */
bool cw_cache_trim(struct cw_cache *cache);

/* Unmaps all; no entry is used any more. */
void cw_cache_dispose(struct cw_cache *cache);
