#include "tests/simulation/world/world.h"

#include <errno.h>

#include "dataplane/port/port.h"
#include "tests/simulation/world/world_state.h"
#include "tests/test.h"

enum { CHECKS = 12 /* of all memory during the first phase */ };

#define STEP_NS  20000000ull    /* of the second phase */
#define LIMIT_NS 20000000000ull /* by then everything must have come to rest */

void world_fail(struct world *world, const char *format, ...)
{
    if (world->failed) {
        return;
    }
    world->failed = world->report->failed = true;
    char *text = world->report->failure;
    size_t text_bytes = sizeof(world->report->failure);
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(text, text_bytes, format, arguments);
    va_end(arguments);
    if (used > 0 && (size_t)used < text_bytes) {
        snprintf(text + used, text_bytes - (size_t)used, ", at %.6f ms", (double)sim_hosts_now(&world->hosts) / 1e6);
    }
    world_trace(world, "%s", text);
}

void world_trace(struct world *world, const char *format, ...)
{
    if (!world->options->verbose) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%12.6f ms  ", (double)sim_hosts_now(&world->hosts) / 1e6);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

/* ---- building ---- */

static int build(struct world *world)
{
    const struct world_plan *plan = &world->plan;
    char error[200];
    world->operation_count_max = plan->operations + plan->nodes;
    world->operations = calloc(world->operation_count_max, sizeof(*world->operations));
    if (world->operations == NULL) {
        return CW_ERROR_MEMORY;
    }
    struct sim_hosts_config config = sim_hosts_config_of(plan->nodes);
    config.seed = world->options->seed;
    config.mtu_bytes = plan->mtu_bytes;
    config.node = plan->node;
    config.endpoint = plan->endpoint;
    config.ip_first = cw_ip_v4(WORLD_IPV4);
    if (world->options->ipv6) { /* fd77::a64:1 */
        memset(config.ip_first.bytes, 0, 12);
        config.ip_first.bytes[0] = 0xfd;
        config.ip_first.bytes[1] = 0x77;
    }
    config.memory_bytes = 0;
    config.switches = plan->clusters;
    config.is_mesh = true;
    config.trunk = plan->trunk;
    config.packet_count_max = 32768;
    config.turn_ns = 200;
    config.owner = world;
    config.prepare = world_process_prepare;
    config.turn = world_process_turn;
    config.verbs = world->options->rdma ? &plan->verbs : NULL;
    config.verbs_count = plan->verbs_count;
    int status = sim_hosts_create(&world->hosts, &config, error, sizeof(error));
    for (uint32_t node = 0; node < plan->nodes && status == CW_OK; node++) {
        world->processes[node].quota = plan->operations / plan->nodes;
        status = world_process_start(&world->processes[node]);
    }
    return status;
}

static void dispose(struct world *world)
{
    sim_hosts_destroy(&world->hosts);
    for (uint32_t node = 0; node < world->plan.nodes; node++) {
        for (uint32_t kind = 0; kind < WORLD_REGION_KINDS; kind++) {
            world_region_destroy(&world->processes[node].regions[kind]);
        }
    }
    world_ledger_dispose(world);
}

/* ---- the second phase ---- */

/* Activity at an endpoint, as text; NULL: none. */
static const char *unrest(const struct world_process *process)
{
    const struct world *world = process->world;
    for (uint32_t peer = 0; peer + 1 < world->plan.nodes; peer++) {
        struct cw_peer_info info;
        if (cw_peer_query(process->endpoint, peer, &info) != CW_OK) {
            continue;
        }
        if (info.operations_open > 0) {
            return "has operations open";
        }
        if (info.packets_unacknowledged > 0) {
            return "has packets in flight";
        }
        /* half of a connection whose other half has failed keeps what it knows until that one connects again */
        bool excused =
            process->excused || world->processes[sim_hosts_node(&world->hosts.config, &info.address.ip)].excused;
        if (info.bytes_active > 0 && !excused) {
            return "lends memory to a peer";
        }
    }
    return cw_endpoint_deadline(process->endpoint) == UINT64_MAX ? NULL : "has a timer running";
}

static void finish(struct world *world)
{
    uint64_t start_ns = sim_hosts_now(&world->hosts);
    uint32_t restless = 0;
    const char *what = NULL;
    for (uint64_t now_ns = start_ns; now_ns < start_ns + LIMIT_NS && !world->failed; now_ns += STEP_NS) {
        cw_simulator_run_until(world->hosts.simulator, now_ns + STEP_NS);
        what = NULL;
        for (uint32_t node = 0; node < world->plan.nodes && what == NULL && !world->failed; node++) {
            what = unrest(&world->processes[node]);
            restless = node;
        }
        if (what == NULL) {
            return;
        }
    }
    if (what != NULL) {
        /* the ledger can name an operation that hangs */
        world_ledger_finish(world);
        world_fail(world, "node %u %s, %.0f s after all was healed", restless, what, (double)LIMIT_NS / 1e9);
    }
}

/* The state of all nodes, for the analysis of a failure. */
static void trace_state(struct world *world)
{
    for (uint32_t node = 0; node < world->plan.nodes; node++) {
        const struct world_process *process = &world->processes[node];
        for (uint32_t peer = 0; process->alive && peer + 1 < world->plan.nodes; peer++) {
            struct cw_peer_info info;
            if (cw_peer_query(process->endpoint, peer, &info) == CW_OK) {
                world_trace(
                    world,
                    "node %u: to node %u: state %d, %u open, %llu unacknowledged, window %llu, credit %u, lent %llu",
                    node, sim_hosts_node(&world->hosts.config, &info.address.ip), info.state, info.operations_open,
                    (unsigned long long)info.packets_unacknowledged, (unsigned long long)info.congestion_window_bytes,
                    info.credit, (unsigned long long)info.bytes_active);
            }
        }
        for (int counter = 0; process->alive && counter < CW_COUNTER_COUNT; counter++) {
            uint64_t value = cw_endpoint_counter(process->endpoint, (enum cw_counter)counter);
            if (value > 0) {
                world_trace(world, "node %u: %s %llu", node, cw_counter_name((enum cw_counter)counter),
                            (unsigned long long)value);
            }
        }
    }
}

/* ---- the run ---- */

static void run(struct world *world)
{
    world_faults_schedule(world);
    for (uint64_t i = 1; i <= CHECKS && !world->failed; i++) {
        cw_simulator_run_until(world->hosts.simulator, world->plan.phase_ns * i / CHECKS);
        world_ledger_verify(world);
    }
    if (!world->failed) {
        world_trace(world, "all is healed");
        world_faults_heal(world);
        finish(world);
    }
    if (!world->failed) {
        world_ledger_finish(world);
    }
}

static void summarise(struct world *world)
{
    struct sim_world_report *report = world->report;
    if (world->hosts.verbs != NULL) {
        const struct cw_verbs_net_counters *counters = cw_verbs_net_counters(world->hosts.verbs);
        report->rdma_work = counters->work;
        if (counters->wrong > 0) {
            world_fail(world, "%llu work requests have memory that is not registered",
                       (unsigned long long)counters->wrong);
        }
    }
    report->hash = cw_simulator_hash(world->hosts.simulator);
    report->virtual_ns = sim_hosts_now(&world->hosts);
    report->packets = cw_simulator_counters(world->hosts.simulator)->packet_events;
    for (uint32_t node = 0; node < world->plan.nodes; node++) {
        if (world->processes[node].alive) {
            const struct cw_endpoint *endpoint = world->processes[node].endpoint;
            report->retransmitted += cw_endpoint_counter(endpoint, CW_COUNTER_RETRANSMITTED);
            report->summed += cw_endpoint_counter(endpoint, CW_COUNTER_SUMMED_IN);
            report->trials += cw_endpoint_counter(endpoint, CW_COUNTER_TRIALS_OUT);
            report->lies += cw_endpoint_counter(endpoint, CW_COUNTER_CHECKSUM_LIES);
            report->chunks += cw_endpoint_counter(endpoint, CW_COUNTER_CHUNKS_IN);
            if (cw_endpoint_counter(endpoint, CW_COUNTER_DROP_CHUNK) > 0) {
                world_fail(world, "node %u: a chunk that its codec has made does not expand", node);
            }
            report->rdma_up += cw_endpoint_counter(endpoint, CW_COUNTER_RDMA_UP);
            report->rdma_broken += cw_endpoint_counter(endpoint, CW_COUNTER_RDMA_BROKEN);
            report->rdma_given_up += cw_endpoint_counter(endpoint, CW_COUNTER_RDMA_GIVEN_UP);
        }
        const struct cw_simulator_node_counters *nic = cw_simulator_node_counters(world->hosts.simulator, node);
        report->upsets += nic->upset;
        report->doubts += nic->doubts;
    }
}

int sim_world_run(const struct sim_world_options *options, struct sim_world_report *report)
{
    *report = (struct sim_world_report){0};
    struct world *world = calloc(1, sizeof(*world));
    if (world == NULL) {
        return CW_ERROR_MEMORY;
    }
    world->options = options;
    world->report = report;
    cw_random_seed(&world->random, cw_random_derive(options->seed, 0));
    world_plan_draw(world);
    world_plan_describe(world, report->plan, sizeof(report->plan));
    int status = build(world);
    if (status == CW_OK) {
        run(world);
        if (world->failed) {
            trace_state(world);
        }
        summarise(world);
    }
    dispose(world);
    free(world);
    return status;
}

void sim_world_check(struct sim_world_options *options, struct sim_world_report *report)
{
    unsigned long long seed = options->seed;
    options->verbose = test_count("CW_TEST_VERBOSE", 0) != 0 && test_count("CW_TEST_SEED", seed) == seed;
    assert_int_equal(sim_world_run(options, report), CW_OK);
    if (options->verbose) {
        fprintf(stderr,
                "%s, seed %llu: %s; %s; posted %llu, notified %llu, refused %llu, severed %llu, %llu packets, hash "
                "%016llx\n",
                options->kind, seed, report->failed ? "FAILED" : "ok", report->plan, (unsigned long long)report->posted,
                (unsigned long long)report->notified, (unsigned long long)report->refused,
                (unsigned long long)report->severed, (unsigned long long)report->packets,
                (unsigned long long)report->hash);
    }
    if (report->failed) {
        fail_msg("world %s, seed %llu: %s (%s); replay: CW_TEST_SEED=%llu CW_TEST_VERBOSE=1 %s", options->kind, seed,
                 report->failure, report->plan, seed, program_invocation_name);
    }
}

void sim_world_report_add(struct sim_world_report *sum, const struct sim_world_report *report)
{
    uint64_t *to = &sum->summed;
    const uint64_t *from = &report->summed;
    for (size_t i = 0; i < (sizeof(*sum) - offsetof(struct sim_world_report, summed)) / sizeof(*to); i++) {
        to[i] += from[i];
    }
}
