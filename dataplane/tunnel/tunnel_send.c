/* From the queue to the peer's ring. */
#include "dataplane/tunnel/tunnel_private.h"

#include "dataplane/tunnel/hash.h"

enum {
    FULL_PACKET_BYTES = 1400,
    EMPTY_SHARE = 8, /* a packet that lacks so little is full */
};

/* Shorter batches have more packets that are not full, longer ones arrive later. */
#define BATCH_NS 2000000ull

/* ---- frames in ---- */

bool cw_tunnel_send(struct cw_tunnel *tunnel, uint64_t now_ns, const uint8_t *frame, uint32_t length)
{
    assert(length >= CW_TUNNEL_FRAME_MIN_BYTES);
    uint32_t index = cw_tunnel_stream_of(cw_tunnel_hash(frame, length), tunnel->config.stream_count);
    struct tunnel_stream *stream = &tunnel->streams[index];
    if (!stream->is_ready) {
        tunnel_count(stream, CW_TUNNEL_DROPPED_DOWN, 1);
        return false;
    }
    if (length > stream->out.frame_bytes_max) {
        tunnel_count(stream, CW_TUNNEL_DROPPED_LONG, 1);
        return false;
    }
    if (!cw_tunnel_queue_put(&stream->out.queue, now_ns, frame, length)) {
        tunnel_count(stream, CW_TUNNEL_DROPPED_FULL, 1);
        return false;
    }
    tunnel_count(stream, CW_TUNNEL_TAKEN, 1);
    tunnel_count(stream, CW_TUNNEL_TAKEN_BYTES, length);
    return true;
}

/* The oldest frame that is worth sending; the others are dropped. NULL: there is none. */
static const uint8_t *worthy_front(struct tunnel_stream *stream, uint64_t now_ns, uint32_t *length)
{
    struct tunnel_out *out = &stream->out;
    const uint8_t *frame;
    uint64_t since_ns;
    while ((frame = cw_tunnel_queue_front(&out->queue, length, &since_ns)) != NULL) {
        uint64_t waited_ns = now_ns - since_ns;
        bool is_late = waited_ns > CW_TUNNEL_WAIT_MAX_NS;
        bool is_short = out->queue.bytes <= (uint64_t)out->frame_bytes_max + CW_TUNNEL_LINE_BYTES;
        if (!is_late && !cw_codel_drops(&out->codel, now_ns, waited_ns, is_short)) {
            return frame;
        }
        tunnel_count(stream, is_late ? CW_TUNNEL_DROPPED_LATE : CW_TUNNEL_DROPPED_STANDING, 1);
        cw_tunnel_queue_pop(&out->queue);
    }
    return NULL;
}

/* ---- the ring ---- */

/* Finds room for `units` at least, and up to *end; they are consecutive. Returns the count of units at its beginning;
 * UINT64_MAX: there is none. */
static uint64_t room_find(struct tunnel_out *out, uint64_t units, uint64_t *end)
{
    if (out->freed == out->posted) {
        /* Nothing is in progress: begin where the ring does, which both sides have in their caches. */
        out->posted += (out->units - out->posted % out->units) % out->units;
        out->returned = out->freed = out->posted;
    }
    uint64_t limit = out->freed + out->units;
    uint64_t lap_end = out->posted + out->units - out->posted % out->units;
    uint64_t start = out->posted;
    *end = limit < lap_end ? limit : lap_end;
    if (start + units > *end && lap_end < limit) {
        start = lap_end;
        *end = limit;
    }
    return start + units <= *end ? start : UINT64_MAX;
}

/* ---- batches ---- */

/* A batch of this number of bytes leaves its last packet as good as full. */
static bool fills_packets(uint64_t bytes, uint32_t part_bytes)
{
    return part_bytes > 0 && (part_bytes - bytes % part_bytes) % part_bytes <= part_bytes / EMPTY_SHARE;
}

/* Writes the next frames, `bytes_max` at most, into the mirror; from half of that on at most as many as fill packets,
 * because the last packet of a batch takes its time on the line with any contents. False: there is none, or no room. */
static bool batch_stage(struct tunnel_stream *stream, uint64_t now_ns, uint64_t bytes_max, uint32_t part_bytes)
{
    struct tunnel_out *out = &stream->out;
    uint32_t length;
    uint64_t end;
    const uint8_t *frame = worthy_front(stream, now_ns, &length);
    if (frame == NULL || out->last - out->first == TUNNEL_BATCHES) {
        return false;
    }
    uint64_t start = room_find(out, tunnel_units(CW_TUNNEL_RECORD_BYTES + (uint64_t)length), &end);
    if (start == UINT64_MAX) {
        return false;
    }
    uint64_t room = (end - start) * TUNNEL_UNIT_BYTES;
    uint8_t *to = out->mirror + start % out->units * TUNNEL_UNIT_BYTES;
    uint32_t bytes = 0;
    uint32_t frames = 0;
    do {
        bytes += cw_tunnel_record_write(to + bytes, frame, length);
        frames++;
        cw_tunnel_queue_pop(&out->queue);
        frame = worthy_front(stream, now_ns, &length);
    } while (frame != NULL && bytes + CW_TUNNEL_RECORD_BYTES + length <= (bytes_max < room ? bytes_max : room) &&
             (bytes < bytes_max / 2 || !fills_packets(bytes, part_bytes)));
    out->staged.offset = start % out->units;
    out->staged.end = start + tunnel_units(bytes);
    out->staged.bytes = bytes;
    out->staged.frames = frames;
    return true;
}

static uint64_t context_of(const struct tunnel_stream *stream, uint32_t number)
{
    return (uint64_t)stream->session << 32 | number;
}

/* Posts what is staged. False: not now. */
static bool batch_post(struct cw_tunnel *tunnel, struct tunnel_stream *stream)
{
    struct tunnel_out *out = &stream->out;
    uint64_t offset = out->staged.offset * TUNNEL_UNIT_BYTES;
    struct cw_put put = {
        .peer = stream->peer,
        .lane_tag = cw_lane_tag(TUNNEL_LANE_BATCH, (uint32_t)out->staged.end),
        .region = out->ring_token,
        .offset = offset,
        .source = {.contiguous = {.data = out->mirror + offset, .bytes = out->staged.bytes}},
        .context = context_of(stream, out->last),
        .flags = CW_SIGNAL,
    };
    if (cw_put(tunnel->endpoint, &put) != CW_OK) {
        return false; /* out of operations, or the peer has failed, which an event reports */
    }
    out->list[out->last++ % TUNNEL_BATCHES] =
        (struct tunnel_posted){.end = out->staged.end, .frames = out->staged.frames};
    out->posted = out->staged.end;
    tunnel_count(stream, CW_TUNNEL_SENT, out->staged.frames);
    tunnel_count(stream, CW_TUNNEL_BATCHES, 1);
    out->staged.bytes = 0;
    return true;
}

/* About BATCH_NS of the stream's part of the rate. */
static uint64_t batch_bytes_max(const struct cw_tunnel *tunnel, const struct cw_peer_info *info)
{
    double rate = (double)tunnel->config.rate_bps / 8e9 / tunnel->config.stream_count; /* bytes a nanosecond */
    if (tunnel->config.rate_bps == 0 && info->round_trip_ns > 0) {
        rate = (double)info->congestion_window_bytes / (double)info->round_trip_ns;
    }
    double bytes = rate * (double)BATCH_NS;
    if (bytes < FULL_PACKET_BYTES) {
        return FULL_PACKET_BYTES;
    }
    return bytes < TUNNEL_BATCH_BYTES_MAX ? (uint64_t)bytes : TUNNEL_BATCH_BYTES_MAX;
}

uint32_t tunnel_out_pump(struct cw_tunnel *tunnel, struct tunnel_stream *stream, uint64_t now_ns)
{
    uint32_t count = 0;
    struct cw_peer_info info;
    while (stream->is_ready && (stream->out.staged.bytes > 0 || stream->out.queue.frames > 0) &&
           cw_peer_query(tunnel->endpoint, stream->peer, &info) == CW_OK) {
        uint64_t bytes_max = batch_bytes_max(tunnel, &info);
        if (info.unsent_bytes >= bytes_max ||
            (stream->out.staged.bytes == 0 && !batch_stage(stream, now_ns, bytes_max, info.part_bytes_max)) ||
            !batch_post(tunnel, stream)) {
            break;
        }
        count++;
    }
    return count;
}

/* ---- what comes back ---- */

static void list_advance(struct tunnel_out *out)
{
    while (out->first != out->last) {
        const struct tunnel_posted *posted = &out->list[out->first % TUNNEL_BATCHES];
        if (!posted->is_complete || (out->returned < posted->end && !posted->is_refused)) {
            break;
        }
        out->freed = posted->end;
        out->returned = out->returned > out->freed ? out->returned : out->freed;
        out->first++;
    }
}

void tunnel_out_complete(struct tunnel_stream *stream, const struct cw_event *event)
{
    struct tunnel_out *out = &stream->out;
    uint32_t number = (uint32_t)event->context;
    if (event->context != context_of(stream, number) || number - out->first >= out->last - out->first) {
        return; /* of a session before, which has been counted */
    }
    struct tunnel_posted *posted = &out->list[number % TUNNEL_BATCHES];
    posted->is_complete = true;
    if (event->status != CW_OK) {
        tunnel_count(stream, CW_TUNNEL_IN_DOUBT, posted->frames);
        posted->frames = 0;
        posted->is_refused = true;
    }
    list_advance(out);
}

bool tunnel_out_return(struct tunnel_stream *stream, uint32_t tag)
{
    struct tunnel_out *out = &stream->out;
    uint32_t more = (tag - (uint32_t)out->returned) & TUNNEL_TAG_MASK;
    if (more > out->posted - out->returned) {
        return false;
    }
    out->returned += more;
    list_advance(out);
    return true;
}

uint64_t tunnel_out_under_way(const struct tunnel_out *out)
{
    uint64_t frames = 0;
    for (uint32_t i = out->first; i != out->last; i++) {
        const struct tunnel_posted *posted = &out->list[i % TUNNEL_BATCHES];
        frames += out->returned < posted->end ? posted->frames : 0;
    }
    return frames;
}

/* ---- sessions ---- */

void tunnel_out_reset(struct tunnel_stream *stream)
{
    struct tunnel_out *out = &stream->out;
    tunnel_count(stream, CW_TUNNEL_IN_DOUBT, tunnel_out_under_way(out));
    tunnel_count(stream, CW_TUNNEL_DROPPED_DOWN, out->staged.bytes > 0 ? out->staged.frames : 0);
    out->staged.bytes = 0;
    out->first = out->last;
    out->posted = out->returned = out->freed = 0;
}

void tunnel_out_drop(struct tunnel_stream *stream)
{
    tunnel_out_reset(stream);
    tunnel_count(stream, CW_TUNNEL_DROPPED_DOWN, stream->out.queue.frames);
    while (stream->out.queue.frames > 0) {
        cw_tunnel_queue_pop(&stream->out.queue);
    }
}
