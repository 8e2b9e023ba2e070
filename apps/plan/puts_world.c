/* The simulated network of a plan's ranks, and what runs on its hosts. */
#include <stdlib.h>
#include <string.h>

#include "apps/plan/puts_state.h"

enum {
    WAN_QUEUE_BYTES = 1 << 20,
    FRAME_BYTES = 1514,
    HOST_QUEUE_PACKETS = 256, /* as cw_simulator_node_config_init has it */
    PACKETS_MAX = 2 << 20,    /* some 4 GB, if all were in use */
};

/* ---- Network and hosts ---- */

/* Frames that may be anywhere at a time: queued at their host, or as many as it can have on their way. Where buffers
 * run out hosts can only try again and again. */
static uint64_t packets_under_way(const struct plan_puts_options *options, uint32_t ranks)
{
    double delay_ns = (double)(options->delay_ns + options->wan_delay_ns);
    double sent = (double)options->rate_bps * delay_ns / 8e9 / FRAME_BYTES;
    uint64_t most = (uint64_t)PACKETS_MAX / ranks;
    uint64_t one = 64 + HOST_QUEUE_PACKETS + (sent < (double)most ? (uint64_t)sent : most);
    return 65536 + ranks * (one < most ? one : most);
}

static void trunk_fill(const struct plan_puts_options *options, struct sim_hosts_config *config)
{
    config->is_mesh = options->switches <= 1;
    if (!config->is_mesh) {
        config->trunk = config->node.down;
        config->trunk.rate_bps = options->uplink_rate_bps;
        config->trunk.delay_ns = 0;
        config->trunk.loss = config->trunk.duplicate = config->trunk.reorder = 0;
        return;
    }
    config->trunk = (struct cw_link_config){
        .rate_bps = options->wan_rate_bps,
        .delay_ns = options->wan_delay_ns,
        .queue_limit_bytes = WAN_QUEUE_BYTES,
        .loss = options->wan_loss,
        .overhead_bytes = CW_ETHERNET_OVERHEAD_BYTES,
    };
}

static int hosts_create(struct plan_puts *world, sim_turn turn)
{
    const struct plan_puts_options *options = world->options;
    const struct cw_problem *problem = world->plan->problem;
    struct sim_hosts_config config;
    char error[200] = "";
    sim_hosts_config_init(&config, problem->ranks);
    config.seed = options->seed;
    config.packet_count_max = (uint32_t)packets_under_way(options, problem->ranks);
    config.node.up.rate_bps = config.node.down.rate_bps = options->rate_bps;
    config.node.up.delay_ns = config.node.down.delay_ns = options->delay_ns / 2;
    config.node.down.loss = options->loss;
    config.node.down.duplicate = options->duplicate;
    config.node.down.reorder = options->reorder;
    config.node.down.reorder_delay_max_ns = 2 * options->delay_ns;
    config.endpoint = options->endpoint;
    config.endpoint.peer_count_max = problem->ranks;
    config.endpoint.reassembly_count_max += 2 * problem->ranks;
    config.memory_bytes = 0;
    config.switches = options->switches > 1 ? options->switches : problem->cluster_count;
    config.switch_of = problem->cluster_of;
    config.owner = world;
    config.turn = turn;
    trunk_fill(options, &config);
    int status = sim_hosts_create(&world->hosts, &config, error, sizeof(error));
    return status < 0 ? plan_puts_fail(world, "%s: %s", error, cw_status_text(status)) : 0;
}

/* ---- Ranks ---- */

static int regions_create(struct plan_puts_rank *rank)
{
    const struct plan_rank_buffers *buffers = &rank->world->buffers.ranks[rank->rank];
    int status = CW_OK;
    rank->endpoint = rank->world->hosts.list[rank->rank].endpoint;
    const struct cw_compression compression = {.mode = rank->world->options->compression};
    status = cw_endpoint_compress(rank->endpoint, &compression);
    for (uint32_t i = CW_BUFFER_SEND; i <= CW_BUFFER_SCRATCH && status == CW_OK; i++) {
        uint32_t rights = i == CW_BUFFER_SEND ? CW_REGION_LOCAL : CW_REGION_WRITE;
        if (buffers->bytes[i] > 0) {
            status = cw_region_register(rank->endpoint, buffers->at[i], buffers->bytes[i], rights, &rank->tokens[i]);
        }
    }
    return status == CW_OK ? 0 : plan_puts_fail(rank->world, "rank %u: region: %s", rank->rank, cw_status_text(status));
}

/* The share of the link between two clusters that a rank may take: as many send at the same time as the plan
 * promises. */
static uint64_t wan_share_bps(const struct plan_puts *world, uint32_t cluster)
{
    const struct cw_problem *problem = world->plan->problem;
    uint32_t members = problem->cluster_first[cluster + 1] - problem->cluster_first[cluster];
    uint32_t promised = world->plan->schedules[0].promise.wan_senders;
    uint32_t senders = promised > 0 && promised < members ? promised : members;
    uint64_t share_bps = world->options->wan_rate_bps / senders;
    return share_bps < world->options->rate_bps ? share_bps : world->options->rate_bps;
}

/* A peer in another cluster: a shaper for each such cluster. */
static int peer_across(struct plan_puts_rank *rank, uint32_t other)
{
    const struct plan_puts *world = rank->world;
    const struct cw_problem *problem = world->plan->problem;
    uint32_t own = cw_problem_cluster(problem, rank->rank);
    uint32_t cluster = cw_problem_cluster(problem, other);
    enum plan_puts_wan wan = world->options->wan;
    if (own == cluster || wan == PLAN_PUTS_WAN_LAN || world->options->switches > 1) {
        return CW_OK;
    }
    struct cw_traffic traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = CW_SHAPER_NONE};
    if (wan != PLAN_PUTS_WAN_FOUND) {
        traffic.control = CW_TRAFFIC_RATE;
        traffic.rate_bps = wan == PLAN_PUTS_WAN_FREE ? CW_RATE_MAX_BPS : wan_share_bps(world, own);
    }
    if (wan == PLAN_PUTS_WAN_KNOWN) {
        traffic.shaper = cluster % CW_SHAPERS_MAX;
        (void)cw_shaper_set(rank->endpoint, traffic.shaper, traffic.rate_bps, 0);
    }
    return cw_peer_traffic(rank->endpoint, rank->peers[other].peer, &traffic);
}

static int peer_create(struct plan_puts_rank *rank, uint32_t other)
{
    const struct plan_puts_rank *there = &rank->world->ranks[other];
    struct cw_puts_peer *peer = &rank->peers[other];
    peer->peer = sim_hosts_peer(&rank->world->hosts, rank->rank, other);
    peer->places[CW_BUFFER_RECEIVE].token = there->tokens[CW_BUFFER_RECEIVE];
    peer->places[CW_BUFFER_SCRATCH].token = there->tokens[CW_BUFFER_SCRATCH];
    rank->peer_count++;
    return peer->peer != UINT32_MAX ? peer_across(rank, other) : CW_ERROR_LIMIT;
}

/* What a rank has to know of the others that its schedule names: at a thousand ranks most of them name few. */
static int peers_create(struct plan_puts_rank *rank)
{
    struct plan_puts *world = rank->world;
    uint32_t ranks = world->plan->problem->ranks;
    bool *named = calloc(ranks, sizeof(*named));
    rank->peers = calloc(ranks, sizeof(*rank->peers));
    int status = CW_ERROR_MEMORY;
    if (named != NULL && rank->peers != NULL) {
        status = cw_puts_transport_named(&world->plan->schedules[rank->rank], ranks, named);
    }
    for (uint32_t i = 0; i < ranks && status == CW_OK; i++) {
        status = named[i] && i != rank->rank ? peer_create(rank, i) : CW_OK;
    }
    free(named);
    return status == CW_OK
               ? 0
               : plan_puts_fail(world, "rank %u: peers cannot be added: %s", rank->rank, cw_status_text(status));
}

static void reduce(void *context, void *to, const void *left, const void *right, uint64_t count)
{
    const struct cw_problem *problem = context;
    plan_combine(problem->ordered, to, left, right, count * problem->element_bytes);
}

static int execution_create(struct plan_puts_rank *rank)
{
    struct plan_puts *world = rank->world;
    const struct plan_puts_options *options = world->options;
    const struct plan_rank_buffers *buffers = &world->buffers.ranks[rank->rank];
    char error[200];
    struct cw_puts_transport_request transport = {
        .endpoint = rank->endpoint,
        .schedule = &world->plan->schedules[rank->rank],
        .ranks = world->plan->problem->ranks,
        .peers = rank->peers,
        .lane = PLAN_PUTS_LANE,
        .slot_bytes = options->endpoint.pool_slot_bytes,
        .slots_kept_max = options->slots_kept_max,
        .put_count_max = options->put_count_max,
    };
    for (uint32_t i = CW_BUFFER_SEND; i <= CW_BUFFER_SCRATCH; i++) {
        transport.buffers[i] = buffers->at[i];
        transport.buffer_bytes[i] = buffers->bytes[i];
        transport.regions[i] = rank->tokens[i];
    }
    int status = cw_puts_transport_create(&transport, &rank->transport, error, sizeof(error));
    if (status != CW_OK) {
        return plan_puts_fail(world, "%s", error);
    }
    struct cw_execution_request execution = {
        .schedule = transport.schedule,
        .ranks = transport.ranks,
        .element_bytes = world->plan->problem->element_bytes,
        .transport = cw_puts_transport_interface(rank->transport),
        .reduce = reduce,
        .reduce_context = world->plan->problem,
    };
    memcpy(execution.buffers, buffers->at, sizeof(execution.buffers));
    status = cw_execution_create(&execution, &rank->execution);
    return status == CW_OK ? 0 : plan_puts_fail(world, "rank %u: execution: %s", rank->rank, cw_status_text(status));
}

/* ---- All of it ---- */

static int buffers_create(struct plan_puts *world)
{
    char error[200];
    uint32_t runs = world->options->runs;
    world->truth_count = runs < PLAN_PUTS_TRUTHS ? runs : PLAN_PUTS_TRUTHS;
    for (uint32_t i = 0; i < world->truth_count; i++) {
        uint64_t salt = cw_random_derive(world->options->seed, i + 1);
        if (plan_truth_create(&world->truths[i], world->plan, salt, world->options->smooth, error, sizeof(error)) !=
            0) {
            return plan_puts_fail(world, "%s", error);
        }
    }
    if (plan_buffers_create(&world->buffers, world->plan, error, sizeof(error)) != 0) {
        return plan_puts_fail(world, "%s", error);
    }
    return 0;
}

int plan_puts_world_create(struct plan_puts *world, sim_turn turn)
{
    uint32_t ranks = world->plan->problem->ranks;
    cw_random_seed(&world->random, cw_random_derive(world->options->seed, 0));
    if (world->options->slots_kept_max >= world->options->endpoint.pool_slot_count) {
        return plan_puts_fail(world, "all %u slots may be kept by messages that come early: fewer are wanted",
                              world->options->endpoint.pool_slot_count);
    }
    world->ranks = calloc(ranks, sizeof(*world->ranks));
    if (world->ranks == NULL) {
        return plan_puts_fail(world, "no memory for %u ranks", ranks);
    }
    int result = buffers_create(world);
    result = result == 0 ? hosts_create(world, turn) : result;
    for (uint32_t i = 0; i < ranks && result == 0; i++) {
        world->ranks[i] = (struct plan_puts_rank){.world = world, .rank = i};
        result = regions_create(&world->ranks[i]);
    }
    for (uint32_t i = 0; i < ranks && result == 0; i++) {
        result = peers_create(&world->ranks[i]);
        result = result == 0 ? execution_create(&world->ranks[i]) : result;
    }
    return result;
}

static void rank_dispose(struct plan_puts_rank *rank)
{
    cw_execution_destroy(rank->execution);
    cw_puts_transport_destroy(rank->transport);
    free(rank->peers);
    rank->execution = NULL;
    rank->transport = NULL;
    rank->endpoint = NULL;
    rank->peers = NULL;
}

void plan_puts_crash(struct plan_puts_rank *rank)
{
    if (rank->state == PLAN_PUTS_RUNNING || rank->state == PLAN_PUTS_AWAY) {
        rank->state = PLAN_PUTS_CRASHED;
        rank_dispose(rank);
        sim_hosts_crash(&rank->world->hosts, rank->rank);
    }
}

void plan_puts_world_dispose(struct plan_puts *world)
{
    for (uint32_t i = 0; world->ranks != NULL && i < world->plan->problem->ranks; i++) {
        rank_dispose(&world->ranks[i]);
    }
    sim_hosts_destroy(&world->hosts);
    free(world->ranks);
    plan_buffers_dispose(&world->buffers);
    for (uint32_t i = 0; i < world->truth_count; i++) {
        plan_truth_dispose(&world->truths[i]);
    }
}
