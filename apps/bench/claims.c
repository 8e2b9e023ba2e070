/* causeway bench incast, causeway bench pace: congestion control and pacing in virtual time. */
#include <stdio.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/sim/claims.h"
#include "dataplane/port/port.h"

int bench_incast(int argc, char **argv)
{
    struct sim_incast_settings settings = {
        .rate_bps = 10000000000ull,
        .delay_ns = 20000,
        .queue_bytes = 256 * 1024,
        .warmup_ns = 50000000,
        .duration_ns = 100000000,
        .seed = 1,
    };
    uint64_t senders = 32;
    bool json = false;
    const struct app_option options[] = {
        {"senders", "N", "that stream to one receiver (32)", APP_OPTION_COUNT, &senders, 1, 1000, NULL},
        {"rate", "RATE", "of every link (10Gbps)", APP_OPTION_RATE, &settings.rate_bps, 1000000, 0, NULL},
        {"delay", "TIME", "one way, end to end (20us)", APP_OPTION_DURATION, &settings.delay_ns, 0, 1000000000, NULL},
        {"queue", "BYTES", "of the port towards the receiver (256K)", APP_OPTION_BYTES, &settings.queue_bytes, 2000,
         1u << 30, NULL},
        {"warmup", "TIME", "before the measurement (50ms)", APP_OPTION_DURATION, &settings.warmup_ns, 1, 0, NULL},
        {"duration", "TIME", "of the measurement (100ms)", APP_OPTION_DURATION, &settings.duration_ns, 1000000, 0,
         NULL},
        {"seed", "N", "of everything random (1)", APP_OPTION_COUNT, &settings.seed, 0, 0, NULL},
        {"json", NULL, "one JSON object", APP_OPTION_FLAG, &json, 0, 0, NULL},
        {0},
    };
    int code;
    if (app_options_parse("bench incast [OPTION...]\n\nMany senders, one receiver, in virtual time: use of the "
                          "port, fairness, queue.",
                          options, 0, argc, argv, &code) < 0) {
        return code;
    }
    settings.senders = (uint32_t)senders;
    struct sim_incast_result result;
    char error[CW_PORT_TEXT_BYTES] = "";
    int status = sim_incast(&settings, &result, error, sizeof(error));
    if (status != 0) {
        return app_error_status(status, error, NULL);
    }
    if (json) {
        json_t *line = app_json_new();
        app_json_text(line, "bench", "incast");
        app_json_count(line, "senders", senders);
        app_json_count(line, "raw_rate_bps", settings.rate_bps);
        app_json_count(line, "queue_limit_bytes", settings.queue_bytes);
        app_json_count(line, "queue_max_bytes", result.queue_max_bytes);
        app_json_count(line, "dropped", result.dropped);
        app_json_count(line, "retransmitted", result.retransmitted);
        app_json_number(line, "ratio_port", result.port_share);
        app_json_number(line, "ratio_jain", result.jain);
        app_json_emit(line);
        return APP_EXIT_SUCCESS;
    }
    printf("%u senders to one port: %.2f %% of the port, Jain %.4f, longest queue %llu of %llu bytes, %llu dropped, "
           "%llu sent again\n",
           settings.senders, result.port_share * 100, result.jain, (unsigned long long)result.queue_max_bytes,
           (unsigned long long)settings.queue_bytes, (unsigned long long)result.dropped,
           (unsigned long long)result.retransmitted);
    return APP_EXIT_SUCCESS;
}

int bench_pace(int argc, char **argv)
{
    struct sim_pace_settings settings = {.rate_least_bps = 20000000, .rate_most_bps = 200000000, .seed = 1};
    uint64_t flows = 1000;
    uint64_t packets = 1100;
    bool json = false;
    const struct app_option options[] = {
        {"flows", "N", "paced flows of one host (1000)", APP_OPTION_COUNT, &flows, 1, 4000, NULL},
        {"rate-least", "RATE", "of the slowest flow (20Mbps)", APP_OPTION_RATE, &settings.rate_least_bps, 100000, 0,
         NULL},
        {"rate-most", "RATE", "of the fastest flow (200Mbps)", APP_OPTION_RATE, &settings.rate_most_bps, 100000, 0,
         NULL},
        {"packets", "N", "of the slowest flow (1100)", APP_OPTION_COUNT, &packets, 1001, 1000000, NULL},
        {"seed", "N", "of everything random (1)", APP_OPTION_COUNT, &settings.seed, 0, 0, NULL},
        {"json", NULL, "one JSON object", APP_OPTION_FLAG, &json, 0, 0, NULL},
        {0},
    };
    int code;
    if (app_options_parse("bench pace [OPTION...]\n\nPaced flows at mixed rates in virtual time, measured where "
                          "frames leave the port.",
                          options, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (settings.rate_most_bps < settings.rate_least_bps) {
        app_error("--rate-most is below --rate-least", NULL, "exchange them");
        return APP_EXIT_USAGE;
    }
    settings.flows = (uint32_t)flows;
    settings.packets = (uint32_t)packets;
    struct sim_pace_result result;
    char error[CW_PORT_TEXT_BYTES] = "";
    int status = sim_pace(&settings, &result, error, sizeof(error));
    if (status != 0) {
        return app_error_status(status, error, NULL);
    }
    if (json) {
        json_t *line = app_json_new();
        app_json_text(line, "bench", "pace");
        app_json_count(line, "flows", flows);
        app_json_count(line, "packets", result.packets);
        app_json_count(line, "windows", result.windows);
        app_json_number(line, "ratio_rate_error_max", result.rate_error_max);
        app_json_number(line, "excess_max_bytes", result.excess_bytes_max);
        app_json_emit(line);
        return APP_EXIT_SUCCESS;
    }
    printf("%u flows, %llu packets: over any 1,000 packets within %.4f %% of the rate; at most %.1f bytes above rate x "
           "T + one frame\n",
           settings.flows, (unsigned long long)result.packets, result.rate_error_max * 100, result.excess_bytes_max);
    return APP_EXIT_SUCCESS;
}
