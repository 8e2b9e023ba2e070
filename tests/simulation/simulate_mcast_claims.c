/* What reliable multicast claims, in virtual time: how long messages take under loss, and what one stopped member costs
 * the others. */
#include "apps/bench/mcast/mcast.h"
#include "tests/simulation/mcast_world.h"

enum { RECEIVERS = 8, MESSAGES = 2500, MESSAGE_BYTES = 10240 };

static int by_time(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Times from the call to completion, one message at a time, added to `times`. */
static void latencies(double loss, uint64_t seed, uint64_t *times)
{
    struct mcast_world_config config;
    struct mcast_world world;
    mcast_world_config_init(&config, RECEIVERS + 1);
    config.seed = seed;
    config.messages = MESSAGES;
    config.is_uniform = true;
    config.long_max = MESSAGE_BYTES;
    config.mcast.queue_max = 1;
    config.node.up.loss = config.node.down.loss = loss;
    mcast_world_create(&world, &config);
    assert_true(mcast_world_run(&world, 100000 * SIMULATION_MS));
    for (uint32_t i = 0; i < MESSAGES; i++) {
        times[i] = world.members[0].done_ns[i] - world.members[0].sent_ns[i];
    }
    mcast_world_destroy(&world);
}

static void rare_loss_costs_little(void **state)
{
    enum { SEEDS = 8 };
    static uint64_t clean[MESSAGES], lossy[SEEDS * MESSAGES];
    latencies(0, 1, clean);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        latencies(0.0001, seed, &lossy[(seed - 1) * MESSAGES]);
    }
    qsort(clean, MESSAGES, sizeof(clean[0]), by_time);
    qsort(lossy, SEEDS * MESSAGES, sizeof(lossy[0]), by_time);
    double median = (double)clean[MESSAGES / 2];
    double rare = (double)lossy[SEEDS * MESSAGES - SEEDS * MESSAGES / 1000];
    printf("10 KB to 8 receivers: median without loss %.1f us; at 0.01 %% loss median %.1f us, p99.9 %.1f us: %.2f "
           "times\n",
           median / 1e3, (double)lossy[SEEDS * MESSAGES / 2] / 1e3, rare / 1e3, rare / median);
    assert_true(rare <= 3 * median);
}

/* Messages complete in the next `duration_ns`. */
static uint32_t completed_in(struct mcast_world *world, uint64_t duration_ns)
{
    uint32_t before = world->members[0].completed;
    sim_hosts_run(&world->hosts, duration_ns);
    return world->members[0].completed - before;
}

/* One stops; nobody gets on until it is taken out, then all do as before. */
static void one_that_stops_costs_the_others_little(void **state)
{
    for (uint32_t victim = 1; victim <= RECEIVERS; victim += 3) {
        struct mcast_world_config config;
        struct mcast_world world;
        mcast_world_config_init(&config, RECEIVERS + 1);
        config.messages = 4000;
        config.is_uniform = true;
        config.long_max = MESSAGE_BYTES;
        mcast_world_create(&world, &config);
        sim_hosts_run(&world.hosts, 2 * SIMULATION_MS);
        uint32_t before = completed_in(&world, 5 * SIMULATION_MS);
        cw_simulator_stop(world.hosts.simulator, victim);
        sim_hosts_run(&world.hosts, 30 * SIMULATION_MS);
        assert_true(world.members[0].laggards > 0);
        assert_int_equal(world.members[0].laggard, victim);
        mcast_world_exclude(&world, victim, 0);
        sim_hosts_run(&world.hosts, SIMULATION_MS / 2);
        uint32_t after = completed_in(&world, 5 * SIMULATION_MS);
        printf("member %u of 9 stopped: %u messages in 5 ms before, %u after it was taken out\n", victim, before,
               after);
        assert_int_equal(world.faulty, 0);
        assert_true(after * 10 >= before * 9);
        mcast_world_destroy(&world);
    }
}

/* Beside our own unicast algorithms, as `causeway bench mcast` compares them. */
static void it_is_ahead_of_unicast(void **state)
{
    static const struct {
        uint32_t members;
        uint64_t bytes;
        uint64_t rate_bps;
        uint64_t delay_ns;
        const char *against[4];
        double ratio_least;
    } table[] = {
        {9, 1, 10000000000, 20000, {"binomial"}, 1},
        /* puts of trees are complete once they are copied: the best one takes 74 us; it took 101 when each waited for
         * its acknowledgement */
        {9, 10240, 10000000000, 20000, {"binomial", "segmented-binomial", "flat", NULL}, 1.4},
        {9, 1 << 20, 10000000000, 20000, {"segmented-chain"}, 1},
        {29, 1, 100000000, 100000, {"binomial"}, 1},
        {29, 10240, 100000000, 100000, {"binomial", "segmented-binomial", "flat", NULL}, 1.5},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct bench_mcast_case of = {
            .members = table[i].members,
            .bytes = table[i].bytes,
            .runs = 20,
            .rate_bps = table[i].rate_bps,
            .delay_ns = table[i].delay_ns,
            .seed = 1,
        };
        struct bench_mcast_result ours, other;
        assert_int_equal(bench_mcast_group(&of, 0, &ours), 0);
        assert_true(ours.root_packets <= 1.05);
        for (int k = 0; k < 4; k++) {
            /* what the model chooses, too, where the best is asked for */
            bool is_any = table[i].against[k] == NULL && table[i].ratio_least > 1;
            if (table[i].against[k] == NULL && !is_any) {
                break;
            }
            assert_int_equal(bench_mcast_unicast(&of, table[i].against[k], &other), 0);
            printf("%u members, %llu bytes: %.1f us, %s %.1f us\n", of.members, (unsigned long long)of.bytes,
                   ours.median_ns / 1e3, other.name, other.median_ns / 1e3);
            assert_true(other.median_ns >= table[i].ratio_least * ours.median_ns);
        }
    }
}

/* The paper's Figure 9: what all get is more than what each wants, so a scatter by multicast is ahead with short blocks
 * only. Times until the last block is there; the root of a flat tree waits for nobody either. */
static void blocks_of_a_scatter_arrive_sooner_while_short(void **state)
{
    static const uint64_t sizes[] = {1, 50, 200, 1024, 4096};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct bench_mcast_case of = {
            .collective = CW_SCATTER,
            .members = 29,
            .switches = 2,
            .bytes = sizes[i],
            .runs = 10,
            .rate_bps = 100000000,
            .delay_ns = 100000,
            .seed = 1,
        };
        struct bench_mcast_result ours, other;
        assert_int_equal(bench_mcast_group(&of, 0, &ours), 0);
        assert_int_equal(bench_mcast_unicast(&of, "flat", &other), 0);
        printf(
            "scatter of %llu bytes to each of 28: there after %.1f us, flat %.1f us; packets handled: %.0f and %.0f\n",
            (unsigned long long)of.bytes, ours.arrived_ns / 1e3, other.median_ns / 1e3, ours.handled, other.handled);
        assert_true((ours.arrived_ns < other.median_ns) == (of.bytes <= 200));
    }
}

/* The paper's Table 1, so far as a network without processors has it: one after the other costs a trip for each; all at
 * once as much as unicast, for about half of the packets. */
static void blocks_of_all_take_fewer_packets(void **state)
{
    static const uint64_t sizes[] = {1, 1024, 65536};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct bench_mcast_case of = {
            .collective = CW_ALLGATHER,
            .members = 16,
            .bytes = sizes[i],
            .runs = 5,
            .rate_bps = 100000000,
            .delay_ns = 100000,
            .seed = 1,
        };
        struct bench_mcast_result ours, other, phased;
        assert_int_equal(bench_mcast_group(&of, 0, &ours), 0);
        assert_int_equal(bench_mcast_unicast(&of, "concurrent", &other), 0);
        assert_int_equal(bench_mcast_unicast(&of, "phased-barriers", &phased), 0);
        printf("all-gather of %llu bytes by 16: %.1f us, unicast %.1f us, phased %.1f us; packets handled: %.0f, %.0f, "
               "%.0f\n",
               (unsigned long long)of.bytes, ours.median_ns / 1e3, other.median_ns / 1e3, phased.median_ns / 1e3,
               ours.handled, other.handled, phased.handled);
        /* unicast handles three fifths to two thirds of what it did when each put waited for its acknowledgement */
        assert_true(ours.median_ns < phased.median_ns && ours.handled < 0.75 * other.handled);
        assert_true(of.bytes > 1 || other.median_ns < ours.median_ns);
    }
}

/* The paper's Figure 10: a group that is there and has only those in it that get something is the soonest; one that is
 * opened for a single use costs more than telling all. */
static void groups_for_few_are_worth_keeping(void **state)
{
    static const uint64_t sizes[] = {1, 50, 1024, 4096};
    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct bench_mcast_case of = {
            .collective = CW_SCATTER,
            .members = 29,
            .to = 5,
            .switches = 1 + (uint32_t)i % 2,
            .bytes = sizes[i / 2],
            .runs = 10,
            .rate_bps = 100000000,
            .delay_ns = 100000,
            .seed = 1,
        };
        struct bench_mcast_result explicit_group, static_group, dynamic_group, unicast;
        assert_int_equal(bench_mcast_scatterv(&of, BENCH_MCAST_EXPLICIT, &explicit_group), 0);
        assert_int_equal(bench_mcast_scatterv(&of, BENCH_MCAST_STATIC, &static_group), 0);
        assert_int_equal(bench_mcast_scatterv(&of, BENCH_MCAST_DYNAMIC, &dynamic_group), 0);
        assert_int_equal(bench_mcast_unicast(&of, "flat", &unicast), 0);
        printf("%llu bytes to each of 5 of 29, %u switches: explicit %.1f us, static %.1f us, dynamic %.1f us; unicast "
               "%.1f us\n",
               (unsigned long long)of.bytes, of.switches, explicit_group.median_ns / 1e3, static_group.median_ns / 1e3,
               dynamic_group.median_ns / 1e3, unicast.median_ns / 1e3);
        assert_true(explicit_group.median_ns < static_group.median_ns);
        assert_true(static_group.median_ns < dynamic_group.median_ns);
        assert_true(explicit_group.arrived_ns < static_group.arrived_ns);
        assert_true(static_group.arrived_ns < dynamic_group.arrived_ns);
        assert_true(unicast.median_ns < static_group.median_ns); /* as LAM/MPI's in the paper */
    }
}

/* Loss changes what is sent, not what comes. */
static void blocks_for_few_survive_loss(void **state)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct bench_mcast_case of = {
            .collective = CW_SCATTER,
            .members = 9,
            .to = 8 - (uint32_t)seed,
            .bytes = 5000 * seed,
            .loss = 0.02,
            .runs = 20,
            .rate_bps = 1000000000,
            .delay_ns = 20000,
            .seed = seed,
        };
        for (int way = BENCH_MCAST_EXPLICIT; way <= BENCH_MCAST_DYNAMIC; way++) {
            struct bench_mcast_result result;
            assert_int_equal(bench_mcast_scatterv(&of, (enum bench_mcast_way)way, &result), 0);
        }
    }
}

/* CC-MPI's section 3.2: a multicast takes from others where the network brings it to them. A switch that snoops keeps
 * it from all outside; one that floods takes their links, too. */
static void outsiders_notice_only_what_is_flooded(void **state)
{
    static const uint64_t sizes[] = {4096, 65536};
    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct bench_mcast_case of = {
            .members = 16,
            .bytes = sizes[i / 2],
            .rate_bps = i % 2 == 0 ? 10000000000 : 100000000,
            .delay_ns = i % 2 == 0 ? 20000 : 100000,
            .seed = 1,
        };
        struct bench_mcast_beside_result alone, outside[BENCH_MCAST_BESIDE_UNICAST + 1], inside;
        assert_int_equal(bench_mcast_beside(&of, BENCH_MCAST_BESIDE_NOTHING, false, &alone), 0);
        for (int beside = BENCH_MCAST_BESIDE_SNOOPING; beside <= BENCH_MCAST_BESIDE_UNICAST; beside++) {
            assert_int_equal(bench_mcast_beside(&of, (enum bench_mcast_beside)beside, false, &outside[beside]), 0);
            assert_true(outside[beside].beside_bps > 0);
        }
        assert_int_equal(bench_mcast_beside(&of, BENCH_MCAST_BESIDE_SNOOPING, true, &inside), 0);
        const struct bench_mcast_beside_result *snooping = &outside[BENCH_MCAST_BESIDE_SNOOPING];
        const struct bench_mcast_beside_result *flooding = &outside[BENCH_MCAST_BESIDE_FLOODING];
        const struct bench_mcast_beside_result *singly = &outside[BENCH_MCAST_BESIDE_UNICAST];
        printf(
            "beside multicasts of %llu bytes: %.0f Mb/s alone, %.0f snooping, %.0f flooding; %.0f to each by itself; "
            "inside %.0f\n",
            (unsigned long long)of.bytes, alone.goodput_bps / 1e6, snooping->goodput_bps / 1e6,
            flooding->goodput_bps / 1e6, singly->goodput_bps / 1e6, inside.goodput_bps / 1e6);
        assert_true(snooping->goodput_bps >= 0.95 * alone.goodput_bps);
        assert_true(snooping->latency_ns <= 1.05 * alone.latency_ns);
        assert_true(singly->goodput_bps >= 0.95 * alone.goodput_bps);
        assert_true(flooding->goodput_bps < 0.9 * alone.goodput_bps);
        assert_true(flooding->latency_ns >= snooping->latency_ns);
        assert_true(inside.goodput_bps < 0.95 * alone.goodput_bps);
        assert_true(singly->beside_bps < snooping->beside_bps); /* what it is for */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rare_loss_costs_little),
        cmocka_unit_test(one_that_stops_costs_the_others_little),
        cmocka_unit_test(it_is_ahead_of_unicast),
        cmocka_unit_test(blocks_of_a_scatter_arrive_sooner_while_short),
        cmocka_unit_test(blocks_of_all_take_fewer_packets),
        cmocka_unit_test(groups_for_few_are_worth_keeping),
        cmocka_unit_test(blocks_for_few_survive_loss),
        cmocka_unit_test(outsiders_notice_only_what_is_flooded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
