/* Pair host: an endpoint and a loop at a port of pair_port.h, with the real clock.
 *
 * Order of calls: pair_host_init, then the configurations are changed; pair_host_open; pair_host_peer for each peer,
 * once all are open; pair_host_begin; pair_host_end for each; cw_port_close */
#pragma once

#include "dataplane/base/clock.h"
#include "dataplane/loop/loop.h"
#include "tests/test.h"
#include "tests/unit/dataplane/pair_port.h"

struct pair_host {
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    struct cw_loop *loop;
    struct cw_endpoint_config endpoint_config;
    struct cw_loop_config loop_config;
    uint64_t token; /* of its memory */
};

/* Host `number`: its address is 10.0.0.1 plus this. Its loop has no thread in addition to the callers' ones. */
static inline void pair_host_init(struct pair_host *host, uint32_t number, struct cw_port *port)
{
    *host = (struct pair_host){.port = port};
    cw_endpoint_config_init(&host->endpoint_config);
    cw_loop_config_init(&host->loop_config);
    host->endpoint_config.address = (struct cw_address){.ip = cw_ip_v4(0x0a000001 + number), .udp_port = CW_UDP_PORT};
    host->endpoint_config.seed = 11 + number;
    host->loop_config.fallback = CW_FALLBACK_NONE;
}

/* `memory` is for all to read and to write; NULL: none. */
static inline void pair_host_open(struct pair_host *host, void *memory, uint64_t bytes)
{
    char error[CW_PORT_TEXT_BYTES];
    host->endpoint_config.waiting = cw_loop_waiting(&host->loop_config, &host->port->info);
    assert_int_equal(
        cw_endpoint_create(&host->endpoint_config, host->port, cw_clock_ns(), &host->endpoint, error, sizeof(error)),
        CW_OK);
    if (memory != NULL) {
        assert_int_equal(
            cw_region_register(host->endpoint, memory, bytes, CW_REGION_WRITE | CW_REGION_READ, &host->token), CW_OK);
    }
}

/* The number that `host` has for another one. */
static inline uint32_t pair_host_peer(const struct pair_host *host, const struct pair_host *other)
{
    struct cw_address address = cw_endpoint_address(other->endpoint);
    uint32_t peer = 0;
    assert_int_equal(cw_peer_add(host->endpoint, &address, &peer), CW_OK);
    return peer;
}

static inline void pair_host_begin(struct pair_host *host)
{
    char error[CW_PORT_TEXT_BYTES];
    assert_int_equal(cw_loop_create(&host->loop_config, host->endpoint, host->port, &host->loop, error, sizeof(error)),
                     CW_OK);
}

/* All but its port. */
static inline void pair_host_end(struct pair_host *host)
{
    cw_loop_destroy(host->loop);
    cw_endpoint_destroy(host->endpoint);
}
