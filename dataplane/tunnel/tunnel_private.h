/* Tunnel, inside: a stream's two halves. tunnel.c: life and sessions, tunnel_send.c, tunnel_receive.c. */
#pragma once

#include <assert.h>

#include "dataplane/tunnel/codel.h"
#include "dataplane/tunnel/queue.h"
#include "dataplane/tunnel/records.h"
#include "dataplane/tunnel/tunnel.h"

enum {
    TUNNEL_UNIT_BYTES = 64,     /* of a ring */
    TUNNEL_UNITS_MAX = 1 << 19, /* 32 MiB: half of the range of the tags of puts */
    TUNNEL_BATCHES = 2048,      /* in flight, or arrived, of a stream; a power of two */
    TUNNEL_BATCH_BYTES_MAX = 64 << 10,
    TUNNEL_VERSION = 1,
    TUNNEL_LANE_HELLO = 0,
    TUNNEL_LANE_BATCH = 1,
    TUNNEL_LANE_ROOM = 2,
};

#define TUNNEL_MAGIC    0x4c4e5457u /* "WTNL" */
#define TUNNEL_TAG_MASK ((1u << CW_TAG_BITS) - 1)

/* The first message of a session, from either end. All numbers in the byte order of x86 and ARM, as in WIRE.md. */
struct tunnel_hello {
    uint32_t magic;
    uint16_t version;
    uint16_t stream;
    uint32_t stream_count;
    uint32_t ring_units;
    uint32_t frame_bytes_max;
    uint32_t reserved;
    uint64_t ring_token;
    uint64_t room_token;
};

static_assert(sizeof(struct tunnel_hello) == 40, "as it travels");

/* A posted batch: it ends when its source is free and the peer has returned its room. */
struct tunnel_posted {
    uint64_t end; /* units posted up to here */
    uint32_t frames;
    bool is_complete; /* acknowledged: its source may be overwritten */
    bool is_refused;  /* its room will not be returned */
};

/* A batch that has arrived. */
struct tunnel_arrived {
    uint64_t offset;
    uint64_t bytes;
    uint32_t tag;
    uint32_t session; /* of those of this stream */
};

struct tunnel_out {
    struct cw_tunnel_queue queue;
    struct cw_codel codel;
    uint8_t *mirror; /* a copy of the peer's ring: the source of batches */
    uint64_t ring_token;
    uint64_t room_token;
    uint32_t units;           /* of the ring that are used: the least of both ends */
    uint32_t frame_bytes_max; /* of the peer */
    /* counted in units since the session began, including those skipped at the end of the ring: freed <= returned <=
     * posted */
    uint64_t posted;
    uint64_t returned; /* by the peer, which has delivered all before it */
    uint64_t freed;    /* the batches before it have ended */
    struct tunnel_posted list[TUNNEL_BATCHES];
    uint32_t first;
    uint32_t last;
    struct {             /* written into the mirror, and not yet posted */
        uint64_t offset; /* in units */
        uint64_t end;
        uint32_t bytes; /* 0: none */
        uint32_t frames;
    } staged;
};

struct tunnel_in {
    uint8_t *ring;
    uint64_t ring_token;
    struct tunnel_arrived list[TUNNEL_BATCHES];
    uint32_t first;
    uint32_t last;
    uint64_t position; /* in the first batch: bytes delivered; 0: not begun */
    uint32_t tag;      /* all before it was delivered ... */
    uint32_t tag_said; /* ... and the last value sent to the peer */
    uint32_t unsaid;   /* batches since */
    uint64_t say_ns;   /* when to send it at the latest; UINT64_MAX: nothing to send */
};

struct tunnel_stream {
    uint32_t peer;
    uint32_t session; /* of this stream, counted */
    int told;         /* the last reported status */
    bool is_up;       /* in session */
    bool hello_due;
    bool is_ready;     /* hello has arrived: frames are accepted */
    uint64_t retry_ns; /* UINT64_MAX: in session */
    uint64_t ask_ns;   /* when to probe the peer */
    struct tunnel_out out;
    struct tunnel_in in;
    uint64_t counters[CW_TUNNEL_COUNTER_COUNT];
};

struct cw_tunnel {
    struct cw_endpoint *endpoint;
    struct cw_tunnel_config config;
    uint32_t ring_units;
    uint64_t room_token; /* a region without bytes, for returned room */
    uint8_t room_base[1];
    struct tunnel_stream *streams;
};

static inline void tunnel_count(struct tunnel_stream *stream, enum cw_tunnel_counter counter, uint64_t more)
{
    stream->counters[counter] += more;
}

static inline uint64_t tunnel_units(uint64_t bytes)
{
    return (bytes + TUNNEL_UNIT_BYTES - 1) / TUNNEL_UNIT_BYTES;
}

/* ---- tunnel_send.c ---- */

/* A new session: starts again. Frames in flight are in doubt. */
void tunnel_out_reset(struct tunnel_stream *stream);

/* The peer is lost: waiting frames are dropped, frames in flight are in doubt. */
void tunnel_out_drop(struct tunnel_stream *stream);

/* Posts waiting frames, as far as permitted. Returns the number of batches. */
uint32_t tunnel_out_pump(struct cw_tunnel *tunnel, struct tunnel_stream *stream, uint64_t now_ns);

/* A batch is complete (CW_EVENT_COMPLETE). */
void tunnel_out_complete(struct tunnel_stream *stream, const struct cw_event *event);

/* Posted frames that are not known to be delivered. */
uint64_t tunnel_out_under_way(const struct tunnel_out *out);

/* The peer has delivered up to `tag`. False: invalid. */
bool tunnel_out_return(struct tunnel_stream *stream, uint32_t tag);

/* ---- tunnel_receive.c ---- */

/* A batch has arrived (CW_EVENT_PUT into the ring). */
void tunnel_in_arrive(struct tunnel_stream *stream, const struct cw_event *event, uint64_t ring_bytes);

/* Delivers arrived frames; returns their number. */
uint32_t tunnel_in_deliver(struct cw_tunnel *tunnel, struct tunnel_stream *stream, uint64_t now_ns);

/* Returns room to the peer, if it is due. */
void tunnel_in_return(struct cw_tunnel *tunnel, struct tunnel_stream *stream, uint64_t now_ns);
