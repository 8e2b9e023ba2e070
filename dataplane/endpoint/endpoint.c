#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "dataplane/compress/choice.h"
#include "dataplane/congestion/bandwidth.h"
#include "dataplane/flow/extension.h"
#include "dataplane/flow/integrity.h"
#include "dataplane/flow/session.h"
#include "dataplane/flow/shaper.h"
#include "dataplane/put/get.h"
#include "dataplane/put/message.h"
#include "dataplane/put/operation.h"
#include "dataplane/put/reassembly.h"
#include "dataplane/staging/seal.h"
#include "dataplane/state/endpoint.h"
#include "dataplane/state/rdma.h"

void cw_endpoint_config_init(struct cw_endpoint_config *config)
{
    *config = (struct cw_endpoint_config){
        .waiting = CW_WAITING_SPIN,
        .stream_count = 1,
        .peer_count_max = CW_DEFAULT_PEERS,
        .region_count_max = CW_DEFAULT_REGIONS,
        .operation_count_max = CW_DEFAULT_OPERATIONS,
        .reassembly_count_max = CW_DEFAULT_REASSEMBLIES,
        .event_count_max = CW_DEFAULT_EVENTS,
        .get_count_max = CW_DEFAULT_GETS,
        .pool_slot_count = CW_DEFAULT_SLOTS,
        .pool_slot_bytes = CW_DEFAULT_SLOT_BYTES,
        .sent_chunk_count = CW_DEFAULT_SENT_CHUNKS,
        .window_block_count = CW_DEFAULT_WINDOW_BLOCKS,
        .congestion_window_max_bytes = CW_DEFAULT_CONGESTION_WINDOW_BYTES,
        .failure_timeout_ns = CW_DEFAULT_FAILURE_TIMEOUT_NS,
    };
}

/* A limit of the configuration and the range it may have. */
struct range {
    const char *name;
    uint64_t value;
    uint64_t least;
    uint64_t most;
};

static int check_config(const struct cw_endpoint_config *config, const struct cw_port *port, char *error,
                        size_t error_bytes)
{
    const struct range ranges[] = {
        {"stream_count", config->stream_count, 1, CW_STREAMS_MAX},
        {"peer_count_max", config->peer_count_max, 1, CW_PEERS_MAX},
        {"region_count_max", config->region_count_max, 1, CW_REGIONS_MAX - 1},
        {"operation_count_max", config->operation_count_max, 2 * CW_OPERATIONS_RESERVED, 1u << 24},
        {"reassembly_count_max", config->reassembly_count_max, 2ull * config->peer_count_max, 1u << 24},
        {"event_count_max", config->event_count_max, CW_OPERATIONS_A_PACKET + 1, 1u << 24},
        {"get_count_max", config->get_count_max, 1, 65534},
        {"pool_slot_count", config->pool_slot_count, 0, CW_SLOTS_MAX},
        {"pool_slot_bytes", config->pool_slot_bytes, config->pool_slot_count > 0 ? 64 : 0, CW_SLOT_BYTES_MAX},
        {"sent_chunk_count", config->sent_chunk_count, 2, 1u << 24},
        {"window_block_count", config->window_block_count, 4, 1u << 24},
        {"congestion_window_max_bytes", config->congestion_window_max_bytes, 2 * CW_PORT_MTU_ETHERNET_MAX, UINT32_MAX},
        {"failure_timeout_ns", config->failure_timeout_ns, 1000000, UINT64_MAX / 4},
        {"encryption", config->encryption, CW_ENCRYPTION_OFF, CW_ENCRYPTION_REQUIRED},
        {"waiting", config->waiting, CW_WAITING_SPIN, CW_WAITING_NAP},
        {"address.udp_port", config->address.udp_port, 1, 65536ull - config->stream_count},
        {"the port's mtu_bytes", port->info.mtu_bytes, CW_PORT_MTU_MIN, CW_PORT_MTU_MAX},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most) {
            snprintf(error, error_bytes, "endpoint: %s is %llu, must be %llu to %llu", ranges[i].name,
                     (unsigned long long)ranges[i].value, (unsigned long long)ranges[i].least,
                     (unsigned long long)ranges[i].most);
            return CW_ERROR_ARGUMENT;
        }
    }
    if (cw_ip_is_none(&config->address.ip)) {
        snprintf(error, error_bytes, "endpoint: address.ip is missing");
        return CW_ERROR_ARGUMENT;
    }
    if ((config->event_count_max & (config->event_count_max - 1)) != 0 || config->pool_slot_bytes % 64 != 0) {
        snprintf(error, error_bytes,
                 "endpoint: event_count_max must be a power of two and pool_slot_bytes a multiple of 64");
        return CW_ERROR_ARGUMENT;
    }
    return CW_OK;
}

static int init_tables(struct cw_endpoint *endpoint)
{
    const struct cw_endpoint_config *config = &endpoint->config;
    uint32_t buckets = 16;
    while (buckets < config->peer_count_max) {
        buckets *= 2;
    }
    endpoint->flow_bucket_mask = buckets - 1;
    endpoint->flow_buckets = calloc(buckets, sizeof(*endpoint->flow_buckets));
    endpoint->flow_keys = calloc(config->peer_count_max, sizeof(*endpoint->flow_keys));
    int status = endpoint->flow_buckets == NULL || endpoint->flow_keys == NULL ? CW_ERROR_MEMORY : CW_OK;
    if (status == CW_OK) {
        status = cw_pool_init(&endpoint->flows, config->peer_count_max, sizeof(struct cw_flow));
    }
    if (status == CW_OK && endpoint->config.encryption != CW_ENCRYPTION_OFF) {
        status = cw_pool_init(&endpoint->seals, config->peer_count_max + 1, sizeof(struct cw_seal));
    }
    if (status == CW_OK) {
        status = cw_pool_init(&endpoint->bandwidths, config->peer_count_max, sizeof(struct cw_bandwidth));
    }
    if (status == CW_OK) {
        uint32_t stores = config->peer_count_max < CW_CREDIT_STORES ? config->peer_count_max : CW_CREDIT_STORES;
        status = cw_pool_init(&endpoint->credit_stores, stores, sizeof(struct cw_credit_store));
    }
    if (status == CW_OK) {
        status = cw_pool_init(&endpoint->lates, config->peer_count_max, sizeof(struct cw_late));
    }
    if (status == CW_OK) {
        status = cw_pool_init(&endpoint->sent_chunks, config->sent_chunk_count, sizeof(struct cw_sent_chunk));
    }
    if (status == CW_OK) {
        status = cw_pool_init(&endpoint->blocks, config->window_block_count, CW_WINDOW_BLOCK_BYTES);
    }
    if (status == CW_OK) {
        status = cw_pool_init(&endpoint->operations, config->operation_count_max, sizeof(struct cw_operation));
    }
    if (status == CW_OK) {
        status = cw_regions_init(&endpoint->regions, config->region_count_max + 1); /* one for the message pool */
    }
    if (status == CW_OK) {
        status = cw_lanes_init(&endpoint->lanes, config->operation_count_max);
    }
    if (status == CW_OK) {
        status = cw_reassemblies_init(&endpoint->reassemblies, config->reassembly_count_max);
    }
    if (status == CW_OK) {
        status = cw_gets_init(&endpoint->gets, config->get_count_max);
    }
    if (status == CW_OK) {
        status = cw_events_init(&endpoint->events, config->event_count_max);
    }
    return status == CW_OK ? cw_messages_init(endpoint) : status;
}

/* Keys are libcrypto's, and must be given back one by one. */
static void dispose_seals(struct cw_endpoint *endpoint)
{
    for (uint32_t i = 0; endpoint->config.encryption != CW_ENCRYPTION_OFF && i < endpoint->flows.fresh; i++) {
        struct cw_flow *flow = cw_pool_at(&endpoint->flows, i);
        cw_seal_destroy(endpoint, flow->session.seal);
    }
    cw_pool_dispose(&endpoint->seals);
    sodium_memzero(endpoint->setup_key, sizeof(endpoint->setup_key));
}

static void dispose(struct cw_endpoint *endpoint)
{
    dispose_seals(endpoint);
    if (endpoint->rdma != NULL) {
        endpoint->rdma->ops->dispose(endpoint->rdma);
    }
    if (endpoint->fetched_count > 0) {
        cw_port_release(endpoint->port, endpoint->fetched, endpoint->fetched_count);
    }
    cw_port_cancel(endpoint->port, endpoint->spare, endpoint->spare_count);
    cw_port_cancel(endpoint->port, endpoint->staged, endpoint->staged_count);
    for (uint32_t i = 1; i < endpoint->regions.count && endpoint->regions.table != NULL; i++) {
        struct cw_region *region = &endpoint->regions.table[i];
        /* packets the driver still holds keep their memory mapped until the port is closed: nothing more can be done
         * here */
        if (region->memory != NULL) {
            (void)cw_port_memory_unregister(endpoint->port, region->memory);
        }
    }
    cw_chunks_dispose(endpoint);
    cw_compress_dispose(endpoint);
    cw_messages_dispose(endpoint);
    cw_events_dispose(&endpoint->events);
    cw_gets_dispose(&endpoint->gets);
    cw_reassemblies_dispose(&endpoint->reassemblies);
    cw_lanes_dispose(&endpoint->lanes);
    cw_regions_dispose(&endpoint->regions);
    cw_pool_dispose(&endpoint->operations);
    cw_pool_dispose(&endpoint->blocks);
    cw_pool_dispose(&endpoint->sent_chunks);
    cw_pool_dispose(&endpoint->lates);
    cw_pool_dispose(&endpoint->credit_stores);
    cw_pool_dispose(&endpoint->bandwidths);
    cw_pool_dispose(&endpoint->flows);
    free(endpoint->flow_buckets);
    free(endpoint->flow_keys);
    sodium_memzero(endpoint->config.job_key, sizeof(endpoint->config.job_key));
    free(endpoint);
}

int cw_endpoint_create(const struct cw_endpoint_config *config, struct cw_port *port, uint64_t now_ns,
                       struct cw_endpoint **endpoint, char *error, size_t error_bytes)
{
    int status = check_config(config, port, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    if (sodium_init() < 0) {
        snprintf(error, error_bytes, "endpoint: libsodium cannot be initialised");
        return CW_ERROR_SYSTEM;
    }
    if (config->encryption != CW_ENCRYPTION_OFF && (status = cw_aead_load(error, error_bytes)) != CW_OK) {
        return status;
    }
    struct cw_endpoint *created = aligned_alloc(64, (sizeof(*created) + 63) & ~(size_t)63);
    if (created == NULL) {
        snprintf(error, error_bytes, "endpoint: no memory");
        return CW_ERROR_MEMORY;
    }
    memset(created, 0, sizeof(*created));
    created->config = *config;
    created->port = port;
    cw_shaper_line(created);
    created->now_ns = now_ns;
    static const uint8_t none[6] = {0};
    if (memcmp(config->address.mac, none, 6) == 0) {
        memcpy(created->config.address.mac, port->info.mac, 6);
    }
    cw_random_seed(&created->random, config->seed);
    created->incarnation = cw_random_next(&created->random);
    cw_wire_outer_init(&created->outer, created->config.address.mac, &config->address.ip);
    created->overhead_bytes = created->outer.bytes + CW_WIRE_HEADER_BYTES;
    created->payload_bytes_max = 14 + port->info.mtu_bytes - created->overhead_bytes;
    created->packet_flags = (uint16_t)config->waiting;
    created->rdma_order = UINT64_MAX;
    cw_wire_setup_derive(created->setup_key, config->job_key);
    cw_wheel_init(&created->wheel, now_ns);
    cw_integrity_init(created);
    const struct cw_port_claim claim = {.ip = config->address.ip,
                                        .udp_port = config->address.udp_port,
                                        .udp_port_count = (uint16_t)config->stream_count,
                                        .group_port = config->group_port};
    cw_port_claim(port, &claim);
    status = init_tables(created);
    if (status != CW_OK) {
        snprintf(error, error_bytes,
                 "endpoint: no memory for tables of this size; lower the *_max values of the configuration");
        dispose(created);
        return status;
    }
    *endpoint = created;
    return CW_OK;
}

void cw_endpoint_destroy(struct cw_endpoint *endpoint)
{
    if (endpoint == NULL) {
        return;
    }
    cw_session_goodbye(endpoint);
    dispose(endpoint);
}

struct cw_address cw_endpoint_address(const struct cw_endpoint *endpoint)
{
    return endpoint->config.address;
}

uint32_t cw_endpoint_events(struct cw_endpoint *endpoint, struct cw_event *events, uint32_t count_max)
{
    struct cw_extension *extension = endpoint->extension;
    return cw_events_pop(&endpoint->events, events, count_max, extension != NULL ? extension->event : NULL, extension);
}

/* ---- counters and memory ---- */

uint64_t cw_endpoint_counter(const struct cw_endpoint *endpoint, enum cw_counter counter)
{
    assert(counter < CW_COUNTER_COUNT);
    return counter == CW_COUNTER_DROP_REFUSED ? endpoint->port->info.refused : endpoint->counters[counter];
}

static const char *const counter_names[CW_COUNTER_COUNT] = {
#define CW_COUNTER_NAME(name, meaning) [CW_COUNTER_##name] = #name,
    CW_COUNTERS(CW_COUNTER_NAME)
#undef CW_COUNTER_NAME
};

const char *cw_counter_name(enum cw_counter counter)
{
    return counter < CW_COUNTER_COUNT ? counter_names[counter] : NULL;
}

/* The last object released is used first, so that objects beyond the largest number in use stay untouched. */
static uint64_t touched_bytes(const struct cw_endpoint *endpoint)
{
    const struct cw_endpoint_config *config = &endpoint->config;
    const struct cw_pool *pools[] = {
        &endpoint->seals,      &endpoint->bandwidths,        &endpoint->sent_chunks,   &endpoint->blocks,
        &endpoint->operations, &endpoint->reassemblies.pool, &endpoint->credit_stores, &endpoint->lates,
    };
    uint64_t bytes = sizeof(*endpoint) + config->event_count_max * sizeof(struct cw_event) +
                     config->pool_slot_count * sizeof(struct cw_slot) +
                     (uint64_t)endpoint->messages.lent_most * config->pool_slot_bytes +
                     endpoint->regions.count * sizeof(struct cw_region);
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        bytes += (uint64_t)pools[i]->fresh * pools[i]->object_bytes;
    }
    for (uint32_t i = 0; i < endpoint->flows.fresh; i++) {
        const struct cw_flow *flow = cw_pool_at(&endpoint->flows, i);
        bytes += sizeof(struct cw_flow_key) + (flow->address.udp_port != 0 ? endpoint->flows.object_bytes : 0);
    }
    return bytes;
}

struct cw_memory_info cw_endpoint_memory(const struct cw_endpoint *endpoint)
{
    const struct cw_endpoint_config *config = &endpoint->config;
    return (struct cw_memory_info){
        .touched_bytes = touched_bytes(endpoint),
        .endpoint_bytes = sizeof(*endpoint) + cw_pool_bytes(&endpoint->flows) +
                          (uint64_t)endpoint->flows.count * sizeof(struct cw_flow_key) +
                          cw_pool_bytes(&endpoint->seals) + cw_pool_bytes(&endpoint->bandwidths) +
                          cw_pool_bytes(&endpoint->credit_stores) + cw_pool_bytes(&endpoint->lates) +
                          cw_pool_bytes(&endpoint->sent_chunks) + cw_pool_bytes(&endpoint->blocks) +
                          cw_pool_bytes(&endpoint->operations) + cw_pool_bytes(&endpoint->reassemblies.pool) +
                          (uint64_t)config->event_count_max * sizeof(struct cw_event) +
                          (uint64_t)config->pool_slot_count * (config->pool_slot_bytes + sizeof(struct cw_slot)) +
                          (uint64_t)endpoint->regions.count * sizeof(struct cw_region),
        .peer_bytes = endpoint->flows.object_bytes,
        .active_flow_bytes =
            endpoint->sent_chunks.object_bytes + endpoint->blocks.object_bytes + endpoint->operations.object_bytes,
        .packets_per_chunk = CW_SENT_CHUNK,
    };
}
