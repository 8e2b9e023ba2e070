/* A gateway's beginning and end. */
#include "apps/gateway/site.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "apps/cli/cli.h"
#include "dataplane/base/clock.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/status.h"

enum { LINK_WAIT_MS = 5000, MEMORY_MB = 1024 };

/* A peer that is silent so long is down: several times the longest round trip, and less than people wait. */
#define FAILURE_TIMEOUT_NS 5000000000ull

/* ---- ports ---- */

static int port_open(const struct gateway_config *config, const struct gateway_port_config *own, struct cw_port **port)
{
    struct cw_port_ethdev_config device;
    char error[CW_PORT_TEXT_BYTES];
    cw_port_ethdev_config_init(&device);
    device.device = own->device;
    device.device_arguments = own->arguments[0] != 0 ? own->arguments : NULL;
    device.mtu_bytes = (uint32_t)own->mtu_bytes;
    device.gather = CW_PORT_GATHER_OFF; /* frames are written, not collected */
    device.eal.memory_mb = MEMORY_MB;
    /* EAL takes one PCI device, at its start, which the first port causes */
    device.eal.pci_only = strchr(config->inner.device, ':') != NULL   ? config->inner.device
                          : strchr(config->outer.device, ':') != NULL ? config->outer.device
                                                                      : NULL;
    if (own->bell_path[0] != 0) {
        device.doorbell_path = own->bell_path;
        device.doorbell_own = own->bell_own;
        device.doorbell_peer = own->bell_peer;
    }
    int status = cw_port_ethdev_open(&device, port, error, sizeof(error));
    if (status != CW_OK) {
        *port = NULL;
        return app_error_status(status, error, own->option);
    }
    /* Inside frames are for others; outside the address need not be the interface's. Drivers without a filter let all
     * in anyway. */
    if (cw_port_ethdev_promiscuous(*port) != CW_OK) {
        app_error("the device does not become promiscuous", own->text, NULL);
        return APP_EXIT_MACHINE;
    }
    if (own->awaits && !cw_port_link_await(*port, LINK_WAIT_MS)) {
        app_error("the link does not come up", own->text, "start the other side of the port, then this");
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

/* ---- the endpoint ---- */

static int endpoint_open(struct gateway_site *site, uint64_t seed)
{
    const struct gateway_config *config = site->config;
    uint32_t streams = (uint32_t)config->stream_count;
    char error[CW_PORT_TEXT_BYTES];
    struct cw_endpoint_config endpoint;
    cw_endpoint_config_init(&endpoint);
    cw_tunnel_endpoint_config(&endpoint, streams);
    endpoint.address = config->address;
    endpoint.seed = seed;
    endpoint.waiting = config->dedicated ? CW_WAITING_SPIN : CW_WAITING_NAP;
    endpoint.encryption = config->encrypts ? CW_ENCRYPTION_REQUIRED : CW_ENCRYPTION_OFF;
    endpoint.failure_timeout_ns = FAILURE_TIMEOUT_NS;
    memcpy(endpoint.job_key, config->key, sizeof(endpoint.job_key));
    int status = cw_endpoint_create(&endpoint, site->outer, cw_clock_ns(), &site->endpoint, error, sizeof(error));
    if (status != CW_OK) {
        site->endpoint = NULL;
        return app_error_status(status, error, "--outer");
    }
    status = cw_endpoint_compress(site->endpoint, &config->compression);
    status = status == CW_OK ? cw_peer_add(site->endpoint, &config->peer, &site->peers[0]) : status;
    for (uint32_t i = 1; i < streams && status == CW_OK; i++) {
        status = cw_peer_stream(site->endpoint, site->peers[0], i, &site->peers[i]);
    }
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, cw_status_text(status), "--peer");
}

/* ---- reports about the peer ---- */

static const char *reason_of(int status)
{
    switch (status) {
    case CW_ERROR_PEER_FAILED:
        return "no packet arrives from it";
    case CW_ERROR_PEER_RESTARTED:
        return "it has started anew";
    case CW_ERROR_CLOSED:
        return "it has ended";
    case CW_ERROR_UNSUPPORTED:
        return "one of the two gateways encrypts and the other does not: give both the same --encrypt";
    case CW_ERROR_ARGUMENT:
        return "it has another number of --streams, or is of another version";
    default:
        return cw_status_text(status);
    }
}

static void up_report(struct gateway_site *site)
{
    struct cw_peer_info info = {0};
    cw_peer_query(site->endpoint, site->peers[0], &info);
    printf("up: %s is there, %u streams, %s, round trip %.1f ms\n", site->config->peer_text, site->up_count,
           info.encrypted ? "sealed" : "not sealed", (double)info.round_trip_ns / 1e6);
    fflush(stdout);
    site->said_up = true;
    site->said_down = site->said_key = false;
}

/* One line when all are up, and one when the first is not any more. */
static void news(void *context, uint32_t stream, bool up, int status)
{
    struct gateway_site *site = context;
    const struct cw_tunnel *tunnel = cw_gate_tunnel(site->gate);
    (void)stream;
    site->up_count = 0;
    for (uint32_t i = 0; i < site->config->stream_count; i++) {
        site->up_count += cw_tunnel_is_up(tunnel, i);
    }
    if (up && site->up_count == site->config->stream_count) {
        up_report(site);
    } else if (!up && !site->said_down && (site->said_up || !site->said_key)) {
        printf("down: %s: %s; its frames are dropped until it is there\n", site->config->peer_text, reason_of(status));
        fflush(stdout);
        site->said_down = true;
        site->said_up = false;
    }
}

static int gate_open(struct gateway_site *site, uint64_t seed)
{
    const struct gateway_config *config = site->config;
    struct cw_gate_config gate;
    cw_gate_config_init(&gate);
    gate.port = site->inner;
    gate.context = site;
    gate.seed = seed;
    gate.drops_multicast = config->drops_multicast;
    gate.tunnel.stream_count = (uint32_t)config->stream_count;
    gate.tunnel.rate_bps = config->rate_bps;
    gate.tunnel.queue_bytes = config->queue_bytes;
    gate.tunnel.news = news;
    memcpy(gate.tunnel.peers, site->peers, sizeof(site->peers));
    int status = cw_gate_create(site->endpoint, &gate, cw_clock_ns(), &site->gate);
    if (status != CW_OK) {
        site->gate = NULL;
        return app_error_status(status, cw_status_text(status), "--inner");
    }
    return APP_EXIT_SUCCESS;
}

/* ---- life ---- */

int gateway_site_open(struct gateway_site *site, const struct gateway_config *config)
{
    *site = (struct gateway_site){.config = config};
    uint64_t seeds[2];
    if (getrandom(seeds, sizeof(seeds), 0) != sizeof(seeds)) {
        app_error("no random numbers", "getrandom", strerror(errno));
        return APP_EXIT_MACHINE;
    }
    int code = port_open(config, &config->inner, &site->inner);
    if (code == APP_EXIT_SUCCESS) {
        code = port_open(config, &config->outer, &site->outer);
    }
    if (code == APP_EXIT_SUCCESS) {
        code = endpoint_open(site, seeds[0]);
    }
    if (code == APP_EXIT_SUCCESS) {
        code = gate_open(site, seeds[1]);
    }
    site->start_ns = cw_clock_ns();
    if (code == APP_EXIT_SUCCESS) {
        code = gateway_stats_open(site);
    }
    if (code != APP_EXIT_SUCCESS) {
        (void)gateway_site_close(site);
    }
    return code;
}

int gateway_site_close(struct gateway_site *site)
{
    int code = gateway_stats_close(site);
    cw_endpoint_destroy(site->endpoint);
    cw_gate_destroy(site->gate);
    if (site->outer != NULL) {
        cw_port_close(site->outer);
    }
    if (site->inner != NULL) {
        cw_port_close(site->inner);
    }
    *site = (struct gateway_site){.config = site->config};
    return code;
}
