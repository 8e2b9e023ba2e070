/* The bridge: learning, ageing, flooding, mesh ports, full tables, malformed frames. */
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
    /* Once they are too old the longest unseen gives up its row. */
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
            cw_bridge_port_forget(bridge, port);
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
    assert_int_equal(FORWARD(0, 2, unicast(1, 5)), ALL_BUT(2)); /* somebody pretends to be host 1 */
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

int main(void)
{
    return TESTS_RUN_EACH(NULL, bridge_end, test_learning, test_broadcast, test_ageing, test_address_table_full,
                          test_table_against_model, test_addresses_by_hand, test_mesh_ports, test_malformed,
                          test_bad_configurations);
}
