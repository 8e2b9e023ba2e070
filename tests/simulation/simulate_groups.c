/* Groups in virtual time: opened by their members in any order, many at a time, within the budget of addresses; members
 * that die, networks that do not multicast; closed by all, and gone.
 *
 * Control messages take a separate path, of random delay, in order per pair of ranks; multicast goes over the simulated
 * network and its faults. A member's messages follow from the seed, so every other one knows them.
 */
#include "dataplane/rdma/rdma.h"
#include "tests/simulation/fixture.h"
#include "tests/simulation/groups.h"

enum {
    SEEDS = 100,
    RANKS_MAX = 16,
    GROUPS_MAX = 40,
    MESSAGES = 6, /* of each member in each group */
    MESSAGE_MAX = 3000,
};
#define STEP_NS 20000ull

/* A group as the test knows it. */
struct planned {
    uint32_t ranks[RANKS_MAX];
    uint32_t count;
};

/* ... and as a rank has it. */
struct held {
    struct party *party;
    uint32_t index;
    const struct planned *planned;
    struct cw_group *group; /* NULL: not opened yet, or closed */
    struct cw_mcast_group *mcast;
    uint64_t open_ns, close_ns;
    bool was_opened, is_closed;
    uint32_t sent;
    uint32_t next[RANKS_MAX]; /* the message that must come next from each rank */
};

struct party {
    struct sim_groups member; /* mcast NULL: dead */
    struct held held[GROUPS_MAX];
};

static struct {
    uint64_t seed, random;
    uint32_t rank_count, group_count, budget;
    struct party parties[RANKS_MAX];
    struct planned planned[GROUPS_MAX];
    struct sim_letters letters;
    uint8_t source[MESSAGE_MAX + 256];
    uint32_t dead;       /* RANKS_MAX: nobody */
    uint32_t severed[2]; /* ranks that do not reach each other; RANKS_MAX: none */
    bool hurries;        /* all groups must be closed, even if messages are missing */
    uint32_t full;       /* there is no room for letters to it; RANKS_MAX: to nobody */
    uint64_t received;
    uint64_t expected; /* of each member, at each other one, if none dies */
    const char *fault;
} town;

static uint32_t drawn(uint32_t below)
{
    return (uint32_t)simulation_drawn(&town.random, below);
}

static struct cw_groups *groups_of(uint32_t rank)
{
    return town.parties[rank].member.groups;
}

static bool lives(uint32_t rank)
{
    return town.parties[rank].member.mcast != NULL;
}

static void fault(const char *what)
{
    town.fault = town.fault != NULL ? town.fault : what;
}

/* ---- links ---- */

static int letter_send(void *context, uint32_t rank, const void *data, uint32_t bytes)
{
    struct party *party = context;
    if (drawn(10) == 0 || rank == town.full) {
        return CW_ERROR_AGAIN;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (party->member.rank == town.severed[i] && rank == town.severed[1 - i]) {
            return CW_ERROR_PEER_FAILED;
        }
    }
    sim_letter_post(&town.letters, party->member.rank, rank, sim_hosts_now(&hosts) + drawn(300) * SIMULATION_US, data,
                    bytes);
    return CW_OK;
}

static int peer_of(void *context, uint32_t rank, uint32_t *peer)
{
    struct party *party = context;
    if (rank == town.dead) {
        return CW_ERROR_PEER_FAILED;
    }
    *peer = sim_hosts_peer(&hosts, party->member.rank, rank);
    return CW_OK;
}

/* The test reports dead members. */
static void probe(void *context, uint32_t rank)
{
}

/* Length and first byte of a message; the source is a table of bytes that differ. */
static uint32_t length_of(uint32_t group, uint32_t rank, uint32_t number)
{
    uint64_t mixed = (town.seed + group * 1000003 + rank * 10007 + number) * UINT64_C(0x9e3779b97f4a7c15);
    return 8 + (uint32_t)((mixed >> 40) % (MESSAGE_MAX - 8));
}

static void message_receive(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint64_t bytes)
{
    struct held *held = cw_group_context(context);
    uint32_t number = held->next[rank]++;
    const uint8_t *at = data;
    const uint32_t head[2] = {held->index << 8 | rank, number};
    if (bytes != length_of(held->index, rank, number) || memcmp(at, head, sizeof(head)) != 0 ||
        memcmp(at + sizeof(head), town.source + number, bytes - sizeof(head)) != 0) {
        fault("a message is not the one that must come next");
    }
    town.received++;
}

static void held_close(struct held *held)
{
    struct cw_group *group = held->group;
    held->group = NULL;
    held->is_closed = true;
    cw_group_close(group);
}

static void put_complete(void *context, uint64_t put_context, int status)
{
    struct held *held = (struct held *)(uintptr_t)put_context;
    if (status != CW_OK && held->group != NULL && town.seed % 2 == 0) {
        held_close(held); /* as MPI does when the last message of a communicator that is freed has ended */
    }
}

/* ---- a rank at work ---- */

static void group_begin(struct held *held)
{
    struct party *party = held->party;
    struct cw_group_request request = {
        .scope = 7,
        .number = held->index,
        .ranks = held->planned->ranks,
        .count = held->planned->count,
        .context = held,
        .mcast = &held->mcast,
    };
    assert_int_equal(cw_group_open(party->member.groups, &request, &held->group), CW_OK);
    struct cw_group *twice;
    assert_int_equal(cw_group_open(party->member.groups, &request, &twice), CW_ERROR_BUSY);
    held->was_opened = true;
}

static void group_write(struct held *held)
{
    uint32_t rank = held->party->member.rank;
    while (held->sent < MESSAGES && held->mcast != NULL) {
        const uint32_t head[2] = {held->index << 8 | rank, held->sent};
        uint32_t bytes = length_of(held->index, rank, held->sent) - (uint32_t)sizeof(head);
        struct cw_mcast_put put = {
            .head = head,
            .head_bytes = sizeof(head),
            .data = town.source + held->sent,
            .bytes = bytes,
            .context = (uint64_t)(uintptr_t)held,
            .flags = CW_MCAST_SIGNAL,
        };
        if (cw_mcast_send(held->mcast, &put) != CW_OK) {
            return;
        }
        held->sent++;
    }
}

/* Whether all has come from all that live. */
static bool all_arrived(const struct held *held)
{
    for (uint32_t i = 0; i < held->planned->count; i++) {
        uint32_t rank = held->planned->ranks[i];
        if (rank != held->party->member.rank && rank != town.dead && held->next[rank] < MESSAGES) {
            return false;
        }
    }
    return true;
}

static void party_work(struct party *party)
{
    for (uint32_t index = 0; index < town.group_count; index++) {
        struct held *held = &party->held[index];
        if (held->planned == NULL || held->is_closed) {
            continue;
        }
        if (!held->was_opened && sim_hosts_now(&hosts) >= held->open_ns) {
            group_begin(held);
        }
        if (held->group == NULL) {
            continue;
        }
        bool has_failed = cw_group_state(held->group) == CW_GROUP_FAILED;
        if (!has_failed) {
            group_write(held);
        }
        if (has_failed || town.hurries ||
            (held->sent == MESSAGES && all_arrived(held) && sim_hosts_now(&hosts) >= held->close_ns)) {
            held_close(held);
        }
    }
    (void)cw_groups_poll(party->member.groups);
    if (cw_groups_info(party->member.groups).filters > town.budget) {
        fault("more addresses are let in than the budget says");
    }
}

static void letters_bring(void)
{
    struct sim_letter letter;
    while (sim_letter_pop(&town.letters, sim_hosts_now(&hosts), &letter)) {
        if (lives(letter.to) && letter.from != town.dead) {
            cw_groups_receive(groups_of(letter.to), letter.from, letter.data, letter.bytes);
        }
    }
}

/* All groups of live ranks; without those of which that one is a member. RANKS_MAX: really all. */
static bool are_closed(uint32_t without)
{
    for (uint32_t rank = 0; rank < town.rank_count; rank++) {
        for (uint32_t index = 0; lives(rank) && index < town.group_count; index++) {
            const struct held *held = &town.parties[rank].held[index];
            bool counts = without == RANKS_MAX || town.parties[without].held[index].planned == NULL;
            if (counts && held->planned != NULL && !held->is_closed) {
                return false;
            }
        }
    }
    return true;
}

static bool is_over(void)
{
    for (uint32_t rank = 0; rank < town.rank_count; rank++) {
        if (lives(rank) && cw_groups_is_closing(groups_of(rank))) {
            return false;
        }
    }
    return are_closed(RANKS_MAX);
}

static bool town_run(uint64_t limit_ns)
{
    uint64_t end_ns = sim_hosts_now(&hosts) + limit_ns;
    while (!is_over() && town.fault == NULL) {
        if (sim_hosts_now(&hosts) >= end_ns) {
            return false;
        }
        sim_hosts_run(&hosts, STEP_NS);
        letters_bring();
        for (uint32_t rank = 0; rank < town.rank_count; rank++) {
            if (lives(rank)) {
                party_work(&town.parties[rank]);
                sim_host_wake(&hosts.list[rank]);
            }
        }
    }
    return true;
}

/* ---- life ---- */

static void groups_plan(void)
{
    for (uint32_t index = 0; index < town.group_count; index++) {
        struct planned *planned = &town.planned[index];
        uint32_t order[RANKS_MAX] = {0};
        planned->count = 2 + drawn(town.rank_count - 1);
        town.expected += (uint64_t)planned->count * (planned->count - 1) * MESSAGES;
        for (uint32_t i = 0; i < town.rank_count; i++) {
            uint32_t at = drawn(i + 1);
            order[i] = order[at];
            order[at] = i;
        }
        memcpy(planned->ranks, order, planned->count * sizeof(uint32_t));
        for (uint32_t i = 0; i < planned->count; i++) {
            struct party *party = &town.parties[planned->ranks[i]];
            party->held[index] = (struct held){
                .party = party,
                .index = index,
                .planned = planned,
                .open_ns = drawn(20) * SIMULATION_MS / 2,
                .close_ns = drawn(40) * SIMULATION_MS,
            };
        }
    }
}

static bool has_device(void *context)
{
    const struct party *party = context;
    return cw_rdma_has_groups(hosts.list[party->member.rank].endpoint);
}

static void party_create(uint32_t rank)
{
    struct party *party = &town.parties[rank];
    const struct sim_groups_config config = {
        .seed = town.seed,
        .filter_budget = town.budget,
        .handler = {.message = message_receive, .complete = put_complete},
        .links = {.context = party, .send = letter_send, .peer = peer_of, .probe = probe, .has_device = has_device},
    };
    sim_groups_create(&party->member, &hosts, rank, &config);
    sim_host_begin(&hosts.list[rank], NULL, party);
}

/* Of the test's last town, with its hosts. */
static int town_close(void **state)
{
    for (uint32_t rank = 0; rank < town.rank_count; rank++) {
        sim_groups_destroy(&town.parties[rank].member);
    }
    for (struct sim_letter letter; sim_letter_pop(&town.letters, UINT64_MAX, &letter);) {
    }
    town.rank_count = 0;
    return hosts_end(state);
}

static void town_open(uint64_t seed, enum cw_simulator_multicast multicast, double loss)
{
    struct cw_verbs_net_config verbs;
    (void)town_close(NULL);
    memset(&town, 0, sizeof(town));
    town.seed = town.random = seed;
    town.dead = town.full = town.severed[0] = town.severed[1] = RANKS_MAX;
    town.rank_count = 2 + drawn(RANKS_MAX - 1);
    town.group_count = 1 + drawn(GROUPS_MAX);
    town.budget = CW_GROUPS_FILTERS_LEAST + drawn(CW_GROUPS_FILTERS - 1);
    for (size_t i = 0; i < sizeof(town.source); i++) {
        town.source[i] = (uint8_t)(i * 7 + i / 256);
    }
    struct sim_hosts_config config = sim_hosts_config_of(town.rank_count);
    config.seed = seed;
    config.memory_bytes = 64;
    config.learning = true;
    config.multicast = multicast;
    config.node.up.loss = config.node.down.loss = loss;
    if (multicast == CW_SIMULATOR_SNOOPS && seed % 2 == 0) { /* the first ranks have RDMA devices */
        cw_verbs_net_config_init(&verbs);
        verbs.seed = seed;
        verbs.datagram_loss = loss;
        verbs.join_max_ns = drawn(2) * 20 * SIMULATION_MS;
        config.verbs = &verbs;
        config.verbs_count = 2 + drawn(town.rank_count - 1);
    }
    hosts_make(&config);
    for (uint32_t rank = 0; rank < town.rank_count; rank++) {
        party_create(rank);
    }
    groups_plan();
}

static void must(bool done)
{
    for (uint32_t i = 0; !done && i < town.rank_count * town.group_count; i++) {
        uint32_t rank = i / town.group_count;
        const struct held *held = &town.parties[rank].held[i % town.group_count];
        char why[CW_GROUPS_WHY_BYTES];
        if (lives(rank) && held->group != NULL) {
            cw_group_why(held->group, why, sizeof(why));
            printf("rank %u, group %u: %s; sent %u\n", rank, held->index, why, held->sent);
        }
    }
    assert_true_msg(town.fault == NULL && done, "seed %llu: %s", (unsigned long long)town.seed,
                    town.fault != NULL ? town.fault : "not all groups are closed in time");
}

static void town_finish(void)
{
    must(town_run(20000 * SIMULATION_MS));
}

/* ---- tests ---- */

static void opened_in_any_order(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    uint64_t shared = 0, by_devices = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        town_open(seed, CW_SIMULATOR_SNOOPS, seed % 3 == 0 ? 0.02 : 0);
        bool done = town_run(100 * SIMULATION_MS);
        for (uint32_t rank = 0; rank < town.rank_count; rank++) {
            shared += cw_groups_info(groups_of(rank)).shared;
        }
        must(done || town_run(20000 * SIMULATION_MS));
        assert_int_equal(town.received, town.expected);
        for (uint32_t rank = 0; rank < town.rank_count; rank++) {
            struct cw_groups_info info = cw_groups_info(groups_of(rank));
            assert_int_equal(info.open, 0);
            assert_int_equal(info.filters, 1);
            assert_int_equal(info.malformed, 0);
            assert_true_msg(info.unreached == UINT32_MAX, "seed %llu: rank %u: no multicast reaches rank %u",
                            (unsigned long long)seed, rank, info.unreached);
            /* where frames are lost the switch may not have heard of the flood address yet: then it did flood */
            assert_true(!info.floods || seed % 3 == 0);
        }
        by_devices += hosts.verbs != NULL && cw_verbs_net_counters(hosts.verbs)->datagrams > 0;
    }
    assert_true(seeds.count < 20 || shared > 0); /* some had more groups than addresses */
    printf("%llu of %llu towns had groups by devices\n", (unsigned long long)by_devices,
           (unsigned long long)seeds.count);
    assert_true(!seeds.is_all || by_devices > seeds.count / 8); /* some groups are of ranks with devices alone */
}

/* An RDMA device fails at some time: groups that had it pass packets on, later ones go by the network. */
static void a_device_fails(void **state)
{
    struct test_seeds seeds = test_seeds(1, 2 * test_count("CW_TEST_SEEDS", SEEDS));
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        if (seed % 2 != 0) {
            continue; /* a town without devices */
        }
        town_open(seed, CW_SIMULATOR_SNOOPS, 0);
        (void)town_run(drawn(30) * SIMULATION_MS / 2);
        cw_verbs_net_fail(hosts.verbs, drawn(2));
        town_finish();
        assert_int_equal(town.received, town.expected);
    }
}

/* Each other rank notices at a time of its own. */
static void death_report(uint32_t dead, uint32_t apart_ms)
{
    for (uint32_t rank = 0; rank < town.rank_count; rank++) {
        if (apart_ms > 0) {
            (void)town_run(drawn(apart_ms) * SIMULATION_MS);
        }
        if (rank != dead) {
            cw_groups_down(groups_of(rank), dead);
        }
    }
}

/* One dies at some time: groups that were being opened fail at all, others go on without it. */
static void one_dies(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        town_open(seed, CW_SIMULATOR_SNOOPS, 0);
        uint32_t dies = drawn(town.rank_count);
        (void)town_run(drawn(30) * SIMULATION_MS);
        sim_groups_destroy(&town.parties[dies].member);
        sim_hosts_crash(&hosts, dies);
        town.dead = dies;
        death_report(dies, 3);
        /* groups that were opened only later must notice it again: as in MPI, which checks before it opens */
        for (int round = 0; round < 100 && !town_run(100 * SIMULATION_MS); round++) {
            death_report(dies, 0);
        }
        must(is_over());
    }
}

/* Two lose each other, and both live: the first one notified treats one of them as dead. No member waits forever. */
static void two_lose_each_other(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        town_open(seed, CW_SIMULATOR_SNOOPS, 0);
        uint32_t one = drawn(town.rank_count);
        uint32_t other = (one + 1 + drawn(town.rank_count - 1)) % town.rank_count;
        (void)town_run((10 + drawn(30)) * SIMULATION_MS);
        town.severed[0] = one;
        town.severed[1] = other;
        cw_groups_down(groups_of(one), other);
        (void)town_run(drawn(3) * SIMULATION_MS / 2);
        cw_groups_down(groups_of(other), one);
        (void)town_run(drawn(3) * SIMULATION_MS / 2);
        town.hurries = true;
        for (int round = 0; round < 100 && !town_run(100 * SIMULATION_MS); round++) {
            cw_groups_down(groups_of(one), other); /* as above */
            cw_groups_down(groups_of(other), one);
            for (uint32_t rank = 0; rank < town.rank_count; rank++) { /* as MPI does, which waits */
                cw_groups_probe(groups_of(rank));
            }
        }
        must(is_over());
    }
}

/* Messages that wait for room to one rank delay no group without it; nothing is lost. */
static void one_is_full(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS) / 4);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        town_open(seed, CW_SIMULATOR_SNOOPS, 0);
        town.full = drawn(town.rank_count);
        for (int round = 0; round < 20 && !are_closed(town.full); round++) {
            (void)town_run(100 * SIMULATION_MS);
        }
        must(are_closed(town.full));
        town.full = RANKS_MAX;
        town_finish();
    }
}

static void other_networks_are_noticed(void **state)
{
    static const enum cw_simulator_multicast kinds[] = {CW_SIMULATOR_DROPS, CW_SIMULATOR_FLOODS};
    for (uint32_t i = 0; i < 2; i++) {
        struct test_seeds seeds = test_seeds(1, i == 0 ? test_count("CW_TEST_SEEDS", SEEDS) / 4 : 5);
        uint64_t noticed = 0;
        for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
            town_open(seed, kinds[i], 0);
            town_finish();
            for (uint32_t rank = 0; rank < town.rank_count; rank++) {
                struct cw_groups_info info = cw_groups_info(groups_of(rank));
                noticed += i == 0 ? info.unreached != UINT32_MAX : info.floods;
            }
        }
        assert_true(!seeds.is_all || noticed > (i == 0 ? seeds.count / 2 : 5));
    }
}

/* One of the members names others: the group fails at all, with the reason. */
static void members_do_not_agree(void **state)
{
    town_open(3, CW_SIMULATOR_SNOOPS, 0);
    assert_true(town.rank_count >= 4);
    town.group_count = 1;
    struct planned different = {.ranks = {0, 1, 3}, .count = 3};
    town.planned[0] = (struct planned){.ranks = {0, 1, 2}, .count = 3};
    for (uint32_t rank = 0; rank < town.rank_count; rank++) {
        struct party *party = &town.parties[rank];
        memset(party->held, 0, sizeof(party->held));
        if (rank < 3) {
            party->held[0] = (struct held){.party = party, .planned = rank == 1 ? &different : &town.planned[0]};
            group_begin(&party->held[0]);
        }
    }
    for (int step = 0; step < 100; step++) {
        sim_hosts_run(&hosts, STEP_NS);
        letters_bring();
        for (uint32_t rank = 0; rank < 3; rank++) {
            (void)cw_groups_poll(groups_of(rank));
        }
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        char why[CW_GROUPS_WHY_BYTES];
        assert_int_equal(cw_group_state(town.parties[rank].held[0].group), CW_GROUP_FAILED);
        cw_group_why(town.parties[rank].held[0].group, why, sizeof(why));
        assert_string_equal(why, "cannot be opened: rank 1 opens it with other members");
        assert_null(town.parties[rank].held[0].mcast);
        cw_group_close(town.parties[rank].held[0].group);
    }
}

static void bad_requests(void **state)
{
    town_open(3, CW_SIMULATOR_SNOOPS, 0);
    struct cw_group *group;
    const uint32_t twice[] = {0, 1, 1}, without[] = {1, 2}, alone[] = {0};
    const struct cw_group_request requests[] = {
        {.scope = 9, .ranks = twice, .count = 3},
        {.scope = 9, .ranks = without, .count = 2},
        {.scope = 9, .ranks = alone, .count = 1},
    };
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        assert_int_equal(cw_group_open(groups_of(0), &requests[i], &group), CW_ERROR_ARGUMENT);
    }
    for (uint32_t bytes = 0; bytes < 100; bytes++) { /* anything may come */
        uint8_t data[100];
        memset(data, (int)bytes, sizeof(data));
        cw_groups_receive(groups_of(0), 1, data, bytes);
    }
    assert_true(cw_groups_info(groups_of(0)).malformed > 0);
}

int main(void)
{
    return TESTS_RUN_EACH(NULL, town_close, opened_in_any_order, a_device_fails, one_dies, two_lose_each_other,
                          other_networks_are_noticed, members_do_not_agree, bad_requests, one_is_full);
}
