/* Mappings: which pages a device may reach, for registrations that share pages, in part or whole, and end in any order.
 *
 * Invariants
 *   - Mappings do not overlap, and are undone as they were made: IOMMUs (VFIO) split none.
 *   - A mapping lasts as long as a registration touches it, so every page of a registration is mapped.
 *   - A registration whose memory the program has freed is retired: its pages stay mapped until it is removed, and are
 *     not shared with later registrations.
 *   - A page that no registration has any more, but a mapping still covers, is given to none: the system may have put
 *     other memory behind its address since. Such a registration is refused until the mapping is gone.
 *
 * Order of calls: { cw_mappings_add, cw_mappings_retire or not, cw_mappings_remove }*, in any order; a mapping of
 * zeroes with its functions is an empty one. One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whole pages, from `first` up to but not `end`. Belongs to the caller, and stays where it is while it is registered.
 * */
struct cw_pages {
    uintptr_t first;
    uintptr_t end;
    struct cw_pages *next;
    void *handle;  /* the user's own */
    uint32_t kind; /* likewise */
    bool is_retired;
};

struct cw_mapping;

struct cw_mappings {
    /* Maps pages, none of which is mapped: CW_OK or an error. `below` stays until `unmap`, for the function's own
     * use. */
    int (*map)(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below);
    /* Undoes one call of `map`. */
    void (*unmap)(void *context, uintptr_t first, uintptr_t end, struct cw_pages *below);
    void *context;
    struct cw_mapping *mappings; /* by address */
    struct cw_pages *pages;      /* registered */
};

/* Registers pages and maps what is not mapped. CW_OK; CW_ERROR_BUSY: some were given back and are still mapped;
 * CW_ERROR_MEMORY; what `map` answers. On failure nothing has changed. */
int cw_mappings_add(struct cw_mappings *mappings, struct cw_pages *pages, uintptr_t first, uintptr_t end);

/* Takes a registration back, and undoes the mappings that were there for it alone. */
void cw_mappings_remove(struct cw_mappings *mappings, struct cw_pages *pages);

/* Other memory may be behind the pages of a registration by now. Once, before it is removed. */
void cw_mappings_retire(struct cw_mappings *mappings, struct cw_pages *pages);
