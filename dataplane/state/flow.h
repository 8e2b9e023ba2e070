/* Flow: the state of the connection with one peer, by concern. One file writes each part; it is in flow/ unless a
 * folder is named.
 *
 *   table.c        flows by address                       (flow)
 *   session.c      set-up, incarnations, keys             struct cw_session
 *   setup.c        set-up packets, signed or sealed       (session)
 *   transmit.c     choice of the next packet              struct cw_sender
 *   run.c          ... several of one put at once         (sender)
 *   frame.c        encoding of operations                 (sender)
 *   acknowledge.c  acknowledgements in, losses            (sender, round trip)
 *   receive.c      packets in, checks                     struct cw_receiver
 *   place.c        their frames: validated, then placed   (receiver)
 *   ack_send.c     acknowledgements out                   (receiver)
 *   congestion/    the amount in flight: LAN              struct cw_congestion
 *                  ... and the rate: wide area            struct cw_bandwidth
 *   shaper.c       the total rate of several flows        struct cw_shaper, cw_shaping
 *   integrity.c    the check of payloads                  struct cw_rehearsal, (session)
 *   stream.c       further sessions
 *   timers.c       time-outs, probes, failure, pacing     struct cw_timers
 *   state/sent.c   records of packets in flight           struct cw_sent_records
 *   state/wake.c   the time of the flow's next turn       (sender, timers)
 *   staging/seal.c keys and counts of sealed sessions     struct cw_seal
 *   rdma/          its queue pair                         struct cw_rdma_flow
 *   compress.c     the choice of compression              struct cw_compress_flow
 *   compress/      ... samples and trials of codecs,      (compress)
 *                  ... chunks, out and in                 struct cw_chunks
 *   put/message.c  slots of the peer's pool and ours      struct cw_credit
 *
 * Invariant: a flow is either in session (state ESTABLISHED, keys and windows valid) or holds no packet records at all.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/base/wheel.h"
#include "dataplane/dataplane.h"
#include "dataplane/state/put.h"
#include "dataplane/state/sent.h"
#include "dataplane/state/window.h"
#include "dataplane/wire/wire.h"

struct cw_bandwidth;
struct cw_rdma_flow;
struct cw_seal;

/* The search for the largest packet that the path carries. */
struct cw_path_mtu {
    uint64_t due_ns;       /* the next step; UINT64_MAX: none */
    uint32_t again_s : 20; /* it is not searched again before this */
    uint32_t in : 12;      /* the acknowledgements' report on the peer's probes (cw_wire_probe_word) */
    uint16_t tried;        /* payload bytes; 0: none */
    uint16_t tries : 8;    /* of this size */
    uint16_t rounds : 4;   /* searches that ended below the agreed length */
    uint16_t turn : 1;     /* distinguishes an answer from those to earlier probes */
    uint16_t doubted : 1;  /* a packet of the size is in flight, and may be too large */
};

struct cw_session {
    uint64_t local;       /* our nonce of this session; 0: none */
    uint64_t next;        /* our nonce for the next one, in all requests and answers until then; 0: not drawn yet */
    uint64_t peer;        /* the peer's */
    uint64_t incarnation; /* the peer's endpoint */
    uint64_t pool_token;
    struct cw_wire_key key_in;
    struct cw_wire_key key_out;
    struct cw_seal *seal; /* of an encrypted session, in place of the keys; else NULL */
    uint32_t pool_slot_bytes;
    uint32_t peer_flow;     /* goes into `flow` of our packets */
    uint32_t packet_window; /* the least of ours and the peer's */
    uint32_t put_window;
    uint16_t payload_bytes_max;    /* after our header */
    uint16_t payload_bytes_agreed; /* the least of both ends */
    uint16_t payload_bytes_proved; /* has arrived, or is assumed to */
    uint8_t peer_waiting;
    bool confirmed : 1; /* a packet of this session has arrived, so the peer has it too */
    bool listens : 1;   /* the peer's port verifies UDP checksums: ours writes them */
    bool summed : 1;    /* ... and the peer accepts DATA without CRC */
    bool kept : 1;      /* both have the same medium, which protects payloads: only frames' headers have a CRC */
    bool altered : 1;   /* a wrong UDP checksum has arrived: no DATA without CRC any more */
    union {
        struct {                 /* until there is a session */
            uint64_t hello_ns;   /* when to request again */
            uint64_t started_ns; /* when set-up began, or the flow was made */
        };
        struct cw_path_mtu mtu; /* then */
    };
};

struct cw_sender {
    struct cw_sent_records sent;           /* packets base .. next */
    uint64_t in_flight_bytes;              /* sent, neither acknowledged nor declared lost */
    uint64_t control_next;                 /* number of the next packet outside the data sequence */
    uint32_t lost_count;                   /* declared lost and not yet sent again */
    uint32_t short_run;                    /* short operations since the last bulk packet */
    uint64_t lost_lowest;                  /* no lost packet below this number */
    uint64_t lost_turn;                    /* lost packets from here on are sent again first, then those below */
    uint64_t report_asked;                 /* no packet below this number requests a report at once */
    struct cw_operation_queue queue_short; /* one packet each, or less */
    struct cw_operation_queue queue_bulk;
    struct cw_operation_queue
        queue_credit_frames; /* of the message pools: sent even if the peer is full, so that it can empty */
    struct cw_operation_queue queue_credit; /* messages that wait for a slot */
    struct cw_operation *open_first;        /* not retired, by number */
    struct cw_operation *open_last;
    uint64_t put_next;
    uint32_t open_count;
    uint32_t duplicates_known;   /* the peer's last count */
    bool stopped;                /* the peer's queues are full */
    bool again_last;             /* the last packet was sent again */
    bool is_active;              /* in the endpoint's list of flows that may send */
    uint32_t queue_credit_count; /* in queue_credit */
    struct cw_flow *active_next;
    uint64_t packets_sent;
    uint64_t packets_retransmitted;
};

struct cw_receiver {
    struct cw_window packets;
    struct cw_window puts;
    uint64_t control_end; /* one more than the highest number outside the data sequence */
    uint64_t echo_arrival_ns;
    uint32_t echo; /* latest timestamp received */
    uint32_t duplicates;
    uint64_t focus;          /* lowest number that arrived below the highest since the last report; UINT64_MAX: none */
    uint16_t unreported;     /* data packets since the last report */
    uint16_t stream_packets; /* of the endpoint, when the last packet of this stream arrived */
    uint32_t reassemblies;   /* records of incomplete puts */
    uint8_t reports;
    bool report_now;
    bool report_from_base; /* a probe requests a full report */
    bool has_echo;
    bool told_to_stop;
    bool in_report_list;
    uint16_t streams; /* that share the line, at most CW_ACK_STREAMS_MAX */
    struct cw_flow *report_next;
};

struct cw_round_trip {
    uint64_t smoothed_ns;
    uint64_t variance_ns;
    uint64_t min_ns;        /* of the last two spans of CW_ROUND_TRIP_MIN_WINDOW_NS */
    uint64_t min_next_ns;   /* of the current span */
    uint64_t min_since_ns;  /* start of the current span */
    uint64_t reordering_ns; /* a packet this much older than one that arrived is lost */
    /* The delay back: our clock on arrival minus the peer's on departure, in units of the timestamp; only differences
     * are valid. */
    uint32_t back_min;      /* of the last two spans of CW_BACK_MIN_WINDOW_NS */
    uint32_t back_min_next; /* of the current span */
    uint64_t back_since_ns; /* start of the current span; 0: none yet */
};

/* Packets that are missing by a report and that may only be late: a packet that left no earlier has arrived, but less
 * than the reordering window ago. Packets that are still missing after the window are lost (RFC 8985, section 6.2, step
 * 5). */
struct cw_late {
    uint64_t due_ns; /* time of the next check; 0: there are none */
    uint64_t from;   /* they are from here .. to - 1, among others */
    uint64_t to;
    uint64_t first_ns;    /* when the first of them left */
    uint64_t echoed_ns;   /* departure of the latest packet that has arrived */
    uint64_t reported_ns; /* ... and the time of that report */
};

struct cw_congestion {
    uint64_t window_bytes;
    uint64_t threshold_bytes; /* by loss: slow start ends here */
    uint64_t round_end;       /* a round ends when this packet number is acknowledged */
    uint64_t round_trip_ns;   /* smallest seen in this round */
    uint32_t round_sent;      /* packets; with bandwidth control perhaps of several rounds */
    uint32_t round_lost;
    uint32_t peer_busy_ns; /* reported by the peer: see cw_endpoint_busy */
    uint8_t rounds_long;   /* limited by the window, without a short round trip */
    bool slow_start;
    bool by_loss; /* CW_CONGESTION_LOSS */
    bool limited; /* the window, not the application, limited this round */
};

struct cw_timers {
    struct cw_wheel_entry timer; /* time-out, set-up, acknowledgement: checked when it expires */
    struct cw_wheel_entry pace;  /* the time at which the next paced packet may leave */
    uint64_t probe_ns;           /* when to probe; UINT64_MAX: no answer is outstanding */
    uint64_t report_ns;          /* when to acknowledge at the latest */
    uint64_t heard_ns;           /* last valid packet of the peer */
    uint64_t shown_ns;           /* last proof that more of our packets have arrived; or start of the wait */
    uint64_t unshown_ns;         /* no proof of arrival for packets that left at this time or later */
    uint32_t probes;             /* without progress */
    uint32_t vain_probes;        /* since shown_ns */
    bool answered;               /* a proof of arrival since cw_timers_probe */
    bool paced;                  /* the next packet had to wait for its time, or makes up for a late one */
    uint64_t rate_bps;           /* paced; 0: not */
    uint64_t pace_next_ns;
};

/* The slots of its peer's pool that a sender on a long path has. */
struct cw_credit_store {
    uint16_t slots[CW_CREDIT_FAR_MAX];
};

struct cw_credit {
    union {
        uint16_t slots[CW_CREDIT_MAX]; /* of the peer's pool, ours to fill */
        struct cw_credit_store *store; /* is_far: the slots */
    };
    uint16_t count;
    uint16_t wanted; /* requested and not yet granted */
    uint16_t lent;   /* slots of our pool that the peer may fill, or has filled without our notice */
    uint16_t owed;   /* requested by the peer or to be lent again, not yet granted */
    uint16_t far;    /* slots that the peer needs on a long path, by its requests; 0: a short path */
    bool is_far;     /* we have room for more slots than a short path needs */
    bool was_lent;   /* the peer has lent us some */
    bool recalled;   /* the peer was requested to return slots */
    bool give_back;  /* the peer requests unused slots back */
    bool waiting;    /* in the endpoint's list of flows with `owed` */
    struct cw_flow *waiting_next;
};

/* A flow's place in the queue of a shaper. */
struct cw_shaping {
    uint8_t shaper; /* of the endpoint's; CW_SHAPER_LINE; CW_SHAPER_NONE */
    bool waits;     /* in the shaper's queue */
    struct cw_shaping *next;
};

enum { CW_SHAPER_LINE = CW_SHAPERS_MAX }; /* flow/shaper.h */

/* True: cw_peer_traffic has set a shaper. */
static inline bool cw_shaper_is_set(const struct cw_shaping *shaping)
{
    return shaping->shaper < CW_SHAPERS_MAX;
}

struct cw_shaper {
    struct cw_wheel_entry timer; /* in the wheel while flows wait and none has the turn */
    uint64_t rate_bps;           /* 0: not in use */
    uint64_t catch_up_ns;
    uint64_t ahead_ns;        /* a frame may leave this long before its time, and wait in the NIC */
    uint64_t next_ns;         /* when the next frame may leave ... */
    uint64_t next_remainder;  /* ... plus this / rate_bps nanoseconds */
    bool late;                /* a frame had to wait for its time: a late turn may make up for it */
    struct cw_flow *turn;     /* woken from the queue: may send before those that still wait */
    struct cw_shaping *first; /* wait for their turn */
    struct cw_shaping *last;
};

/* The proof that the UDP checksums of the ports at both ends can replace CRCs (integrity.c). */
struct cw_rehearsal {
    uint64_t end;         /* no DATA without CRC before all packets below this number have arrived */
    uint8_t link_changes; /* of our port, when the rehearsal began, its low bits */
    uint8_t sums_right;   /* correct UDP checksums of the peer in packets with a correct CRC, CW_REHEARSALS at most */
};

struct cw_peer_event {
    uint8_t kind; /* CW_EVENT_PEER_UP, CW_EVENT_PEER_DOWN */
    int8_t status;
};

struct cw_flow {
    uint32_t index;      /* the peer's number */
    uint8_t state;       /* enum cw_peer_state */
    uint8_t event_count; /* events of this peer that are not reported yet, oldest first */
    bool in_event_list;
    bool mac_learned; /* from set-up packets: the application did not add this peer */
    bool was_up;      /* reported to the application */
    bool encrypt;     /* only sealed sessions with this peer: by cw_peer_encrypt, or after a sealed one */
    struct cw_peer_event events[4];
    uint16_t stream;           /* added to our UDP port */
    struct cw_address address; /* udp_port 0: not begun (struct cw_flow_key) */
    uint32_t get_count;        /* own gets without an answer */
    struct cw_flow *event_next;
    uint16_t hello_count; /* requests for a session without an answer */
    struct cw_session session;
    struct cw_sender sender;
    struct cw_receiver receiver;
    struct cw_round_trip round_trip;
    struct cw_late *late; /* NULL: no packet has been missing yet */
    struct cw_congestion congestion;
    struct cw_bandwidth *bandwidth; /* NULL: controlled by its round trip */
    struct cw_shaping shaping;
    struct cw_timers timers;
    struct cw_credit credit;
    struct cw_rehearsal rehearsal;
    struct cw_rdma_flow *rdma; /* NULL: packets carry all */
};

/* The bytes in front of the payload, of a frame to the peer. */
static inline uint32_t cw_flow_overhead(const struct cw_flow *flow)
{
    return CW_WIRE_HEADER_BYTES +
           (uint32_t)(cw_ip_is_v4(&flow->address.ip) ? CW_WIRE_NETWORK_BYTES : CW_WIRE_NETWORK_V6_BYTES);
}

static_assert(sizeof(struct cw_flow) <= 1024, "the memory of an idle peer");
