/* Memory watch: detects that the program has freed watched memory since the start of the watch, and may have got other
 * memory at the same address.
 *
 * By userfaultfd(2), without hooks in malloc or munmap: watched pages are registered with it (write-protect mode; no
 * page is protected, so no access ever faults). New memory at an address, after munmap, mmap over it, mremap or brk, is
 * not registered. A request to fill missing pages with zeroes shows it (UFFDIO_ZEROPAGE: EEXIST, none is missing;
 * ENOENT, other memory is there; EAGAIN, another thread is changing it). Memory that madvise frees (MADV_DONTNEED,
 * MADV_FREE, MADV_REMOVE) stays registered: the kernel notifies a thread of that, and the caller of madvise continues
 * when the thread has read it (UFFD_FEATURE_EVENT_REMOVE).
 *
 * Not detected: memory that a thread frees by madvise at the moment at which another one sends from it; a mapped file
 * that gets shorter. Memory that cannot be watched is reported: mappings of files, memory of another userfaultfd.
 *
 * Order of calls: open; { begin, is_same, removed, end }*, ranges of whole pages; close. Thread: one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The interface of a watch: tests have their own. */
struct cw_memory_watch {
    void *context;
    /* Watches pages, some of which may be watched already. CW_OK; CW_ERROR_UNSUPPORTED: not these. */
    int (*begin)(void *context, uintptr_t first, uintptr_t end);
    /* True: all pages are the memory of their `begin`, except pages that `removed` reports, and pages without memory.
     * */
    bool (*is_same)(void *context, uintptr_t first, uintptr_t end);
    /* Pages that have been freed but are still watched, once each; false: none are left. Call it before is_same. */
    bool (*removed)(void *context, uintptr_t *first, uintptr_t *end);
    void (*end)(void *context, uintptr_t first, uintptr_t end);
};

/* CW_OK; CW_ERROR_UNSUPPORTED, CW_ERROR_PERMISSION (a container's seccomp profile), CW_ERROR_SYSTEM, CW_ERROR_MEMORY,
 * with a line in `error`: this kernel permits no watch. */
int cw_memory_watch_open(struct cw_memory_watch *watch, char *error, size_t error_bytes);
/* A zeroed one is allowed. */
void cw_memory_watch_close(struct cw_memory_watch *watch);
