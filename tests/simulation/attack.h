/* What tests of hostile packets share: frames recorded on their way, headers that are written by hand, packets that are
 * let in by hand, and what must not come of it. */
#pragma once

#include "tests/simulation/simulation.h"

#include "dataplane/flow/receive.h"
#include "dataplane/flow/table.h"
#include "dataplane/wire/wire.h"

enum { FRAME_BYTES = 2048 };

struct frame {
    uint32_t node; /* that it left, or came to */
    uint32_t length;
    uint8_t bytes[FRAME_BYTES];
};

struct recording {
    enum cw_simulator_tap_kind kind;
    bool is_off;
    bool (*wants)(uint32_t node, const uint8_t *frame, uint32_t length); /* NULL: all */
    struct frame *frames;                                                /* [most] */
    uint32_t count;
    uint32_t most;
};

static inline struct cw_wire_header *header_of(uint8_t *frame)
{
    return (struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
}

static inline bool is_setup(const uint8_t *frame)
{
    return frame[CW_WIRE_NETWORK_BYTES + offsetof(struct cw_wire_header, type)] <= CW_WIRE_HELLO_REPLY;
}

static inline void record(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                          const uint8_t *frame, uint32_t length)
{
    struct recording *recording = context;
    if (kind == recording->kind && !recording->is_off && recording->count < recording->most && length <= FRAME_BYTES &&
        (recording->wants == NULL || recording->wants(node, frame, length))) {
        struct frame *kept = &recording->frames[recording->count++];
        kept->node = node;
        kept->length = length;
        memcpy(kept->bytes, frame, length);
    }
}

/* From now on; what was recorded before stays. */
static inline void recording_begin(struct recording *recording, struct sim_hosts *hosts, uint32_t most)
{
    if (recording->frames == NULL) {
        recording->frames = calloc(most, sizeof(*recording->frames));
        recording->most = most;
    }
    cw_simulator_tap_set(hosts->simulator, record, recording);
}

/* After the hosts' end. */
static inline void recording_free(struct recording *recording)
{
    free(recording->frames);
    free(recording);
}

/* What is in front of a packet's own header, with so much behind that. */
static inline void network_write(uint8_t *frame, const struct cw_endpoint *target, uint32_t from_ipv4, uint32_t behind)
{
    struct cw_address to = cw_endpoint_address(target);
    struct cw_wire_network *network = (struct cw_wire_network *)frame;
    cw_wire_network_init(network, to.mac, to.mac, from_ipv4, cw_ip_to_v4(&to.ip), CW_UDP_PORT, to.udp_port);
    cw_wire_network_finish(network, behind);
}

/* The target's flow for a host; NULL: it has none. */
static inline struct cw_flow *flow_from(const struct cw_endpoint *target, uint32_t ipv4)
{
    struct cw_ip ip = cw_ip_v4(ipv4);
    return cw_flow_find(target, &ip, CW_UDP_PORT);
}

/* ---- letting in ---- */

/* On their way in together, each in exactly as much memory as it has, so that a sanitizer sees a read beyond it. */
struct burst {
    struct cw_received packets[CW_BURST];
    uint32_t count;
};

static inline void burst_add(struct burst *burst, const uint8_t *bytes, uint32_t length)
{
    uint8_t *exact = malloc(length == 0 ? 1 : length);
    memcpy(exact, bytes, length);
    burst->packets[burst->count++] = (struct cw_received){.data = exact, .length = length};
}

static inline void burst_let_in(struct burst *burst, struct cw_endpoint *target)
{
    cw_receive_frames(target, burst->packets, burst->count);
    for (uint32_t i = 0; i < burst->count; i++) {
        free((void *)(uintptr_t)burst->packets[i].data);
    }
    burst->count = 0;
}

static inline uint64_t refused_count(const struct cw_endpoint *endpoint)
{
    uint64_t count = 0;
    for (enum cw_counter counter = CW_COUNTER_DROP_SHORT; counter <= CW_COUNTER_DROP_HELLO; counter++) {
        count += cw_endpoint_counter(endpoint, counter);
    }
    return count;
}

/* ---- three hosts: the target, who has little of everything, somebody gone mad, and who has done nothing wrong ---- */

enum { TARGET = 0, MADMAN = 1, BYSTANDER = 2, GUARD_BYTES = 8192, GUARD = 0x5c };

static inline void three_hosts(struct sim_hosts *hosts, uint64_t seed, enum cw_encryption encryption)
{
    struct sim_hosts_config config = sim_hosts_config_of(3);
    config.seed = seed;
    config.memory_bytes = 1 << 16;
    config.node.down.loss = 0.02; /* so that there are probes and reports of losses */
    config.endpoint.encryption = encryption;
    config.endpoint.pool_slot_count = 6;
    config.endpoint.reassembly_count_max = 64;
    config.endpoint.operation_count_max = 256;
    config.endpoint.event_count_max = 256;
    config.endpoint.get_count_max = 32;
    config.endpoint.window_block_count = (uint32_t)(8 + seed % 8);
    config.endpoint.failure_timeout_ns = 4000 * SIMULATION_MS;
    simulation_hosts(hosts, &config);
}

static inline void small_talk(struct sim_hosts *hosts, uint32_t from, uint32_t to)
{
    struct sim_host *host = &hosts->list[from];
    uint32_t peer = sim_hosts_peer(hosts, from, to);
    for (uint32_t i = 0; i < 12; i++) {
        struct cw_message message = {.peer = peer, .source = {.contiguous = {.data = host->memory, .bytes = 30 * i}}};
        struct cw_get get = {
            .peer = peer, .region = hosts->list[to].token, .bytes = 700 * i, .local_region = host->token};
        (void)cw_message_send(host->endpoint, &message);
        (void)cw_get(host->endpoint, &get);
    }
    sim_host_wake(host);
}

static inline void guard_check(const uint8_t *guard, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        assert_int_equal(guard[i], GUARD);
    }
}

static inline void bystander_check(struct sim_hosts *hosts)
{
    struct sim_host *bystander = &hosts->list[BYSTANDER];
    (void)sim_stream_send(hosts, BYSTANDER, TARGET, 2000, 10, 3000 * SIMULATION_MS);
    if (bystander->completed != 10 || bystander->failed != 0) {
        fail_msg("seed %llu: a peer that did nothing wrong got %d of 10 puts through, %d failed",
                 (unsigned long long)hosts->config.seed, (int)bystander->completed, (int)bystander->failed);
    }
}
