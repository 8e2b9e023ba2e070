/* causeway bench incast, causeway bench pace: congestion control and pacing in virtual time. */
#include "apps/sim/claims.h"
#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
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
    struct app_report report = {.form = APP_REPORT_RECORD};
    const struct app_option options[] = {
        OPTION_COUNT("senders", "that stream to one receiver (32)", &senders, 1, 1000),
        OPTION_RATE("rate", "of every link (10Gbps)", &settings.rate_bps, 1000000),
        OPTION_TIME("delay", "one way, end to end (20us)", &settings.delay_ns, 0, 1000000000),
        OPTION_BYTES("queue", "of the port towards the receiver (256K)", &settings.queue_bytes, 2000, 1u << 30),
        OPTION_TIME("warmup", "before the measurement (50ms)", &settings.warmup_ns, 1, 0),
        OPTION_TIME("duration", "of the measurement (100ms)", &settings.duration_ns, 1000000, 0),
        OPTION_COUNT("seed", "of everything random (1)", &settings.seed, 0, 0),
        OPTION_JSON("", &report.json),
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
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "incast"),
        app_count("senders", "senders to one port", senders),
        app_count("raw_rate_bps", NULL, settings.rate_bps),
        app_count("queue_limit_bytes", "queue limit, bytes", settings.queue_bytes),
        app_count("queue_max_bytes", "longest queue, bytes", result.queue_max_bytes),
        app_count("dropped", "dropped", result.dropped),
        app_count("retransmitted", "sent again", result.retransmitted),
        app_number("ratio_port", "of the port, %", 2, 100, result.port_share),
        app_number("ratio_jain", "Jain's fairness", 4, 1, result.jain),
    };
    APP_REPORT(&report, cells);
    return APP_EXIT_SUCCESS;
}

int bench_pace(int argc, char **argv)
{
    struct sim_pace_settings settings = {.rate_least_bps = 20000000, .rate_most_bps = 200000000, .seed = 1};
    uint64_t flows = 1000;
    uint64_t packets = 1100;
    struct app_report report = {.form = APP_REPORT_RECORD};
    const struct app_option options[] = {
        OPTION_COUNT("flows", "paced flows of one host (1000)", &flows, 1, 4000),
        OPTION_RATE("rate-least", "of the slowest flow (20Mbps)", &settings.rate_least_bps, 100000),
        OPTION_RATE("rate-most", "of the fastest flow (200Mbps)", &settings.rate_most_bps, 100000),
        OPTION_COUNT("packets", "of the slowest flow (1100)", &packets, 1001, 1000000),
        OPTION_COUNT("seed", "of everything random (1)", &settings.seed, 0, 0),
        OPTION_JSON("", &report.json),
        {0},
    };
    int code;
    if (app_options_parse("bench pace [OPTION...]\n\nPaced flows at mixed rates in virtual time, measured where "
                          "frames leave the port. Half a minute; sooner: --flows 500.",
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
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "pace"),
        app_count("flows", "flows", flows),
        app_count("packets", "packets", result.packets),
        app_count("windows", "windows of 1,000 packets", result.windows),
        app_number("ratio_rate_error_max", "off the rate at most, %", 4, 100, result.rate_error_max),
        app_number("excess_max_bytes", "above rate x T + a frame, bytes", 1, 1, result.excess_bytes_max),
    };
    APP_REPORT(&report, cells);
    return APP_EXIT_SUCCESS;
}
