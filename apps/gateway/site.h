/* Gateway site: the ports, the endpoint and the gate of a running `causeway gateway`.
 *
 * Order of calls: gateway_site_open, gateway_site_run, gateway_site_close. One thread. */
#pragma once

#include <stdio.h>

#include "apps/cli/report.h"
#include "apps/gateway/config.h"
#include "dataplane/base/yield_policy.h"
#include "dataplane/tunnel/gate.h"

/* Contents of the last line of a stream's statistics. */
struct gateway_sample {
    uint64_t counters[CW_TUNNEL_COUNTER_COUNT];
    uint64_t packets_sent;
    uint64_t packets_retransmitted;
};

struct gateway_site {
    const struct gateway_config *config;
    struct cw_port *inner;
    struct cw_port *outer;
    struct cw_endpoint *endpoint;
    struct cw_gate *gate;
    uint32_t peers[CW_TUNNEL_STREAMS_MAX];
    struct app_report stats; /* its csv NULL: none */
    struct gateway_sample samples[CW_TUNNEL_STREAMS_MAX];
    uint64_t start_ns;
    /* the last reported state */
    bool said_up;
    bool said_down;
    uint32_t up_count;       /* streams */
    uint64_t refused_before; /* packets that did not fit the key, at the last check */
    bool said_key;
    /* idling */
    uint64_t idle_since_ns; /* 0: the last turn did something */
    uint64_t nap_ns;
    struct cw_yield_policy yield_policy;
};

/* APP_EXIT_SUCCESS, or an exit code after reporting the error; nothing is left behind then. */
int gateway_site_open(struct gateway_site *site, const struct gateway_config *config);

/* Notifies the peer, and frees all. What gateway_stats_close says. */
int gateway_site_close(struct gateway_site *site);

/* Forwards until signals->stop is set, the configured time has passed, or a port's other side is gone, which is an
 * error. */
int gateway_site_run(struct gateway_site *site, struct app_signals *signals);

/* ---- gateway/report.c ---- */

/* Prints the counters of the ports and the streams. */
void gateway_report(const struct gateway_site *site, uint64_t now_ns);

/* Begins the file of config->stats_path. APP_EXIT_SUCCESS, or an exit code after reporting the error. */
int gateway_stats_open(struct gateway_site *site);

/* A line for each stream, as the switch's (switch/stats.h): time since the start, queued bytes, round trip, and the
 * counters since the line before, so that sums over time are the counters. */
void gateway_stats_write(struct gateway_site *site, uint64_t now_ns);

/* APP_EXIT_SUCCESS, or an exit code after an error: something could not be written. */
int gateway_stats_close(struct gateway_site *site);
