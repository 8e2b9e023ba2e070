#include "dataplane/register/cache.h"

#include <assert.h>
#include <stdlib.h>

#include "dataplane/status.h"

struct cw_cached {
    struct cw_pages pages;
    struct cw_cached *next;
    uint32_t users;
    bool is_stale;   /* other memory may be behind its addresses by now */
    bool is_watched; /* so that it can be kept */
};

/* ---- mappings as a registrar ---- */

static int shared_add(void *context, struct cw_pages *pages, uintptr_t first, uintptr_t end)
{
    return cw_mappings_add(context, pages, first, end);
}

static void shared_retire(void *context, struct cw_pages *pages)
{
    cw_mappings_retire(context, pages);
}

static void shared_remove(void *context, struct cw_pages *pages)
{
    cw_mappings_remove(context, pages);
}

struct cw_registrar cw_registrar_of_mappings(struct cw_mappings *mappings)
{
    return (struct cw_registrar){
        .context = mappings, .add = shared_add, .retire = shared_retire, .remove = shared_remove};
}

/* ---- the cache ---- */

void cw_cache_init(struct cw_cache *cache, struct cw_registrar registrar, const struct cw_memory_watch *watch,
                   uintptr_t page_bytes)
{
    *cache = (struct cw_cache){.registrar = registrar, .watch = *watch, .page_bytes = page_bytes};
}

static uint64_t bytes_of(const struct cw_cached *entry)
{
    return entry->pages.end - entry->pages.first;
}

static bool overlaps(const struct cw_cached *entry, uintptr_t first, uintptr_t end)
{
    return entry->pages.first < end && first < entry->pages.end;
}

/* Stops the watch of pages, except those of other entries. */
static void watch_end(struct cw_cache *cache, uintptr_t first, uintptr_t end)
{
    for (const struct cw_cached *other = cache->entries; other != NULL && first < end; other = other->next) {
        if (!other->is_watched || !overlaps(other, first, end)) {
            continue;
        }
        if (other->pages.first > first) {
            watch_end(cache, first, other->pages.first);
        }
        first = other->pages.end; /* the rest lies behind it, or there is none */
    }
    if (first < end) {
        cache->watch.end(cache->watch.context, first, end);
    }
}

/* Unmaps the unused entry behind *link. */
static void entry_drop(struct cw_cache *cache, struct cw_cached **link)
{
    struct cw_cached *entry = *link;
    assert(entry->users == 0);
    *link = entry->next;
    cache->registrar.remove(cache->registrar.context, &entry->pages);
    if (entry->is_watched) {
        watch_end(cache, entry->pages.first, entry->pages.end);
    }
    free(entry);
}

static void unused_remove(struct cw_cache *cache, const struct cw_cached *entry)
{
    cache->unused_count--;
    cache->unused_bytes -= bytes_of(entry);
}

/* The entry behind *link is no longer what the device reaches. Returns the link to the next one. */
static struct cw_cached **entry_age(struct cw_cache *cache, struct cw_cached **link)
{
    struct cw_cached *entry = *link;
    cache->counters.stale += !entry->is_stale;
    if (entry->users == 0) {
        unused_remove(cache, entry);
        entry_drop(cache, link);
        return link;
    }
    if (!entry->is_stale) {
        entry->is_stale = true;
        if (cache->registrar.retire != NULL) {
            cache->registrar.retire(cache->registrar.context, &entry->pages);
        }
    }
    return &entry->next;
}

/* Drops what is unused until so much more fits; all with `count` CW_CACHE_ENTRIES_MAX. */
static bool room_make(struct cw_cache *cache, uint32_t count, uint64_t bytes)
{
    bool has_any = false;
    while (cache->unused_count > 0 &&
           (cache->unused_count + count > CW_CACHE_ENTRIES_MAX || cache->unused_bytes + bytes > CW_CACHE_BYTES_MAX)) {
        struct cw_cached **last = NULL;
        for (struct cw_cached **link = &cache->entries; *link != NULL; link = &(*link)->next) {
            last = (*link)->users == 0 ? link : last;
        }
        unused_remove(cache, *last);
        entry_drop(cache, last);
        cache->counters.evicted++;
        has_any = true;
    }
    return has_any;
}

/* Everything in a range has been given back. */
static void range_age(struct cw_cache *cache, uintptr_t first, uintptr_t end)
{
    for (struct cw_cached **link = &cache->entries; *link != NULL;) {
        link = overlaps(*link, first, end) ? entry_age(cache, link) : &(*link)->next;
    }
}

static void removed_apply(struct cw_cache *cache)
{
    uintptr_t first, end;
    while (cache->watch.removed(cache->watch.context, &first, &end)) {
        range_age(cache, first, end);
    }
}

/* Entries that share pages with a range, and whose memory has been replaced. They must go before the range is watched:
 * afterwards they could not be detected. */
static void others_age(struct cw_cache *cache, uintptr_t first, uintptr_t end)
{
    for (struct cw_cached **link = &cache->entries; *link != NULL;) {
        const struct cw_cached *entry = *link;
        bool is_other = entry->is_watched && !entry->is_stale && overlaps(entry, first, end) &&
                        !cache->watch.is_same(cache->watch.context, entry->pages.first, entry->pages.end);
        link = is_other ? entry_age(cache, link) : &(*link)->next;
    }
}

/* An entry that has the range, checked; it becomes the first. NULL: none. */
static struct cw_cached *entry_find(struct cw_cache *cache, uintptr_t first, uintptr_t end, uint32_t kind)
{
    for (struct cw_cached **link = &cache->entries; *link != NULL;) {
        struct cw_cached *entry = *link;
        bool has_it = entry->pages.kind == kind && (kind == 0 ? entry->pages.first <= first && entry->pages.end >= end
                                                              : entry->pages.first == first && entry->pages.end == end);
        if (entry->is_stale || !entry->is_watched || !has_it) {
            link = &entry->next;
            continue;
        }
        if (!cache->watch.is_same(cache->watch.context, entry->pages.first, entry->pages.end)) {
            link = entry_age(cache, link);
            continue;
        }
        *link = entry->next;
        entry->next = cache->entries;
        cache->entries = entry;
        return entry;
    }
    return NULL;
}

bool cw_cache_trim(struct cw_cache *cache)
{
    return room_make(cache, CW_CACHE_ENTRIES_MAX + 1, 0);
}

/* Maps a range, and makes room for it if the device has none. */
static int entry_map(struct cw_cache *cache, struct cw_cached *entry, uintptr_t first, uintptr_t end)
{
    const struct cw_registrar *registrar = &cache->registrar;
    int status = registrar->add(registrar->context, &entry->pages, first, end);
    if (status != CW_OK && status != CW_ERROR_ARGUMENT && cw_cache_trim(cache)) {
        status = registrar->add(registrar->context, &entry->pages, first, end);
    }
    return status;
}

static int entry_make(struct cw_cache *cache, uintptr_t first, uintptr_t end, uint32_t kind, struct cw_cached **made)
{
    struct cw_cached *entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        return CW_ERROR_MEMORY;
    }
    entry->pages.kind = kind;
    if (cache->watch.begin != NULL) {
        others_age(cache, first, end);
        /* first: later changes of the mapping are seen */
        entry->is_watched = cache->watch.begin(cache->watch.context, first, end) == CW_OK;
    }
    int status = entry_map(cache, entry, first, end);
    if (status != CW_OK) {
        if (entry->is_watched) {
            watch_end(cache, first, end);
        }
        free(entry);
        return status;
    }
    entry->next = cache->entries;
    cache->entries = entry;
    cache->counters.registered++;
    *made = entry;
    return CW_OK;
}

const struct cw_pages *cw_cache_pages(const struct cw_cached *entry)
{
    return &entry->pages;
}

int cw_cache_get(struct cw_cache *cache, const void *base, size_t bytes, uint32_t kind, struct cw_cached **entry)
{
    uintptr_t first = (uintptr_t)base & ~(cache->page_bytes - 1);
    uintptr_t end = ((uintptr_t)base + bytes + cache->page_bytes - 1) & ~(cache->page_bytes - 1);
    struct cw_cached *found = NULL;
    if (cache->watch.begin != NULL) {
        removed_apply(cache);
        found = entry_find(cache, first, end, kind);
    }
    if (found == NULL) {
        int status = entry_make(cache, first, end, kind, &found);
        if (status != CW_OK) {
            return status;
        }
    } else {
        cache->counters.found++;
        if (found->users == 0) {
            unused_remove(cache, found);
        }
    }
    found->users++;
    *entry = found;
    return CW_OK;
}

void cw_cache_put(struct cw_cache *cache, struct cw_cached *entry)
{
    assert(entry->users > 0);
    if (--entry->users > 0) {
        return;
    }
    if (entry->is_watched && !entry->is_stale) {
        (void)room_make(cache, 1, bytes_of(entry));
    }
    cache->unused_count++;
    cache->unused_bytes += bytes_of(entry);
    if (!entry->is_watched || entry->is_stale || cache->unused_bytes > CW_CACHE_BYTES_MAX) {
        struct cw_cached **link = &cache->entries;
        while (*link != entry) {
            link = &(*link)->next;
        }
        unused_remove(cache, entry);
        entry_drop(cache, link);
    }
}

void cw_cache_dispose(struct cw_cache *cache)
{
    while (cache->entries != NULL) {
        unused_remove(cache, cache->entries);
        entry_drop(cache, &cache->entries);
    }
}
