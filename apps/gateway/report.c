/* What a gateway tells of itself: counters for people and programs, and over time. */
#include "apps/gateway/site.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "apps/cli/report.h"
#include "dataplane/port/ethdev.h"

enum { BUFFER_BYTES = 1 << 18 };

static uint64_t endpoint_counter(const struct gateway_site *site, enum cw_counter counter)
{
    return cw_endpoint_counter(site->endpoint, counter);
}

/* People read of the endpoint what matters for a tunnel, programs all of it. */
static void site_report(struct app_report *report, const struct gateway_site *site, uint64_t now_ns)
{
    const struct cw_gate_counters *gate = cw_gate_counters(site->gate);
    const struct cw_bridge_counters *bridge = cw_gate_bridge(site->gate);
    uint64_t refused = endpoint_counter(site, CW_COUNTER_DROP_TAG) + endpoint_counter(site, CW_COUNTER_DROP_SEAL);
    struct app_cell counters[CW_COUNTER_COUNT];
    const struct app_cell cells[] = {
        app_text("kind", NULL, 0, "gateway"),
        app_scaled("elapsed_ns", "seconds", 3, 1e-9, now_ns - site->start_ns),
        app_text("peer", "peer", 0, site->config->peer_text),
        app_count("streams_up", "streams up", site->up_count),
        app_count("in_frames", "inner port: in frames", gate->in_frames),
        app_count("in_bytes", "bytes", gate->in_bytes),
        app_count("out_frames", "out frames", gate->out_frames),
        app_count("out_bytes", "bytes", gate->out_bytes),
        app_count("local_frames", "local", bridge->dropped_home),
        app_count("dropped_malformed_frames", "dropped: malformed", bridge->dropped_short + bridge->dropped_source),
        app_count("dropped_reserved_frames", "reserved", bridge->dropped_reserved),
        app_count("dropped_multicast_frames", "multicast", gate->dropped_multicast),
        app_count("dropped_long_frames", "too long", gate->dropped_long),
        app_count("dropped_port_frames", "port full", gate->dropped_port),
        app_count("dropped_receive_frames", "receive", cw_port_ethdev_dropped(site->inner)),
        app_count("addresses_moved", "addresses moved", bridge->addresses_moved),
        app_count(NULL, "outer port: in packets", endpoint_counter(site, CW_COUNTER_PACKETS_IN)),
        app_count(NULL, "out packets", endpoint_counter(site, CW_COUNTER_PACKETS_OUT)),
        app_count(NULL, "sent again", endpoint_counter(site, CW_COUNTER_RETRANSMITTED)),
        app_count(NULL, "refused: not under the key", refused),
        app_count(NULL, "replayed", endpoint_counter(site, CW_COUNTER_DROP_REPLAY)),
    };
    for (enum cw_counter counter = 0; counter < CW_COUNTER_COUNT; counter++) {
        counters[counter] = app_count(cw_counter_name(counter), NULL, endpoint_counter(site, counter));
    }
    if (!report->json) {
        APP_REPORT(report, cells);
        return;
    }
    json_t *line = APP_REPORT_BEGIN(report, cells);
    APP_REPORT_PART(report, line, "endpoint", counters);
    app_json_emit(line);
}

static void stream_report(struct app_report *report, const struct gateway_site *site, uint32_t stream)
{
    enum { OWN = 8 };
    const struct cw_tunnel *tunnel = cw_gate_tunnel(site->gate);
    struct cw_peer_info info = {0};
    cw_peer_query(site->endpoint, site->peers[stream], &info);
    struct app_cell cells[OWN + CW_TUNNEL_COUNTER_COUNT] = {
        app_text("kind", NULL, 0, "stream"),
        app_count("stream", "number", stream),
        app_flag("up", "up", cw_tunnel_is_up(tunnel, stream)),
        app_flag("encrypted", "encrypted", info.encrypted),
        app_scaled("round_trip_ns", "round trip in ms", 2, 1e-6, info.round_trip_ns),
        app_count("packets_sent", "packets", info.packets_sent),
        app_count("packets_retransmitted", "sent again", info.packets_retransmitted),
        app_count("queue_bytes", "queue in bytes", cw_tunnel_queue_bytes(tunnel, stream)),
    };
    for (enum cw_tunnel_counter counter = 0; counter < CW_TUNNEL_COUNTER_COUNT; counter++) {
        const char *name = cw_tunnel_counter_name(counter);
        cells[OWN + counter] = app_count(name, name, cw_tunnel_counter(tunnel, stream, counter));
    }
    APP_REPORT(report, cells);
}

void gateway_report(const struct gateway_site *site, uint64_t now_ns)
{
    struct app_report report = {.json = site->config->json, .form = APP_REPORT_LINE};
    site_report(&report, site, now_ns);
    for (uint32_t i = 0; i < site->config->stream_count; i++) {
        stream_report(&report, site, i);
    }
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
