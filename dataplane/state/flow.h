/* Flow: everything about the connection with one peer, by concern. Each part is written by one file of
 * flow/, where no other folder is named.
 *
 *   table.c        flows by address                       (flow)
 *   session.c      set-up, incarnations, keys             struct cw_session
 *   setup.c        set-up packets, signed or sealed       (session)
 *   transmit.c     what to send next, packets             struct cw_sender
 *   run.c          ... several of one put at once         (sender)
 *   frame.c        how operations are written             (sender)
 *   acknowledge.c  acknowledgements in, losses            (sender, round trip)
 *   receive.c      packets in, checks                     struct cw_receiver
 *   place.c        their frames: validated, then placed   (receiver)
 *   ack_send.c     acknowledgements out                   (receiver)
 *   congestion/    how much may be in flight: LAN         struct cw_congestion
 *                  ... and how fast: wide area            struct cw_bandwidth
 *   shaper.c       the sum of several flows               struct cw_shaper, cw_shaping
 *   integrity.c    who verifies payloads                  struct cw_rehearsal, (session)
 *   stream.c       further sessions
 *   timers.c       time-outs, probes, failure, pacing     struct cw_timers
 *   state/sent.c   records of packets in flight           struct cw_sent_records
 *   state/wake.c   when the flow is looked at             (sender, timers)
 *   staging/seal.c keys and counts of sealed sessions     struct cw_seal
 *   rdma/          its queue pair                         struct cw_rdma_flow
 *   compress.c     what travels compressed                struct cw_compress_flow
 *   compress/      ... what codecs would make of it,      (compress)
 *                  ... and how, out and in                struct cw_chunks
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

/* The search for the largest packet that the path passes. */
struct cw_path_mtu {
    uint64_t due_ns;       /* what to do next; UINT64_MAX: nothing */
    uint32_t again_s : 20; /* it is not searched again before this */
    uint32_t in : 12;      /* what acknowledgements tell of the peer's probes (cw_wire_probe_word) */
    uint16_t tried;        /* payload bytes; 0: none */
    uint16_t tries : 8;    /* of this size */
    uint16_t rounds : 4;   /* searches that ended below what both sides take */
    uint16_t turn : 1;     /* tells an answer from those to the probes of before */
    uint16_t doubted : 1;  /* a packet of the size is under way, and may be too large */
};

struct cw_session {
    uint64_t local;       /* our nonce of this session; 0: none */
    uint64_t next;        /* our nonce for the next one, in all that we ask and answer until then; 0: not drawn yet */
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
    uint16_t payload_bytes_max;    /* behind our header */
    uint16_t payload_bytes_agreed; /* the least of both sides */
    uint16_t payload_bytes_proved; /* has arrived, or is taken for granted */
    uint8_t peer_waiting;
    bool confirmed : 1; /* a packet of this session has come, so the peer has it too */
    bool listens : 1;   /* the peer's port verifies UDP checksums: ours writes them */
    bool summed : 1;    /* ... and the peer takes DATA without CRC */
    bool kept : 1;      /* both have the same medium, which keeps payloads: their frames' headers alone have a CRC */
    bool altered : 1;   /* a UDP checksum has come that does not fit: no DATA without CRC any more */
    union {
        struct {                 /* until there is a session */
            uint64_t hello_ns;   /* when to ask again */
            uint64_t started_ns; /* when set-up began, or the flow was made */
        };
        struct cw_path_mtu mtu; /* then */
    };
};

struct cw_sender {
    struct cw_sent_records sent;           /* packets base .. next */
    uint64_t in_flight_bytes;              /* sent, neither acknowledged nor taken for lost */
    uint64_t control_next;                 /* number of the next packet outside the data sequence */
    uint32_t lost_count;                   /* taken for lost and not yet sent again */
    uint32_t short_run;                    /* short operations since the last bulk packet */
    uint64_t lost_lowest;                  /* no lost packet below this number */
    uint64_t lost_turn;                    /* lost packets from here on are sent again first, then those below */
    uint64_t report_asked;                 /* no packet below this number asks for a report at once */
    struct cw_operation_queue queue_short; /* one packet each, or less */
    struct cw_operation_queue queue_bulk;
    struct cw_operation_queue
        queue_credit_frames; /* of the message pools: they go even if the peer is full, so that it can empty */
    struct cw_operation_queue queue_credit; /* messages that wait for a slot */
    struct cw_operation *open_first;        /* not retired, by number */
    struct cw_operation *open_last;
    uint64_t put_next;
    uint32_t open_count;
    uint32_t duplicates_known;   /* as the peer last counted them */
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
    uint64_t control_end; /* the number behind the highest outside the data sequence */
    uint64_t echo_arrival_ns;
    uint32_t echo; /* latest timestamp received */
    uint32_t duplicates;
    uint64_t focus;      /* lowest packet number that came below the highest since the last report; UINT64_MAX: none */
    uint16_t unreported; /* data packets since the last report */
    uint16_t stream_packets; /* of the endpoint, when the last packet of this stream came */
    uint32_t reassemblies;   /* records of puts that are not done */
    uint8_t reports;
    bool report_now;
    bool report_from_base; /* a probe asks for the whole picture */
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
    uint64_t min_next_ns;   /* of the present span */
    uint64_t min_since_ns;  /* when the present span began */
    uint64_t reordering_ns; /* a packet this much older than one that arrived is lost */
    /* Of the way back: our clock on arrival minus the peer's on departure, in units of the timestamp; only differences
     * mean anything. */
    uint32_t back_min;      /* of the last two spans of CW_BACK_MIN_WINDOW_NS */
    uint32_t back_min_next; /* of the present span */
    uint64_t back_since_ns; /* when the present span began; 0: nothing yet */
};

/* Packets that a report has called missing and that may only be late: something that left no sooner has arrived, but
 * less than the reordering window ago. What is still missing when that is over is lost (RFC 8985, section 6.2, step
 * 5). */
struct cw_late {
    uint64_t due_ns; /* when to look again; 0: there are none */
    uint64_t from;   /* they are from here .. to - 1, among others */
    uint64_t to;
    uint64_t first_ns;    /* when the first of them left */
    uint64_t echoed_ns;   /* what left so late has arrived */
    uint64_t reported_ns; /* ... as we know since then */
};

struct cw_congestion {
    uint64_t window_bytes;
    uint64_t threshold_bytes; /* by loss: slow start ends here */
    uint64_t round_end;       /* a round is over when this packet number is acknowledged */
    uint64_t round_trip_ns;   /* smallest seen in this round */
    uint32_t round_sent;      /* packets; with bandwidth control perhaps of several rounds */
    uint32_t round_lost;
    uint32_t peer_busy_ns; /* as the peer says: see cw_endpoint_busy */
    uint8_t rounds_long;   /* that the window held up while no round trip was short */
    bool slow_start;
    bool by_loss; /* CW_CONGESTION_LOSS */
    bool limited; /* the window, not the application, held packets back in this round */
};

struct cw_timers {
    struct cw_wheel_entry timer; /* time-out, set-up, acknowledgement: looked at when it comes out */
    struct cw_wheel_entry pace;  /* the time at which the next paced packet may leave */
    uint64_t probe_ns;           /* when to probe; UINT64_MAX: nothing to wait for */
    uint64_t report_ns;          /* when to acknowledge at the latest */
    uint64_t heard_ns;           /* last valid packet of the peer */
    uint64_t shown_ns;    /* when a packet came last that shows that more of ours has arrived; or since when we wait */
    uint64_t unshown_ns;  /* nothing that left at this time or later has been shown to have arrived */
    uint32_t probes;      /* without progress */
    uint32_t vain_probes; /* since shown_ns */
    bool answered;        /* something of ours was shown to have arrived since cw_timers_ask */
    bool paced;           /* the next packet had to wait for its time, or makes up for one that was late */
    uint64_t rate_bps;    /* paced; 0: not */
    uint64_t pace_next_ns;
};

/* What a sender on a long path holds of its peer's pool. */
struct cw_credit_store {
    uint16_t slots[CW_CREDIT_FAR_MAX];
};

struct cw_credit {
    union {
        uint16_t slots[CW_CREDIT_MAX]; /* of the peer's pool, ours to fill */
        struct cw_credit_store *store; /* is_far: they are there */
    };
    uint16_t count;
    uint16_t wanted; /* asked for and not yet granted */
    uint16_t lent;   /* slots of our pool that the peer may fill or has filled unseen */
    uint16_t owed;   /* asked by the peer or to be lent again, not yet granted */
    uint16_t far;  /* slots that the peer needs to keep a long path busy, as its questions have shown; 0: a short one */
    bool is_far;   /* we have room for more slots than a short path needs */
    bool was_lent; /* the peer has lent us some */
    bool recalled; /* the peer was asked to give slots back */
    bool give_back; /* the peer wants unused slots back */
    bool waiting;   /* in the endpoint's list of flows with `owed` */
    struct cw_flow *waiting_next;
};

/* A flow's place in the queue of a shaper. */
struct cw_shaping {
    uint8_t shaper; /* of the endpoint's; CW_SHAPER_LINE; CW_SHAPER_NONE */
    bool waits;     /* in the shaper's queue */
    struct cw_shaping *next;
};

enum { CW_SHAPER_LINE = CW_SHAPERS_MAX }; /* flow/shaper.h */

/* Whether cw_peer_traffic has set a shaper. */
static inline bool cw_shaper_is_set(const struct cw_shaping *shaping)
{
    return shaping->shaper < CW_SHAPERS_MAX;
}

struct cw_shaper {
    struct cw_wheel_entry timer; /* in the wheel while somebody waits and nobody has the turn */
    uint64_t rate_bps;           /* 0: not in use */
    uint64_t catch_up_ns;
    uint64_t ahead_ns;        /* so long before its time a frame may leave: what may wait in the NIC */
    uint64_t next_ns;         /* when the next frame may leave ... */
    uint64_t next_remainder;  /* ... plus this / rate_bps nanoseconds */
    bool late;                /* a frame had to wait for its time: a late turn may make up for it */
    struct cw_flow *turn;     /* woken from the queue: may send before those that still wait */
    struct cw_shaping *first; /* wait for their turn */
    struct cw_shaping *last;
};

/* Whether the ports at both ends have shown that UDP checksums can stand in for CRCs (integrity.c). */
struct cw_rehearsal {
    uint64_t end;         /* no DATA without CRC before all below this number has arrived */
    uint8_t link_changes; /* of our port, when the rehearsal began, its low bits */
    uint8_t sums_right;   /* UDP checksums of the peer's beside a CRC that fitted, CW_REHEARSALS at most */
};

struct cw_peer_event {
    uint8_t kind; /* CW_EVENT_PEER_UP, CW_EVENT_PEER_DOWN */
    int8_t status;
};

struct cw_flow {
    uint32_t index;      /* the peer's number */
    uint8_t state;       /* enum cw_peer_state */
    uint8_t event_count; /* what is still to be told of this peer, oldest first */
    bool in_event_list;
    bool mac_learned; /* from set-up packets: it was not the application that added this peer */
    bool was_up;      /* the application has been told of it */
    bool encrypt;     /* no session with this peer but a sealed one: as told, or once there was one */
    struct cw_peer_event events[4];
    uint16_t stream;           /* added to our UDP port */
    struct cw_address address; /* udp_port 0: not begun (struct cw_flow_key) */
    uint32_t get_count;        /* own gets that are not answered */
    struct cw_flow *event_next;
    uint16_t hello_count; /* requests for a session that nobody has answered */
    struct cw_session session;
    struct cw_sender sender;
    struct cw_receiver receiver;
    struct cw_round_trip round_trip;
    struct cw_late *late; /* NULL: nothing has been missing yet */
    struct cw_congestion congestion;
    struct cw_bandwidth *bandwidth; /* NULL: controlled by its round trip */
    struct cw_shaping shaping;
    struct cw_timers timers;
    struct cw_credit credit;
    struct cw_rehearsal rehearsal;
    struct cw_rdma_flow *rdma; /* NULL: packets carry all */
};

/* Of a frame to the peer: all in front of the payload. */
static inline uint32_t cw_flow_overhead(const struct cw_flow *flow)
{
    return CW_WIRE_HEADER_BYTES +
           (uint32_t)(cw_ip_is_v4(&flow->address.ip) ? CW_WIRE_NETWORK_BYTES : CW_WIRE_NETWORK_V6_BYTES);
}

static_assert(sizeof(struct cw_flow) <= 1024, "what an idle peer costs");
