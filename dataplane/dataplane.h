/* dataplane: the notified put between processes, over any port.
 *
 * Purpose
 *   An endpoint owns one port and moves bytes between registered regions of processes that share a job key. A put is
 *   done when all its bytes lie in the target's region and the target has got one notification.
 *
 * Invariants
 *   - One owner: all state of an endpoint belongs to whoever turns it. The cw_endpoint_*, cw_peer_*, cw_region_*,
 *     cw_put, cw_get and cw_message_* functions are for that owner. Other threads use a cw_loop
 *     (dataplane/loop/loop.h), which guards the same calls by a token and a bounded queue of commands.
 *   - No clock, no randomness and no I/O inside: time is passed in, the generator is seeded by the configuration,
 *     packets pass through the port. The same objects run on a NIC and in the simulator.
 *   - A notification comes exactly once, never before its data; in posting order within a lane, in any order between
 *     lanes.
 *   - Two puts in flight to the same bytes of a region are forbidden; which bytes stay is then undefined. A debug build
 *     (-Ddebug_overlap=true) catches them (CW_ERROR_OVERLAP at the sender, a counter at the target).
 *   - Everything is bounded by struct cw_endpoint_config; what is full answers CW_ERROR_AGAIN and nothing is lost.
 *
 * Order of calls
 *   cw_endpoint_config_init, cw_endpoint_create
 *   { cw_peer_add | cw_region_register | cw_put | cw_get | cw_message_send | cw_endpoint_turn | cw_endpoint_events }*
 *   cw_endpoint_destroy; the port is closed after it
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

/* Where an endpoint is reached: all of a job over IPv4, or all over IPv6. */
struct cw_address {
    struct cw_ip ip;
    uint16_t udp_port; /* host byte order */
    uint8_t mac[6];    /* of the next hop on this LAN */
};

/* How the process at an endpoint waits for packets. Peers are told, and set their time-outs by it. */
enum cw_waiting {
    CW_WAITING_SPIN = 0,  /* a core of its own polls all the time */
    CW_WAITING_SLEEP = 1, /* sleeps and is woken by its port */
    CW_WAITING_NAP = 2,   /* looks at its port in timed naps */
};

/* Which sessions are sealed: header and payload authenticated and encrypted, by AES-GCM (WIRE.md). If either side wants
 * it, the session is sealed; with a peer that wants it there is no other. */
enum cw_encryption {
    CW_ENCRYPTION_OFF = 0,      /* none: who asks for one is refused, and told so */
    CW_ENCRYPTION_ASKED = 1,    /* those of cw_peer_encrypt, and those that a peer asks for */
    CW_ENCRYPTION_REQUIRED = 2, /* all */
};

/* How an endpoint finds out how much it may have in flight to a peer of the same LAN. */
enum cw_congestion_control {
    CW_CONGESTION_DELAY = 0, /* by round trips: queues stay short */
    CW_CONGESTION_LOSS =
        1, /* as the TCP of 2003: queues grow until packets are lost; 200 ms time-outs. For comparisons */
};

struct cw_endpoint_config {
    struct cw_address address; /* mac all zero: the port's own */
    uint8_t job_key[16];       /* 128 bits that all processes of the job share and nobody else has */
    uint64_t seed;             /* for sessions, region keys and first numbers: unpredictable in real use */
    enum cw_waiting waiting;
    enum cw_encryption encryption;
    bool accept_unknown; /* a set-up request from an address that was never added makes a new peer */
    /* Payloads have a CRC-32C that the process of the other end verifies, whatever the ports of both ends do or their
     * medium is, in this endpoint's packets and in those of its peers. */
    bool end_to_end;
    uint16_t group_port;       /* of packets to multicast groups, where members' own ones differ; 0: the address's */
    uint32_t stream_count;     /* 1 .. CW_STREAMS_MAX: it is reached at so many UDP ports, from the address's on */
    uint32_t peer_count_max;   /* 1 .. CW_PEERS_MAX; each stream counts */
    uint32_t region_count_max; /* 1 .. CW_REGIONS_MAX */
    /* puts, gets and messages under way, all peers together; one has at most half of what others leave */
    uint32_t operation_count_max;
    uint32_t reassembly_count_max; /* puts half arrived or held back for their lane; at least 2 * peer_count_max */
    uint32_t event_count_max;      /* a power of two, at least 256: all puts that share a packet must find room */
    uint32_t get_count_max;        /* gets under way, 1 .. 65534; shared in the same way */
    uint32_t pool_slot_count;      /* the receive pool for small messages, 0 .. CW_SLOTS_MAX; 0: no messages come in */
    uint32_t pool_slot_bytes;      /* longest message, a multiple of 64, up to CW_SLOT_BYTES_MAX */
    uint32_t sent_chunk_count;     /* records of packets in flight: 64 a chunk, all peers together */
    uint32_t window_block_count;   /* 1 KiB blocks that keep track of packets that arrived out of order */
    uint32_t congestion_window_max_bytes; /* per peer */
    enum cw_congestion_control congestion;
    uint64_t failure_timeout_ns; /* so long a peer that owes an answer may not show that it hears us */
    /* Asked about a peer that has been silent for half of that time, and from then on: true, and its time begins anew.
     * By the thread that turns the endpoint, which must not be called. NULL: no peer has an excuse. */
    bool (*is_excused)(void *context, uint32_t peer);
    void *excuse_context;
};

/* Fills in the defaults of `dataplane/limits.h`; address, key and seed stay zero and must be set. */
void cw_endpoint_config_init(struct cw_endpoint_config *config);

/* Creates an endpoint on `port`, which stays the caller's and must outlive it. CW_OK, CW_ERROR_ARGUMENT (the one-line
 * reason in `error`), CW_ERROR_MEMORY; with encryption also CW_ERROR_UNSUPPORTED (nothing here can do it) and
 * CW_ERROR_SYSTEM. */
int cw_endpoint_create(const struct cw_endpoint_config *config, struct cw_port *port, uint64_t now_ns,
                       struct cw_endpoint **endpoint, char *error, size_t error_bytes);

/* Says goodbye to connected peers (one packet each, best effort), closes and frees. NULL is allowed. */
void cw_endpoint_destroy(struct cw_endpoint *endpoint);

/* One turn: takes a burst of packets, runs what is due, sends what may go. Bounded work. Returns how much it did (0:
 * idle). `now_ns` never goes back. */
uint32_t cw_endpoint_turn(struct cw_endpoint *endpoint, uint64_t now_ns);

/* Takes a burst of packets from the port for the next turn; returns how many wait. Who reads a real clock calls this
 * before reading it: a packet must never seem to have arrived before it did, or a loop that was descheduled in between
 * measures too short a round trip. */
uint32_t cw_endpoint_fetch(struct cw_endpoint *endpoint);

/* Tells the time to what is posted before the next turn; without it, that of the last turn counts. */
void cw_endpoint_clock(struct cw_endpoint *endpoint, uint64_t now_ns);

/* Tells how long the last turn took, if it was a busy one: peers and this endpoint do not take that time for a queue in
 * the network. Without it (virtual time) turns count as instantaneous. */
void cw_endpoint_busy(struct cw_endpoint *endpoint, uint64_t duration_ns);

/* When cw_endpoint_turn must be called again even if no packet arrives; UINT64_MAX: not at all. 0: at once. */
uint64_t cw_endpoint_deadline(const struct cw_endpoint *endpoint);

/* The address peers reach this endpoint at (the port's MAC filled in). */
struct cw_address cw_endpoint_address(const struct cw_endpoint *endpoint);

/* ---- Peers ---- */

/* Makes a peer known; no packet is sent before the first operation. *peer is its number in this endpoint. Adding an
 * address (IP and port) again gives the same number. CW_OK, CW_ERROR_LIMIT, CW_ERROR_ARGUMENT. */
int cw_peer_add(struct cw_endpoint *endpoint, const struct cw_address *address, uint32_t *peer);

/* Sets up the connection before the first operation needs it. CW_EVENT_PEER_UP follows, or CW_EVENT_PEER_DOWN after
 * failure_timeout_ns. CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_PEER_FAILED (see cw_peer_reset). */
int cw_peer_connect(struct cw_endpoint *endpoint, uint32_t peer);

/* Asks whether a peer is there and hears us, set up or not: if it does not answer CW_EVENT_PEER_DOWN comes,
 * failure_timeout_ns and an interval between probes (up to 250 ms) later. For who waits for something that only the
 * peer can send. If an answer is awaited already it asks nothing. Errors as cw_peer_connect. */
int cw_peer_ask(struct cw_endpoint *endpoint, uint32_t peer);

/* Has the path MTU looked for now, and not only when a large packet is to go there (RFC 8899). CW_OK,
 * CW_ERROR_ARGUMENT, CW_ERROR_CLOSED (not set up). */
int cw_peer_measure_mtu(struct cw_endpoint *endpoint, uint32_t peer);

/* Sends one small packet that is answered at once; cw_peer_query tells when (heard_ns), and the shortest round trip.
 * Nothing follows if it is lost. CW_OK; CW_ERROR_AGAIN: no buffer; CW_ERROR_ARGUMENT; CW_ERROR_CLOSED: there is no
 * session (cw_peer_connect). */
int cw_peer_probe(struct cw_endpoint *endpoint, uint32_t peer);

/* Lets a failed peer be tried again, with a new session. CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_BUSY if it has not
 * failed. */
int cw_peer_reset(struct cw_endpoint *endpoint, uint32_t peer);

/* Sets shaper 0 .. CW_SHAPERS_MAX - 1: all that goes to its peers leaves at `rate_bps` at most, bits per second on the
 * line (frames with their 24 bytes of preamble, check sequence and gap); 0: at any rate. What a turn that comes late
 * has missed leaves at once, up to `catch_up_ns` of it (CW_CATCH_UP_MAX_NS at most); 0 where nothing may ever leave in
 * bunches, at the price of what is missed. CW_OK, CW_ERROR_ARGUMENT. */
int cw_shaper_set(struct cw_endpoint *endpoint, uint32_t shaper, uint64_t rate_bps, uint64_t catch_up_ns);

/* What decides how much may be under way to a peer. */
enum cw_traffic_control {
    /* the round trip: on a LAN, where queues are short and shared fairly by it; as CW_TRAFFIC_BANDWIDTH where no round
     * trip turns out to be short */
    CW_TRAFFIC_DELAY = 0,
    CW_TRAFFIC_RATE =
        1, /* a rate that is known, and kept, by the shaper if there is one: across a wide area of which it is told */
    CW_TRAFFIC_BANDWIDTH = 2, /* the rate of delivery, which is found out: across one of which nothing is known */
};

#define CW_SHAPER_NONE 255u

struct cw_traffic {
    enum cw_traffic_control control;
    uint32_t shaper;   /* CW_SHAPER_NONE: none */
    uint64_t rate_bps; /* CW_TRAFFIC_RATE: of the path, on the line as above, above 0; else 0 */
};

/* Says how a peer is to be sent to; at any time. Default: CW_TRAFFIC_DELAY, no shaper. CW_OK, CW_ERROR_ARGUMENT,
 * CW_ERROR_LIMIT. */
int cw_peer_traffic(struct cw_endpoint *endpoint, uint32_t peer, const struct cw_traffic *traffic);

/* ---- Streams: several sessions with one process ---- */

/* A stream is one of several sessions between the same two processes, each with windows and losses of its own: it has its
 * number added to both UDP ports. Opens stream 1 .. stream_count - 1 of the process of `peer`, which is itself stream 0:
 * *number is a peer in all other calls, sealed if `peer` is to be, and at first sent to as `peer` is
 * (cw_peer_traffic). A peer that asks for a stream makes it here, too. Asking again gives the same number. CW_OK,
 * CW_ERROR_LIMIT, CW_ERROR_ARGUMENT (also: stream >= stream_count). */
int cw_peer_stream(struct cw_endpoint *endpoint, uint32_t peer, uint32_t stream, uint32_t *number);

/* Says whether sessions with a peer must be sealed; before set-up. What neither side asks for is not. CW_OK;
 * CW_ERROR_ARGUMENT; CW_ERROR_UNSUPPORTED (the endpoint's encryption is off, or, for false, required); CW_ERROR_BUSY
 * (in session, or asking for one). A peer that cannot seal gives CW_EVENT_PEER_DOWN with CW_ERROR_UNSUPPORTED, and has
 * then failed. */
int cw_peer_encrypt(struct cw_endpoint *endpoint, uint32_t peer, bool encrypt);

enum cw_peer_state {
    CW_PEER_CLOSED = 0,     /* never used, or said goodbye */
    CW_PEER_CONNECTING = 1, /* set-up under way */
    CW_PEER_ESTABLISHED = 2,
    CW_PEER_FAILED = 3, /* silent for the failure bound; operations answer CW_ERROR_PEER_FAILED until cw_peer_reset */
};

/* What covers the payloads of a session on their way (WIRE.md, "Who verifies a payload"). The header of a packet, and of
 * a put in it, have a tag and a CRC-32C in each case. */
enum cw_cover {
    CW_COVER_CRC = 0,    /* a CRC-32C that the processes of both ends compute */
    CW_COVER_NICS = 1,   /* UDP checksums, by the NICs of both ends */
    CW_COVER_KERNEL = 2, /* UDP checksums, by the kernels of both ends, or by NICs that these believe */
    CW_COVER_MEMORY = 3, /* nothing: they stay in the memory of one machine */
    CW_COVER_SEAL = 4,   /* AES-GCM */
};

/* "CRC-32C, by the processes" */
const char *cw_cover_text(enum cw_cover cover);

struct cw_peer_info {
    struct cw_address address;
    uint32_t stream; /* 0: the first session with that process */
    enum cw_peer_state state;
    enum cw_waiting waiting; /* as the peer said */
    bool encrypted;          /* the present session is sealed */
    enum cw_cover cover;     /* of what is sent to the peer in the present session; CRC without one */
    uint64_t incarnation;    /* of the peer; 0 before the first set-up */
    uint64_t round_trip_ns;  /* smoothed; 0: not measured */
    uint64_t round_trip_min_ns;
    uint64_t congestion_window_bytes;
    uint64_t in_flight_bytes;
    uint64_t unsent_bytes;   /* of puts and messages that were posted, what has not left for the first time */
    uint32_t part_bytes_max; /* that one packet carries of a long put; 0: not set up */
    uint32_t path_mtu_bytes; /* packets of this size are known to arrive, or taken to (1,280); 0: not set up */
    bool path_mtu_found;     /* larger ones are not looked for at the moment */
    uint64_t packets_sent;   /* data packets, retransmissions included */
    uint64_t packets_retransmitted;
    uint64_t packets_unacknowledged;
    uint64_t heard_ns;        /* when the last valid packet came */
    uint32_t operations_open; /* posted, not yet retired */
    uint32_t credit;          /* message slots of the peer at hand */
    uint64_t bytes_active;    /* memory lent to this peer at the moment beyond its fixed part */
};

/* CW_OK, CW_ERROR_ARGUMENT. */
int cw_peer_query(const struct cw_endpoint *endpoint, uint32_t peer, struct cw_peer_info *info);

/* ---- Regions ---- */

enum cw_region_rights {
    CW_REGION_LOCAL = 0, /* source of puts, destination of gets */
    CW_REGION_WRITE = 1, /* peers may put into it */
    CW_REGION_READ = 2,  /* peers may get from it */
    /* With READ alone: peers that know the token may get from the region's pages, whole, and after its end, as long as
     * an RDMA device keeps them registered; who registers the same memory again finds it so. */
    CW_REGION_KEPT = 4,
};

/* Registers memory. *token names it, and is what a peer must know to reach it: 16 bits of index, 48 random bits of key.
 * The memory stays the caller's and must stay valid until deregistration. `bytes` may be 0 (a region that only takes
 * notifications). CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_LIMIT. */
int cw_region_register(struct cw_endpoint *endpoint, void *base, uint64_t bytes, uint32_t rights, uint64_t *token);

/* The same under the token that another endpoint of this process has given, so that peers reach the memory
 * by either. CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_BUSY: an own registration has that place. */
int cw_region_register_as(struct cw_endpoint *endpoint, void *base, uint64_t bytes, uint32_t rights, uint64_t token);

/* Ends a registration. When it returns CW_OK nothing stores into or reads from the memory any more (but for
 * CW_REGION_KEPT); puts that still arrive are refused to their senders (CW_ERROR_REMOTE_ACCESS). CW_ERROR_BUSY: an own
 * put reads from it, a get writes into it (that of a session that has ended, too, while it may still come by an RDMA
 * device), or the driver still holds packets with pieces of it; turn and try again. CW_ERROR_NOT_FOUND: no such
 * token. */
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

/* What a put sends: its bytes land contiguously at the target. The memory (and the list of slices) must not change
 * before local completion; up to CW_INLINE_MAX contiguous bytes are copied by the call and may change as soon as it
 * returns. */
struct cw_source {
    enum cw_source_kind kind;
    enum cw_element element; /* what its bytes are, for whoever compresses them: a hint */
    uint64_t region; /* token of the own region that all of it lies in, so that it need not be copied; 0: none */
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
    CW_SIGNAL = 1,      /* give a CW_EVENT_COMPLETE when all bytes are at the target and the source may be reused */
    CW_MORE = 2,        /* more follows at once: sending may wait for it, and both may share a packet */
    CW_ALONE = 4,       /* puts only: shares a packet with no other operation */
    CW_SIGNAL_SENT = 8, /* puts only: give a CW_EVENT_SENT when the last byte has left */
};

struct cw_put {
    uint32_t peer;
    uint32_t lane_tag;
    uint64_t region; /* token of the target's region */
    uint64_t offset; /* in that region */
    struct cw_source source;
    uint64_t context; /* comes back with CW_EVENT_COMPLETE */
    uint32_t flags;
};

/* Posts a put. Failures that show later come as a CW_EVENT_COMPLETE with a negative status, asked for or not. CW_OK;
 * CW_ERROR_AGAIN (operations or the peer's window are used up: turn, take events, try again); CW_ERROR_ARGUMENT;
 * CW_ERROR_NOT_FOUND (source.region is no own region that holds the source); CW_ERROR_PEER_FAILED; CW_ERROR_OVERLAP
 * (debug build). */
int cw_put(struct cw_endpoint *endpoint, const struct cw_put *put);

/* Asks the peer's dataplane to put bytes of its region (right CW_REGION_READ) into an own region. When they are there,
 * a CW_EVENT_GET comes with `lane_tag` and `context`. */
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
    enum cw_element element; /* what the bytes are, for whoever compresses them: a hint */
};

/* Errors as cw_put. A get that fails later gives a CW_EVENT_GET with a negative status: CW_ERROR_REMOTE_ACCESS also
 * where the peer's bytes have changed while they travelled compressed. */
int cw_get(struct cw_endpoint *endpoint, const struct cw_get *get);

/* A small message: lands in a slot of the receiver's pool, for which the sender holds credit or asks first. */
struct cw_message {
    uint32_t peer;
    uint32_t lane_tag;
    struct cw_source source;
    uint64_t context;
    uint32_t flags;
};

/* Errors as cw_put; CW_ERROR_ARGUMENT also if it is longer than the receiver's slots (known after set-up; before, such
 * a message completes with CW_ERROR_ARGUMENT). While it waits for credit it counts as under way. */
int cw_message_send(struct cw_endpoint *endpoint, const struct cw_message *message);

/* Gives the slot of a CW_EVENT_MESSAGE back; its data must not be read afterwards. CW_OK, CW_ERROR_ARGUMENT (not a slot
 * in use). */
int cw_message_release(struct cw_endpoint *endpoint, uint32_t slot);

/* ---- Compression ---- */

enum cw_compression_mode {
    CW_COMPRESSION_OFF = 0,  /* nothing that goes out; what comes in compressed is taken */
    CW_COMPRESSION_AUTO = 1, /* what is sooner at its target for it, as far as measured */
    CW_COMPRESSION_ON = 2,   /* whatever becomes shorter */
};

struct cw_compression {
    enum cw_compression_mode mode;
    enum cw_codec codec;                     /* no other than this one, and runs; CW_CODEC_NONE: the best one */
    struct cw_codec_speed speeds[CW_CODECS]; /* AUTO: all zero: codecs cost nothing, as in virtual time */
};

/* Says what an endpoint compresses of what it sends by packets, from now on. CW_OK; CW_ERROR_ARGUMENT;
 * CW_ERROR_MEMORY. */
int cw_endpoint_compress(struct cw_endpoint *endpoint, const struct cw_compression *compression);

/* What has become of one kind of elements on their way to a peer. */
struct cw_compression_report {
    enum cw_codec codec;  /* in use or last tried; CW_CODEC_NONE: none was */
    bool is_on;           /* now */
    uint64_t samples;     /* times that data was sampled */
    uint64_t trials;      /* times that both ways were measured */
    uint64_t raw_bytes;   /* sent in chunks, as they were */
    uint64_t chunk_bytes; /* ... and as they travelled */
    double rate;          /* of the latest chunks: raw to travelled */
    double link_ns;       /* a raw byte of the link at its best; 0: not known yet */
    double codec_ns;      /* a raw byte of the codec, both ends */
    double plain_ns;      /* a raw byte without compression, the mean of what was measured; 0: nothing was */
    double packed_ns;     /* ... with it */
    double saved_ns;      /* (plain_ns - packed_ns) of all raw_bytes */
};

/* False: nothing is known of the kind, or there is no such peer. */
bool cw_peer_compression(const struct cw_endpoint *endpoint, uint32_t peer, enum cw_element element,
                         struct cw_compression_report *report);

/* ---- Events ---- */

enum cw_event_kind {
    CW_EVENT_PUT = 1,      /* a put has arrived: peer, lane_tag, region, offset, bytes; by a queue pair (dataplane/rdma)
                              the region is 0, the offset not told, and bytes are those of its last piece */
    CW_EVENT_MESSAGE = 2,  /* a message has arrived: peer, lane_tag, data, bytes, slot (cw_message_release) */
    CW_EVENT_GET = 3,      /* a get of ours is done: peer, lane_tag, region, offset, bytes, context, status */
    CW_EVENT_COMPLETE = 4, /* a source may be reused: peer, lane_tag, context, status */
    CW_EVENT_PEER_UP = 5,  /* set-up is done; status CW_ERROR_PEER_RESTARTED if it took the place of an older session,
                              or of one with another process at that address */
    /* All operations of the peer have ended; status: CW_ERROR_PEER_FAILED, CW_ERROR_PEER_RESTARTED, CW_ERROR_CLOSED,
     * CW_ERROR_UNSUPPORTED (see cw_peer_encrypt) or CW_ERROR_LIMIT (a sealed session's keys are used up, after 2^40
     * packets: the next operation sets up another) */
    CW_EVENT_PEER_DOWN = 6,
    /* the last byte of a put has left, for the first time: peer, lane_tag, context. Before its CW_EVENT_COMPLETE or
     * never: left out if the put fits a packet, or half the event queue is in use */
    CW_EVENT_SENT = 7,
    /* a protocol extension (multicast: mcast/mcast.h) has just called a function of its handler, in this thread; the
     * other fields mean nothing */
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

/* Takes up to `count_max` events in the order they happened; returns how many. One consumer thread at a time, any
 * thread. */
uint32_t cw_endpoint_events(struct cw_endpoint *endpoint, struct cw_event *events, uint32_t count_max);

/* ---- Counters ---- */

/* X(name, meaning): everything that happens is counted; what is dropped, by reason. */
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
    X(RESOLVE_ANSWERS, "answers for an address that no kernel has: ARP, neighbour discovery, echo")              \
    X(RESOLVE_QUESTIONS, "questions who has the address of a next hop")                                          \
    X(DROP_RESOLVE, "dropped: a damaged ARP, ICMP or neighbour discovery packet")                                \
    X(DROP_RESOLVE_LIMIT, "dropped: more such questions than are answered at a time")                            \
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
    X(ARRIVAL_LIES, "times of arrival, as the port told them, before the port was empty or after now")           \
    X(DEPARTURE_LIES, "packets that were heard of before the port was to let them out")                          \
    X(DOUBTS, "offloads put away since they did not do what they say, or may have kept a peer silent")           \
    X(DROP_SEAL, "dropped: does not open (altered, or under another key), or is not sealed where it must be")    \
    X(DROP_REPLAY, "dropped: a sealed packet that came before, or too late to tell")                             \
    X(DROP_DUPLICATE, "dropped: had arrived before")                                                             \
    X(DROP_WINDOW, "dropped: outside the window")                                                                \
    X(DROP_FULL, "dropped unacknowledged, to come again: a table or queue is full")                              \
    X(RDMA_UP, "queue pairs that came up")                                                                       \
    X(RDMA_BROKEN, "queue pairs that broke")                                                                     \
    X(RDMA_GIVEN_UP, "sessions that go on by packets since no queue pair came up")                               \
    X(RDMA_WORK, "work requests given to an RDMA device")                                                        \
    X(RDMA_IN, "notifications and messages by queue pairs")                                                      \
    X(RDMA_COPIED, "bytes copied for an RDMA device: of sources in no region that it knows, or in many pieces")  \
    X(RDMA_UNREGISTERED, "regions that an RDMA device did not take")                                             \
    X(RDMA_DATAGRAMS_OUT, "packets to groups by an RDMA device")                                                 \
    X(RDMA_DATAGRAMS_IN, "packets of groups by an RDMA device")                                                  \
    X(CHUNKS_OUT, "data packets sent for the first time with compressed data")                                   \
    X(CHUNKS_IN, "data packets taken with compressed data")                                                      \
    X(CHUNK_RAW_OUT, "bytes that those sent stand for")                                                          \
    X(CHUNK_BYTES_OUT, "... and have become")                                                                    \
    X(CHUNK_RAW_IN, "bytes that those taken stand for")                                                          \
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

/* "retransmitted" and the like. NULL for a number out of range. */
const char *cw_counter_name(enum cw_counter counter);

/* Fixed memory of an endpoint: bytes of the endpoint itself and bytes per peer, connected or not, and per connection in
 * use at the least. */
struct cw_memory_info {
    uint64_t endpoint_bytes;    /* reserved at start-up, all tables together; touched only as used */
    uint64_t touched_bytes;     /* of these, so far: never falls */
    uint64_t peer_bytes;        /* an idle peer; one without any traffic so far takes 32 bytes */
    uint64_t active_flow_bytes; /* what a peer with packets in flight takes at least, beyond peer_bytes */
    uint64_t packets_per_chunk;
};
struct cw_memory_info cw_endpoint_memory(const struct cw_endpoint *endpoint);

#ifdef __cplusplus
}
#endif

#endif
