/* groups: multicast groups among the processes of a job: opened by all their members, looked after, closed by all.
 *
 * Purpose
 *   A group has a name and a list of ranks, the same at all its members. Each member opens it when it reaches that
 *   call; when all have, they agree on an address and an id, and the group is usable at all of them. Messages are sent
 *   and received by its multicast (mcast/mcast.h), not by this. Probes check whether multicast reaches all members;
 *   where it does not, members forward packets.
 *
 * Invariants
 *   - Opening never blocks and never crosses: a group is known by its name alone, any number of them may be opened at a
 *     time, by different members in different orders.
 *   - A group that cannot be opened (no memory at one member, other ranks named by another, a member that dies
 *     meanwhile) fails at all members, with a reason. A member that opened the group before the failure may have sent:
 *     such messages end with CW_ERROR_CLOSED, or have reached some members.
 *   - No port lets in more addresses than its budget. When it is used up, groups share addresses; their ids distinguish
 *     them.
 *   - A member that dies is removed at all others; operations that waited for it continue. Failure detection is not
 *     done here. A member that delays an own message for lag_ns (mcast.h) is probed (links.probe), repeatedly while it
 *     does: so a silent member is removed at most lag_ns plus the failure bound after the wait for it began. Epochs
 *     follow from the set of dead members, so the others need not agree on an order.
 *   - A group is freed at a member only when all have closed it and have all its messages: no member waits for one that
 *     has left.
 *   - No clock, no I/O: it sends through cw_groups_links. The number of control messages is bounded by the number of
 *     groups that are being opened and closed.
 *
 * Order of calls: cw_groups_create; { cw_group_open, { cw_mcast_send }*, cw_group_close | cw_groups_poll |
 * cw_groups_receive | cw_groups_down }*; cw_groups_destroy
 *
 * Thread: one at a time, which also takes the endpoint's events. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcast/mcast.h"

enum {
    CW_GROUPS_ADDRESSES = 64, /* of a job: the first for all that find no other, the last one the flood address's */
    CW_GROUPS_BY_DEVICE = 32, /* from here on addresses are of groups whose packets go by their members' RDMA devices */
    CW_GROUPS_FILTERS = 20,   /* default number of addresses that a port admits: that of usual NICs */
    CW_GROUPS_FILTERS_LEAST = 2,
    CW_GROUPS_WHY_BYTES = 160,
    CW_GROUPS_UNKNOWN_MAX = 65536, /* messages for groups that this member has not opened yet */
};

struct cw_groups;
struct cw_group;

/* Paths for its messages, and recipients of its events. */
struct cw_groups_links {
    void *context;
    /* A control message to another rank: once, in order per rank. CW_OK; CW_ERROR_AGAIN; other codes: it is gone. */
    int (*send)(void *context, uint32_t rank, const void *data, uint32_t bytes);
    /* The rank's number at the endpoint (cw_peer_add). CW_OK or an error. */
    int (*peer)(void *context, uint32_t rank, uint32_t *peer);
    /* Asks whether the rank is there: if it is silent for the failure bound of the endpoint (cw_peer_check),
     * cw_groups_down is called. */
    void (*probe)(void *context, uint32_t rank);
    /* Runs `function` as the owner of the endpoint, and returns what it returns. */
    int (*run)(void *context, int (*function)(void *argument), void *argument);
    bool *is_due; /* set if cw_groups_poll has something to do; NULL: it is called in any case */
    /* Whether an RDMA device of the endpoint takes datagrams to groups, now; NULL: never. */
    bool (*has_device)(void *context);
};

struct cw_groups_config {
    uint32_t rank;
    uint32_t
        address_base; /* the first of CW_GROUPS_ADDRESSES multicast addresses, host byte order; the same at all ranks */
    /* addresses that the port lets in at a time, the flood address's included; >= CW_GROUPS_FILTERS_LEAST */
    uint32_t filter_budget;
    uint64_t seed; /* random: ids are made of it */
    /* With cw_groups_flood_address(address_base) as flood_ipv4, and with cw_group_laggard and cw_group_unreached in its
     * handler, which gets ranks, and a struct cw_group as the context. */
    struct cw_mcast *mcast;
    struct cw_groups_links links;
};

static inline uint32_t cw_groups_flood_address(uint32_t address_base)
{
    return address_base + CW_GROUPS_ADDRESSES - 1;
}

/* CW_OK, CW_ERROR_ARGUMENT (the budget), CW_ERROR_MEMORY. */
int cw_groups_create(const struct cw_groups_config *config, struct cw_groups **groups);
/* Forgets all groups, closed or not. Before the multicast's end. NULL is allowed. */
void cw_groups_destroy(struct cw_groups *groups);

struct cw_group_request {
    uint64_t scope, number; /* its name: never used before in this job */
    const uint32_t *ranks;  /* copied; each once, this one among them; the same in the same order at all */
    uint32_t count;         /* 2 .. CW_MCAST_MEMBERS_MAX */
    void *context;          /* cw_group_context */
    /* Set to the group's multicast while messages may be sent by it, else to NULL; it must stay there until
     * cw_group_close. NULL: nobody asks. */
    struct cw_mcast_group **mcast;
};

/* Begins to open it. CW_OK; CW_ERROR_ARGUMENT: a rank is listed twice, this one is missing, or too few or many ranks;
 * CW_ERROR_BUSY: a group of this name is still open here; CW_ERROR_MEMORY. */
int cw_group_open(struct cw_groups *groups, const struct cw_group_request *request, struct cw_group **group);

enum cw_group_state {
    CW_GROUP_OPENING = 0, /* some have not opened it yet, or have not reported it */
    CW_GROUP_OPEN = 1,
    CW_GROUP_FAILED = 2, /* see cw_group_why */
};
enum cw_group_state cw_group_state(const struct cw_group *group);
/* One line: the event it waits for, or the reason of its failure, and how packets travel. */
void cw_group_why(const struct cw_group *group, char *text, size_t text_bytes);
/* Result of compression for this member's messages (cw_mcast_compression). */
bool cw_group_compression(const struct cw_group *group, enum cw_element element, struct cw_compression_report *report);
void *cw_group_context(const struct cw_group *group);

/* This member is done with it: it may not be used any more. The group is freed when all others have closed it too;
 * packets that arrive until then are dropped. */
void cw_group_close(struct cw_group *group);

/* ---- from outside ---- */

/* A control message that `rank` has sent by links.send. An invalid message is counted and dropped. */
void cw_groups_receive(struct cw_groups *groups, uint32_t rank, const void *data, uint32_t bytes);
/* The process of `rank` has ended. */
void cw_groups_down(struct cw_groups *groups, uint32_t rank);
/* For the multicast's handler (struct cw_mcast_handler); `group` is a struct cw_group. */
void cw_group_laggard(void *group, uint32_t rank);
void cw_group_unreached(void *group, uint32_t rank);
/* Advances the protocol: control messages, network duties. Call it as long as cw_groups_is_busy (see links.is_due).
 * Returns how much it did. */
uint32_t cw_groups_poll(struct cw_groups *groups);
/* Probes (links.probe) the members for whose messages groups wait that are being opened here: a member that is stopped
 * or gone before it opens them would block all others. The waiting thread calls it from time to time. */
void cw_groups_probe(struct cw_groups *groups);
/* Whether something is in progress that only cw_groups_poll brings on. */
bool cw_groups_is_busy(const struct cw_groups *groups);
/* Whether groups that this member has closed are still there, since others have not. */
bool cw_groups_is_closing(const struct cw_groups *groups);
/* A rank without which a group that is being closed does not end, to be asked whether it is there; UINT32_MAX: none. */
uint32_t cw_groups_awaited(const struct cw_groups *groups);

struct cw_groups_info {
    uint32_t open;      /* groups */
    uint32_t shared;    /* ... that had to share an address */
    uint32_t filters;   /* addresses that the port lets in for this, the flood address's included */
    uint64_t malformed; /* control messages */
    uint32_t unreached; /* a rank that multicast does not reach; UINT32_MAX: none is known */
    bool floods;        /* the network delivers multicast to all hosts, members or not */
    struct cw_mcast_counters packets;
    uint32_t laggard; /* the rank that last held up this one's messages for long; UINT32_MAX: none */
};
struct cw_groups_info cw_groups_info(struct cw_groups *groups);
