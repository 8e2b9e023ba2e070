/* Measured parameters: the file and its rejected forms, its order, and answers between, next to and beyond tested
 * points. */
#include <math.h>

#include "built_plans.h"
#include "collectives/choose/measured.h"

static void assert_near(double value, double expected)
{
    assert_true_msg(fabs(value - expected) <= 1e-4 * fabs(expected), "%.9g is not %.9g", value, expected);
}

static void test_add(struct cw_measured *measured, enum cw_collective collective, uint32_t ranks, uint64_t bytes,
                     const char *algorithm, double time_ns)
{
    struct cw_measured_test test = {.collective = collective, .ranks = ranks, .bytes = bytes, .time_ns = time_ns};
    strncpy(test.algorithm, algorithm, sizeof(test.algorithm) - 1);
    test.parameters.segment_bytes = strcmp(algorithm, "segmented-chain") == 0 ? bytes / 4 : 0;
    assert_int_equal(cw_measured_add_test(measured, &test), CW_OK);
}

static struct cw_measured *sample_make(void)
{
    struct cw_measured *measured = cw_measured_create();
    struct cw_measured_network row = {
        .path = CW_MEASURED_WIRE,
        .ranks = 4,
        .network = {.ports = 2, .copy_ns_per_byte = 0.125, .reduce_ns_per_byte = 0.25, .contention = 0.5},
        .concurrent_count = 1,
        .concurrent = {{1024, 2, 100, 150, 110}},
    };
    assert_non_null(measured);
    row.network.paths[0] = cw_plogp_linear(5000, 700, 1.25);
    row.network.paths[1] = row.network.paths[0];
    assert_int_equal(cw_measured_add_network(measured, &row), CW_OK);
    test_add(measured, CW_BCAST, 4, 4096, "flat", 1600);
    test_add(measured, CW_BCAST, 4, 4096, "segmented-chain", 3200);
    test_add(measured, CW_BCAST, 4, 64, "flat", 400);
    test_add(measured, CW_BCAST, 4, 65536, "flat", 25600);
    test_add(measured, CW_BCAST, 4, 65536, "segmented-chain", 6400);
    test_add(measured, CW_BCAST, 3, 64, "chain", 300);
    test_add(measured, CW_BARRIER, 4, 0, "tree", 900);
    return measured;
}

/* In any order of adding: sorted, and the last word counts. */
static void rows_are_kept_in_order(void **state)
{
    struct cw_measured *measured = sample_make();
    assert_int_equal(measured->test_count, 7);
    assert_int_equal(measured->tests[0].ranks, 3);
    assert_int_equal(measured->tests[1].bytes, 64);
    assert_string_equal(measured->tests[3].algorithm, "segmented-chain");
    test_add(measured, CW_BCAST, 4, 4096, "flat", 1700);
    assert_int_equal(measured->test_count, 7);
    assert_near(measured->tests[2].time_ns, 1700);
    cw_measured_destroy(measured);
}

static void what_is_written_is_read_again(void **state)
{
    struct cw_measured *measured = sample_make(), *again;
    char error[400] = "";
    char *text = cw_measured_encode(measured);
    assert_non_null(text);
    assert_true_msg(cw_measured_decode(text, strlen(text), &again, error, sizeof(error)) == CW_OK, "%s", error);
    char *second = cw_measured_encode(again);
    assert_string_equal(text, second);
    assert_int_equal(again->network_count, 1);
    assert_int_equal(again->networks[0].network.ports, 2);
    assert_near(again->networks[0].concurrent[0].all_ns, 150);
    assert_int_equal(again->test_count, measured->test_count);
    for (uint32_t i = 0; i < again->test_count; i++) {
        assert_string_equal(again->tests[i].algorithm, measured->tests[i].algorithm);
        assert_int_equal(again->tests[i].parameters.segment_bytes, measured->tests[i].parameters.segment_bytes);
    }
    /* cut off anywhere it is refused, with a reason */
    for (size_t length = 0; length + 2 < strlen(text); length++) {
        error[0] = '\0';
        assert_int_equal(cw_measured_decode(text, length, &again, error, sizeof(error)), CW_ERROR_ARGUMENT);
        assert_true(error[0] != '\0');
    }
    cw_measured_destroy(again);
    cw_measured_destroy(measured);
    free(second);
    free(text);
}

#define NETWORK(more)                                                                                           \
    "{\"causeway-plogp\": 1, \"tests\": [], \"networks\": [{\"path\": \"shared\", \"ranks\": 2, \"ports\": 1, " \
    "\"copy_ns_per_byte\": 0, \"reduce_ns_per_byte\": 0, \"contention\": 0, " more "}]}"
#define TEST(more)                                                                                           \
    "{\"causeway-plogp\": 1, \"networks\": [], \"tests\": [{\"path\": \"wire\", \"collective\": \"bcast\", " \
    "\"ranks\": 2, \"bytes\": 8, " more "}]}"

static void nonsense_is_rejected_with_place_and_reason(void **state)
{
    static const struct {
        const char *text;
        const char *says; /* NULL: it is good */
    } rows[] = {
        {"{\"causeway-plogp\": 1, \"networks\": [], \"tests\": []}", NULL},
        {NETWORK("\"latency_ns\": 1, \"points\": [[0, 2, 1, 1]]"), NULL},
        {TEST("\"ns\": {\"flat\": 5.5}"), NULL},
        {TEST("\"ns\": {\"of-another-program\": 5.5}"), NULL},
        {"", "line 1"},
        {"[]", "an object is wanted"},
        {"{\"networks\": [], \"tests\": []}", "\"causeway-plogp\" is missing"},
        {"{\"causeway-plogp\": 2, \"networks\": [], \"tests\": []}", "from 1 to 1"},
        {"{\"causeway-plogp\": 1, \"networks\": {}, \"tests\": []}", "are lists"},
        {"{\"causeway-plogp\": 1, \"networks\": [], \"tests\": [], \"x\": 1}", "unknown key \"x\""},
        {"{\"causeway-plogp\": 1, \"networks\": [], \"networks\": [], \"tests\": []}", "line 1"},
        {"{\"causeway-plogp\": 1, \"networks\": [7], \"tests\": []}", "networks, row 1: an object is wanted"},
        {NETWORK("\"latency_ns\": 1"), "\"points\" is missing"},
        {NETWORK("\"latency_ns\": -1, \"points\": [[0, 2, 1, 1]]"), "latency_ns"},
        {NETWORK("\"latency_ns\": 1, \"points\": []"), "1 to 64 points"},
        {NETWORK("\"latency_ns\": 1, \"points\": [[0, 2, 1]]"), "point 1 is not"},
        {NETWORK("\"latency_ns\": 1, \"points\": [[0, 2, 3, 1]]"), "cannot be longer than the gap"},
        {NETWORK("\"latency_ns\": 1, \"points\": [[8, 2, 1, 1], [8, 2, 1, 1]]"), "sizes must rise"},
        {NETWORK("\"latency_ns\": 1, \"points\": [[0, 2, 1, 1]], \"concurrent\": [[1, 2]]"), "concurrent 1 is not"},
        {TEST("\"ns\": []"), "\"ns\" is no object"},
        {TEST("\"ns\": {\"flat\": \"soon\"}"), "tests, row 1: \"flat\" is no number"},
        {TEST("\"ns\": {\"flat\": 0}"), "less than a nanosecond"},
        {TEST("\"ns\": {\"\": 1}"), "is no name of an algorithm"},
        {TEST("\"ns\": {\"flat\": 1}, \"degree\": {\"d-ary\": 2}"), "which has no time"},
        {TEST("\"ns\": {\"flat\": 1}, \"degree\": {\"flat\": 0}"), "\"degree\" is no whole number"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_measured *measured = NULL;
        char error[400] = "";
        int status = cw_measured_decode(rows[i].text, strlen(rows[i].text), &measured, error, sizeof(error));
        assert_true_msg((status == CW_OK) == (rows[i].says == NULL) &&
                            (rows[i].says == NULL || strstr(error, rows[i].says)),
                        "%s: %d, '%s'", rows[i].text, status, error);
        assert_true(status == CW_OK || measured == NULL);
        cw_measured_destroy(measured);
    }
}

static struct cw_measured_answer best_of(const struct cw_measured *measured, enum cw_collective collective,
                                         uint32_t ranks, uint64_t bytes)
{
    struct cw_measured_answer answers[CW_CANDIDATES_MAX];
    struct cw_problem *problem = problem_built(
        &(struct cw_problem_request){.collective = collective, .ranks = ranks, .element_bytes = 1, .count = bytes});
    uint32_t count = cw_measured_answers(measured, CW_MEASURED_SHARED, problem, answers, CW_CANDIDATES_MAX);
    cw_problem_destroy(problem);
    for (uint32_t i = 1; i < count; i++) {
        assert_true(answers[i - 1].time_ns <= answers[i].time_ns);
    }
    return count > 0 ? answers[0] : (struct cw_measured_answer){.algorithm = "nothing"};
}

static void answers_lie_between_tests(void **state)
{
    static const struct {
        uint32_t ranks;
        uint64_t bytes;
        const char *algorithm;
        double time_ns; /* 0: any */
    } rows[] = {
        {4, 4096, "flat", 1600},
        {4, 65536, "segmented-chain", 6400},
        {4, 8, "flat", 400},                   /* below the first */
        {4, 16384, "segmented-chain", 4525},   /* halfway in logarithms */
        {4, 4096 + 4096 / 4, "flat", 0},       /* nearer to the size where flat is faster */
        {4, 131072, "segmented-chain", 12424}, /* beyond the last: with the size */
        {4, 16 << 20, "nothing", 0},           /* too far beyond */
        {3, 64, "chain", 300},
        {5, 64, "chain", 300}, /* no power of two: 3 is nearer to it than 4 */
        {8, 64, "flat", 400},
        {9, 64, "nothing", 0},
        {2, 64, "flat", 400},
        {6, 4096, "nothing", 0}, /* the nearest is 3, tested with 64 bytes only */
    };
    struct cw_measured *measured = sample_make();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_measured_answer answer = best_of(measured, CW_BCAST, rows[i].ranks, rows[i].bytes);
        if (strcmp(answer.algorithm, rows[i].algorithm) != 0 ||
            (rows[i].time_ns > 0 && fabs(answer.time_ns / rows[i].time_ns - 1) > 0.01)) {
            fail_msg("row %zu: %s, %g ns", i, answer.algorithm, answer.time_ns);
        }
    }
    assert_int_equal(best_of(measured, CW_BCAST, 4, 20000).parameters.segment_bytes, 16384);
    assert_string_equal(best_of(measured, CW_BARRIER, 4, 0).algorithm, "tree");
    assert_string_equal(best_of(measured, CW_GATHER, 4, 64).algorithm, "nothing");
    cw_measured_destroy(measured);
}

/* Tests, then measured parameters, then figures of the program's own. */
static void choices_have_a_reason(void **state)
{
    struct cw_measured *measured = sample_make();
    struct cw_candidate best;
    enum cw_measured_origin origin;
    struct cw_problem *problem = problem_built(
        &(struct cw_problem_request){.collective = CW_BCAST, .ranks = 4, .element_bytes = 1, .count = 4096});
    const struct cw_choose_request asked = {.problem = problem, .eager_max_bytes = 8192};
    assert_int_equal(cw_measured_choose(measured, CW_MEASURED_SHARED, NULL, &asked, &best, &origin), CW_OK);
    assert_int_equal(origin, CW_BY_TEST);
    assert_string_equal(best.algorithm->name, "flat");
    assert_int_equal(best.parameters.eager_max_bytes, 8192);
    /* algorithms without a schedule are for others */
    test_add(measured, CW_BCAST, 4, 4096, "of-another-kind", 10);
    assert_int_equal(cw_measured_choose(measured, CW_MEASURED_SHARED, NULL, &asked, &best, &origin), CW_OK);
    assert_string_equal(best.algorithm->name, "flat");
    assert_string_equal(best_of(measured, CW_BCAST, 4, 4096).algorithm, "of-another-kind");
    assert_int_equal(cw_measured_choose(measured, CW_MEASURED_WIRE, NULL, &asked, &best, &origin), CW_OK);
    assert_int_equal(origin, CW_BY_MODEL);
    assert_int_equal(cw_measured_choose(NULL, CW_MEASURED_WIRE, NULL, &asked, &best, &origin), CW_OK);
    assert_int_equal(origin, CW_BY_DEFAULTS);
    assert_true(best.time_ns > 0);
    cw_problem_destroy(problem);
    cw_measured_destroy(measured);
}

static void built_in_figures_are_valid(void **state)
{
    for (uint32_t path = 0; path < CW_MEASURED_PATHS; path++) {
        struct cw_network network;
        char error[200] = "";
        assert_false(cw_measured_network(NULL, path, 8, &network));
        assert_int_equal(cw_network_validate(&network, error, sizeof(error)), CW_OK);
        assert_int_equal(cw_measured_path_find(cw_measured_path_name(path)), path);
    }
    assert_int_equal(cw_measured_path_find("carrier-pigeon"), CW_MEASURED_PATHS);
}

/* Queue pairs are no packets: measurements of one do not apply to the other. */
static void paths_are_distinguished(void **state)
{
    struct cw_measured *measured = cw_measured_create();
    struct cw_measured_network row = {.path = CW_MEASURED_RDMA, .ranks = 8};
    struct cw_network network;
    assert_false(cw_measured_network(measured, CW_MEASURED_RDMA, 8, &row.network));
    assert_int_equal(cw_measured_add_network(measured, &row), CW_OK);
    assert_true(cw_measured_network(measured, CW_MEASURED_RDMA, 4, &network));
    assert_false(cw_measured_network(measured, CW_MEASURED_WIRE, 4, &network));
    assert_true(row.network.paths[CW_PATH_LAN].latency_ns < network.paths[CW_PATH_LAN].latency_ns);
    cw_measured_destroy(measured);
}

static void clusters_make_a_network_wide(void **state)
{
    const struct cw_measured_wan wide = {.host_bps = 100000000,
                                         .host_delay_ns = 40000,
                                         .rank_bps = 62500000,
                                         .link_bps = 250000000,
                                         .delay_ns = 10000000};
    struct cw_network before, network;
    char error[200];
    (void)cw_measured_network(NULL, CW_MEASURED_WIRE, 8, &before);
    network = before;
    cw_measured_wan_apply(&network, &wide);
    assert_int_equal(cw_network_validate(&network, error, sizeof(error)), CW_OK);
    assert_true(network.paths[CW_PATH_LAN].latency_ns == before.paths[CW_PATH_LAN].latency_ns + 40000);
    assert_true(network.paths[CW_PATH_WAN].latency_ns == before.paths[CW_PATH_LAN].latency_ns + 10000000);
    double lan_ns = cw_plogp_gap(&network.paths[CW_PATH_LAN], 1000000),
           wan_ns = cw_plogp_gap(&network.paths[CW_PATH_WAN], 1000000);
    assert_true(lan_ns > 80e6 && lan_ns < 80.1e6); /* 8 Mb at 100 Mb/s */
    assert_true(wan_ns > 128e6 && wan_ns < 128.1e6);
    assert_true(network.wan_bytes_per_ns == 0.03125);
    assert_int_equal(cw_measured_senders(&wide), 4);
    const struct cw_measured_wan narrow = {.rank_bps = 100, .link_bps = 50};
    assert_int_equal(cw_measured_senders(&narrow), 1);
    const struct cw_measured_wan unknown = {.delay_ns = 10000000}; /* the rate of one rank, for lack of a better one */
    network = before;
    cw_measured_wan_apply(&network, &unknown);
    assert_int_equal(cw_network_validate(&network, error, sizeof(error)), CW_OK);
    assert_true(network.wan_bytes_per_ns > 1.19 && network.wan_bytes_per_ns < 1.21);
    assert_int_equal(cw_measured_senders(&unknown), 1);
}

int main(void)
{
    return TESTS_RUN(paths_are_distinguished, clusters_make_a_network_wide, rows_are_kept_in_order,
                     what_is_written_is_read_again, nonsense_is_rejected_with_place_and_reason,
                     answers_lie_between_tests, choices_have_a_reason, built_in_figures_are_valid);
}
