#include "dataplane/register/mappings.h"

#include <assert.h>
#include <stdlib.h>

#include "dataplane/status.h"

struct cw_mapping {
    struct cw_mapping *next;
    uintptr_t first;
    uintptr_t end;
    uint32_t users; /* registrations that touch it */
    struct cw_pages below;
};

/* How far the registrations reach without a hole, from `first` on; `first`: none has it. */
static uintptr_t covered_end(const struct cw_mappings *mappings, uintptr_t first)
{
    uintptr_t end = first;
    for (bool grows = true; grows;) {
        grows = false;
        for (const struct cw_pages *pages = mappings->pages; pages != NULL; pages = pages->next) {
            if (pages->first <= end && pages->end > end) {
                end = pages->end;
                grows = true;
            }
        }
    }
    return end;
}

static bool is_current(const struct cw_mappings *mappings, const struct cw_mapping *mapping, uintptr_t first,
                       uintptr_t end)
{
    uintptr_t from = mapping->first > first ? mapping->first : first;
    uintptr_t to = mapping->end < end ? mapping->end : end;
    return covered_end(mappings, from) >= to;
}

/* Maps a range in front of *link. */
static int mapping_make(struct cw_mappings *mappings, struct cw_mapping **link, uintptr_t first, uintptr_t end)
{
    struct cw_mapping *mapping = malloc(sizeof(*mapping));
    if (mapping == NULL) {
        return CW_ERROR_MEMORY;
    }
    *mapping = (struct cw_mapping){.next = *link, .first = first, .end = end};
    int status = mappings->map(mappings->context, first, end, &mapping->below);
    if (status != CW_OK) {
        free(mapping);
        return status;
    }
    *link = mapping;
    return CW_OK;
}

/* Undoes unused mappings. */
static void unused_undo(struct cw_mappings *mappings)
{
    for (struct cw_mapping **link = &mappings->mappings; *link != NULL;) {
        struct cw_mapping *mapping = *link;
        if (mapping->users > 0) {
            link = &mapping->next;
            continue;
        }
        *link = mapping->next;
        mappings->unmap(mappings->context, mapping->first, mapping->end, &mapping->below);
        free(mapping);
    }
}

/* Maps the gaps of a range, from the lowest on. */
static int gaps_map(struct cw_mappings *mappings, uintptr_t first, uintptr_t end)
{
    int status = CW_OK;
    struct cw_mapping **link = &mappings->mappings;
    while (status == CW_OK && first < end) {
        while (*link != NULL && (*link)->end <= first) {
            link = &(*link)->next;
        }
        if (*link != NULL && (*link)->first <= first) {
            first = (*link)->end;
            continue;
        }
        uintptr_t gap_end = *link != NULL && (*link)->first < end ? (*link)->first : end;
        status = mapping_make(mappings, link, first, gap_end);
    }
    return status;
}

int cw_mappings_add(struct cw_mappings *mappings, struct cw_pages *pages, uintptr_t first, uintptr_t end)
{
    assert(first < end);
    for (const struct cw_mapping *at = mappings->mappings; at != NULL && at->first < end; at = at->next) {
        if (at->end > first && !is_current(mappings, at, first, end)) {
            return CW_ERROR_BUSY;
        }
    }
    int status = gaps_map(mappings, first, end);
    if (status != CW_OK) {
        unused_undo(mappings);
        return status;
    }
    for (struct cw_mapping *at = mappings->mappings; at != NULL && at->first < end; at = at->next) {
        at->users += at->end > first;
    }
    pages->first = first;
    pages->end = end;
    pages->next = mappings->pages;
    pages->is_retired = false;
    mappings->pages = pages;
    return CW_OK;
}

static void pages_unlink(struct cw_mappings *mappings, const struct cw_pages *pages)
{
    struct cw_pages **link = &mappings->pages;
    while (*link != pages) {
        assert(*link != NULL && "removed twice, or never added");
        link = &(*link)->next;
    }
    *link = pages->next;
}

void cw_mappings_retire(struct cw_mappings *mappings, struct cw_pages *pages)
{
    pages_unlink(mappings, pages);
    pages->is_retired = true;
}

void cw_mappings_remove(struct cw_mappings *mappings, struct cw_pages *pages)
{
    if (!pages->is_retired) {
        pages_unlink(mappings, pages);
    }
    for (struct cw_mapping *at = mappings->mappings; at != NULL && at->first < pages->end; at = at->next) {
        at->users -= at->end > pages->first;
    }
    unused_undo(mappings);
}
