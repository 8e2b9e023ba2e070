/* The meaning of a seed: topology, links, tables, manners and faults of a simulated world. */
#include <stdio.h>
#include <string.h>

#include "tests/simulation/world/world_state.h"

enum { MEMORY_BYTES = 6 << 20 /* of all inboxes together */ };

static const struct sim_world_mix mixes[] = {
    {.name = "default", .put = 60, .message = 25, .get = 15, .large_percent = 3},
    {.name = "puts", .put = 100, .large_percent = 4},
    {.name = "large", .put = 80, .message = 5, .get = 15, .large_percent = 30},
    {.name = "messages", .put = 10, .message = 90, .large_percent = 1},
    {.name = "gets", .put = 20, .get = 80, .large_percent = 5},
};

/* A probability: nothing in half of all worlds, else anything up to `most`. */
static double draw_probability(struct cw_random *random, double most)
{
    return cw_random_chance(random, 0.5) ? 0 : cw_random_fraction(random) * most;
}

static uint64_t draw_one(struct cw_random *random, const uint64_t *values, size_t count)
{
    return values[cw_random_below(random, count)];
}

static void draw_links(struct world *world)
{
    struct cw_random *random = &world->random;
    const struct sim_world_options *options = world->options;
    struct world_plan *plan = &world->plan;
    static const uint64_t rates_bps[] = {1000000000, 10000000000, 10000000000, 25000000000, 100000000000};
    static const uint64_t queues_bytes[] = {32000, 256000, 256000, 1000000};
    bool outages = plan->partitions || plan->crashes || plan->stops;
    cw_simulator_node_config_init(&plan->node);
    struct cw_link_config link = plan->node.down;
    link.rate_bps = draw_one(random, rates_bps, 5);
    link.delay_ns = cw_random_between(random, 200, 20000);
    link.queue_limit_bytes = draw_one(random, queues_bytes, 4);
    double loss = draw_probability(random, outages ? 0.01 : 0.04);
    link.loss = options->deaf ? 1 : loss;
    link.duplicate = draw_probability(random, 0.05);
    link.corrupt = draw_probability(random, outages ? 0.005 : 0.02);
    link.reorder = draw_probability(random, 0.2);
    link.reorder_delay_max_ns = cw_random_between(random, 1000, 2000000);
    plan->node.up = plan->node.down = link;
    plan->node.processing_delay_ns = cw_random_between(random, 100, 30000);
    plan->node.send_queue_packets = 1u << cw_random_between(random, 4, 8);
    plan->node.receive_ring_packets = 1u << cw_random_between(random, 6, 10);
    plan->node.gather = cw_random_chance(random, 0.7);
    plan->trunk = link;
    plan->trunk.rate_bps = cw_random_between(random, 200, 5000) * 1000000;
    plan->trunk.delay_ns = cw_random_between(random, 100000, 20000000);
    plan->trunk.queue_limit_bytes = 1000000;
}

/* The smallest tables that can work. */
static void draw_tight(struct world *world, struct cw_endpoint_config *config)
{
    struct cw_random *random = &world->random;
    uint32_t peers = config->peer_count_max;
    config->operation_count_max = (uint32_t)cw_random_between(random, 128, 192);
    config->reassembly_count_max = 2 * peers + (uint32_t)cw_random_below(random, 8);
    config->event_count_max = 256;
    config->get_count_max = (uint32_t)cw_random_between(random, 1, 8);
    config->pool_slot_count = (uint32_t)cw_random_between(random, 1, 12);
    config->sent_chunk_count = (uint32_t)cw_random_between(random, peers + 1, 4 * peers);
    config->window_block_count = (uint32_t)cw_random_between(random, 4 * peers, 8 * peers);
    config->congestion_window_max_bytes = 1u << cw_random_between(random, 15, 18);
}

static void draw_endpoint(struct world *world)
{
    struct cw_random *random = &world->random;
    struct world_plan *plan = &world->plan;
    struct cw_endpoint_config *config = &plan->endpoint;
    cw_endpoint_config_init(config);
    memset(config->job_key, 0x42, sizeof(config->job_key));
    config->peer_count_max = plan->nodes;
    config->region_count_max = WORLD_REGION_KINDS + 1;
    config->operation_count_max = (uint32_t)cw_random_between(random, 300, 2000);
    config->reassembly_count_max = 2 * plan->nodes + (uint32_t)cw_random_between(random, 50, 1000);
    config->event_count_max = 1u << cw_random_between(random, 8, 11);
    config->get_count_max = (uint32_t)cw_random_between(random, 4, 100);
    config->pool_slot_count = cw_random_chance(random, 0.05) ? 0 : (uint32_t)cw_random_between(random, 8, 48);
    config->pool_slot_bytes = 64 * (uint32_t)cw_random_between(random, 1, 64);
    config->pool_slot_bytes *= cw_random_chance(random, 0.1) ? CW_SLOT_BYTES_MAX / 4096 : 1;
    config->sent_chunk_count = (uint32_t)cw_random_between(random, 64, 512);
    config->window_block_count = 16 * plan->nodes;
    bool outages = plan->partitions || plan->crashes || plan->stops;
    config->failure_timeout_ns = outages ? 1500000000 : 4000000000;
    plan->tight = cw_random_chance(random, 0.3);
    if (plan->tight) {
        draw_tight(world, config);
    }
}

/* From a generator of its own: worlds without devices stay unchanged. */
static void draw_verbs(struct world *world)
{
    struct cw_verbs_net_config *config = &world->plan.verbs;
    struct cw_random random;
    cw_random_seed(&random, cw_random_derive(world->options->seed, 0x7264ull << 48));
    cw_verbs_net_config_init(config);
    config->seed = cw_random_next(&random);
    config->rate_bps = cw_random_between(&random, 1, 200) * 1000000000;
    config->delay_ns = cw_random_between(&random, 200, 20000);
    config->jitter_ns = cw_random_below(&random, 100000);
    config->retry_ns = cw_random_between(&random, 100000, 4000000);
    config->work_max = 1u << cw_random_between(&random, 2, 7);
    config->receive_max = world->plan.endpoint.pool_slot_count + (uint32_t)cw_random_between(&random, 16, 600);
    config->pieces_max = (uint32_t)cw_random_between(&random, 1, CW_VERBS_PIECES_MAX);
    config->inline_max = cw_random_chance(&random, 0.3) ? 0 : (uint32_t)cw_random_between(&random, 16, 400);
    uint64_t message_min = world->plan.endpoint.pool_slot_bytes + 64;
    config->message_max = message_min + (1ull << cw_random_between(&random, 6, 20));
    if (cw_random_chance(&random, 0.6)) {
        config->break_before = cw_random_fraction(&random) * 0.01;
        config->break_after = cw_random_fraction(&random) * 0.01;
    }
    world->plan.verbs_count =
        cw_random_chance(&random, 0.2) ? (uint32_t)cw_random_between(&random, 1, world->plan.nodes - 1) : 0;
}

void world_plan_draw(struct world *world)
{
    struct cw_random *random = &world->random;
    const struct sim_world_options *options = world->options;
    struct world_plan *plan = &world->plan;
    static const uint64_t mtus[] = {576, 1500, 1500, 4000, 9000};
    uint64_t nodes = cw_random_between(random, 2, cw_random_chance(random, 0.2) ? 16 : 7);
    plan->nodes = (uint32_t)nodes;
    bool clusters = cw_random_chance(random, 0.25);
    plan->clusters = !clusters || plan->nodes < 4 ? 1 : plan->nodes >= 9 && cw_random_chance(random, 0.5) ? 3 : 2;
    plan->nodes -= plan->nodes % plan->clusters;
    plan->mtu_bytes = (uint32_t)draw_one(random, mtus, 5);
    plan->partitions = (cw_random_chance(random, 0.25) || options->partitions) && !options->deaf;
    plan->crashes = cw_random_chance(random, 0.25) && !options->deaf;
    plan->stops = cw_random_chance(random, 0.25) && !options->deaf;
    plan->deregister = cw_random_chance(random, 0.5);
    plan->pace = cw_random_chance(random, 0.3);
    plan->slow_percent = cw_random_chance(random, 0.5) ? 0 : (uint32_t)cw_random_between(random, 10, 100);
    draw_links(world);
    draw_endpoint(world);
    size_t mix = cw_random_chance(random, 0.6) ? 0 : cw_random_below(random, sizeof(mixes) / sizeof(mixes[0]));
    plan->mix = mixes[mix];
    plan->operations = (uint32_t)cw_random_between(random, 200, 2500);
    uint64_t slice_bytes = MEMORY_BYTES / (plan->nodes * plan->nodes);
    plan->slice_bytes = slice_bytes < 400000 ? slice_bytes & ~63ull : 400000;
    bool outages = plan->partitions || plan->crashes || plan->stops;
    uint64_t span_ns = outages ? plan->endpoint.failure_timeout_ns * 2 : plan->clusters > 1 ? 300000000 : 30000000;
    plan->phase_ns = cw_random_between(random, span_ns / 8, span_ns);
    if (options->rdma) {
        plan->pace = false; /* queue pairs carry no paced traffic */
        draw_verbs(world);
    }
}

void world_plan_describe(const struct world *world, char *text, size_t text_bytes)
{
    const struct world_plan *plan = &world->plan;
    const struct cw_link_config *link = &plan->node.down;
    snprintf(text, text_bytes,
             "%u nodes in %u cluster%s, MTU %u, %.3g Gb/s, %.3g us, loss %.2g%% duplicate %.2g%% corrupt %.2g%% "
             "reorder %.2g%%, "
             "%u operations (%s)%s%s%s%s%s%s%s",
             plan->nodes, plan->clusters, plan->clusters == 1 ? "" : "s", plan->mtu_bytes, (double)link->rate_bps / 1e9,
             2 * (double)link->delay_ns / 1e3, link->loss * 100, link->duplicate * 100, link->corrupt * 100,
             link->reorder * 100, plan->operations, plan->mix.name, plan->tight ? ", tight" : "",
             plan->slow_percent > 0 ? ", slow" : "", plan->pace ? ", paced" : "",
             plan->deregister ? ", deregistration" : "", plan->partitions ? ", partitions" : "",
             plan->stops ? ", stops" : "", plan->crashes ? ", crashes" : "");
}
