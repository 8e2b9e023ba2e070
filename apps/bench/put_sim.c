/* causeway bench put --fabric sim: the same measurements in virtual time. The raw limit is the link itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/testbed/hosts.h"
#include "dataplane/wire/wire.h"

enum {
    LATENCY_ROUNDS = 200,
    UNDER_WAY_MAX = 512,
    WINDOW_BYTES = 16 << 20,
    ETHERNET_GAP_BYTES = 24, /* preamble, checksum and gap, which take time on the link and carry nothing */
};

/* A stream from host 0 to host 1. */
struct stream {
    uint32_t peer;
    uint64_t token;
    uint64_t size;
    uint64_t posted;
    uint64_t posted_max;
};

static void post(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct stream *stream = context;
    (void)now_ns;
    uint64_t places = stream->size == 0 ? UNDER_WAY_MAX : host->memory_bytes / stream->size;
    uint64_t under_way_max = places < UNDER_WAY_MAX ? places : UNDER_WAY_MAX;
    while (stream->posted < stream->posted_max && stream->posted - host->completed < under_way_max) {
        uint64_t offset = stream->posted % places * stream->size;
        struct cw_put put = {
            .peer = stream->peer,
            .lane_tag = cw_lane_tag(1, 0),
            .region = stream->token,
            .offset = offset,
            .source = {.region = host->token, .contiguous = {.data = host->memory + offset, .bytes = stream->size}},
            .flags = CW_SIGNAL | CW_MORE,
        };
        if (cw_put(host->endpoint, &put) != CW_OK) {
            break;
        }
        stream->posted++;
    }
}

struct outcome {
    double latency_p50_ns;
    double latency_p99_ns;
    double goodput_bps;
    double puts_per_s;
    double packets_per_put;
    uint64_t retransmits;
    uint64_t lost;
};

/* Answers every put with one of the same size. */
static void answer(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct stream *stream = context;
    (void)now_ns;
    for (; stream->posted < host->arrived_puts; stream->posted++) {
        struct cw_put put = {
            .peer = stream->peer,
            .region = stream->token,
            .source = {.region = host->token, .contiguous = {.data = host->memory, .bytes = stream->size}},
        };
        (void)cw_put(host->endpoint, &put);
    }
}

static void measure_latency(struct sim_hosts *hosts, uint64_t size, struct outcome *outcome)
{
    struct sim_host *near = &hosts->list[0];
    struct sim_host *far = &hosts->list[1];
    struct stream there = {.peer = sim_hosts_peer(hosts, 0, 1), .token = far->token, .size = size};
    struct stream back = {
        .peer = sim_hosts_peer(hosts, 1, 0), .token = near->token, .size = size, .posted = far->arrived_puts};
    far->work = answer;
    far->context = &back;
    double samples[LATENCY_ROUNDS];
    for (uint32_t i = 0; i < LATENCY_ROUNDS; i++) {
        uint64_t start_ns = cw_simulator_now(hosts->simulator);
        uint64_t before = near->arrived_puts;
        struct cw_put put = {
            .peer = there.peer,
            .region = there.token,
            .source = {.region = near->token, .contiguous = {.data = near->memory, .bytes = size}},
        };
        cw_endpoint_clock(near->endpoint, start_ns);
        (void)cw_put(near->endpoint, &put);
        sim_host_wake(near);
        while (near->arrived_puts == before && cw_simulator_step(hosts->simulator)) {
        }
        samples[i] = (double)(cw_simulator_now(hosts->simulator) - start_ns);
    }
    far->work = NULL;
    /* the first one set the connection up */
    outcome->latency_p50_ns = cw_statistics_median(samples + 1, LATENCY_ROUNDS - 1);
    outcome->latency_p99_ns = cw_statistics_percentile(samples + 1, LATENCY_ROUNDS - 1, 0.99);
}

static void measure_rate(struct sim_hosts *hosts, uint64_t size, uint64_t bytes, struct outcome *outcome)
{
    struct sim_host *near = &hosts->list[0];
    struct sim_host *far = &hosts->list[1];
    struct cw_endpoint *endpoint = near->endpoint;
    uint64_t puts = size == 0 ? 100000 : bytes / size;
    puts = puts > 200000 ? 200000 : puts < 16 ? 16 : puts;
    struct stream stream = {.peer = sim_hosts_peer(hosts, 0, 1), .token = far->token, .size = size, .posted_max = puts};
    uint64_t data_before = cw_endpoint_counter(endpoint, CW_COUNTER_DATA_OUT);
    uint64_t again_before = cw_endpoint_counter(endpoint, CW_COUNTER_RETRANSMITTED);
    uint64_t lost_before = cw_simulator_link_down(hosts->simulator, 1)->counters.lost;
    uint64_t start_ns = cw_simulator_now(hosts->simulator);
    uint64_t arrived_before = far->arrived_puts;
    near->completed = 0;
    near->work = post;
    near->context = &stream;
    sim_host_wake(near);
    while (near->completed < puts && cw_simulator_step(hosts->simulator)) {
    }
    near->work = NULL;
    double seconds = (double)(cw_simulator_now(hosts->simulator) - start_ns) / 1e9;
    outcome->goodput_bps = (double)(far->arrived_puts - arrived_before) * (double)size * 8 / seconds;
    outcome->puts_per_s = (double)puts / seconds;
    outcome->packets_per_put =
        (double)(cw_endpoint_counter(endpoint, CW_COUNTER_DATA_OUT) - data_before) / (double)puts;
    outcome->retransmits = cw_endpoint_counter(endpoint, CW_COUNTER_RETRANSMITTED) - again_before;
    outcome->lost = cw_simulator_link_down(hosts->simulator, 1)->counters.lost - lost_before;
}

static int measure(const struct bench_put_options *options, uint64_t size, double loss, struct outcome *outcome)
{
    struct sim_hosts_config config;
    sim_hosts_config_init(&config, 2);
    config.seed = options->seed;
    config.mtu_bytes = (uint32_t)options->mtu_bytes;
    config.node.up.rate_bps = config.node.down.rate_bps = options->rate_bps;
    config.node.up.delay_ns = options->delay_ns / 2;
    config.node.down.delay_ns = options->delay_ns - options->delay_ns / 2;
    config.node.down.loss = loss; /* on the way to each side */
    config.memory_bytes = size > WINDOW_BYTES / 4 ? 4 * size : WINDOW_BYTES;
    struct sim_hosts hosts;
    char error[CW_PORT_TEXT_BYTES];
    int status = sim_hosts_create(&hosts, &config, error, sizeof(error));
    if (status != CW_OK) {
        sim_hosts_destroy(&hosts);
        return app_error_status(status, error, NULL);
    }
    measure_latency(&hosts, size, outcome);
    /* long enough for the windows to become steady: 200 ms of the link */
    measure_rate(&hosts, size, options->rate_bps / 8 / 5, outcome);
    bool failed = hosts.list[0].failed > 0 || hosts.list[0].down > 0;
    sim_hosts_destroy(&hosts);
    if (failed) {
        app_error("puts fail, the peer is taken for dead", "--fabric sim", "lower --loss");
        return APP_EXIT_FAILURE;
    }
    return APP_EXIT_SUCCESS;
}

/* Goodput is held against the link, and against (1 - loss) times what goes through it without loss. */
static void size_report(struct app_report *report, const struct bench_put_options *options, uint64_t size,
                        const struct outcome *got, const struct outcome *clean)
{
    double share = (double)(14 + options->mtu_bytes) / (double)(14 + options->mtu_bytes + ETHERNET_GAP_BYTES);
    double limit_bps = (double)options->rate_bps * share;
    double again = got->lost == 0 ? 1 : (double)got->retransmits / (double)got->lost;
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "put"),
        app_text("fabric", NULL, 0, "sim"),
        app_count("seed", NULL, options->seed),
        app_count("mtu_bytes", NULL, options->mtu_bytes),
        app_count("size_bytes", "bytes", size),
        app_count("rate_bps", NULL, options->rate_bps),
        app_count("delay_ns", NULL, options->delay_ns),
        app_number("loss_fraction", NULL, 0, 1, options->loss),
        app_number("latency_p50_ns", "p50 ns", 0, 1, got->latency_p50_ns),
        app_number("latency_p99_ns", "p99 ns", 0, 1, got->latency_p99_ns),
        app_number("goodput_bps", "Gb/s", 3, 1e-9, got->goodput_bps),
        app_number("rate_puts_per_s", "Mput/s", 3, 1e-6, got->puts_per_s),
        app_number("packets_per_put", "pkt/put", 2, 1, got->packets_per_put),
        app_count("retransmits", "retrans", got->retransmits),
        app_count("lost", "lost", got->lost),
        app_number("raw_goodput_bps", NULL, 0, 1, limit_bps),
        app_number("raw_lossfree_goodput_bps", NULL, 0, 1, clean->goodput_bps),
        app_number("ratio_goodput", "of link", 4, 1, got->goodput_bps / limit_bps),
        app_number("ratio_goodput_lossfree", "of lossfree", 4, 1,
                   got->goodput_bps / ((1 - options->loss) * clean->goodput_bps)),
        app_number("ratio_retransmits_lost", "retrans/lost", 3, 1, again),
        app_number("ratio_latency", "latency", 2, 1, got->latency_p50_ns / (2 * (double)options->delay_ns)),
    };
    APP_REPORT(report, cells);
}

int bench_put_sim(const struct bench_put_options *options)
{
    struct app_report report = options->report;
    if (!report.json) {
        printf("put in virtual time: %.3g Gb/s, %.3g us one way, MTU %llu, loss %.4g %%, seed %llu\n",
               (double)options->rate_bps * 1e-9, (double)options->delay_ns * 1e-3,
               (unsigned long long)options->mtu_bytes, options->loss * 100, (unsigned long long)options->seed);
    }
    for (size_t i = 0; i < options->sizes.count; i++) {
        uint64_t size = options->sizes.values[i];
        struct outcome clean;
        struct outcome got;
        int code = measure(options, size, 0, &clean);
        code = code == APP_EXIT_SUCCESS ? measure(options, size, options->loss, &got) : code;
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
        size_report(&report, options, size, &got, &clean);
    }
    return APP_EXIT_SUCCESS;
}
