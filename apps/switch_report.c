/* The switch's counters, for people and for programs. */
#include "apps/switch_fabric.h"

#include <inttypes.h>

#include "apps/apps.h"
#include "dataplane/port/ethdev.h"

/* Frames to a port that have not left: held on the link, or waiting for room in the ring. */
static void count_held(const struct switch_fabric *fabric, uint64_t held[SWITCH_PORTS_MAX])
{
    for (uint32_t i = 0; i < fabric->config->port_count; i++) {
        held[i] = fabric->ports[i].pending_count;
    }
    for (uint32_t i = 0; i < fabric->heap.count; i++) {
        held[((const struct switch_held *)fabric->heap.entries[i].object)->port]++;
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
    app_json_count(line, "offered_frames", port->link.counters.offered + counters->dropped_oversize);
    app_json_count(line, "out_frames", counters->out_frames);
    app_json_count(line, "out_bytes", counters->out_bytes);
    app_json_count(line, "held_frames", held);
    app_json_count(line, "dropped_loss_frames", port->link.counters.lost);
    app_json_count(line, "dropped_queue_frames", port->link.counters.dropped_queue);
    app_json_count(line, "dropped_port_full_frames", counters->dropped_port_full);
    app_json_count(line, "dropped_port_down_frames", counters->dropped_port_down);
    app_json_count(line, "dropped_pool_frames", counters->dropped_pool);
    app_json_count(line, "dropped_oversize_frames", counters->dropped_oversize);
    app_json_count(line, "dropped_receive_frames", cw_port_ethdev_dropped(port->port));
    app_json_count(line, "queue_max_bytes", cw_link_queue_bytes_max(&port->link));
    app_json_emit(line);
}

static void port_print(const struct switch_fabric *fabric, uint32_t index, uint64_t held)
{
    const struct switch_port *port = &fabric->ports[index];
    const struct switch_counters *counters = &port->counters;
    printf("port %u %s: in %" PRIu64 " frames %" PRIu64 " bytes, out %" PRIu64 " frames %" PRIu64
           " bytes, held %" PRIu64 ", dropped: loss %" PRIu64 ", queue %" PRIu64 ", port full %" PRIu64
           ", port down %" PRIu64 ", pool %" PRIu64 ", oversize %" PRIu64 ", receive %" PRIu64
           "; longest queue %" PRIu64 " bytes\n",
           index, fabric->config->ports[index].device, counters->in_frames, counters->in_bytes, counters->out_frames,
           counters->out_bytes, held, port->link.counters.lost, port->link.counters.dropped_queue,
           counters->dropped_port_full, counters->dropped_port_down, counters->dropped_pool, counters->dropped_oversize,
           cw_port_ethdev_dropped(port->port), cw_link_queue_bytes_max(&port->link));
}

struct field {
    const char *name; /* in JSON; for people without its final "_frames" */
    const char *text;
    uint64_t value;
};

static void bridge_report(const struct switch_fabric *fabric, uint64_t elapsed_ns)
{
    const struct cw_bridge_counters *counters = cw_bridge_counters(fabric->bridge);
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
        {"addresses", "addresses", cw_bridge_address_count(fabric->bridge)},
        {"addresses_full", "addresses not learnt", counters->addresses_full},
        {"addresses_moved", "addresses moved", counters->addresses_moved},
        {"groups", "groups", cw_bridge_group_count(fabric->bridge)},
        {"groups_full", "memberships not noted", counters->groups_full},
    };
    enum { COUNT = sizeof(fields) / sizeof(fields[0]) };
    if (fabric->config->json) {
        json_t *line = app_json_new();
        app_json_text(line, "kind", "bridge");
        app_json_count(line, "elapsed_ns", elapsed_ns);
        for (uint32_t i = 0; i < COUNT; i++) {
            app_json_count(line, fields[i].name, fields[i].value);
        }
        app_json_emit(line);
        return;
    }
    printf("bridge:");
    for (uint32_t i = 0; i < COUNT; i++) {
        printf("%s %s %" PRIu64, i == 0 ? "" : ",", fields[i].text, fields[i].value);
    }
    printf("; %.3f s\n", (double)elapsed_ns / 1e9);
    fflush(stdout);
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
    bridge_report(fabric, elapsed_ns);
}
