/* Reports of a gateway: counters for users and programs, and over time. */
#include "apps/gateway/site.h"

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
    site->stats = (struct app_report){.form = APP_REPORT_CSV};
    if (!app_csv_open("the statistics", site->config->stats_path, &site->stats.csv)) {
        return APP_EXIT_USAGE;
    }
    if (site->stats.csv != NULL) {
        setvbuf(site->stats.csv, NULL, _IOFBF, BUFFER_BYTES);
    }
    return APP_EXIT_SUCCESS;
}

static uint64_t since(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now; /* a new session counts its packets from 0 */
}

static void row_write(struct gateway_site *site, uint32_t stream, uint64_t now_ns)
{
    enum { OWN = 8 };
    const struct cw_tunnel *tunnel = cw_gate_tunnel(site->gate);
    struct gateway_sample *before = &site->samples[stream];
    struct gateway_sample now = {.packets_sent = 0};
    struct cw_peer_info info = {0};
    cw_peer_query(site->endpoint, site->peers[stream], &info);
    now.packets_sent = info.packets_sent;
    now.packets_retransmitted = info.packets_retransmitted;
    struct app_cell cells[OWN + CW_TUNNEL_COUNTER_COUNT] = {
        app_count("time_ns", NULL, now_ns - site->start_ns),
        app_count("stream", NULL, stream),
        app_count("up", NULL, cw_tunnel_is_up(tunnel, stream)),
        app_count("queue_bytes", NULL, cw_tunnel_queue_bytes(tunnel, stream)),
        app_count("round_trip_ns", NULL, info.round_trip_ns),
        app_count("in_flight_bytes", NULL, info.in_flight_bytes),
        app_count("packets_sent", NULL, since(now.packets_sent, before->packets_sent)),
        app_count("packets_retransmitted", NULL, since(now.packets_retransmitted, before->packets_retransmitted)),
    };
    for (enum cw_tunnel_counter counter = 0; counter < CW_TUNNEL_COUNTER_COUNT; counter++) {
        now.counters[counter] = cw_tunnel_counter(tunnel, stream, counter);
        cells[OWN + counter] =
            app_count(cw_tunnel_counter_name(counter), NULL, now.counters[counter] - before->counters[counter]);
    }
    APP_REPORT(&site->stats, cells);
    *before = now;
}

void gateway_stats_write(struct gateway_site *site, uint64_t now_ns)
{
    for (uint32_t i = 0; site->stats.csv != NULL && i < site->config->stream_count; i++) {
        row_write(site, i, now_ns);
    }
}

int gateway_stats_close(struct gateway_site *site)
{
    FILE *file = site->stats.csv;
    site->stats.csv = NULL;
    return app_csv_close("the statistics", site->config->stats_path, file) ? APP_EXIT_SUCCESS : APP_EXIT_MACHINE;
}
