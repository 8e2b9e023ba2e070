/* All limits of mcast/ in one place. */
#pragma once

enum {
    /* what the format can say */
    CW_MCAST_MEMBERS_MAX = 4096, /* of a group */
    CW_MCAST_PARTS_MAX = 192,    /* of a packet that is too long for some path */
    CW_MCAST_RUNS_MAX = 64,      /* runs of missing packets in one NAK; what does not fit comes with the next */

    /* fixed sizes */
    /* children of a member in the acknowledgement tree, unless configured: a level costs a trip, a child a packet */
    CW_MCAST_ARITY = 16,
    CW_MCAST_PAYLOAD_LEAST = 128, /* of a packet: the first one has the head of its message */
    CW_MCAST_INLINE_MAX = 64,     /* bytes of a message that are copied when it is posted */
    CW_MCAST_WINDOW = 4096,       /* packet numbers of a stream in flight; a power of two */
    CW_MCAST_ACK_EVERY = 16,      /* packets that one acknowledgement waits for at most */
    CW_MCAST_FLOW_BURST = 16,     /* packets of one stream before the next one has its turn */
    CW_MCAST_EAGER_NAKS = 16,     /* groups up to this size ask at once: so few cannot bury a sender */
    CW_MCAST_WINDOW_FIRST = 32,   /* packets in flight before anything has been measured */
    CW_MCAST_WINDOW_LEAST = 4,
    /* times that a packet is sent before its length is blamed: chance takes as many only on lines that lose a lot */
    CW_MCAST_NARROW_TIMES = 8,
    CW_MCAST_UNREACHED_PACKETS =
        5, /* that came for oneself, and none for the group: then the network does not forward them */
    CW_MCAST_RELAY_ARITY = 2, /* children that a member passes packets on to */

    /* defaults of struct cw_mcast_config */
    CW_MCAST_DEFAULT_GROUPS = 64,
    CW_MCAST_DEFAULT_QUEUE = 64, /* messages posted to a group whose end has not been told */
    CW_MCAST_DEFAULT_SLOTS = 16, /* short messages of one sender that a member keeps until they are released */
    CW_MCAST_DEFAULT_SLOT_BYTES =
        16384, /* longer ones need a registration, and wait for everybody's; touched only as far as they are used */
    CW_MCAST_DEFAULT_REGISTRATIONS = 16, /* of one sender's long messages, open at a time */
    CW_MCAST_DEFAULT_EVENTS = 1024,
};

/* Times, in nanoseconds. */
#define CW_MCAST_ROUND_TRIP_FIRST_NS 500000ull /* taken before one has been measured */
#define CW_MCAST_ACK_DELAY_NS        20000ull  /* an acknowledgement waits so long for company */
#define CW_MCAST_REORDER_NS          20000ull  /* a hole younger than this may be a packet that was overtaken */
#define CW_MCAST_STATE_LEAST_NS \
    20000ull /* this much after a round trip without an answer a sender says how far it is; then ever less often */
#define CW_MCAST_STATE_MAX_NS 50000000ull
#define CW_MCAST_ASK_MAX_NS   100000000ull  /* longest time between requests for the same packet */
#define CW_MCAST_LAG_NS       1000000000ull /* without progress for so long, the one who holds everybody up is named */

/* Packets must have come for oneself alone for so long before the network is blamed: a switch may have missed the first
 * reports (at 0, 30, 90 and 210 ms: CW_MCAST_REPORT_FIRST_NS), and a link the packet after each. */
#define CW_MCAST_UNREACHED_NS 250000000ull

/* Switches are told of a membership again after these, in case one was lost; then they forget nothing within 260 s (RFC
 * 2236, 8). */
#define CW_MCAST_REPORT_FIRST_NS 30000000ull
#define CW_MCAST_REPORT_MAX_NS   60000000000ull

/* Packets of a stream are numbered from here, so that the low half that travels wraps early, in every long test. */
#define CW_MCAST_NUMBER_FIRST 0xfffffc00ull
