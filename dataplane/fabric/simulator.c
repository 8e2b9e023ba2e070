#include "dataplane/fabric/simulator.h"

#include <sys/mman.h>

#include "dataplane/fabric/nic_sim.h"
#include "dataplane/fabric/simulator_state.h"

enum { HUGE_PAGE_BYTES = 2 << 20 };

/* ---- life ---- */

void cw_simulator_config_init(struct cw_simulator_config *config)
{
    *config = (struct cw_simulator_config){
        .mtu_bytes = 1500,
        .node_count_max = 1024,
        .bridge_count_max = 64,
        .packet_count_max = 65536,
        .delivery_count_max = 1 << 20,
        .script_count_max = 4096,
        .group_count_max = 256,
        .turn_ns = 100,
    };
}

static bool config_valid(const struct cw_simulator_config *config)
{
    return config->mtu_bytes >= CW_PORT_MTU_MIN && config->mtu_bytes <= CW_PORT_MTU_MAX &&
           config->node_count_max >= 1 && config->node_count_max <= CW_SIMULATOR_NODES_MAX &&
           config->bridge_count_max >= 1 && config->bridge_count_max <= CW_SIMULATOR_BRIDGES_MAX &&
           config->packet_count_max >= 1 && config->delivery_count_max >= 1 && config->script_count_max >= 1 &&
           config->group_count_max >= 1 && config->group_count_max <= CW_BRIDGE_GROUPS_MAX && config->turn_ns >= 1;
}

/* Every pair of bridges could be joined by one trunk; real topologies have far fewer. */
static uint32_t trunk_count_max(uint32_t bridge_count_max)
{
    uint64_t pairs = (uint64_t)bridge_count_max * (bridge_count_max - 1) / 2;

    return pairs < 4096 ? (uint32_t)pairs + 1 : 4096;
}

/* Pages that are only there once they are used; huge pages, since use is scattered. Not malloc: MALLOC_PERTURB_ would
 * write to all of them. NULL: no memory. */
static void *pool_allocate(size_t bytes)
{
    void *pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pool == MAP_FAILED) {
        return NULL;
    }
    madvise(pool, bytes, MADV_HUGEPAGE); /* only a hint: whether it is taken makes no difference but speed */
    return pool;
}

static void pool_free(void *pool, size_t bytes)
{
    if (pool != NULL) {
        munmap(pool, bytes);
    }
}

static size_t packets_bytes(const struct cw_simulator *simulator)
{
    return simulator->packet_bytes * simulator->config.packet_count_max;
}

static size_t deliveries_bytes(const struct cw_simulator *simulator)
{
    return sizeof(*simulator->delivery_records) * simulator->config.delivery_count_max;
}

static bool memory_allocate(struct cw_simulator *simulator)
{
    const struct cw_simulator_config *config = &simulator->config;

    simulator->packet_bytes = (sizeof(struct sim_packet) + 14 + config->mtu_bytes + 63) & ~(size_t)63;
    simulator->packets = pool_allocate(packets_bytes(simulator));
    simulator->delivery_records = pool_allocate(deliveries_bytes(simulator));
    simulator->nodes = calloc(config->node_count_max, sizeof(*simulator->nodes));
    simulator->bridges = calloc(config->bridge_count_max, sizeof(*simulator->bridges));
    simulator->trunk_count_max = trunk_count_max(config->bridge_count_max);
    simulator->trunks = calloc(simulator->trunk_count_max, sizeof(*simulator->trunks));
    simulator->scripts = calloc(config->script_count_max, sizeof(*simulator->scripts));
    simulator->ports = calloc(CW_BRIDGE_PORTS_MAX, sizeof(*simulator->ports));
    return simulator->packets && simulator->delivery_records && simulator->nodes && simulator->bridges &&
           simulator->trunks && simulator->scripts && simulator->ports &&
           cw_heap_init(&simulator->deliveries, config->delivery_count_max) &&
           cw_heap_init(&simulator->timers, config->node_count_max) &&
           cw_heap_init(&simulator->scripted, config->script_count_max);
}

int cw_simulator_create(const struct cw_simulator_config *config, struct cw_simulator **simulator_out)
{
    struct cw_simulator *simulator;

    if (!config_valid(config)) {
        return CW_ERROR_ARGUMENT;
    }
    simulator = calloc(1, sizeof(*simulator));
    if (!simulator) {
        return CW_ERROR_MEMORY;
    }
    simulator->config = *config;
    simulator->hash = config->seed;
    if (!memory_allocate(simulator)) {
        cw_simulator_destroy(simulator);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = config->script_count_max; i-- > 0;) {
        simulator->scripts[i].next = simulator->script_free;
        simulator->script_free = &simulator->scripts[i];
    }
    *simulator_out = simulator;
    return CW_OK;
}

void cw_simulator_destroy(struct cw_simulator *simulator)
{
    if (!simulator) {
        return;
    }
    for (uint32_t i = 0; i < simulator->node_count; i++) {
        sim_host_end(&simulator->nodes[i]);
    }
    for (uint32_t i = 0; i < simulator->node_count; i++) {
        sim_node_dispose(&simulator->nodes[i]);
    }
    for (uint32_t i = 0; i < simulator->bridge_count; i++) {
        cw_bridge_destroy(simulator->bridges[i].bridge);
        free(simulator->bridges[i].wires);
        free(simulator->bridges[i].peers);
    }
    cw_heap_dispose(&simulator->deliveries);
    cw_heap_dispose(&simulator->timers);
    cw_heap_dispose(&simulator->scripted);
    pool_free(simulator->packets, packets_bytes(simulator));
    pool_free(simulator->delivery_records, deliveries_bytes(simulator));
    free(simulator->nodes);
    free(simulator->bridges);
    free(simulator->trunks);
    free(simulator->scripts);
    free(simulator->ports);
    free(simulator);
}

/* ---- turns ---- */

void sim_node_wake(struct sim_node *node, uint64_t time_ns)
{
    struct cw_simulator *simulator = node->simulator;
    struct cw_heap *timers = &simulator->timers;
    struct cw_heap_entry entry = {.object = node, .position = &node->timer_position};

    if (node->state != SIM_NODE_RUNNING || !node->turn) {
        return;
    }
    if (time_ns < node->turn_earliest_ns) {
        time_ns = node->turn_earliest_ns;
    }
    if (time_ns < simulator->now_ns) {
        time_ns = simulator->now_ns;
    }
    entry.time_ns = time_ns;
    if (node->timer_position != CW_HEAP_OUT) {
        if (timers->entries[node->timer_position].time_ns <= time_ns) {
            return;
        }
        entry.sequence = simulator->sequence++;
        cw_heap_up(timers, node->timer_position, &entry, true);
        return;
    }
    entry.sequence = simulator->sequence++;
    cw_heap_push(timers, &entry, true); /* there is room for every node */
}

void sim_node_rest(struct sim_node *node)
{
    if (node->timer_position != CW_HEAP_OUT) {
        cw_heap_remove(&node->simulator->timers, node->timer_position, true);
    }
}

static void node_turn(struct cw_simulator *simulator, struct sim_node *node)
{
    uint64_t deadline_ns;

    node->turn_earliest_ns = simulator->now_ns + simulator->config.turn_ns;
    node->counters.turns++;
    simulator->counters.turns++;
    deadline_ns = node->turn(node->turn_context, simulator->now_ns);
    if (deadline_ns != CW_SIMULATOR_NEVER) {
        sim_node_wake(node, deadline_ns);
    }
    if (node->ring_head != node->ring_tail) {
        sim_node_wake(node, simulator->now_ns);
    }
}

void cw_simulator_attach(struct cw_simulator *simulator, uint32_t node_index, cw_simulator_turn turn, void *context)
{
    struct sim_node *node = &simulator->nodes[node_index];

    assert(node_index < simulator->node_count);
    node->turn = turn;
    node->turn_context = context;
    sim_node_rest(node);
    sim_node_wake(node, simulator->now_ns);
}

void cw_simulator_tap_set(struct cw_simulator *simulator, cw_simulator_tap tap, void *context)
{
    simulator->tap = tap;
    simulator->tap_context = context;
}

/* ---- time ---- */

uint64_t cw_simulator_now(const struct cw_simulator *simulator)
{
    return simulator->now_ns;
}

/* The heap whose first entry is next, NULL: nothing is planned. */
static struct cw_heap *heap_next(struct cw_simulator *simulator)
{
    struct cw_heap *heaps[] = {&simulator->deliveries, &simulator->timers, &simulator->scripted};
    struct cw_heap *next = NULL;

    for (int i = 0; i < 3; i++) {
        if (heaps[i]->count > 0 && (!next || cw_heap_before(&heaps[i]->entries[0], &next->entries[0]))) {
            next = heaps[i];
        }
    }
    return next;
}

static void script_run(struct cw_simulator *simulator, struct sim_script *script)
{
    struct sim_script copy = *script;

    script->next = simulator->script_free;
    simulator->script_free = script;
    copy.callback(copy.context);
}

static void event_run(struct cw_simulator *simulator, struct cw_heap *heap)
{
    assert(heap->entries[0].time_ns >= simulator->now_ns);
    simulator->now_ns = heap->entries[0].time_ns;
    if (heap == &simulator->deliveries) {
        sim_delivery_run(simulator);
    } else if (heap == &simulator->timers) {
        node_turn(simulator, cw_heap_remove(heap, 0, true).object);
    } else {
        script_run(simulator, cw_heap_remove(heap, 0, false).object);
    }
}

bool cw_simulator_step(struct cw_simulator *simulator)
{
    struct cw_heap *next = heap_next(simulator);

    if (next) {
        event_run(simulator, next);
    }
    return next != NULL;
}

uint64_t cw_simulator_next(struct cw_simulator *simulator)
{
    const struct cw_heap *next = heap_next(simulator);
    return next != NULL ? next->entries[0].time_ns : CW_SIMULATOR_NEVER;
}

void cw_simulator_run_until(struct cw_simulator *simulator, uint64_t time_ns)
{
    struct cw_heap *next;

    while ((next = heap_next(simulator)) != NULL && next->entries[0].time_ns <= time_ns) {
        event_run(simulator, next);
    }
    if (time_ns > simulator->now_ns) {
        simulator->now_ns = time_ns;
    }
}

bool cw_simulator_run(struct cw_simulator *simulator, uint64_t limit_ns)
{
    while (cw_simulator_next(simulator) <= limit_ns && cw_simulator_step(simulator)) {
    }
    bool is_over = cw_simulator_next(simulator) == CW_SIMULATOR_NEVER;
    if (!is_over && limit_ns > simulator->now_ns) {
        simulator->now_ns = limit_ns;
    }
    return is_over;
}

int cw_simulator_at(struct cw_simulator *simulator, uint64_t time_ns, void (*callback)(void *context), void *context)
{
    struct sim_script *script = simulator->script_free;
    struct cw_heap_entry entry = {
        .time_ns = time_ns > simulator->now_ns ? time_ns : simulator->now_ns,
        .sequence = simulator->sequence,
        .object = script,
    };

    if (!script) {
        return CW_ERROR_LIMIT;
    }
    simulator->script_free = script->next;
    *script = (struct sim_script){.callback = callback, .context = context};
    simulator->sequence++;
    cw_heap_push(&simulator->scripted, &entry, false); /* there is room for every script */
    return CW_OK;
}

/* ---- faults ---- */

void cw_simulator_partition(struct cw_simulator *simulator, uint32_t node, bool cut)
{
    cw_simulator_link_up(simulator, node)->down = cut;
    cw_simulator_link_down(simulator, node)->down = cut;
    sim_nic_flap(&simulator->nodes[node]);
}

void cw_simulator_stop(struct cw_simulator *simulator, uint32_t node_index)
{
    struct sim_node *node = &simulator->nodes[node_index];

    if (node->state == SIM_NODE_RUNNING) {
        node->state = SIM_NODE_STOPPED;
        sim_node_rest(node);
    }
}

void cw_simulator_resume(struct cw_simulator *simulator, uint32_t node_index)
{
    struct sim_node *node = &simulator->nodes[node_index];

    if (node->state == SIM_NODE_STOPPED) {
        node->state = SIM_NODE_RUNNING;
        sim_node_wake(node, simulator->now_ns); /* it finds out itself what it has missed */
    }
}

void cw_simulator_crash(struct cw_simulator *simulator, uint32_t node_index)
{
    struct sim_node *node = &simulator->nodes[node_index];

    node->state = SIM_NODE_CRASHED;
    sim_host_end(node);
    node->turn = NULL;
    sim_node_rest(node);
    sim_node_ring_clear(node);
}

void cw_simulator_restart(struct cw_simulator *simulator, uint32_t node_index)
{
    struct sim_node *node = &simulator->nodes[node_index];

    if (node->state == SIM_NODE_CRASHED) {
        node->state = SIM_NODE_RUNNING;
    }
}

/* ---- queries ---- */

uint64_t cw_simulator_hash(const struct cw_simulator *simulator)
{
    return simulator->hash;
}

const struct cw_simulator_counters *cw_simulator_counters(const struct cw_simulator *simulator)
{
    return &simulator->counters;
}

const struct cw_simulator_node_counters *cw_simulator_node_counters(const struct cw_simulator *simulator, uint32_t node)
{
    assert(node < simulator->node_count);
    return &simulator->nodes[node].counters;
}
