/* Heap: what happens next? A 4-ary heap by (time, sequence) in memory given at the start.
 *
 * Invariants
 *  - The order of entries with different sequence numbers is total, so it never depends on how the heap was built.
 *  - In a tracked heap each entry's owner knows where it is (*position), so that it can be moved or taken out.
 * All functions take `tracked` as a constant: the compiler makes two versions of each. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define CW_HEAP_OUT UINT32_MAX /* position of an entry that is not in the heap */

struct cw_heap_entry {
    uint64_t time_ns;
    uint64_t sequence;
    void *object;
    uint32_t *position; /* tracked: where the owner keeps the entry's index */
};

struct cw_heap {
    struct cw_heap_entry *entries;
    uint32_t count;
    uint32_t count_max;
};

/* False: no memory. */
static inline bool cw_heap_init(struct cw_heap *heap, uint32_t count_max)
{
    heap->entries = malloc((size_t)count_max * sizeof(*heap->entries));
    heap->count = 0;
    heap->count_max = count_max;
    return heap->entries != NULL;
}

static inline void cw_heap_dispose(struct cw_heap *heap)
{
    free(heap->entries);
    heap->entries = NULL;
}

static inline bool cw_heap_before(const struct cw_heap_entry *a, const struct cw_heap_entry *b)
{
    /* One comparison of 128 bits: no branch to mispredict. */
    return ((unsigned __int128)a->time_ns << 64 | a->sequence) < ((unsigned __int128)b->time_ns << 64 | b->sequence);
}

static inline void cw_heap_place(struct cw_heap *heap, uint32_t index, const struct cw_heap_entry *entry, bool tracked)
{
    heap->entries[index] = *entry;
    if (tracked) {
        *entry->position = index;
    }
}

/* Moves `entry` from the hole at `index` up to where it belongs. */
static inline void cw_heap_up(struct cw_heap *heap, uint32_t index, const struct cw_heap_entry *entry, bool tracked)
{
    while (index > 0) {
        uint32_t parent = (index - 1) / 4;

        if (!cw_heap_before(entry, &heap->entries[parent])) {
            break;
        }
        cw_heap_place(heap, index, &heap->entries[parent], tracked);
        index = parent;
    }
    cw_heap_place(heap, index, entry, tracked);
}

/* The earliest of the up to four children from `first` on. */
static inline uint32_t cw_heap_child(const struct cw_heap *heap, uint32_t first)
{
    uint32_t end = first + 4 < heap->count ? first + 4 : heap->count;
    uint32_t best = first;

    for (uint32_t child = first + 1; child < end; child++) {
        best = cw_heap_before(&heap->entries[child], &heap->entries[best]) ? child : best;
    }
    return best;
}

static inline void cw_heap_down(struct cw_heap *heap, uint32_t index, const struct cw_heap_entry *entry, bool tracked)
{
    for (;;) {
        uint32_t first = index * 4 + 1;
        uint32_t child;

        if (first >= heap->count) {
            break;
        }
        child = cw_heap_child(heap, first);
        if (!cw_heap_before(&heap->entries[child], entry)) {
            break;
        }
        cw_heap_place(heap, index, &heap->entries[child], tracked);
        index = child;
    }
    cw_heap_place(heap, index, entry, tracked);
}

/* False: full. */
static inline bool cw_heap_push(struct cw_heap *heap, const struct cw_heap_entry *entry, bool tracked)
{
    if (heap->count == heap->count_max) {
        return false;
    }
    heap->count++;
    cw_heap_up(heap, heap->count - 1, entry, tracked);
    return true;
}

/* Takes out the entry at `index`, 0: the next one. The heap is not empty. */
static inline struct cw_heap_entry cw_heap_remove(struct cw_heap *heap, uint32_t index, bool tracked)
{
    struct cw_heap_entry taken = heap->entries[index];
    struct cw_heap_entry last = heap->entries[--heap->count];

    if (tracked) {
        *taken.position = CW_HEAP_OUT;
    }
    if (index < heap->count) {
        if (index > 0 && cw_heap_before(&last, &heap->entries[(index - 1) / 4])) {
            cw_heap_up(heap, index, &last, tracked);
        } else {
            cw_heap_down(heap, index, &last, tracked);
        }
    }
    return taken;
}
