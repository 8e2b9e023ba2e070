/* A trunk between two clusters that goes down while all send across it, in virtual time. Packets in flight arrive, once
 * and unaltered, when it returns in time. Otherwise each sender is notified within the failure bound and half a second,
 * for a cut of either direction, all operations end, and hosts of a cluster continue among themselves. At rates that
 * are known, and at rates that are probed. CW_TEST_SEEDS (20) / 4 of each. */
#include "tests/simulation/fixture.h"

enum { SEEDS_EACH = 4 /* a second of network for each costs as much as many seeds elsewhere */ };

enum { SIDE = 4, SENDERS = 3, PUTS = 48, PUT_BYTES = 32768, UNDER_WAY = 12 };

#define TRUNK_BPS  100000000ull
#define DELAY_NS   (10 * SIMULATION_MS)
#define FAILURE_NS (2000 * SIMULATION_MS)
#define BOUND_NS   (FAILURE_NS + 500 * SIMULATION_MS)

enum way { WAY_RATE, WAY_BANDWIDTH, WAYS };
static const char *const way_names[WAYS] = {"at a known rate", "at a rate that is found"};

/* Directions of the trunk that go down. */
enum cut { CUT_BOTH, CUT_THERE, CUT_BACK, CUTS };

static struct {
    struct sim_stream senders[SENDERS];
    struct cw_random random;
    uint64_t seed;
    enum way way;
} world;

/* Gets without end, some in flight at a time: a host that waits for answers has, for the most part, no packet of its
 * own to be acknowledged. */
static void work_gets(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct sim_stream *sender = context;
    while (sender->posted - host->got < sender->under_way_max && host->down == 0) {
        uint64_t offset = sender->posted % PUTS * PUT_BYTES;
        struct cw_get get = {
            .peer = sender->peer,
            .region = sender->token,
            .offset = offset,
            .bytes = PUT_BYTES,
            .local_region = host->token,
            .local_offset = offset,
        };
        if (cw_get(host->endpoint, &get) != CW_OK) {
            break;
        }
        sender->posted++;
    }
}

static void sender_start(uint32_t index)
{
    struct sim_stream *sender = &world.senders[index];
    sim_stream_start(&hosts, sender, index, SIDE + index, PUT_BYTES, PUTS);
    sender->under_way_max = UNDER_WAY;
    struct cw_traffic traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = CW_SHAPER_NONE};
    if (world.way == WAY_RATE) {
        traffic = (struct cw_traffic){.control = CW_TRAFFIC_RATE, .shaper = 0, .rate_bps = TRUNK_BPS / SENDERS};
        assert_int_equal(cw_shaper_set(sender->from->endpoint, 0, TRUNK_BPS / SENDERS, 0), CW_OK);
    }
    assert_int_equal(cw_peer_traffic(sender->from->endpoint, sender->peer, &traffic), CW_OK);
    cw_random_fill(&world.random, sender->from->memory, PUTS * PUT_BYTES);
}

static void world_open(enum way way, uint64_t seed)
{
    memset(&world, 0, sizeof(world));
    world.seed = seed;
    world.way = way;
    cw_random_seed(&world.random, cw_random_derive(seed, way));
    struct sim_hosts_config config = sim_hosts_config_of(2 * SIDE);
    config.seed = seed;
    config.memory_bytes = PUTS * PUT_BYTES;
    config.switches = 2;
    config.node.up.rate_bps = config.node.down.rate_bps = 1000000000ull;
    config.trunk = config.node.down;
    config.trunk.rate_bps = TRUNK_BPS;
    config.trunk.delay_ns = DELAY_NS;
    config.trunk.queue_limit_bytes = 512 << 10;
    config.trunk.loss = seed % 3 == 0 ? 0.01 : 0;
    config.endpoint.failure_timeout_ns = FAILURE_NS;
    hosts_make(&config);
    for (uint32_t i = 0; i < SENDERS; i++) {
        sender_start(i);
    }
}

static void trunk_set(enum cut cut, bool down)
{
    cw_simulator_link_trunk(hosts.simulator, 0, 0)->down = down && cut != CUT_BACK;
    cw_simulator_link_trunk(hosts.simulator, 0, 1)->down = down && cut != CUT_THERE;
}

/* Some time while it is used: the hosts have set up, and there is much to send yet. */
static enum cut sever(void)
{
    enum cut cut = (enum cut)cw_random_below(&world.random, CUTS);
    sim_hosts_run(&hosts, cw_random_between(&world.random, 0, 250 * SIMULATION_MS));
    for (uint32_t i = 0; i < SENDERS; i++) {
        assert_true(world.senders[i].from->completed < PUTS);
    }
    trunk_set(cut, true);
    return cut;
}

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fail_msg("%s, seed %llu: %s", way_names[world.way], (unsigned long long)world.seed, #condition); \
        }                                                                                                    \
    } while (0)

/* At the rate of the trunk 4.7 MB take 0.4 s; a flow that was cut while it searched for its rate, at 1 % loss, begins
 * at two frames a round trip. */
static void run_until_done(void)
{
    bool is_done = false;
    for (uint32_t second = 0; second < 20 && !is_done; second++) {
        sim_hosts_run(&hosts, 1000 * SIMULATION_MS);
        is_done = true;
        for (uint32_t i = 0; i < SENDERS; i++) {
            is_done = is_done && world.senders[i].from->completed == PUTS;
        }
    }
}

static void goes_on_when_it_returns(void **state)
{
    struct test_seeds seeds = test_seeds(1, (test_count("CW_TEST_SEEDS", 20) + SEEDS_EACH - 1) / SEEDS_EACH);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        for (enum way way = 0; way < WAYS; way++) {
            world_open(way, seed);
            enum cut cut = sever();
            /* probes are 250 ms apart by then, and three of them may be lost; if nothing is, the first one is enough */
            bool is_late = world.seed % 3 == 1;
            sim_hosts_run(&hosts, is_late ? FAILURE_NS - 350 * SIMULATION_MS
                                          : cw_random_between(&world.random, 1, 1200) * SIMULATION_MS);
            trunk_set(cut, false);
            run_until_done();
            for (uint32_t i = 0; i < SENDERS; i++) {
                const struct sim_stream *sender = &world.senders[i];
                CHECK(sender->from->down == 0 && sender->to->down == 0);
                CHECK(sender->from->completed == PUTS && sender->from->failed == 0);
                CHECK(sender->to->arrived_puts == PUTS);
                CHECK(memcmp(sender->from->memory, sender->to->memory, PUTS * PUT_BYTES) == 0);
            }
        }
    }
}

/* Puts between two hosts of one cluster, when the other cluster is gone. */
static void neighbours_continue(void)
{
    static struct sim_stream near;
    struct sim_host *host = &hosts.list[1];
    sim_stream_start(&hosts, &near, 1, 0, PUT_BYTES, PUTS);
    near.under_way_max = UNDER_WAY;
    host->down = host->failed = 0;
    sim_hosts_run(&hosts, 1000 * SIMULATION_MS);
    CHECK(host->completed == PUTS && host->failed == 0 && host->down == 0);
    CHECK(memcmp(host->memory, near.to->memory, PUTS * PUT_BYTES) == 0);
}

static void is_reported_in_time_when_it_does_not(void **state)
{
    struct test_seeds seeds = test_seeds(1001, (test_count("CW_TEST_SEEDS", 20) + SEEDS_EACH - 1) / SEEDS_EACH);
    uint64_t latest_ns[WAYS][CUTS] = {{0}};
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        for (enum way way = 0; way < WAYS; way++) {
            world_open(way, seed);
            enum cut cut = sever();
            uint64_t cut_ns = sim_hosts_now(&hosts);
            sim_hosts_run(&hosts, 2 * BOUND_NS);
            for (uint32_t i = 0; i < SENDERS; i++) {
                const struct sim_stream *sender = &world.senders[i];
                CHECK(sender->from->down == 1);
                CHECK(sender->from->down_ns <= cut_ns + BOUND_NS);
                CHECK(sender->from->completed == sender->posted && sender->from->failed > 0);
                uint64_t took_ns = sender->from->down_ns - cut_ns;
                uint64_t *latest = &latest_ns[way][cut];
                *latest = took_ns > *latest ? took_ns : *latest;
            }
            neighbours_continue();
        }
    }
    for (int way = 0; way < WAYS; way++) {
        printf(
            "%s: told %.3f s after the cut at the latest, %.3f s if only the way there is cut, %.3f s if only the way "
            "back is; the failure bound is %.3f s\n",
            way_names[way], (double)latest_ns[way][CUT_BOTH] / 1e9, (double)latest_ns[way][CUT_THERE] / 1e9,
            (double)latest_ns[way][CUT_BACK] / 1e9, (double)FAILURE_NS / 1e9);
    }
}

static void a_waiting_peer_learns_in_time(void **state)
{
    struct test_seeds seeds = test_seeds(3001, (test_count("CW_TEST_SEEDS", 20) + SEEDS_EACH - 1) / SEEDS_EACH);
    uint64_t latest_ns[CUTS] = {0};
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        for (enum cut cut = 0; cut < CUTS; cut++) {
            world_open(WAY_BANDWIDTH, seed);
            for (uint32_t i = 0; i < SENDERS; i++) {
                world.senders[i].from->work = work_gets;
            }
            sim_hosts_run(&hosts, cw_random_between(&world.random, 100, 500) * SIMULATION_MS);
            trunk_set(cut, true);
            uint64_t cut_ns = sim_hosts_now(&hosts);
            sim_hosts_run(&hosts, 2 * BOUND_NS);
            for (uint32_t i = 0; i < SENDERS; i++) {
                const struct sim_host *host = world.senders[i].from;
                CHECK(host->got > 0 && host->down == 1 && host->down_ns <= cut_ns + BOUND_NS);
                latest_ns[cut] = host->down_ns - cut_ns > latest_ns[cut] ? host->down_ns - cut_ns : latest_ns[cut];
            }
        }
    }
    printf("who waits for answers: told %.3f s after the cut at the latest, %.3f s if only the way there is cut, %.3f "
           "s if "
           "only the way back is\n",
           (double)latest_ns[CUT_BOTH] / 1e9, (double)latest_ns[CUT_THERE] / 1e9, (double)latest_ns[CUT_BACK] / 1e9);
}

static void trunk_lose(double there, double back)
{
    sim_link_lose(cw_simulator_link_trunk(hosts.simulator, 0, 0), there);
    sim_link_lose(cw_simulator_link_trunk(hosts.simulator, 0, 1), back);
}

/* Many puts, or one at a time, each with a last packet that may be lost: no live peer is declared failed, and all
 * continues when the trunk is well again. */
static void heavy_loss_is_no_failure(void **state)
{
    static const double losses[][2] = {{0.3, 0}, {0, 0.3}, {0.2, 0.2}, {0.3, 0.3}};
    enum { LOSSES = sizeof(losses) / sizeof(losses[0]) };
    struct test_seeds seeds = test_seeds(2001, (test_count("CW_TEST_SEEDS", 20) + SEEDS_EACH - 1) / SEEDS_EACH);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        for (enum way way = 0; way < WAYS; way++) {
            world_open(way, seed);
            const double *loss = losses[seed % LOSSES];
            trunk_lose(loss[0], loss[1]);
            for (uint32_t i = 0; i < SENDERS; i++) {
                world.senders[i].count = UINT64_MAX;
                world.senders[i].under_way_max = i == 0 ? 1 : UNDER_WAY;
            }
            sim_hosts_run(&hosts, 3 * FAILURE_NS);
            trunk_lose(0, 0);
            for (uint32_t i = 0; i < SENDERS; i++) {
                struct sim_stream *sender = &world.senders[i];
                CHECK(sender->from->down == 0 && sender->to->down == 0);
                sender->count = sender->posted;
            }
            sim_hosts_run(&hosts, 10 * FAILURE_NS);
            for (uint32_t i = 0; i < SENDERS; i++) {
                const struct sim_stream *sender = &world.senders[i];
                CHECK(sender->from->down == 0 && sender->to->down == 0);
                CHECK(sender->from->completed == sender->count && sender->from->failed == 0);
                CHECK(sender->to->arrived_puts == sender->count);
            }
        }
    }
}

int main(void)
{
    return HOSTS_TESTS_RUN(goes_on_when_it_returns, is_reported_in_time_when_it_does_not, a_waiting_peer_learns_in_time,
                           heavy_loss_is_no_failure);
}
