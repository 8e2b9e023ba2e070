/* dataplane: the notified put between processes, over any port.
 *
 * Purpose
 *   An endpoint owns one port and moves bytes between registered regions of processes that share a job key. A put is
 *   complete when all its bytes are in the target's region and the target has got one notification.
 *
 * Invariants
 *   - One owner: the thread that turns an endpoint owns all its state. Only the owner calls the cw_endpoint_*,
 *     cw_peer_*, cw_region_*, cw_put, cw_get and cw_message_* functions. Other threads use a cw_loop
 *     (dataplane/loop/loop.h), which guards the same calls by a token and a bounded queue of commands.
 *   - No clock, no randomness and no I/O inside: time is passed in, the generator is seeded by the configuration,
 *     packets pass through the port. The same objects run on a NIC and in the simulator.
 *   - A notification arrives exactly once, never before its data. Notifications of one lane arrive in posting order,
 *     those of different lanes in any order.
 *   - Two puts in flight to the same bytes of a region are forbidden; the bytes that remain are then undefined. A debug
 *     build (-Ddebug_overlap=true) detects them (CW_ERROR_OVERLAP at the sender, a counter at the target).
 *   - struct cw_endpoint_config bounds all tables and queues. If one is full, calls return CW_ERROR_AGAIN, and no data
 *     is lost.
 *
 * Order of calls
 *   cw_endpoint_config_init, cw_endpoint_create
 *   { cw_peer_add | cw_region_register | cw_put | cw_get | cw_message_send | cw_endpoint_turn | cw_endpoint_events }*
 *   cw_endpoint_destroy; close the port after it
 */
#ifndef CW_DATAPLANE_H
#define CW_DATAPLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/codec/kinds.h"
#include "dataplane/ip.h"
#include "dataplane/limits.h"
#include "dataplane/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cw_endpoint;
struct cw_port;

/* The address of an endpoint. All endpoints of a job use IPv4, or all use IPv6. */
struct cw_address {
    struct cw_ip ip;
    uint16_t udp_port; /* host byte order */
    uint8_t mac[6];    /* of the next hop on this LAN */
};

/* How the process at an endpoint waits for packets. Set-up reports it to peers: their time-outs depend on it. */
enum cw_waiting {
    CW_WAITING_SPIN = 0,  /* a dedicated core polls all the time */
    CW_WAITING_SLEEP = 1, /* sleeps and is woken by its port */
    CW_WAITING_NAP = 2,   /* polls its port between timed naps */
};

/* Which sessions are sealed: header and payload authenticated and encrypted, by AES-GCM (WIRE.md). If either peer
 * requests it, the session is sealed. */
enum cw_encryption {
    CW_ENCRYPTION_OFF = 0,      /* none: a peer that requests one gets a rejection */
    CW_ENCRYPTION_ASKED = 1,    /* those of cw_peer_encrypt, and those that a peer requests */
    CW_ENCRYPTION_REQUIRED = 2, /* all */
};

/* How an endpoint controls the amount of data in flight to a peer of the same LAN. */
enum cw_congestion_control {
    CW_CONGESTION_DELAY = 0, /* by round trips: queues stay short */
    CW_CONGESTION_LOSS =
        1, /* as the TCP of 2003: queues grow until packets are lost; 200 ms time-outs. For comparisons */
};

struct cw_endpoint_config {
    struct cw_address address; /* mac all zero: the port's own */
    uint8_t job_key[16];       /* 128 bits, known only to the processes of the job */
    uint64_t seed;             /* for sessions, region keys and first numbers: unpredictable in real use */
    enum cw_waiting waiting;
    enum cw_encryption encryption;
    bool accept_unknown; /* a set-up request from an unknown address adds a peer */
    /* Payloads have a CRC-32C that the receiving process verifies, in this endpoint's packets and in those of its
     * peers, for every port and transport. */
    bool end_to_end;
    uint16_t group_port;       /* of packets to multicast groups, if the members' own ports differ; 0: the address's */
    uint32_t stream_count;     /* 1 .. CW_STREAMS_MAX: the endpoint's number of UDP ports, from the address's on */
    uint32_t peer_count_max;   /* 1 .. CW_PEERS_MAX; each stream counts */
    uint32_t region_count_max; /* 1 .. CW_REGIONS_MAX */
    /* puts, gets and messages in flight, of all peers; one peer gets at most half of the rest that others leave */
    uint32_t operation_count_max;
    uint32_t reassembly_count_max; /* incomplete puts, and puts delayed by their lane; at least 2 * peer_count_max */
    uint32_t event_count_max;      /* a power of two, at least 256: room for all puts that share a packet */
    uint32_t get_count_max;        /* gets in flight, 1 .. 65534; shared in the same way */
    uint32_t pool_slot_count;      /* the receive pool for small messages, 0 .. CW_SLOTS_MAX; 0: no messages */
    uint32_t pool_slot_bytes;      /* longest message, a multiple of 64, up to CW_SLOT_BYTES_MAX */
    uint32_t sent_chunk_count;     /* records of packets in flight: 64 a chunk, all peers together */
    uint32_t window_block_count;   /* 1 KiB blocks that keep track of packets that arrived out of order */
    uint32_t congestion_window_max_bytes; /* per peer */
    enum cw_congestion_control congestion;
    uint64_t failure_timeout_ns; /* maximum silence of a peer that owes an answer, before it is declared failed */
    /* Called for a peer that has been silent for half of that time, and from then on. True: its time starts again. The
     * thread that turns the endpoint calls it; it must not call the endpoint. NULL: no peer is excused. */
    bool (*is_excused)(void *context, uint32_t peer);
    void *excuse_context;
};

/* Fills in the defaults of `dataplane/limits.h`; address, key and seed stay zero and must be set. */
void cw_endpoint_config_init(struct cw_endpoint_config *config);

/* Creates an endpoint on `port`. The port remains the caller's and must outlive the endpoint. CW_OK, CW_ERROR_ARGUMENT
 * (the one-line reason in `error`), CW_ERROR_MEMORY; with encryption also CW_ERROR_UNSUPPORTED (no usable libcrypto)
 * and CW_ERROR_SYSTEM. */
int cw_endpoint_create(const struct cw_endpoint_config *config, struct cw_port *port, uint64_t now_ns,
                       struct cw_endpoint **endpoint, char *error, size_t error_bytes);

/* Sends a BYE to connected peers (one packet each, best effort), closes and frees. NULL is allowed. */
void cw_endpoint_destroy(struct cw_endpoint *endpoint);

/* One turn: receives a burst of packets, runs due timers, sends packets that the windows allow. Its work is bounded.
 * Returns the amount of work (0: idle). `now_ns` must never decrease. */
uint32_t cw_endpoint_turn(struct cw_endpoint *endpoint, uint64_t now_ns);

/* Takes a burst of packets from the port for the next turn; returns the number of waiting packets. With a real clock,
 * call it before reading the clock: otherwise, if the loop is descheduled in between, packets seem to arrive too early,
 * and round trips are measured too short. */
uint32_t cw_endpoint_fetch(struct cw_endpoint *endpoint);

/* Sets the time for operations that are posted before the next turn. Default: the time of the last turn. */
void cw_endpoint_clock(struct cw_endpoint *endpoint, uint64_t now_ns);

/* Reports the duration of the last turn, if it did work: peers and this endpoint then do not treat that time as a queue
 * in the network. Without it (virtual time) turns count as instantaneous. */
void cw_endpoint_busy(struct cw_endpoint *endpoint, uint64_t duration_ns);

/* The time at which cw_endpoint_turn is due even if no packet arrives. UINT64_MAX: none; 0: at once. */
uint64_t cw_endpoint_deadline(const struct cw_endpoint *endpoint);

/* The address of this endpoint for its peers (the port's MAC filled in). */
struct cw_address cw_endpoint_address(const struct cw_endpoint *endpoint);

/* ---- Peers ---- */

/* Adds a peer; no packet is sent before the first operation. *peer is its number in this endpoint. Adding an address
 * (IP and port) again returns the same number. CW_OK, CW_ERROR_LIMIT, CW_ERROR_ARGUMENT. */
int cw_peer_add(struct cw_endpoint *endpoint, const struct cw_address *address, uint32_t *peer);

/* Sets up the connection before the first operation needs it. CW_EVENT_PEER_UP follows, or CW_EVENT_PEER_DOWN after
 * failure_timeout_ns. CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_PEER_FAILED (see cw_peer_reset). */
int cw_peer_connect(struct cw_endpoint *endpoint, uint32_t peer);

/* Probes a peer, connected or not: if it does not answer, CW_EVENT_PEER_DOWN follows after failure_timeout_ns and an
 * interval between probes (up to 250 ms). For a caller that waits for data that only the peer can send. If an answer is
 * outstanding already, the call sends nothing. Errors as cw_peer_connect. */
int cw_peer_check(struct cw_endpoint *endpoint, uint32_t peer);

/* Starts the search for the path MTU now; otherwise the first large packet to the peer starts it (RFC 8899). CW_OK,
 * CW_ERROR_ARGUMENT, CW_ERROR_CLOSED (not set up). */
int cw_peer_measure_mtu(struct cw_endpoint *endpoint, uint32_t peer);

/* Sends one small packet that the peer answers at once. cw_peer_query returns the time of the answer (heard_ns) and the
 * shortest round trip. A lost packet is not repeated. CW_OK; CW_ERROR_AGAIN: no buffer; CW_ERROR_ARGUMENT;
 * CW_ERROR_CLOSED: there is no session (cw_peer_connect). */
int cw_peer_probe(struct cw_endpoint *endpoint, uint32_t peer);

/* Permits new operations to a failed peer, with a new session. CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_BUSY if it has not
 * failed. */
int cw_peer_reset(struct cw_endpoint *endpoint, uint32_t peer);

/* Sets shaper 0 .. CW_SHAPERS_MAX - 1: packets to its peers leave at `rate_bps` at most, in bits per second on the line
 * (frames with their 24 bytes of preamble, check sequence and gap); 0: no limit. After a late turn, the packets that it
 * has missed leave at once, for up to `catch_up_ns` at the rate (CW_CATCH_UP_MAX_NS at most). With 0 no packets ever
 * leave in bunches, and the missed time is lost. CW_OK, CW_ERROR_ARGUMENT. */
int cw_shaper_set(struct cw_endpoint *endpoint, uint32_t shaper, uint64_t rate_bps, uint64_t catch_up_ns);

/* The control of the amount of data in flight to a peer. */
enum cw_traffic_control {
    /* by the round trip: for a LAN, where it keeps queues short and shares them fairly. If no round trip is short, the
     * peer switches to CW_TRAFFIC_BANDWIDTH */
    CW_TRAFFIC_DELAY = 0,
    CW_TRAFFIC_RATE = 1, /* at a given rate, kept by the shaper if there is one: for a wide area whose rate is known */
    CW_TRAFFIC_BANDWIDTH = 2, /* by the measured rate of delivery: for a wide area whose rate is not known */
};

#define CW_SHAPER_NONE 255u

struct cw_traffic {
    enum cw_traffic_control control;
    uint32_t shaper;   /* CW_SHAPER_NONE: none */
    uint64_t rate_bps; /* CW_TRAFFIC_RATE: of the path, on the line as above, above 0; else 0 */
};

/* Sets the traffic control of a peer; at any time. Default: CW_TRAFFIC_DELAY, no shaper. CW_OK, CW_ERROR_ARGUMENT,
 * CW_ERROR_LIMIT. */
int cw_peer_traffic(struct cw_endpoint *endpoint, uint32_t peer, const struct cw_traffic *traffic);

/* ---- Streams: several sessions with one process ---- */

/* A stream is one of several sessions between the same two processes. Each has its own windows and losses. Its number
 * is added to both UDP ports. Opens stream 1 .. stream_count - 1 of the process of `peer`, which is itself stream 0.
 * *number is a peer for all other calls. It is sealed if `peer` must be sealed, and starts with the traffic control of
 * `peer` (cw_peer_traffic). A stream that the peer requests is also opened here. A second call returns the same number.
 * CW_OK, CW_ERROR_LIMIT, CW_ERROR_ARGUMENT (also: stream >= stream_count). */
int cw_peer_stream(struct cw_endpoint *endpoint, uint32_t peer, uint32_t stream, uint32_t *number);

/* Sets whether sessions with a peer must be sealed; before set-up. If neither peer requests it, they are not. CW_OK;
 * CW_ERROR_ARGUMENT; CW_ERROR_UNSUPPORTED (the endpoint's encryption is off, or, for false, required); CW_ERROR_BUSY
 * (in session, or in set-up). If the peer cannot seal, CW_EVENT_PEER_DOWN with CW_ERROR_UNSUPPORTED follows, and the
 * peer has failed. */
int cw_peer_encrypt(struct cw_endpoint *endpoint, uint32_t peer, bool encrypt);

enum cw_peer_state {
    CW_PEER_CLOSED = 0,     /* never used, or closed by a BYE */
    CW_PEER_CONNECTING = 1, /* set-up in progress */
    CW_PEER_ESTABLISHED = 2,
    CW_PEER_FAILED = 3, /* silent for the failure timeout; operations return CW_ERROR_PEER_FAILED until cw_peer_reset */
};

/* The check of a session's payloads in transit (WIRE.md, "Who verifies a payload"). The header of a packet, and of a
 * put in it, always have a tag and a CRC-32C. */
enum cw_cover {
    CW_COVER_CRC = 0,    /* a CRC-32C that the processes of both ends compute */
    CW_COVER_NICS = 1,   /* UDP checksums, by the NICs of both ends */
    CW_COVER_KERNEL = 2, /* UDP checksums, by the kernels of both ends, or by NICs that they trust */
    CW_COVER_MEMORY = 3, /* none: payloads stay in the memory of one machine */
    CW_COVER_SEAL = 4,   /* AES-GCM */
};

/* Its name, such as "CRC-32C, by the processes". */
const char *cw_cover_text(enum cw_cover cover);

struct cw_peer_info {
    struct cw_address address;
    uint32_t stream; /* 0: the first session with that process */
    enum cw_peer_state state;
    enum cw_waiting waiting; /* as the peer reported */
    bool encrypted;          /* the current session is sealed */
    enum cw_cover cover;     /* of data to the peer in the current session; CRC without one */
    uint64_t incarnation;    /* of the peer; 0 before the first set-up */
    uint64_t round_trip_ns;  /* smoothed; 0: not measured */
    uint64_t round_trip_min_ns;
    uint64_t congestion_window_bytes;
    uint64_t in_flight_bytes;
    uint64_t unsent_bytes;   /* of posted puts and messages, not sent yet */
    uint32_t part_bytes_max; /* bytes of a long put in one packet; 0: not set up */
    uint32_t path_mtu_bytes; /* packets of this size arrive (1,280: assumed); 0: not set up */
    bool path_mtu_found;     /* no search for a larger size is in progress */
    uint64_t packets_sent;   /* data packets, retransmissions included */
    uint64_t packets_retransmitted;
    uint64_t packets_unacknowledged;
    uint64_t heard_ns;        /* arrival of the last valid packet */
    uint32_t operations_open; /* posted, not yet retired */
    uint32_t credit;          /* available message slots of the peer */
    uint64_t bytes_active;    /* current memory of this peer beyond its fixed part */
};

/* Fills in *info. CW_OK, CW_ERROR_ARGUMENT. */
int cw_peer_query(const struct cw_endpoint *endpoint, uint32_t peer, struct cw_peer_info *info);

/* ---- Regions ---- */

enum cw_region_rights {
    CW_REGION_LOCAL = 0, /* source of puts, destination of gets */
    CW_REGION_WRITE = 1, /* peers may put into it */
    CW_REGION_READ = 2,  /* peers may get from it */
    /* Together with READ only: an RDMA device may keep the region's pages, whole, registered after deregistration, for
     * the next registration of the same memory. Meanwhile peers that know the token may still get from them. */
    CW_REGION_KEPT = 4,
};

/* Registers memory. *token names it; a peer needs the token to access it: 16 bits of index, 48 random bits of key. The
 * memory remains the caller's and must stay valid until deregistration. `bytes` may be 0 (a region for notifications
 * only). CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_LIMIT. */
int cw_region_register(struct cw_endpoint *endpoint, void *base, uint64_t bytes, uint32_t rights, uint64_t *token);

/* The same under the token that another endpoint of this process has returned, so that peers can access the memory
 * through both endpoints. CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_BUSY: another registration of this endpoint has that
 * index. */
int cw_region_register_as(struct cw_endpoint *endpoint, void *base, uint64_t bytes, uint32_t rights, uint64_t token);

/* Ends a registration. After CW_OK the endpoint no longer accesses the memory (except with CW_REGION_KEPT). Puts that
 * still arrive are rejected: their senders get CW_ERROR_REMOTE_ACCESS. CW_ERROR_BUSY: an own put reads from it, a get
 * writes into it (also a get of an ended session, while an RDMA device may still deliver it), or the driver still holds
 * packets with pieces of it; turn and try again. CW_ERROR_NOT_FOUND: no such token. */
int cw_region_deregister(struct cw_endpoint *endpoint, uint64_t token);

/* ---- Operations ---- */

/* 32 bits travel with a put and arrive with its notification: 12 bits of lane, 20 bits of tag. */
static inline uint32_t cw_lane_tag(uint32_t lane, uint32_t tag)
{
    return lane << CW_TAG_BITS | (tag & ((1u << CW_TAG_BITS) - 1));
}

static inline uint32_t cw_lane(uint32_t lane_tag)
{
    return lane_tag >> CW_TAG_BITS;
}

static inline uint32_t cw_tag(uint32_t lane_tag)
{
    return lane_tag & ((1u << CW_TAG_BITS) - 1);
}

/* One piece of a source. */
struct cw_slice {
    const void *data;
    uint64_t bytes;
};

enum cw_source_kind {
    CW_SOURCE_CONTIGUOUS = 0,
    CW_SOURCE_STRIDED = 1,
    CW_SOURCE_SLICES = 2,
};

/* The source of a put. Its bytes arrive contiguously at the target. The memory (and the list of slices) must not change
 * before local completion. The call copies up to CW_INLINE_MAX contiguous bytes; these may change as soon as it
 * returns. */
struct cw_source {
    enum cw_source_kind kind;
    enum cw_element element; /* type of its elements: a hint for compression */
    uint64_t region; /* token of the own region that contains all of it, so that it need not be copied; 0: none */
    union {
        struct {
            const void *data;
            uint64_t bytes;
        } contiguous;
        struct {
            const void *data;
            uint64_t block_bytes;
            int64_t stride_bytes; /* from the start of one block to the next */
            uint64_t block_count;
        } strided;
        struct {
            const struct cw_slice *list;
            uint64_t count; /* up to CW_SLICES_MAX */
        } slices;
    };
};

enum cw_operation_flags {
    CW_SIGNAL = 1,      /* post a CW_EVENT_COMPLETE when all bytes are at the target and the source may be reused */
    CW_MORE = 2,        /* another operation follows at once: sending may wait for it, and both may share a packet */
    CW_ALONE = 4,       /* puts only: shares a packet with no other operation */
    CW_SIGNAL_SENT = 8, /* puts only: post a CW_EVENT_SENT when the last byte has left */
};

struct cw_put {
    uint32_t peer;
    uint32_t lane_tag;
    uint64_t region; /* token of the target's region */
    uint64_t offset; /* in that region */
    struct cw_source source;
    uint64_t context; /* returned with CW_EVENT_COMPLETE */
    uint32_t flags;
};

/* Posts a put. A later failure posts a CW_EVENT_COMPLETE with a negative status, also without CW_SIGNAL. CW_OK;
 * CW_ERROR_AGAIN (operations or the peer's window are used up: turn, take events, try again); CW_ERROR_ARGUMENT;
 * CW_ERROR_NOT_FOUND (source.region is not an own region that contains the source); CW_ERROR_PEER_FAILED;
 * CW_ERROR_OVERLAP (debug build). */
int cw_put(struct cw_endpoint *endpoint, const struct cw_put *put);

/* A get requests the peer's dataplane to put bytes of its region (right CW_REGION_READ) into an own region. When they
 * have arrived, a CW_EVENT_GET with `lane_tag` and `context` follows. */
struct cw_get {
    uint32_t peer;
    uint32_t lane_tag;
    uint64_t region; /* token of the peer's region to read */
    uint64_t offset;
    uint64_t bytes;
    uint64_t local_region; /* token of the own region to write, with any rights */
    uint64_t local_offset;
    uint64_t context;
    uint32_t flags;          /* CW_MORE */
    enum cw_element element; /* type of the elements: a hint for compression */
};

/* Posts a get. Errors as cw_put. A get that fails later posts a CW_EVENT_GET with a negative status:
 * CW_ERROR_REMOTE_ACCESS also if the peer's bytes have changed while they travelled compressed. */
int cw_get(struct cw_endpoint *endpoint, const struct cw_get *get);

/* A small message. It arrives in a slot of the receiver's pool. The sender needs credit for the slot, or requests it
 * first. */
struct cw_message {
    uint32_t peer;
    uint32_t lane_tag;
    struct cw_source source;
    uint64_t context;
    uint32_t flags;
};

/* Posts a message. Errors as cw_put; CW_ERROR_ARGUMENT also if it is longer than the receiver's slots. Before set-up
 * their length is not known, and such a message completes with CW_ERROR_ARGUMENT. A message that waits for credit
 * counts as in flight. */
int cw_message_send(struct cw_endpoint *endpoint, const struct cw_message *message);

/* Returns the slot of a CW_EVENT_MESSAGE; its data must not be read afterwards. CW_OK, CW_ERROR_ARGUMENT (not a slot
 * in use). */
int cw_message_release(struct cw_endpoint *endpoint, uint32_t slot);

/* ---- Compression ---- */

enum cw_compression_mode {
    CW_COMPRESSION_OFF = 0,  /* own data is not compressed; compressed data of peers is accepted */
    CW_COMPRESSION_AUTO = 1, /* data that arrives faster for it, as far as measured */
    CW_COMPRESSION_ON = 2,   /* all data that becomes shorter */
};

struct cw_compression {
    enum cw_compression_mode mode;
    enum cw_codec codec;                     /* only this one, and runs; CW_CODEC_NONE: the best one */
    struct cw_codec_speed speeds[CW_CODECS]; /* AUTO: all zero: codecs cost nothing, as in virtual time */
};

/* Sets the compression of data that the endpoint sends in packets, from now on. CW_OK; CW_ERROR_ARGUMENT;
 * CW_ERROR_MEMORY. */
int cw_endpoint_compress(struct cw_endpoint *endpoint, const struct cw_compression *compression);

/* The compression of one kind of elements to a peer. */
struct cw_compression_report {
    enum cw_codec codec;  /* in use or last tried; CW_CODEC_NONE: none was */
    bool is_on;           /* now */
    uint64_t samples;     /* times that data was sampled */
    uint64_t trials;      /* times that data was sent with and without, and both measured */
    uint64_t raw_bytes;   /* sent in chunks, as they were */
    uint64_t chunk_bytes; /* ... and as they travelled */
    double rate;          /* of the latest chunks: raw to travelled */
    double link_ns;       /* a raw byte of the link at its best; 0: not known yet */
    double codec_ns;      /* a raw byte of the codec, both ends */
    double plain_ns;      /* a raw byte without compression, mean of the measurements; 0: none */
    double packed_ns;     /* ... with it */
    double saved_ns;      /* (plain_ns - packed_ns) of all raw_bytes */
};

/* Fills in *report. False: no data of this kind yet, or no such peer. */
bool cw_peer_compression(const struct cw_endpoint *endpoint, uint32_t peer, enum cw_element element,
                         struct cw_compression_report *report);

/* ---- Events ---- */

enum cw_event_kind {
    CW_EVENT_PUT = 1,      /* a put has arrived: peer, lane_tag, region, offset, bytes; by a queue pair (dataplane/rdma)
                              the region is 0, the offset undefined, and bytes are those of its last piece */
    CW_EVENT_MESSAGE = 2,  /* a message has arrived: peer, lane_tag, data, bytes, slot (cw_message_release) */
    CW_EVENT_GET = 3,      /* an own get is complete: peer, lane_tag, region, offset, bytes, context, status */
    CW_EVENT_COMPLETE = 4, /* a source may be reused: peer, lane_tag, context, status */
    CW_EVENT_PEER_UP = 5,  /* set-up is complete; status CW_ERROR_PEER_RESTARTED if it replaced an older session, or
                              one with another process at that address */
    /* All operations of the peer have ended; status: CW_ERROR_PEER_FAILED, CW_ERROR_PEER_RESTARTED, CW_ERROR_CLOSED,
     * CW_ERROR_UNSUPPORTED (see cw_peer_encrypt) or CW_ERROR_LIMIT (a sealed session's keys are used up, after 2^40
     * packets: the next operation sets up a new session) */
    CW_EVENT_PEER_DOWN = 6,
    /* the last byte of a put has left, for the first time: peer, lane_tag, context. Never after its CW_EVENT_COMPLETE.
     * Omitted if the put fits a packet, or if half of the event queue is in use */
    CW_EVENT_SENT = 7,
    /* a protocol extension (multicast: mcast/mcast.h) has just called a function of its handler, in this thread; the
     * other fields have no meaning */
    CW_EVENT_EXTENSION = 8,
};

struct cw_event {
    enum cw_event_kind kind;
    int status;
    uint32_t peer;
    uint32_t lane_tag;
    uint64_t region;
    uint64_t offset;
    uint64_t bytes;
    union {
        uint64_t context;
        const void *data;
    };
    uint32_t slot;
};

/* Takes up to `count_max` events in their order; returns their number. One consumer thread at a time, any
 * thread. */
uint32_t cw_endpoint_events(struct cw_endpoint *endpoint, struct cw_event *events, uint32_t count_max);

/* ---- Counters ---- */

/* X(name, meaning): all events are counted, dropped packets by reason. */
#define CW_COUNTERS(X)                                                                                           \
    X(PACKETS_IN, "packets received")                                                                            \
    X(PACKETS_OUT, "packets sent")                                                                               \
    X(BYTES_IN, "bytes received, Ethernet frames")                                                               \
    X(BYTES_OUT, "bytes sent, Ethernet frames")                                                                  \
    X(DATA_OUT, "data packets sent for the first time")                                                          \
    X(RETRANSMITTED, "data packets sent again")                                                                  \
    X(ACKNOWLEDGEMENTS_IN, "acknowledgement packets received")                                                   \
    X(ACKNOWLEDGEMENTS_OUT, "acknowledgement packets sent")                                                      \
    X(PROBES_OUT, "probes sent after a time-out")                                                                \
    X(REJECTS_OUT, "packets refused to their sender: unknown region, wrong key, missing right or out of bounds") \
    X(REJECTS_IN, "own packets that a target refused")                                                           \
    X(PUTS_POSTED, "puts posted")                                                                                \
    X(PUTS_ARRIVED, "puts notified")                                                                             \
    X(PORT_FULL, "turns in which the port took fewer packets than offered")                                      \
    X(RUN_OUT, "... of the data packets, that left in runs: full ones of one put, one behind the other")         \
    X(RUN_IN, "data packets that came in runs")                                                                  \
    X(DROP_SHORT, "dropped: shorter than its headers")                                                           \
    X(DROP_FOREIGN, "dropped: not for this endpoint")                                                            \
    X(NEIGHBOUR_ANSWERS, "answers for an address that no kernel has: ARP, neighbour discovery, echo")            \
    X(NEIGHBOUR_REQUESTS, "requests for the address of a next hop")                                              \
    X(DROP_NEIGHBOUR, "dropped: a damaged ARP, ICMP or neighbour discovery packet")                              \
    X(DROP_NEIGHBOUR_LIMIT, "dropped: more such requests than are answered at a time")                           \
    X(DROP_VERSION, "dropped: another version of the wire format")                                               \
    X(DROP_MALFORMED, "dropped: lengths, types or flags that no sender of this version writes")                  \
    X(DROP_FLOW, "dropped: no such flow, or not set up")                                                         \
    X(DROP_TAG, "dropped: the keyed tag does not fit")                                                           \
    X(DROP_CHECKSUM, "dropped: the payload checksum does not fit")                                               \
    X(SUMMED_OUT, "data packets sent without a CRC: the port writes their UDP checksums")                        \
    X(SUMMED_IN, "... taken, since the port has found their UDP checksums right")                                \
    X(SUMMED_VERIFIED, "... whose UDP checksums were verified in software")                                      \
    X(TRIALS_OUT, "packets sent with a wrong UDP checksum, to try the receiver's port")                          \
    X(TRIALS_IN, "... that the port has called wrong, as they are")                                              \
    X(CHECKSUM_LIES, "UDP checksums that the port called right and are wrong, or wrong and are right")           \
    X(ARRIVAL_LIES, "reported times of arrival before the port was empty or after now")                          \
    X(DEPARTURE_LIES, "packets acknowledged before the port was due to send them")                               \
    X(DOUBTS, "offloads put away since they did not do what they say, or may have kept a peer silent")           \
    X(DROP_SEAL, "dropped: does not open (altered, or under another key), or is not sealed where it must be")    \
    X(DROP_REPLAY, "dropped: a sealed packet that came before, or too late to decide")                           \
    X(DROP_DUPLICATE, "dropped: had arrived before")                                                             \
    X(DROP_WINDOW, "dropped: outside the window")                                                                \
    X(DROP_FULL, "dropped unacknowledged, and sent again later: a table or queue is full")                       \
    X(RDMA_UP, "queue pairs that came up")                                                                       \
    X(RDMA_BROKEN, "queue pairs that broke")                                                                     \
    X(RDMA_GIVEN_UP, "sessions that continue by packets since no queue pair came up")                            \
    X(RDMA_WORK, "work requests given to an RDMA device")                                                        \
    X(RDMA_IN, "notifications and messages by queue pairs")                                                      \
    X(RDMA_COPIED, "bytes copied for an RDMA device: of sources in no region that it knows, or in many pieces")  \
    X(RDMA_UNREGISTERED, "regions that an RDMA device did not take")                                             \
    X(RDMA_DATAGRAMS_OUT, "packets to groups by an RDMA device")                                                 \
    X(RDMA_DATAGRAMS_IN, "packets of groups by an RDMA device")                                                  \
    X(CHUNKS_OUT, "data packets sent for the first time with compressed data")                                   \
    X(CHUNKS_IN, "data packets taken with compressed data")                                                      \
    X(CHUNK_RAW_OUT, "raw bytes of those sent")                                                                  \
    X(CHUNK_BYTES_OUT, "... and have become")                                                                    \
    X(CHUNK_RAW_IN, "raw bytes of those received")                                                               \
    X(CHUNK_SAMPLES, "times that it was asked what compression would do to data")                                \
    X(DROP_CHUNK, "dropped, and the session ended: data that cannot have been compressed so")                    \
    X(DROP_UNKNOWN_PEER, "dropped: set-up request from an address that is not a peer, or no room for it")        \
    X(DROP_HELLO, "dropped: set-up packet that does not fit")                                                    \
    X(DROP_REFUSED, "dropped: the own device refused to send it (length, a filter)")                             \
    X(OVERLAPS, "debug build: puts that overlapped another one in flight")

enum cw_counter {
#define CW_COUNTER_ENUM(name, meaning) CW_COUNTER_##name,
    CW_COUNTERS(CW_COUNTER_ENUM)
#undef CW_COUNTER_ENUM
        CW_COUNTER_COUNT,
};

/* The value of a counter since creation. */
uint64_t cw_endpoint_counter(const struct cw_endpoint *endpoint, enum cw_counter counter);

/* Its name, such as "retransmitted". NULL for a number out of range. */
const char *cw_counter_name(enum cw_counter counter);

/* Fixed memory of an endpoint: bytes of the endpoint itself, bytes per peer, connected or not, and the least bytes per
 * connection in use. */
struct cw_memory_info {
    uint64_t endpoint_bytes;    /* reserved at start-up, all tables together; touched only as used */
    uint64_t touched_bytes;     /* of these, so far: never decreases */
    uint64_t peer_bytes;        /* an idle peer; a peer without any traffic so far takes 32 bytes */
    uint64_t active_flow_bytes; /* the least of a peer with packets in flight, beyond peer_bytes */
    uint64_t packets_per_chunk;
};
struct cw_memory_info cw_endpoint_memory(const struct cw_endpoint *endpoint);

#ifdef __cplusplus
}
#endif

#endif
