/* From the ring to this side's hosts. */
#include "dataplane/tunnel/tunnel_private.h"

enum {
    SAY_PARTS = 8, /* room is given back when this part of the ring, or of the batches, has been used ... */
};

#define SAY_NS 5000000ull /* ... or so long after */

void tunnel_in_arrive(struct tunnel_stream *stream, const struct cw_event *event, uint64_t ring_bytes)
{
    struct tunnel_in *in = &stream->in;
    /* the dataplane has checked the bounds, on which all code below relies */
    bool inside = event->offset <= ring_bytes && event->bytes <= ring_bytes - event->offset;
    if (!inside || in->last - in->first == TUNNEL_BATCHES) {
        tunnel_count(stream, CW_TUNNEL_BROKEN, 1);
        return;
    }
    in->list[in->last++ % TUNNEL_BATCHES] = (struct tunnel_arrived){
        .offset = event->offset, .bytes = event->bytes, .tag = cw_tag(event->lane_tag), .session = stream->session};
}

/* Delivers the rest of a batch, which is sound. False: not all of it now. */
static bool batch_deliver(struct cw_tunnel *tunnel, struct tunnel_stream *stream, const struct tunnel_arrived *batch,
                          uint32_t *count)
{
    struct tunnel_in *in = &stream->in;
    while (in->position < batch->bytes) {
        const uint8_t *record = in->ring + batch->offset + in->position;
        uint32_t length = cw_tunnel_record_length(record);
        if (!tunnel->config.deliver(tunnel->config.context, record + CW_TUNNEL_RECORD_BYTES, length)) {
            return false;
        }
        tunnel_count(stream, CW_TUNNEL_DELIVERED, 1);
        tunnel_count(stream, CW_TUNNEL_DELIVERED_BYTES, length);
        in->position += CW_TUNNEL_RECORD_BYTES + length;
        (*count)++;
    }
    return true;
}

/* The first batch has ended. */
static void batch_end(struct tunnel_stream *stream, const struct tunnel_arrived *batch, uint64_t now_ns)
{
    struct tunnel_in *in = &stream->in;
    if (batch->session == stream->session) {
        in->tag = batch->tag;
        in->unsaid++;
        in->say_ns = in->say_ns == UINT64_MAX ? now_ns + SAY_NS : in->say_ns;
    }
    in->position = 0;
    in->first++;
}

uint32_t tunnel_in_deliver(struct cw_tunnel *tunnel, struct tunnel_stream *stream, uint64_t now_ns)
{
    struct tunnel_in *in = &stream->in;
    uint32_t count = 0;
    while (in->first != in->last) {
        const struct tunnel_arrived *batch = &in->list[in->first % TUNNEL_BATCHES];
        bool sound = in->position > 0 || cw_tunnel_records_check(in->ring + batch->offset, batch->bytes,
                                                                 tunnel->config.frame_bytes_max) > 0;
        if (!sound) {
            tunnel_count(stream, CW_TUNNEL_BROKEN, 1);
        } else if (!batch_deliver(tunnel, stream, batch, &count)) {
            break;
        }
        batch_end(stream, batch, now_ns);
    }
    return count;
}

void tunnel_in_return(struct cw_tunnel *tunnel, struct tunnel_stream *stream, uint64_t now_ns)
{
    struct tunnel_in *in = &stream->in;
    uint32_t units = (in->tag - in->tag_said) & TUNNEL_TAG_MASK;
    bool due =
        now_ns >= in->say_ns || units >= stream->out.units / SAY_PARTS || in->unsaid >= TUNNEL_BATCHES / SAY_PARTS;
    if (!stream->is_ready || in->unsaid == 0 || !due) {
        return;
    }
    struct cw_put put = {
        .peer = stream->peer,
        .lane_tag = cw_lane_tag(TUNNEL_LANE_ROOM, in->tag),
        .region = stream->out.room_token,
    };
    if (cw_put(tunnel->endpoint, &put) != CW_OK) {
        return; /* in the next turn */
    }
    in->tag_said = in->tag;
    in->unsaid = 0;
    in->say_ns = UINT64_MAX;
}
