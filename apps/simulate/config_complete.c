/* The configuration of a simulation, completed and checked before a rank starts. */
#include "apps/simulate/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/topology/topology.h"
#include "dataplane/base/random.h"
#include "dataplane/limits.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

/* Faults that are drawn. */
#define SHARE_MAX             0.02
#define FAULT_BEGIN_MAX_NS    20000000
#define FAULT_DURATION_MAX_NS 2000000000
#define FAULT_STREAM          (1 << 21)

/* Loss, corruption and the like on each link, links that go down, hosts that stop for a moment. All of it ends: the job
 * is to end well. In one of 16 cases a host stops forever, and the job must fail with its name. */
static void faults_draw(struct simulate_config *config)
{
    struct cw_random random;
    double *shares[] = {&config->link.loss, &config->link.corrupt, &config->link.duplicate, &config->link.reorder};
    cw_random_seed(&random, cw_random_derive(config->seed, FAULT_STREAM));
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        double share = cw_random_below(&random, 2) == 0 ? 0 : cw_random_fraction(&random) * SHARE_MAX;
        *shares[i] = *shares[i] > 0 ? *shares[i] : share;
    }
    config->multicast =
        cw_random_below(&random, 4) == 0 ? (enum cw_simulator_multicast)cw_random_below(&random, 3) : config->multicast;
    config->buffer_bytes =
        cw_random_below(&random, 2) == 0 ? config->buffer_bytes : cw_random_between(&random, 64 << 10, 512 << 10);
    uint64_t count = cw_random_below(&random, 4);
    for (uint64_t i = 0; i < count && config->fault_count < SIMULATE_FAULTS_MAX; i++) {
        uint64_t begin_ns = cw_random_below(&random, FAULT_BEGIN_MAX_NS);
        config->faults[config->fault_count++] = (struct simulate_fault){
            .kind = cw_random_below(&random, 2) == 0 ? SIMULATE_LINK_DOWN : SIMULATE_STOP,
            .host = (uint32_t)cw_random_below(&random, config->hosts),
            .begin_ns = begin_ns,
            .end_ns = begin_ns + cw_random_below(&random, FAULT_DURATION_MAX_NS),
        };
    }
    if (cw_random_below(&random, 16) == 0 && config->fault_count < SIMULATE_FAULTS_MAX) {
        config->faults[config->fault_count++] = (struct simulate_fault){
            .kind = SIMULATE_STOP,
            .host = (uint32_t)cw_random_below(&random, config->hosts),
            .begin_ns = cw_random_below(&random, FAULT_BEGIN_MAX_NS),
            .end_ns = UINT64_MAX,
        };
    }
    if (config->has_rdma) {
        config->rdma_break =
            cw_random_below(&random, 2) == 0 ? config->rdma_break : cw_random_fraction(&random) * SHARE_MAX;
        for (uint64_t of = cw_random_below(&random, 3); of > 0 && config->fault_count < SIMULATE_FAULTS_MAX; of--) {
            uint64_t begin_ns = cw_random_below(&random, FAULT_BEGIN_MAX_NS);
            config->faults[config->fault_count++] = (struct simulate_fault){
                .kind = cw_random_below(&random, 2) == 0 ? SIMULATE_RDMA_CUT : SIMULATE_RDMA_FAIL,
                .host = (uint32_t)cw_random_below(&random, config->hosts),
                .begin_ns = begin_ns,
                .end_ns = begin_ns + cw_random_below(&random, FAULT_DURATION_MAX_NS),
            };
        }
    }
    config->shared_bytes =
        cw_random_below(&random, 4) == 0 ? cw_random_between(&random, 64 << 10, 512 << 10) : config->shared_bytes;
    if (cw_random_below(&random, 4) == 0 && config->fault_count < SIMULATE_FAULTS_MAX) {
        config->faults[config->fault_count++] =
            (struct simulate_fault){.kind = SIMULATE_FORGET, .begin_ns = cw_random_below(&random, FAULT_BEGIN_MAX_NS)};
    }
    if (cw_random_below(&random, 2) == 0 && config->offload_count < SIMULATE_OFFLOADS_MAX) {
        config->offloads[config->offload_count++] = (struct simulate_offload){
            .host = UINT32_MAX, .offload = CW_PORT_OFFLOADS, .state = SIMULATE_OFFLOAD_RANDOM};
    }
}

static int topology_complete(struct simulate_config *config, char *error, size_t error_bytes)
{
    struct cw_topology *topology;
    if (config->network_word[0] != '\0') {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "'%s' and topology=: the file has it",
                             config->network_word);
    }
    int status = cw_topology_load(config->topology, &topology, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    config->hosts = cw_topology_host_count(topology);
    config->link.rate_bps = config->link.delay_ns = 0; /* each cluster has its own */
    const char *unknown = cw_topology_rate_unknown(topology);
    if (unknown != NULL) {
        status = cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                               "%s: the link '%s' has no rate: write one in the place of \"found\"", config->topology,
                               unknown);
    } else if (config->ranks < config->hosts) {
        status = cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                               "%s has %u hosts, and the job %u ranks: each host has one at least (-n)",
                               config->topology, config->hosts, config->ranks);
    }
    for (uint32_t i = 0; i < config->fault_count && status == CW_OK; i++) {
        const char *name = config->faults[i].link;
        uint32_t at = 0, count = cw_topology_link_count(topology);
        while (at < count && strcmp(cw_topology_link(topology, at)->name, name) != 0) {
            at++;
        }
        if (name[0] != '\0' && at == count) {
            status = cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                                   "down=%s: %s has no such link, and hosts are numbers", name, config->topology);
        }
    }
    cw_topology_destroy(topology);
    return status;
}

/* Whether a file can be written, before a rank starts. "": none is wanted. */
static int file_check(const char *option, const char *path, char *error, size_t error_bytes)
{
    FILE *file = path[0] != '\0' ? fopen(path, "we") : NULL;
    if (path[0] != '\0' && file == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "%s=%s: %s", option, path, strerror(errno));
    }
    if (file != NULL) {
        fclose(file);
    }
    return CW_OK;
}

static bool is_of_rdma(const struct simulate_fault *fault)
{
    return fault->kind == SIMULATE_RDMA_CUT || fault->kind == SIMULATE_RDMA_FAIL;
}

/* Devices reach each other on lines of one rate and delay. */
static int rdma_check(const struct simulate_config *config, char *error, size_t error_bytes)
{
    bool has_faults = config->rdma_break > 0;
    for (uint32_t i = 0; i < config->fault_count; i++) {
        has_faults = has_faults || is_of_rdma(&config->faults[i]);
    }
    if (has_faults && !config->has_rdma) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "rdma-break=, rdma-cut= and rdma-fail= are faults of RDMA devices: add rdma=on");
    }
    if (config->has_rdma && config->topology[0] != '\0') {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "rdma=on and topology=: simulated RDMA devices are on one network: give hosts= instead");
    }
    if (config->has_rdma && config->link.rate_bps == 0) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "rdma=on: a device's line has a rate: rate=");
    }
    return CW_OK;
}

int simulate_config_complete(struct simulate_config *config, char *error, size_t error_bytes)
{
    const char *reason;
    int status = config->topology[0] != '\0' ? topology_complete(config, error, error_bytes) : CW_OK;
    if (status == CW_OK && config->is_random) {
        faults_draw(config);
    }
    config->link.queue_limit_bytes = config->topology[0] != '\0' ? 0 : config->buffer_bytes;
    if (status == CW_OK && !cw_link_config_valid(&config->link, &reason)) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "the links of the hosts: %s", reason);
    }
    for (uint32_t i = 0; i < config->fault_count && status == CW_OK; i++) {
        if (config->faults[i].link[0] != '\0' && config->topology[0] == '\0') {
            status = cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                                   "down=%s: hosts are numbers, and links have names in a topology only",
                                   config->faults[i].link);
        } else if (config->faults[i].host >= config->hosts) {
            status =
                cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "host %u fails, and there are %u hosts, from 0",
                              config->faults[i].host, config->hosts);
        }
    }
    for (uint32_t i = 0; i < config->offload_count && status == CW_OK; i++) {
        if (config->offloads[i].host != UINT32_MAX && config->offloads[i].host >= config->hosts) {
            status = cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "nic=...@%u: there are %u hosts, from 0",
                                   config->offloads[i].host, config->hosts);
        }
    }
    for (uint32_t i = 0; i < config->slow_count && status == CW_OK; i++) {
        if (config->slow[i].host >= config->hosts) {
            status =
                cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "host %u is slow, and there are %u hosts, from 0",
                              config->slow[i].host, config->hosts);
        }
    }
    status = status == CW_OK ? rdma_check(config, error, error_bytes) : status;
    uint64_t frame_bytes = config->mtu_bytes + 14 + CW_ETHERNET_OVERHEAD_BYTES;
    if (status == CW_OK && config->shared_bytes > 0 && config->shared_bytes < frame_bytes) {
        status = cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                               "shared=: a packet takes %" PRIu64 " bytes, and the buffer has %" PRIu64, frame_bytes,
                               config->shared_bytes);
    }
    if (status == CW_OK && config->statistics_interval_ns == 0) {
        status = cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "stats-interval=: at least 1ns");
    }
    status = status == CW_OK ? file_check("pcap", config->capture, error, error_bytes) : status;
    return status == CW_OK ? file_check("stats", config->statistics, error, error_bytes) : status;
}
