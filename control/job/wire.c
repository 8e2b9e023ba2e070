#include "control/job/wire_private.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "control/job/key.h"
#include "control/lease/lease.h"
#include "control/settings/setting.h"
#include "control/topology/clusters.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/virtual.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/port.h"

enum {
    /* The longest message, with the head of an MPI message. Where each packet is a system call, a copy of 64 KiB costs
     * less than the packets by which sender and receiver would agree on a place for it. */
    SLOT_BYTES = 8192 + 64,
    SLOT_BYTES_SOCKETS = 65536 + 64,
    REGIONS = 16384,
};
#define NEVER_NS UINT64_C(100000000000000000) /* three years */

static int emulation_read(uint32_t size, struct wire_emulation *emulation, char *error, size_t error_bytes)
{
    const char *text = cw_setting(CW_SETTING_EMULATE);
    *emulation = (struct wire_emulation){0};
    if (text == NULL || text[0] == 0) {
        return CW_OK;
    }
    emulation->is_simulated = sscanf(text, "%u,simulated,%u,%" SCNu64 ",%199s", &emulation->hosts,
                                     &emulation->mtu_bytes, &emulation->rate_bps, emulation->socket) == 4;
    bool memif = emulation->is_simulated || sscanf(text, "%u,memif,%199s", &emulation->hosts, emulation->socket) == 2;
    if (!memif || emulation->hosts < 1) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "CAUSEWAY_EMULATE is '%.60s', not \"HOSTS,memif,SOCKET\"; let "
                             "`causeway run --emulate` set it",
                             text);
    }
    uint32_t ranks_max = emulation->is_simulated ? CW_VIRTUAL_RANKS_MAX : CW_EMULATED_RANKS_MAX;
    if (size > ranks_max) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "%u ranks on emulated hosts; %u are possible", size,
                             ranks_max);
    }
    return CW_OK;
}

int cw_wire_host(uint32_t rank, uint32_t size, int *host, char *error, size_t error_bytes)
{
    struct wire_emulation emulation;
    int status = emulation_read(size, &emulation, error, error_bytes);
    if (status == CW_OK) {
        *host = emulation.hosts == 0 ? -1 : (int)cw_clusters_block(rank, size, emulation.hosts);
    }
    return status;
}

bool cw_wire_is_simulated(void)
{
    const char *text = cw_setting(CW_SETTING_EMULATE);
    return text != NULL && strstr(text, ",simulated,") != NULL;
}

static bool has_topology(void)
{
    const char *topology = cw_setting(CW_SETTING_TOPOLOGY);
    return topology != NULL && topology[0] != 0;
}

bool cw_wire_may_seal(void)
{
    const char *encrypt = cw_setting(CW_SETTING_ENCRYPT);
    bool is_off = encrypt != NULL && strcmp(encrypt, "off") == 0, is_asked = encrypt != NULL && encrypt[0] != 0;
    return !is_off && (is_asked || has_topology());
}

/* CAUSEWAY_CONGESTION: delay or loss. False: neither. */
static bool congestion_read(enum cw_congestion_control *congestion, char *error, size_t error_bytes)
{
    const char *text = cw_setting(CW_SETTING_CONGESTION);
    bool by_loss = text != NULL && strcmp(text, "loss") == 0;
    *congestion = by_loss ? CW_CONGESTION_LOSS : CW_CONGESTION_DELAY;
    if (!by_loss && text != NULL && text[0] != 0 && strcmp(text, "delay") != 0) {
        (void)cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "CAUSEWAY_CONGESTION=%s: wanted is delay (queues stay short) or loss (as the TCP of 2003, to "
            "compare with)",
            text);
        return false;
    }
    return true;
}

/* CAUSEWAY_INTEGRITY: end-to-end: processes verify payloads, independent of NICs, kernels and memory. False: neither
 * that nor auto. */
static bool integrity_read(bool *end_to_end, char *error, size_t error_bytes)
{
    const char *text = cw_setting(CW_SETTING_INTEGRITY);
    bool is_auto = text == NULL || text[0] == 0 || strcmp(text, "auto") == 0;
    *end_to_end = !is_auto;
    if (!is_auto && strcmp(text, "end-to-end") != 0) {
        (void)cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                            "CAUSEWAY_INTEGRITY=%s: wanted is auto (payloads have a CRC-32C where the medium does not "
                            "keep or verify them) or end-to-end (they always have)",
                            text);
        return false;
    }
    return true;
}

/* Common configuration of the endpoints of all loops. */
static int endpoint_config(const struct cw_wire_request *request, struct cw_wire *wire,
                           struct cw_endpoint_config *config, char *error, size_t error_bytes)
{
    cw_endpoint_config_init(config);
    memcpy(config->job_key, request->key, CW_JOB_KEY_BYTES);
    config->failure_timeout_ns = wire->failure_timeout_ns;
    config->is_excused = request->is_excused;
    config->excuse_context = request->excuse_context;
    if (cw_virtual_is_on()) {
        cw_virtual_random(&config->seed, sizeof(config->seed));
    } else if (getrandom(&config->seed, sizeof(config->seed), 0) != (ssize_t)sizeof(config->seed)) {
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "the kernel gives no random numbers");
    }
    if (!congestion_read(&config->congestion, error, error_bytes) ||
        !integrity_read(&config->end_to_end, error, error_bytes)) {
        return CW_ERROR_ARGUMENT;
    }
    config->address = wire->address;
    /* a socket's port reports its groups itself, and shows their packets as those to its own number */
    config->group_port = request->own != NULL && request->transport != CW_NET_TRANSPORT_UDP ? CW_UDP_PORT : 0;
    config->peer_count_max = request->size < CW_PEERS_MAX ? request->size : CW_PEERS_MAX;
    config->reassembly_count_max += 2 * config->peer_count_max;
    config->region_count_max = REGIONS;
    wire->messages_registered = wire->is_socket && !request->has_devices && !request->may_have_rdma;
    config->pool_slot_bytes = wire->messages_registered ? SLOT_BYTES_SOCKETS : SLOT_BYTES;
    wire->message_bytes_max = config->pool_slot_bytes;
    /* from the start: a peer that seals already must not be rejected by a rank that learns of sealing later */
    config->encryption = request->may_seal ? CW_ENCRYPTION_ASKED : CW_ENCRYPTION_OFF;
    return CW_OK;
}

static int endpoint_create(struct cw_endpoint_config *config, const struct cw_loop_config *loop, struct cw_port *port,
                           struct cw_endpoint **endpoint, char *error, size_t error_bytes)
{
    config->waiting = cw_loop_waiting(loop, &port->info);
    int status = cw_endpoint_create(config, port, cw_clock_ns(), endpoint, error, error_bytes);
    if (status == CW_ERROR_UNSUPPORTED) {
        config->encryption = CW_ENCRYPTION_OFF; /* nothing here seals: an error if it is wanted */
        status = cw_endpoint_create(config, port, cw_clock_ns(), endpoint, error, error_bytes);
    }
    *endpoint = status == CW_OK ? *endpoint : NULL;
    return status;
}

static int loop_create(const struct cw_loop_config *config, struct cw_endpoint *endpoint, struct cw_port *port,
                       struct cw_loop **loop, char *error, size_t error_bytes)
{
    int status = cw_loop_create(config, endpoint, port, loop, error, error_bytes);
    *loop = status == CW_OK ? *loop : NULL;
    return status;
}

/* An address of the rank's own, and groups. */
static int endpoint_complete(const struct cw_wire_request *request, struct cw_wire *wire, char *error,
                             size_t error_bytes)
{
    int status = request->own != NULL && request->transport == CW_NET_TRANSPORT_DEVICE
                     ? wire_nic_own(request, wire, error, error_bytes)
                     : CW_OK;
    if (status == CW_OK && !request->no_groups) {
        status = wire_multicast_open(request, !wire->port->info.reports, wire, error, error_bytes);
    }
    return status;
}

/* Additional loops: threads that wait there handle their events. */
static int further_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    struct cw_loop_config loop;
    struct cw_endpoint_config config;
    int status = CW_OK;
    cw_loop_config_init(&loop);
    loop.mode = CW_LOOP_DEDICATED;
    loop.yield_ns = UINT64_MAX; /* polls all the time, and sleeps only where another thread keeps the core */
    loop.first = wire->loop;
    for (uint32_t i = 0; i < wire->further_count && status == CW_OK; i++) {
        struct cw_wire_further *further = &wire->further[i];
        status = endpoint_config(request, wire, &config, error, error_bytes);
        config.address.udp_port = (uint16_t)(wire->address.udp_port + i + 1);
        loop.core = request->dedicated->cores[i + 1];
        status = status == CW_OK
                     ? endpoint_create(&config, &loop, further->port, &further->endpoint, error, error_bytes)
                     : status;
        status = status == CW_OK
                     ? loop_create(&loop, further->endpoint, further->port, &further->loop, error, error_bytes)
                     : status;
    }
    return status;
}

static int endpoint_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    struct cw_endpoint_config config;
    struct cw_loop_config loop;
    cw_loop_config_init(&loop);
    loop.fallback = CW_FALLBACK_CALLER; /* the control thread */
    loop.yield_ns = cw_virtual_is_on() ? 0 : loop.yield_ns;
    loop.stands_by = request->dedicated->count > 0;
    int status = endpoint_config(request, wire, &config, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    wire->seed = config.seed ^ UINT64_C(0x6d63617374);
    status = endpoint_create(&config, &loop, wire->port, &wire->endpoint, error, error_bytes);
    status = status == CW_OK ? wire_rdma_attach(wire, &config, error, error_bytes) : status;
    status = status == CW_OK ? endpoint_complete(request, wire, error, error_bytes) : status;
    status = status == CW_OK ? loop_create(&loop, wire->endpoint, wire->port, &wire->loop, error, error_bytes) : status;
    return status == CW_OK ? further_open(request, wire, error, error_bytes) : status;
}

/* How many loops it has: as many as threads, where each can have a port. */
static void loops_count(const struct cw_wire_request *request, struct cw_wire *wire)
{
    const char *why = request->own == NULL ? "an emulated host has one port"
                      : request->transport == CW_NET_TRANSPORT_DEVICE && !cw_ip_is_none(&request->device->gateway)
                          ? "one loop alone gets the notice that a gateway's MAC address has changed"
                      : wire->has_rdma                              ? "queue pairs have one loop"
                      : request->transport == CW_NET_TRANSPORT_NODE ? "the node serves one loop of a rank"
                      : request->may_seal                           ? "sessions that may be sealed have one loop"
                      : has_topology()                              ? "clusters' sessions have one loop"
                                                                    : "";
    uint32_t threads = request->dedicated->count;
    wire->further_count = threads > 1 && why[0] == 0 ? threads - 1 : 0;
    snprintf(wire->undivided, sizeof(wire->undivided), "%s", threads > 1 ? why : "");
}

int cw_wire_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    struct wire_emulation emulation;
    *wire = (struct cw_wire){.failure_timeout_ns = request->bound_ns > 0 ? request->bound_ns : NEVER_NS};
    int status = emulation_read(request->size, &emulation, error, error_bytes);
    if (status == CW_OK && request->own != NULL) {
        status = wire_rdma_find(request, wire, error, error_bytes);
    }
    loops_count(request, wire);
    if (status == CW_OK && request->key == NULL) {
        status = cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "there is no key of the job: let `causeway run` start it, or set CAUSEWAY_JOB_KEY to 32 hexadecimal "
            "digits, the same on all ranks");
    }
    if (status == CW_OK && request->own == NULL) {
        status = emulation.is_simulated ? wire_simulated_open(request->rank, &emulation, wire, error, error_bytes)
                                        : wire_port_open(request->rank, &emulation, wire, error, error_bytes);
        status = status == CW_OK ? wire_rdma_find(request, wire, error, error_bytes) : status; /* a simulated host's */
    } else if (status == CW_OK) {
        status = request->transport == CW_NET_TRANSPORT_UDP      ? wire_socket_open(request, wire, error, error_bytes)
                 : request->transport == CW_NET_TRANSPORT_DEVICE ? cw_wire_nic_open(request, wire, error, error_bytes)
                                                                 : wire_node_open(request, wire, error, error_bytes);
    }
    if (status == CW_OK) {
        status = endpoint_open(request, wire, error, error_bytes);
    }
    if (status != CW_OK) {
        cw_wire_close(wire);
    }
    return status;
}

struct cw_loop_set cw_wire_set(const struct cw_wire *wire)
{
    struct cw_loop_set set = {.loops = {wire->loop}, .count = 1 + wire->further_count};
    for (uint32_t i = 0; i < wire->further_count; i++) {
        set.loops[i + 1] = wire->further[i].loop;
    }
    return set;
}

static void further_close(struct cw_wire *wire)
{
    for (uint32_t i = wire->further_count; i-- > 0;) {
        struct cw_wire_further *further = &wire->further[i];
        cw_loop_destroy(further->loop);
        cw_endpoint_destroy(further->endpoint);
        if (further->port != NULL) {
            cw_port_close(further->port);
        }
    }
}

void cw_wire_quiet(struct cw_wire *wire)
{
    further_close(wire);
    cw_loop_destroy(wire->loop);
    cw_mcast_destroy(wire->mcast);
    cw_endpoint_destroy(wire->endpoint);
    cw_neighbour_destroy(wire->neighbours);
    if (wire->port != NULL && wire->lease == NULL) {
        cw_port_close(wire->port);
    }
    cw_virtual_leave();
    *wire = (struct cw_wire){.lease = wire->lease, .port = wire->lease != NULL ? wire->port : NULL};
}

void cw_wire_close(struct cw_wire *wire)
{
    cw_wire_quiet(wire);
    if (wire->lease != NULL) {
        cw_lease_close(wire->lease);
        cw_port_close(wire->port);
        wire->lease = NULL;
        wire->port = NULL;
    }
}
