/* Tunnel: Ethernet frames between two sites, over several streams of an endpoint.
 *
 * It is a link with retransmission (RFC 3366): the two ends repair losses of the wide area. So the hosts behind them
 * see losses only of a full queue, and sometimes delay instead. Frames stay in order within a stream, and a loss on one
 * stream does not delay another (RFC 3366, 3.2.2 and 2.3).
 *
 *    frame --hash--> queue --(CoDel)--> batch --put--> ring at the peer --notification--> frames, in order --> deliver
 *                                         ^                                                   |
 *                                         '------------------- room, by a tag ----------------'
 *
 * A batch has the waiting frames, at most about two milliseconds of the stream's part of the rate (records.h). It is
 * put into the peer's ring, in units of 64 bytes. A single frame leaves at once. Less than two batches are unsent in
 * the endpoint: all other frames wait in the queue, where CoDel sees them. The peer returns the room of a batch by an
 * empty put whose tag has its progress: 20 bits of a count of units.
 *
 * Invariants
 *   - An accepted frame is delivered once, unaltered, and after earlier frames of its stream; or it is counted as
 *     dropped, by reason.
 *   - Frames in flight when a session ended may have been delivered, or not: they are counted as `in_doubt`, and are
 *     not sent again.
 *   - A stream is usable when both ends have sent the places of their rings (hello), again in each session. The hello
 *     leaves only when all frames of the previous session have been delivered.
 *   - No data of a peer makes it read or write outside its rings; invalid data is counted and dropped.
 *   - All memory is allocated at the start.
 *   - No clock, no I/O: time is passed in, and the same code runs in the simulator.
 *
 * Order of calls
 *   cw_tunnel_config_init, cw_tunnel_endpoint_config, cw_endpoint_create, cw_peer_add (and one peer more for each
 *   stream), cw_tunnel_create { cw_endpoint_turn, cw_tunnel_send.., cw_tunnel_turn }* cw_endpoint_destroy, which sends
 *   a BYE, cw_tunnel_destroy
 * The tunnel takes all events of the endpoint. Owner: the thread that turns the endpoint. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/dataplane.h"
#include "dataplane/port/port.h"

enum {
    CW_TUNNEL_STREAMS_MAX = 16,
    CW_TUNNEL_STREAMS_DEFAULT = 4,
    CW_TUNNEL_FRAME_MAX_BYTES = 14 + 8 + CW_PORT_MTU_ETHERNET_MAX, /* with two VLAN tags */
};

#define CW_TUNNEL_WAIT_MAX_NS  500000000ull  /* frames that have waited longer are useless */
#define CW_TUNNEL_QUEUE_NS     100000000ull  /* default limit of a queue, at the whole rate */
#define CW_TUNNEL_PATH_NS      400000000ull  /* rings have room for a round trip of this length, at the whole rate */
#define CW_TUNNEL_RETRY_NS     1000000000ull /* interval of new attempts to reach a peer that is down */
#define CW_TUNNEL_KEEPALIVE_NS 1000000000ull /* a silent peer is probed after this */

struct cw_tunnel;

/* A frame for this end, in the ring: valid during the call. False: not now; it is offered again in the next turn, and
 * later frames of its stream wait. */
typedef bool (*cw_tunnel_deliver)(void *context, const uint8_t *frame, uint32_t length);

/* A stream has become usable, or unusable: `status` as in CW_EVENT_PEER_DOWN; CW_ERROR_ARGUMENT if the peer has another
 * version, or another number of streams. */
typedef void (*cw_tunnel_news)(void *context, uint32_t stream, bool up, int status);

struct cw_tunnel_config {
    uint32_t stream_count;
    uint32_t peers[CW_TUNNEL_STREAMS_MAX]; /* the number of each stream in the endpoint */
    uint64_t rate_bps;                     /* of all streams together, on the line; 0: measured, by each stream */
    uint64_t queue_bytes;                  /* of a stream; 0: CW_TUNNEL_QUEUE_NS of the rate */
    uint64_t ring_bytes;                   /* of a stream, in each direction; 0: CW_TUNNEL_PATH_NS of the rate */
    uint32_t frame_bytes_max;  /* that this end can deliver, 14 .. CW_TUNNEL_FRAME_MAX_BYTES; sent to the peer */
    cw_tunnel_deliver deliver; /* not NULL */
    cw_tunnel_news news;       /* NULL: no call */
    void *context;             /* of both */
};

/* X(name, meaning): of each stream. Every frame offered ends in one of TAKEN and the DROPPED_* of sending; every one
 * taken is delivered, in doubt, or dropped. */
#define CW_TUNNEL_COUNTERS(X)                                                                  \
    X(TAKEN, taken, "frames accepted for the peer")                                            \
    X(TAKEN_BYTES, taken_bytes, "their bytes")                                                 \
    X(SENT, sent, "frames handed to the dataplane")                                            \
    X(BATCHES, batches, "batches that they went in")                                           \
    X(DELIVERED, delivered, "frames of the peer delivered")                                    \
    X(DELIVERED_BYTES, delivered_bytes, "their bytes")                                         \
    X(DROPPED_FULL, dropped_full, "not taken: the queue is full")                              \
    X(DROPPED_LONG, dropped_long, "not accepted: longer than the peer can deliver")            \
    X(DROPPED_DOWN, dropped_down, "not taken, or taken and not sent: the peer is not there")   \
    X(DROPPED_STANDING, dropped_standing, "dropped since the queue did not get short (CoDel)") \
    X(DROPPED_LATE, dropped_late, "dropped since they had waited too long")                    \
    X(IN_DOUBT, in_doubt, "under way when the session ended: delivered or not")                \
    X(BROKEN, broken, "invalid batches and messages of the peer")                              \
    X(SESSIONS, sessions, "times that the stream became usable")

enum cw_tunnel_counter {
#define CW_TUNNEL_COUNTER_ENUM(name, text, meaning) CW_TUNNEL_##name,
    CW_TUNNEL_COUNTERS(CW_TUNNEL_COUNTER_ENUM)
#undef CW_TUNNEL_COUNTER_ENUM
        CW_TUNNEL_COUNTER_COUNT,
};

/* 4 streams, rate measured, sizes by the rate, frames of CW_TUNNEL_FRAME_MAX_BYTES. The caller must set peers and
 * deliver. */
void cw_tunnel_config_init(struct cw_tunnel_config *config);

/* Sets the tables of an endpoint that serves a tunnel of `stream_count` streams and nothing else. */
void cw_tunnel_endpoint_config(struct cw_endpoint_config *config, uint32_t stream_count);

/* Sets up shaper 0 and the traffic of the peers, registers the rings and begins to connect. `endpoint` must outlive it.
 * CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_MEMORY; CW_ERROR_LIMIT (the endpoint's tables are too small). */
int cw_tunnel_create(struct cw_endpoint *endpoint, const struct cw_tunnel_config *config, uint64_t now_ns,
                     struct cw_tunnel **tunnel);

/* Call it after cw_endpoint_destroy, since the endpoint's operations read its memory. Frames that wait or are in flight
 * are lost. NULL is allowed. */
void cw_tunnel_destroy(struct cw_tunnel *tunnel);

/* Accepts a frame (copied) for the peer. False: dropped, and counted. `length`: 14 at least. It leaves in
 * cw_tunnel_turn. */
bool cw_tunnel_send(struct cw_tunnel *tunnel, uint64_t now_ns, const uint8_t *frame, uint32_t length);

/* After each turn of the endpoint: takes its events, delivers, sends frames. Returns the amount of work (0: idle). */
uint32_t cw_tunnel_turn(struct cw_tunnel *tunnel, uint64_t now_ns);

/* The time at which cw_tunnel_turn is due even if the endpoint is idle. */
uint64_t cw_tunnel_deadline(const struct cw_tunnel *tunnel);

/* True if frames can be accepted for this stream. */
bool cw_tunnel_is_up(const struct cw_tunnel *tunnel, uint32_t stream);

uint32_t cw_tunnel_stream_count(const struct cw_tunnel *tunnel);
uint64_t cw_tunnel_counter(const struct cw_tunnel *tunnel, uint32_t stream, enum cw_tunnel_counter counter);

/* The queued data, in bytes on the line. */
uint64_t cw_tunnel_queue_bytes(const struct cw_tunnel *tunnel, uint32_t stream);

/* Accepted frames, neither dropped nor known to be at the peer. */
uint64_t cw_tunnel_held(const struct cw_tunnel *tunnel, uint32_t stream);

/* Its name, such as "dropped_full". */
const char *cw_tunnel_counter_name(enum cw_tunnel_counter counter);
