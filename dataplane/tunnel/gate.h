/* Gate: a port to the hosts of a site, and a tunnel to another site, for `causeway gateway`.
 *
 *    port <--> bridge of two ports <--> tunnel
 *
 * Invariants
 *   - It forwards as a bridge does (fabric/bridge.h): learns the addresses on either side, so that traffic within a
 *     site does not cross; passes nothing on to 01:80:c2:00:00:0x; and never sends a frame out of the port by which it
 *     came in.
 *   - Every frame that comes in by the port ends in one of its counters, the bridge's or the tunnel's.
 *   - A port whose other side takes nothing holds frames back for CW_GATE_FULL_NS; then they are dropped.
 *
 * Order of calls
 *   cw_gate_config_init, cw_gate_create (on an endpoint with a peer for each stream)
 *   { cw_gate_turn }*
 *   cw_endpoint_destroy, cw_gate_destroy, cw_port_close
 * Owner: the thread that turns the endpoint and owns the port.
 */
#pragma once

#include "dataplane/fabric/bridge.h"
#include "dataplane/tunnel/tunnel.h"

#define CW_GATE_FULL_NS 10000000ull /* as long as a `causeway switch` waits */

struct cw_gate_config {
    struct cw_tunnel_config tunnel; /* frame_bytes_max, deliver and context are filled in; news gets `context` below */
    void *context;
    struct cw_port *port;
    uint64_t seed;        /* of the table of addresses: unpredictable */
    bool drops_multicast; /* but for broadcast */
};

struct cw_gate_counters {
    uint64_t in_frames; /* by the port */
    uint64_t in_bytes;
    uint64_t out_frames; /* by the port */
    uint64_t out_bytes;
    uint64_t dropped_multicast; /* towards the peer: as configured */
    uint64_t dropped_long;      /* of the peer, for this port */
    uint64_t dropped_port;      /* for this port, rejected by its other side */
};

struct cw_gate;

void cw_gate_config_init(struct cw_gate_config *config);

/* Errors as cw_tunnel_create and cw_bridge_create. */
int cw_gate_create(struct cw_endpoint *endpoint, const struct cw_gate_config *config, uint64_t now_ns,
                   struct cw_gate **gate);

/* As cw_tunnel_destroy. */
void cw_gate_destroy(struct cw_gate *gate);

/* One turn of endpoint and gate. Returns how much was done (0: idle). cw_endpoint_fetch first, where there is a real
 * clock. */
uint32_t cw_gate_turn(struct cw_gate *gate, uint64_t now_ns);

/* When to turn even if no packet comes, neither by the port nor by the endpoint's. */
uint64_t cw_gate_deadline(const struct cw_gate *gate);

struct cw_tunnel *cw_gate_tunnel(const struct cw_gate *gate);
const struct cw_gate_counters *cw_gate_counters(const struct cw_gate *gate);
const struct cw_bridge_counters *cw_gate_bridge(const struct cw_gate *gate);
