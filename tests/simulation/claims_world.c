#include "tests/simulation/claims_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/wire/wire.h"
#include "tests/simulation/stream.h"

enum {
    PUT_BYTES = 65536,
    UNDER_WAY = 4,
    PACE_WINDOW = 1000, /* packets over which a rate is judged */
    PACE_PUT_PACKETS = 16,
    ETHERNET_GAP_BYTES = 24,
};

/* ---- incast ---- */

static void incast_measure(struct sim_hosts *hosts, const struct sim_incast_settings *settings,
                           struct sim_incast_result *result)
{
    struct cw_link *port = cw_simulator_link_down(hosts->simulator, 0);
    cw_simulator_run_until(hosts->simulator, settings->warmup_ns);
    uint64_t *before = calloc(hosts->count, sizeof(*before));
    if (before == NULL) {
        return;
    }
    for (uint32_t i = 1; i < hosts->count; i++) {
        before[i] = hosts->list[i].completed;
    }
    cw_simulator_run_until(hosts->simulator, settings->warmup_ns + settings->duration_ns);
    double sum = 0;
    double squares = 0;
    for (uint32_t i = 1; i < hosts->count; i++) {
        double puts = (double)(hosts->list[i].completed - before[i]);
        sum += puts;
        squares += puts * puts;
        result->retransmitted += cw_endpoint_counter(hosts->list[i].endpoint, CW_COUNTER_RETRANSMITTED);
    }
    free(before);
    double payload = cw_wire_payload_bytes(1500) - (double)sizeof(struct cw_wire_part);
    payload -= fmod(payload, 8);
    double line_bits = sum * PUT_BYTES / payload * (1514 + ETHERNET_GAP_BYTES) * 8;
    result->port_share = line_bits / ((double)settings->rate_bps * (double)settings->duration_ns / 1e9);
    result->jain = squares > 0 ? sum * sum / (settings->senders * squares) : 0;
    result->queue_max_bytes = cw_link_queue_bytes_max(port);
    result->dropped = port->counters.dropped_queue;
}

int sim_incast(const struct sim_incast_settings *settings, struct sim_incast_result *result, char *error,
               size_t error_bytes)
{
    *result = (struct sim_incast_result){0};
    struct sim_hosts_config config;
    sim_hosts_config_init(&config, settings->senders + 1);
    config.seed = settings->seed;
    config.node.up.rate_bps = config.node.down.rate_bps = settings->rate_bps;
    config.node.up.delay_ns = settings->delay_ns / 2;
    config.node.down.delay_ns = settings->delay_ns - settings->delay_ns / 2;
    config.node.down.queue_limit_bytes = (uint32_t)settings->queue_bytes;
    config.memory_bytes = (uint64_t)(settings->senders + 2) * UNDER_WAY * PUT_BYTES;
    struct sim_hosts hosts;
    struct sim_stream *streams = calloc(settings->senders + 1, sizeof(*streams));
    int status = streams == NULL ? CW_ERROR_MEMORY : sim_hosts_create(&hosts, &config, error, error_bytes);
    if (status == CW_OK) {
        for (uint32_t i = 1; i <= settings->senders; i++) {
            sim_stream_start(&hosts, &streams[i], i, 0, PUT_BYTES, UINT64_MAX);
            streams[i].base = i * (uint64_t)UNDER_WAY * PUT_BYTES % config.memory_bytes;
            streams[i].space = UNDER_WAY * PUT_BYTES;
        }
        incast_measure(&hosts, settings, result);
    }
    if (streams != NULL) {
        sim_hosts_destroy(&hosts);
    }
    free(streams);
    return status;
}

/* ---- pacing ---- */

/* What has left for one peer. */
struct paced {
    uint64_t rate_bps;
    double
        level_bytes; /* of a bucket that drains at the rate: the most by which any interval up to now is ahead of it */
    uint64_t last_ns;
    uint64_t packets;
    uint64_t times_ns[PACE_WINDOW]; /* of the last packets, in a ring */
    uint32_t frame_bytes;
};

struct pace_run {
    struct sim_hosts hosts;
    struct sim_stream *streams;
    struct paced *paced;    /* by node */
    uint64_t payload_bytes; /* of a full packet */
    struct sim_pace_result *result;
};

static void pace_tap(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                     const uint8_t *frame, uint32_t length)
{
    struct pace_run *run = context;
    if (kind != CW_SIMULATOR_DEPARTURE || node != 0 ||
        frame[CW_WIRE_NETWORK_BYTES + offsetof(struct cw_wire_header, type)] != CW_WIRE_DATA) {
        return;
    }
    length += CW_ETHERNET_OVERHEAD_BYTES;
    uint32_t target = (uint32_t)frame[4] << 8 | frame[5]; /* the simulator's addresses end in the node's number */
    struct paced *paced = &run->paced[target];
    double drained = (double)(time_ns - paced->last_ns) * (double)paced->rate_bps / 8e9;
    paced->level_bytes =
        (paced->packets == 0 || paced->level_bytes < drained ? 0 : paced->level_bytes - drained) + length;
    paced->last_ns = time_ns;
    double excess = paced->level_bytes - (1514 + CW_ETHERNET_OVERHEAD_BYTES);
    run->result->excess_bytes_max = excess > run->result->excess_bytes_max ? excess : run->result->excess_bytes_max;
    bool equal = paced->frame_bytes == length || paced->packets == 0;
    paced->frame_bytes = length;
    paced->packets = equal ? paced->packets : 0; /* the last, shorter packet of a put starts a new series */
    uint64_t *slot = &paced->times_ns[paced->packets % PACE_WINDOW];
    if (paced->packets >= PACE_WINDOW) {
        double took_ns = (double)(time_ns - *slot);
        double rate = (double)PACE_WINDOW * length * 8e9 / took_ns;
        double deviation = fabs(rate / (double)paced->rate_bps - 1);
        run->result->rate_error_max = deviation > run->result->rate_error_max ? deviation : run->result->rate_error_max;
        run->result->windows++;
    }
    *slot = time_ns;
    paced->packets++;
    run->result->packets++;
}

static int pace_start(struct pace_run *run, const struct sim_pace_settings *settings)
{
    struct sim_host *sender = &run->hosts.list[0];
    double ratio = (double)settings->rate_most_bps / (double)settings->rate_least_bps;
    for (uint32_t i = 1; i <= settings->flows; i++) {
        sim_stream_watch(&run->hosts, &run->streams[i], 0, i, PACE_PUT_PACKETS * run->payload_bytes);
        double share = settings->flows == 1 ? 0 : (double)(i - 1) / (settings->flows - 1);
        run->paced[i].rate_bps = (uint64_t)((double)settings->rate_least_bps * pow(ratio, share));
        struct cw_traffic traffic = {
            .control = CW_TRAFFIC_RATE, .shaper = CW_SHAPER_NONE, .rate_bps = run->paced[i].rate_bps};
        int status = cw_peer_traffic(sender->endpoint, run->streams[i].peer, &traffic);
        if (status != CW_OK) {
            return status;
        }
    }
    return CW_OK;
}

int sim_pace(const struct sim_pace_settings *settings, struct sim_pace_result *result, char *error, size_t error_bytes)
{
    *result = (struct sim_pace_result){0};
    struct pace_run run = {.result = result};
    run.payload_bytes = cw_wire_part_bytes(1500);
    double seconds = (double)settings->packets * 1514 * 8 / (double)settings->rate_least_bps;
    struct sim_hosts_config config;
    sim_hosts_config_init(&config, settings->flows + 1);
    config.seed = settings->seed;
    config.node.up.rate_bps = config.node.down.rate_bps = 400000000000ull;
    config.endpoint.sent_chunk_count = 16384;
    config.endpoint.operation_count_max = 4 * UNDER_WAY * settings->flows + 256;
    config.memory_bytes = UNDER_WAY * PACE_PUT_PACKETS * run.payload_bytes;
    int status = sim_hosts_create(&run.hosts, &config, error, error_bytes);
    run.paced = calloc(settings->flows + 1, sizeof(*run.paced));
    run.streams = calloc(settings->flows + 1, sizeof(*run.streams));
    if (status == CW_OK && (run.paced == NULL || run.streams == NULL)) {
        status = CW_ERROR_MEMORY;
    }
    if (status == CW_OK) {
        cw_simulator_tap_set(run.hosts.simulator, pace_tap, &run);
        status = pace_start(&run, settings);
        cw_simulator_run_until(run.hosts.simulator, (uint64_t)(seconds * 1e9));
    }
    if (status != CW_OK && error_bytes > 0 && error[0] == 0) {
        snprintf(error, error_bytes, "pacing: %s", cw_status_text(status));
    }
    sim_hosts_destroy(&run.hosts);
    free(run.paced);
    free(run.streams);
    return status;
}
