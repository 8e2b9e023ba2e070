#include "dataplane/rdma/rdma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "dataplane/rdma/rdma_state.h"

static uint32_t turn(struct cw_rdma *base)
{
    struct rdma *rdma = (struct rdma *)base;
    uint32_t count = rdma_complete_turn(rdma) + rdma_datagrams_turn(rdma);
    if (rdma->idle_count >= rdma->idle_most) {
        rdma_buffers_post(rdma);
    }
    return count + rdma_connect_turn(rdma);
}

static uint64_t deadline(const struct cw_rdma *base)
{
    const struct rdma *rdma = (const struct rdma *)base;
    return rdma->pushed_first != NULL ? 0 : rdma_connect_deadline(rdma);
}

/* Everything that is not there is left out. */
static void dispose(struct cw_rdma *base)
{
    struct rdma *rdma = (struct rdma *)base;
    for (uint32_t i = 0; rdma->by_number != NULL && i <= rdma->number_mask; i++) {
        while (rdma->by_number[i] != NULL) {
            rdma_pair_destroy(rdma, rdma->by_number[i]);
        }
    }
    for (uint32_t i = 1; i < rdma->endpoint->regions.count; i++) {
        struct cw_region *region = &rdma->endpoint->regions.table[i];
        if (region->verbs.handle != NULL) {
            rdma_memory_unregister(base, region);
        }
    }
    rdma_datagrams_dispose(rdma);
    rdma_memory_dispose(rdma);
    rdma->endpoint->port->companion = 0;
    cw_verbs_close(rdma->device);
    rdma_datagrams_free(rdma);
    cw_pool_dispose(&rdma->flows);
    cw_pool_dispose(&rdma->pairs);
    free(rdma->by_number);
    sodium_memzero(rdma->token_key, sizeof(rdma->token_key));
    free(rdma);
}

static void arm(struct cw_rdma *base)
{
    cw_verbs_arm(((struct rdma *)base)->device);
}

static const struct cw_rdma_ops rdma_ops = {
    .accepts = rdma_accepts,
    .queue = rdma_queue,
    .retry = rdma_retry,
    .push = rdma_push,
    .fetch = rdma_fetch,
    .turn = turn,
    .deliver = rdma_deliver,
    .deadline = deadline,
    .session_begin = rdma_session_begin,
    .session_stop = rdma_session_stop,
    .session_end = rdma_session_end,
    .frame = rdma_frame,
    .memory_register = rdma_memory_register,
    .means_key = rdma_means_key,
    .memory_is_busy = rdma_memory_is_busy,
    .memory_unregister = rdma_memory_unregister,
    .slot_released = rdma_slot_released,
    .datagram_bytes = rdma_datagram_bytes,
    .group_join = rdma_group_join,
    .group_leave = rdma_group_leave,
    .group_is_joined = rdma_group_is_joined,
    .datagram_room = rdma_datagram_room,
    .datagram_send = rdma_datagram_send,
    .arm = arm,
    .dispose = dispose,
};

static uint32_t pair_bytes(const struct cw_verbs_device *device)
{
    return (uint32_t)(sizeof(struct rdma_pair) + device->info.work_max * sizeof(uint16_t));
}

static int tables_init(struct rdma *rdma)
{
    uint32_t peers = rdma->endpoint->config.peer_count_max;
    uint32_t pairs = 2 * peers < rdma->device->info.pair_count_max ? 2 * peers : rdma->device->info.pair_count_max;
    uint32_t buckets = 16;
    while (buckets < peers) {
        buckets *= 2;
    }
    rdma->number_mask = buckets - 1;
    rdma->by_number = calloc(buckets, sizeof(struct rdma_pair *));
    int status = rdma->by_number == NULL ? CW_ERROR_MEMORY : CW_OK;
    if (status == CW_OK) {
        status = cw_pool_init(&rdma->flows, peers, sizeof(struct rdma_flow));
    }
    return status == CW_OK ? cw_pool_init(&rdma->pairs, pairs, pair_bytes(rdma->device)) : status;
}

struct cw_verbs_config cw_rdma_device_config(const struct cw_endpoint_config *config, const char *name)
{
    return (struct cw_verbs_config){.name = name,
                                    .work_max = RDMA_WORK,
                                    .receive_max = config->pool_slot_count + RDMA_BUFFERS_SPARE,
                                    .pair_count_max = 2 * config->peer_count_max};
}

int cw_rdma_attach(struct cw_endpoint *endpoint, struct cw_verbs_device *device, char *error, size_t error_bytes)
{
    struct rdma *rdma = calloc(1, sizeof(*rdma));
    if (rdma == NULL) {
        snprintf(error, error_bytes, "%s: no memory", device->info.port.name);
        cw_verbs_close(device);
        return CW_ERROR_MEMORY;
    }
    rdma->base.ops = &rdma_ops;
    rdma->endpoint = endpoint;
    rdma->device = device;
    static const uint8_t label[] = "causeway rdma token";
    crypto_generichash(rdma->token_key, sizeof(rdma->token_key), label, sizeof(label), endpoint->config.job_key,
                       sizeof(endpoint->config.job_key));
    int status = tables_init(rdma);
    if (status != CW_OK) {
        snprintf(error, error_bytes, "%s: no memory for its tables", device->info.port.name);
    } else {
        status = rdma_memory_init(rdma, error, error_bytes);
    }
    if (status != CW_OK) {
        dispose(&rdma->base);
        return status;
    }
    endpoint->rdma = &rdma->base;
    endpoint->port->companion = device->info.descriptor;
    return CW_OK;
}

static struct rdma_flow *flow_at(const struct cw_endpoint *endpoint, uint32_t peer)
{
    const struct cw_flow *flow = cw_endpoint_flow(endpoint, peer);
    return flow != NULL ? rdma_flow_of(flow) : NULL;
}

enum cw_rdma_state cw_rdma_state(const struct cw_endpoint *endpoint, uint32_t peer)
{
    const struct rdma_flow *flow = flow_at(endpoint, peer);
    return flow != NULL ? flow->state : CW_RDMA_NONE;
}

void cw_rdma_break(struct cw_endpoint *endpoint, uint32_t peer)
{
    struct rdma_flow *flow = flow_at(endpoint, peer);
    if (flow != NULL && flow->pair != NULL) {
        rdma_pair_broken((struct rdma *)endpoint->rdma, flow);
    }
}

bool cw_rdma_has_failed(const struct cw_endpoint *endpoint)
{
    const struct rdma *rdma = (const struct rdma *)endpoint->rdma;
    return rdma != NULL && rdma->has_failed;
}

bool cw_rdma_has_groups(const struct cw_endpoint *endpoint)
{
    return endpoint->rdma != NULL && rdma_datagram_bytes(endpoint->rdma) > 0;
}

const char *cw_rdma_without_groups(const struct cw_endpoint *endpoint)
{
    const struct rdma *rdma = (const struct rdma *)endpoint->rdma;
    return rdma != NULL ? rdma->device->info.without_groups : "no RDMA device";
}

const struct cw_cache_counters *cw_rdma_registrations(const struct cw_endpoint *endpoint)
{
    const struct rdma *rdma = (const struct rdma *)endpoint->rdma;
    return rdma != NULL ? &rdma->cache.counters : NULL;
}

struct cw_rdma_memory cw_rdma_memory(const struct cw_endpoint *endpoint)
{
    const struct rdma *rdma = (const struct rdma *)endpoint->rdma;
    uint64_t staging_bytes = (uint64_t)RDMA_BLOCKS * rdma->block_bytes;
    return (struct cw_rdma_memory){.receive_bytes = rdma->memory_bytes - staging_bytes,
                                   .staging_bytes = staging_bytes,
                                   .peer_bytes = rdma->flows.object_bytes,
                                   .pair_bytes = rdma->pairs.object_bytes,
                                   .group_bytes = rdma->datagrams.memory_bytes};
}
