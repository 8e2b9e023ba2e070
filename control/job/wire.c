#include "control/job/wire_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "control/job/key.h"
#include "control/topology/clusters.h"
#include "dataplane/base/clock.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/port.h"

enum {
    SLOT_BYTES = 8192 + 64 /* with the head of an MPI message */,
    REGIONS = 16384,
};
#define NEVER_NS UINT64_C(100000000000000000) /* three years */

static int emulation_read(uint32_t size, struct wire_emulation *emulation, char *error, size_t error_bytes)
{
    const char *text = getenv("CAUSEWAY_EMULATE");
    *emulation = (struct wire_emulation){0};
    if (text == NULL || text[0] == 0) {
        return CW_OK;
    }
    bool memif = sscanf(text, "%u,memif,%199s", &emulation->hosts, emulation->socket) == 2;
    bool veth = !memif &&
                sscanf(text, "%u,veth,%15[a-z_],%u", &emulation->hosts, emulation->driver, &emulation->mtu_bytes) == 3;
    if ((!memif && !veth) || emulation->hosts < 1) {
        return cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "CAUSEWAY_EMULATE is '%.60s', not \"HOSTS,memif,SOCKET\" or \"HOSTS,veth,DRIVER,MTU\"; let "
            "`causeway run --emulate` set it",
            text);
    }
    if (size > CW_EMULATED_RANKS_MAX) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "%u ranks on emulated hosts; %d are possible", size,
                             CW_EMULATED_RANKS_MAX);
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

static_assert(CW_WIRE_STREAM_MEASURE == 1 + CW_CLUSTERS_RELAYS_MAX, "a stream of its own");

/* A UDP port each: relays, and measuring by them, are for jobs of several clusters. */
static uint32_t streams_wanted(bool is_emulated)
{
    const char *topology = getenv("CAUSEWAY_TOPOLOGY");
    return is_emulated || (topology != NULL && topology[0] != 0) ? CW_WIRE_STREAMS : 1;
}

bool cw_wire_may_seal(void)
{
    const char *encrypt = getenv("CAUSEWAY_ENCRYPT"), *topology = getenv("CAUSEWAY_TOPOLOGY");
    bool is_off = encrypt != NULL && strcmp(encrypt, "off") == 0, is_asked = encrypt != NULL && encrypt[0] != 0;
    return !is_off && (is_asked || (topology != NULL && topology[0] != 0));
}

static int endpoint_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    struct cw_endpoint_config config;
    struct cw_loop_config loop;
    cw_endpoint_config_init(&config);
    cw_loop_config_init(&loop);
    loop.fallback = CW_FALLBACK_CALLER; /* the control thread */
    memcpy(config.job_key, request->key, CW_JOB_KEY_BYTES);
    config.failure_timeout_ns = wire->failure_timeout_ns;
    if (getrandom(&config.seed, sizeof(config.seed), 0) != (ssize_t)sizeof(config.seed)) {
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM, "the kernel gives no random numbers");
    }
    config.waiting = cw_loop_waiting(&loop, &wire->port->info);
    config.address = wire->address;
    /* a socket's port tells its groups itself, and shows their packets as those to its own number */
    config.group_port = request->own != NULL && request->way != CW_WAY_UDP ? CW_UDP_PORT : 0;
    config.stream_count = streams_wanted(request->own == NULL);
    uint64_t peers = (uint64_t)request->size * config.stream_count; /* only those in use take memory */
    config.peer_count_max = peers < CW_PEERS_MAX ? (uint32_t)peers : CW_PEERS_MAX;
    config.reassembly_count_max += 2 * config.peer_count_max;
    config.region_count_max = REGIONS;
    config.pool_slot_bytes = SLOT_BYTES;
    wire->message_bytes_max = SLOT_BYTES;
    wire->seed = config.seed ^ UINT64_C(0x6d63617374);
    /* from the start: who is told to seal must not be refused by who has yet to be told */
    config.encryption = request->may_seal ? CW_ENCRYPTION_ASKED : CW_ENCRYPTION_OFF;
    int status = cw_endpoint_create(&config, wire->port, cw_clock_ns(), &wire->endpoint, error, error_bytes);
    if (status == CW_ERROR_UNSUPPORTED) {
        config.encryption = CW_ENCRYPTION_OFF; /* nothing here seals: an error if it is wanted */
        status = cw_endpoint_create(&config, wire->port, cw_clock_ns(), &wire->endpoint, error, error_bytes);
    }
    if (status != CW_OK) {
        wire->endpoint = NULL;
        return status;
    }
    if (!request->no_groups) {
        status = wire_multicast_open(config.job_key, request->rank + 1 == request->size, request->own == NULL, wire,
                                     error, error_bytes);
    }
    if (status != CW_OK) {
        return status;
    }
    status = cw_loop_create(&loop, wire->endpoint, wire->port, &wire->loop, error, error_bytes);
    if (status != CW_OK) {
        wire->loop = NULL;
    }
    return status;
}

int cw_wire_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes)
{
    struct wire_emulation emulation;
    *wire = (struct cw_wire){.failure_timeout_ns = request->bound_ns > 0 ? request->bound_ns : NEVER_NS};
    int status = emulation_read(request->size, &emulation, error, error_bytes);
    if (status == CW_OK && request->key == NULL) {
        status = cw_error_text(
            error, error_bytes, CW_ERROR_ARGUMENT,
            "there is no key of the job: let `causeway run` start it, or set CAUSEWAY_JOB_KEY to 32 hexadecimal "
            "digits, the same on all ranks");
    }
    if (status == CW_OK && request->own == NULL) {
        status = wire_port_open(request->rank, &emulation, wire, error, error_bytes);
    } else if (status == CW_OK) {
        status = request->way == CW_WAY_UDP
                     ? wire_socket_open(request, streams_wanted(false), wire, error, error_bytes)
                     : wire_device_open(request, streams_wanted(false), wire, error, error_bytes);
    }
    if (status == CW_OK) {
        status = endpoint_open(request, wire, error, error_bytes);
    }
    if (status != CW_OK) {
        cw_wire_close(wire);
    }
    return status;
}

void cw_wire_quiet(struct cw_wire *wire)
{
    struct cw_reservation reservation = wire->reservation;
    if (wire->loop != NULL) {
        cw_loop_destroy(wire->loop);
    }
    cw_mcast_destroy(wire->mcast);
    cw_endpoint_destroy(wire->endpoint);
    if (wire->port != NULL) {
        cw_port_close(wire->port);
    }
    *wire = (struct cw_wire){.reservation = reservation};
}

void cw_wire_close(struct cw_wire *wire)
{
    cw_wire_quiet(wire);
    cw_reservation_close(&wire->reservation);
}
