/* Random traffic under random faults, many seeds: tests/simulation/world/world.h lists what its ledger checks. Plain
 * worlds, and worlds with compression, sealed sessions, NICs that take work over, and RDMA devices. CW_TEST_SEEDS (300)
 * of each. */
#include "tests/simulation/simulation.h"

#include "dataplane/status.h"
#include "tests/simulation/world/world.h"

enum { SEEDS = 300, TWICE_EVERY = 20 };

/* Sums over all seeds. */
struct sums {
    uint64_t seeds;
    struct sim_world_report of;
};

static void with_compression(struct sim_world_options *options)
{
    options->compress = true;
    options->encrypt = options->seed % 4 == 0;
}

static bool has_chunks(const struct sums *sums)
{
    return sums->of.chunks > 20 * sums->seeds;
}

static void with_seals(struct sim_world_options *options)
{
    options->encrypt = true;
}

static void with_offloads(struct sim_world_options *options)
{
    options->offload = true;
    options->partitions = options->seed % 2 == 0; /* links go down and come up */
    options->ipv6 = options->seed % 3 == 0;
}

static bool has_trials(const struct sums *sums)
{
    return sums->of.summed > 50 * sums->seeds && sums->of.trials > sums->seeds && sums->of.lies > sums->seeds / 4 &&
           sums->of.upsets > sums->seeds && sums->of.doubts >= sums->of.lies;
}

static void with_devices(struct sim_world_options *options)
{
    options->rdma = true;
    options->partitions = options->seed % 3 == 0; /* devices are cut off, too */
}

static bool has_broken_pairs(const struct sums *sums)
{
    return sums->of.rdma_work > 100 * sums->seeds && sums->of.rdma_up > 4 * sums->seeds &&
           sums->of.rdma_broken > 2 * sums->seeds && sums->of.rdma_given_up > sums->seeds / 20;
}

static const struct kind {
    const char *name;
    void (*set)(struct sim_world_options *options); /* NULL: plain */
    bool (*is_shown)(const struct sums *sums);      /* whether the worlds have shown what they are for; NULL: always */
} kinds[] = {
    {"plain", NULL, NULL},
    {"compressed", with_compression, has_chunks},
    {"sealed", with_seals, NULL},
    {"with offloads", with_offloads, has_trials},
    {"with RDMA devices", with_devices, has_broken_pairs},
};

static void run_seed(const struct kind *kind, uint64_t seed, struct sim_world_report *report)
{
    struct sim_world_options options = {.kind = kind->name, .seed = seed};
    if (kind->set != NULL) {
        kind->set(&options);
    }
    sim_world_check(&options, report);
    if (kind->set == NULL && seed % TWICE_EVERY == 0) {
        struct sim_world_report again;
        assert_int_equal(sim_world_run(&options, &again), CW_OK);
        assert_true_msg(again.hash == report->hash && again.virtual_ns == report->virtual_ns,
                        "seed %llu takes another course when it is run again", (unsigned long long)seed);
    }
}

static void every_seed_keeps_the_promises(void **state)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
        struct sums sums = {.seeds = seeds.count};
        for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
            struct sim_world_report report;
            run_seed(&kinds[i], seed, &report);
            sim_world_report_add(&sums.of, &report);
        }
        assert_true(!seeds.is_all || kinds[i].is_shown == NULL || kinds[i].is_shown(&sums));
    }
}

/* Each of these has found a bug: lane order when the event queue was full, a get whose server had given up, credit lent
 * to the dead, lost packets that kept the one that mattered from being sent. */
static void seeds_that_have_found_something(void **state)
{
    static const uint64_t seeds[] = {258, 311, 10051, 10800, 11327, 12156};
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        struct sim_world_report report;
        run_seed(&kinds[0], seeds[i], &report);
    }
}

/* Nothing gets through at first. The first phase is shorter than the failure bound, so healing lets all of it arrive.
 * */
static void what_was_lost_arrives_after_healing(void **state)
{
    struct sim_world_options options = {.kind = "deaf", .seed = 7, .deaf = true};
    struct sim_world_report report;
    sim_world_check(&options, &report);
    assert_true(report.notified > 0);
}

int main(void)
{
    return TESTS_RUN(what_was_lost_arrives_after_healing, seeds_that_have_found_something,
                     every_seed_keeps_the_promises);
}
