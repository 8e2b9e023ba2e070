#include "dataplane/state/region.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

int cw_regions_init(struct cw_regions *regions, uint32_t count)
{
    regions->table = calloc((size_t)count + 1, sizeof(*regions->table));
    if (regions->table == NULL) {
        return CW_ERROR_MEMORY;
    }
    regions->count = count + 1;
    regions->search = 1;
    return CW_OK;
}

void cw_regions_dispose(struct cw_regions *regions)
{
    free(regions->table);
    regions->table = NULL;
    regions->count = 0;
}

int cw_regions_add(struct cw_regions *regions, void *base, uint64_t bytes, uint32_t rights, uint64_t key,
                   struct cw_region **region)
{
    for (uint32_t tried = 1; tried < regions->count; tried++) {
        uint32_t index = regions->search;
        regions->search = index + 1 < regions->count ? index + 1 : 1;
        struct cw_region *place = &regions->table[index];
        if (place->token == 0) {
            *place = (struct cw_region){.base = base, .bytes = bytes, .token = key << 16 | index, .rights = rights};
            *region = place;
            return CW_OK;
        }
    }
    return CW_ERROR_LIMIT;
}

int cw_regions_add_as(struct cw_regions *regions, void *base, uint64_t bytes, uint32_t rights, uint64_t token,
                      struct cw_region **region)
{
    uint32_t index = (uint32_t)(token & 0xffff);
    if (index == 0 || index >= regions->count) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_region *place = &regions->table[index];
    if (place->token != 0) {
        return CW_ERROR_BUSY;
    }
    *place = (struct cw_region){.base = base, .bytes = bytes, .token = token, .rights = rights};
    *region = place;
    return CW_OK;
}

void cw_regions_remove(struct cw_region *region)
{
    assert(region->token != 0 && region->users == 0);
    memset(region, 0, sizeof(*region));
}
