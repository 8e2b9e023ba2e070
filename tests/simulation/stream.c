#include "tests/simulation/stream.h"

/* `done`: puts that are through. */
static void post(struct sim_stream *stream, uint64_t done, uint32_t flags)
{
    struct sim_host *from = stream->from;
    uint64_t places = stream->size == 0 ? UINT64_MAX : stream->space / stream->size;
    while (stream->posted < stream->count && stream->posted - done < stream->under_way_max &&
           stream->posted - done < places) {
        uint64_t offset = stream->size == 0 ? 0 : stream->posted % places * stream->size;
        struct cw_put put = {
            .peer = stream->peer,
            .lane_tag = cw_lane_tag(1, (uint32_t)stream->posted),
            .region = stream->token,
            .offset = stream->base + offset,
            .source = {.region = from->token, .contiguous = {.data = from->memory + offset, .bytes = stream->size}},
            .flags = flags | CW_MORE,
        };
        if (cw_put(from->endpoint, &put) != CW_OK) {
            break;
        }
        stream->posted++;
    }
}

static void send_work(struct sim_host *from, void *context, uint64_t now_ns)
{
    (void)now_ns;
    post(context, from->completed, CW_SIGNAL);
}

static void watch_work(struct sim_host *to, void *context, uint64_t now_ns)
{
    struct sim_stream *stream = context;
    uint64_t before = stream->posted;
    cw_endpoint_clock(stream->from->endpoint, now_ns);
    post(stream, to->arrived_puts, 0);
    if (stream->posted > before) {
        sim_host_wake(stream->from);
    }
}

static void begin(struct sim_hosts *hosts, struct sim_stream *stream, uint32_t from, uint32_t to, uint64_t size)
{
    *stream = (struct sim_stream){
        .from = &hosts->list[from],
        .to = &hosts->list[to],
        .peer = sim_hosts_peer(hosts, from, to),
        .token = hosts->list[to].token,
        .size = size,
        .count = UINT64_MAX,
        .under_way_max = UINT64_MAX,
        .space = hosts->list[from].memory_bytes,
    };
}

void sim_stream_start(struct sim_hosts *hosts, struct sim_stream *stream, uint32_t from, uint32_t to, uint64_t size,
                      uint64_t count)
{
    begin(hosts, stream, from, to, size);
    stream->count = count;
    stream->under_way_max = 256;
    stream->from->completed = 0;
    sim_host_begin(stream->from, send_work, stream);
}

void sim_stream_watch(struct sim_hosts *hosts, struct sim_stream *stream, uint32_t from, uint32_t to, uint64_t size)
{
    begin(hosts, stream, from, to, size);
    sim_host_begin(stream->to, watch_work, stream);
}

uint64_t sim_stream_finish(struct sim_hosts *hosts, uint32_t from, uint64_t limit_ns)
{
    const struct sim_host *host = &hosts->list[from];
    const struct sim_stream *stream = host->context;
    uint64_t start_ns = sim_hosts_now(hosts);
    while (host->completed < stream->count && sim_hosts_now(hosts) < start_ns + limit_ns &&
           cw_simulator_step(hosts->simulator)) {
    }
    return sim_hosts_now(hosts) - start_ns;
}

uint64_t sim_stream_send(struct sim_hosts *hosts, uint32_t from, uint32_t to, uint64_t size, uint64_t count,
                         uint64_t limit_ns)
{
    struct sim_stream stream;
    sim_stream_start(hosts, &stream, from, to, size, count);
    uint64_t took_ns = sim_stream_finish(hosts, from, limit_ns);
    hosts->list[from].work = NULL;
    return took_ns;
}
