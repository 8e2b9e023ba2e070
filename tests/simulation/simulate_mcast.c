/* Reliable multicast in virtual time: every byte to every survivor, for any network faults; and its cost. */
#include "dataplane/rdma/rdma_state.h"
#include "mcast/state.h"
#include "tests/simulation/mcast_fixture.h"

enum { SEEDS = 200 };

/* Of the world, before it is made. */
static struct mcast_world_config config;
static struct cw_verbs_net_config verbs;
static uint64_t drawing; /* follows from the seed */

static uint32_t drawn(uint32_t below)
{
    return (uint32_t)simulation_drawn(&drawing, below);
}

/* Up to 5 % of everything, on each link. */
static void faults_draw(struct cw_link_config *link)
{
    link->loss = (double)drawn(6) / 100;
    link->duplicate = (double)drawn(4) / 100;
    link->corrupt = (double)drawn(3) / 100;
    link->reorder = (double)drawn(10) / 100;
    link->reorder_delay_max_ns = 200 * SIMULATION_US;
}

static void config_draw(uint64_t seed)
{
    static const uint32_t arities[] = {0, 1, 2, 3, CW_MCAST_MEMBERS_MAX};
    drawing = seed;
    config = mcast_world_config_of(2 + drawn(23));
    config.seed = seed;
    config.senders = 1 + drawn(config.members < 4 ? config.members : 4);
    config.messages = 5 + drawn(40);
    config.arity = arities[drawn(5)];
    config.delivery = drawn(4) == 0 ? CW_MCAST_BY_MEMBERS : CW_MCAST_BY_NETWORK;
    config.is_slow = drawn(2) == 0;
    config.short_max = drawn(4) == 0 ? 64 : 4096;
    config.long_max = drawn(3) == 0 ? 0 : 20000 + drawn(60000);
    config.mcast.slot_count = 1 + drawn(16);
    config.mcast.queue_max = 2 + drawn(30);
    config.mcast.event_count_max = 1 + drawn(64);
    config.compresses = (enum cw_compression_mode)(seed % (CW_COMPRESSION_ON + 1));
    faults_draw(&config.node.up);
    faults_draw(&config.node.down);
}

static void every_byte_to_every_member(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS));
    uint64_t repairs = 0, chunks = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        config_draw(seed);
        world_make(&config);
        (void)mcast_world_run(&world, drawn(300) * SIMULATION_MS);
        cw_simulator_heal(world.hosts.simulator);
        mcast_world_finish(&world, 10000 * SIMULATION_MS);
        struct cw_mcast_counters counters = mcast_world_counters(&world);
        repairs += counters.repairs_out + counters.repairs_one_out;
        chunks += mcast_world_counted(&world, CW_COUNTER_CHUNKS_IN);
        for (uint32_t member = 0; member < config.members;
             member++) { /* however much is lost, it is not the network's fault */
            assert_int_equal(world.members[member].unreached, UINT32_MAX);
        }
    }
    assert_true(!seeds.is_all || repairs > seeds.count); /* there was something to repair */
    assert_true(!seeds.is_all || chunks > 10 * seeds.count);
}

/* The links of a member drop longer packets, in both directions. */
static void narrow(uint32_t member, uint32_t mtu_bytes)
{
    struct cw_link *links[] = {cw_simulator_link_up(world.hosts.simulator, member),
                               cw_simulator_link_down(world.hosts.simulator, member)};
    for (size_t i = 0; i < 2; i++) {
        struct cw_link_config narrower = links[i]->config;
        narrower.frame_bytes_max = mtu_bytes + 14;
        cw_link_configure(links[i], &narrower);
    }
}

/* Packets that a path does not take any more travel in parts, and shorter ones follow. */
static void paths_become_narrower(void **state)
{
    static const uint32_t before[] = {1500, 9000}, after[] = {1300, 1280, 600};
    struct test_seeds seeds = test_seeds(6001, test_count("CW_TEST_SEEDS", SEEDS));
    uint64_t dropped = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        config_draw(seed);
        config.mtu_bytes = before[drawn(2)];
        world_make(&config);
        uint32_t member = drawn(config.members);
        uint32_t mtu_bytes = after[drawn(3)];
        (void)mcast_world_run(&world, drawn(10) * 200 * SIMULATION_US);
        narrow(member, mtu_bytes);
        (void)mcast_world_run(&world, drawn(300) * SIMULATION_MS);
        cw_simulator_heal(world.hosts.simulator);
        narrow(member, mtu_bytes);
        mcast_world_finish(&world, 20000 * SIMULATION_MS);
        dropped += cw_simulator_link_down(world.hosts.simulator, member)->counters.dropped_length > 0;
    }
    assert_true(!seeds.is_all || dropped > seeds.count / 4);
}

/* Of a group whose members have RDMA devices: its packets to all are datagrams of theirs, as lossy as any network, and
 * members forward datagrams that devices do not deliver at all. */
static void devices_draw(uint64_t seed)
{
    cw_verbs_net_config_init(&verbs);
    verbs.seed = seed;
    verbs.jitter_ns = drawn(3) * 5000;
    verbs.join_max_ns = drawn(2) * SIMULATION_MS;
    verbs.datagram_loss = (double)drawn(6) / 100;
}

static void groups_go_by_devices(void **state)
{
    struct test_seeds seeds = test_seeds(3001, test_count("CW_TEST_SEEDS", SEEDS));
    uint64_t repairs = 0, by_members = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        config_draw(seed);
        devices_draw(seed);
        uint32_t which = drawn(3 * config.members);
        verbs.datagram_loss = which < config.members ? 0 : verbs.datagram_loss;
        config.verbs = &verbs;
        world_make(&config);
        (void)mcast_world_run(&world, drawn(300) * SIMULATION_US);
        if (which < config.members && drawn(2) == 0) {
            cw_verbs_net_fail(world.hosts.verbs, which);
        } else if (which < config.members) {
            cw_verbs_net_cut(world.hosts.verbs, which, true);
        }
        (void)mcast_world_run(&world, drawn(300) * SIMULATION_MS);
        cw_simulator_heal(world.hosts.simulator); /* the ports' network */
        if (which >= config.members) {
            cw_verbs_net_heal(world.hosts.verbs);
        }
        mcast_world_finish(&world, 10000 * SIMULATION_MS);
        const struct cw_verbs_net_counters *done = cw_verbs_net_counters(world.hosts.verbs);
        struct cw_mcast_counters counters = mcast_world_counters(&world);
        repairs += counters.repairs_out + counters.repairs_one_out;
        by_members += counters.relayed > 0;
        assert_int_equal(done->wrong, 0);
        assert_int_equal(mcast_world_counted(&world, CW_COUNTER_CHUNKS_OUT), 0); /* data by devices is not compressed */
        assert_true(config.delivery == CW_MCAST_BY_MEMBERS || done->datagrams > 0);
    }
    assert_true(!seeds.is_all || (repairs > seeds.count && by_members > seeds.count / 4));
}

/* A group by devices without a fault. */
static void devices_create(uint32_t members, uint32_t messages)
{
    config = mcast_world_config_of(members);
    cw_verbs_net_config_init(&verbs);
    config.verbs = &verbs;
    config.messages = messages;
    world_make(&config);
}

/* Without a fault each packet is one datagram of its sender, and none of them uses the port. */
static void a_packet_is_one_datagram(void **state)
{
    devices_create(9, 20);
    mcast_world_finish(&world, 1000 * SIMULATION_MS);
    struct cw_mcast_counters counters = mcast_world_counters(&world);
    const struct cw_verbs_net_counters *done = cw_verbs_net_counters(world.hosts.verbs);
    assert_int_equal(done->datagrams, counters.data_out + counters.states_out);
    assert_int_equal(counters.repairs_out + counters.repairs_one_out + counters.duplicates + done->dropped, 0);
    assert_int_equal(simulation_counted(&world.hosts, 0, CW_COUNTER_RDMA_DATAGRAMS_OUT), done->datagrams);
    assert_int_equal(simulation_counted(&world.hosts, 8, CW_COUNTER_RDMA_DATAGRAMS_IN), done->datagrams);
    assert_true(cw_rdma_memory(world.hosts.list[0].endpoint).group_bytes <= 320 * 4160);
}

/* Completions fetched for a group that is left before the turn are handled all the same, and their buffers return. */
static void fetched_packets_are_accepted(void **state)
{
    devices_create(3, 200);
    struct mcast_member *member = &world.members[2];
    struct cw_endpoint *endpoint = world.hosts.list[2].endpoint;
    const struct rdma *rdma = (const struct rdma *)endpoint->rdma;
    cw_simulator_stop(world.hosts.simulator, 2); /* it polls nothing itself */
    sim_hosts_run(&world.hosts, SIMULATION_MS);
    assert_true(cw_endpoint_fetch(endpoint) > 0 && rdma->fetched[CW_VERBS_DATAGRAMS].count > 0);
    cw_mcast_shut(member->group);
    member->group = NULL;
    for (uint32_t i = 0; i < 100; i++) { /* until the device has nothing more */
        (void)cw_endpoint_turn(endpoint, sim_hosts_now(&world.hosts));
    }
    assert_int_equal(rdma->fetched[CW_VERBS_DATAGRAMS].count, 0);
    assert_int_equal(rdma->datagrams.group_count, 0);
    cw_simulator_resume(world.hosts.simulator, 2);
}

/* Some die, some stop for a while; the others are notified, each at a time of its own. */
static void survivors_get_everything(void **state)
{
    struct test_seeds seeds = test_seeds(1001, test_count("CW_TEST_SEEDS", SEEDS));
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        config_draw(seed);
        world_make(&config);
        uint32_t victims = 1 + drawn(2);
        for (uint32_t i = 0; i < victims && i + 1 < config.members; i++) {
            uint32_t victim = drawn(config.members);
            (void)mcast_world_run(&world, drawn(2000) * SIMULATION_US);
            if (!world.live[victim]) {
                continue;
            }
            if (drawn(3) == 0) {
                cw_simulator_stop(world.hosts.simulator, victim);
                (void)mcast_world_run(&world, drawn(100) * SIMULATION_MS);
                cw_simulator_resume(world.hosts.simulator, victim);
                continue;
            }
            mcast_world_kill(&world, victim);
            sim_hosts_run(&world.hosts, drawn(60) * SIMULATION_MS);
            mcast_world_exclude(&world, victim, drawn(5) * SIMULATION_MS);
        }
        cw_simulator_heal(world.hosts.simulator);
        mcast_world_finish(&world, 10000 * SIMULATION_MS);
    }
}

/* A member that was removed does not return, and a membership that is not newer changes nothing. */
static void removed_members_stay_out(void **state)
{
    enum { MEMBERS = 3, EPOCH = 7 };
    static const bool removed[MEMBERS] = {true, true, false}, returned[MEMBERS] = {true, true, true};
    config = mcast_world_config_of(MEMBERS);
    world_make(&config);
    struct cw_mcast_group *group = world.members[0].group;
    assert_int_equal(cw_mcast_change(group, EPOCH, removed), CW_OK);
    assert_int_equal(cw_mcast_change(group, EPOCH, removed), CW_ERROR_ARGUMENT);
    assert_int_equal(cw_mcast_change(group, EPOCH + 1, returned), CW_ERROR_ARGUMENT);
    assert_int_equal(group->epoch, EPOCH);
    assert_int_equal(group->tree.live_count, MEMBERS - 1);
    assert_int_equal(cw_mcast_change(group, EPOCH + 1, removed), CW_OK);
}

/* Also a sum of head and data beyond 64 bits. */
static void wrong_messages_are_refused(void **state)
{
    static const uint8_t head[16], data[64];
    config = mcast_world_config_of(2);
    world_make(&config);
    const uint64_t slot_bytes = config.mcast.slot_bytes;
    const struct cw_mcast_put wrong[] = {
        {.data = data, .bytes = slot_bytes + 1},
        {.head = head, .head_bytes = sizeof(head), .data = data, .bytes = slot_bytes - sizeof(head) + 1},
        {.head = head, .head_bytes = sizeof(head), .data = data, .bytes = UINT64_MAX - sizeof(head) + 2},
        {.head = head, .head_bytes = sizeof(head), .data = data, .bytes = UINT64_MAX, .is_long = true},
        {.head = head, .head_bytes = CW_MCAST_INLINE_MAX + 1},
        {.data = data, .bytes = 1, .element = CW_ELEMENT_PLAIN + 1},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(cw_mcast_send(world.members[0].group, &wrong[i]), CW_ERROR_ARGUMENT);
    }
}

/* The member that delays all others is named: a dead one, and not the members above it in the tree. */
static void laggards_are_named(void **state)
{
    for (uint32_t victim = 1; victim < 30; victim += 3) {
        config = mcast_world_config_of(30);
        config.messages = 200;
        world_make(&config);
        sim_hosts_run(&world.hosts, 100 * SIMULATION_US);
        mcast_world_kill(&world, victim);
        assert_false(mcast_world_run(&world, 200 * SIMULATION_MS));
        assert_int_equal(world.members[0].laggard, victim);
        assert_true(world.members[0].laggards >= 3 && world.members[0].laggards <= 12);
        mcast_world_exclude(&world, victim, 0);
        mcast_world_finish(&world, 1000 * SIMULATION_MS);
    }
}

/* A packet that no member got: few request it, at any group size; and the root gets requests of its children only. */
static void few_send_naks_for_what_all_miss(void **state)
{
    static const uint32_t sizes[] = {17, 100, 1000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t lost = 0, asked = 0, acknowledged = 0, packets = 0;
        struct test_seeds seeds = test_seeds(1, sizes[i] > 500 ? 2 : 10);
        for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
            config = mcast_world_config_of(sizes[i]);
            config.seed = seed;
            config.messages = 12;
            config.short_max = 0;
            config.long_max = 60000;
            config.node.up.loss = 0.02; /* of the sender's packets; of the others' acknowledgements, too */
            world_make(&config);
            mcast_world_finish(&world, 20000 * SIMULATION_MS);
            struct cw_mcast_counters root = member_counters(0);
            lost += cw_simulator_link_up(world.hosts.simulator, 0)->counters.lost;
            asked += root.naks_in;
            acknowledged += root.acks_in;
            packets += root.data_out + root.states_out;
        }
        printf("%u members: %llu packets lost to all, %llu requests, %llu acknowledgements for %llu packets\n",
               sizes[i], (unsigned long long)lost, (unsigned long long)asked, (unsigned long long)acknowledged,
               (unsigned long long)packets);
        assert_true(!seeds.is_all || (lost > 0 && asked <= 3 * lost));
        assert_true(acknowledged <= CW_MCAST_ARITY * packets);
    }
}

/* Two or three switches, that know where members are or have to hear it; the links between them lose as the others
 * do. */
static void groups_reach_across_switches(void **state)
{
    struct test_seeds seeds = test_seeds(3001, test_count("CW_TEST_SEEDS", SEEDS));
    uint64_t repairs = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        config_draw(seed);
        config.members += 2;
        config.switches = 2 + drawn(2);
        config.learning = drawn(2) == 0;
        config.delivery = CW_MCAST_BY_NETWORK;
        if (config.learning) {
            /* a source address that became another host's would stay, for 300 s, in a switch that this host sends
             * nothing through */
            config.node.up.corrupt = config.node.down.corrupt = 0;
        }
        world_make(&config);
        struct cw_link *trunk = cw_simulator_link_trunk(world.hosts.simulator, 0, 0);
        struct cw_link_config faulty = trunk->config;
        faults_draw(&faulty);
        faulty.corrupt = config.learning ? 0 : faulty.corrupt;
        cw_link_configure(trunk, &faulty);
        (void)mcast_world_run(&world, drawn(300) * SIMULATION_MS);
        cw_simulator_heal(world.hosts.simulator);
        mcast_world_finish(&world, 10000 * SIMULATION_MS);
        struct cw_mcast_counters counters = mcast_world_counters(&world);
        repairs += counters.repairs_out + counters.repairs_one_out;
    }
    assert_true(!seeds.is_all || repairs > seeds.count);
}

static uint64_t frames_at(uint32_t node)
{
    const struct cw_simulator_node_counters *counters = cw_simulator_node_counters(world.hosts.simulator, node);
    return counters->received + counters->dropped_filter;
}

static void member_leave(uint32_t index)
{
    cw_mcast_shut(world.members[index].group);
    world.members[index].group = NULL;
    sim_host_wake(&world.hosts.list[index]);
    sim_hosts_run(&world.hosts, SIMULATION_MS);
    mcast_world_exclude(&world, index, 0);
}

/* Member 0 sends its messages again to the first `count`. */
static void all_again(uint32_t count)
{
    for (uint32_t member = 0; member < count; member++) {
        world.members[member].posted = world.members[member].completed = 0;
        world.members[member].from[0].next = 0;
    }
    sim_host_wake(&world.hosts.list[0]);
}

/* A switch that snoops sends a group's frames to members that have reported, and no longer once they have left. */
static void switches_are_reported(void **state)
{
    enum { MEMBERS = 10, IN_GROUP = 6, LEAVES = 5, MESSAGES = 100, REPORTS_MAX = 50 };
    config = mcast_world_config_of(MEMBERS);
    config.learning = true;
    config.outsiders = MEMBERS - IN_GROUP;
    config.long_max = 0;
    config.messages = MESSAGES;
    world_make(&config);
    mcast_world_finish(&world, 1000 * SIMULATION_MS);
    for (uint32_t node = 1; node < MEMBERS; node++) {
        uint64_t frames = frames_at(node);
        assert_true(node < IN_GROUP ? frames >= MESSAGES : frames < REPORTS_MAX); /* of others' memberships */
    }
    member_leave(LEAVES);
    uint64_t stayed = frames_at(LEAVES - 1), left = frames_at(LEAVES);
    all_again(IN_GROUP);
    mcast_world_finish(&world, 1000 * SIMULATION_MS);
    assert_true(frames_at(LEAVES - 1) >= stayed + MESSAGES);
    assert_true(frames_at(LEAVES) < left + REPORTS_MAX);
}

/* A switch that forwards no multicast: noticed within a second, for any sender; then members forward packets. */
static void a_network_that_drops_is_noticed(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_SEEDS", SEEDS) / 5);
    uint64_t noticed = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        config_draw(seed);
        config.delivery = CW_MCAST_BY_NETWORK;
        config.learning = true;
        config.multicast = CW_SIMULATOR_DROPS;
        world_make(&config);
        (void)mcast_world_run(&world, 1000 * SIMULATION_MS);
        cw_simulator_heal(world.hosts.simulator); /* except the switch's behaviour */
        mcast_world_finish(&world, 10000 * SIMULATION_MS);
        for (uint32_t sender = 0; sender < config.senders; sender++) {
            const struct mcast_member *member = &world.members[sender];
            if (member->done_ns[config.messages - 1] < 500 * SIMULATION_MS) {
                continue; /* repairs were enough */
            }
            noticed++;
            assert_in_range(member->unreached, 0, config.members - 1);
            assert_int_not_equal(member->unreached, sender);
            assert_in_range(member->unreached_ns, 1, 1000 * SIMULATION_MS);
        }
    }
    assert_true(!seeds.is_all || noticed > seeds.count / 4); /* most transfers were no longer than that */
}

/* A flood probe arrives at the keeper of its address only, where switches snoop; at all, where they flood. */
static void a_network_that_floods_is_noticed(void **state)
{
    enum { MEMBERS = 6 };
    static const enum cw_simulator_multicast kinds[] = {CW_SIMULATOR_SNOOPS, CW_SIMULATOR_FLOODS, CW_SIMULATOR_DROPS};
    for (int i = 0; i < 3; i++) {
        config = mcast_world_config_of(MEMBERS);
        config.learning = true;
        config.multicast = kinds[i];
        world_make(&config);
        sim_hosts_run(&world.hosts, SIMULATION_MS);
        for (uint32_t member = 1; member < MEMBERS; member++) {
            cw_mcast_flood_probe(world.members[member].group);
        }
        sim_hosts_run(&world.hosts, SIMULATION_MS);
        for (uint32_t member = 0; member < MEMBERS; member++) {
            uint64_t flood_probes = member_counters(member).flood_probes;
            assert_int_equal(flood_probes, kinds[i] == CW_SIMULATOR_FLOODS && member > 0 ? MEMBERS - 2 : 0);
        }
    }
}

/* Messages have arrived, and their events were not taken when the group is shut: then no event names it any more,
 * except of own messages. */
static void a_group_that_is_shut_leaves_no_events(void **state)
{
    enum { MEMBERS = 2, MESSAGES = 5 };
    struct cw_event event;
    config = mcast_world_config_of(MEMBERS);
    config.senders = 0;
    config.messages = MESSAGES;
    world_make(&config);
    for (uint32_t member = 0; member < MEMBERS; member++) {
        world.hosts.list[member].work = NULL;
        world.hosts.list[member].holds_events = true;
        for (uint32_t i = 0; i < MESSAGES; i++) {
            struct cw_mcast_put put = {.data = "12345678", .bytes = 8, .context = i, .flags = CW_MCAST_SIGNAL};
            assert_int_equal(cw_mcast_send(world.members[member].group, &put), CW_OK);
        }
    }
    sim_hosts_run(&world.hosts, 10 * SIMULATION_MS);
    cw_mcast_shut(world.members[0].group);
    world.members[0].group = NULL;
    mcast_world_complete_late = 0;
    while (cw_endpoint_events(world.hosts.list[0].endpoint, &event, 1) == 1) {
    }
    assert_int_equal(mcast_world_complete_late, MESSAGES);
    assert_int_equal(world.members[0].heard + world.members[0].completed, 0);
}

/* If one member behind a trunk leaves a group, the others there keep it. */
static void leaving_costs_others_nothing(void **state)
{
    enum { MEMBERS = 8, LEAVES = 7 };
    config = mcast_world_config_of(MEMBERS);
    config.learning = true;
    config.switches = 2;
    config.long_max = 0;
    world_make(&config);
    mcast_world_finish(&world, 1000 * SIMULATION_MS);
    sim_hosts_run(&world.hosts, 500 * SIMULATION_MS); /* now no member reports for a while */
    member_leave(LEAVES);
    all_again(LEAVES);
    mcast_world_finish(&world, 10000 * SIMULATION_MS);
    const struct mcast_member *root = &world.members[0];
    assert_true(root->done_ns[config.messages - 1] - root->sent_ns[0] < 10 * SIMULATION_MS);
}

/* An error in a group is reported, and leaves nothing behind. */
static void a_wrong_group_is_explained(void **state)
{
    enum { MEMBERS = 2, WRONG = 9 };
    char error[CW_ERROR_TEXT_BYTES];
    config = mcast_world_config_of(MEMBERS);
    world_make(&config);
    const uint32_t *peers = sim_hosts_peers(&world.hosts, 0, MEMBERS);
    const uint32_t unknown[MEMBERS] = {0, 1000};
    const struct cw_mcast_group_config good = {
        .id = 99, .member_count = MEMBERS, .peers = peers, .ipv4 = 0xef010203, .epoch = 1};
    struct {
        struct cw_mcast_group_config group;
        const char *why;
        int status;
    } rows[WRONG];
    for (int i = 0; i < WRONG; i++) {
        rows[i].group = good;
        rows[i].status = CW_ERROR_ARGUMENT;
    }
    rows[0].group.id = 0, rows[0].why = "id is 0";
    rows[1].group.id = mcast_world_group(&world), rows[1].why = "with this id is open";
    rows[2].group.member_count = 1, rows[2].why = "below 2";
    rows[3].group.member_count = CW_MCAST_MEMBERS_MAX + 1, rows[3].why = "CW_MCAST_MEMBERS_MAX";
    rows[4].group.self = MEMBERS, rows[4].why = "self is not below";
    rows[5].group.ipv4 = 0x0a000001, rows[5].why = "224.0.0.0/4";
    rows[6].group.epoch = 0, rows[6].why = "epoch is 0";
    rows[7].group.peers = unknown, rows[7].why = "peers[1] is 1000";
    rows[8].group.by_device = true, rows[8].why = "no RDMA device", rows[8].status = CW_ERROR_UNSUPPORTED;
    for (int i = 0; i < WRONG; i++) {
        struct cw_mcast_group *group = NULL;
        error[0] = '\0';
        assert_int_equal(cw_mcast_open(world.members[0].mcast, &rows[i].group, &group, error, sizeof(error)),
                         rows[i].status);
        assert_non_null(strstr(error, rows[i].why));
        assert_null(group);
    }
    struct cw_mcast_group_config more = good;
    struct cw_mcast_group *group;
    int status;
    while ((status = cw_mcast_open(world.members[0].mcast, &more, &group, error, sizeof(error))) == CW_OK) {
        more.id++;
    }
    assert_int_equal(status, CW_ERROR_LIMIT);
    assert_non_null(strstr(error, "group_count_max"));
    free((void *)(uintptr_t)peers);
}

int main(void)
{
    return WORLD_TESTS_RUN(
        a_wrong_group_is_explained, every_byte_to_every_member, paths_become_narrower, groups_go_by_devices,
        a_packet_is_one_datagram, fetched_packets_are_accepted, survivors_get_everything, removed_members_stay_out,
        wrong_messages_are_refused, laggards_are_named, few_send_naks_for_what_all_miss, switches_are_reported,
        a_network_that_drops_is_noticed, a_network_that_floods_is_noticed, a_group_that_is_shut_leaves_no_events,
        groups_reach_across_switches, leaving_costs_others_nothing);
}
