/* mcast limits: all limits of mcast/ in one place. */
#pragma once

enum {
    /* limits of the format */
    CW_MCAST_MEMBERS_MAX = 4096, /* of a group */
    CW_MCAST_PARTS_MAX = 192,    /* of a packet that is too long for some path */
    CW_MCAST_RUNS_MAX = 64,      /* runs of missing packets in one NAK; further runs are in the next one */

    /* fixed sizes */
    /* children of a member in the acknowledgement tree, unless configured: a level costs a trip, a child a packet */
    CW_MCAST_ARITY = 16,
    CW_MCAST_PAYLOAD_LEAST = 128, /* of a packet: the first one includes the head of its message */
    CW_MCAST_INLINE_MAX = 64,     /* bytes of a message that are copied when it is posted */
    CW_MCAST_WINDOW = 4096,       /* packet numbers of a stream in flight; a power of two */
    CW_MCAST_ACK_EVERY = 16,      /* an acknowledgement waits for at most this number of packets */
    CW_MCAST_FLOW_BURST = 16,     /* packets of one stream before the next one has its turn */
    CW_MCAST_EAGER_NAKS = 16,     /* groups up to this size request at once: their requests cannot overload a sender */
    CW_MCAST_WINDOW_FIRST = 32,   /* packets in flight before the first measurement */
    CW_MCAST_WINDOW_LEAST = 4,
    /* times that a packet is sent before its length counts as the reason: only lines with heavy loss drop it as often
     * */
    CW_MCAST_NARROW_TIMES = 8,
    CW_MCAST_UNREACHED_PACKETS =
        5, /* to a member alone, without one to the group: then the network does not forward multicast */
    CW_MCAST_RELAY_ARITY = 2, /* children that a member passes packets on to */

    /* defaults of struct cw_mcast_config */
    CW_MCAST_DEFAULT_GROUPS = 64,
    CW_MCAST_DEFAULT_QUEUE = 64, /* messages posted to a group whose completion is not reported yet */
    CW_MCAST_DEFAULT_SLOTS = 16, /* short messages of one sender that a member keeps until they are released */
    CW_MCAST_DEFAULT_SLOT_BYTES =
        16384, /* longer messages need a registration of all members; pages are touched only when used */
    CW_MCAST_DEFAULT_REGISTRATIONS = 16, /* of one sender's long messages, open at a time */
    CW_MCAST_DEFAULT_EVENTS = 1024,
};

/* Times, in nanoseconds. */
#define CW_MCAST_ROUND_TRIP_FIRST_NS 500000ull /* used before one has been measured */
#define CW_MCAST_ACK_DELAY_NS        20000ull  /* an acknowledgement waits this long for another one */
#define CW_MCAST_REORDER_NS          20000ull  /* a hole younger than this may be a packet that was overtaken */
#define CW_MCAST_STATE_LEAST_NS \
    20000ull /* without an answer a sender reports its progress after a round trip and this, then ever less often */
#define CW_MCAST_STATE_MAX_NS 50000000ull
#define CW_MCAST_NAK_MAX_NS   100000000ull  /* longest time between requests for the same packet */
#define CW_MCAST_LAG_NS       1000000000ull /* without progress for this time, the laggard is reported */

/* A member must get packets only for itself for this time before the network counts as the reason: a switch may have
 * missed the first reports (at 0, 30, 90 and 210 ms: CW_MCAST_REPORT_FIRST_NS), and a link the packet after each. */
#define CW_MCAST_UNREACHED_NS 250000000ull

/* A membership is reported to switches again after these times, in case a report was lost. Then switches keep it, since
 * they drop it after 260 s (RFC 2236, 8). */
#define CW_MCAST_REPORT_FIRST_NS 30000000ull
#define CW_MCAST_REPORT_MAX_NS   60000000000ull

/* Packets of a stream are numbered from here, so that the low half that travels wraps early, in every long test. */
#define CW_MCAST_NUMBER_FIRST 0xfffffc00ull
