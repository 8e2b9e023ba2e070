/* Compressed data: what is compressed and the gain; sources that change; sessions that end. Random worlds:
 * simulate_correctness.c. Chunks that are no codec's output: simulate_hostile.c. */
#include "tests/simulation/fixture.h"

#include "dataplane/base/random.h"
#include "dataplane/state/endpoint.h"

enum { PUT_BYTES = 4 << 20, HOSTS = 3 };

static void hosts_begin(uint64_t rate_bps, double loss)
{
    struct sim_hosts_config config = sim_hosts_config_of(HOSTS);
    config.memory_bytes = PUT_BYTES;
    config.node.up.rate_bps = rate_bps;
    config.node.down.rate_bps = rate_bps;
    hosts_make(&config);
    for (uint32_t node = 0; node < HOSTS && loss > 0; node++) {
        sim_link_lose(cw_simulator_link_up(hosts.simulator, node), loss);
    }
}

static void compress(uint32_t node, enum cw_compression_mode mode)
{
    struct cw_compression compression = {.mode = mode};
    for (enum cw_codec codec = CW_CODEC_RUN; codec < CW_CODECS; codec++) {
        compression.speeds[codec] = (struct cw_codec_speed){.fill_ns = 0.5f, .expand_ns = 0.5f};
    }
    assert_int_equal(cw_endpoint_compress(hosts.list[node].endpoint, &compression), CW_OK);
}

/* Doubles that differ from each other in some bits: a rate of two or so. */
static void fill(uint8_t *memory, uint32_t noise_bits)
{
    struct cw_random random;
    cw_random_seed(&random, 5);
    for (uint64_t i = 0; i + 8 <= PUT_BYTES; i += 8) {
        uint64_t word = 0x3ff0000000000000ull + (i << 22) + (cw_random_next(&random) >> (64 - noise_bits));
        memcpy(memory + i, &word, 8);
    }
}

/* Nothing that could be compressed. */
static void scramble(uint32_t node)
{
    struct cw_random random;
    cw_random_seed(&random, 11);
    cw_random_fill(&random, hosts.list[node].memory, PUT_BYTES);
}

/* A put of all the memory. */
static void put_post(uint32_t from, uint32_t to, enum cw_element element)
{
    struct sim_host *near = &hosts.list[from];
    struct cw_put put = {.peer = sim_hosts_peer(&hosts, from, to),
                         .region = hosts.list[to].token,
                         .flags = CW_SIGNAL,
                         .source = {.element = element, .contiguous = {.data = near->memory, .bytes = PUT_BYTES}}};
    assert_int_equal(cw_put(near->endpoint, &put), CW_OK);
    sim_host_wake(near);
}

static void chunks_await(uint32_t from, uint64_t count)
{
    while (counted(from, CW_COUNTER_CHUNKS_OUT) < count) {
        sim_hosts_run(&hosts, 100000);
    }
}

/* Virtual nanoseconds that `count` puts of all the memory of host 0 to host 1 take. */
static uint64_t put_all(enum cw_element element, uint32_t count)
{
    struct sim_host *near = &hosts.list[0], *far = &hosts.list[1];
    uint64_t begin_ns = sim_hosts_now(&hosts);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t before = far->arrived_puts;
        uint64_t completed = near->completed; /* data that may not be there must not be overlapped */
        memset(far->memory, 0xee, PUT_BYTES);
        put_post(0, 1, element);
        for (uint32_t step = 0; far->arrived_puts == before || near->completed == completed; step++) {
            assert_true(step < 1000000);
            sim_hosts_run(&hosts, 100000);
        }
        assert_memory_equal(far->memory, near->memory, PUT_BYTES);
    }
    return sim_hosts_now(&hosts) - begin_ns;
}

static struct cw_compression_report report_of(uint32_t from, uint32_t to, enum cw_element element)
{
    struct cw_compression_report report;
    assert_true(cw_peer_compression(hosts.list[from].endpoint, sim_hosts_peer(&hosts, from, to), element, &report));
    return report;
}

/* A slow link: compressed data takes less time, by nearly the ratio, and the receiver has room for it all the time.
 */
static void a_slow_link_is_sooner(void **state)
{
    static const double losses[] = {0, 0.01};
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        hosts_begin(100000000, losses[i]);
        fill(hosts.list[0].memory, 28);
        uint64_t plain_ns = put_all(CW_ELEMENT_DOUBLE, 3);
        compress(0, CW_COMPRESSION_AUTO);
        (void)put_all(CW_ELEMENT_DOUBLE, 1);
        uint64_t packed_ns = put_all(CW_ELEMENT_DOUBLE, 3);
        struct cw_compression_report report = report_of(0, 1, CW_ELEMENT_DOUBLE);
        double gain = (double)plain_ns / (double)packed_ns;
        print_message("rate %.2f, sooner by %.2f, link %.1f ns a byte\n", report.rate, gain, report.link_ns);
        assert_true(report.rate > 1.8);
        assert_true(gain > 0.9 * report.rate);
        assert_int_equal(report.codec, CW_CODEC_LORENZO);
    }
}

/* A fast link, or codecs slower than it: not even sampled. */
static void a_fast_link_is_left_alone(void **state)
{
    hosts_begin(10000000000, 0);
    fill(hosts.list[0].memory, 28);
    compress(0, CW_COMPRESSION_AUTO);
    (void)put_all(CW_ELEMENT_DOUBLE, 4);
    struct cw_compression_report report = report_of(0, 1, CW_ELEMENT_DOUBLE);
    assert_false(report.is_on);
    assert_int_equal(report.samples, 0);
    assert_int_equal(counted(0, CW_COUNTER_CHUNKS_OUT), 0);
    assert_null(hosts.list[0].endpoint->chunks);
    assert_null(hosts.list[1].endpoint->chunks);
}

/* Random data on a slow link: sampled ever more seldom, at a cost that is bounded. */
static void random_data_is_left_alone(void **state)
{
    hosts_begin(100000000, 0);
    scramble(0);
    compress(0, CW_COMPRESSION_AUTO);
    (void)put_all(CW_ELEMENT_BYTES, 16);
    struct cw_compression_report report = report_of(0, 1, CW_ELEMENT_BYTES);
    assert_false(report.is_on);
    assert_in_range(report.samples, 1, 5);
    assert_int_equal(report.raw_bytes, 0);
}

/* The kind of the data: compressible, then not, then again. */
static void data_that_changes_is_noticed(void **state)
{
    hosts_begin(100000000, 0);
    compress(0, CW_COMPRESSION_AUTO);
    fill(hosts.list[0].memory, 20);
    (void)put_all(CW_ELEMENT_DOUBLE, 2);
    assert_true(report_of(0, 1, CW_ELEMENT_DOUBLE).is_on);
    scramble(0);
    (void)put_all(CW_ELEMENT_DOUBLE, 1);
    assert_false(report_of(0, 1, CW_ELEMENT_DOUBLE).is_on);
    fill(hosts.list[0].memory, 20);
    (void)put_all(CW_ELEMENT_DOUBLE, 8);
    assert_true(report_of(0, 1, CW_ELEMENT_DOUBLE).is_on);
}

/* Gets are answered compressed by the element that the requester names. */
static void gets_are_answered_compressed(void **state)
{
    hosts_begin(100000000, 0);
    fill(hosts.list[1].memory, 20);
    compress(1, CW_COMPRESSION_ON);
    struct sim_host *near = &hosts.list[0];
    assert_int_equal(get_post(0, 1, PUT_BYTES, CW_ELEMENT_DOUBLE), CW_OK);
    sim_hosts_run(&hosts, 2000000000);
    assert_int_equal(near->got, 1);
    assert_memory_equal(near->memory, hosts.list[1].memory, PUT_BYTES);
    assert_true(report_of(1, 0, CW_ELEMENT_DOUBLE).raw_bytes > PUT_BYTES * 9 / 10);
    assert_int_equal(get_post(0, 1, PUT_BYTES, CW_ELEMENT_PLAIN + 1), CW_ERROR_ARGUMENT);
}

/* Data marked as not compressible is sent unchanged. */
static void plain_data_is_left_alone(void **state)
{
    hosts_begin(100000000, 0);
    fill(hosts.list[0].memory, 20);
    compress(0, CW_COMPRESSION_ON);
    (void)put_all(CW_ELEMENT_PLAIN, 1);
    assert_int_equal(counted(0, CW_COUNTER_CHUNKS_OUT), 0);
    (void)put_all(CW_ELEMENT_DOUBLE, 1);
    assert_true(counted(0, CW_COUNTER_CHUNKS_OUT) > 1000);
    assert_int_equal(counted(1, CW_COUNTER_CHUNK_RAW_IN), counted(0, CW_COUNTER_CHUNK_RAW_OUT));
}

/* A program that changes a source in use gets an error, and the target no wrong bytes under a notification. */
static void a_source_that_changes_is_an_error(void **state)
{
    hosts_begin(100000000, 0.3);
    fill(hosts.list[0].memory, 12);
    compress(0, CW_COMPRESSION_ON);
    struct sim_host *near = &hosts.list[0];
    put_post(0, 1, CW_ELEMENT_DOUBLE);
    chunks_await(0, 100);
    scramble(0);
    cw_simulator_heal(hosts.simulator);
    sim_hosts_run(&hosts, 3000000000);
    assert_int_equal(near->failed, 1);
    assert_int_equal(hosts.list[1].arrived_puts, 0);
}

/* The same for a get: the requester is notified. */
static void an_answer_that_changes_is_an_error(void **state)
{
    hosts_begin(100000000, 0);
    sim_link_lose(cw_simulator_link_up(hosts.simulator, 1), 0.3);
    fill(hosts.list[1].memory, 12);
    compress(1, CW_COMPRESSION_ON);
    struct sim_host *near = &hosts.list[0];
    assert_int_equal(get_post(0, 1, PUT_BYTES, CW_ELEMENT_DOUBLE), CW_OK);
    chunks_await(1, 100);
    scramble(1);
    cw_simulator_heal(hosts.simulator);
    sim_hosts_run(&hosts, 3000000000);
    assert_int_equal(near->failed, 1);
    assert_int_equal(near->got, 0);
    assert_int_equal(get_post(0, 1, 5000, CW_ELEMENT_DOUBLE), CW_OK); /* and can go on */
    sim_hosts_run(&hosts, 1000000000);
    assert_int_equal(near->got, 1);
}

/* A peer that ends in the middle of a trial, and returns: the next session starts a new trial. */
static void a_session_that_ends_leaves_no_trial_behind(void **state)
{
    hosts_begin(100000000, 0);
    fill(hosts.list[0].memory, 20);
    compress(0, CW_COMPRESSION_AUTO);
    struct sim_host *near = &hosts.list[0];
    put_post(0, 1, CW_ELEMENT_DOUBLE);
    chunks_await(0, 30);
    host_restart(1);
    assert_int_equal(cw_peer_connect(hosts.list[1].endpoint, sim_hosts_peer(&hosts, 1, 0)), CW_OK);
    host_run(1, 1000000000);
    assert_int_equal(near->down_status, CW_ERROR_PEER_RESTARTED);
    (void)put_all(CW_ELEMENT_DOUBLE, 6);
    assert_true(report_of(0, 1, CW_ELEMENT_DOUBLE).is_on);
}

/* Runs of a few elements are no packets of their own; long ones are. */
static void short_runs_share_packets(void **state)
{
    hosts_begin(100000000, 0);
    compress(0, CW_COMPRESSION_ON);
    uint64_t *words = (uint64_t *)(void *)hosts.list[0].memory;
    for (uint64_t i = 0; i < PUT_BYTES / 8; i++) {
        words[i] = 0x4000000000000000u + (i / 16 << 40);
    }
    (void)put_all(CW_ELEMENT_DOUBLE, 1);
    uint64_t packets = counted(0, CW_COUNTER_DATA_OUT);
    assert_true(packets < PUT_BYTES / 1400 / 4);
    memset(words, 7, PUT_BYTES);
    (void)put_all(CW_ELEMENT_DOUBLE, 1);
    packets = counted(0, CW_COUNTER_DATA_OUT) - packets;
    assert_in_range(packets, PUT_BYTES / CW_CHUNK_RAW_MAX, PUT_BYTES / CW_CHUNK_RAW_MAX + 8);
}

int main(void)
{
    return HOSTS_TESTS_RUN(a_slow_link_is_sooner, a_fast_link_is_left_alone, random_data_is_left_alone,
                           data_that_changes_is_noticed, gets_are_answered_compressed, plain_data_is_left_alone,
                           a_source_that_changes_is_an_error, an_answer_that_changes_is_an_error,
                           a_session_that_ends_leaves_no_trial_behind, short_runs_share_packets);
}
