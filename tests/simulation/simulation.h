/* What the tests in virtual time share: counts from the environment, hosts that must come to be, streams of puts. */
#ifndef SIMULATION_H
#define SIMULATION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/sim/hosts.h"

static const uint64_t SIMULATION_US = 1000;
static const uint64_t SIMULATION_MS = 1000000;

/* A number from the environment; `otherwise` if it is not set or not a number. */
static inline uint64_t simulation_count(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long long value = text == NULL ? 0 : strtoull(text, &end, 10);
    return text == NULL || end == text || *end != 0 || value == 0 ? otherwise : value;
}

static inline void simulation_hosts(struct sim_hosts *hosts, const struct sim_hosts_config *config)
{
    char error[200] = "";
    if (sim_hosts_create(hosts, config, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }
}

/* Puts of one size, one after the other, from one host to another. Counts on being the host's only signalled work. */
struct simulation_stream {
    uint32_t peer;
    uint64_t token;
    uint64_t size;
    uint64_t count;
    uint64_t under_way_max;
    uint64_t posted;
    uint64_t space; /* of the target region that it uses, from 0 on */
};

static inline void simulation_stream_post(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct simulation_stream *stream = context;
    (void)now_ns;
    uint64_t places = stream->size == 0 ? UINT64_MAX : stream->space / stream->size;
    while (stream->posted < stream->count && stream->posted - host->completed < stream->under_way_max &&
           stream->posted - host->completed < places) {
        uint64_t offset = stream->size == 0 ? 0 : stream->posted % places * stream->size;
        struct cw_put put = {
            .peer = stream->peer,
            .lane_tag = cw_lane_tag(1, (uint32_t)stream->posted),
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

static inline void simulation_stream_start(struct sim_hosts *hosts, struct simulation_stream *stream, uint32_t from,
                                           uint32_t to, uint64_t size, uint64_t count)
{
    struct sim_host *host = &hosts->list[from];
    *stream = (struct simulation_stream){
        .peer = sim_hosts_peer(hosts, from, to),
        .token = hosts->list[to].token,
        .size = size,
        .count = count,
        .under_way_max = 256,
        .space = host->memory_bytes,
    };
    host->completed = 0;
    host->work = simulation_stream_post;
    host->context = stream;
    sim_host_wake(host);
}

/* Until the host's stream is complete, or `limit_ns` of virtual time are over. The time it took. */
static inline uint64_t simulation_stream_finish(struct sim_hosts *hosts, uint32_t from, uint64_t limit_ns)
{
    struct sim_host *host = &hosts->list[from];
    const struct simulation_stream *stream = host->context;
    uint64_t start_ns = cw_simulator_now(hosts->simulator);
    while (host->completed < stream->count && cw_simulator_now(hosts->simulator) < start_ns + limit_ns &&
           cw_simulator_step(hosts->simulator)) {
    }
    return cw_simulator_now(hosts->simulator) - start_ns;
}

#endif
