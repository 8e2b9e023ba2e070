/* The switch's counters, for people and for programs. */
#include "apps/switch/fabric.h"

#include <inttypes.h>

#include "apps/cli/cli.h"
#include "dataplane/port/ethdev.h"

/* Frames to a port that have not left: held on the link, or waiting for room in the ring. */
static void count_held(const struct switch_fabric *fabric, uint64_t held[SWITCH_PORTS_MAX])
{
    for (uint32_t i = 0; i < fabric->config->port_count; i++) {
        held[i] = fabric->ports[i].pending_count;
    }
    for (uint32_t i = 0; i < fabric->host_count; i++) {
        for (const struct switch_frame *frame = fabric->lines[i].first; frame != NULL; frame = frame->next) {
            held[frame->port]++;
        }
    }
}

static void port_emit(const struct switch_fabric *fabric, uint32_t index, uint64_t held, uint64_t elapsed_ns)
{
    const struct switch_port *port = &fabric->ports[index];
    const struct switch_counters *counters = &port->counters;
    json_t *line = app_json_new();
    app_json_text(line, "kind", "port");
    app_json_count(line, "port", index);
    app_json_text(line, "device", fabric->config->ports[index].device);
    app_json_flag(line, "up", cw_port_link_up(port->port));
    app_json_count(line, "elapsed_ns", elapsed_ns);
    app_json_count(line, "in_frames", counters->in_frames);
    app_json_count(line, "in_bytes", counters->in_bytes);
    app_json_count(line, "offered_frames", counters->offered_frames);
    app_json_count(line, "out_frames", counters->out_frames);
    app_json_count(line, "out_bytes", counters->out_bytes);
    app_json_count(line, "held_frames", held);
    app_json_count(line, "dropped_loss_frames", counters->dropped_loss);
    app_json_count(line, "dropped_queue_frames", counters->dropped_queue);
    app_json_count(line, "dropped_link_down_frames", counters->dropped_link_down);
    app_json_count(line, "dropped_port_full_frames", counters->dropped_port_full);
    app_json_count(line, "dropped_port_down_frames", counters->dropped_port_down);
    app_json_count(line, "dropped_pool_frames", counters->dropped_pool);
    app_json_count(line, "dropped_oversize_frames", counters->dropped_oversize);
    app_json_count(line, "dropped_receive_frames", cw_port_ethdev_dropped(port->port));
    app_json_count(line, "queue_max_bytes", cw_link_queue_bytes_max(&port->down->link));
    app_json_emit(line);
}

static void port_print(const struct switch_fabric *fabric, uint32_t index, uint64_t held)
{
    const struct switch_port *port = &fabric->ports[index];
    const struct switch_counters *counters = &port->counters;
    printf("port %u %s: in %" PRIu64 " frames %" PRIu64 " bytes, out %" PRIu64 " frames %" PRIu64
           " bytes, held %" PRIu64 ", dropped: loss %" PRIu64 ", queue %" PRIu64 ", link down %" PRIu64
           ", port full %" PRIu64 ", port down %" PRIu64 ", pool %" PRIu64 ", oversize %" PRIu64 ", receive %" PRIu64
           "; longest queue %" PRIu64 " bytes\n",
           index, fabric->config->ports[index].device, counters->in_frames, counters->in_bytes, counters->out_frames,
           counters->out_bytes, held, counters->dropped_loss, counters->dropped_queue, counters->dropped_link_down,
           counters->dropped_port_full, counters->dropped_port_down, counters->dropped_pool, counters->dropped_oversize,
           cw_port_ethdev_dropped(port->port), cw_link_queue_bytes_max(&port->down->link));
}

struct field {
    const char *name; /* in JSON; for people without its final "_frames" */
    const char *text;
    uint64_t value;
};

/* One line for a bridge or a link, with what it is called. */
static void fields_report(const struct switch_fabric *fabric, const char *kind, const char *name, const char *direction,
                          const struct field *fields, uint32_t count, uint64_t elapsed_ns)
{
    if (fabric->config->json) {
        json_t *line = app_json_new();
        app_json_text(line, "kind", kind);
        if (name != NULL) {
            app_json_text(line, "name", name);
        }
        if (direction != NULL) {
            app_json_text(line, "direction", direction);
        }
        app_json_count(line, "elapsed_ns", elapsed_ns);
        for (uint32_t i = 0; i < count; i++) {
            app_json_count(line, fields[i].name, fields[i].value);
        }
        app_json_emit(line);
        return;
    }
    printf("%s%s%s%s%s:", kind, name != NULL ? " " : "", name != NULL ? name : "", direction != NULL ? " " : "",
           direction != NULL ? direction : "");
    for (uint32_t i = 0; i < count; i++) {
        printf("%s %s %" PRIu64, i == 0 ? "" : ",", fields[i].text, fields[i].value);
    }
    printf("; %.3f s\n", (double)elapsed_ns / 1e9);
    fflush(stdout);
}

#define FIELD_COUNT(fields) (uint32_t)(sizeof(fields) / sizeof((fields)[0]))

static void bridge_report(const struct switch_fabric *fabric, uint32_t cluster, uint64_t elapsed_ns)
{
    const struct cw_topology *topology = fabric->config->topology;
    const struct cw_bridge *bridge = fabric->clusters[cluster].bridge;
    const struct cw_bridge_counters *counters = cw_bridge_counters(bridge);
    const struct field fields[] = {
        {"forwarded_frames", "forwarded", counters->forwarded},
        {"flooded_unknown_frames", "flooded: unknown address", counters->flooded_unknown},
        {"flooded_group_frames", "flooded: group without members", counters->flooded_group},
        {"dropped_short_frames", "dropped: short", counters->dropped_short},
        {"dropped_source_frames", "dropped: bad source", counters->dropped_source},
        {"dropped_reserved_frames", "dropped: reserved address", counters->dropped_reserved},
        {"dropped_home_frames", "dropped: was there already", counters->dropped_home},
        {"igmp_reports", "IGMP reports", counters->igmp_reports},
        {"igmp_malformed", "IGMP malformed", counters->igmp_malformed},
        {"addresses", "addresses", cw_bridge_address_count(bridge)},
        {"addresses_full", "addresses not learnt", counters->addresses_full},
        {"addresses_moved", "addresses moved", counters->addresses_moved},
        {"groups", "groups", cw_bridge_group_count(bridge)},
        {"groups_full", "memberships not noted", counters->groups_full},
    };
    fields_report(fabric, "bridge", topology != NULL ? cw_topology_site_name(topology, cluster) : NULL, NULL, fields,
                  FIELD_COUNT(fields), elapsed_ns);
}

static void link_report(const struct switch_fabric *fabric, const struct switch_line *line, uint64_t elapsed_ns)
{
    const struct cw_link_counters *counters = &line->link.counters;
    const struct field fields[] = {
        {"offered_frames", "offered", counters->offered + line->dropped_oversize},
        {"offered_bytes", "bytes", counters->offered_bytes},
        {"delivered_frames", "delivered", line->delivered_frames},
        {"delivered_bytes", "bytes", line->delivered_bytes},
        {"held_frames", "held", line->held},
        {"dropped_loss_frames", "dropped: loss", counters->lost},
        {"dropped_queue_frames", "dropped: queue", counters->dropped_queue},
        {"dropped_link_down_frames", "dropped: link down", counters->dropped_down},
        {"dropped_pool_frames", "dropped: pool", line->dropped_pool},
        {"dropped_oversize_frames", "dropped: oversize", line->dropped_oversize},
        {"dropped_port_frames", "not taken by the port", line->dropped_port},
        {"queue_max_bytes", "longest queue in bytes", cw_link_queue_bytes_max(&line->link)},
    };
    fields_report(fabric, "link", line->name, line->direction, fields, FIELD_COUNT(fields), elapsed_ns);
}

void switch_fabric_report(const struct switch_fabric *fabric, uint64_t elapsed_ns)
{
    uint64_t held[SWITCH_PORTS_MAX];
    count_held(fabric, held);
    for (uint32_t i = 0; i < fabric->config->port_count; i++) {
        if (fabric->config->json) {
            port_emit(fabric, i, held[i], elapsed_ns);
        } else {
            port_print(fabric, i, held[i]);
        }
    }
    for (uint32_t i = 0; i < fabric->line_count && fabric->config->topology != NULL; i++) {
        link_report(fabric, &fabric->lines[i], elapsed_ns);
    }
    for (uint32_t i = 0; i < fabric->cluster_count; i++) {
        bridge_report(fabric, i, elapsed_ns);
    }
}
