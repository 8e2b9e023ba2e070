/* The link model: exact rate, delay, queue limit in bytes, faults at their probabilities. */
#include "dataplane/fabric/link.h"
#include "dataplane/limits.h"
#include "tests/test.h"

static const uint64_t GBPS = 1000000000u;

static void test_rate_is_exact(void **state)
{
    static const struct {
        uint64_t rate_bps;
        uint32_t frame_bytes;
        uint32_t overhead_bytes;
    } rows[] = {
        {10 * GBPS, 1514, CW_ETHERNET_OVERHEAD_BYTES}, /* 1230.4 ns a frame */
        {10 * GBPS, 60, CW_ETHERNET_OVERHEAD_BYTES},   /* 67.2 ns */
        {100 * GBPS, 60, 0},                           /* 4.8 ns */
        {3 * GBPS, 1000, 0},                           /* 2666.67 ns */
        {400 * GBPS, 64, 0},                           /* 1.28 ns */
        {9600, 100, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_link_config config = {.rate_bps = rows[i].rate_bps, .overhead_bytes = rows[i].overhead_bytes};
        struct cw_link_verdict verdict;
        struct cw_link link;
        uint64_t frames = 100000;
        double expected_ns =
            (double)frames * (rows[i].frame_bytes + rows[i].overhead_bytes) * 8e9 / (double)rows[i].rate_bps;
        cw_link_init(&link, &config, 1);
        for (uint64_t k = 0; k < frames; k++) {
            cw_link_offer(&link, 0, rows[i].frame_bytes, &verdict);
            assert_int_equal(verdict.fate, CW_LINK_DELIVERED);
        }
        assert_true((double)verdict.departure_ns <= expected_ns + 0.01 &&
                    (double)verdict.departure_ns > expected_ns - 1.01);
    }
}

static void test_delay_and_idle_line(void **state)
{
    struct cw_link_config config = {.rate_bps = GBPS, .delay_ns = 50000};
    struct cw_link_verdict verdict;
    struct cw_link link;
    cw_link_init(&link, &config, 1);
    cw_link_offer(&link, 1000, 125, &verdict); /* 1 us on the line */
    assert_int_equal(verdict.departure_ns, 2000);
    assert_int_equal(verdict.delivery_count, 1);
    assert_int_equal(verdict.deliveries[0].arrival_ns, 52000);
    cw_link_offer(&link, 1500, 125, &verdict); /* waits for the first one */
    assert_int_equal(verdict.departure_ns, 3000);
    cw_link_offer(&link, 9000, 125, &verdict); /* the line has been idle */
    assert_int_equal(verdict.departure_ns, 10000);
    assert_int_equal(verdict.deliveries[0].arrival_ns, 60000);
}

static void test_no_rate_takes_no_time(void **state)
{
    struct cw_link_config config = {.delay_ns = 10, .queue_limit_bytes = 100};
    struct cw_link_verdict verdict;
    struct cw_link link;
    cw_link_init(&link, &config, 1);
    for (int i = 0; i < 1000; i++) {
        cw_link_offer(&link, 5, 9000, &verdict);
        assert_int_equal(verdict.fate, CW_LINK_DELIVERED);
        assert_int_equal(verdict.deliveries[0].arrival_ns, 15);
    }
    assert_int_equal(cw_link_queue_bytes(&link, 5), 0);
}

static void test_queue_limit(void **state)
{
    struct cw_link_config config = {.rate_bps = 8 * GBPS, .queue_limit_bytes = 10000}; /* 1 byte/ns */
    struct cw_link_verdict verdict;
    struct cw_link link;
    cw_link_init(&link, &config, 1);
    for (int i = 0; i < 10; i++) {
        cw_link_offer(&link, 0, 1000, &verdict);
        assert_int_equal(verdict.fate, CW_LINK_DELIVERED);
    }
    assert_int_equal(cw_link_queue_bytes(&link, 0), 10000);
    cw_link_offer(&link, 0, 1, &verdict);
    assert_int_equal(verdict.fate, CW_LINK_DROP_QUEUE);
    assert_int_equal(verdict.delivery_count, 0);
    cw_link_offer(&link, 500, 500, &verdict); /* as much as has left */
    assert_int_equal(verdict.fate, CW_LINK_DELIVERED);
    assert_int_equal(cw_link_queue_bytes(&link, 500), 10000);
    assert_int_equal(cw_link_queue_bytes(&link, 10499), 1);
    assert_int_equal(cw_link_queue_bytes(&link, 20000), 0);
    assert_int_equal(cw_link_queue_bytes_max(&link), 10000);
    assert_int_equal(link.counters.dropped_queue, 1);
    cw_link_offer(&link, 30000, 15000, &verdict); /* longer than the queue, but the line is idle */
    assert_int_equal(verdict.fate, CW_LINK_DELIVERED);
    cw_link_offer(&link, 30000, 1, &verdict);
    assert_int_equal(verdict.fate, CW_LINK_DROP_QUEUE);
}

static void test_down(void **state)
{
    struct cw_link_config config = {.rate_bps = GBPS};
    struct cw_link_verdict verdict;
    struct cw_link link;
    cw_link_init(&link, &config, 1);
    link.down = true;
    cw_link_offer(&link, 0, 100, &verdict);
    assert_int_equal(verdict.fate, CW_LINK_DROP_DOWN);
    assert_int_equal(cw_link_queue_bytes(&link, 0), 0);
    link.down = false;
    cw_link_offer(&link, 0, 100, &verdict);
    assert_int_equal(verdict.fate, CW_LINK_DELIVERED);
    assert_int_equal(link.counters.dropped_down, 1);
    assert_int_equal(link.counters.offered, 2);
    assert_int_equal(link.counters.delivered, 1);
}

/* Bounds of about five standard deviations of 200,000 draws. */
static void test_fault_rates(void **state)
{
    struct cw_link_config config = {.rate_bps = 100 * GBPS,
                                    .delay_ns = 1000,
                                    .loss = 0.01,
                                    .duplicate = 0.02,
                                    .corrupt = 0.05,
                                    .reorder = 0.1,
                                    .reorder_delay_max_ns = 5000};
    struct cw_link_verdict verdict;
    struct cw_link link;
    uint64_t latest = 0, deliveries = 0, corrupt = 0, late = 0;
    cw_link_init(&link, &config, 42);
    for (uint64_t i = 0; i < 200000; i++) {
        cw_link_offer(&link, i * 100, 100, &verdict);
        for (uint32_t k = 0; k < verdict.delivery_count; k++) {
            uint64_t extra_ns = verdict.deliveries[k].arrival_ns - verdict.departure_ns - 1000;
            assert_true(extra_ns <= 5000);
            latest = extra_ns > latest ? extra_ns : latest;
            late += extra_ns > 0;
            corrupt += verdict.deliveries[k].corrupt;
            deliveries++;
        }
    }
    assert_in_range(link.counters.lost, 2000 - 225, 2000 + 225);
    assert_in_range(link.counters.duplicated, 3960 - 315, 3960 + 315);
    assert_in_range(corrupt, 10098 - 490, 10098 + 490);
    assert_in_range(late, 20196 - 675, 20196 + 675);
    assert_true(latest > 4900);
    assert_int_equal(corrupt, link.counters.corrupted);
    assert_int_equal(deliveries, link.counters.delivered + link.counters.duplicated);
    assert_int_equal(link.counters.offered, link.counters.delivered + link.counters.lost);
}

static void test_loss_comes_after_the_queue(void **state)
{
    struct cw_link_config config = {.rate_bps = 8 * GBPS, .loss = 1};
    struct cw_link_verdict verdict;
    struct cw_link link;
    cw_link_init(&link, &config, 1);
    cw_link_offer(&link, 0, 1000, &verdict);
    assert_int_equal(verdict.fate, CW_LINK_DROP_LOSS);
    assert_int_equal(verdict.departure_ns, 1000);
    assert_int_equal(cw_link_queue_bytes(&link, 0), 1000);
}

static void test_corruption_changes_the_frame(void **state)
{
    struct cw_link_config config = {.corrupt = 1};
    struct cw_link link;
    cw_link_init(&link, &config, 9);
    for (uint32_t length = 1; length < 200; length++) {
        uint8_t frame[200] = {0};
        int bits = 0;
        cw_link_corrupt(&link, frame, length);
        for (uint32_t i = 0; i < sizeof(frame); i++) {
            assert_true(i < length || frame[i] == 0);
            bits += __builtin_popcount(frame[i]);
        }
        assert_in_range(bits, 1, CW_LINK_CORRUPT_BITS_MAX);
    }
}

static void test_same_seed_same_verdicts(void **state)
{
    struct cw_link_config config = {
        .rate_bps = GBPS, .loss = 0.3, .duplicate = 0.3, .corrupt = 0.3, .reorder = 0.3, .reorder_delay_max_ns = 99};
    struct cw_link a, b, c;
    int differences = 0;
    cw_link_init(&a, &config, 5);
    cw_link_init(&b, &config, 5);
    cw_link_init(&c, &config, 6);
    for (uint64_t i = 0; i < 1000; i++) {
        struct cw_link_verdict verdict[3];
        memset(verdict, 0, sizeof(verdict));
        cw_link_offer(&a, i * 1000, 64, &verdict[0]);
        cw_link_offer(&b, i * 1000, 64, &verdict[1]);
        cw_link_offer(&c, i * 1000, 64, &verdict[2]);
        assert_memory_equal(&verdict[0], &verdict[1], sizeof(verdict[0]));
        differences += memcmp(&verdict[0], &verdict[2], sizeof(verdict[0])) != 0;
    }
    assert_true(differences > 100);
}

static void test_reconfigured_under_way(void **state)
{
    struct cw_link_config config = {.rate_bps = 8 * GBPS, .queue_limit_bytes = 10000};
    struct cw_link_verdict verdict;
    struct cw_link link;
    cw_link_init(&link, &config, 1);
    cw_link_offer(&link, 0, 4000, &verdict);
    config.rate_bps = 4 * GBPS;
    cw_link_configure(&link, &config);
    cw_link_offer(&link, 0, 1000, &verdict);
    assert_int_equal(verdict.departure_ns, 6000); /* behind the first one, at half the speed */
    assert_int_equal(cw_link_queue_bytes_max(&link), 4000);
}

static void test_bad_configurations(void **state)
{
    const struct cw_link_config bad[] = {
        {.rate_bps = CW_RATE_MAX_BPS + 1},
        {.delay_ns = CW_LINK_DELAY_MAX_NS + 1},
        {.queue_limit_bytes = 1ull << 33},
        {.overhead_bytes = 2000},
        {.loss = 1.1},
        {.duplicate = -0.1},
        {.corrupt = __builtin_nan("")},
        {.reorder = 2},
    };
    struct cw_link_config good = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *reason = NULL;
        assert_false(cw_link_config_valid(&bad[i], &reason));
        assert_non_null(reason);
    }
    assert_true(cw_link_config_valid(&good, NULL));
}

int main(void)
{
    return TESTS_RUN(test_rate_is_exact, test_delay_and_idle_line, test_no_rate_takes_no_time, test_queue_limit,
                     test_down, test_fault_rates, test_loss_comes_after_the_queue, test_corruption_changes_the_frame,
                     test_same_seed_same_verdicts, test_reconfigured_under_way, test_bad_configurations);
}
