/* What a gateway tells of itself: counters for people and programs, and over time. */
#include "apps/gateway/site.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "dataplane/port/ethdev.h"

enum { BUFFER_BYTES = 1 << 18 };

/* ---- as JSON ---- */

static void site_emit(const struct gateway_site *site, uint64_t now_ns)
{
    const struct cw_gate_counters *gate = cw_gate_counters(site->gate);
    const struct cw_bridge_counters *bridge = cw_gate_bridge(site->gate);
    json_t *line = app_json_new();
    app_json_text(line, "kind", "gateway");
    app_json_count(line, "elapsed_ns", now_ns - site->start_ns);
    app_json_text(line, "peer", site->config->peer_text);
    app_json_count(line, "streams_up", site->up_count);
    app_json_count(line, "in_frames", gate->in_frames);
    app_json_count(line, "in_bytes", gate->in_bytes);
    app_json_count(line, "out_frames", gate->out_frames);
    app_json_count(line, "out_bytes", gate->out_bytes);
    app_json_count(line, "local_frames", bridge->dropped_home);
    app_json_count(line, "dropped_malformed_frames", bridge->dropped_short + bridge->dropped_source);
    app_json_count(line, "dropped_reserved_frames", bridge->dropped_reserved);
    app_json_count(line, "dropped_multicast_frames", gate->dropped_multicast);
    app_json_count(line, "dropped_long_frames", gate->dropped_long);
    app_json_count(line, "dropped_port_frames", gate->dropped_port);
    app_json_count(line, "dropped_receive_frames", cw_port_ethdev_dropped(site->inner));
    app_json_count(line, "addresses_moved", bridge->addresses_moved);
    json_t *endpoint = app_json_new();
    for (enum cw_counter counter = 0; counter < CW_COUNTER_COUNT; counter++) {
        app_json_count(endpoint, cw_counter_name(counter), cw_endpoint_counter(site->endpoint, counter));
    }
    app_json_child(line, "endpoint", endpoint);
    app_json_emit(line);
}

static void stream_emit(const struct gateway_site *site, uint32_t stream)
{
    const struct cw_tunnel *tunnel = cw_gate_tunnel(site->gate);
    struct cw_peer_info info = {0};
    cw_peer_query(site->endpoint, site->peers[stream], &info);
    json_t *line = app_json_new();
    app_json_text(line, "kind", "stream");
    app_json_count(line, "stream", stream);
    app_json_flag(line, "up", cw_tunnel_is_up(tunnel, stream));
    app_json_flag(line, "encrypted", info.encrypted);
    app_json_count(line, "round_trip_ns", info.round_trip_ns);
    app_json_count(line, "packets_sent", info.packets_sent);
    app_json_count(line, "packets_retransmitted", info.packets_retransmitted);
    app_json_count(line, "queue_bytes", cw_tunnel_queue_bytes(tunnel, stream));
    for (enum cw_tunnel_counter counter = 0; counter < CW_TUNNEL_COUNTER_COUNT; counter++) {
        app_json_count(line, cw_tunnel_counter_name(counter), cw_tunnel_counter(tunnel, stream, counter));
    }
    app_json_emit(line);
}

/* ---- for people ---- */

static void site_print(const struct gateway_site *site)
{
    const struct cw_gate_counters *gate = cw_gate_counters(site->gate);
    const struct cw_bridge_counters *bridge = cw_gate_bridge(site->gate);
    printf("inner port: in %" PRIu64 " frames %" PRIu64 " bytes, out %" PRIu64 " frames %" PRIu64
           " bytes, local %" PRIu64 ", dropped: malformed %" PRIu64 ", reserved %" PRIu64 ", multicast %" PRIu64
           ", too long %" PRIu64 ", port full %" PRIu64 ", receive %" PRIu64 "\n",
           gate->in_frames, gate->in_bytes, gate->out_frames, gate->out_bytes, bridge->dropped_home,
           bridge->dropped_short + bridge->dropped_source, bridge->dropped_reserved, gate->dropped_multicast,
           gate->dropped_long, gate->dropped_port, cw_port_ethdev_dropped(site->inner));
    printf("outer port: in %" PRIu64 " packets, out %" PRIu64 " packets, sent again %" PRIu64
           ", refused: not under the key %" PRIu64 ", replayed %" PRIu64 "\n",
           cw_endpoint_counter(site->endpoint, CW_COUNTER_PACKETS_IN),
           cw_endpoint_counter(site->endpoint, CW_COUNTER_PACKETS_OUT),
           cw_endpoint_counter(site->endpoint, CW_COUNTER_RETRANSMITTED),
           cw_endpoint_counter(site->endpoint, CW_COUNTER_DROP_TAG) +
               cw_endpoint_counter(site->endpoint, CW_COUNTER_DROP_SEAL),
           cw_endpoint_counter(site->endpoint, CW_COUNTER_DROP_REPLAY));
}

static void stream_print(const struct gateway_site *site, uint32_t stream)
{
    const struct cw_tunnel *tunnel = cw_gate_tunnel(site->gate);
    struct cw_peer_info info = {0};
    cw_peer_query(site->endpoint, site->peers[stream], &info);
    printf("stream %u %s:", stream, cw_tunnel_is_up(tunnel, stream) ? "up" : "down");
    for (enum cw_tunnel_counter counter = 0; counter < CW_TUNNEL_COUNTER_COUNT; counter++) {
        printf(" %s %" PRIu64 ",", cw_tunnel_counter_name(counter), cw_tunnel_counter(tunnel, stream, counter));
    }
    printf(" sent again %" PRIu64 " of %" PRIu64 " packets, round trip %.2f ms\n", info.packets_retransmitted,
           info.packets_sent, (double)info.round_trip_ns / 1e6);
}

void gateway_report(const struct gateway_site *site, uint64_t now_ns)
{
    uint32_t streams = (uint32_t)site->config->stream_count;
    if (site->config->json) {
        site_emit(site, now_ns);
    } else {
        site_print(site);
    }
    for (uint32_t i = 0; i < streams; i++) {
        if (site->config->json) {
            stream_emit(site, i);
        } else {
            stream_print(site, i);
        }
    }
    fflush(stdout);
}

/* ---- over time ---- */

int gateway_stats_open(struct gateway_site *site)
{
    const char *path = site->config->stats_path;
    if (path == NULL) {
        return APP_EXIT_SUCCESS;
    }
    site->stats = fopen(path, "we");
    if (site->stats == NULL) {
        app_error("the statistics cannot be written there", path, strerror(errno));
        return APP_EXIT_USAGE;
    }
    setvbuf(site->stats, NULL, _IOFBF, BUFFER_BYTES);
    fputs("time_ns,stream,up,queue_bytes,round_trip_ns,in_flight_bytes,packets_sent,packets_retransmitted",
          site->stats);
    for (enum cw_tunnel_counter counter = 0; counter < CW_TUNNEL_COUNTER_COUNT; counter++) {
        fprintf(site->stats, ",%s", cw_tunnel_counter_name(counter));
    }
    fputc('\n', site->stats);
    return APP_EXIT_SUCCESS;
}

static uint64_t since(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now; /* a new session counts its packets from 0 */
}

static void row_write(struct gateway_site *site, uint32_t stream, uint64_t now_ns)
{
    const struct cw_tunnel *tunnel = cw_gate_tunnel(site->gate);
    struct gateway_sample *before = &site->samples[stream];
    struct gateway_sample now = {.packets_sent = 0};
    struct cw_peer_info info = {0};
    cw_peer_query(site->endpoint, site->peers[stream], &info);
    now.packets_sent = info.packets_sent;
    now.packets_retransmitted = info.packets_retransmitted;
    fprintf(site->stats, "%" PRIu64 ",%u,%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
            now_ns - site->start_ns, stream, cw_tunnel_is_up(tunnel, stream), cw_tunnel_queue_bytes(tunnel, stream),
            info.round_trip_ns, info.in_flight_bytes, since(now.packets_sent, before->packets_sent),
            since(now.packets_retransmitted, before->packets_retransmitted));
    for (enum cw_tunnel_counter counter = 0; counter < CW_TUNNEL_COUNTER_COUNT; counter++) {
        now.counters[counter] = cw_tunnel_counter(tunnel, stream, counter);
        fprintf(site->stats, ",%" PRIu64, now.counters[counter] - before->counters[counter]);
    }
    fputc('\n', site->stats);
    *before = now;
}

void gateway_stats_take(struct gateway_site *site, uint64_t now_ns)
{
    for (uint32_t i = 0; site->stats != NULL && i < site->config->stream_count; i++) {
        row_write(site, i, now_ns);
    }
}

int gateway_stats_close(struct gateway_site *site)
{
    if (site->stats == NULL) {
        return APP_EXIT_SUCCESS;
    }
    bool failed = ferror(site->stats) != 0;
    failed = fclose(site->stats) != 0 || failed;
    site->stats = NULL;
    if (failed) {
        app_error("not all statistics could be written", site->config->stats_path, "is the disk full?");
    }
    return failed ? APP_EXIT_MACHINE : APP_EXIT_SUCCESS;
}
