/* handle: the numbers by which programs name objects.
 *
 * A handle is kind (4 bits), generation (7) and index (20): below 2^31, so that it is a Fortran integer, too, and never
 * below 0x1000, where the ABI has its predefined ones. An unknown or freed handle is reported as such, until its index
 * has been reused 128 times.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mpi_kind {
    MPI_KIND_COMM = 1,
    MPI_KIND_DATATYPE = 2,
    MPI_KIND_ERRHANDLER = 3,
    MPI_KIND_GROUP = 4,
    MPI_KIND_INFO = 5,
    MPI_KIND_MESSAGE = 6,
    MPI_KIND_OP = 7,
    MPI_KIND_REQUEST = 8,
    MPI_KIND_PHASES = 9,         /* MPIX_Alltoallv_phases */
    MPI_KIND_SCATTER_GROUP = 10, /* MPIX_Scatterv_group */
    MPI_KIND_COUNT = 11,         /* files, sessions and windows will follow */
};

enum {
    MPI_HANDLE_INDEX_BITS = 20,
    MPI_HANDLE_GENERATION_BITS = 7,
    MPI_HANDLE_CHUNK = 1024, /* entries made at once */
    MPI_HANDLE_CHUNKS = (1 << MPI_HANDLE_INDEX_BITS) / MPI_HANDLE_CHUNK,
};

struct mpi_handle_entry {
    void *object; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
};

extern struct mpi_handle_entry *mpi_handle_chunks[MPI_KIND_COUNT][MPI_HANDLE_CHUNKS];

/* A handle for an object; 0: a million of this kind are in use, or there is no memory. */
uintptr_t mpi_handle_make(enum mpi_kind kind, void *object);
void mpi_handle_free(enum mpi_kind kind, uintptr_t handle);

/* Calls `visit` for each object of a kind. `visit` makes no handles of that kind; it may free that of its object. */
void mpi_handle_each(enum mpi_kind kind, void (*visit)(void *object, void *context), void *context);

/* Ends a handle, but keeps its place in the table for the caller's next object: returns the next handle, which names
 * nothing until mpi_handle_assign, and is given up by mpi_handle_release. */
uintptr_t mpi_handle_put_by(enum mpi_kind kind, uintptr_t handle);
void mpi_handle_assign(enum mpi_kind kind, uintptr_t handle, void *object);
void mpi_handle_release(enum mpi_kind kind, uintptr_t handle);

/* Whether such a next handle is the first of its place again. */
static inline bool mpi_handle_has_wrapped(uintptr_t handle)
{
    return (handle >> MPI_HANDLE_INDEX_BITS & ((1u << MPI_HANDLE_GENERATION_BITS) - 1)) == 0;
}

/* The object of a handle; NULL: no object of this kind. */
static inline void *mpi_handle_object(enum mpi_kind kind, uintptr_t handle)
{
    uint32_t index = handle & ((1u << MPI_HANDLE_INDEX_BITS) - 1);
    uint32_t generation = handle >> MPI_HANDLE_INDEX_BITS & ((1u << MPI_HANDLE_GENERATION_BITS) - 1);
    if (handle >> (MPI_HANDLE_INDEX_BITS + MPI_HANDLE_GENERATION_BITS) != (uintptr_t)kind) {
        return NULL;
    }
    const struct mpi_handle_entry *chunk = mpi_handle_chunks[kind][index / MPI_HANDLE_CHUNK];
    if (chunk == NULL || chunk[index % MPI_HANDLE_CHUNK].generation != generation) {
        return NULL;
    }
    return chunk[index % MPI_HANDLE_CHUNK].object;
}
