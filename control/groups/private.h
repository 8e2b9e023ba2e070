/* Shared by the files of groups.
 *
 *   groups.c   calls, messages between ranks           agree.c  opening and closing: what members tell each other
 *   filters.c  the budget of addresses                 reach.c  networks that do not reach all members
 *   why.c      texts about a group, for users
 */
#pragma once

#include "control/groups/filters.h"
#include "control/groups/groups.h"

#define NO_RANK UINT32_MAX

enum message_kind {
    MESSAGE_JOIN = 1,   /* to the leader: this member has opened it */
    MESSAGE_OPEN = 2,   /* from the leader: all have */
    MESSAGE_READY = 3,  /* to the leader: packets of the group are let in */
    MESSAGE_GO = 4,     /* from the leader: at all */
    MESSAGE_FAIL = 5,   /* from anyone to all: it cannot be opened */
    MESSAGE_BYE = 6,    /* to the leader: this member is done, and has nothing in progress */
    MESSAGE_GONE = 7,   /* from the leader: so are all */
    MESSAGE_SPREAD = 8, /* from anyone to all: packets go through the members; `rank` is not reached */
    MESSAGE_DEAD = 9,   /* from anyone to all: `rank` has died */
    MESSAGE_END,
};

enum fail_reason { FAIL_DIFFERENT = 1, FAIL_DIED = 2, FAIL_LIMIT = 3, FAIL_MEMORY = 4, FAIL_PORT = 5, FAIL_END };

/* On the way between ranks. */
struct message {
    uint8_t kind;
    uint8_t delivery; /* OPEN */
    uint8_t reason;   /* FAIL */
    uint8_t address;
    uint32_t rank; /* its subject: FAIL, SPREAD, DEAD */
    uint64_t scope, number;
    uint64_t id;               /* OPEN */
    uint64_t digest;           /* JOIN: of the ranks */
    struct groups_offer offer; /* JOIN */
};

/* A message that waits: for room, or for the group to be opened here. */
struct waiting {
    struct waiting *next;
    uint32_t rank;
    struct message message;
};

enum stage {
    STAGE_JOINING = 0, /* JOIN is said */
    STAGE_READY = 1,   /* READY is said */
    STAGE_OPEN = 2,
    STAGE_LEAVING = 3, /* BYE is said */
    STAGE_FAILED = 4,
};

struct cw_group {
    struct cw_groups *groups;
    struct cw_group *next;
    uint64_t scope, number;
    void *context;
    uint32_t count;
    uint32_t self;
    uint32_t *ranks;
    bool *live;
    uint64_t digest;
    enum stage stage;
    bool is_closed;   /* by the caller */
    bool is_reserved; /* an address, in the budget */
    bool is_polled;   /* READY is not sent, since the network has not answered; or BYE, since messages are in flight */
    bool is_shared;   /* its address has other groups, too */
    uint32_t address;
    uint64_t id;
    enum cw_mcast_delivery delivery;
    uint32_t unreached;
    enum fail_reason reason;
    uint32_t reason_rank;
    struct cw_mcast_group *mcast;  /* NULL: not, or no longer */
    struct cw_mcast_group **shown; /* where the caller looks for it, until it has closed the group; NULL: nowhere */
    /* at the leader */
    uint8_t *said; /* per member: enum message_kind of the last thing that counts: JOIN, READY, BYE */
    struct groups_offer offers;
};

struct cw_groups {
    struct cw_groups_config config;
    struct groups_filters filters;
    struct cw_group *first;
    uint32_t polled_count;
    bool device_refuses;                  /* it has let this member into no group once: not asked again */
    struct waiting *out_first, *out_last; /* also to this rank itself */
    struct waiting *unknown;
    uint32_t unknown_count;
    uint64_t random;
    uint64_t malformed;
    uint32_t unreached;
    uint32_t laggard;
};

/* ---- groups/group.c ---- */

struct cw_group *groups_find(struct cw_groups *groups, uint64_t scope, uint64_t number);
/* The member that has this rank; NO_RANK: none. */
uint32_t groups_member(const struct cw_group *group, uint32_t rank);
/* Queues it; to all live members but this one with groups_send_all. */
void groups_send(struct cw_group *group, uint32_t rank, const struct message *message);
void groups_send_all(struct cw_group *group, const struct message *message);
void groups_queue(struct cw_groups *groups, uint32_t rank, const struct message *message);
struct message groups_message(const struct cw_group *group, enum message_kind kind);
/* There is something for cw_groups_poll. */
void groups_due(const struct cw_groups *groups);
/* Has the caller see the group's multicast, or NULL. */
void groups_show(struct cw_group *group, struct cw_mcast_group *mcast);
void groups_shut(struct cw_group *group);
/* Frees it, shut. */
void groups_free(struct cw_group *group);
/* The memory alone, of a group that is in no list. */
void groups_memory_free(struct cw_group *group);
/* The first member that lives. */
uint32_t groups_leader(const struct cw_group *group);

/* ---- groups/agree.c ---- */

/* False: it is for a group that is not known here. */
bool groups_agree_receive(struct cw_groups *groups, uint32_t rank, const struct message *message);
void groups_agree_begin(struct cw_group *group);
/* Says READY for groups that the network has let in meanwhile, and BYE for those whose last message has come to all;
 * how many. */
uint32_t groups_agree_poll(struct cw_groups *groups);
/* It is closed: says goodbye as soon as nothing is in progress. */
void groups_agree_leave(struct cw_group *group);
/* A member has died. `is_first_hand`: this process found it out, and no other member reported it. */
void groups_exclude(struct cw_group *group, uint32_t member, bool is_first_hand);

/* ---- groups/reach.c ---- */

/* Packets go through the members from now on. */
void groups_deliver_by_members(struct cw_group *group, uint32_t rank, bool is_first_hand);
/* Sends something that only shows whether it comes: to the flood address, and, as the leader, to the members. */
void groups_probe(struct cw_group *group);
