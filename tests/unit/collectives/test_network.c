/* Tables of network parameters: values between, below and beyond their points, the networks of the program, and what is
 * refused. */
#include <math.h>
#include <string.h>

#include "collectives/price/network.h"
#include "dataplane/status.h"
#include "tests/test.h"

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9 * fmax(1.0, fabs(expected))) {
        fail_msg("%.12g is not %.12g", value, expected);
    }
}

static const struct cw_plogp sample = {
    .latency_ns = 1000,
    .count = 3,
    .points = {{100, 50, 10, 20}, {200, 100, 30, 20}, {400, 400, 60, 40}},
};

static void values_lie_on_lines(void **state)
{
    static const struct {
        uint64_t bytes;
        double gap, send, receive;
    } cases[] = {
        {0, 50, 10, 20},    {99, 50, 10, 20},   {100, 50, 10, 20},  {150, 75, 20, 20},      {200, 100, 30, 20},
        {300, 250, 45, 30}, {400, 400, 60, 40}, {600, 700, 90, 60}, {1400, 1900, 210, 140},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_near(cw_plogp_gap(&sample, cases[i].bytes), cases[i].gap);
        assert_near(cw_plogp_send(&sample, cases[i].bytes), cases[i].send);
        assert_near(cw_plogp_receive(&sample, cases[i].bytes), cases[i].receive);
    }
}

static void one_point_is_a_constant(void **state)
{
    struct cw_plogp plogp = {.count = 1, .points = {{100, 50, 10, 20}}};
    assert_near(cw_plogp_gap(&plogp, 0), 50);
    assert_near(cw_plogp_gap(&plogp, UINT64_MAX), 50);
    assert_near(cw_plogp_receive(&plogp, 1000), 20);
}

static void overheads_beyond_the_table_stay_below_the_gap(void **state)
{
    struct cw_plogp plogp = {.count = 2, .points = {{0, 100, 0, 0}, {100, 110, 100, 110}}};
    assert_near(cw_plogp_send(&plogp, 1000), cw_plogp_gap(&plogp, 1000));
    assert_near(cw_plogp_receive(&plogp, 1000), cw_plogp_gap(&plogp, 1000));
}

static void linear_path(void **state)
{
    struct cw_plogp plogp = cw_plogp_linear(500, 30, 2);
    assert_near(plogp.latency_ns, 500);
    for (uint64_t bytes = 0; bytes < 1ull << 40; bytes = bytes * 3 + 1) {
        assert_near(cw_plogp_gap(&plogp, bytes), 30 + (double)bytes / 2);
        assert_near(cw_plogp_send(&plogp, bytes), 30);
        assert_near(cw_plogp_receive(&plogp, bytes), 30);
    }
}

static void networks_of_the_program_are_valid(void **state)
{
    char error[128] = "";
    uint32_t count = 0;
    for (const char *name; (name = cw_network_name(count)) != NULL; count++) {
        struct cw_network network;
        assert_int_equal(cw_network_find(name, &network), CW_OK);
        assert_int_equal(cw_network_validate(&network, error, sizeof(error)), CW_OK);
        assert_true(strlen(cw_network_summary(name)) > 10);
        /* so that pipelines are limited by the network, as in the papers */
        for (uint64_t bytes = 1; bytes < 1u << 30; bytes *= 2) {
            const struct cw_plogp *path = &network.paths[CW_PATH_LAN];
            assert_true(cw_plogp_send(path, bytes) + cw_plogp_receive(path, bytes) <= cw_plogp_gap(path, bytes));
        }
    }
    assert_true(count >= 5);
    struct cw_network untouched = {.ports = 77};
    assert_int_equal(cw_network_find("no such network", &untouched), CW_ERROR_NOT_FOUND);
    assert_int_equal(untouched.ports, 77);
    assert_null(cw_network_summary("no such network"));
}

static void networks_of_the_papers(void **state)
{
    struct cw_network network;
    assert_int_equal(cw_network_find("ideal-004", &network), CW_OK);
    assert_near(cw_plogp_gap(&network.paths[CW_PATH_LAN], 32000000), 256e6); /* 32 MB at 1 Gb/s */
    assert_near(network.paths[CW_PATH_WAN].latency_ns, 10e6);
    assert_near(network.wan_bytes_per_ns, 1.25);
    assert_int_equal(cw_network_find("infiniband-2005", &network), CW_OK);
    assert_int_equal(network.ports, 2);
    assert_int_equal(cw_network_find("gigabit", &network), CW_OK);
    assert_near(network.contention, 0.4);
}

/* ---- Refusals: a valid network, and one thing wrong with it ---- */

static void no_points(struct cw_network *network)
{
    network->paths[CW_PATH_LAN].count = 0;
}
static void too_many_points(struct cw_network *network)
{
    network->paths[CW_PATH_WAN].count = CW_PLOGP_POINTS_MAX + 1;
}
static void negative_latency(struct cw_network *network)
{
    network->paths[CW_PATH_LAN].latency_ns = -1;
}
static void endless_latency(struct cw_network *network)
{
    network->paths[CW_PATH_WAN].latency_ns = INFINITY;
}
static void negative_gap(struct cw_network *network)
{
    network->paths[CW_PATH_LAN].points[0].gap_ns = -5;
}
static void no_number(struct cw_network *network)
{
    network->paths[CW_PATH_LAN].points[1].send_ns = NAN;
}
static void send_above_gap(struct cw_network *network)
{
    network->paths[CW_PATH_LAN].points[1].send_ns = 101;
}
static void receive_above_gap(struct cw_network *network)
{
    network->paths[CW_PATH_LAN].points[2].receive_ns = 401;
}
static void sizes_fall(struct cw_network *network)
{
    network->paths[CW_PATH_LAN].points[2].bytes = 200;
}
static void gap_falls(struct cw_network *network)
{
    network->paths[CW_PATH_LAN].points[2].gap_ns = 99;
}
static void send_falls(struct cw_network *network)
{
    network->paths[CW_PATH_WAN].points[2].send_ns = 29;
}
static void no_ports(struct cw_network *network)
{
    network->ports = 0;
}
static void too_many_ports(struct cw_network *network)
{
    network->ports = CW_NETWORK_PORTS_MAX + 1;
}
static void negative_rate(struct cw_network *network)
{
    network->wan_bytes_per_ns = -1;
}
static void negative_copy(struct cw_network *network)
{
    network->copy_ns_per_byte = -0.1;
}
static void reduce_without_number(struct cw_network *network)
{
    network->reduce_ns_per_byte = NAN;
}
static void contention_above_one(struct cw_network *network)
{
    network->contention = 1.1;
}
static void contention_without_number(struct cw_network *network)
{
    network->contention = NAN;
}

static void refusals_name_what_is_wrong(void **state)
{
    static const struct {
        void (*spoil)(struct cw_network *network);
        const char *word;
    } cases[] = {
        {no_points, "number of points"},
        {too_many_points, "between clusters: the number of points"},
        {negative_latency, "inside clusters: the latency is -1"},
        {endless_latency, "between clusters: the latency"},
        {negative_gap, "point 0"},
        {no_number, "point 1"},
        {send_above_gap, "longer than the gap"},
        {receive_above_gap, "longer than the gap"},
        {sizes_fall, "sizes must rise"},
        {gap_falls, "cannot fall"},
        {send_falls, "between clusters, point 2"},
        {no_ports, "ports is 0"},
        {too_many_ports, "ports is 65"},
        {negative_rate, "rate of the link"},
        {negative_copy, "copy"},
        {reduce_without_number, "reduce"},
        {contention_above_one, "contention factor is 1.1"},
        {contention_without_number, "contention"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cw_network network = {.paths = {sample, sample}, .ports = 1};
        char error[128] = "";
        assert_int_equal(cw_network_validate(&network, error, sizeof(error)), CW_OK);
        cases[i].spoil(&network);
        assert_int_equal(cw_network_validate(&network, error, sizeof(error)), CW_ERROR_ARGUMENT);
        if (strstr(error, cases[i].word) == NULL) {
            fail_msg("'%s' does not say '%s'", error, cases[i].word);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_lie_on_lines),
        cmocka_unit_test(one_point_is_a_constant),
        cmocka_unit_test(overheads_beyond_the_table_stay_below_the_gap),
        cmocka_unit_test(linear_path),
        cmocka_unit_test(networks_of_the_program_are_valid),
        cmocka_unit_test(networks_of_the_papers),
        cmocka_unit_test(refusals_name_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
