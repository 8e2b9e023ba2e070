/* groups_filters: which multicast addresses a port lets in, within its budget. Pure: no port here.
 *
 * An address may serve several groups. The first address of a job is the fallback of all its groups: room is always
 * kept for it and for the flood address. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control/groups/groups.h"

struct groups_filters {
    uint32_t budget;
    bool has_device;                    /* an RDMA device of this member's takes datagrams to groups now */
    uint32_t reserved;                  /* for groups that are being opened */
    uint32_t uses[CW_GROUPS_ADDRESSES]; /* groups per address */
};

/* A member's offer when a group is opened, one bit per address: the addresses that it could admit, and those that it
 * has. */
struct groups_offer {
    uint64_t may;
    uint64_t has;
};

/* The offer for one more group, and whether room for an address was reserved for it; to be given back by
 * groups_filters_finish. */
struct groups_offer groups_filters_offer(struct groups_filters *filters, bool *is_reserved);
void groups_filters_finish(struct groups_filters *filters, bool is_reserved);

/* An address that all may take (`may` of all, `has` of any): one of its own if possible, else one that others have,
 * else the first; of those by device, if all have one. `draw` is any number: different ones spread over the addresses.
 * */
uint32_t groups_filters_choose(uint64_t may, uint64_t has, uint64_t draw);

void groups_filters_acquire(struct groups_filters *filters, uint32_t address);
void groups_filters_release(struct groups_filters *filters, uint32_t address);
/* Addresses let in, the flood address's included. */
uint32_t groups_filters_count(const struct groups_filters *filters);
