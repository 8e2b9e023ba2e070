/* Tables of network parameters: values between, below and beyond their points, the networks of the program, and
 * rejected ones. */
#include <math.h>

#include "collectives/price/network.h"
#include "dataplane/status.h"
#include "tests/test.h"

static void assert_near(double value, double expected)
{
    assert_true_msg(fabs(value - expected) <= 1e-9 * fmax(1.0, fabs(expected)), "%.12g is not %.12g", value, expected);
}

static const struct cw_plogp sample = {
    .latency_ns = 1000,
    .count = 3,
    .points = {{100, 50, 10, 20}, {200, 100, 30, 20}, {400, 400, 60, 40}},
};

static const struct cw_plogp constant = {.count = 1, .points = {{100, 50, 10, 20}}};
/* Overheads beyond the table stay below the gap. */
static const struct cw_plogp steep = {.count = 2, .points = {{0, 100, 0, 0}, {100, 110, 100, 110}}};

static void values_lie_on_lines(void **state)
{
    static const struct {
        const struct cw_plogp *plogp;
        uint64_t bytes;
        double gap, send, receive;
    } cases[] = {
        {&sample, 0, 50, 10, 20},    {&sample, 99, 50, 10, 20},           {&sample, 100, 50, 10, 20},
        {&sample, 150, 75, 20, 20},  {&sample, 200, 100, 30, 20},         {&sample, 300, 250, 45, 30},
        {&sample, 400, 400, 60, 40}, {&sample, 600, 700, 90, 60},         {&sample, 1400, 1900, 210, 140},
        {&constant, 0, 50, 10, 20},  {&constant, UINT64_MAX, 50, 10, 20}, {&steep, 1000, 200, 200, 200},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_near(cw_plogp_gap(cases[i].plogp, cases[i].bytes), cases[i].gap);
        assert_near(cw_plogp_send(cases[i].plogp, cases[i].bytes), cases[i].send);
        assert_near(cw_plogp_receive(cases[i].plogp, cases[i].bytes), cases[i].receive);
    }
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

/* A valid network, and one number of it that is wrong. */
#define AT(field) offsetof(struct cw_network, field)

static void refusals_name_what_is_wrong(void **state)
{
    enum { LAN = CW_PATH_LAN, WAN = CW_PATH_WAN };
    static const struct {
        size_t offset;
        bool is_real;
        double value;
        const char *words;
    } cases[] = {
        {AT(paths[LAN].count), false, 0, "number of points"},
        {AT(paths[WAN].count), false, CW_PLOGP_POINTS_MAX + 1, "between clusters: the number of points"},
        {AT(paths[LAN].latency_ns), true, -1, "inside clusters: the latency is -1"},
        {AT(paths[WAN].latency_ns), true, INFINITY, "between clusters: the latency"},
        {AT(paths[LAN].points[0].gap_ns), true, -5, "point 0"},
        {AT(paths[LAN].points[1].send_ns), true, NAN, "point 1"},
        {AT(paths[LAN].points[1].send_ns), true, 101, "longer than the gap"},
        {AT(paths[LAN].points[2].receive_ns), true, 401, "longer than the gap"},
        {AT(paths[LAN].points[2].bytes), false, 200, "sizes must rise"},
        {AT(paths[LAN].points[2].gap_ns), true, 99, "cannot fall"},
        {AT(paths[WAN].points[2].send_ns), true, 29, "between clusters, point 2"},
        {AT(ports), false, 0, "ports is 0"},
        {AT(ports), false, CW_NETWORK_PORTS_MAX + 1, "ports is 65"},
        {AT(wan_bytes_per_ns), true, -1, "rate of the link"},
        {AT(copy_ns_per_byte), true, -0.1, "copy"},
        {AT(reduce_ns_per_byte), true, NAN, "reduce"},
        {AT(contention), true, 1.1, "contention factor is 1.1"},
        {AT(contention), true, NAN, "contention"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cw_network network = {.paths = {sample, sample}, .ports = 1};
        char error[128] = "";
        uint32_t number = cases[i].is_real ? 0 : (uint32_t)cases[i].value;
        assert_int_equal(cw_network_validate(&network, error, sizeof(error)), CW_OK);
        memcpy((uint8_t *)&network + cases[i].offset, cases[i].is_real ? (const void *)&cases[i].value : &number,
               cases[i].is_real ? sizeof(double) : sizeof(number));
        assert_int_equal(cw_network_validate(&network, error, sizeof(error)), CW_ERROR_ARGUMENT);
        assert_non_null(strstr(error, cases[i].words));
    }
}

int main(void)
{
    return TESTS_RUN(values_lie_on_lines, linear_path, networks_of_the_program_are_valid, refusals_name_what_is_wrong);
}
