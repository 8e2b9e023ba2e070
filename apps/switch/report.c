/* The switch's counters, for users and for programs. */
#include "apps/switch/fabric.h"

#include "apps/cli/report.h"
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

static void port_report(struct app_report *report, const struct switch_fabric *fabric, uint32_t index, uint64_t held,
                        uint64_t elapsed_ns)
{
    const struct switch_port *port = &fabric->ports[index];
    const struct switch_counters *counters = &port->counters;
    const struct app_cell cells[] = {
        app_text("kind", NULL, 0, "port"),
        app_text("device", NULL, 0, fabric->config->ports[index].device),
        app_count("port", "number", index),
        app_flag("up", "up", cw_port_link_up(port->port)),
        app_scaled("elapsed_ns", "seconds", 3, 1e-9, elapsed_ns),
        app_count("in_frames", "in frames", counters->in_frames),
        app_count("in_bytes", "bytes", counters->in_bytes),
        app_count("offered_frames", "offered", counters->offered_frames),
        app_count("out_frames", "out frames", counters->out_frames),
        app_count("out_bytes", "bytes", counters->out_bytes),
        app_count("held_frames", "held", held),
        app_count("dropped_loss_frames", "dropped: loss", counters->dropped_loss),
        app_count("dropped_queue_frames", "queue", counters->dropped_queue),
        app_count("dropped_link_down_frames", "link down", counters->dropped_link_down),
        app_count("dropped_port_full_frames", "port full", counters->dropped_port_full),
        app_count("dropped_port_down_frames", "port down", counters->dropped_port_down),
        app_count("dropped_pool_frames", "pool", counters->dropped_pool),
        app_count("dropped_oversize_frames", "oversize", counters->dropped_oversize),
        app_count("dropped_receive_frames", "receive", cw_port_ethdev_dropped(port->port)),
        app_count("queue_max_bytes", "longest queue in bytes", cw_link_queue_bytes_max(&port->down->link)),
    };
    APP_REPORT(report, cells);
}

static void bridge_report(struct app_report *report, const struct switch_fabric *fabric, uint32_t cluster,
                          uint64_t elapsed_ns)
{
    const struct cw_topology *topology = fabric->config->topology;
    const struct cw_bridge *bridge = fabric->clusters[cluster].bridge;
    const struct cw_bridge_counters *counters = cw_bridge_counters(bridge);
    const struct app_cell cells[] = {
        app_text("kind", NULL, 0, "bridge"),
        app_text("name", NULL, 0, topology != NULL ? cw_topology_site_name(topology, cluster) : NULL),
        app_scaled("elapsed_ns", "seconds", 3, 1e-9, elapsed_ns),
        app_count("forwarded_frames", "forwarded", counters->forwarded),
        app_count("flooded_unknown_frames", "flooded: unknown address", counters->flooded_unknown),
        app_count("flooded_group_frames", "flooded: group without members", counters->flooded_group),
        app_count("dropped_short_frames", "dropped: short", counters->dropped_short),
        app_count("dropped_source_frames", "dropped: bad source", counters->dropped_source),
        app_count("dropped_reserved_frames", "dropped: reserved address", counters->dropped_reserved),
        app_count("dropped_home_frames", "dropped: was there already", counters->dropped_home),
        app_count("igmp_reports", "IGMP reports", counters->igmp_reports),
        app_count("igmp_malformed", "IGMP malformed", counters->igmp_malformed),
        app_count("addresses", "addresses", cw_bridge_address_count(bridge)),
        app_count("addresses_full", "addresses not learnt", counters->addresses_full),
        app_count("addresses_moved", "addresses moved", counters->addresses_moved),
        app_count("groups", "groups", cw_bridge_group_count(bridge)),
        app_count("groups_full", "memberships not noted", counters->groups_full),
    };
    APP_REPORT(report, cells);
}

static void link_report(struct app_report *report, const struct switch_line *line, uint64_t elapsed_ns)
{
    const struct cw_link_counters *counters = &line->link.counters;
    const struct app_cell cells[] = {
        app_text("kind", NULL, 0, "link"),
        app_text("name", NULL, 0, line->name),
        app_text("direction", NULL, 0, line->direction),
        app_scaled("elapsed_ns", "seconds", 3, 1e-9, elapsed_ns),
        app_count("offered_frames", "offered", counters->offered + line->dropped_oversize),
        app_count("offered_bytes", "bytes", counters->offered_bytes),
        app_count("delivered_frames", "delivered", line->link.counters.arrived),
        app_count("delivered_bytes", "bytes", line->link.counters.arrived_bytes),
        app_count("held_frames", "held", line->held),
        app_count("dropped_loss_frames", "dropped: loss", counters->lost),
        app_count("dropped_queue_frames", "dropped: queue", counters->dropped_queue),
        app_count("dropped_link_down_frames", "dropped: link down", counters->dropped_down),
        app_count("dropped_pool_frames", "dropped: pool", line->dropped_pool),
        app_count("dropped_oversize_frames", "dropped: oversize", line->dropped_oversize),
        app_count("dropped_port_frames", "not taken by the port", line->dropped_port),
        app_count("queue_max_bytes", "longest queue in bytes", cw_link_queue_bytes_max(&line->link)),
    };
    APP_REPORT(report, cells);
}

void switch_fabric_report(const struct switch_fabric *fabric, uint64_t elapsed_ns)
{
    uint64_t held[SWITCH_PORTS_MAX];
    struct app_report report = {.json = fabric->config->json, .form = APP_REPORT_LINE};
    count_held(fabric, held);
    for (uint32_t i = 0; i < fabric->config->port_count; i++) {
        port_report(&report, fabric, i, held[i], elapsed_ns);
    }
    for (uint32_t i = 0; i < fabric->line_count && fabric->config->topology != NULL; i++) {
        link_report(&report, &fabric->lines[i], elapsed_ns);
    }
    for (uint32_t i = 0; i < fabric->cluster_count; i++) {
        bridge_report(&report, fabric, i, elapsed_ns);
    }
}
