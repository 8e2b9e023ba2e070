/* A member that falls silent, in virtual time: all others of its group know it within the bound that control/README.md
 * states, and no other is removed; their multicasts are complete then.
 *
 * All traffic uses the simulated network, control messages too: the silent one is found as among processes. */
#include "tests/simulation/fixture.h"
#include "tests/simulation/groups.h"

enum { SEEDS = 30, RANKS_MAX = 24, MESSAGES = 3 };
#define FAILURE_NS (800 * SIMULATION_MS)
#define LAG_NS     (200 * SIMULATION_MS)
/* From when it was first waited for: it is named (mcast.h), asked, and silent for the failure bound, which is looked at
 * with each probe. */
#define BOUND_NS (LAG_NS + LAG_NS / 8 + FAILURE_NS + CW_PROBE_MAX_NS)

struct party {
    struct sim_groups groups;
    struct cw_group *group;
    struct cw_mcast_group *mcast;
    uint32_t posted, completed, failed, received;
};

static struct {
    struct party parties[RANKS_MAX];
    uint32_t ranks[RANKS_MAX];
    uint32_t count;
    uint32_t wanted;      /* messages that each sender shall have posted */
    uint32_t senders;     /* 1: rank 0 or, if that is the victim, 1; else all */
    uint32_t victim;      /* RANKS_MAX: nobody yet */
    uint64_t complete_ns; /* when the last message was */
} town;

static void message_receive(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint64_t bytes)
{
    struct party *party = cw_group_context(context);
    party->received++;
}

static void message_complete(void *context, uint64_t put_context, int status)
{
    struct party *party = (struct party *)(uintptr_t)put_context;
    party->completed++;
    party->failed += status != CW_OK;
    town.complete_ns = sim_hosts_now(&hosts);
}

static bool is_sender(const struct party *party)
{
    return party->groups.rank != town.victim && (town.senders > 1 || party->groups.rank == (town.victim == 0 ? 1 : 0));
}

static void work(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct party *party = context;
    sim_groups_receive(&party->groups);
    (void)cw_groups_poll(party->groups.groups);
    const struct cw_mcast_put put = {
        .data = "0123456789", .bytes = 10, .context = (uint64_t)(uintptr_t)party, .flags = CW_MCAST_SIGNAL};
    while (is_sender(party) && party->posted < town.wanted && party->mcast != NULL &&
           cw_mcast_send(party->mcast, &put) == CW_OK) {
        party->posted++;
    }
}

static void town_open(uint64_t seed, double loss)
{
    struct sim_hosts_config config = sim_hosts_config_of(town.count);
    config.seed = seed;
    config.memory_bytes = 64;
    config.endpoint.failure_timeout_ns = FAILURE_NS;
    config.node.up.loss = config.node.down.loss = loss;
    hosts_make(&config);
    for (uint32_t rank = 0; rank < town.count; rank++) {
        struct party *party = &town.parties[rank];
        const struct sim_groups_config member = {
            .seed = seed,
            .lag_ns = LAG_NS,
            .handler = {.message = message_receive, .complete = message_complete},
        };
        town.ranks[rank] = rank;
        hosts.list[rank].context = party;
        hosts.list[rank].work = work;
        sim_groups_create(&party->groups, &hosts, rank, &member);
    }
    for (uint32_t rank = 0; rank < town.count; rank++) {
        struct party *party = &town.parties[rank];
        const struct cw_group_request request = {
            .scope = 1, .ranks = town.ranks, .count = town.count, .context = party, .mcast = &party->mcast};
        assert_int_equal(cw_group_open(party->groups.groups, &request, &party->group), CW_OK);
    }
}

static void town_close(void)
{
    for (uint32_t rank = 0; rank < town.count; rank++) {
        sim_groups_destroy(&town.parties[rank].groups);
    }
    sim_hosts_destroy(&hosts);
}

static void pass(uint64_t duration_ns)
{
    for (uint32_t rank = 0; rank < town.count; rank++) {
        sim_host_wake(&hosts.list[rank]);
    }
    sim_hosts_run(&hosts, duration_ns);
}

static bool is_open(void)
{
    for (uint32_t rank = 0; rank < town.count; rank++) {
        if (cw_group_state(town.parties[rank].group) != CW_GROUP_OPEN) {
            return false;
        }
    }
    return true;
}

static bool is_complete(void)
{
    for (uint32_t rank = 0; rank < town.count; rank++) {
        const struct party *party = &town.parties[rank];
        if (is_sender(party) && party->completed < town.wanted) {
            return false;
        }
    }
    return true;
}

/* How long the others have waited for one that stopped at a time that follows from the seed. */
static uint64_t silence(uint64_t seed)
{
    memset(&town, 0, sizeof(town));
    uint64_t random = seed;
    town.count = 2 + (uint32_t)simulation_drawn(&random, RANKS_MAX - 1);
    town.victim = RANKS_MAX;
    town.senders = 1 + (uint32_t)simulation_drawn(&random, 2);
    town_open(seed, seed % 3 == 0 ? 0.02 : 0);
    while (!is_open()) {
        pass(SIMULATION_US * 100);
    }
    pass((uint32_t)simulation_drawn(&random, 300) * SIMULATION_US); /* probes of the group may be in flight, or not */
    town.victim = (uint32_t)simulation_drawn(&random, town.count);
    cw_simulator_stop(hosts.simulator, town.victim);
    pass((uint32_t)simulation_drawn(&random, 2) * (uint32_t)simulation_drawn(&random, 100) * SIMULATION_MS);
    uint64_t begin_ns = sim_hosts_now(&hosts);
    town.wanted = MESSAGES;
    while (!is_complete() && sim_hosts_now(&hosts) < begin_ns + 2 * BOUND_NS) {
        pass(SIMULATION_MS);
    }
    assert_true_msg(is_complete(), "seed %llu: %u members, member %u is silent, and no member has noticed",
                    (unsigned long long)seed, town.count, town.victim);
    for (uint32_t rank = 0; rank < town.count; rank++) {
        const struct party *party = &town.parties[rank];
        assert_int_equal(party->failed, 0); /* the others have it */
        for (uint32_t other = 0; other < town.count; other++) {
            if (other != rank && rank != town.victim && other != town.victim) {
                struct cw_peer_info info = peer_info(rank, party->groups.peers[other]);
                assert_int_not_equal(info.state, CW_PEER_FAILED);
            }
        }
    }
    uint64_t took_ns = town.complete_ns - begin_ns;
    town_close();
    return took_ns;
}

static void a_silent_member_is_removed_in_time(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    uint64_t longest_ns = 0, sum_ns = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        uint64_t took_ns = silence(seed);
        assert_true_msg(took_ns <= BOUND_NS, "seed %llu: %.1f ms, the bound is %.1f", (unsigned long long)seed,
                        (double)took_ns / 1e6, (double)BOUND_NS / 1e6);
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
        sum_ns += took_ns;
    }
    printf("a silent member was taken out after %.1f ms on average, %.1f at most; bound: %.1f\n",
           (double)sum_ns / (double)seeds.count / 1e6, (double)longest_ns / 1e6, (double)BOUND_NS / 1e6);
}

/* One that is slow, but there, is asked and stays. */
static void a_member_that_answers_stays(void **state)
{
    memset(&town, 0, sizeof(town));
    town.count = 5;
    town.victim = RANKS_MAX;
    town.senders = 2;
    town.wanted = MESSAGES;
    town_open(1, 0);
    while (!is_complete()) {
        pass(SIMULATION_MS);
    }
    cw_simulator_stop(hosts.simulator, 3);
    town.wanted += MESSAGES;
    pass(FAILURE_NS * 3 / 4);
    cw_simulator_resume(hosts.simulator, 3);
    pass(2 * BOUND_NS);
    assert_true(is_complete());
    for (uint32_t rank = 0; rank < town.count; rank++) {
        assert_int_equal(town.parties[rank].groups.down, 0);
        assert_int_equal(town.parties[rank].received, 2 * MESSAGES * (town.count - 1));
    }
    town_close();
}

int main(void)
{
    return HOSTS_TESTS_RUN(a_silent_member_is_removed_in_time, a_member_that_answers_stays);
}
