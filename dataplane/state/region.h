/* Regions: memory that peers may reach, named by a token of 16 bits of index and 48 random bits of key.
 *
 * Invariant: a store into a region happens only after cw_region_find has admitted it in the same turn, so that once a
 * region is deregistered by the owner no store can follow. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/port/port.h"
#include "dataplane/verbs/device.h"

struct cw_cached;

struct cw_region {
    uint8_t *base;
    uint64_t bytes;
    uint64_t token; /* 0: free */
    uint32_t rights;
    uint32_t users;                /* own operations that read from it or will write to it */
    struct cw_port_memory *memory; /* NULL: pieces of it are copied */
    struct cw_verbs_memory verbs;  /* of the RDMA device, if there is one and it took it */
    struct cw_cached *cached;      /* ... which its cache keeps; NULL: none */
};

struct cw_regions {
    struct cw_region *table; /* index 0 is never used, so that no token is 0 */
    uint32_t count;          /* of the table */
    uint32_t search;         /* where to look for a free place */
};

/* A table for `count` regions. CW_OK, CW_ERROR_MEMORY. */
int cw_regions_init(struct cw_regions *regions, uint32_t count);
void cw_regions_dispose(struct cw_regions *regions);

/* As cw_region_register; `key` supplies the random bits. */
int cw_regions_add(struct cw_regions *regions, void *base, uint64_t bytes, uint32_t rights, uint64_t key,
                   struct cw_region **region);
/* The same under a token that another table has given. CW_OK, CW_ERROR_BUSY: its place is taken; CW_ERROR_ARGUMENT: it
 * has none. */
int cw_regions_add_as(struct cw_regions *regions, void *base, uint64_t bytes, uint32_t rights, uint64_t token,
                      struct cw_region **region);
void cw_regions_remove(struct cw_region *region);

/* The region of a token, with any rights; NULL: none. */
static inline struct cw_region *cw_region_of(const struct cw_regions *regions, uint64_t token)
{
    uint32_t index = (uint32_t)(token & 0xffff);
    if (token == 0 || index >= regions->count || regions->table[index].token != token) {
        return NULL;
    }
    return &regions->table[index];
}

static inline bool cw_region_holds(const struct cw_region *region, uint64_t offset, uint64_t bytes)
{
    return offset <= region->bytes && bytes <= region->bytes - offset;
}

/* The region of a token if it grants all of `rights` to offset .. offset + bytes; NULL: refuse. */
static inline struct cw_region *cw_region_find(const struct cw_regions *regions, uint64_t token, uint64_t offset,
                                               uint64_t bytes, uint32_t rights)
{
    struct cw_region *region = cw_region_of(regions, token);
    if (region == NULL || (region->rights & rights) != rights || !cw_region_holds(region, offset, bytes)) {
        return NULL;
    }
    return region;
}
