/* Groups in virtual time: opened by their members in any order, many at a time, within the budget of addresses; members
 * that die, networks that do not multicast; closed by all, and gone.
 *
 * Control messages take a way of their own, of random delay, in order per pair of ranks; multicast goes over the
 * simulated network and its faults. What a member sends follows from the seed, so every other one knows what must come.
 */
#include "control/groups/groups.h"
#include "dataplane/rdma/rdma.h"
#include "tests/simulation/simulation.h"

enum {
    SEEDS = 100,
    RANKS_MAX = 16,
    GROUPS_MAX = 40,
    MESSAGES = 6, /* of each member in each group */
    MESSAGE_MAX = 3000,
    ADDRESS_BASE = 0x6f0a0b00, /* and the highest bit: 239.10.11.0 */
};
#define STEP_NS 20000ull

struct letter {
    struct letter *next;
    uint64_t due_ns;
    uint32_t from, to, bytes;
    uint8_t data[128];
};

/* A group as the test knows it. */
struct planned {
    uint32_t ranks[RANKS_MAX];
    uint32_t count;
};

/* ... and as a rank has it. */
struct held {
    struct party *party;
    const struct planned *planned;
    struct cw_group *group; /* NULL: not opened yet, or closed */
    struct cw_mcast_group *mcast;
    uint64_t open_ns, close_ns;
    bool was_opened, is_closed;
    uint32_t sent, completed, failed;
    uint32_t next[RANKS_MAX]; /* the message that must come next from each rank */
};

struct party {
    struct town *town;
    uint32_t rank;
    struct cw_mcast *mcast; /* NULL: dead */
    struct cw_groups *groups;
    struct held held[GROUPS_MAX];
};

struct town {
    uint64_t seed, random;
    uint32_t rank_count, group_count, budget;
    struct sim_hosts hosts;
    struct party parties[RANKS_MAX];
    struct planned planned[GROUPS_MAX];
    struct letter *letters; /* rising by time, stable */
    uint64_t last_ns[RANKS_MAX][RANKS_MAX];
    uint8_t source[MESSAGE_MAX + 256];
    uint32_t dead;       /* RANKS_MAX: nobody */
    uint32_t severed[2]; /* ranks that do not reach each other; RANKS_MAX: none */
    bool hurries;        /* all groups are to be closed, whatever has not come */
    uint32_t full;       /* there is no room for letters to it; RANKS_MAX: to nobody */
    uint64_t received;
    const char *fault;
};

static void fault(struct town *town, const char *what)
{
    town->fault = town->fault != NULL ? town->fault : what;
}

/* ---- links ---- */

static int letter_send(void *context, uint32_t rank, const void *data, uint32_t bytes)
{
    struct party *party = context;
    struct town *town = party->town;
    if (simulation_drawn(&town->random, 10) == 0 || rank == town->full) {
        return CW_ERROR_AGAIN;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (party->rank == town->severed[i] && rank == town->severed[1 - i]) {
            return CW_ERROR_PEER_FAILED;
        }
    }
    uint64_t *last_ns = &town->last_ns[party->rank][rank];
    uint64_t due_ns = sim_hosts_now(&town->hosts) + simulation_drawn(&town->random, 300) * SIMULATION_US;
    *last_ns = due_ns > *last_ns ? due_ns : *last_ns;
    struct letter *letter = calloc(1, sizeof(*letter));
    *letter = (struct letter){.due_ns = *last_ns, .from = party->rank, .to = rank, .bytes = bytes};
    assert_true(bytes <= sizeof(letter->data));
    memcpy(letter->data, data, bytes);
    struct letter **link = &town->letters;
    while (*link != NULL && (*link)->due_ns <= letter->due_ns) {
        link = &(*link)->next;
    }
    letter->next = *link;
    *link = letter;
    return CW_OK;
}

static int peer_of(void *context, uint32_t rank, uint32_t *peer)
{
    struct party *party = context;
    if (rank == party->town->dead) {
        return CW_ERROR_PEER_FAILED;
    }
    *peer = sim_hosts_peer(&party->town->hosts, party->rank, rank);
    return CW_OK;
}

/* Who is dead is told by the test. */
static void ask(void *context, uint32_t rank)
{
}

static int run(void *context, int (*function)(void *argument), void *argument)
{
    return function(argument);
}

/* Length and first byte of a message; the source is a table of bytes that differ. */
static uint32_t length_of(const struct town *town, uint32_t group, uint32_t rank, uint32_t number)
{
    uint64_t mixed = (town->seed + group * 1000003 + rank * 10007 + number) * UINT64_C(0x9e3779b97f4a7c15);
    return 8 + (uint32_t)((mixed >> 40) % (MESSAGE_MAX - 8));
}

static void message_come(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint64_t bytes)
{
    struct held *held = cw_group_context(context);
    struct party *party = held->party;
    struct town *town = party->town;
    uint32_t index = (uint32_t)(held - party->held);
    uint32_t number = held->next[rank]++;
    const uint8_t *at = data;
    const uint32_t head[2] = {index << 8 | rank, number};
    if (bytes != length_of(town, index, rank, number) || memcmp(at, head, sizeof(head)) != 0 ||
        memcmp(at + sizeof(head), town->source + number, bytes - sizeof(head)) != 0) {
        fault(town, "a message is not the one that must come next");
    }
    town->received++;
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
    held->completed++;
    held->failed += status != CW_OK;
    if (status != CW_OK && held->group != NULL && held->party->town->seed % 2 == 0) {
        held_close(held); /* as MPI does when the last message of a communicator that is freed has ended */
    }
}

/* ---- a rank at work ---- */

static void group_begin(struct held *held)
{
    struct party *party = held->party;
    struct cw_group_request request = {
        .scope = 7,
        .number = (uint64_t)(held - party->held),
        .ranks = held->planned->ranks,
        .count = held->planned->count,
        .context = held,
        .mcast = &held->mcast,
    };
    assert_int_equal(cw_group_open(party->groups, &request, &held->group), CW_OK);
    struct cw_group *twice;
    assert_int_equal(cw_group_open(party->groups, &request, &twice), CW_ERROR_BUSY);
    held->was_opened = true;
}

static void group_write(struct held *held)
{
    struct party *party = held->party;
    uint32_t index = (uint32_t)(held - party->held);
    while (held->sent < MESSAGES && held->mcast != NULL) {
        const uint32_t head[2] = {index << 8 | party->rank, held->sent};
        uint32_t bytes = length_of(party->town, index, party->rank, held->sent) - (uint32_t)sizeof(head);
        struct cw_mcast_put put = {
            .head = head,
            .head_bytes = sizeof(head),
            .data = party->town->source + held->sent,
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
static bool all_came(const struct held *held)
{
    const struct town *town = held->party->town;
    for (uint32_t i = 0; i < held->planned->count; i++) {
        uint32_t rank = held->planned->ranks[i];
        if (rank != held->party->rank && rank != town->dead && held->next[rank] < MESSAGES) {
            return false;
        }
    }
    return true;
}

static void party_work(struct party *party)
{
    for (uint32_t index = 0; index < party->town->group_count; index++) {
        struct held *held = &party->held[index];
        if (held->planned == NULL || held->is_closed) {
            continue;
        }
        if (!held->was_opened && sim_hosts_now(&party->town->hosts) >= held->open_ns) {
            group_begin(held);
        }
        if (held->group == NULL) {
            continue;
        }
        bool has_failed = cw_group_state(held->group) == CW_GROUP_FAILED;
        if (!has_failed) {
            group_write(held);
        }
        if (has_failed || party->town->hurries ||
            (held->sent == MESSAGES && all_came(held) && sim_hosts_now(&party->town->hosts) >= held->close_ns)) {
            held_close(held);
        }
    }
    (void)cw_groups_poll(party->groups);
    if (cw_groups_info(party->groups).filters > party->town->budget) {
        fault(party->town, "more addresses are let in than the budget says");
    }
}

static void letters_bring(struct town *town)
{
    while (town->letters != NULL && town->letters->due_ns <= sim_hosts_now(&town->hosts)) {
        struct letter *letter = town->letters;
        town->letters = letter->next;
        if (town->parties[letter->to].mcast != NULL && letter->from != town->dead) {
            cw_groups_take(town->parties[letter->to].groups, letter->from, letter->data, letter->bytes);
        }
        free(letter);
    }
}

static bool is_over(struct town *town)
{
    for (uint32_t rank = 0; rank < town->rank_count; rank++) {
        struct party *party = &town->parties[rank];
        for (uint32_t index = 0; party->mcast != NULL && index < town->group_count; index++) {
            if (party->held[index].planned != NULL && !party->held[index].is_closed) {
                return false;
            }
        }
        if (party->mcast != NULL && cw_groups_is_closing(party->groups)) {
            return false;
        }
    }
    return true;
}

static bool town_run(struct town *town, uint64_t limit_ns)
{
    uint64_t end_ns = sim_hosts_now(&town->hosts) + limit_ns;
    while (!is_over(town) && town->fault == NULL) {
        if (sim_hosts_now(&town->hosts) >= end_ns) {
            return false;
        }
        sim_hosts_run(&town->hosts, STEP_NS);
        letters_bring(town);
        for (uint32_t rank = 0; rank < town->rank_count; rank++) {
            if (town->parties[rank].mcast != NULL) {
                party_work(&town->parties[rank]);
                sim_host_wake(&town->hosts.list[rank]);
            }
        }
    }
    return true;
}

/* ---- life ---- */

static void groups_plan(struct town *town)
{
    for (uint32_t index = 0; index < town->group_count; index++) {
        struct planned *planned = &town->planned[index];
        uint32_t order[RANKS_MAX] = {0};
        planned->count = 2 + (uint32_t)simulation_drawn(&town->random, town->rank_count - 1);
        for (uint32_t i = 0; i < town->rank_count; i++) {
            uint32_t at = (uint32_t)simulation_drawn(&town->random, i + 1);
            order[i] = order[at];
            order[at] = i;
        }
        memcpy(planned->ranks, order, planned->count * sizeof(uint32_t));
        for (uint32_t i = 0; i < planned->count; i++) {
            struct party *party = &town->parties[planned->ranks[i]];
            party->held[index] = (struct held){
                .party = party,
                .planned = planned,
                .open_ns = simulation_drawn(&town->random, 20) * SIMULATION_MS / 2,
                .close_ns = simulation_drawn(&town->random, 40) * SIMULATION_MS,
            };
        }
    }
}

static bool has_device(void *context)
{
    const struct party *party = context;
    return cw_rdma_has_groups(party->town->hosts.list[party->rank].endpoint);
}

static void party_create(struct town *town, uint32_t rank)
{
    struct party *party = &town->parties[rank];
    char error[200] = "";
    struct cw_mcast_config mcast;
    uint32_t base = ADDRESS_BASE | 1u << 31;
    cw_mcast_config_init(&mcast);
    mcast.handler = (struct cw_mcast_handler){.message = message_come,
                                              .complete = put_complete,
                                              .laggard = cw_group_laggard,
                                              .unreached = cw_group_unreached};
    mcast.flood_ipv4 = cw_groups_flood_address(base);
    mcast.keeps_flood_address = rank == 0;
    *party = (struct party){.town = town, .rank = rank};
    if (cw_mcast_create(&mcast, town->hosts.list[rank].endpoint, &party->mcast, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }
    struct cw_groups_config config = {
        .rank = rank,
        .address_base = base,
        .filter_budget = town->budget,
        .seed = town->seed * 1000 + rank,
        .mcast = party->mcast,
        .links =
            {
                .context = party,
                .send = letter_send,
                .peer = peer_of,
                .ask = ask,
                .has_device = has_device,
                .run = run,
            },
    };
    assert_int_equal(cw_groups_create(&config, &party->groups), CW_OK);
    sim_host_begin(&town->hosts.list[rank], NULL, party);
}

static struct town *town_create(uint64_t seed, enum cw_simulator_multicast multicast, double loss)
{
    struct town *town = calloc(1, sizeof(*town));
    struct cw_verbs_net_config verbs;
    *town = (struct town){
        .seed = seed, .random = seed, .dead = RANKS_MAX, .full = RANKS_MAX, .severed = {RANKS_MAX, RANKS_MAX}};
    town->rank_count = 2 + (uint32_t)simulation_drawn(&town->random, RANKS_MAX - 1);
    town->group_count = 1 + (uint32_t)simulation_drawn(&town->random, GROUPS_MAX);
    town->budget = CW_GROUPS_FILTERS_LEAST + (uint32_t)simulation_drawn(&town->random, CW_GROUPS_FILTERS - 1);
    for (size_t i = 0; i < sizeof(town->source); i++) {
        town->source[i] = (uint8_t)(i * 7 + i / 256);
    }
    struct sim_hosts_config hosts = sim_hosts_config_of(town->rank_count);
    hosts.seed = seed;
    hosts.memory_bytes = 64;
    hosts.learning = true;
    hosts.multicast = multicast;
    hosts.node.up.loss = hosts.node.down.loss = loss;
    if (multicast == CW_SIMULATOR_SNOOPS && seed % 2 == 0) { /* the first ranks have RDMA devices */
        cw_verbs_net_config_init(&verbs);
        verbs.seed = seed;
        verbs.datagram_loss = loss;
        verbs.join_max_ns = simulation_drawn(&town->random, 2) * 20 * SIMULATION_MS;
        hosts.verbs = &verbs;
        hosts.verbs_count = 2 + (uint32_t)simulation_drawn(&town->random, town->rank_count - 1);
    }
    simulation_hosts(&town->hosts, &hosts);
    for (uint32_t rank = 0; rank < town->rank_count; rank++) {
        party_create(town, rank);
    }
    groups_plan(town);
    return town;
}

static void party_kill(struct town *town, uint32_t rank)
{
    struct party *party = &town->parties[rank];
    cw_groups_destroy(party->groups);
    cw_mcast_destroy(party->mcast);
    party->mcast = NULL;
    party->groups = NULL;
    sim_hosts_crash(&town->hosts, rank);
    town->dead = rank;
}

static void town_destroy(struct town *town)
{
    for (uint32_t rank = 0; rank < town->rank_count; rank++) {
        if (town->parties[rank].mcast != NULL) {
            cw_groups_destroy(town->parties[rank].groups);
            cw_mcast_destroy(town->parties[rank].mcast);
        }
    }
    while (town->letters != NULL) {
        struct letter *next = town->letters->next;
        free(town->letters);
        town->letters = next;
    }
    sim_hosts_destroy(&town->hosts);
    free(town);
}

static void waits_print(const struct town *town)
{
    for (uint32_t rank = 0; rank < town->rank_count; rank++) {
        for (uint32_t index = 0; index < town->group_count; index++) {
            const struct held *held = &town->parties[rank].held[index];
            char why[CW_GROUPS_WHY_BYTES] = "closed or not opened";
            if (town->parties[rank].mcast != NULL && held->planned != NULL && !held->is_closed) {
                if (held->group != NULL) {
                    cw_group_why(held->group, why, sizeof(why));
                }
                printf("rank %u, group %u: %s; sent %u\n", rank, index, why, held->sent);
            }
        }
    }
}

static void must(struct town *town, bool done)
{
    if (town->fault != NULL || !done) {
        waits_print(town);
        fail_msg("seed %llu: %s", (unsigned long long)town->seed,
                 town->fault != NULL ? town->fault : "not all groups are closed in time");
    }
}

/* ---- tests ---- */

/* What comes if nobody dies: of each member, at each other one. */
static uint64_t messages_planned(const struct town *town)
{
    uint64_t count = 0;
    for (uint32_t index = 0; index < town->group_count; index++) {
        count += (uint64_t)town->planned[index].count * (town->planned[index].count - 1) * MESSAGES;
    }
    return count;
}

static void opened_in_any_order(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    uint64_t shared = 0, by_devices = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct town *town = town_create(seed, CW_SIMULATOR_SNOOPS, seed % 3 == 0 ? 0.02 : 0);
        uint64_t expected = messages_planned(town);
        bool done = town_run(town, 100 * SIMULATION_MS);
        for (uint32_t rank = 0; rank < town->rank_count; rank++) {
            shared += cw_groups_info(town->parties[rank].groups).shared;
        }
        must(town, done || town_run(town, 20000 * SIMULATION_MS));
        assert_int_equal(town->received, expected);
        for (uint32_t rank = 0; rank < town->rank_count; rank++) {
            struct cw_groups_info info = cw_groups_info(town->parties[rank].groups);
            assert_int_equal(info.open, 0);
            assert_int_equal(info.filters, 1);
            assert_int_equal(info.malformed, 0);
            if (info.unreached != UINT32_MAX) {
                fail_msg("seed %llu: rank %u: no multicast reaches rank %u", (unsigned long long)seed, rank,
                         info.unreached);
            }
            /* where frames are lost the switch may not have heard of the flood address yet: then it did flood */
            assert_true(!info.floods || seed % 3 == 0);
        }
        by_devices += town->hosts.verbs != NULL && cw_verbs_net_counters(town->hosts.verbs)->datagrams > 0;
        town_destroy(town);
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
        struct town *town = town_create(seed, CW_SIMULATOR_SNOOPS, 0);
        uint64_t expected = messages_planned(town);
        (void)town_run(town, simulation_drawn(&town->random, 30) * SIMULATION_MS / 2);
        cw_verbs_net_fail(town->hosts.verbs, (uint32_t)simulation_drawn(&town->random, 2));
        must(town, town_run(town, 20000 * SIMULATION_MS));
        assert_int_equal(town->received, expected);
        town_destroy(town);
    }
}

/* One dies at some time: groups that were being opened fail at all, others go on without it. */
static void one_dies(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct town *town = town_create(seed, CW_SIMULATOR_SNOOPS, 0);
        uint32_t dies = (uint32_t)simulation_drawn(&town->random, town->rank_count);
        (void)town_run(town, simulation_drawn(&town->random, 30) * SIMULATION_MS);
        party_kill(town, dies);
        for (uint32_t rank = 0; rank < town->rank_count; rank++) { /* noticed at a time of its own */
            (void)town_run(town, simulation_drawn(&town->random, 3) * SIMULATION_MS);
            if (rank != dies) {
                cw_groups_down(town->parties[rank].groups, dies);
            }
        }
        /* groups that somebody opened only later have to notice it again: as MPI does, which asks before it opens */
        for (int round = 0; round < 100 && !town_run(town, 100 * SIMULATION_MS); round++) {
            for (uint32_t rank = 0; rank < town->rank_count; rank++) {
                if (rank != dies) {
                    cw_groups_down(town->parties[rank].groups, dies);
                }
            }
        }
        must(town, is_over(town));
        town_destroy(town);
    }
}

/* Two lose each other, and both live: whoever hears of it first takes one of them for dead. Nobody waits for ever. */
static void two_lose_each_other(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct town *town = town_create(seed, CW_SIMULATOR_SNOOPS, 0);
        uint32_t one = (uint32_t)simulation_drawn(&town->random, town->rank_count);
        uint32_t other = (one + 1 + (uint32_t)simulation_drawn(&town->random, town->rank_count - 1)) % town->rank_count;
        (void)town_run(town, (10 + simulation_drawn(&town->random, 30)) * SIMULATION_MS);
        town->severed[0] = one;
        town->severed[1] = other;
        cw_groups_down(town->parties[one].groups, other);
        (void)town_run(town, simulation_drawn(&town->random, 3) * SIMULATION_MS / 2);
        cw_groups_down(town->parties[other].groups, one);
        (void)town_run(town, simulation_drawn(&town->random, 3) * SIMULATION_MS / 2);
        town->hurries = true;
        for (int round = 0; round < 100 && !town_run(town, 100 * SIMULATION_MS); round++) {
            cw_groups_down(town->parties[one].groups, other); /* as above */
            cw_groups_down(town->parties[other].groups, one);
            for (uint32_t rank = 0; rank < town->rank_count; rank++) { /* as MPI does, which waits */
                cw_groups_ask(town->parties[rank].groups);
            }
        }
        must(town, is_over(town));
        town_destroy(town);
    }
}

/* Whether all groups that the full rank is no member of are closed. */
static bool others_are_closed(const struct town *town)
{
    bool has_full[GROUPS_MAX] = {false};
    for (uint32_t index = 0; index < town->group_count; index++) {
        has_full[index] = town->parties[town->full].held[index].planned != NULL;
    }
    for (uint32_t rank = 0; rank < town->rank_count; rank++) {
        for (uint32_t index = 0; index < town->group_count; index++) {
            const struct held *held = &town->parties[rank].held[index];
            if (!has_full[index] && held->planned != NULL && !held->is_closed) {
                return false;
            }
        }
    }
    return true;
}

/* What has to wait for room to one rank holds up no group without it; nothing is lost. */
static void one_is_full(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS) / 4);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct town *town = town_create(seed, CW_SIMULATOR_SNOOPS, 0);
        town->full = (uint32_t)simulation_drawn(&town->random, town->rank_count);
        for (int round = 0; round < 20 && !others_are_closed(town); round++) {
            (void)town_run(town, 100 * SIMULATION_MS);
        }
        must(town, others_are_closed(town));
        town->full = RANKS_MAX;
        must(town, town_run(town, 20000 * SIMULATION_MS));
        town_destroy(town);
    }
}

static void a_network_without_multicast(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS) / 4);
    uint64_t noticed = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct town *town = town_create(seed, CW_SIMULATOR_DROPS, 0);
        must(town, town_run(town, 20000 * SIMULATION_MS));
        for (uint32_t rank = 0; rank < town->rank_count; rank++) {
            noticed += cw_groups_info(town->parties[rank].groups).unreached != UINT32_MAX;
        }
        town_destroy(town);
    }
    assert_true(!seeds.is_all || noticed > seeds.count / 2);
}

static void a_network_that_floods(void **state)
{
    struct test_seeds seeds = test_seeds(1, 5);
    uint32_t noticed = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct town *town = town_create(seed, CW_SIMULATOR_FLOODS, 0);
        must(town, town_run(town, 20000 * SIMULATION_MS));
        for (uint32_t rank = 0; rank < town->rank_count; rank++) {
            noticed += cw_groups_info(town->parties[rank].groups).floods;
        }
        town_destroy(town);
    }
    assert_true(!seeds.is_all || noticed > 5);
}

/* Others are named by one of the members: it fails at all, and says who. */
static void members_do_not_agree(void **state)
{
    struct town *town = town_create(3, CW_SIMULATOR_SNOOPS, 0);
    assert_true(town->rank_count >= 4);
    town->group_count = 1;
    struct planned different = {.ranks = {0, 1, 3}, .count = 3};
    town->planned[0] = (struct planned){.ranks = {0, 1, 2}, .count = 3};
    for (uint32_t rank = 0; rank < town->rank_count; rank++) {
        struct party *party = &town->parties[rank];
        memset(party->held, 0, sizeof(party->held));
        if (rank < 3) {
            party->held[0] = (struct held){.party = party, .planned = rank == 1 ? &different : &town->planned[0]};
            group_begin(&party->held[0]);
        }
    }
    for (int step = 0; step < 100; step++) {
        sim_hosts_run(&town->hosts, STEP_NS);
        letters_bring(town);
        for (uint32_t rank = 0; rank < 3; rank++) {
            (void)cw_groups_poll(town->parties[rank].groups);
        }
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        char why[CW_GROUPS_WHY_BYTES];
        assert_int_equal(cw_group_state(town->parties[rank].held[0].group), CW_GROUP_FAILED);
        cw_group_why(town->parties[rank].held[0].group, why, sizeof(why));
        assert_string_equal(why, "cannot be opened: rank 1 opens it with other members");
        assert_null(town->parties[rank].held[0].mcast);
        cw_group_close(town->parties[rank].held[0].group);
    }
    town_destroy(town);
}

static void bad_requests(void **state)
{
    struct town *town = town_create(3, CW_SIMULATOR_SNOOPS, 0);
    struct cw_group *group;
    const uint32_t twice[] = {0, 1, 1}, without[] = {1, 2}, alone[] = {0};
    const struct cw_group_request requests[] = {
        {.scope = 9, .ranks = twice, .count = 3},
        {.scope = 9, .ranks = without, .count = 2},
        {.scope = 9, .ranks = alone, .count = 1},
    };
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        assert_int_equal(cw_group_open(town->parties[0].groups, &requests[i], &group), CW_ERROR_ARGUMENT);
    }
    for (uint32_t bytes = 0; bytes < 100; bytes++) { /* anything may come */
        uint8_t data[100];
        memset(data, (int)bytes, sizeof(data));
        cw_groups_take(town->parties[0].groups, 1, data, bytes);
    }
    assert_true(cw_groups_info(town->parties[0].groups).malformed > 0);
    town_destroy(town);
}

int main(void)
{
    return TESTS_RUN(opened_in_any_order, a_device_fails, one_dies, two_lose_each_other, a_network_without_multicast,
                     a_network_that_floods, members_do_not_agree, bad_requests, one_is_full);
}
