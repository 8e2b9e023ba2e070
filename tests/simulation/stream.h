/* Sim stream: puts of one size, one after the other, from one simulated host to another.
 *
 * The sender's turns post them, and each asks for a signal, which must be the only signalled work of that host. Of a
 * stream that is watched (sim_stream_watch) the target's turns do, which see puts arrive, and none asks for a signal.
 *
 * Order of calls: sim_stream_start | sim_stream_watch; change settings before time passes; then sim_stream_finish. Or
 * sim_stream_send alone. */
#pragma once

#include <stdint.h>

#include "tests/simulation/hosts.h"

struct sim_stream {
    struct sim_host *from;
    struct sim_host *to;
    uint32_t peer;
    uint64_t token;
    uint64_t size;
    uint64_t count;         /* in all */
    uint64_t under_way_max; /* 256; watched: as many as the space has room for */
    uint64_t space;         /* of the target's region: all of it ... */
    uint64_t base;          /* ... from 0 on */
    uint64_t posted;
};

/* `stream` must stay where it is. */
void sim_stream_start(struct sim_hosts *hosts, struct sim_stream *stream, uint32_t from, uint32_t to, uint64_t size,
                      uint64_t count);
void sim_stream_watch(struct sim_hosts *hosts, struct sim_stream *stream, uint32_t from, uint32_t to, uint64_t size);

/* Until the host's stream is complete, or `limit_ns` of virtual time have passed. Returns the time it took. */
uint64_t sim_stream_finish(struct sim_hosts *hosts, uint32_t from, uint64_t limit_ns);

/* Both, and nothing is posted from then on. */
uint64_t sim_stream_send(struct sim_hosts *hosts, uint32_t from, uint32_t to, uint64_t size, uint64_t count,
                         uint64_t limit_ns);
