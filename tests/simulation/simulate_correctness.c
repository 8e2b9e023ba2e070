/* Random traffic under random faults, many seeds: tests/simulation/world/world.h lists what its ledger checks.
 * CW_TEST_SEEDS (300) of them. */
#include "tests/simulation/simulation.h"

#include <string.h>

#include "dataplane/status.h"
#include "tests/simulation/world/world.h"

enum { SEEDS = 300, TWICE_EVERY = 20 };

static void run_seed(uint64_t seed)
{
    struct sim_world_options options;
    struct sim_world_report report;
    sim_world_options_init(&options);
    options.seed = seed;
    sim_world_check(&options, &report);
    if (seed % TWICE_EVERY == 0) {
        struct sim_world_report again;
        assert_int_equal(sim_world_run(&options, &again), CW_OK);
        if (again.hash != report.hash || again.virtual_ns != report.virtual_ns) {
            fail_msg("seed %llu takes another course when it is run again", (unsigned long long)seed);
        }
    }
}

static void every_seed_keeps_the_promises(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        run_seed(seed);
    }
}

/* Each of these has found something: lane order when the event queue was full, a get whose server had given up, credit
 * lent to the dead, lost packets that kept the one that mattered from being sent. */
static void seeds_that_have_found_something(void **state)
{
    static const uint64_t seeds[] = {258, 311, 10051, 10800, 11327, 12156};
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        run_seed(seeds[i]);
    }
}

/* Nothing gets through at first. */
static void what_was_lost_arrives_after_healing(void **state)
{
    struct sim_world_options options;
    struct sim_world_report report;
    sim_world_options_init(&options);
    options.seed = 7;
    options.nodes = 3;
    options.loss = 1;
    options.partitions = options.crashes = options.stops = SIM_WORLD_NEVER;
    options.operations = 100;
    assert_int_equal(sim_world_run(&options, &report), CW_OK);
    /* the first phase is shorter than the failure bound, so healing lets all of it arrive */
    assert_false(report.failed);
    assert_true(report.notified > 0);
}

static void options_are_obeyed(void **state)
{
    struct sim_world_options options;
    struct sim_world_report report;
    sim_world_options_init(&options);
    options.seed = 3;
    options.nodes = 9;
    options.topology = SIM_WORLD_CLUSTERS;
    options.loss = 0.05;
    options.mtu_bytes = 9000;
    options.crashes = SIM_WORLD_ALWAYS;
    options.mix = sim_world_mix_find("messages");
    assert_non_null(options.mix);
    assert_null(sim_world_mix_find("none such"));
    assert_int_equal(sim_world_run(&options, &report), CW_OK);
    assert_false(report.failed);
    assert_true(report.faults > 0);
    assert_non_null(strstr(report.plan, "MTU 9000"));
    assert_non_null(strstr(report.plan, "messages"));
    assert_null(strstr(report.plan, "1 cluster,"));
}

int main(void)
{
    return TESTS_RUN(options_are_obeyed, what_was_lost_arrives_after_healing, seeds_that_have_found_something,
                     every_seed_keeps_the_promises);
}
