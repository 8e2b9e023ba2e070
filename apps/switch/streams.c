#include "apps/switch/streams.h"

#include <stdlib.h>

#include "dataplane/status.h"

/* The lines of a route, crossed by all hosts of the cluster that it begins in. */
static void route_mark(bool *crosses, uint32_t host_count, const struct cw_topology *topology, uint32_t from,
                       uint32_t to)
{
    uint32_t count;
    const struct cw_topology_cluster *cluster = cw_topology_cluster(topology, from);
    const struct cw_topology_hop *hops = cw_topology_route(topology, from, to, &count);
    for (uint32_t i = 0; i < count; i++) {
        bool *row = crosses + (size_t)(2u * hops[i].link + hops[i].direction) * host_count;
        for (uint32_t host = 0; host < cluster->host_count; host++) {
            row[cluster->host_first + host] = true;
        }
    }
}

/* Which hosts' frames may cross which line; NULL: no memory. */
static bool *crossings_find(const struct cw_topology *topology, uint32_t host_count)
{
    uint32_t clusters = cw_topology_cluster_count(topology);
    bool *crosses = calloc((size_t)2 * cw_topology_link_count(topology) * host_count + 1, sizeof(*crosses));
    for (uint32_t i = 0; crosses != NULL && i < clusters * clusters; i++) {
        if (i / clusters != i % clusters) {
            route_mark(crosses, host_count, topology, i / clusters, i % clusters);
        }
    }
    return crosses;
}

int switch_streams_open(struct switch_streams *streams, const struct cw_topology *topology,
                        const struct switch_line *lines)
{
    uint32_t hosts = cw_topology_host_count(topology);
    size_t pairs = (size_t)2 * cw_topology_link_count(topology) * hosts;
    bool *crosses = crossings_find(topology, hosts);
    *streams = (struct switch_streams){.host_count = hosts, .lines = lines};
    streams->of = calloc(pairs + 1, sizeof(*streams->of));
    streams->list = calloc(pairs + 1, sizeof(*streams->list));
    if (crosses == NULL || streams->of == NULL || streams->list == NULL) {
        free(crosses);
        return CW_ERROR_MEMORY;
    }
    for (size_t i = 0; i < pairs; i++) {
        if (crosses[i]) {
            streams->of[i] = &streams->list[streams->count++];
            streams->of[i]->line = &lines[i / hosts];
            streams->of[i]->host = cw_topology_host_name(topology, (uint32_t)(i % hosts));
        }
    }
    free(crosses);
    return CW_OK;
}

void switch_streams_close(struct switch_streams *streams)
{
    free(streams->list);
    free(streams->of);
    *streams = (struct switch_streams){.count = 0};
}

static struct switch_stream *stream_of(const struct switch_streams *streams, const struct switch_line *line,
                                       uint32_t host)
{
    bool is_counted = streams->of != NULL && line->kind == SWITCH_LINE_WAN;
    return is_counted ? streams->of[(size_t)(line - streams->lines) * streams->host_count + host] : NULL;
}

void switch_streams_offered(struct switch_streams *streams, const struct switch_line *line, uint32_t host,
                            uint32_t length, enum cw_link_fate fate)
{
    struct switch_stream *stream = stream_of(streams, line, host);
    if (stream != NULL) {
        stream->offered_frames++;
        stream->offered_bytes += length;
        stream->lost_frames += fate == CW_LINK_DROP_LOSS;
        stream->queue_frames += fate == CW_LINK_DROP_QUEUE;
    }
}

void switch_streams_delivered(struct switch_streams *streams, const struct switch_line *line, uint32_t host,
                              uint32_t length)
{
    struct switch_stream *stream = stream_of(streams, line, host);
    if (stream != NULL) {
        stream->delivered_frames++;
        stream->delivered_bytes += length;
    }
}
