/* The bridge: learning, ageing, flooding, mesh ports, full tables, malformed frames; groups by hand, IGMP snooping,
 * ageing, hostile IGMP. */
#include "tests/unit/dataplane/bridge_frames.h"

#include "dataplane/base/random.h"

static void test_learning(void **state)
{
    bridge_make(16, 4, true);
    assert_int_equal(FORWARD(0, 0, unicast(1, 2)), ALL_BUT(0));
    assert_int_equal(FORWARD(0, 3, unicast(2, 1)), PORT(0));
    assert_int_equal(FORWARD(0, 0, unicast(1, 2)), PORT(3));
    assert_int_equal(FORWARD(0, 3, unicast(7, 2)), 0);       /* both behind port 3 */
    assert_int_equal(FORWARD(0, 5, unicast(2, 1)), PORT(0)); /* host 2 has moved */
    assert_int_equal(FORWARD(0, 0, unicast(1, 2)), PORT(5));
    assert_int_equal(cw_bridge_counters(bridge)->addresses_moved, 1);
    assert_int_equal(cw_bridge_counters(bridge)->dropped_home, 1);
    assert_int_equal(cw_bridge_counters(bridge)->flooded_unknown, 1);
    assert_int_equal(cw_bridge_address_count(bridge), 3);
}

static void test_broadcast(void **state)
{
    bridge_make(16, 4, false);
    struct frame frame = unicast(1, 2);
    memset(frame.bytes, 0xff, 6);
    assert_int_equal(forward(0, 2, &frame), ALL_BUT(2));
}

static void test_ageing(void **state)
{
    bridge_make(16, 4, true);
    FORWARD(0, 4, unicast(1, 9));
    assert_int_equal(FORWARD(300 * SECOND, 0, unicast(2, 1)), PORT(4));
    assert_int_equal(FORWARD(300 * SECOND + 1, 0, unicast(2, 1)), ALL_BUT(0));
    FORWARD(301 * SECOND, 4, unicast(1, 9));
    assert_int_equal(FORWARD(600 * SECOND, 0, unicast(2, 1)), PORT(4));
}

static void test_address_table_full(void **state)
{
    bridge_make(8, 4, true);
    for (uint32_t host = 1; host <= 8; host++) {
        FORWARD(host, 1, unicast(host, 100));
    }
    FORWARD(10, 2, unicast(9, 100));
    assert_int_equal(cw_bridge_counters(bridge)->addresses_full, 1);
    assert_int_equal(cw_bridge_address_count(bridge), 8);
    assert_int_equal(FORWARD(10, 0, unicast(1, 9)), ALL_BUT(0)); /* not learnt: flooded, not lost */
    assert_int_equal(FORWARD(10, 0, unicast(200, 8)), PORT(1));
    /* Once they are too old the longest unseen loses its row. */
    FORWARD(400 * SECOND, 2, unicast(9, 100));
    assert_int_equal(FORWARD(400 * SECOND, 0, unicast(201, 9)), PORT(2));
    assert_int_equal(cw_bridge_address_count(bridge), 8);
}

static void test_table_against_model(void **state)
{
    enum { HOSTS = 40, ROWS = 64 };
    bridge_make(ROWS, 4, true);
    struct cw_random random;
    int model[HOSTS];
    cw_random_seed(&random, 3);
    memset(model, -1, sizeof(model));
    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t from = (uint32_t)cw_random_below(&random, HOSTS);
        uint32_t to = (uint32_t)cw_random_below(&random, HOSTS);
        uint32_t port = (uint32_t)cw_random_below(&random, PORTS);
        uint64_t expected;
        if (cw_random_chance(&random, 0.01)) {
            cw_bridge_port_flush(bridge, port);
            for (int host = 0; host < HOSTS; host++) {
                model[host] = model[host] == (int)port ? -1 : model[host];
            }
            continue;
        }
        model[from] = (int)port;
        expected = model[to] < 0 ? ALL_BUT(port) : (PORT(model[to]) & ALL_BUT(port));
        assert_int_equal(FORWARD(i, port, unicast(from + 1, to + 1)), expected);
    }
}

static void test_addresses_by_hand(void **state)
{
    bridge_make(2, 4, true);
    uint8_t mac[6];
    mac_of(mac, 1);
    assert_int_equal(cw_bridge_address_set(bridge, mac, 4), CW_OK);
    assert_int_equal(FORWARD(0, 2, unicast(1, 5)), ALL_BUT(2)); /* another host pretends to be host 1 */
    assert_int_equal(FORWARD(1000 * SECOND, 0, unicast(3, 1)), PORT(4));
    assert_int_equal(cw_bridge_address_set(bridge, mac, PORTS), CW_ERROR_ARGUMENT);
    mac_of(mac, 7);
    assert_int_equal(cw_bridge_address_set(bridge, mac, 1), CW_ERROR_LIMIT);
    mac[0] = 1;
    assert_int_equal(cw_bridge_address_set(bridge, mac, 1), CW_ERROR_ARGUMENT);
}

static void test_mesh_ports(void **state)
{
    bridge_make(16, 4, true);
    struct frame frame = unicast(1, 2);
    cw_bridge_mesh_port_set(bridge, 4, true);
    cw_bridge_mesh_port_set(bridge, 5, true);
    memset(frame.bytes, 0xff, 6);
    assert_int_equal(forward(0, 0, &frame), ALL_BUT(0));
    assert_int_equal(forward(0, 4, &frame), ALL_BUT(4) & ~PORT(5));
    FORWARD(0, 5, unicast(9, 1));
    assert_int_equal(FORWARD(0, 4, unicast(8, 9)), 0);
    assert_int_equal(FORWARD(0, 0, unicast(8, 9)), PORT(5));
}

static void test_malformed(void **state)
{
    bridge_make(16, 4, true);
    struct frame frame = unicast(1, 2);
    for (frame.length = 0; frame.length < 14; frame.length++) {
        assert_int_equal(forward(0, 0, &frame), 0);
    }
    assert_int_equal(cw_bridge_counters(bridge)->dropped_short, 14);
    frame.bytes[6] = 3; /* multicast source */
    assert_int_equal(forward(0, 0, &frame), 0);
    memset(frame.bytes + 6, 0, 6);
    assert_int_equal(forward(0, 0, &frame), 0);
    assert_int_equal(cw_bridge_counters(bridge)->dropped_source, 2);
    frame = unicast(1, 2);
    memcpy(frame.bytes, "\x01\x80\xc2\x00\x00\x0e", 6);
    assert_int_equal(forward(0, 0, &frame), 0);
    assert_int_equal(cw_bridge_counters(bridge)->dropped_reserved, 1);
    assert_int_equal(cw_bridge_forward(bridge, 0, PORTS, frame.bytes, 60, NULL), 0);
}

static void test_bad_configurations(void **state)
{
    static const uint32_t rows[][3] = {
        {0, 1, 1}, {CW_BRIDGE_PORTS_MAX + 1, 1, 1},     {4, 0, 1},
        {4, 1, 0}, {4, CW_BRIDGE_ADDRESSES_MAX + 1, 1}, {4, 1, CW_BRIDGE_GROUPS_MAX + 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_bridge_config config;
        cw_bridge_config_init(&config);
        config.port_count = rows[i][0];
        config.address_count_max = rows[i][1];
        config.group_count_max = rows[i][2];
        assert_int_equal(cw_bridge_create(&config, &bridge), CW_ERROR_ARGUMENT);
        assert_null(bridge);
    }
}

/* ---- groups ---- */

static void test_groups_by_hand(void **state)
{
    bridge_make(16, 2, true);
    uint8_t mac[6];
    group_mac_of(mac, GROUP);
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), ALL_BUT(0));
    assert_int_equal(cw_bridge_group_join(bridge, mac, 2), CW_OK);
    assert_int_equal(cw_bridge_group_join(bridge, mac, 2), CW_OK);
    assert_int_equal(cw_bridge_group_join(bridge, mac, 4), CW_OK);
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), PORT(2) | PORT(4));
    assert_int_equal(FORWARD(0, 2, ipv4(1, GROUP, 17, 40)), PORT(4));
    cw_bridge_router_port_set(bridge, 5, true);
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), PORT(2) | PORT(4) | PORT(5));
    cw_bridge_router_port_set(bridge, 5, false);
    cw_bridge_port_flush(bridge, 2); /* keeps what was set by hand */
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), PORT(2) | PORT(4));
    assert_int_equal(cw_bridge_group_leave(bridge, mac, 2), CW_OK);
    assert_int_equal(cw_bridge_group_leave(bridge, mac, 2), CW_ERROR_NOT_FOUND);
    assert_int_equal(cw_bridge_group_leave(bridge, mac, 4), CW_OK);
    assert_int_equal(cw_bridge_group_count(bridge), 0);
    mac_of(mac, 3);
    assert_int_equal(cw_bridge_group_join(bridge, mac, 2), CW_ERROR_ARGUMENT);
    for (uint32_t i = 0; i < 3; i++) {
        group_mac_of(mac, GROUP + i);
        assert_int_equal(cw_bridge_group_join(bridge, mac, 2), i < 2 ? CW_OK : CW_ERROR_LIMIT);
    }
}

static void test_igmp_v2(void **state)
{
    bridge_make(16, 4, true);
    assert_int_equal(FORWARD(0, 3, igmp_v2(3, 0x16, GROUP)), 0); /* no router to tell */
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), PORT(3));
    FORWARD(0, 4, igmp_v2(4, 0x12, GROUP));
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), PORT(3) | PORT(4));
    FORWARD(0, 3, igmp_v2(3, 0x17, GROUP));
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), PORT(4));
    FORWARD(0, 4, igmp_v2(4, 0x17, GROUP));
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), ALL_BUT(0));
    assert_int_equal(cw_bridge_counters(bridge)->igmp_reports, 4);
    assert_int_equal(cw_bridge_group_count(bridge), 0);
}

/* Behind a router port a switch takes all members here for one host: it hears of the last one's leave only. */
static void routers_learn_of_the_last_leave(void **state)
{
    bridge_make(16, 4, true);
    FORWARD(0, 5, igmp_query(5));
    assert_int_equal(FORWARD(0, 3, igmp_v2(3, 0x16, GROUP)), PORT(5));
    assert_int_equal(FORWARD(0, 4, igmp_v2(4, 0x16, GROUP)), PORT(5));
    FORWARD(0, 5, igmp_v2(5, 0x16, GROUP)); /* a host there is a member, too, and does not count */
    assert_int_equal(FORWARD(0, 3, igmp_v2(3, 0x17, GROUP)), 0);
    assert_int_equal(FORWARD(0, 4, igmp_v2(4, 0x17, GROUP)), PORT(5));
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), PORT(5));
}

static void test_igmp_v3(void **state)
{
    /* type of record, sources, is a member afterwards (starting as none) */
    static const struct {
        uint8_t type;
        uint32_t source_count;
        bool member_if_none;
        bool member_if_one;
    } rows[] = {
        {1, 0, false, false}, {1, 2, true, true},  {2, 0, true, true},   {2, 1, true, true},
        {3, 0, false, false}, {3, 1, true, true},  {4, 0, true, true},   {5, 0, false, true},
        {5, 3, true, true},   {6, 1, false, true}, {99, 0, false, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int before = 0; before < 2; before++) {
            bridge_make(16, 4, false);
            struct record join = {4, 0, GROUP}, row = {rows[i].type, rows[i].source_count, GROUP};
            bool member = before ? rows[i].member_if_one : rows[i].member_if_none;
            if (before) {
                FORWARD(0, 3, igmp_v3(3, &join, 1));
            }
            assert_int_equal(FORWARD(0, 3, igmp_v3(3, &row, 1)), ALL_BUT(3)); /* 224.0.0.22 */
            assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), member ? PORT(3) : 0);
            assert_int_equal(cw_bridge_counters(bridge)->igmp_malformed, 0);
        }
    }
}

static void test_igmp_v3_many_records(void **state)
{
    bridge_make(16, 8, false);
    struct record records[] = {
        {4, 2, GROUP}, {2, 0, GROUP + 1}, {3, 0, GROUP + 2}, {6, 1, GROUP + 3}, {5, 1, GROUP + 4}};
    FORWARD(0, 3, igmp_v3(3, records, 5));
    assert_int_equal(cw_bridge_group_count(bridge), 3);
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP + 1, 17, 40)), PORT(3));
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP + 2, 17, 40)), 0);
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP + 4, 17, 40)), PORT(3));
}

/* 239.1.2.3 and 225.1.2.3 share a MAC address: one is left, the other stays. */
static void test_groups_with_the_same_mac(void **state)
{
    bridge_make(16, 4, false);
    uint32_t other = 0xe1010203;
    FORWARD(0, 3, igmp_v2(3, 0x16, GROUP));
    FORWARD(0, 3, igmp_v2(3, 0x16, other));
    FORWARD(0, 3, igmp_v2(3, 0x17, other));
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), PORT(3));
    assert_int_equal(FORWARD(0, 0, ipv4(1, other, 17, 40)), 0);
}

static void test_members_age_only_with_a_querier(void **state)
{
    bridge_make(16, 4, false);
    uint64_t now = 10000 * SECOND;
    FORWARD(0, 3, igmp_v2(3, 0x16, GROUP));
    FORWARD(0, 4, igmp_v2(4, 0x16, GROUP));
    assert_int_equal(FORWARD(now, 0, ipv4(1, GROUP, 17, 40)), PORT(3) | PORT(4));
    /* A querier appears at port 5, which gets all multicast from now on; only host 3 answers. */
    assert_int_equal(FORWARD(now, 5, igmp_query(5)), ALL_BUT(5));
    FORWARD(now + SECOND, 3, igmp_v2(3, 0x16, GROUP));
    assert_int_equal(FORWARD(now + 200 * SECOND, 0, ipv4(1, GROUP, 17, 40)), PORT(3) | PORT(4) | PORT(5));
    FORWARD(now + 200 * SECOND, 5, igmp_query(5));
    assert_int_equal(FORWARD(now + 261 * SECOND, 0, ipv4(1, GROUP, 17, 40)), PORT(3) | PORT(5));
    /* It falls silent: no router port any more, and nothing ages. */
    assert_int_equal(FORWARD(now + 9000 * SECOND, 0, ipv4(1, GROUP, 17, 40)), PORT(3));
}

static void test_group_table_full(void **state)
{
    bridge_make(16, 4, true);
    for (uint32_t i = 0; i < 5; i++) {
        FORWARD(0, 3, igmp_v2(3, 0x16, GROUP + i));
    }
    assert_int_equal(cw_bridge_group_count(bridge), 4);
    assert_int_equal(cw_bridge_counters(bridge)->groups_full, 1);
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP + 4, 17, 40)), ALL_BUT(0));
}

static void test_unregistered(void **state)
{
    bridge_make(16, 4, false);
    struct frame frame = unicast(1, 2);
    assert_int_equal(FORWARD(0, 0, ipv4(1, GROUP, 17, 40)), 0);
    assert_int_equal(FORWARD(0, 0, ipv4(1, 0xe00000fb, 17, 40)), ALL_BUT(0)); /* 224.0.0.251 */
    memcpy(frame.bytes, "\x33\x33\x00\x00\x00\x01", 6);
    assert_int_equal(forward(0, 0, &frame), ALL_BUT(0)); /* IPv6 */
    assert_int_equal(cw_bridge_counters(bridge)->flooded_group, 1);
}

/* ---- hostile frames ---- */

static void test_malformed_igmp(void **state)
{
    static const struct {
        uint32_t at;
        uint16_t value;
        bool is_summed;
    } changes[] = {
        {40, 60000, true},   /* more records than there are */
        {44, 65535, true},   /* more sources than there are */
        {50, 0x0100, false}, /* wrong checksum */
        {20, 0x2000, false}, /* a fragment */
        {14, 0x4f00, false}, /* a header longer than the packet */
    };
    struct record record = {4, 1, GROUP};
    struct frame good = igmp_v3(3, &record, 1);
    bridge_make(16, 4, true);
    struct frame frame;
    for (uint32_t length = 14; length < good.length; length++) { /* cut off anywhere */
        frame = good;
        frame.length = length;
        forward(0, 3, &frame);
    }
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        frame = good;
        put16(frame.bytes + changes[i].at, changes[i].value);
        if (changes[i].is_summed) {
            checksum_set(frame.bytes + 34, 20, 2);
        }
        forward(0, 3, &frame);
    }
    frame = igmp_v2(3, 0x16, 0x0a000001); /* group is no group */
    group_mac_of(frame.bytes, GROUP);
    put32(frame.bytes + 30, GROUP);
    forward(0, 3, &frame);
    assert_int_equal(cw_bridge_group_count(bridge), 0);
    assert_true(cw_bridge_counters(bridge)->igmp_malformed > 20);
    forward(0, 3, &good);
    assert_int_equal(cw_bridge_group_count(bridge), 1);
}

static void test_random_frames(void **state)
{
    bridge_make(64, 16, true);
    struct record records[] = {{4, 2, GROUP}, {2, 0, GROUP + 1}};
    struct cw_random random;
    cw_random_seed(&random, 11);
    for (uint64_t i = 0; i < 50000; i++) {
        struct frame frame =
            cw_random_chance(&random, 0.5) ? igmp_v3(3, records, 2) : igmp_v2(4, 0x16, GROUP + (uint32_t)i % 40);
        uint64_t changes = cw_random_below(&random, 6);
        for (uint64_t k = 0; k < changes; k++) {
            frame.bytes[cw_random_below(&random, frame.length)] = (uint8_t)cw_random_next(&random);
        }
        if (cw_random_chance(&random, 0.5)) { /* so that it is not the checksum that stops it */
            checksum_set(frame.bytes + 34, frame.length - 34, 2);
        }
        frame.length = (uint32_t)cw_random_between(&random, frame.length / 2, frame.length);
        forward(i * 1000000, (uint32_t)cw_random_below(&random, PORTS), &frame);
        assert_true(cw_bridge_address_count(bridge) <= 64 && cw_bridge_group_count(bridge) <= 16);
    }
}

int main(void)
{
    return TESTS_RUN_EACH(NULL, bridge_end, test_learning, test_broadcast, test_ageing, test_address_table_full,
                          test_table_against_model, test_addresses_by_hand, test_mesh_ports, test_malformed,
                          test_bad_configurations, test_groups_by_hand, test_igmp_v2, routers_learn_of_the_last_leave,
                          test_igmp_v3, test_igmp_v3_many_records, test_groups_with_the_same_mac,
                          test_members_age_only_with_a_querier, test_group_table_full, test_unregistered,
                          test_malformed_igmp, test_random_frames);
}
