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

static int compare_samples(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return left < right ? -1 : left > right;
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
    qsort(samples + 1, LATENCY_ROUNDS - 1, sizeof(samples[0]), compare_samples);
    outcome->latency_p50_ns = samples[1 + (LATENCY_ROUNDS - 1) / 2];
    outcome->latency_p99_ns = samples[1 + (LATENCY_ROUNDS - 1) * 99 / 100];
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
    /* long enough for the windows to settle: 200 ms of the link */
    measure_rate(&hosts, size, options->rate_bps / 8 / 5, outcome);
    bool failed = hosts.list[0].failed > 0 || hosts.list[0].down > 0;
    sim_hosts_destroy(&hosts);
    if (failed) {
        app_error("puts fail, the peer is taken for dead", "--fabric sim", "lower --loss");
        return APP_EXIT_FAILURE;
    }
    return APP_EXIT_SUCCESS;
}

static void print_json(const struct bench_put_options *options, uint64_t size, const struct outcome *got,
                       const struct outcome *clean)
{
    double share = (double)(14 + options->mtu_bytes) / (double)(14 + options->mtu_bytes + ETHERNET_GAP_BYTES);
    double limit_bps = (double)options->rate_bps * share;
    json_t *line = app_json_new();
    app_json_text(line, "bench", "put");
    app_json_text(line, "fabric", "sim");
    app_json_count(line, "seed", options->seed);
    app_json_count(line, "mtu_bytes", options->mtu_bytes);
    app_json_count(line, "size_bytes", size);
    app_json_count(line, "rate_bps", options->rate_bps);
    app_json_count(line, "delay_ns", options->delay_ns);
    app_json_number(line, "loss_fraction", options->loss);
    app_json_number(line, "latency_p50_ns", got->latency_p50_ns);
    app_json_number(line, "latency_p99_ns", got->latency_p99_ns);
    app_json_number(line, "goodput_bps", got->goodput_bps);
    app_json_number(line, "rate_puts_per_s", got->puts_per_s);
    app_json_number(line, "packets_per_put", got->packets_per_put);
    app_json_count(line, "retransmits", got->retransmits);
    app_json_count(line, "lost", got->lost);
    app_json_number(line, "raw_goodput_bps", limit_bps);
    app_json_number(line, "raw_lossfree_goodput_bps", clean->goodput_bps);
    app_json_number(line, "ratio_goodput", got->goodput_bps / limit_bps);
    app_json_number(line, "ratio_goodput_lossfree", got->goodput_bps / ((1 - options->loss) * clean->goodput_bps));
    app_json_number(line, "ratio_retransmits_lost", got->lost == 0 ? 1 : (double)got->retransmits / (double)got->lost);
    app_json_number(line, "ratio_latency", got->latency_p50_ns / (2 * (double)options->delay_ns));
    app_json_emit(line);
}

int bench_put_sim(const struct bench_put_options *options)
{
    if (!options->json) {
        printf("put in virtual time: %.3g Gb/s, %.3g us one way, MTU %llu, loss %.4g %%, seed %llu\n",
               (double)options->rate_bps * 1e-9, (double)options->delay_ns * 1e-3,
               (unsigned long long)options->mtu_bytes, options->loss * 100, (unsigned long long)options->seed);
        printf("%10s %10s %10s %9s %10s %8s %8s %8s | %8s %8s\n", "bytes", "p50 ns", "p99 ns", "Gb/s", "Mput/s",
               "pkt/put", "lost", "retrans", "goodput", "retrans");
    }
    for (size_t i = 0; i < options->size_count; i++) {
        struct outcome clean;
        struct outcome got;
        int code = measure(options, options->sizes[i], 0, &clean);
        code = code == APP_EXIT_SUCCESS ? measure(options, options->sizes[i], options->loss, &got) : code;
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
        if (options->json) {
            print_json(options, options->sizes[i], &got, &clean);
            continue;
        }
        /* the last two: of (1 - loss) times the loss-free goodput, and per lost packet */
        printf("%10llu %10.0f %10.0f %9.3f %10.3f %8.2f %8llu %8llu | %8.4f %8.3f\n",
               (unsigned long long)options->sizes[i], got.latency_p50_ns, got.latency_p99_ns, got.goodput_bps * 1e-9,
               got.puts_per_s * 1e-6, got.packets_per_put, (unsigned long long)got.lost,
               (unsigned long long)got.retransmits, got.goodput_bps / ((1 - options->loss) * clean.goodput_bps),
               got.lost == 0 ? 1 : (double)got.retransmits / (double)got.lost);
    }
    return APP_EXIT_SUCCESS;
}
