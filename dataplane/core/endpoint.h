/* Endpoint: the object that one owner turns; private to dataplane/.
 *
 * Layering within dataplane/: core/endpoint.c creates and takes apart, core/turn.c turns; flow/ and put/ do the work on
 * the parts below; wire/ and port/ know nothing of endpoints.
 */
#ifndef CW_ENDPOINT_H
#define CW_ENDPOINT_H

#include "dataplane/core/events.h"
#include "dataplane/core/guest.h"
#include "dataplane/core/pool.h"
#include "dataplane/dataplane.h"
#include "dataplane/fabric/random.h"
#include "dataplane/flow/flow.h"
#include "dataplane/flow/relay.h"
#include "dataplane/flow/seal.h"
#include "dataplane/flow/wheel.h"
#include "dataplane/put/arrival.h"
#include "dataplane/put/get.h"
#include "dataplane/put/message.h"
#include "dataplane/put/operation.h"
#include "dataplane/put/region.h"
#include "dataplane/wire/tags.h"

/* What a staged packet is to be signed, or sealed, with when it leaves. */
struct cw_signature {
    bool wanted;
    struct cw_seal
        *seal; /* not NULL: sealed with this one instead of signed; the header is as cw_wire_sealed_write has it */
    uint64_t words[CW_WIRE_TAG_WORDS]; /* see cw_wire_tags_add */
    struct cw_wire_key key;
};

struct cw_endpoint {
    struct cw_endpoint_config config;
    struct cw_port *port;
    uint64_t now_ns;
    uint64_t incarnation;
    uint32_t busy_ns; /* how long busy turns take, smoothed */
    struct cw_random random;
    uint32_t payload_bytes_max; /* behind our header, at this port's MTU */
    uint16_t packet_flags;      /* how we wait, in every packet */
    struct cw_aead *aead;       /* seals sessions; NULL: nothing does */
    uint8_t setup_key[CW_WIRE_SETUP_KEY_BYTES];
    uint64_t setup_count; /* nonces drawn for set-up */
    uint64_t seal_serial; /* seals made */
    bool port_full;       /* the port did not take all of `staged` */

    /* packets taken from the port and not yet looked at */
    struct cw_received fetched[CW_BURST];
    uint32_t fetched_count;
    bool has_fetched; /* for the next turn, even if there was nothing */

    /* packets on their way to the port */
    struct cw_transmit staged[CW_BURST];
    struct cw_signature signatures[CW_BURST]; /* one for each of `staged` */
    uint32_t staged_count;
    struct cw_transmit spare[CW_BURST]; /* reserved and unused */
    uint32_t spare_count;

    /* flows */
    struct cw_pool flows;
    struct cw_flow **flow_buckets; /* by address */
    uint32_t flow_bucket_mask;
    struct cw_pool bandwidths;
    struct cw_pool credit_stores;
    struct cw_pool lates;
    struct cw_shaper shapers[CW_SHAPERS_MAX];
    struct cw_stream streams[CW_STREAMS_MAX]; /* what new ones are like ... */
    bool stream_is_set[CW_STREAMS_MAX];       /* ... if it was said */
    struct cw_relay *relay;                   /* NULL: nothing is passed on */
    struct cw_pool seals;                     /* one for each session, and one for that which takes another's place */
    uint32_t reclaim_next;                    /* where to look for a flow to reclaim */
    struct cw_wheel wheel;
    struct cw_flow *active_first; /* may send, in turn */
    struct cw_flow *active_last;
    struct cw_flow *report_first; /* owe an acknowledgement now or soon */
    struct cw_flow *event_first;  /* have something to say that found no room */
    uint32_t stop_count;          /* flows that were told to stop */

    /* memory lent to flows */
    struct cw_pool sent_chunks;
    struct cw_pool blocks;

    /* operations and arrivals */
    struct cw_regions regions;
    struct cw_pool operations;
    struct cw_lanes lanes;
    struct cw_operation_queue undelivered; /* complete, and no room for the event */
    struct cw_arrivals arrivals;
    struct cw_gets gets;
    struct cw_message_pool messages;

    struct cw_guest *guest; /* NULL: nobody */
    bool guest_has_news;    /* and found no room for its event */
    struct cw_events events;
    uint64_t counters[CW_COUNTER_COUNT];
};

static inline void cw_count(struct cw_endpoint *endpoint, enum cw_counter counter, uint64_t more)
{
    endpoint->counters[counter] += more;
}

/* The flow of a peer number, or NULL. */
static inline struct cw_flow *cw_endpoint_flow(const struct cw_endpoint *endpoint, uint32_t peer)
{
    return peer < endpoint->flows.fresh ? cw_pool_at(&endpoint->flows, peer) : NULL;
}

/* ---- core/turn.c ---- */

/* Something was posted from outside a turn: sends it at once, unless `flags` (CW_MORE) say that more follows. */
void cw_endpoint_push(struct cw_endpoint *endpoint, uint32_t flags);

/* Tries to give CW_EVENT_GUEST. */
void cw_guest_deliver(struct cw_endpoint *endpoint);

/* A buffer to write a packet into, already the last of `staged`; NULL: the port has none. The packet leaves with the
 * next flush. */
struct cw_transmit *cw_stage(struct cw_endpoint *endpoint);

/* Puts the header of a staged packet in its place, to be signed with `key` when it leaves, and `in_buffer` payload
 * bytes behind it. */
static inline void cw_header_signed(struct cw_endpoint *endpoint, struct cw_transmit *packet,
                                    const struct cw_wire_header *header, uint64_t number, const struct cw_wire_key *key,
                                    uint32_t in_buffer)
{
    struct cw_signature *signature = &endpoint->signatures[packet - endpoint->staged];
    cw_wire_header_words(header, signature->words);
    memcpy(packet->data + CW_WIRE_NETWORK_BYTES, signature->words, sizeof(signature->words));
    cw_wire_tag_number(signature->words, (uint32_t)(number >> 32));
    signature->key = *key;
    signature->wanted = true;
    packet->length = CW_WIRE_OVERHEAD_BYTES + in_buffer;
}

/* The same for a packet that is to be sealed: all its payload is in the buffer. A seal that is used up seals nothing
 * more: what should have been sealed leaves as zeros. */
static inline void cw_header_sealed(struct cw_endpoint *endpoint, struct cw_transmit *packet,
                                    const struct cw_wire_header *header, struct cw_seal *seal)
{
    struct cw_signature *signature = &endpoint->signatures[packet - endpoint->staged];
    uint8_t *at = packet->data + CW_WIRE_NETWORK_BYTES;
    packet->length = CW_WIRE_OVERHEAD_BYTES + header->payload_bytes + CW_WIRE_MAC_BYTES;
    if (seal->sent >= CW_SEAL_COUNT_MAX) {
        memset(at, 0, packet->length - CW_WIRE_NETWORK_BYTES);
        return;
    }
    cw_wire_sealed_write((struct cw_wire_sealed *)at, header, seal->sent++);
    signature->seal = seal;
    signature->wanted = true;
}

/* The local time of a timestamp of ours: the last one that had it, since they repeat after 69 s; 0: there was none. */
static inline uint64_t cw_timestamp_time(const struct cw_endpoint *endpoint, uint32_t timestamp)
{
    uint64_t now_ticks = endpoint->now_ns >> CW_WIRE_TIMESTAMP_SHIFT;
    uint32_t ago = (uint32_t)now_ticks - timestamp;
    return now_ticks < ago ? 0 : (now_ticks - ago) << CW_WIRE_TIMESTAMP_SHIFT;
}

/* How long ago a timestamp came that is echoed, as the header has it. */
static inline uint16_t cw_echo_delay(const struct cw_endpoint *endpoint, bool has_echo, uint64_t arrival_ns)
{
    uint64_t held = (endpoint->now_ns - arrival_ns) >> CW_WIRE_DELAY_SHIFT;
    return has_echo && held < CW_WIRE_DELAY_UNKNOWN ? (uint16_t)held : CW_WIRE_DELAY_UNKNOWN;
}

/* Signs or seals what is staged and complete. */
void cw_sign(struct cw_endpoint *endpoint);

/* Signs and hands what is staged to the port. False: the port is full. */
bool cw_flush(struct cw_endpoint *endpoint);

/* Forgets a cw_endpoint_fetch that found nothing: the next turn, or the next fetch, looks again. */
static inline void cw_endpoint_fetched_nothing(struct cw_endpoint *endpoint)
{
    endpoint->has_fetched = false;
}

/* True if nothing but packets and timers can give this endpoint work. */
bool cw_endpoint_idle(const struct cw_endpoint *endpoint);

/* ---- flow/table.c ---- */

/* A flow for an address that has none; `stream`: from our UDP port that much further on. When the table is full, one is
 * reclaimed that a set-up request made, nobody was told of, and whose asker has not proved itself in time. NULL: there
 * is none. */
struct cw_flow *cw_flow_add(struct cw_endpoint *endpoint, const struct cw_address *address, uint32_t stream);
struct cw_flow *cw_flow_find(const struct cw_endpoint *endpoint, uint32_t ipv4, uint16_t udp_port);

/* Our UDP port towards the peer. */
static inline uint16_t cw_flow_port(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    return (uint16_t)(endpoint->config.address.udp_port + flow->stream);
}

/* ---- flow/stream.c ---- */

/* A flow for a stream of the process whose stream 0 is `first`, as cw_stream_set says. NULL: the table is full. */
struct cw_flow *cw_stream_add(struct cw_endpoint *endpoint, const struct cw_flow *first, uint32_t stream);

/* The peer's MAC address is known, or is another one. */
void cw_way_address(struct cw_flow *flow, const uint8_t mac[6]);

/* The relay on a flow's way, if there is one, seems to be silent: straight to the peer for a while. */
void cw_way_detour(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Back to the relay, if the while is over. */
void cw_way_return(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* ---- flow/session.c ---- */

/* Payload bytes that a signed session leaves unused until it is confirmed: the peer may yet insist on a sealed one. */
static inline uint32_t cw_session_spare(const struct cw_endpoint *endpoint, const struct cw_session *session)
{
    return endpoint->aead != NULL && session->seal == NULL ? CW_WIRE_MAC_BYTES : 0;
}

/* Starts set-up if the flow is closed; does nothing if it is under way or done. */
void cw_session_start(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A set-up packet has come in (still unverified). */
void cw_session_hello(struct cw_endpoint *endpoint, const struct cw_wire_header *header);

/* Sends a request that is due. */
void cw_session_retry(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Sends the peer the proof that it needs to begin the session that we have begun. */
void cw_session_prove(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A packet of the session has come. */
static inline void cw_session_confirm(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_session *session = &flow->session;
    if (!session->confirmed) {
        session->confirmed = true;
        session->payload_bytes_max = (uint16_t)(session->payload_bytes_max + cw_session_spare(endpoint, session));
    }
}

/* Ends a session: all operations end with `status`, the state becomes `state`, and the application is told. */
void cw_session_end(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_peer_state state, int status);

/* Ends a session whose seal is used up; true if it was. */
bool cw_session_spent(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Tells connected peers that this endpoint goes. */
void cw_session_goodbye(struct cw_endpoint *endpoint);

/* Gives peer events that found no room before; returns how many. */
uint32_t cw_session_deliver(struct cw_endpoint *endpoint);

/* ---- flow/frame.c ---- */

/* Bytes that a whole operation takes as one frame, its data included. */
uint32_t cw_frame_bytes(const struct cw_operation *operation);

/* Writes the frames of a record at `at` in the packet's buffer; returns the bytes there, and in *gathered those in the
 * packet's pieces, of which there are none unless `may_gather`. */
uint32_t cw_frames_write(const struct cw_endpoint *endpoint, const struct cw_sent *record, struct cw_transmit *packet,
                         uint8_t *at, bool may_gather, uint32_t *gathered);

/* ---- flow/transmit.c ---- */

/* Puts the flow among those that may send, if it has something to send. */
void cw_transmit_wake(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Sends for the flows in turn; returns the number of packets. */
uint32_t cw_transmit_turn(struct cw_endpoint *endpoint);

/* A packet outside the data sequence, with `payload_bytes` of room behind the header (payload returned; NULL: the port
 * has no buffer); completed by cw_transmit_control_finish. */
uint8_t *cw_transmit_control(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_wire_type type,
                             uint32_t payload_bytes);
void cw_transmit_control_finish(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t payload_bytes);

/* Bytes of a bulk operation that a full packet carries; 0: not in session. */
uint32_t cw_transmit_part_bytes(const struct cw_flow *flow);

/* ---- flow/acknowledge.c ---- */

/* Everything below `number` has arrived. */
void cw_acknowledge_below(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t number);

/* The payload of a verified ACK packet. False: malformed. */
bool cw_acknowledge_runs(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header);

/* A REJECT packet. False: malformed. */
/* What was missing and may have been late: takes for lost what is so for too long. */
void cw_acknowledge_late(struct cw_endpoint *endpoint, struct cw_flow *flow);

bool cw_acknowledge_reject(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header);

/* A round trip can be taken from the echo of this packet. */
void cw_acknowledge_echo(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header);

/* ---- flow/receive.c ---- */

/* Received Ethernet frames, in order; at most CW_BURST. */
void cw_receive_frames(struct cw_endpoint *endpoint, const struct cw_received *packets, uint32_t count);

/* ---- flow/report.c ---- */

/* The flow owes an acknowledgement: now, or when its delay is over. `streams`: for a full packet, after which others
 * follow. */
void cw_report_want(struct cw_endpoint *endpoint, struct cw_flow *flow, bool now, bool streams);

/* Any packet to the flow carries the cumulative acknowledgement: what need not be said again is crossed out. */
void cw_report_carried(struct cw_flow *flow);

/* Sends the acknowledgements that are due; returns how many. */
uint32_t cw_report_turn(struct cw_endpoint *endpoint);

/* Sends one now. False: the port has no buffer. */
bool cw_report_send(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* True if this endpoint's queues are so full that senders should pause. */
bool cw_report_congested(const struct cw_endpoint *endpoint);

/* ---- flow/timers.c ---- */

/* Makes sure that the timer comes out by `time_ns`. */
void cw_timers_need(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t time_ns);

/* A packet left that the peer must answer. */
void cw_timers_sent(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The peer holds memory of ours: if it falls silent, find out whether it is still there. */
void cw_timers_watch(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The peer is to show that it hears us even if nothing is in flight. */
void cw_timers_ask(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A valid packet of the peer came. Echoed is the timestamp of the latest of ours that it had then. */
void cw_timers_heard(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t echo);

/* Something was acknowledged: the time-out starts again, or ends if nothing is in flight. */
void cw_timers_progress(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Runs everything whose time has come; returns how much. */
uint32_t cw_timers_turn(struct cw_endpoint *endpoint);

/* True if pacing lets a packet go now; else the flow comes back by itself when it does. */
bool cw_timers_pace(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A packet of this many bytes has left a paced flow. */
void cw_timers_paced(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t frame_bytes);

/* ---- flow/congestion.c ---- */

void cw_congestion_init(const struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The round trip that a sender aims at whose smallest one is `min_ns`, in nanoseconds: the same for all that share a
 * LAN, flows and multicasts alike. What some full frames take on the port's line is part of it: the smallest round trip
 * is a small packet's, and slow lines would let less than a few full frames be in flight. `frame_bytes`: with all
 * headers. `spins`: who sends and who receives poll all the time. */
uint64_t cw_congestion_target(const struct cw_endpoint *endpoint, uint64_t min_ns, uint32_t frame_bytes, bool spins);

/* True if another full packet may be in flight. */
bool cw_congestion_open(struct cw_flow *flow);

/* A round trip was measured. */
void cw_congestion_sample(struct cw_flow *flow, uint64_t round_trip_ns);

/* Packets below `number` were acknowledged. */
void cw_congestion_progress(struct cw_endpoint *endpoint, struct cw_flow *flow);

#endif
