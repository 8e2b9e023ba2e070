/* Memory watch: whether memory of this process is still what it was when somebody began to watch it, or the program has
 * given it back since, and may have got other memory at the same address.
 *
 * By userfaultfd(2), without hooks in malloc or munmap: pages that are watched are registered with it (write-protect
 * mode; nothing is protected, so no access ever faults). What the kernel puts at an address anew, after munmap, mmap
 * over it, mremap or brk, is not registered, and it says so when it is asked to put zeroes where pages are
 * missing (UFFDIO_ZEROPAGE: EEXIST, none is missing; ENOENT, others are there; EAGAIN, another thread is about it).
 * What madvise gives back (MADV_DONTNEED, MADV_FREE, MADV_REMOVE) stays registered: of that the kernel tells a thread,
 * and the caller of madvise goes on when that has read it (UFFD_FEATURE_EVENT_REMOVE).
 *
 * Not noticed: memory that a thread gives back by madvise at the very moment at which another one sends from it; a file
 * that is mapped and gets shorter. Memory that cannot be watched is told: mappings of files, memory that another
 * userfaultfd has.
 *
 * Order of calls: open; { begin, is_same, removed, end }*, ranges of whole pages; close. Thread: one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A way to watch, of whatever kind: tests have their own. */
struct cw_memory_watch {
    void *context;
    /* Watches pages, some of which may be watched already. CW_OK; CW_ERROR_UNSUPPORTED: these cannot be. */
    int (*begin)(void *context, uintptr_t first, uintptr_t end);
    /* Whether all of them are the memory that was there when they were begun, but for what `removed` tells, and for
     * pages where no memory is at all. */
    bool (*is_same)(void *context, uintptr_t first, uintptr_t end);
    /* Pages that have been given back and are watched all the same, once each; false: none are left. Before is_same. */
    bool (*removed)(void *context, uintptr_t *first, uintptr_t *end);
    void (*end)(void *context, uintptr_t first, uintptr_t end);
};

/* CW_OK; CW_ERROR_UNSUPPORTED, CW_ERROR_PERMISSION (a container's seccomp profile), CW_ERROR_SYSTEM, CW_ERROR_MEMORY,
 * with a line in `error`: this kernel has none for us. */
int cw_memory_watch_open(struct cw_memory_watch *watch, char *error, size_t error_bytes);
/* A zeroed one is allowed. */
void cw_memory_watch_close(struct cw_memory_watch *watch);
