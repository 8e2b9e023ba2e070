#include "dataplane/fabric/bridge_groups.h"

#include <assert.h>
#include <stdlib.h>

#include "dataplane/base/random.h"
#include "dataplane/status.h"

static const uint64_t SWEEP_INTERVAL_NS = 1000000000u;

int cw_bridge_groups_init(struct cw_bridge_groups *table, uint32_t group_count_max, uint32_t port_count, uint64_t seed)
{
    size_t group_count = (size_t)group_count_max + 1;
    uint32_t bucket_bits = 4;

    while ((1u << bucket_bits) < 2 * group_count_max) {
        bucket_bits++;
    }
    *table = (struct cw_bridge_groups){
        .groups = calloc(group_count, sizeof(*table->groups)),
        .member_ports = calloc(group_count * port_count, sizeof(*table->member_ports)),
        .member_times = calloc(group_count * port_count, sizeof(*table->member_times)),
        .buckets = calloc((size_t)1 << bucket_bits, sizeof(*table->buckets)),
        .bucket_shift = 64 - bucket_bits,
        .port_count = port_count,
        .group_count_max = group_count_max,
        .multiplier = cw_random_derive(seed, 1) | 1,
    };
    if (!table->groups || !table->member_ports || !table->member_times || !table->buckets) {
        cw_bridge_groups_dispose(table);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t group = 1; group < group_count_max; group++) {
        table->groups[group].chain = group + 1;
    }
    table->free = 1;
    return CW_OK;
}

void cw_bridge_groups_dispose(struct cw_bridge_groups *table)
{
    free(table->groups);
    free(table->member_ports);
    free(table->member_times);
    free(table->buckets);
    table->groups = NULL;
    table->member_ports = NULL;
    table->member_times = NULL;
    table->buckets = NULL;
}

static uint32_t *bucket_of(const struct cw_bridge_groups *table, uint64_t key)
{
    uint64_t mixed = key * table->multiplier;

    return &table->buckets[((mixed ^ (mixed >> 32)) * table->multiplier) >> table->bucket_shift];
}

uint32_t cw_bridge_groups_find(const struct cw_bridge_groups *table, uint64_t key)
{
    uint32_t group = *bucket_of(table, key);

    while (group && table->groups[group].key != key) {
        group = table->groups[group].chain;
    }
    return group;
}

static void group_free(struct cw_bridge_groups *table, uint32_t group)
{
    uint32_t *link = bucket_of(table, table->groups[group].key);

    while (*link != group) {
        link = &table->groups[*link].chain;
    }
    *link = table->groups[group].chain;
    table->groups[group].chain = table->free;
    table->free = group;
    table->count--;
}

static uint32_t group_acquire(struct cw_bridge_groups *table, uint64_t key)
{
    uint32_t group = table->free;
    uint32_t *bucket = bucket_of(table, key);

    if (group) {
        table->free = table->groups[group].chain;
        table->groups[group] = (struct cw_bridge_group){.key = key, .chain = *bucket};
        *bucket = group;
        table->count++;
    }
    return group;
}

/* Where the member's row is; SIZE_MAX: this port is not a member. */
static size_t member_find(const struct cw_bridge_groups *table, uint32_t group, uint16_t port)
{
    size_t first = (size_t)group * table->port_count;

    for (size_t row = first; row < first + table->groups[group].member_count; row++) {
        if (table->member_ports[row] == port) {
            return row;
        }
    }
    return SIZE_MAX;
}

/* The last row takes its place. The group is freed with its last member. */
static void member_remove(struct cw_bridge_groups *table, uint32_t group, size_t row)
{
    size_t last = (size_t)group * table->port_count + --table->groups[group].member_count;

    table->member_ports[row] = table->member_ports[last];
    table->member_times[row] = table->member_times[last];
    if (table->groups[group].member_count == 0) {
        group_free(table, group);
    }
}

bool cw_bridge_groups_join(struct cw_bridge_groups *table, uint64_t key, uint16_t port, uint64_t time_ns)
{
    uint32_t group = cw_bridge_groups_find(table, key);
    size_t row;

    if (!group) {
        group = group_acquire(table, key);
    }
    if (!group) {
        return false;
    }
    row = member_find(table, group, port);
    if (row == SIZE_MAX) {
        assert(table->groups[group].member_count < table->port_count);
        row = (size_t)group * table->port_count + table->groups[group].member_count++;
        table->member_ports[row] = port;
        table->member_times[row] = time_ns;
    } else if (table->member_times[row] != CW_BRIDGE_MEMBER_FIXED) {
        table->member_times[row] = time_ns;
    }
    return true;
}

bool cw_bridge_groups_leave(struct cw_bridge_groups *table, uint64_t key, uint16_t port, bool fixed)
{
    uint32_t group = cw_bridge_groups_find(table, key);
    size_t row = group ? member_find(table, group, port) : SIZE_MAX;

    if (row == SIZE_MAX || (table->member_times[row] == CW_BRIDGE_MEMBER_FIXED && !fixed)) {
        return false;
    }
    member_remove(table, group, row);
    return true;
}

/* Removes the members of a group that reported before `since_ns`, or all of those at `port`. */
static void members_filter(struct cw_bridge_groups *table, uint32_t group, uint64_t since_ns, int port)
{
    uint32_t i = table->groups[group].member_count;

    while (i-- > 0) { /* backwards: the row that replaces a removed one has been visited */
        size_t row = (size_t)group * table->port_count + i;

        if (table->member_times[row] != CW_BRIDGE_MEMBER_FIXED &&
            (port < 0 ? table->member_times[row] < since_ns : table->member_ports[row] == port)) {
            member_remove(table, group, row);
        }
    }
}

void cw_bridge_groups_expire(struct cw_bridge_groups *table, uint32_t group, uint64_t since_ns)
{
    members_filter(table, group, since_ns, -1);
}

void cw_bridge_groups_sweep(struct cw_bridge_groups *table, uint64_t now_ns, uint64_t since_ns)
{
    if (now_ns - table->swept_ns < SWEEP_INTERVAL_NS) {
        return;
    }
    table->swept_ns = now_ns;
    for (uint32_t group = 1; group <= table->group_count_max; group++) {
        members_filter(table, group, since_ns, -1);
    }
}

void cw_bridge_groups_flush(struct cw_bridge_groups *table, uint16_t port)
{
    for (uint32_t group = 1; group <= table->group_count_max; group++) {
        members_filter(table, group, 0, port);
    }
}
