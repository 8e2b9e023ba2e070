/* Quantities as people write them. */
#include "control/settings/units.h"
#include "tests/test.h"
#include "tests/unit/parse_rows.h"

static void test_bytes(void **state)
{
    CHECK_ROWS(cw_units_bytes, {"0", true, 0}, {"1500", true, 1500}, {"64K", true, 65536}, {"256KB", true, 256000},
               {"1.5KiB", true, 1536}, {"2G", true, 2ull << 30}, {"", false, 0}, {"K", false, 0}, {"-1", false, 0},
               {"1.3", false, 0}, {"10 K", false, 0}, {"1e6", false, 0}, {"99999999999G", false, 0}, {"1..2", false, 0},
               {"0x10", false, 0}, {"inf", false, 0}, {"10Kb", false, 0});
}

static void test_rate(void **state)
{
    CHECK_ROWS(cw_units_rate, {"10Gbps", true, 10000000000}, {"2.5G", true, 2500000000}, {"64kbps", true, 64000},
               {"100Mbit", true, 100000000}, {"9600", true, 9600}, {"10GB", false, 0}, {"fast", false, 0});
}

static void test_duration(void **state)
{
    CHECK_ROWS(cw_units_duration, {"20us", true, 20000}, {"1.5ms", true, 1500000}, {"3s", true, 3000000000},
               {"0", true, 0}, {"100ns", true, 100}, {"2min", true, 120000000000}, {"20", false, 0}, {"us", false, 0},
               {"0.5ns", false, 0});
}

static void test_percent(void **state)
{
    double fraction = 7;
    assert_true(cw_units_percent("1%", &fraction));
    assert_true(fraction > 0.00999 && fraction < 0.01001);
    assert_true(cw_units_percent("100%", &fraction));
    assert_true(cw_units_percent("0", &fraction));
    assert_true(fraction == 0);
    assert_false(cw_units_percent("101%", &fraction));
    assert_false(cw_units_percent("1", &fraction));
    assert_false(cw_units_percent("-1%", &fraction));
    assert_true(fraction == 0);
}

int main(void)
{
    return TESTS_RUN(test_bytes, test_rate, test_duration, test_percent);
}
