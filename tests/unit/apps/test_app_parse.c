/* Numbers, lists and options of the command line; quantities with units: test_units.c. */
#include "apps/cli/cli.h"
#include "control/settings/units.h"
#include "tests/test.h"
#include "tests/unit/parse_rows.h"

static void test_counts(void **state)
{
    CHECK_ROWS(app_parse_count, {"0", true, 0}, {"42", true, 42}, {"0x2a", true, 42},
               {"18446744073709551615", true, UINT64_MAX}, {"18446744073709551616", false, 0}, {"-1", false, 0},
               {" 1", false, 0}, {"1k", false, 0}, {"", false, 0});
}

static void test_lists_and_addresses(void **state)
{
    struct app_list sizes = {.count_max = 3};
    uint8_t mac[6];
    assert_true(app_parse_list("8,1K,1M", cw_units_bytes, &sizes));
    assert_int_equal(sizes.count, 3);
    assert_int_equal(sizes.values[2], 1 << 20);
    assert_false(app_parse_list("8,1K,1M,2M", cw_units_bytes, &sizes));
    assert_false(app_parse_list("8,,9", cw_units_bytes, &sizes));
    assert_false(app_parse_list("", cw_units_bytes, &sizes));
    assert_true(app_parse_mac("01:00:5e:7f:00:0A", mac));
    assert_int_equal(mac[5], 10);
    assert_false(app_parse_mac("01:00:5e:7f:00", mac));
    assert_false(app_parse_mac("01:00:5e:7f:00:0a:", mac));
    assert_false(app_parse_mac("01:00:5e:7f:00:+a", mac));
}

/* ---- options ---- */

struct parsed {
    bool flag;
    const char *text;
    uint64_t count;
    uint64_t rate_bps;
    double loss;
    unsigned int each;
};

static int each_parse(void *context, const char *text)
{
    (*(unsigned int *)context)++;
    return text[0] == '!' ? APP_EXIT_USAGE : APP_EXIT_SUCCESS;
}

static int parse(struct parsed *parsed, int operands_max, char **argv, int *exit_code)
{
    const struct app_option options[] = {
        OPTION_FLAG("flag", "a flag", &parsed->flag),
        OPTION_TEXT("text", "TEXT", "a text", &parsed->text),
        OPTION_COUNT("count", "a count", &parsed->count, 1, 64),
        OPTION_RATE("rate", "a rate", &parsed->rate_bps, 0),
        {"loss", "SHARE", "a share", APP_OPTION_PERCENT, &parsed->loss, 0, 0, NULL},
        OPTION_EACH("each", "TEXT", "many", &parsed->each, each_parse),
        {0},
    };
    int argc = 0;
    while (argv[argc]) {
        argc++;
    }
    return app_options_parse("test [OPTION...]", options, operands_max, argc, argv, exit_code);
}

static void test_options_accepted(void **state)
{
    char *argv[] = {"test",      "--flag", "--text=a", "--count", "64", "--rate",  "1Gbps",
                    "--loss=1%", "--each", "x",        "--each",  "y",  "operand", NULL};
    struct parsed parsed = {0};
    int exit_code = 0;
    assert_int_equal(parse(&parsed, 1, argv, &exit_code), 12);
    assert_true(parsed.flag);
    assert_string_equal(parsed.text, "a");
    assert_int_equal(parsed.count, 64);
    assert_int_equal(parsed.rate_bps, 1000000000);
    assert_int_equal(parsed.each, 2);
}

static void test_options_rejected(void **state)
{
    char *rows[][4] = {
        {"test", "--unknown", NULL},    {"test", "--count", NULL},        {"test", "--count", "65", NULL},
        {"test", "--count", "0", NULL}, {"test", "--rate", "slow", NULL}, {"test", "operand", NULL},
        {"test", "--each", "!", NULL},  {"test", "--flag=1", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct parsed parsed = {.count = 5};
        int exit_code = 0;
        assert_int_equal(parse(&parsed, 0, rows[i], &exit_code), -1);
        assert_int_equal(exit_code, APP_EXIT_USAGE);
        assert_int_equal(parsed.count, 5);
    }
}

int main(void)
{
    return TESTS_RUN(test_counts, test_lists_and_addresses, test_options_accepted, test_options_rejected);
}
