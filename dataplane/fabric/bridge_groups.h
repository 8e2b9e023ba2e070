/* Bridge groups: which ports have members of a multicast group behind them? Private to the bridge.
 *
 * Invariants
 *  - At most group_count_max groups, each with at most one row per port. A group without members does not exist.
 *  - A member set by hand stays until it is removed by hand; one that reported stays until it leaves or is too old.
 * A key is either a MAC address or CW_BRIDGE_GROUP_IPV4 plus an IPv4 address: 32 IPv4 groups share a MAC address, and
 * one of them being left must not silence another. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CW_BRIDGE_GROUP_IPV4   (1ull << 48)
#define CW_BRIDGE_MEMBER_FIXED UINT64_MAX

struct cw_bridge_group {
    uint64_t key;
    uint32_t chain; /* next group with the same hash, or next free one */
    uint32_t member_count;
};

struct cw_bridge_groups {
    struct cw_bridge_group *groups; /* [group_count_max + 1]; 0 is unused */
    uint16_t *member_ports;         /* [group * port_count + i], i < member_count */
    uint64_t *member_times;         /* the same: last report, ns, or CW_BRIDGE_MEMBER_FIXED */
    uint32_t *buckets;
    uint32_t bucket_shift;
    uint32_t port_count;
    uint32_t group_count_max;
    uint32_t count;
    uint32_t free;
    uint64_t multiplier;
    uint64_t swept_ns;
};

/* CW_OK or CW_ERROR_MEMORY. */
int cw_bridge_groups_init(struct cw_bridge_groups *table, uint32_t group_count_max, uint32_t port_count, uint64_t seed);

void cw_bridge_groups_dispose(struct cw_bridge_groups *table);

/* The group's index, 0: no host has joined it. Valid until the next join, leave, forget or sweep. */
uint32_t cw_bridge_groups_find(const struct cw_bridge_groups *table, uint64_t key);

/* Notes a member that reported at `time_ns`, or one set by hand (CW_BRIDGE_MEMBER_FIXED). False: no room for the
 * group. */
bool cw_bridge_groups_join(struct cw_bridge_groups *table, uint64_t key, uint16_t port, uint64_t time_ns);

/* Takes a member out; `fixed`: also one that was set by hand. False: there was none. */
bool cw_bridge_groups_leave(struct cw_bridge_groups *table, uint64_t key, uint16_t port, bool fixed);

/* Removes the members of this group without a report at or after `since_ns`. */
void cw_bridge_groups_expire(struct cw_bridge_groups *table, uint32_t group, uint64_t since_ns);

/* The same for all groups; at most once in a simulated second, since it takes long. */
void cw_bridge_groups_sweep(struct cw_bridge_groups *table, uint64_t now_ns, uint64_t since_ns);

/* Removes the members that reported at this port. */
void cw_bridge_groups_flush(struct cw_bridge_groups *table, uint16_t port);
