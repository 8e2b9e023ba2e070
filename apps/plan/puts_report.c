/* What a plan over puts has taken: packets, memory, what links between clusters carried. */
#include "apps/plan/puts_state.h"

static uint64_t larger(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

/* Packets that its host has sent and received. */
static uint64_t handled(const struct plan_puts_rank *rank)
{
    const struct cw_simulator_node_counters *host =
        cw_simulator_node_counters(rank->world->hosts.simulator, rank->rank);
    return host->sent + host->received;
}

static struct plan_puts_counts counts_of(const struct plan_puts_rank *rank)
{
    struct plan_puts_counts counts = {0};
    if (rank->endpoint != NULL) {
        counts.sent = cw_endpoint_counter(rank->endpoint, CW_COUNTER_PACKETS_OUT);
        counts.data = cw_endpoint_counter(rank->endpoint, CW_COUNTER_DATA_OUT);
        counts.retransmitted = cw_endpoint_counter(rank->endpoint, CW_COUNTER_RETRANSMITTED);
        counts.acknowledgements = cw_endpoint_counter(rank->endpoint, CW_COUNTER_ACKNOWLEDGEMENTS_OUT);
        counts.chunk_raw_bytes = cw_endpoint_counter(rank->endpoint, CW_COUNTER_CHUNK_RAW_OUT);
        counts.chunk_bytes = cw_endpoint_counter(rank->endpoint, CW_COUNTER_CHUNK_BYTES_OUT);
    }
    return counts;
}

static uint32_t trunk_directions(const struct plan_puts *world)
{
    uint32_t clusters = world->options->switches > 1 ? 1 : world->plan->problem->cluster_count;
    return clusters * (clusters - 1);
}

static const struct cw_link *trunk(const struct plan_puts *world, uint32_t direction)
{
    return cw_simulator_link_trunk(world->hosts.simulator, direction / 2, direction % 2);
}

void plan_puts_count_first(struct plan_puts *world)
{
    for (uint32_t i = 0; i < world->plan->problem->ranks; i++) {
        world->ranks[i].handled_first = handled(&world->ranks[i]);
        world->ranks[i].counts_first = counts_of(&world->ranks[i]);
    }
    for (uint32_t i = 0; i < trunk_directions(world); i++) {
        world->wan_frames_first += trunk(world, i)->counters.delivered;
        world->wan_bytes_first += trunk(world, i)->counters.delivered_bytes;
    }
}

static void wan_summarise(const struct plan_puts *world)
{
    struct plan_puts_report *report = world->report;
    for (uint32_t i = 0; i < trunk_directions(world); i++) {
        const struct cw_link *link = trunk(world, i);
        report->wan_dropped += link->counters.dropped_queue;
        report->wan_queue_max_bytes = larger(report->wan_queue_max_bytes, cw_link_queue_bytes_max(link));
        report->wan_frames += link->counters.delivered;
        report->wan_bytes += link->counters.delivered_bytes;
    }
    report->wan_frames -= world->wan_frames_first;
    report->wan_bytes -= world->wan_bytes_first;
}

static void counts_add(const struct plan_puts_rank *rank, struct plan_puts_report *report)
{
    struct plan_puts_counts own = counts_of(rank);
    const uint64_t *count = (const uint64_t *)&own, *first = (const uint64_t *)&rank->counts_first;
    uint64_t *all = (uint64_t *)&report->counts, *most = (uint64_t *)&report->counts_most;
    report->packets += own.sent;
    report->retransmitted += own.retransmitted;
    for (size_t i = 0; i < sizeof(own) / sizeof(uint64_t); i++) {
        all[i] += count[i] - first[i];
        most[i] = larger(most[i], count[i] - first[i]);
    }
}

static void memory_add(const struct plan_puts_rank *rank, struct plan_puts_memory *most)
{
    struct cw_memory_info endpoint = cw_endpoint_memory(rank->endpoint);
    uint64_t schedule_bytes = cw_schedule_memory_bytes(&rank->world->plan->schedules[rank->rank]);
    uint64_t transport_bytes =
        cw_puts_transport_memory_bytes(rank->transport) + rank->world->plan->problem->ranks * sizeof(*rank->peers);
    most->endpoint_bytes = larger(most->endpoint_bytes, endpoint.touched_bytes);
    most->schedule_bytes = larger(most->schedule_bytes, schedule_bytes);
    most->transport_bytes = larger(most->transport_bytes, transport_bytes);
    most->rank_bytes = larger(most->rank_bytes, endpoint.touched_bytes + schedule_bytes + transport_bytes);
    most->peer_bytes = endpoint.peer_bytes;
    most->peers = rank->peer_count > most->peers ? rank->peer_count : most->peers;
}

void plan_puts_summarise(const struct plan_puts *world)
{
    struct plan_puts_report *report = world->report;
    const struct cw_simulator_counters *simulated = cw_simulator_counters(world->hosts.simulator);
    report->hash = cw_simulator_hash(world->hosts.simulator);
    report->events = simulated->packet_events + simulated->turns;
    for (uint32_t i = 0; i < world->plan->problem->ranks; i++) {
        const struct plan_puts_rank *rank = &world->ranks[i];
        report->ranks_done += rank->state == PLAN_PUTS_DONE ? 1 : 0;
        report->ranks_failed += rank->state == PLAN_PUTS_FAILED ? 1 : 0;
        report->ranks_hanging += rank->state == PLAN_PUTS_AWAY || rank->state == PLAN_PUTS_RUNNING ? 1 : 0;
        uint64_t own = handled(rank) - rank->handled_first;
        report->handled += own;
        report->handled_most = larger(report->handled_most, own);
        counts_add(rank, report);
        if (rank->endpoint != NULL) {
            memory_add(rank, &report->memory);
        }
    }
    wan_summarise(world);
}
