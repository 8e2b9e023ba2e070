/* Registration cache: memory that a device reaches stays registered for a while after its last use, so that whoever
 * sends from the same buffer again registers nothing.
 *
 * Invariants
 *   - Nothing is unmapped while it is used: an entry has as many users as cw_cache_get has given it.
 *   - What is given is mapped as the system has the memory now: an entry whose memory was given back since
 *     (memory_watch.h) is given to nobody any more, and unmapped when its last user is through.
 *   - Unused entries are bounded, in number and bytes, and make room for new ones; the one that was used longest ago
 *     goes first.
 *   - Without a watch nothing unused is kept.
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

/* Who has memory registered with a device. */
struct cw_registrar {
    void *context;
    /* Registers pages, of which `kind` is set, and which stay where they are. CW_OK; CW_ERROR_ARGUMENT: the device takes
     * no such memory, however much room it has; CW_ERROR_BUSY; CW_ERROR_MEMORY; what the device answers. */
    int (*add)(void *context, struct cw_statistics_pages *pages, uintptr_t first, uintptr_t end);
    /* Their memory has been given back, and their user goes on for a while; NULL: that makes no difference. */
    void (*retire)(void *context, struct cw_statistics_pages *pages);
    void (*remove)(void *context, struct cw_statistics_pages *pages);
};

/* A device that has each page once: registrations share mappings, which outlive the registrar. */
struct cw_registrar cw_registrar_of_mappings(struct cw_mappings *mappings);

struct cw_cache_counters {
    uint64_t registered; /* the device was told */
    uint64_t found;      /* ... and need not be */
    uint64_t stale;      /* entries whose memory was given back */
    uint64_t evicted;
};

struct cw_cache {
    struct cw_registrar registrar;
    struct cw_memory_watch watch; /* zeroed: nothing is watched */
    uintptr_t page_bytes;
    struct cw_cached *entries; /* the last one used is the first */
    uint32_t unused_count;
    uint64_t unused_bytes;
    struct cw_cache_counters counters;
};

/* `watch` stays the caller's, and outlives the cache. */
void cw_cache_init(struct cw_cache *cache, struct cw_registrar registrar, const struct cw_memory_watch *watch,
                   uintptr_t page_bytes);

/* Memory that the device reaches until cw_cache_put. Kinds are the registrar's: an entry is found by its own kind only,
 * of kind 0 any that has the range, of others one of just those pages. CW_OK; CW_ERROR_BUSY: what was there before is
 * still used; CW_ERROR_MEMORY; what the registrar answers when nothing unused is left to make room. */
int cw_cache_get(struct cw_cache *cache, const void *base, size_t bytes, uint32_t kind, struct cw_cached **entry);
/* The pages that an entry has registered. */
const struct cw_statistics_pages *cw_cache_pages(const struct cw_cached *entry);
void cw_cache_put(struct cw_cache *cache, struct cw_cached *entry);

/* Unmaps what is unused: others want the device's room. False: there was nothing. */
bool cw_cache_trim(struct cw_cache *cache);

/* Unmaps all; no entry is used any more. */
void cw_cache_dispose(struct cw_cache *cache);
