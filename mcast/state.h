/* Shared by the files of mcast/: groups, streams, timers. Private to mcast/.
 *
 * A group has a stream per sender. The own one has a sending side (struct sending), all others a receiving side (struct
 * receiving); every stream has a reporting side (struct report), which gathers what the members below in the stream's
 * tree have. All are made when first needed, so that a group of a thousand members in which one sends takes the memory
 * of one stream.
 *
 *   group.c    open, shut, change        send.c    messages to packets, repairs      receive.c  packets to messages
 *   advertise.c a sender that hears nothing  pack.c     messages that travel compressed
 *   ack.c      acknowledgements          nak.c     requests for missing packets
 *   mcast.c    the extension: packets in, timers, events
 *   flood_probe.c does the network flood?   membership.c, igmp.c, mld.c  reports to switches */
#pragma once

#include <stdatomic.h>

#include "dataplane/base/wheel.h"
#include "dataplane/compress/choice.h"
#include "dataplane/flow/extension.h"
#include "mcast/mcast.h"
#include "mcast/packet.h"
#include "mcast/tree.h"

#define NOBODY UINT32_MAX

enum { DOUBTS_MAX = 3, GROUP_BUCKETS = 64 };

enum timer_kind { TIMER_NAK, TIMER_REPORT, TIMER_STATE, TIMER_MEMBERSHIP };

struct timer {
    struct cw_wheel_entry entry; /* first */
    enum timer_kind kind;
    struct cw_mcast *mcast;
    struct stream *stream;         /* NULL: it is none of a stream's */
    struct membership *membership; /* MEMBERSHIP */
};

/* The report of an address to switches, and the time of its repetition. */
struct membership {
    uint32_t ipv4;
    enum cw_extension_carrier carrier;
    uint64_t interval_ns;
    struct timer timer;
};

/* ---- the sending side ---- */

struct message {
    const uint8_t *data;
    uint64_t bytes;      /* with the head */
    uint32_t head_bytes; /* of `copy`, in front of data */
    uint64_t first;      /* number of its first packet */
    uint64_t end;        /* of the first packet behind it; UINT64_MAX: it is not known yet */
    uint32_t room;       /* bytes of it that a packet takes, as they are */
    enum cw_element element;
    bool is_packed;        /* chunks, if that is faster */
    uint64_t short_before; /* messages of the stream */
    uint64_t long_before;
    uint64_t context;
    uint32_t lane_tag;
    uint32_t flags;
    bool is_long;
    uint8_t copy[CW_MCAST_INLINE_MAX]; /* the head, and data that is short enough */
};

/* A packet that has been sent and is not acknowledged. */
struct packet {
    uint64_t sent_ns;  /* last */
    uint16_t requests; /* distinct as far as that is cheap to determine */
    uint16_t requester;
    uint8_t times;  /* sent */
    bool is_queued; /* among the repairs */
    bool to_all;
    bool is_packed; /* of a message that is */
};

struct sending {
    struct message *messages; /* [queue_max], by number modulo */
    uint64_t message_noted;   /* the first whose event has not been given, if it has one */
    uint64_t message_base;    /* the first that is not complete */
    uint64_t message_lost;    /* the first that has ended with its group */
    uint64_t message_next;
    uint64_t message_at; /* the one that packets are made of, and how far it is sent */
    uint64_t position;
    struct packing *packing; /* NULL: no message could have been compressed yet */
    uint64_t part_number; /* the packet whose parts the port did not take all, and the first of them that it did not */
    uint32_t part_next;
    uint64_t short_next;
    uint64_t long_next;
    struct packet *packets; /* [CW_MCAST_WINDOW], by number modulo */
    uint64_t base;
    uint64_t next;
    uint64_t *repairs; /* [CW_MCAST_WINDOW]: a ring of numbers */
    uint32_t repair_first;
    uint32_t repair_count;
    /* credit, of the slowest member */
    uint64_t released;
    uint64_t registered;
    /* congestion */
    uint32_t window;
    bool slow_start;
    bool is_limited; /* something waited for the window in this round */
    uint64_t round_end;
    uint64_t round_trip_least_ns; /* of this round, without those during pauses */
    /* of those whose packet may have waited for a thread to poll a port: without that time */
    uint64_t round_trip_floor_ns;
    uint32_t round_pauses; /* how many these are */
    uint32_t round_sent;
    uint32_t round_lost;
    uint64_t round_trip_ns;           /* smoothed; 0: not measured */
    uint64_t round_trip_deviation_ns; /* mean */
    uint64_t round_trip_min_ns;       /* ever */
    uint32_t requests_mean;           /* per lost packet, in sixteenths */
    /* who is behind */
    uint64_t moved_ns; /* when something was acknowledged last, or there was nothing to acknowledge */
    uint64_t named_ns;
    uint32_t laggard;
    uint64_t state_interval_ns; /* until the next STATE; 0: none was sent since something moved */
    uint64_t state_ns;          /* when a STATE was sent last */
    uint32_t to_group; /* packets sent to the group's address, up to CW_MCAST_UNREACHED_PACKETS, and since when */
    uint64_t to_group_ns;
    uint32_t doubts; /* STATEs since the last round trip that could be measured, up to DOUBTS_MAX */
    struct timer state_timer;
    bool is_active; /* in the list of streams that may send */
    struct stream *active_next;
};

/* ---- the receiving side ---- */

/* A message that is in progress. */
struct incoming {
    bool is_open; /* something of it has come */
    uint8_t *to;
    uint64_t place; /* among short or long messages */
    uint64_t room;
    uint64_t total;
    uint64_t arrived;
    uint64_t context;
    uint32_t lane_tag;
    bool is_long;
};

/* A packet of the window of which some parts have come. All zero: none has. */
struct assembly {
    uint64_t seen[CW_MCAST_PARTS_MAX / 64];
    uint64_t message;
    uint32_t bytes; /* of the message, in these parts */
    uint16_t come;
    uint16_t count;
};

struct registration {
    uint8_t *to;
    uint64_t bytes;
    uint64_t context;
};

struct receiving {
    uint64_t base; /* every packet below has come */
    uint64_t end;  /* none at or above has */
    uint64_t seen[CW_MCAST_WINDOW / 64];
    uint64_t known_next;         /* every packet below has been sent */
    struct assembly *assemblies; /* [CW_MCAST_WINDOW], by number modulo; NULL: no part has come yet */
    struct incoming *messages;   /* [queue_max] */
    uint64_t message_base;       /* the first that is not notified */
    uint8_t *slots;              /* [slot_count * slot_bytes] */
    uint64_t short_notified;
    uint64_t short_released;
    _Atomic uint64_t short_taken;       /* the application's: messages that its handler has had */
    struct registration *registrations; /* [registration_max] */
    uint64_t registered;
    uint64_t registrations_used;
    uint32_t echo; /* timestamp of the latest packet of this stream */
    uint64_t echo_ns;
    uint64_t round_trip_ns; /* as the sender says */
    uint64_t pause_ns;      /* before the turn in which the newest packet came */
    uint32_t to_self;       /* packets that came for this member since the last one for the group; and since when */
    uint64_t to_self_ns;
    /* requests */
    struct timer nak_timer;
    uint64_t nak_base; /* where base was at the last request */
    uint64_t nak_interval_ns;
};

/* ---- the reporting side ---- */

struct counts {
    uint64_t received;
    uint64_t released;
    uint64_t registered;
};

struct child {
    uint32_t epoch; /* of what follows; 0: nothing */
    uint32_t laggard;
    uint32_t unreached;
    uint64_t pause_ns;
    struct counts counts;
    uint64_t heard_ns;
    uint64_t number; /* of the newest packet */
};

struct report {
    struct child *children; /* [child_count] */
    uint32_t child_count;
    uint32_t child_first; /* place in the tree */
    struct counts told;   /* to the parent, in this epoch */
    uint64_t urgent;      /* packets below this must be reported at once */
    struct timer timer;
};

struct stream {
    struct cw_mcast_group *group;
    uint32_t sender;
    bool is_waiting; /* in the list of streams that have something to notify, or slots at the application */
    struct stream *waiting_next;
    struct sending *sending;     /* only in the own stream */
    struct receiving *receiving; /* only in others' */
    struct report report;
};

/* ---- groups ---- */

struct member {
    uint32_t peer;
    uint32_t name; /* for the handler */
    bool is_live;
    bool has_key;
    uint64_t control_highest; /* number of the newest packet of this member that was no data */
    struct cw_wire_key key;
};

struct cw_mcast_group {
    struct cw_mcast *mcast;
    void *context;
    bool is_muted; /* the application's */
    bool is_shut;  /* it is there only since its own messages' ends wait for room */
    bool by_device;
    struct cw_mcast_group *next; /* in its bucket */
    uint64_t id;
    uint32_t self;
    uint32_t member_count;
    struct member *members;
    struct stream **streams; /* [member_count]; NULL: not needed yet */
    uint32_t epoch;
    enum cw_mcast_delivery delivery;
    struct cw_mcast_tree tree;
    struct cw_mcast_tree relay; /* the same members, with the arity of passing on */
    uint32_t *tree_places;
    uint32_t *tree_live;
    struct cw_wire_receiver all; /* the group as the receiver of packets */
    uint32_t payload_max;        /* data bytes of a packet that its carrier takes */
    uint64_t control_next;       /* numbers of own packets that are no data */
    struct membership membership;
};

struct cw_mcast {
    struct cw_extension extension; /* first */
    struct cw_mcast_config config;
    struct cw_endpoint *endpoint;
    uint64_t now_ns;
    uint64_t turn_ns;     /* when it was turned last */
    uint32_t payload_max; /* data bytes of a packet; falls when longer packets do not reach some member */
    struct cw_mcast_group *buckets[GROUP_BUCKETS];
    uint32_t group_count;
    struct cw_wheel wheel;
    struct stream *active_first;
    struct stream *active_last;
    struct stream *waiting_first;
    bool is_full;        /* some of these found no room for their events */
    atomic_ullong taken; /* the application's: messages of all streams that its handler has had */
    uint64_t taken_seen;
    uint64_t events_given;
    bool port_full;
    struct membership flood; /* of the flood address, at its keeper */
    struct cw_mcast_counters counters;
};

/* A packet to be written: `fixed` begins with a prefix, which is filled in. */
struct outgoing {
    enum cw_mcast_type type;
    uint16_t flags;  /* of the header */
    uint32_t to;     /* a member; NOBODY: the group */
    bool by_members; /* to == NOBODY: through the tree, for any delivery mode of the group */
    bool is_repeated;
    uint64_t number;
    void *fixed;
    uint32_t fixed_bytes;
    const void *head; /* in front of data */
    uint32_t head_bytes;
    const void *data;
    uint32_t data_bytes;
};

/* A data packet's part of its message. */
struct load {
    uint64_t position;
    uint32_t bytes;       /* of the message, from there on, ... */
    uint32_t head_bytes;  /* ... number of them that belong to its head */
    uint32_t chunk_bytes; /* 0: the rest is as it is in the message */
    struct cw_codec_plan plan;
    const uint8_t *chunk;
};

/* ---- group.c ---- */

/* The stream of a sender, created on demand; NULL: no memory. */
struct stream *mcast_stream(struct cw_mcast_group *group, uint32_t sender);
const struct cw_wire_key *mcast_key(struct cw_mcast_group *group, uint32_t member);
struct cw_mcast_group *mcast_group_find(const struct cw_mcast *mcast, uint64_t id);
/* Of a group that has been shut. */
void mcast_group_free(struct cw_mcast_group *group);

/* ---- mcast.c ---- */

/* Packets of groups are so long at most from now on, if they were longer. */
void mcast_narrow(struct cw_mcast *mcast, uint32_t mtu_bytes);
/* False: the port has no packet. */
bool mcast_transmit(struct stream *stream, const struct outgoing *packet);
static inline uint64_t mcast_control_number(struct cw_mcast_group *group)
{
    return group->control_next++;
}
void mcast_timer_init(struct timer *timer, enum timer_kind kind, struct stream *stream);
/* Runs at `time_ns` at the latest. */
void mcast_timer_by(struct timer *timer, uint64_t time_ns);
void mcast_timer_stop(struct timer *timer);
static inline bool mcast_timer_runs(const struct timer *timer)
{
    return cw_wheel_waiting(&timer->entry);
}
/* The reason to call the handler; in `slot` of an event, whose `region` is the stream. */
enum notice { NOTICE_MESSAGE, NOTICE_ARRIVED, NOTICE_COMPLETE, NOTICE_LAGGARD, NOTICE_UNREACHED };
/* False: there is no room for it now. */
bool mcast_notify(struct stream *stream, enum notice notice, struct cw_event event);
/* The stream must be checked again when the application has handled events. */
void mcast_wait(struct stream *stream);
/* The stream ends: nothing waits any more, and no event speaks of it. */
void mcast_notify_end(struct stream *stream);

/* ---- membership.c ---- */

/* Data bytes of a packet. */
uint32_t mcast_payload_max(const struct cw_mcast_group *group);

/* Admits the address and reports it to switches, repeatedly; as cw_extension_join. */
int mcast_membership_begin(struct cw_mcast *mcast, struct membership *membership, uint32_t ipv4,
                           enum cw_extension_carrier carrier);
void mcast_membership_end(struct cw_mcast *mcast, struct membership *membership);
void mcast_membership_due(struct cw_mcast *mcast, struct membership *membership);

/* ---- flood_probe.c ---- */

/* As cw_port_join. */
int mcast_flood_begin(struct cw_mcast *mcast);
void mcast_flood_end(struct cw_mcast *mcast);
/* An authentic one; `is_new`: it was sent after everything else that has come of its author. */
void mcast_flood_receive(struct cw_mcast *mcast, const struct cw_wire_header *header, bool is_new);

/* ---- send.c, advertise.c, congestion.c ---- */

int mcast_sending_make(struct stream *stream);
void mcast_sending_destroy(struct stream *stream);
/* The group has been shut: own messages end. */
void mcast_send_end(struct stream *stream);
/* Notifies what is complete. */
void mcast_send_notify(struct stream *stream);
uint32_t mcast_send_turn(struct cw_mcast *mcast);
void mcast_send_nak(struct stream *stream, uint32_t from, const struct cw_wire_header *header,
                    const struct cw_mcast_nak *nak);
/* All members have what `counts` say; `laggard` has the least. A packet may have waited `pause_ns` for its receiver to
 * look. */
void mcast_send_acknowledged(struct stream *stream, const struct counts *counts, uint32_t laggard, uint64_t pause_ns);
/* Another packet goes to the group's address. */
void mcast_send_noted(struct stream *stream);
/* Packets to the group do not reach `member`, it says. */
void mcast_send_unreached(struct stream *stream, uint32_t member);
void mcast_send_state_due(struct stream *stream);
/* The membership has changed. */
void mcast_send_epoch(struct stream *stream);
/* A stream begins: its first window. */
void mcast_congestion_init(struct stream *stream);
/* A packet was acknowledged after its only transmission; of that time it may have waited `pause_ns` for a thread to
 * poll a port. */
void mcast_congestion_sample(struct sending *sending, uint64_t round_trip_ns, uint64_t pause_ns);
/* Base has moved. */
void mcast_congestion_progress(struct stream *stream);
/* After so long without an answer something is lost (RFC 6298, with a shorter least time). */
uint64_t mcast_congestion_patience(const struct sending *sending);

/* ---- receive.c ---- */

int mcast_receiving_make(struct stream *stream);
void mcast_receiving_destroy(struct stream *stream);
/* The number that a data packet would have; `stream` may be NULL: nothing of it has come. */
uint64_t mcast_receive_number(const struct stream *stream, uint32_t low);
void mcast_receive_data(struct stream *stream, const struct cw_wire_header *header, const struct cw_mcast_data *data,
                        uint64_t number, uint32_t bytes);
void mcast_receive_state(struct stream *stream, const struct cw_wire_header *header,
                         const struct cw_mcast_state *state);
/* Notifies what is complete and in order, and has slots back that the application has done with. */
void mcast_deliver(struct stream *stream);

/* ---- pack.c ---- */

/* Whether a message that begins, and takes several packets, is packed. */
bool mcast_pack_wants(struct stream *stream);
/* The contents of the next packet of a packed message, given its uncompressed contents; or of a packet that was sent
 * before. Both stay valid until the packet of another number is requested. */
void mcast_pack_load(struct stream *stream, const struct message *message, uint64_t number, struct load *load);
void mcast_pack_load_again(struct stream *stream, const struct message *message, uint64_t number, struct load *load);
/* A packet of a packed message has been sent for the first time; everybody has it. */
void mcast_pack_sent(struct stream *stream, const struct message *message, uint64_t number, const struct load *load);
void mcast_pack_acknowledged(struct stream *stream, uint64_t number);

/* ---- nak.c ---- */

/* Holes may have opened or closed; `is_old`: the missing packets were sent so long ago that none can have overtaken
 * them. */
void mcast_nak_consider(struct stream *stream, bool is_old);
void mcast_nak_due(struct stream *stream);

/* ---- ack.c ---- */

int mcast_ack_make(struct stream *stream);
void mcast_ack_destroy(struct stream *stream);
/* The member of the subtree that has the least, as known now; NOBODY: there is none below. */
uint32_t mcast_ack_laggard(const struct stream *stream);
/* The own counts have changed. */
void mcast_ack_changed(struct stream *stream);
/* The sender wants to know, changed or not. */
void mcast_ack_requested(struct stream *stream);
/* Another membership. */
void mcast_ack_renew(struct stream *stream);
void mcast_ack_child(struct stream *stream, uint32_t member, const struct cw_mcast_ack *ack, uint64_t number);
void mcast_ack_due(struct stream *stream);

static inline uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether a packet of the window from base on has come. */
static inline bool mcast_is_seen(const struct receiving *receiving, uint64_t number)
{
    return (receiving->seen[number % CW_MCAST_WINDOW / 64] >> (number % 64) & 1) != 0;
}

static inline struct message *mcast_message(const struct stream *stream, uint64_t number)
{
    return &stream->sending->messages[number % stream->group->mcast->config.queue_max];
}

/* Packets for this number of uncompressed bytes. */
static inline uint64_t mcast_packets(uint64_t bytes, uint32_t room)
{
    return bytes == 0 ? 1 : (bytes - 1) / room + 1;
}

/* Time without a poll of the port before the present turn. */
static inline uint64_t mcast_pause(const struct cw_mcast *mcast)
{
    return mcast->now_ns - earlier(mcast->turn_ns, mcast->now_ns);
}

/* A time as packets carry it. */
static inline uint32_t mcast_time_encode(uint64_t time_ns)
{
    uint64_t said = time_ns >> CW_MCAST_ROUND_TRIP_SHIFT;
    return said < UINT32_MAX ? (uint32_t)said : UINT32_MAX;
}
