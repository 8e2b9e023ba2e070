#include "mpi/state/handle.h"

#include <assert.h>
#include <stdlib.h>

struct mpi_handle_entry *mpi_handle_chunks[MPI_KIND_COUNT][MPI_HANDLE_CHUNKS];

/* Free entries of a kind: first in, first out, so that a number comes back as late as possible. */
static struct {
    uint32_t first;
    uint32_t last;
    uint32_t free_count;
    uint32_t chunk_count;
} lists[MPI_KIND_COUNT];

static struct mpi_handle_entry *entry_at(enum mpi_kind kind, uint32_t index)
{
    return &mpi_handle_chunks[kind][index / MPI_HANDLE_CHUNK][index % MPI_HANDLE_CHUNK];
}

static void entry_append(enum mpi_kind kind, uint32_t index)
{
    if (lists[kind].free_count++ == 0) {
        lists[kind].first = index;
    } else {
        entry_at(kind, lists[kind].last)->next_free = index;
    }
    lists[kind].last = index;
}

static void chunk_make(enum mpi_kind kind)
{
    uint32_t chunk = lists[kind].chunk_count;
    if (chunk == MPI_HANDLE_CHUNKS) {
        return;
    }
    mpi_handle_chunks[kind][chunk] = calloc(MPI_HANDLE_CHUNK, sizeof(struct mpi_handle_entry));
    if (mpi_handle_chunks[kind][chunk] == NULL) {
        return;
    }
    lists[kind].chunk_count++;
    for (uint32_t index = 0; index < MPI_HANDLE_CHUNK; index++) {
        entry_append(kind, chunk * MPI_HANDLE_CHUNK + index);
    }
}

static uint32_t index_of(uintptr_t handle)
{
    return handle & ((1u << MPI_HANDLE_INDEX_BITS) - 1);
}

static uintptr_t handle_of(enum mpi_kind kind, const struct mpi_handle_entry *entry, uint32_t index)
{
    return (((uintptr_t)kind << MPI_HANDLE_GENERATION_BITS | entry->generation) << MPI_HANDLE_INDEX_BITS) | index;
}

void mpi_handle_each(enum mpi_kind kind, void (*visit)(void *object, void *context), void *context)
{
    for (uint32_t index = 0; index < lists[kind].chunk_count * MPI_HANDLE_CHUNK; index++) {
        void *object = entry_at(kind, index)->object;
        if (object != NULL) {
            visit(object, context);
        }
    }
}

uintptr_t mpi_handle_make(enum mpi_kind kind, void *object)
{
    assert(object != NULL);
    if (lists[kind].free_count < 2) { /* one stays, so that a freed number is not the next one again */
        chunk_make(kind);
    }
    if (lists[kind].free_count == 0) {
        return 0;
    }
    uint32_t index = lists[kind].first;
    struct mpi_handle_entry *entry = entry_at(kind, index);
    lists[kind].first = entry->next_free;
    lists[kind].free_count--;
    entry->object = object;
    return handle_of(kind, entry, index);
}

uintptr_t mpi_handle_put_by(enum mpi_kind kind, uintptr_t handle)
{
    uint32_t index = index_of(handle);
    assert(mpi_handle_object(kind, handle) != NULL);
    struct mpi_handle_entry *entry = entry_at(kind, index);
    entry->object = NULL;
    entry->generation = (entry->generation + 1) & ((1u << MPI_HANDLE_GENERATION_BITS) - 1);
    return handle_of(kind, entry, index);
}

void mpi_handle_assign(enum mpi_kind kind, uintptr_t handle, void *object)
{
    entry_at(kind, index_of(handle))->object = object;
}

void mpi_handle_release(enum mpi_kind kind, uintptr_t handle)
{
    entry_append(kind, index_of(handle));
}

void mpi_handle_free(enum mpi_kind kind, uintptr_t handle)
{
    mpi_handle_release(kind, mpi_handle_put_by(kind, handle));
}
