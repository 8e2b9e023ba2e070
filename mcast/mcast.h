/* mcast: a put to a group. Public header of mcast/.
 *
 * Purpose
 *   One multicast packet reaches all members of a group. A member that misses a packet requests it, and the sender
 *   repeats it. Acknowledgements go up a tree. Each member may send: its messages arrive at all others completely,
 *   once, and in posting order. Messages of different senders have no common order. Short messages (up to slot_bytes)
 *   arrive in slots that each member keeps for each sender. A slot is free again when the handler has returned. Long
 *   messages arrive in memory that the member has registered (cw_mcast_register): the k-th long message of a sender
 *   goes into the k-th registration, and leaves when all members have made it.
 *
 * Invariants
 *   - A message is complete at its sender when every live member has all of it. Until then its memory must not change.
 *   - A member is live until cw_mcast_change removes it; this folder does not decide which members are dead. It reports
 *     a member that delays a group for long (`laggard` of the handler), repeatedly. So a member that has received all
 *     messages must not close before they are complete at their sender: its last acknowledgement may have been lost.
 *   - The window of a stream (one sender in one group) follows the slowest live member. No member needs more memory for
 *     a message than its slot or registration.
 *   - No clock, no randomness, no I/O: it is a protocol extension of an endpoint, and runs in the endpoint's turns, in
 *     real and in virtual time.
 *   - A packet is checked like any other: lengths, version, group, author, tag under the group's key, checksum, number,
 *     bounds. A packet that fails is counted and dropped.
 *
 * Order of calls
 *   cw_mcast_create
 *   { cw_mcast_open  { cw_mcast_send | cw_mcast_register | cw_mcast_change | cw_mcast_mute }*
 *     cw_mcast_shut }*; the handler is called as the application takes the endpoint's events
 *   cw_mcast_destroy, before cw_endpoint_destroy
 *
 * Thread: the owner of the endpoint, while no other thread takes its events. The handler runs in the thread that takes
 * events (cw_endpoint_events, cw_loop_poll, cw_loop_wait). */
#pragma once

#include "dataplane/dataplane.h"
#include "mcast/mcast_limits.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cw_mcast;
struct cw_mcast_group;

/* The application's functions for events of groups. Each call is one of the endpoint's events (CW_EVENT_EXTENSION), in
 * order with all others, and is made when that event is taken. A function may call all functions of this header and of
 * the loop, but must not take events. `context` is that of the group, `member` its name (struct cw_mcast_group_config).
 * NULL: no call. */
struct cw_mcast_handler {
    /* A short message has arrived; `data` is valid during the call. */
    void (*message)(void *context, uint32_t member, uint32_t lane_tag, const void *data, uint64_t bytes);
    /* A long message has arrived: `bytes` as sent, the context of its registration. `status`: CW_OK; CW_ERROR_LIMIT: it
     * was truncated. */
    void (*arrived)(void *context, uint32_t member, uint32_t lane_tag, uint64_t bytes, uint64_t registration,
                    int status);
    /* An own message with CW_MCAST_SIGNAL has ended. CW_OK: all members have it; CW_ERROR_CLOSED: its group was shut
     * before. `context` is NULL if the group has been shut. */
    void (*complete)(void *context, uint64_t put_context, int status);
    /* The member has the least of the own stream, and has made no progress for lag_ns. */
    void (*laggard)(void *context, uint32_t member);
    /* Packets to the group's address do not reach the member: own packets go CW_MCAST_BY_MEMBERS from now on. */
    void (*unreached)(void *context, uint32_t member);
};

struct cw_mcast_config {
    struct cw_mcast_handler handler;
    uint32_t group_count_max;
    uint32_t queue_max;        /* messages of the own stream in a group whose completion is not reported yet */
    uint32_t slot_count;       /* per sender; the same at all members */
    uint32_t slot_bytes;       /* the same at all members */
    uint32_t registration_max; /* per sender; the same at all members */
    uint32_t event_count_max;  /* no further ones of groups while this number of the endpoint's events waits */
    uint64_t lag_ns;           /* without progress for this time, a laggard is reported */
    /* An address that no group has, and that all ports accept. Only one endpoint, its keeper, reports it to switches. A
     * packet to it at any other endpoint was flooded. 0: none */
    uint32_t flood_ipv4;
    bool keeps_flood_address;
};

void cw_mcast_config_init(struct cw_mcast_config *config);

/* From now on the endpoint accepts packets for groups. One per endpoint. CW_OK, CW_ERROR_ARGUMENT with a line in
 * `error`, CW_ERROR_BUSY (it has one), CW_ERROR_MEMORY. */
int cw_mcast_create(const struct cw_mcast_config *config, struct cw_endpoint *endpoint, struct cw_mcast **mcast,
                    char *error, size_t error_bytes);
/* Sets the largest IP packets of groups, from the next message on; the port's MTU is also a limit. A packet to all
 * members must pass all paths, and one of them may be narrower. */
void cw_mcast_mtu(struct cw_mcast *mcast, uint32_t mtu_bytes);
/* Shuts all groups. NULL is allowed. */
void cw_mcast_destroy(struct cw_mcast *mcast);

/* Sends a packet of the group to the flood address, if there is one. Switches that flood forward it to all members,
 * which count it (`flood_probes`). Other switches forward it to the keeper only. */
void cw_mcast_flood_probe(struct cw_mcast_group *group);

/* ---- groups ---- */

/* The delivery of data packets to the members. */
enum cw_mcast_delivery {
    CW_MCAST_BY_NETWORK = 0, /* one packet to the group's address, which the network copies; until it proves not to */
    CW_MCAST_BY_MEMBERS =
        1, /* each member passes packets on to its children in the tree: if the network does not reach all members */
};

struct cw_mcast_group_config {
    uint64_t id;           /* random, never used before under this job's key; not 0 */
    uint32_t member_count; /* 2 .. CW_MCAST_MEMBERS_MAX */
    uint32_t self;         /* the own index among the members */
    const uint32_t *peers; /* [member_count]: their numbers at this endpoint (cw_peer_add); peers[self] is ignored */
    const uint32_t *names; /* [member_count]: their names in calls of the handler; NULL: their indices */
    void *context;         /* for the handler */
    /* Packets to all members are datagrams of the endpoint's RDMA device, which all members must have. Packets to one
     * member, such as acknowledgements and repairs, use its port. The same at all members. */
    bool by_device;
    uint32_t ipv4;  /* of the group, 224.0.0.0/4, host byte order; groups may share one: their ids distinguish them */
    uint32_t arity; /* of the acknowledgement tree; 0: CW_MCAST_ARITY; member_count: flat */
    enum cw_mcast_delivery delivery;
    uint32_t epoch; /* of the membership, >= 1; the same at all */
};

/* Opens a group with its members. All members call it with the same arguments, except `self` and `peers`. Joins the
 * group's address at the port. Packets that arrive earlier are lost, and repeated. CW_OK; CW_ERROR_ARGUMENT;
 * CW_ERROR_LIMIT (groups, or the port's filters); CW_ERROR_UNSUPPORTED (`by_device` without a device that has groups,
 * or a port that accepts no multicast); CW_ERROR_MEMORY; CW_ERROR_SYSTEM. On failure `error` has one line with the
 * reason. */
int cw_mcast_open(struct cw_mcast *mcast, const struct cw_mcast_group_config *config, struct cw_mcast_group **group,
                  char *error, size_t error_bytes);
/* True: packets of the group arrive from now on. Wait for it before reporting to other members that this one is in. */
bool cw_mcast_is_joined(const struct cw_mcast_group *group);
/* Closes a group: the handler gets no more calls for it, except the completion of own messages. */
void cw_mcast_shut(struct cw_mcast_group *group);

/* Removes members: `live[member]` is true for those that stay. No member returns: all open another group instead,
 * with a new id. All live members must make the same change. The order of epochs counts, not that of the calls at different
 * members. Messages no longer wait for removed members, and these are not notified. CW_OK, CW_ERROR_ARGUMENT (the epoch
 * is not newer; `live` is false for the own member, or true for a removed one). */
int cw_mcast_change(struct cw_mcast_group *group, uint32_t epoch, const bool *live);

/* Sets the delivery of own packets from now on. Each member decides for itself, and accepts packets of both kinds. If a
 * member gets packets for itself, but none for the group, BY_NETWORK changes to BY_MEMBERS automatically within a
 * quarter of a second. */
void cw_mcast_delivery_set(struct cw_mcast_group *group, enum cw_mcast_delivery delivery);

/* ---- messages ---- */

enum cw_mcast_flags {
    CW_MCAST_SIGNAL = 1, /* call `complete` of the handler */
};

/* The tag of messages that only test the delivery: no handler is called for them. */
#define CW_MCAST_TAG_PROBE UINT32_MAX

/* Posts a message to all other members: `head`, followed by `data`. A message is short, slot_bytes at most, unless
 * `is_long` is set: then each member must have registered memory for it (cw_mcast_register). `head` is copied. `data`
 * must not change before the message is complete, unless both together have at most CW_MCAST_INLINE_MAX bytes. If it
 * changes, members get the old bytes, the new ones, or zeros. CW_OK; CW_ERROR_AGAIN: the queue is full;
 * CW_ERROR_ARGUMENT: a short message that is longer than a slot, a head of more than CW_MCAST_INLINE_MAX bytes, more than
 * UINT64_MAX bytes together, an unknown `element`. */
struct cw_mcast_put {
    const void *head; /* NULL: none */
    uint32_t head_bytes;
    const void *data;
    uint64_t bytes;
    uint32_t lane_tag;
    bool is_long;
    enum cw_element
        element; /* type of the elements: a hint for compression (cw_endpoint_compress), once for all members */
    uint64_t context;
    uint32_t flags;
};
int cw_mcast_send(struct cw_mcast_group *group, const struct cw_mcast_put *put);

/* Registers memory for the next long message of a member. A longer message is truncated at `bytes`, with CW_ERROR_LIMIT
 * in `arrived`. CW_OK; CW_ERROR_AGAIN: registration_max are open; CW_ERROR_ARGUMENT. */
int cw_mcast_register(struct cw_mcast_group *group, uint32_t sender, void *to, uint64_t bytes, uint64_t context);

/* The length of the longest short message, in bytes. Any thread. */
uint32_t cw_mcast_short_max(const struct cw_mcast_group *group);

/* From now on messages of other members are received and dropped, without a call of the handler. In the thread that
 * takes events. */
void cw_mcast_mute(struct cw_mcast_group *group);

/* ---- counters and reports ---- */

/* The compression of the own stream in a group, as cw_peer_compression. False: no data for compression was sent. */
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
    uint64_t duplicates;   /* data packets that had arrived before */
    uint64_t flood_probes; /* packets to the flood address at a member that is not its keeper: the network floods */
    uint64_t drop_group;   /* no such group, or no member of it */
    uint64_t drop_tag;
    uint64_t drop_checksum;
    uint64_t drop_malformed;
    uint64_t drop_window;
    uint64_t drop_room; /* no slot, registration, memory or event for it: will be repeated */
};
struct cw_mcast_counters cw_mcast_counters(const struct cw_mcast *mcast);

/* The state of the own stream in a group. */
struct cw_mcast_stream_info {
    uint64_t round_trip_ns; /* smoothed: a packet to the last member, and its acknowledgement up the tree */
    uint32_t window_packets;
    uint32_t in_flight_packets;
    uint32_t queued;  /* messages not complete */
    uint32_t laggard; /* member with the least; UINT32_MAX: none */
};
struct cw_mcast_stream_info cw_mcast_stream(const struct cw_mcast_group *group);

#ifdef __cplusplus
}
#endif
