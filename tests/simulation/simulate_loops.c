/* Processes with four endpoints each (loop/set.h): lanes are dealt among these, regions have the same token in all.
 * Random puts, messages and gets under random faults, CW_TEST_SEEDS (300) of them: each put and message arrives once,
 * unaltered and in the order of its lane, gets bring what is there, and a token that was withdrawn is withdrawn at
 * every endpoint. */
#include "tests/simulation/simulation.h"

enum {
    SEEDS = 300,
    PROCESSES = 3,
    LOOPS = 4,
    LANES = 6,
    OPERATIONS = 25, /* of each lane to each other process, in each of: */
    PHASES = 2,
    SLOTS = 3, /* of a lane's, in the memory of its target: as many puts are under way */
    SLOT_BYTES = 12000,
    SOURCES_BYTES = PROCESSES * LANES * SLOTS * SLOT_BYTES,
    SHOWN_BYTES = 50000, /* what others get from */
    MEMORY_BYTES = SOURCES_BYTES + SHOWN_BYTES,
    GETS = 40, /* of each process, in each phase */
};

#define TIME_MAX (20000 * SIMULATION_MS)

/* What goes from one process to another on one lane. */
struct lane {
    uint32_t posted, completed, arrived;
    uint8_t bytes[SLOTS][SLOT_BYTES];
    bool is_open[SLOTS];
};

struct process {
    uint8_t memory[MEMORY_BYTES];
    uint64_t token, before; /* of the phase, and of the one before */
    struct lane lanes[PROCESSES][LANES];
    uint32_t peers[LOOPS][PROCESSES];
    uint8_t got[SHOWN_BYTES];
    uint64_t got_token;
    uint32_t got_bytes, got_from, gets; /* one at a time */
    bool is_getting;
    uint32_t refused;
};

struct world {
    struct sim_hosts hosts;
    struct process list[PROCESSES];
    uint64_t random;
    uint32_t phase;
    uint64_t seed;
};

enum context { CONTEXT_GET = 1, CONTEXT_REFUSED = 2, CONTEXT_LANES = 3 };

static struct sim_host *host_of(struct world *world, uint32_t process, uint32_t loop)
{
    return &world->hosts.list[process * LOOPS + loop];
}

/* As dataplane/path has it. */
static uint32_t loop_of(uint32_t to, uint32_t lane)
{
    return (to + lane) % LOOPS;
}

static uint8_t byte_of(uint32_t from, uint32_t lane, uint32_t number, uint32_t at)
{
    return (uint8_t)((from * 131 + lane * 31 + number * 7 + at * 5 + (at >> 8)) & 255);
}

static uint32_t bytes_of(uint32_t lane, uint32_t number)
{
    return (lane * 977 + number * 3571) % SLOT_BYTES + 1;
}

static uint64_t place_of(uint32_t from, uint32_t lane, uint32_t slot)
{
    return (((uint64_t)from * LANES + lane) * SLOTS + slot) * SLOT_BYTES;
}

static bool is_message(uint32_t number)
{
    return number % 3 == 1;
}

static void check_bytes(const uint8_t *bytes, uint64_t count, uint32_t from, uint32_t lane, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++) {
        if (bytes[i] != byte_of(from, lane, number, i)) {
            fail_msg("byte %u of operation %u of process %u on lane %u is wrong", i, number, from, lane);
        }
    }
}

static void arrive(struct world *world, uint32_t to, uint32_t loop, const struct cw_event *event)
{
    uint32_t from = 0, lane = cw_lane(event->lane_tag), number = cw_tag(event->lane_tag);
    struct process *target = &world->list[to];
    while (from == to || target->peers[loop][from] != event->peer) {
        from++;
        assert_true(from < PROCESSES);
    }
    struct lane *sent = &world->list[from].lanes[to][lane];
    assert_int_equal(loop, loop_of(to, lane));
    assert_int_equal(number, sent->arrived++); /* once, in order */
    uint64_t bytes = is_message(number) ? bytes_of(lane, number) % 1000 : bytes_of(lane, number);
    assert_int_equal(event->bytes, bytes);
    if (event->kind == CW_EVENT_MESSAGE) {
        check_bytes(event->data, bytes, from, lane, number);
        assert_int_equal(cw_message_release(host_of(world, to, loop)->endpoint, event->slot), CW_OK);
    } else {
        check_bytes(target->memory + event->offset, bytes, from, lane, number);
    }
}

static void end(struct world *world, uint32_t from, const struct cw_event *event)
{
    struct process *process = &world->list[from];
    if (event->context == CONTEXT_REFUSED) {
        assert_int_equal(event->status, CW_ERROR_REMOTE_ACCESS);
        process->refused++;
        return;
    }
    assert_int_equal(event->status, CW_OK);
    if (event->context == CONTEXT_GET) {
        uint32_t shown = process->got_from;
        check_bytes(process->got, process->got_bytes, shown, LANES, 0);
        process->is_getting = false;
        process->gets++;
        return;
    }
    uint64_t number = event->context - CONTEXT_LANES;
    struct lane *lane = &process->lanes[number / SLOTS / LANES][number / SLOTS % LANES];
    lane->is_open[number % SLOTS] = false;
    lane->completed++;
}

/* The next operation of a lane; false: it has to wait. */
static bool post_one(struct world *world, uint32_t from, uint32_t to, uint32_t lane_number)
{
    struct process *process = &world->list[from];
    struct lane *lane = &process->lanes[to][lane_number];
    uint32_t number = lane->posted, slot = number % SLOTS, loop = loop_of(to, lane_number);
    if (lane->is_open[slot] || number >= (world->phase + 1) * OPERATIONS) {
        return false;
    }
    uint32_t bytes = is_message(number) ? bytes_of(lane_number, number) % 1000 : bytes_of(lane_number, number);
    for (uint32_t i = 0; i < bytes; i++) {
        lane->bytes[slot][i] = byte_of(from, lane_number, number, i);
    }
    struct cw_put put = {.peer = process->peers[loop][to],
                         .lane_tag = cw_lane_tag(lane_number, number),
                         .region = world->list[to].token,
                         .offset = place_of(from, lane_number, slot),
                         .source = {.contiguous = {.data = lane->bytes[slot], .bytes = bytes}},
                         .context = CONTEXT_LANES + ((uint64_t)to * LANES + lane_number) * SLOTS + slot,
                         .flags = CW_SIGNAL};
    struct cw_message message = {
        .peer = put.peer, .lane_tag = put.lane_tag, .source = put.source, .context = put.context, .flags = CW_SIGNAL};
    struct cw_endpoint *endpoint = host_of(world, from, loop)->endpoint;
    int status = is_message(number) ? cw_message_send(endpoint, &message) : cw_put(endpoint, &put);
    if (status == CW_ERROR_AGAIN) {
        return false;
    }
    assert_int_equal(status, CW_OK);
    lane->is_open[slot] = true;
    lane->posted++;
    return true;
}

/* By whichever endpoint: nothing orders gets. */
static void get_one(struct world *world, uint32_t from, uint32_t loop)
{
    struct process *process = &world->list[from];
    uint32_t to = (from + 1 + (uint32_t)simulation_drawn(&world->random, PROCESSES - 1)) % PROCESSES;
    uint32_t bytes = 1 + (uint32_t)simulation_drawn(&world->random, SHOWN_BYTES);
    if (process->is_getting || process->gets >= (world->phase + 1) * GETS) {
        return;
    }
    struct cw_get get = {.peer = process->peers[loop][to],
                         .region = world->list[to].token,
                         .offset = SOURCES_BYTES,
                         .bytes = bytes,
                         .local_region = process->got_token,
                         .context = CONTEXT_GET};
    int status = cw_get(host_of(world, from, loop)->endpoint, &get);
    assert_true(status == CW_OK || status == CW_ERROR_AGAIN);
    process->is_getting = status == CW_OK;
    process->got_from = to;
    process->got_bytes = bytes;
}

static void work(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct world *world = context;
    uint32_t process = host->node / LOOPS, loop = host->node % LOOPS;
    struct cw_event event;
    while (cw_endpoint_events(host->endpoint, &event, 1) == 1) {
        if (event.kind == CW_EVENT_PUT || event.kind == CW_EVENT_MESSAGE) {
            arrive(world, process, loop, &event);
        } else if (event.kind == CW_EVENT_COMPLETE || event.kind == CW_EVENT_GET) {
            end(world, process, &event);
        } else {
            assert_int_equal(event.kind, CW_EVENT_PEER_UP);
        }
    }
    for (uint32_t to = 0; to < PROCESSES; to++) {
        for (uint32_t lane = 0; lane < LANES && to != process; lane++) {
            while (loop_of(to, lane) == loop && post_one(world, process, to, lane)) {
            }
        }
    }
    get_one(world, process, loop);
}

static bool is_done(const struct world *world)
{
    bool done = true;
    for (uint32_t from = 0; from < PROCESSES; from++) {
        done = done && world->list[from].gets == (world->phase + 1) * GETS;
        for (uint32_t to = 0; to < PROCESSES; to++) {
            for (uint32_t lane = 0; lane < LANES && to != from; lane++) {
                const struct lane *at = &world->list[from].lanes[to][lane];
                done = done && at->arrived == (world->phase + 1) * OPERATIONS && at->completed == at->arrived;
            }
        }
    }
    return done;
}

/* What the first endpoint gives is taken on by the others. */
static uint64_t register_everywhere(struct world *world, uint32_t process, uint8_t *base, uint64_t bytes,
                                    uint32_t rights)
{
    uint64_t token;
    assert_int_equal(cw_region_register(host_of(world, process, 0)->endpoint, base, bytes, rights, &token), CW_OK);
    for (uint32_t loop = 1; loop < LOOPS; loop++) {
        struct cw_endpoint *endpoint = host_of(world, process, loop)->endpoint;
        assert_int_equal(cw_region_register_as(endpoint, base, bytes, rights, token), CW_OK);
        assert_int_equal(cw_region_register_as(endpoint, base, bytes, rights, token), CW_ERROR_BUSY);
    }
    return token;
}

static void deregister_everywhere(struct world *world, uint32_t process, uint64_t token)
{
    for (uint32_t loop = LOOPS; loop-- > 0;) {
        assert_int_equal(cw_region_deregister(host_of(world, process, loop)->endpoint, token), CW_OK);
    }
}

static void world_open(struct world *world, uint64_t seed)
{
    struct sim_hosts_config config;
    sim_hosts_config_init(&config, PROCESSES * LOOPS);
    memset(world, 0, sizeof(*world));
    world->random = world->seed = seed;
    config.seed = seed;
    config.memory_bytes = 0;
    struct cw_link_config *links[] = {&config.node.up, &config.node.down};
    for (uint32_t i = 0; i < 2; i++) {
        links[i]->loss = (double)simulation_drawn(&world->random, 30) / 1000;
        links[i]->duplicate = (double)simulation_drawn(&world->random, 20) / 1000;
        links[i]->corrupt = (double)simulation_drawn(&world->random, 10) / 1000;
        links[i]->reorder = (double)simulation_drawn(&world->random, 100) / 1000;
        links[i]->reorder_delay_max_ns = 300 * SIMULATION_US;
    }
    config.endpoint.failure_timeout_ns = 5000 * SIMULATION_MS;
    simulation_hosts(&world->hosts, &config);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        struct process *process = &world->list[i];
        for (uint32_t at = 0; at < SHOWN_BYTES; at++) {
            process->memory[SOURCES_BYTES + at] = byte_of(i, LANES, 0, at);
        }
        process->got_token = register_everywhere(world, i, process->got, SHOWN_BYTES, CW_REGION_LOCAL);
        for (uint32_t loop = 0; loop < LOOPS; loop++) {
            for (uint32_t other = 0; other < PROCESSES; other++) {
                if (other != i) {
                    process->peers[loop][other] = sim_hosts_peer(&world->hosts, i * LOOPS + loop, other * LOOPS + loop);
                }
            }
            host_of(world, i, loop)->holds_events = true;
        }
    }
}

/* With the token of the phase before: by every endpoint to every process. */
static void put_to_what_is_gone(struct world *world)
{
    static const uint8_t wrong[64] = {0xbb};
    for (uint32_t from = 0; from < PROCESSES; from++) {
        for (uint32_t at = 0; at < LOOPS * PROCESSES; at++) {
            uint32_t to = at % PROCESSES, loop = at / PROCESSES;
            const struct cw_put put = {.peer = world->list[from].peers[loop][to],
                                       .lane_tag = cw_lane_tag(LANES, 0),
                                       .region = world->list[to].before,
                                       .source = {.contiguous = {.data = wrong, .bytes = sizeof(wrong)}},
                                       .context = CONTEXT_REFUSED,
                                       .flags = CW_SIGNAL};
            if (to != from) {
                assert_int_equal(cw_put(host_of(world, from, loop)->endpoint, &put), CW_OK);
            }
        }
    }
}

static void run_seed(struct world *world, uint64_t seed)
{
    world_open(world, seed);
    for (world->phase = 0; world->phase < PHASES; world->phase++) {
        for (uint32_t i = 0; i < PROCESSES; i++) {
            struct process *process = &world->list[i];
            process->before = process->token;
            process->token =
                register_everywhere(world, i, process->memory, MEMORY_BYTES, CW_REGION_WRITE | CW_REGION_READ);
        }
        if (world->phase > 0) {
            put_to_what_is_gone(world);
        }
        for (uint32_t i = 0; i < PROCESSES * LOOPS; i++) {
            sim_host_begin(&world->hosts.list[i], work, world);
        }
        uint64_t until_ns = sim_hosts_now(&world->hosts) + TIME_MAX;
        while (!is_done(world) && sim_hosts_now(&world->hosts) < until_ns) {
            sim_hosts_run(&world->hosts, 10 * SIMULATION_MS);
        }
        assert_true(is_done(world));
        sim_hosts_run(&world->hosts, 100 * SIMULATION_MS); /* nothing arrives twice */
        assert_true(is_done(world));
        for (uint32_t i = 0; i < PROCESSES; i++) {
            assert_int_equal(world->list[i].refused, world->phase * LOOPS * (PROCESSES - 1));
            deregister_everywhere(world, i, world->list[i].token);
        }
    }
    sim_hosts_destroy(&world->hosts);
}

static void test_every_seed_keeps_the_promises(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    struct world *world = malloc(sizeof(*world));
    assert_non_null(world);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        run_seed(world, seed);
    }
    free(world);
}

int main(void)
{
    return TESTS_RUN(test_every_seed_keeps_the_promises);
}
