/* Faults of the simulated world, and their times. */
#include "dataplane/port/port.h"
#include "tests/simulation/world/world_state.h"

static void process_excuse(struct world *world, uint32_t node, uint64_t length_ns)
{
    /* much less than the bound leaves time for an answer; from then on peers may give it up */
    if (length_ns >= world->plan.endpoint.failure_timeout_ns / 2) {
        world->processes[node].excused = true;
    }
}

static void trunk_cut(struct world *world, uint32_t trunk, bool cut)
{
    for (uint32_t direction = 0; direction < 2; direction++) {
        cw_simulator_link_trunk(world->hosts.simulator, trunk, direction)->down = cut;
    }
}

static void fault_begin(void *context)
{
    struct world_fault *fault = context;
    struct world *world = fault->world;
    struct world_process *process = &world->processes[fault->kind == WORLD_TRUNK_CUT ? 0 : fault->subject];
    if (world->failed || world->healed) {
        return;
    }
    world_trace(world, "fault %d begins: %u", fault->kind, fault->subject);
    switch (fault->kind) {
    case WORLD_TRUNK_CUT:
        for (uint32_t node = 0; node < world->plan.nodes; node++) {
            process_excuse(world, node, fault->length_ns);
        }
        trunk_cut(world, fault->subject, true);
        break;
    case WORLD_PARTITION:
        process_excuse(world, process->node, fault->length_ns);
        process->cut++;
        cw_simulator_partition(world->hosts.simulator, process->node, true);
        break;
    case WORLD_DEVICE_CUT:
        cw_verbs_net_cut(world->hosts.verbs, fault->subject, true);
        break;
    case WORLD_DEVICE_FAIL:
        cw_verbs_net_fail(world->hosts.verbs, fault->subject);
        break;
    case WORLD_STOP:
        process_excuse(world, process->node, fault->length_ns);
        process->stopped++;
        cw_simulator_stop(world->hosts.simulator, process->node);
        break;
    case WORLD_CRASH:
    case WORLD_CLOSE:
        if (process->alive) {
            process->excused = true;
            world_process_end(process, fault->kind == WORLD_CLOSE);
        }
        break;
    }
}

static void process_restart(struct world_process *process)
{
    struct world *world = process->world;
    char error[200];
    if (process->alive || world->failed) {
        return;
    }
    if (sim_hosts_restart(&world->hosts, process->node, error, sizeof(error)) != CW_OK) {
        world_fail(world, "node %u does not start: %s", process->node, error);
        return;
    }
    (void)world_process_start(process);
}

static void fault_end(void *context)
{
    struct world_fault *fault = context;
    struct world *world = fault->world;
    struct world_process *process = &world->processes[fault->kind == WORLD_TRUNK_CUT ? 0 : fault->subject];
    if (world->failed || world->healed) {
        return;
    }
    world_trace(world, "fault %d ends: %u", fault->kind, fault->subject);
    switch (fault->kind) {
    case WORLD_TRUNK_CUT:
        trunk_cut(world, fault->subject, false);
        break;
    case WORLD_PARTITION:
        if (--process->cut == 0) {
            cw_simulator_partition(world->hosts.simulator, process->node, false);
        }
        break;
    case WORLD_DEVICE_CUT:
        cw_verbs_net_cut(world->hosts.verbs, fault->subject, false);
        break;
    case WORLD_DEVICE_FAIL:
        break; /* until its process ends */
    case WORLD_STOP:
        if (--process->stopped == 0 && process->alive) {
            cw_simulator_resume(world->hosts.simulator, process->node);
        }
        break;
    case WORLD_CRASH:
    case WORLD_CLOSE:
        process_restart(process);
        break;
    }
}

/* One in three lasts longer than the failure bound. */
static uint64_t draw_length(struct world *world)
{
    uint64_t bound_ns = world->plan.endpoint.failure_timeout_ns;
    if (cw_random_chance(&world->random, 0.33)) {
        return bound_ns + bound_ns / 4 + cw_random_below(&world->random, bound_ns);
    }
    return cw_random_between(&world->random, 100000, bound_ns / 15);
}

void world_faults_schedule(struct world *world)
{
    const struct world_plan *plan = &world->plan;
    enum world_fault_kind kinds[WORLD_FAULT_KINDS];
    uint32_t kind_count = 0;
    if (plan->partitions) {
        kinds[kind_count++] = WORLD_PARTITION;
        if (plan->clusters > 1) {
            kinds[kind_count++] = WORLD_TRUNK_CUT;
        }
    }
    if (plan->stops) {
        kinds[kind_count++] = WORLD_STOP;
    }
    if (plan->partitions && world->options->rdma) {
        kinds[kind_count++] = WORLD_DEVICE_CUT;
        kinds[kind_count++] = WORLD_DEVICE_FAIL;
    }
    if (plan->crashes) {
        kinds[kind_count++] = WORLD_CRASH;
        kinds[kind_count++] = WORLD_CLOSE;
    }
    if (kind_count == 0) {
        return;
    }
    uint32_t count = (uint32_t)cw_random_between(&world->random, 1, 3 + plan->nodes / 2);
    uint32_t trunks = plan->clusters * (plan->clusters - 1) / 2;
    for (uint32_t i = 0; i < count && world->fault_count < WORLD_FAULTS_MAX; i++) {
        struct world_fault *fault = &world->faults[world->fault_count++];
        enum world_fault_kind kind = kinds[cw_random_below(&world->random, kind_count)];
        *fault = (struct world_fault){
            .world = world,
            .kind = kind,
            .subject = (uint32_t)cw_random_below(&world->random, kind == WORLD_TRUNK_CUT ? trunks : plan->nodes),
            .start_ns = cw_random_below(&world->random, plan->phase_ns),
            .length_ns = draw_length(world),
        };
        (void)cw_simulator_at(world->hosts.simulator, fault->start_ns, fault_begin, fault);
        (void)cw_simulator_at(world->hosts.simulator, fault->start_ns + fault->length_ns, fault_end, fault);
    }
}

void world_faults_heal(struct world *world)
{
    const struct world_plan *plan = &world->plan;
    world->healed = true;
    cw_simulator_heal(world->hosts.simulator);
    if (world->hosts.verbs != NULL) {
        cw_verbs_net_heal(world->hosts.verbs);
    }
    for (uint32_t node = 0; node < plan->nodes; node++) {
        struct world_process *process = &world->processes[node];
        if (!process->alive) {
            process_restart(process);
        } else if (process->stopped > 0) {
            cw_simulator_resume(world->hosts.simulator, node);
        }
        process->quota = 0;
        if (process->alive) {
            sim_host_wake(&world->hosts.list[node]);
        }
    }
}
