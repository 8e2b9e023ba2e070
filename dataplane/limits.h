/* Limits: all limits of dataplane/ in one place. Ranges of the configuration, defaults, limits of the wire format. */
#ifndef CW_LIMITS_H
#define CW_LIMITS_H

#define CW_RATE_MAX_BPS 10000000000000ull /* of links, paths and shapers */

enum {
    /* Ethernet's overhead of a frame: preamble 8, check sequence 4, gap 12. */
    CW_ETHERNET_OVERHEAD_BYTES = 24,

    /* limits of the format */
    CW_LANE_BITS = 12,
    CW_TAG_BITS = 20,
    CW_PACKET_WINDOW = 65536, /* packet numbers in flight per direction; 200 ms at 1 Gb/s need some 17,000 */
    CW_PUT_WINDOW = 8192,     /* operations in flight per direction: one window block */
    CW_PEERS_MAX = 1 << 20,
    CW_SHAPERS_MAX = 16, /* of an endpoint */
    CW_STREAMS_MAX = 64, /* sessions with one process */

    /* UDP ports: of 29170 to 29998, which IANA has not assigned, and below the ephemeral ports of kernels. */
    CW_UDP_PORT = 29300,                                /* of a process; further streams use the ports after it */
    CW_UDP_PORT_GATEWAY = CW_UDP_PORT + CW_STREAMS_MAX, /* of gateways, which may run on the same host */

    CW_NEIGHBOUR_HOPS_MAX = 256, /* next hops of an address without a kernel */
    CW_NEIGHBOUR_ANSWERS = 128,  /* that may leave at once; then one each CW_NEIGHBOUR_ANSWER_NS */
    CW_NEIGHBOUR_DOUBLINGS = 5,  /* of the interval between requests without an answer */

    CW_REGIONS_MAX = 65535,
    CW_SLOTS_MAX = 65536,
    CW_SLOT_BYTES_MAX = 1 << 17,
    CW_SLICES_MAX = 1 << 20,

    /* fixed sizes */
    CW_INLINE_MAX = 64,           /* bytes of a put that are copied when it is posted */
    CW_GATHER_MIN = 512,          /* shorter payloads are cheaper to copy than to chain */
    CW_BURST = 32,                /* packets received or sent at once */
    CW_FLOW_BURST = 16,           /* packets of one flow before the next one has its turn */
    CW_CREDIT_MAX = 16,           /* message slots lent to one sender, and in one frame */
    CW_CREDIT_BATCH = 8,          /* slots requested at once */
    CW_CREDIT_ALONG = 6,          /* slots lent along with a message by a queue pair */
    CW_CREDIT_FAR_MAX = 512,      /* slots lent to one sender on a long path: 20 ms at 0.8 Gb/s, in messages of 4 KB */
    CW_CREDIT_FAR_ASK = 16,       /* the least that such a sender requests at once: more than a batch */
    CW_CREDIT_STORES = 256,       /* peers on long paths of which an endpoint has more than CW_CREDIT_MAX slots */
    CW_OPERATIONS_A_PACKET = 255, /* that share it; every event queue has room for that number */
    CW_ACK_EVERY = 16,            /* an acknowledgement waits for at most this number of packets */
    CW_ACK_EVERY_ASLEEP = 64,     /* ... if it costs a call of the kernel */
    CW_ACK_STREAM_FRAMES = 4,     /* ... and for the line time of these frames, CW_ACK_STREAM_NS at most */
    CW_ACK_STREAMS = 3,           /* streams that share a slow line: an acknowledgement waits longer ... */
    CW_ACK_STREAM_PAUSE = 1024,   /* packets of other streams, after which a stream counts as new */
    CW_ACK_STREAMS_MAX = 64,      /* ... by this factor at most */
    CW_ACK_CARRIER_FRAMES = 3,    /* an acknowledgement waits their time for data that carry it */
    CW_ACK_RUNS_MAX = 340,        /* pairs of (missing, received) that fit an acknowledgement at an MTU of 1500 */
    CW_OPERATIONS_RESERVED = 64,  /* of operation_count_max: for grants, answers to gets and the like */
    CW_PUT_WINDOW_RESERVED = 64,  /* of CW_PUT_WINDOW, for the same */
    CW_CONGESTION_WINDOW_FIRST = 8, /* packets */
    CW_TRIALS_NEEDED = 16,          /* packets with a wrong UDP checksum that a port must have detected */
    CW_TRIALS_ASKED = 256,          /* early requests for trials, to a port that detects none of them */
    CW_TRIAL_BYTES = 64,            /* payload of every second one; the others are as long as DATA */
    CW_REHEARSALS = 64,             /* packets with both a CRC and the UDP checksum, before the first without CRC */
    CW_ARRIVAL_LIES_MAX = 16,       /* impossible times, before those of a port are ignored */
    CW_TRUST_PACKETS = 65536,       /* for which a port is trusted, before it is tried again */
    CW_TRUST_SHARE = 64,            /* one in this number is verified in software all the same */

    /* defaults of struct cw_endpoint_config */
    CW_DEFAULT_PEERS = 1024,
    CW_DEFAULT_REGIONS = 1024,
    CW_DEFAULT_OPERATIONS = 16384, /* one peer gets at most half of them: its window */
    CW_DEFAULT_REASSEMBLIES = 8192,
    CW_DEFAULT_EVENTS = 4096,
    CW_DEFAULT_GETS = 2048,
    CW_PATH_MTU_BASE = 1280, /* that every path is assumed to carry (RFC 8200, 5) */
    CW_DEFAULT_SLOTS = 1024,
    CW_DEFAULT_SLOT_BYTES = 4096,
    CW_DEFAULT_SENT_CHUNKS = 4096,
    CW_DEFAULT_WINDOW_BLOCKS = 1024,
    CW_DEFAULT_CONGESTION_WINDOW_BYTES = 64 << 20,
};

/* Times, in nanoseconds. */
#define CW_ACK_DELAY_NS               10000ull   /* an acknowledgement waits this long for another one or for data */
#define CW_ACK_STREAM_NS              100000ull  /* in a stream of full packets on a slow line */
#define CW_ACK_CARRIER_NS             4000ull    /* if a frame takes this long, an acknowledgement waits for data */
#define CW_ACK_CARRIER_MAX_NS         2000000ull /* and no longer than this */
#define CW_ACK_MESSAGE_NS             400000ull  /* of messages, since each packet wakes a thread */
#define CW_CREDIT_FAR_NS              500000ull  /* least round trip of a path that counts as long for message credit */
#define CW_BUSY_MAX_NS                50000u /* a longer turn is no batch of packets but a loop that was descheduled */
#define CW_ECHO_KEEP_NS               15000000000ull /* limit of reordering (of timestamps: at most 34 s) */
#define CW_PROBE_SPIN_NS              200000ull      /* least time-out towards a peer that spins */
#define CW_PROBE_SLEEP_NS             1000000ull     /* ... that is woken; its delay is in the round trip's variance */
#define CW_PROBE_NAP_NS               2000000ull     /* ... that naps */
#define CW_PROBE_MAX_NS               250000000ull   /* longest interval between probes */
#define CW_HELLO_FIRST_NS             1000000ull     /* set-up is repeated after this, then after twice the time each */
#define CW_HELLO_MAX_NS               250000000ull
#define CW_STRANGER_NS                300000000ull   /* place of an unknown process that requests a session */
#define CW_NEIGHBOUR_ASK_NS           250000000ull   /* a request is repeated after this, then twice as late */
#define CW_NEIGHBOUR_FRESH_NS         30000000000ull /* a next hop is requested again after this */
#define CW_NEIGHBOUR_ANSWER_NS        1000000ull
#define CW_DEFAULT_FAILURE_TIMEOUT_NS 10000000000ull
#define CW_TRUST_NS                   1000000000ull  /* a port is trusted this long before it is tried again */
#define CW_TRIAL_NS                   20000ull       /* between two requests for a trial */
#define CW_ARRIVAL_SLACK_NS           1000000ull     /* of a NIC's clock against ours: more is an error of the NIC */
#define CW_DEPARTURE_AHEAD_NS         50000ull       /* a frame may wait in a NIC this long before its time */
#define CW_ROUND_TRIP_MIN_WINDOW_NS   10000000000ull /* the smallest round trip is forgotten after this */
#define CW_LINE_SLOW_BPS              3000000000ull  /* up to this rate a port's frames are paced one by one */
#define CW_LINE_AHEAD_NS              200000ull      /* and this much of them may wait in the NIC */
#define CW_CATCH_UP_MAX_NS            1000000ull     /* of a shaper: queues far away cannot take a greater burst */
#define CW_BACK_MIN_WINDOW_NS         1000000000ull  /* and the shortest delay back after this: clocks drift apart */
#define CW_BACK_QUEUE_MAX_NS \
    1000000ull /* at most this counts as a queue on the way back: the rest may be drift of the clocks */

/* Operations of a session are numbered from here, so that the low half that travels wraps early, in every long test. */
#define CW_PUT_NUMBER_FIRST 0xfffffc00ull

#endif
