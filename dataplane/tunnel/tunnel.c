/* Life of a tunnel, and its sessions. */
#include "dataplane/tunnel/tunnel_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    EVENTS = 64,
    SLOTS_A_STREAM = 4,
    SLOT_BYTES = 64,
    REGIONS = 2,                /* beside the rings: of room, of messages */
    OPERATIONS_OTHER = 256,     /* beside batches: room given back, hello */
    RING_FOUND_BYTES = 8 << 20, /* where nothing is known of the rate: 400 ms of 160 Mb/s a stream */
    QUEUE_FOUND_BYTES = 1 << 20,
    RING_BYTES_MIN = 256 << 10,
    QUEUE_FRAMES_MIN = 4,
    CODEL_FRAMES = 2, /* RFC 8289, 4.4: the target is no less than some frames take */
};

void cw_tunnel_config_init(struct cw_tunnel_config *config)
{
    *config = (struct cw_tunnel_config){.stream_count = CW_TUNNEL_STREAMS_DEFAULT,
                                        .frame_bytes_max = CW_TUNNEL_FRAME_MAX_BYTES};
}

void cw_tunnel_endpoint_config(struct cw_endpoint_config *config, uint32_t stream_count)
{
    config->stream_count = stream_count;
    config->peer_count_max = stream_count;
    config->region_count_max = stream_count + REGIONS;
    config->reassembly_count_max = TUNNEL_BATCHES * stream_count + CW_OPERATIONS_RESERVED + OPERATIONS_OTHER;
    /* a stream gets its last batch only if as many operations are left (put/operation.c) */
    config->operation_count_max = config->reassembly_count_max + TUNNEL_BATCHES;
    config->get_count_max = 1;
    config->pool_slot_count = SLOTS_A_STREAM * stream_count + CW_CREDIT_MAX;
    config->pool_slot_bytes = SLOT_BYTES;
}

/* ---- sessions ---- */

/* Attempts that fail one after the other are no news. */
static void news_report(struct cw_tunnel *tunnel, struct tunnel_stream *stream, bool up, int status)
{
    bool is_news = up || status != stream->told;
    stream->told = status;
    if (is_news && tunnel->config.news != NULL) {
        tunnel->config.news(tunnel->config.context, (uint32_t)(stream - tunnel->streams), up, status);
    }
}

static void session_begin(struct cw_tunnel *tunnel, struct tunnel_stream *stream, uint64_t now_ns)
{
    struct tunnel_in *in = &stream->in;
    if (stream->is_ready) {
        news_report(tunnel, stream, false, CW_ERROR_PEER_RESTARTED);
    }
    tunnel_out_reset(stream);
    stream->session++;
    stream->is_up = true;
    stream->hello_due = true;
    stream->is_ready = false;
    stream->retry_ns = UINT64_MAX;
    stream->ask_ns = now_ns + CW_TUNNEL_KEEPALIVE_NS;
    in->tag = in->tag_said = 0;
    in->unsaid = 0;
    in->say_ns = UINT64_MAX;
}

static void session_end(struct cw_tunnel *tunnel, struct tunnel_stream *stream, int status, uint64_t now_ns)
{
    bool was_ready = stream->is_ready;
    stream->is_up = false;
    stream->is_ready = false;
    stream->hello_due = false;
    stream->retry_ns = now_ns + CW_TUNNEL_RETRY_NS;
    cw_peer_reset(tunnel->endpoint, stream->peer); /* if it has failed */
    tunnel_out_drop(stream);
    stream->in.say_ns = UINT64_MAX;
    if (was_ready || status != CW_ERROR_PEER_RESTARTED) {
        news_report(tunnel, stream, false, status);
    }
}

static void session_retry(struct cw_tunnel *tunnel, struct tunnel_stream *stream, uint64_t now_ns)
{
    cw_peer_connect(tunnel->endpoint, stream->peer);
    stream->retry_ns = now_ns + CW_TUNNEL_RETRY_NS;
}

/* Says where our ring is, once nothing of the session before lies in it. */
static void hello_send(struct cw_tunnel *tunnel, struct tunnel_stream *stream)
{
    if (!stream->hello_due || stream->in.first != stream->in.last) {
        return;
    }
    struct tunnel_hello hello = {
        .magic = TUNNEL_MAGIC,
        .version = TUNNEL_VERSION,
        .stream = (uint16_t)(stream - tunnel->streams),
        .stream_count = tunnel->config.stream_count,
        .ring_units = tunnel->ring_units,
        .frame_bytes_max = tunnel->config.frame_bytes_max,
        .ring_token = stream->in.ring_token,
        .room_token = tunnel->room_token,
    };
    struct cw_message message = {
        .peer = stream->peer,
        .lane_tag = cw_lane_tag(TUNNEL_LANE_HELLO, 0),
        .source = {.contiguous = {.data = &hello, .bytes = sizeof(hello)}}, /* CW_INLINE_MAX: copied */
    };
    stream->hello_due = cw_message_send(tunnel->endpoint, &message) != CW_OK;
}

static_assert(sizeof(struct tunnel_hello) <= CW_INLINE_MAX, "is copied when it is posted");

static void hello_accept(struct cw_tunnel *tunnel, struct tunnel_stream *stream, const void *data, uint64_t bytes)
{
    struct tunnel_hello hello;
    memcpy(&hello, data, bytes < sizeof(hello) ? (size_t)bytes : sizeof(hello));
    bool is_hello = bytes == sizeof(hello) && hello.magic == TUNNEL_MAGIC && stream->is_up && !stream->is_ready;
    bool fits = is_hello && hello.version == TUNNEL_VERSION && hello.stream == stream - tunnel->streams &&
                hello.stream_count == tunnel->config.stream_count;
    uint64_t frame_bytes = is_hello ? hello.frame_bytes_max : 0;
    if (!fits || frame_bytes < CW_TUNNEL_FRAME_MIN_BYTES || frame_bytes > CW_TUNNEL_FRAME_MAX_BYTES ||
        hello.ring_units * (uint64_t)TUNNEL_UNIT_BYTES < 2 * frame_bytes || hello.ring_units > TUNNEL_UNITS_MAX) {
        tunnel_count(stream, CW_TUNNEL_BROKEN, 1);
        if (is_hello) {
            news_report(tunnel, stream, false, CW_ERROR_ARGUMENT);
        }
        return;
    }
    struct tunnel_out *out = &stream->out;
    out->ring_token = hello.ring_token;
    out->room_token = hello.room_token;
    out->frame_bytes_max = hello.frame_bytes_max;
    out->units = hello.ring_units < tunnel->ring_units ? hello.ring_units : tunnel->ring_units;
    stream->is_ready = true;
    tunnel_count(stream, CW_TUNNEL_SESSIONS, 1);
    news_report(tunnel, stream, true, CW_OK);
}

/* ---- events ---- */

static struct tunnel_stream *stream_of(struct cw_tunnel *tunnel, uint32_t peer)
{
    for (uint32_t i = 0; i < tunnel->config.stream_count; i++) {
        if (tunnel->streams[i].peer == peer) {
            return &tunnel->streams[i];
        }
    }
    return NULL;
}

static void put_accept(struct cw_tunnel *tunnel, struct tunnel_stream *stream, const struct cw_event *event)
{
    if (event->region == stream->in.ring_token && cw_lane(event->lane_tag) == TUNNEL_LANE_BATCH) {
        tunnel_in_arrive(stream, event, (uint64_t)tunnel->ring_units * TUNNEL_UNIT_BYTES);
    } else if (event->region != tunnel->room_token || cw_lane(event->lane_tag) != TUNNEL_LANE_ROOM ||
               !tunnel_out_return(stream, cw_tag(event->lane_tag))) {
        tunnel_count(stream, CW_TUNNEL_BROKEN, 1);
    }
}

static void event_dispatch(struct cw_tunnel *tunnel, const struct cw_event *event, uint64_t now_ns)
{
    struct tunnel_stream *stream = stream_of(tunnel, event->peer);
    if (event->kind == CW_EVENT_MESSAGE) {
        if (stream != NULL) {
            hello_accept(tunnel, stream, event->data, event->bytes);
        }
        cw_message_release(tunnel->endpoint, event->slot);
    } else if (stream == NULL) {
        return; /* another process with the key */
    } else if (event->kind == CW_EVENT_PUT) {
        put_accept(tunnel, stream, event);
    } else if (event->kind == CW_EVENT_COMPLETE) {
        tunnel_out_complete(stream, event);
    } else if (event->kind == CW_EVENT_PEER_UP) {
        session_begin(tunnel, stream, now_ns);
    } else if (event->kind == CW_EVENT_PEER_DOWN) {
        session_end(tunnel, stream, event->status, now_ns);
    }
}

/* All there are: nothing of a new session can lie in a ring before its PEER_UP has been taken. */
static uint32_t events_dispatch(struct cw_tunnel *tunnel, uint64_t now_ns)
{
    struct cw_event events[EVENTS];
    uint32_t total = 0;
    uint32_t count;
    do {
        count = cw_endpoint_events(tunnel->endpoint, events, EVENTS);
        for (uint32_t i = 0; i < count; i++) {
            event_dispatch(tunnel, &events[i], now_ns);
        }
        total += count;
    } while (count == EVENTS);
    return total;
}

/* ---- turns ---- */

static void times_keep(struct cw_tunnel *tunnel, struct tunnel_stream *stream, uint64_t now_ns)
{
    if (now_ns >= stream->retry_ns) {
        session_retry(tunnel, stream, now_ns);
    }
    if (stream->is_up && now_ns >= stream->ask_ns) {
        struct cw_peer_info info;
        if (cw_peer_query(tunnel->endpoint, stream->peer, &info) == CW_OK &&
            now_ns - info.heard_ns >= CW_TUNNEL_KEEPALIVE_NS) {
            cw_peer_check(tunnel->endpoint, stream->peer);
        }
        stream->ask_ns = now_ns + CW_TUNNEL_KEEPALIVE_NS;
    }
}

uint32_t cw_tunnel_turn(struct cw_tunnel *tunnel, uint64_t now_ns)
{
    cw_endpoint_clock(tunnel->endpoint, now_ns);
    uint32_t work = events_dispatch(tunnel, now_ns);
    for (uint32_t i = 0; i < tunnel->config.stream_count; i++) {
        struct tunnel_stream *stream = &tunnel->streams[i];
        times_keep(tunnel, stream, now_ns);
        work += tunnel_in_deliver(tunnel, stream, now_ns);
        hello_send(tunnel, stream);
        tunnel_in_return(tunnel, stream, now_ns);
        work += tunnel_out_pump(tunnel, stream, now_ns);
    }
    return work;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t cw_tunnel_deadline(const struct cw_tunnel *tunnel)
{
    uint64_t deadline_ns = UINT64_MAX;
    for (uint32_t i = 0; i < tunnel->config.stream_count; i++) {
        const struct tunnel_stream *stream = &tunnel->streams[i];
        deadline_ns = earlier(deadline_ns, stream->retry_ns);
        deadline_ns = earlier(deadline_ns, stream->is_up ? stream->ask_ns : UINT64_MAX);
        deadline_ns = earlier(deadline_ns, stream->is_ready ? stream->in.say_ns : UINT64_MAX);
    }
    return deadline_ns;
}

/* ---- life ---- */

static uint64_t bytes_of(uint64_t rate_bps, uint64_t time_ns)
{
    return (uint64_t)((double)rate_bps / 8e9 * (double)time_ns);
}

static void sizes_find(struct cw_tunnel_config *config)
{
    if (config->queue_bytes == 0) {
        uint64_t least = (uint64_t)QUEUE_FRAMES_MIN * (config->frame_bytes_max + CW_TUNNEL_LINE_BYTES);
        config->queue_bytes =
            config->rate_bps == 0 ? QUEUE_FOUND_BYTES : bytes_of(config->rate_bps, CW_TUNNEL_QUEUE_NS);
        config->queue_bytes = config->queue_bytes < least ? least : config->queue_bytes;
    }
    uint64_t most = (uint64_t)TUNNEL_UNITS_MAX * TUNNEL_UNIT_BYTES;
    if (config->ring_bytes == 0) {
        config->ring_bytes = config->rate_bps == 0 ? RING_FOUND_BYTES : bytes_of(config->rate_bps, CW_TUNNEL_PATH_NS);
        config->ring_bytes = config->ring_bytes < RING_BYTES_MIN ? RING_BYTES_MIN : config->ring_bytes;
        config->ring_bytes = config->ring_bytes < most ? config->ring_bytes : most;
    }
}

static bool config_valid(const struct cw_tunnel_config *config)
{
    return config->stream_count > 0 && config->stream_count <= CW_TUNNEL_STREAMS_MAX && config->deliver != NULL &&
           config->frame_bytes_max >= CW_TUNNEL_FRAME_MIN_BYTES &&
           config->frame_bytes_max <= CW_TUNNEL_FRAME_MAX_BYTES && config->queue_bytes <= (uint64_t)1 << 32 &&
           config->ring_bytes <= (uint64_t)TUNNEL_UNITS_MAX * TUNNEL_UNIT_BYTES &&
           config->ring_bytes >= 4 * (uint64_t)config->frame_bytes_max;
}

/* Untouched until used. */
static void *memory_get(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

static int stream_open(struct cw_tunnel *tunnel, uint32_t index, uint64_t now_ns)
{
    const struct cw_tunnel_config *config = &tunnel->config;
    struct tunnel_stream *stream = &tunnel->streams[index];
    uint64_t bytes = (uint64_t)tunnel->ring_units * TUNNEL_UNIT_BYTES;
    struct cw_traffic traffic = {.control = config->rate_bps == 0 ? CW_TRAFFIC_BANDWIDTH : CW_TRAFFIC_RATE,
                                 .shaper = config->rate_bps == 0 ? CW_SHAPER_NONE : 0,
                                 .rate_bps = config->rate_bps};
    uint64_t target_ns = CW_CODEL_TARGET_NS;
    if (config->rate_bps != 0) {
        uint64_t frames_ns = (uint64_t)((double)(CODEL_FRAMES * config->stream_count * config->frame_bytes_max) * 8e9 /
                                        (double)config->rate_bps);
        target_ns = frames_ns > target_ns ? frames_ns : target_ns;
    }
    cw_codel_init(&stream->out.codel, target_ns, target_ns * (CW_CODEL_INTERVAL_NS / CW_CODEL_TARGET_NS));
    stream->peer = config->peers[index];
    stream->retry_ns = now_ns + CW_TUNNEL_RETRY_NS;
    stream->in.say_ns = UINT64_MAX;
    stream->in.ring = memory_get(bytes);
    stream->out.mirror = memory_get(bytes);
    if (stream->in.ring == NULL || stream->out.mirror == NULL) {
        return CW_ERROR_MEMORY;
    }
    int status = cw_tunnel_queue_init(&stream->out.queue, config->queue_bytes, CW_TUNNEL_FRAME_MAX_BYTES);
    if (status == CW_OK) {
        status = cw_region_register(tunnel->endpoint, stream->in.ring, bytes, CW_REGION_WRITE, &stream->in.ring_token);
    }
    if (status == CW_OK) {
        status = cw_peer_traffic(tunnel->endpoint, stream->peer, &traffic);
    }
    return status == CW_OK ? cw_peer_connect(tunnel->endpoint, stream->peer) : status;
}

/* Of a tunnel that did not come to be. No peer knows them. */
static void regions_end(struct cw_tunnel *tunnel)
{
    for (uint32_t i = 0; tunnel->streams != NULL && i < tunnel->config.stream_count; i++) {
        cw_region_deregister(tunnel->endpoint, tunnel->streams[i].in.ring_token);
    }
    cw_region_deregister(tunnel->endpoint, tunnel->room_token);
}

int cw_tunnel_create(struct cw_endpoint *endpoint, const struct cw_tunnel_config *config, uint64_t now_ns,
                     struct cw_tunnel **tunnel_out)
{
    struct cw_tunnel_config sized = *config;
    sizes_find(&sized);
    if (!config_valid(&sized)) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_tunnel *tunnel = calloc(1, sizeof(*tunnel));
    if (tunnel == NULL) {
        return CW_ERROR_MEMORY;
    }
    tunnel->endpoint = endpoint;
    tunnel->config = sized;
    tunnel->ring_units = (uint32_t)tunnel_units(sized.ring_bytes);
    tunnel->streams = calloc(sized.stream_count, sizeof(*tunnel->streams));
    cw_endpoint_clock(endpoint, now_ns);
    int status = tunnel->streams == NULL ? CW_ERROR_MEMORY : CW_OK;
    if (status == CW_OK && sized.rate_bps != 0) {
        status = cw_shaper_set(endpoint, 0, sized.rate_bps, CW_CATCH_UP_MAX_NS);
    }
    if (status == CW_OK) {
        status = cw_region_register(endpoint, tunnel->room_base, 0, CW_REGION_WRITE, &tunnel->room_token);
    }
    for (uint32_t i = 0; i < sized.stream_count && status == CW_OK; i++) {
        status = stream_open(tunnel, i, now_ns);
    }
    if (status != CW_OK) {
        regions_end(tunnel);
        cw_tunnel_destroy(tunnel);
        return status;
    }
    *tunnel_out = tunnel;
    return CW_OK;
}

void cw_tunnel_destroy(struct cw_tunnel *tunnel)
{
    if (tunnel == NULL) {
        return;
    }
    uint64_t bytes = (uint64_t)tunnel->ring_units * TUNNEL_UNIT_BYTES;
    for (uint32_t i = 0; tunnel->streams != NULL && i < tunnel->config.stream_count; i++) {
        struct tunnel_stream *stream = &tunnel->streams[i];
        if (stream->in.ring != NULL) {
            munmap(stream->in.ring, bytes);
        }
        if (stream->out.mirror != NULL) {
            munmap(stream->out.mirror, bytes);
        }
        cw_tunnel_queue_dispose(&stream->out.queue);
    }
    free(tunnel->streams);
    free(tunnel);
}

/* ---- questions ---- */

bool cw_tunnel_is_up(const struct cw_tunnel *tunnel, uint32_t stream)
{
    return tunnel->streams[stream].is_ready;
}

uint32_t cw_tunnel_stream_count(const struct cw_tunnel *tunnel)
{
    return tunnel->config.stream_count;
}

uint64_t cw_tunnel_counter(const struct cw_tunnel *tunnel, uint32_t stream, enum cw_tunnel_counter counter)
{
    return tunnel->streams[stream].counters[counter];
}

uint64_t cw_tunnel_queue_bytes(const struct cw_tunnel *tunnel, uint32_t stream)
{
    return tunnel->streams[stream].out.queue.bytes;
}

uint64_t cw_tunnel_held(const struct cw_tunnel *tunnel, uint32_t stream)
{
    const struct tunnel_out *out = &tunnel->streams[stream].out;
    return out->queue.frames + (out->staged.bytes > 0 ? out->staged.frames : 0) + tunnel_out_under_way(out);
}

static const char *const counter_names[] = {
#define COUNTER_NAME(name, text, meaning) #text,
    CW_TUNNEL_COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
};

const char *cw_tunnel_counter_name(enum cw_tunnel_counter counter)
{
    return counter < CW_TUNNEL_COUNTER_COUNT ? counter_names[counter] : NULL;
}
