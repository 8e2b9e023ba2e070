/* mcast: a put to a group. Public header of mcast/.
 *
 * Purpose
 *   One multicast packet reaches all members of a group; what is missing somewhere is asked for and sent again; what
 *   everybody has is told up a tree. Each member may send: its messages arrive at all others completely, once, and in
 *   the order in which they were posted; messages of different senders are not ordered among each other. Short messages
 *   (up to slot_bytes) land in slots that each member keeps for each sender, and that are free again when the handler
 *   has returned; long ones where the member has said (cw_mcast_register): the k-th long message of a sender goes into
 *   the k-th registration, and leaves when everybody has made it.
 *
 * Invariants
 *   - A message is complete at its sender when every live member has all of it. Until then its memory must not change.
 *   - A member is live until cw_mcast_change takes it out; nothing is decided here about who is dead. Who holds a group
 *     up for long is named (`laggard` of the handler), and named again. So a member that has received everything must
 *     not close before the messages are complete at their sender: its last acknowledgement may have been lost.
 *   - The window of a stream (one sender in one group) follows the slowest live member. No member needs more memory for
 *     a message than its slot or registration.
 *   - No clock, no randomness of its own, no I/O: it is a protocol extension of an endpoint, and is turned with it, in
 *     real and in virtual time.
 *   - A packet is checked like any other: lengths, version, group, author, tag under the group's key, checksum, number,
 *     bounds. What fails is counted and dropped.
 *
 * Order of calls
 *   cw_mcast_create
 *   { cw_mcast_open  { cw_mcast_send | cw_mcast_register | cw_mcast_change | cw_mcast_mute }*
 *     cw_mcast_shut }*; the handler is called as the application takes the endpoint's events
 *   cw_mcast_destroy, before the endpoint's
 *
 * Thread: whoever turns the endpoint, while no other thread takes its events. The handler runs in the thread that takes
 * events (cw_endpoint_events, cw_loop_poll, cw_loop_wait). */
#pragma once

#include "dataplane/dataplane.h"
#include "mcast/mcast_limits.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cw_mcast;
struct cw_mcast_group;

/* What is called as events are taken, in the order in which it happened: between the endpoint's own events, of which
 * each call is one (CW_EVENT_EXTENSION). A function may call everything here, and all calls of the loop, but take no
 * events. `context` is that of the group, `member` its name (struct cw_mcast_group_config). NULL: nobody wants to know.
 */
struct cw_mcast_handler {
    /* A short message has come; `data` is valid during the call. */
    void (*message)(void *context, uint32_t member, uint32_t lane_tag, const void *data, uint64_t bytes);
    /* A long message has come: `bytes` as sent, the context of its registration. `status`: CW_OK; CW_ERROR_LIMIT: it
     * was cut off. */
    void (*arrived)(void *context, uint32_t member, uint32_t lane_tag, uint64_t bytes, uint64_t registration,
                    int status);
    /* An own message with CW_MCAST_SIGNAL has ended. CW_OK: it has come to all; CW_ERROR_CLOSED: its group was shut
     * before. `context` is NULL if the group has been shut. */
    void (*complete)(void *context, uint64_t put_context, int status);
    /* The member has had the least of the own stream for lag_ns, and nothing more since. */
    void (*laggard)(void *context, uint32_t member);
    /* Packets to the group's address do not come to the member: own packets go CW_MCAST_BY_MEMBERS from now on. */
    void (*unreached)(void *context, uint32_t member);
};

struct cw_mcast_config {
    struct cw_mcast_handler handler;
    uint32_t group_count_max;
    uint32_t queue_max;        /* messages of the own stream in a group whose end has not been told */
    uint32_t slot_count;       /* per sender; the same at all members */
    uint32_t slot_bytes;       /* likewise */
    uint32_t registration_max; /* per sender; likewise */
    uint32_t event_count_max;  /* of groups, while so many of the endpoint's events wait to be taken */
    uint64_t lag_ns;           /* without progress for so long, somebody is named */
    /* An address that no group has, and that all ports let in; switches are told so by one, its keeper. What comes to
     * it elsewhere was flooded. 0: none */
    uint32_t flood_ipv4;
    bool keeps_flood_address;
};

void cw_mcast_config_init(struct cw_mcast_config *config);

/* The endpoint takes packets for groups from now on. One per endpoint. CW_OK, CW_ERROR_ARGUMENT with a line in `error`,
 * CW_ERROR_BUSY (it has one), CW_ERROR_MEMORY. */
int cw_mcast_create(const struct cw_mcast_config *config, struct cw_endpoint *endpoint, struct cw_mcast **mcast,
                    char *error, size_t error_bytes);
/* Packets of groups are IP packets of this size at most, from the next message on, if the port's are not smaller: a
 * path to some member may be narrower, and what is sent to all at once has to pass all of them. */
void cw_mcast_mtu(struct cw_mcast *mcast, uint32_t mtu_bytes);
/* Shuts all groups. NULL is allowed. */
void cw_mcast_destroy(struct cw_mcast *mcast);

/* Sends a packet of the group to the flood address, if there is one: switches that flood bring it to all members, who
 * count it (`flood_probes`); others to its keeper only. */
void cw_mcast_flood_probe(struct cw_mcast_group *group);

/* ---- groups ---- */

/* How data packets get to the members. */
enum cw_mcast_delivery {
    CW_MCAST_BY_NETWORK = 0, /* one packet to the group's address; the network copies it; until it proves not to */
    CW_MCAST_BY_MEMBERS =
        1, /* each member passes packets on to its children in the tree: where the network does not reach everybody */
};

struct cw_mcast_group_config {
    uint64_t id;           /* random, never used before under this job's key; not 0 */
    uint32_t member_count; /* 2 .. CW_MCAST_MEMBERS_MAX */
    uint32_t self;         /* the own index among the members */
    const uint32_t *peers; /* [member_count]: their numbers at this endpoint (cw_peer_add); peers[self] is ignored */
    const uint32_t *names; /* [member_count]: what the handler calls them; NULL: by their index */
    void *context;         /* for the handler */
    /* Packets to all go as datagrams of the endpoint's RDMA device, which all members have; those to
     * one, acknowledgements and repairs among them, by its port. The same at all members. */
    bool by_device;
    uint32_t ipv4;  /* of the group, 224.0.0.0/4, host byte order; groups may share one: they are told apart by id */
    uint32_t arity; /* of the acknowledgement tree; 0: CW_MCAST_ARITY; member_count: flat */
    enum cw_mcast_delivery delivery;
    bool joins_late; /* the others have been at it: this member begins with the epoch below */
    uint32_t epoch;  /* of the membership, >= 1; the same at all */
};

/* Says who is in it; all members do so with the same arguments, but for `self` and `peers`. Joins the group's address
 * at the port. Packets that come before are lost, and come again. CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_LIMIT (groups, or
 * the port's filters); CW_ERROR_UNSUPPORTED (`by_device` without a device that has groups, or a port that lets no
 * multicast in); CW_ERROR_MEMORY; CW_ERROR_SYSTEM. A line in `error` says what is wrong. */
int cw_mcast_open(struct cw_mcast *mcast, const struct cw_mcast_group_config *config, struct cw_mcast_group **group,
                  char *error, size_t error_bytes);
/* Whether packets of the group come from now on: who tells others that it is in had better wait for it. */
bool cw_mcast_is_joined(const struct cw_mcast_group *group);
/* Forgets a group: the handler hears no more of it, except of own messages that have not ended. */
void cw_mcast_shut(struct cw_mcast_group *group);

/* Another membership: `live[member]` tells who is in it. Members that come back must have been opened with
 * `joins_late`. All live members are told the same; the order of epochs counts, not that of the calls at different
 * members. What the excluded ones have not got does not matter any more; they themselves are not told anything. CW_OK,
 * CW_ERROR_ARGUMENT (the epoch is not newer; the own member is not in it). */
int cw_mcast_change(struct cw_mcast_group *group, uint32_t epoch, const bool *live);

/* From now on own packets travel like this: each member for itself, what comes either way counts. BY_NETWORK is left by
 * itself, within a quarter of a second, if a member gets packets for itself, but none for the group. */
void cw_mcast_delivery_set(struct cw_mcast_group *group, enum cw_mcast_delivery delivery);

/* ---- messages ---- */

enum cw_mcast_flags {
    CW_MCAST_SIGNAL = 1, /* call `complete` of the handler */
};

/* The tag of messages that only show whether they come: no member's handler hears of them. */
#define CW_MCAST_TAG_PROBE UINT32_MAX

/* Posts a message to all others: `head` and, behind it, `data`. It is a short one, of slot_bytes at most, unless
 * `is_long` is set: then each member must have registered memory for it (cw_mcast_register). `head` is copied; `data`
 * must not change before the message is complete, but if both together have no more than CW_MCAST_INLINE_MAX bytes: of
 * what changes members get the old, the new, or zeros. CW_OK; CW_ERROR_AGAIN: the queue is full; CW_ERROR_ARGUMENT: a
 * short one that is longer than a slot, a head of more than CW_MCAST_INLINE_MAX bytes. */
struct cw_mcast_put {
    const void *head; /* NULL: none */
    uint32_t head_bytes;
    const void *data;
    uint64_t bytes;
    uint32_t lane_tag;
    bool is_long;
    enum cw_element element; /* what the data is, for whoever compresses it (cw_endpoint_compress): once for all */
    uint64_t context;
    uint32_t flags;
};
int cw_mcast_send(struct cw_mcast_group *group, const struct cw_mcast_put *put);

/* Where the next long message of a member goes; longer ones are cut off at `bytes`, and said so. CW_OK; CW_ERROR_AGAIN:
 * registration_max are open; CW_ERROR_ARGUMENT. */
int cw_mcast_register(struct cw_mcast_group *group, uint32_t sender, void *to, uint64_t bytes, uint64_t context);

/* Bytes of the longest short message. Any thread. */
uint32_t cw_mcast_short_max(const struct cw_mcast_group *group);

/* Messages of others are taken and dropped from now on, without a call of the handler. In the thread that takes
 * events. */
void cw_mcast_mute(struct cw_mcast_group *group);

/* ---- what it has done ---- */

/* Of the own stream in a group, as cw_peer_compression. False: nothing that could have been compressed was sent. */
bool cw_mcast_compression(const struct cw_mcast_group *group, enum cw_element element,
                          struct cw_compression_report *report);

struct cw_mcast_counters {
    uint64_t data_out;        /* data packets, first transmissions */
    uint64_t repairs_out;     /* again, to the group */
    uint64_t repairs_one_out; /* again, to one member */
    uint64_t relayed;         /* passed on to children */
    uint64_t acks_out;
    uint64_t acks_in;
    uint64_t naks_out;
    uint64_t naks_in;
    uint64_t states_out;
    uint64_t duplicates; /* data packets that had been here before */
    uint64_t
        flood_probes;    /* packets that came though no switch was told that they are wanted here: the network floods */
    uint64_t drop_group; /* no such group, or no member of it */
    uint64_t drop_tag;
    uint64_t drop_checksum;
    uint64_t drop_malformed;
    uint64_t drop_window;
    uint64_t drop_room; /* no slot, registration, memory or event for it: comes again */
};
struct cw_mcast_counters cw_mcast_counters(const struct cw_mcast *mcast);

/* Of the own stream in a group. */
struct cw_mcast_stream_info {
    uint64_t round_trip_ns; /* smoothed: a packet to the last member, and its acknowledgement up the tree */
    uint32_t window_packets;
    uint32_t in_flight_packets;
    uint32_t queued;  /* messages not complete */
    uint32_t laggard; /* member that has had the least; UINT32_MAX: none */
};
struct cw_mcast_stream_info cw_mcast_stream(const struct cw_mcast_group *group);

#ifdef __cplusplus
}
#endif
