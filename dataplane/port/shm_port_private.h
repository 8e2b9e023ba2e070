/* The memory that both ends of a shared-memory port have: written by the client when it is made, positions by their
 * owners. */
#pragma once

#include <assert.h>
#include <stdatomic.h>

#include "dataplane/port/shm_port.h"

#define SHM_PORT_MAGIC UINT64_C(0x31524941505743)

enum { SHM_PORT_LINE = 64, SHM_PORT_FRAME_HEAD = 14, SHM_PORT_PAGE = 4096 };

struct shm_port_out {
    uint32_t place; /* of the buffer, among the client's send buffers */
    uint32_t length;
    uint64_t departure_ns; /* struct cw_transmit */
    uint64_t checksum;
};

struct shm_port_in {
    uint32_t length;
    uint32_t checksum; /* struct cw_received */
    uint64_t arrival_ns;
};

struct shm_port_shared {
    uint64_t magic;
    uint32_t version;
    uint32_t frames; /* of each ring */
    uint32_t buffer_bytes;
    uint32_t mtu_bytes;
    /* Positions count frames, and wrap. The client's: */
    _Alignas(SHM_PORT_LINE) _Atomic uint32_t out_written;
    _Atomic uint32_t empty_written; /* up to `frames` ahead of in_written */
    /* the server's: */
    _Alignas(SHM_PORT_LINE) _Atomic uint32_t out_consumed;
    _Atomic uint32_t in_written; /* the buffer of place empty[n] has the frame of length in[n] */
    /* sleep state, and the number of wake-ups of the client */
    _Alignas(SHM_PORT_LINE) _Atomic uint32_t client_asleep;
    _Atomic uint32_t client_woken;
    _Atomic uint32_t server_asleep;
    /* of the client; odd while they change */
    _Alignas(SHM_PORT_LINE) _Atomic uint32_t groups_version;
    uint32_t group_count;
    uint8_t groups[CW_SHM_PORT_GROUPS_MAX][6];
    /* of the client, for a server with offloads */
    struct cw_port_claim claim;
    uint32_t doubts; /* offloads put away, a bit each */
    /* of that server */
    _Atomic uint32_t link_changes;
};

static_assert(sizeof(struct shm_port_shared) < SHM_PORT_PAGE, "the rings follow on the next page");

/* Where the rings and buffers lie; the same at both ends. */
struct shm_port_layout {
    size_t out;     /* struct shm_port_out[frames] */
    size_t in;      /* struct shm_port_in[frames] */
    size_t empty;   /* uint32_t[frames] */
    size_t buffers; /* those to send from, then those to receive into */
    size_t bytes;
};

static inline uint32_t shm_port_buffer_bytes(uint32_t mtu_bytes)
{
    return (SHM_PORT_FRAME_HEAD + mtu_bytes + 127) & ~127u;
}

static inline struct shm_port_layout shm_port_layout(uint32_t frames, uint32_t buffer_bytes)
{
    struct shm_port_layout layout = {.out = SHM_PORT_PAGE};
    layout.in = layout.out + frames * sizeof(struct shm_port_out);
    layout.empty = layout.in + frames * sizeof(struct shm_port_in);
    layout.buffers = (layout.empty + frames * sizeof(uint32_t) + SHM_PORT_PAGE - 1) & ~(size_t)(SHM_PORT_PAGE - 1);
    layout.bytes = layout.buffers + 2 * (size_t)frames * buffer_bytes;
    return layout;
}
