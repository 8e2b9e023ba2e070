/* One node's process in the simulated world: an application that owns an endpoint, takes its time and changes its
 * mind. */
#include <string.h>

#include "tests/simulation/world/world_state.h"

enum {
    LIBRARY_BYTES = 96 << 10,
    DESK_BYTES = 128 << 10,
    STORE_BYTES = 160 << 10,
    MISCHIEF_MIN_NS = 2000000, /* between two changes of mind, on average, or a part of the phase if that is longer */
    MISCHIEF_SHARE = 30,
    AGAIN_NS = 1500000, /* a region stays deregistered so long, on average */
};

static const uint32_t region_rights[WORLD_REGION_KINDS] = {
    [WORLD_INBOX] = CW_REGION_WRITE, [WORLD_FAR] = CW_REGION_WRITE,   [WORLD_LIBRARY] = CW_REGION_READ,
    [WORLD_DESK] = CW_REGION_LOCAL,  [WORLD_STORE] = CW_REGION_LOCAL,
};

/* ---- regions ---- */

void world_region_enter(struct world_process *process, struct world_region *region)
{
    region->generation++;
    if (region->kind == WORLD_LIBRARY) { /* expected by readers of this very registration */
        world_pattern_fill(region->base, world_library_pattern(process, region->generation), region->bytes);
        world_region_accept(region, 0, region->bytes);
    } else if (region->generation == 1) {
        world_region_poison(region);
    }
    int status =
        cw_region_register(process->endpoint, region->base, region->bytes, region_rights[region->kind], &region->token);
    if (status != CW_OK) {
        world_fail(process->world, "node %u: region %d cannot be registered: %s", process->node, region->kind,
                   cw_status_text(status));
    }
    region->registered = status == CW_OK;
}

static void region_leave(struct world_process *process, enum world_region_kind kind, uint64_t now_ns)
{
    struct world_region *region = &process->regions[kind];
    int status = cw_region_deregister(process->endpoint, region->token);
    if (status == CW_ERROR_BUSY && kind == WORLD_LIBRARY) {
        return; /* another operation reads it */
    }
    if (status != CW_OK) {
        world_fail(process->world, "node %u: region %d cannot be deregistered: %s", process->node, kind,
                   cw_status_text(status));
        return;
    }
    world_trace(process->world, "node %u: region %d is deregistered", process->node, kind);
    world_ledger_region_closed(process, kind);
    region->registered = false;
    region->again_ns = now_ns + cw_random_below(&process->random, 2 * AGAIN_NS);
    world_region_poison(region);
    if (kind != WORLD_LIBRARY) {
        status = cw_region_deregister(process->endpoint, region->token);
        if (status != CW_ERROR_NOT_FOUND) {
            world_fail(process->world, "node %u: region %d is deregistered twice: %s", process->node, kind,
                       cw_status_text(status));
        }
    }
}

static bool regions_create(struct world_process *process)
{
    const struct world_plan *plan = &process->world->plan;
    uint64_t inbox = plan->slice_bytes * plan->nodes;
    return world_region_create(&process->regions[WORLD_INBOX], WORLD_INBOX, inbox, plan->nodes) &&
           world_region_create(&process->regions[WORLD_FAR], WORLD_FAR, inbox, plan->nodes) &&
           world_region_create(&process->regions[WORLD_LIBRARY], WORLD_LIBRARY, LIBRARY_BYTES, 1) &&
           world_region_create(&process->regions[WORLD_DESK], WORLD_DESK, DESK_BYTES, 1) &&
           world_region_create(&process->regions[WORLD_STORE], WORLD_STORE, STORE_BYTES, 1);
}

/* ---- life ---- */

static uint64_t mischief_span_ns(const struct world_plan *plan)
{
    uint64_t share_ns = plan->phase_ns / MISCHIEF_SHARE;
    return 2 * (share_ns > MISCHIEF_MIN_NS ? share_ns : MISCHIEF_MIN_NS);
}

static void draw_manners(struct world_process *process, uint64_t now_ns)
{
    const struct world_plan *plan = &process->world->plan;
    bool slow = cw_random_below(&process->random, 100) < plan->slow_percent;
    process->take_delay_max_ns = slow ? cw_random_between(&process->random, 20000, 3000000) : 0;
    process->hold_max_ns = slow ? cw_random_between(&process->random, 10000, 4000000) : 2000;
    process->take_ns = now_ns;
    process->post_ns = now_ns + cw_random_below(&process->random, 300000);
    process->mischief_ns = now_ns + cw_random_below(&process->random, mischief_span_ns(plan));
}

static void add_peers(struct world_process *process)
{
    struct world *world = process->world;
    for (uint32_t node = 0; node < world->plan.nodes; node++) {
        process->peers[node] = WORLD_NONE;
        if (node == process->node) {
            continue;
        }
        struct cw_address address = {.ip = sim_hosts_ip(&world->hosts.config, node), .udp_port = CW_UDP_PORT};
        memcpy(address.mac, cw_simulator_mac(world->hosts.simulator, node), 6);
        if (cw_peer_add(process->endpoint, &address, &process->peers[node]) != CW_OK) {
            world_fail(world, "node %u: peer %u cannot be added", process->node, node);
        }
        bool seals = world->options->encrypt && cw_random_chance(&process->random, 0.3);
        if (seals && cw_peer_encrypt(process->endpoint, process->peers[node], true) != CW_OK) {
            world_fail(world, "node %u: no sealed session with peer %u", process->node, node);
        }
    }
}

/* A NIC of its own for each life, from a generator of its own: worlds without stay unchanged. A NIC that verifies UDP
 * checksums drops what its link has corrupted, as Ethernet does; one bit may change behind that. */
static void draw_nic(struct sim_host *host)
{
    const struct world *world = host->hosts->config.owner;
    struct cw_simulator_nic nic = {.checks_frames = true};
    struct cw_random random;
    cw_random_seed(&random, cw_random_derive(world->options->seed, 0x6e6963ull << 32 | host->lives << 16 | host->node));
    for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
        nic.offloads[i] = (uint8_t)cw_random_below(&random, CW_SIMULATOR_OFFLOAD_LYING_LATER + 1);
    }
    nic.upsets = cw_random_chance(&random, 0.5) ? 0 : cw_random_fraction(&random) * 0.005;
    nic.slow_ns = cw_random_between(&random, 100, 20000);
    cw_port_sim_nic(host->hosts->simulator, host->node, &nic);
}

void world_process_prepare(struct sim_host *host, struct cw_endpoint_config *endpoint)
{
    struct world *world = host->hosts->config.owner;
    struct world_process *process = &world->processes[host->node];
    process->world = world;
    process->node = host->node;
    process->life = host->lives;
    cw_random_seed(&process->random,
                   cw_random_derive(world->options->seed, (uint64_t)process->life << 16 | process->node));
    endpoint->seed = cw_random_next(&process->random);
    endpoint->waiting = (enum cw_waiting)cw_random_below(&process->random, 3);
    if (world->options->offload) {
        draw_nic(host);
    }
    if (world->options->encrypt) {
        endpoint->encryption = cw_random_chance(&process->random, 0.3) ? CW_ENCRYPTION_REQUIRED : CW_ENCRYPTION_ASKED;
    }
}

/* From a generator of its own: worlds without stay unchanged. */
static void draw_compression(struct world_process *process)
{
    struct world *world = process->world;
    struct cw_random random;
    cw_random_seed(&random,
                   cw_random_derive(world->options->seed, 0x636f6d7072ull << 24 | process->life << 16 | process->node));
    struct cw_compression compression = {.mode = CW_COMPRESSION_AUTO};
    compression.mode = cw_random_chance(&random, 0.5) ? CW_COMPRESSION_ON : CW_COMPRESSION_AUTO;
    if (cw_random_chance(&random, 0.6)) {
        compression.codec = (enum cw_codec)cw_random_below(&random, CW_CODECS);
    }
    if (cw_random_chance(&random, 0.5) && cw_endpoint_compress(process->endpoint, &compression) != CW_OK) {
        world_fail(world, "node %u: no memory for compression", process->node);
    }
}

int world_process_start(struct world_process *process)
{
    struct world *world = process->world;
    if (!regions_create(process)) {
        world_fail(world, "node %u does not start: no memory for regions", process->node);
        return CW_ERROR_MEMORY;
    }
    process->endpoint = world->hosts.list[process->node].endpoint;
    process->alive = true;
    if (world->options->compress) {
        draw_compression(process);
    }
    add_peers(process);
    for (uint32_t kind = 0; kind < WORLD_REGION_KINDS; kind++) {
        world_region_enter(process, &process->regions[kind]);
    }
    draw_manners(process, sim_hosts_now(&world->hosts));
    return CW_OK;
}

void world_process_end(struct world_process *process, bool polite)
{
    struct world *world = process->world;
    for (uint32_t kind = 0; kind < WORLD_REGION_KINDS; kind++) {
        if (process->alive && !world->failed) {
            world_region_verify(world, process, &process->regions[kind]);
        }
    }
    if (polite) {
        sim_hosts_close(&world->hosts, process->node);
    } else {
        sim_hosts_crash(&world->hosts, process->node);
    }
    process->endpoint = NULL;
    process->alive = false;
    process->held_count = 0;
    world_ledger_process_closed(process);
    for (uint32_t kind = 0; kind < WORLD_REGION_KINDS; kind++) {
        world_region_destroy(&process->regions[kind]);
    }
}

/* ---- a turn ---- */

static void events_receive(struct world_process *process, uint64_t now_ns)
{
    struct cw_event events[WORLD_TURNED_EVENTS];
    bool slow = process->take_delay_max_ns > 0 && !process->world->healed;
    uint32_t most = slow ? (uint32_t)cw_random_between(&process->random, 1, WORLD_TURNED_EVENTS) : WORLD_TURNED_EVENTS;
    uint32_t count;
    do {
        count = cw_endpoint_events(process->endpoint, events, most);
        for (uint32_t i = 0; i < count && !process->world->failed; i++) {
            world_ledger_event(process, &events[i], now_ns);
        }
    } while (count == most && !slow && !process->world->failed);
    process->take_ns = slow ? now_ns + cw_random_below(&process->random, process->take_delay_max_ns) : now_ns;
}

static void release_held(struct world_process *process, uint64_t now_ns)
{
    for (uint32_t i = 0; i < process->held_count && !process->world->failed;) {
        if (process->held[i].release_ns <= now_ns || process->world->healed) {
            world_ledger_release(process, &process->held[i]);
            process->held[i] = process->held[--process->held_count];
        } else {
            i++;
        }
    }
}

/* Another control of the traffic to a peer, another shaper for it, another rate of that. */
static void traffic_change(struct world_process *process, uint32_t peer)
{
    struct cw_random *random = &process->random;
    struct cw_traffic traffic = {.control = (enum cw_traffic_control)cw_random_below(random, 3),
                                 .shaper = CW_SHAPER_NONE};
    uint64_t rate_bps = cw_random_between(random, 20, 2000) * 1000000;
    if (cw_random_chance(random, 0.5)) {
        traffic.shaper = (uint32_t)cw_random_below(random, 2);
        (void)cw_shaper_set(process->endpoint, traffic.shaper, cw_random_chance(random, 0.2) ? 0 : rate_bps,
                            cw_random_below(random, 2) * CW_CATCH_UP_MAX_NS);
    }
    traffic.rate_bps = traffic.control == CW_TRAFFIC_RATE ? rate_bps : 0;
    (void)cw_peer_traffic(process->endpoint, peer, &traffic);
}

/* Deregisters a region, or changes how a peer is sent to. */
static void mischief(struct world_process *process, uint64_t now_ns)
{
    const struct world_plan *plan = &process->world->plan;
    process->mischief_ns = now_ns + cw_random_below(&process->random, mischief_span_ns(plan));
    uint32_t other = (uint32_t)cw_random_below(&process->random, plan->nodes);
    if (plan->pace && other != process->node && cw_random_chance(&process->random, 0.5)) {
        traffic_change(process, process->peers[other]);
    }
    static const enum world_region_kind kinds[] = {WORLD_INBOX, WORLD_FAR, WORLD_LIBRARY};
    enum world_region_kind kind = kinds[cw_random_below(&process->random, 3)];
    if (plan->deregister && process->regions[kind].registered && cw_random_chance(&process->random, 0.4)) {
        region_leave(process, kind, now_ns);
    }
}

/* Peers that were given up are tried again. */
static void reset_failed(struct world_process *process)
{
    for (uint32_t node = 0; node < process->world->plan.nodes; node++) {
        struct cw_peer_info info;
        if (node != process->node && cw_peer_query(process->endpoint, process->peers[node], &info) == CW_OK &&
            info.state == CW_PEER_FAILED) {
            (void)cw_peer_reset(process->endpoint, process->peers[node]);
        }
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t live(struct world_process *process, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t kind = 0; kind < WORLD_REGION_KINDS; kind++) {
        struct world_region *region = &process->regions[kind];
        if (!region->registered && region->again_ns <= now_ns) {
            world_region_enter(process, region);
        }
        next_ns = region->registered ? next_ns : earlier(next_ns, region->again_ns);
    }
    if (process->mischief_ns <= now_ns) {
        mischief(process, now_ns);
        reset_failed(process);
    }
    if (process->post_ns <= now_ns && process->quota > 0) {
        world_traffic_post(process, now_ns);
    }
    for (uint32_t i = 0; i < process->held_count; i++) {
        next_ns = earlier(next_ns, process->held[i].release_ns);
    }
    next_ns = earlier(next_ns, process->mischief_ns);
    if (process->take_delay_max_ns > 0) {
        next_ns = earlier(next_ns, process->take_ns > now_ns ? process->take_ns : now_ns);
    }
    return process->quota > 0 ? earlier(next_ns, process->post_ns) : next_ns;
}

uint64_t world_process_turn(struct sim_host *host, uint64_t now_ns)
{
    struct world *world = host->hosts->config.owner;
    struct world_process *process = &world->processes[host->node];
    if (world->failed) {
        return UINT64_MAX;
    }
    (void)cw_endpoint_turn(process->endpoint, now_ns);
    if (process->take_ns <= now_ns || world->healed) {
        events_receive(process, now_ns);
    }
    release_held(process, now_ns);
    uint64_t next_ns = world->healed ? UINT64_MAX : live(process, now_ns);
    return earlier(next_ns, cw_endpoint_deadline(process->endpoint));
}
