/* check: the arena, and lists that grow. */
#include "collectives/check/state.h"

#include <stdlib.h>
#include <string.h>

struct check_chunk {
    struct check_chunk *before;
    size_t used;
    size_t limit;
    max_align_t memory[];
};

enum { CHUNK_BYTES = 60 << 10, ALIGNMENT = 16 };

static void *arena_allocate(struct check_arena *arena, size_t count, size_t size, bool zero)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        return NULL;
    }
    bytes = (bytes + ALIGNMENT) & ~(size_t)(ALIGNMENT - 1); /* never none: each object has its own address */
    struct check_chunk *chunk = arena->last;
    bool fresh = chunk == NULL || chunk->limit - chunk->used < bytes;
    if (fresh) {
        size_t limit = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        /* The system provides big chunks zeroed: pages that are never touched cost nothing. */
        chunk = zero && limit > CHUNK_BYTES ? calloc(1, sizeof(*chunk) + limit) : malloc(sizeof(*chunk) + limit);
        if (chunk == NULL) {
            return NULL;
        }
        *chunk = (struct check_chunk){.before = arena->last, .limit = limit};
        arena->last = chunk;
    }
    char *memory = (char *)chunk->memory + chunk->used;
    chunk->used += bytes;
    if (zero && !(fresh && chunk->limit > CHUNK_BYTES)) {
        memset(memory, 0, bytes);
    }
    return memory;
}

void *check_allocate(struct check_arena *arena, size_t count, size_t size)
{
    return arena_allocate(arena, count, size, false);
}

void *check_allocate_zero(struct check_arena *arena, size_t count, size_t size)
{
    return arena_allocate(arena, count, size, true);
}

struct check_mark check_arena_mark(const struct check_arena *arena)
{
    return (struct check_mark){.chunk = arena->last, .used = arena->last == NULL ? 0 : arena->last->used};
}

void check_arena_rewind(struct check_arena *arena, struct check_mark mark)
{
    while (arena->last != mark.chunk) {
        struct check_chunk *before = arena->last->before;
        free(arena->last);
        arena->last = before;
    }
    if (arena->last != NULL) {
        arena->last->used = mark.used;
    }
}

void check_arena_dispose(struct check_arena *arena)
{
    check_arena_rewind(arena, (struct check_mark){0});
}

int check_list_grow(struct check_list *list)
{
    if (list->limit > UINT32_MAX / 2) {
        return CW_ERROR_MEMORY;
    }
    uint32_t limit = list->limit == 0 ? 1024 : list->limit * 2;
    uint32_t *items = realloc(list->items, limit * sizeof(*items));
    if (items == NULL) {
        return CW_ERROR_MEMORY;
    }
    list->items = items;
    list->limit = limit;
    return CW_OK;
}
