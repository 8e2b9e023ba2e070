/* The link model: exact rate, delay, queue limit in bytes, faults at their probabilities. */
#include "dataplane/fabric/link.h"
#include "dataplane/limits.h"
#include "tests/test.h"

static const uint64_t GBPS = 1000000000u;

/* Of the test that runs. */
static struct cw_link line;
static struct cw_link_verdict verdict;

static void link_open(struct cw_link_config config)
{
    cw_link_init(&line, &config, 1);
}

static void offer(uint64_t now_ns, uint32_t bytes, enum cw_link_fate fate)
{
    cw_link_offer(&line, now_ns, bytes, &verdict);
    assert_int_equal(verdict.fate, fate);
}

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
        uint64_t frames = 100000;
        link_open((struct cw_link_config){.rate_bps = rows[i].rate_bps, .overhead_bytes = rows[i].overhead_bytes});
        double expected_ns =
            (double)frames * (rows[i].frame_bytes + rows[i].overhead_bytes) * 8e9 / (double)rows[i].rate_bps;
        for (uint64_t k = 0; k < frames; k++) {
            offer(0, rows[i].frame_bytes, CW_LINK_DELIVERED);
        }
        assert_true((double)verdict.departure_ns <= expected_ns + 0.01 &&
                    (double)verdict.departure_ns > expected_ns - 1.01);
    }
}

static void test_delay_and_idle_line(void **state)
{
    link_open((struct cw_link_config){.rate_bps = GBPS, .delay_ns = 50000});
    offer(1000, 125, CW_LINK_DELIVERED); /* 1 us on the line */
    assert_int_equal(verdict.departure_ns, 2000);
    assert_int_equal(verdict.delivery_count, 1);
    assert_int_equal(verdict.deliveries[0].arrival_ns, 52000);
    offer(1500, 125, CW_LINK_DELIVERED); /* waits for the first one */
    assert_int_equal(verdict.departure_ns, 3000);
    offer(9000, 125, CW_LINK_DELIVERED); /* the line has been idle */
    assert_int_equal(verdict.departure_ns, 10000);
    assert_int_equal(verdict.deliveries[0].arrival_ns, 60000);
}

static void test_no_rate_needs_no_time(void **state)
{
    link_open((struct cw_link_config){.delay_ns = 10, .queue_limit_bytes = 100});
    for (int i = 0; i < 1000; i++) {
        offer(5, 9000, CW_LINK_DELIVERED);
        assert_int_equal(verdict.deliveries[0].arrival_ns, 15);
    }
    assert_int_equal(cw_link_queue_bytes(&line, 5), 0);
}

static void test_queue_limit(void **state)
{
    link_open((struct cw_link_config){.rate_bps = 8 * GBPS, .queue_limit_bytes = 10000}); /* 1 byte/ns */
    for (int i = 0; i < 10; i++) {
        offer(0, 1000, CW_LINK_DELIVERED);
    }
    assert_int_equal(cw_link_queue_bytes(&line, 0), 10000);
    offer(0, 1, CW_LINK_DROP_QUEUE);
    assert_int_equal(verdict.delivery_count, 0);
    offer(500, 500, CW_LINK_DELIVERED); /* as much as has left */
    assert_int_equal(cw_link_queue_bytes(&line, 500), 10000);
    assert_int_equal(cw_link_queue_bytes(&line, 10499), 1);
    assert_int_equal(cw_link_queue_bytes(&line, 20000), 0);
    assert_int_equal(cw_link_queue_bytes_max(&line), 10000);
    assert_int_equal(line.counters.dropped_queue, 1);
    offer(30000, 15000, CW_LINK_DELIVERED); /* longer than the queue, but the line is idle */
    offer(30000, 1, CW_LINK_DROP_QUEUE);
}

static void test_down(void **state)
{
    link_open((struct cw_link_config){.rate_bps = GBPS});
    line.down = true;
    offer(0, 100, CW_LINK_DROP_DOWN);
    assert_int_equal(cw_link_queue_bytes(&line, 0), 0);
    line.down = false;
    offer(0, 100, CW_LINK_DELIVERED);
    assert_int_equal(line.counters.dropped_down, 1);
    assert_int_equal(line.counters.offered, 2);
    assert_int_equal(line.counters.delivered, 1);
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
    uint64_t latest = 0, deliveries = 0, corrupt = 0, late = 0;
    cw_link_init(&line, &config, 42);
    for (uint64_t i = 0; i < 200000; i++) {
        cw_link_offer(&line, i * 100, 100, &verdict);
        for (uint32_t k = 0; k < verdict.delivery_count; k++) {
            uint64_t extra_ns = verdict.deliveries[k].arrival_ns - verdict.departure_ns - 1000;
            assert_true(extra_ns <= 5000);
            latest = extra_ns > latest ? extra_ns : latest;
            late += extra_ns > 0;
            corrupt += verdict.deliveries[k].corrupt;
            deliveries++;
        }
    }
    assert_in_range(line.counters.lost, 2000 - 225, 2000 + 225);
    assert_in_range(line.counters.duplicated, 3960 - 315, 3960 + 315);
    assert_in_range(corrupt, 10098 - 490, 10098 + 490);
    assert_in_range(late, 20196 - 675, 20196 + 675);
    assert_true(latest > 4900);
    assert_int_equal(corrupt, line.counters.corrupted);
    assert_int_equal(deliveries, line.counters.delivered + line.counters.duplicated);
    assert_int_equal(line.counters.offered, line.counters.delivered + line.counters.lost);
}

static void test_loss_is_after_the_queue(void **state)
{
    link_open((struct cw_link_config){.rate_bps = 8 * GBPS, .loss = 1});
    offer(0, 1000, CW_LINK_DROP_LOSS);
    assert_int_equal(verdict.departure_ns, 1000);
    assert_int_equal(cw_link_queue_bytes(&line, 0), 1000);
}

static void test_corruption_changes_the_frame(void **state)
{
    link_open((struct cw_link_config){.corrupt = 1});
    for (uint32_t length = 1; length < 200; length++) {
        uint8_t frame[200] = {0};
        int bits = 0;
        cw_link_corrupt(&line, frame, length);
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
        struct cw_link_verdict verdicts[3];
        memset(verdicts, 0, sizeof(verdicts));
        cw_link_offer(&a, i * 1000, 64, &verdicts[0]);
        cw_link_offer(&b, i * 1000, 64, &verdicts[1]);
        cw_link_offer(&c, i * 1000, 64, &verdicts[2]);
        assert_memory_equal(&verdicts[0], &verdicts[1], sizeof(verdicts[0]));
        differences += memcmp(&verdicts[0], &verdicts[2], sizeof(verdicts[0])) != 0;
    }
    assert_true(differences > 100);
}

static void test_reconfigured_under_way(void **state)
{
    link_open((struct cw_link_config){.rate_bps = 8 * GBPS, .queue_limit_bytes = 10000});
    offer(0, 4000, CW_LINK_DELIVERED);
    cw_link_configure(&line, &(struct cw_link_config){.rate_bps = 4 * GBPS, .queue_limit_bytes = 10000});
    offer(0, 1000, CW_LINK_DELIVERED);
    assert_int_equal(verdict.departure_ns, 6000); /* behind the first one, at half the speed */
    assert_int_equal(cw_link_queue_bytes_max(&line), 4000);
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
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *reason = NULL;
        assert_false(cw_link_config_valid(&bad[i], &reason));
        assert_non_null(reason);
    }
    assert_true(cw_link_config_valid(&(struct cw_link_config){0}, NULL));
}

int main(void)
{
    return TESTS_RUN(test_rate_is_exact, test_delay_and_idle_line, test_no_rate_needs_no_time, test_queue_limit,
                     test_down, test_fault_rates, test_loss_is_after_the_queue, test_corruption_changes_the_frame,
                     test_same_seed_same_verdicts, test_reconfigured_under_way, test_bad_configurations);
}
