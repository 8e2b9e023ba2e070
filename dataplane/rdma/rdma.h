/* RDMA: operations of an endpoint's flows by queue pairs of a device, in addition to the packets of its port.
 *
 * Packets make the session, as with any peer, and carry what the two ends tell each other of their queue pair (OFFER,
 * ACCEPT, NONE; WIRE.md). Once a message has come each way by the pair it is up, and carries what is posted from then
 * on: a put is one RDMA WRITE WITH IMMEDIATE, in pieces if it is long, of which the last one has the immediate; a get
 * is a READ; a message, or the credit for one, is a SEND into the shared receive queue. Packets go on carrying what the
 * device cannot reach: regions that it did not register, sealed and paced flows.
 *
 * Invariants
 *   - One notification for each put and message, in lane order, also where a pair breaks: both ends then stop the pair,
 *     process its arrivals, and exchange the number of notifications. Later operations are sent again by the next pair
 *     (a new incarnation), or by packets if no pair comes up. No operation is lost or notified twice.
 *   - Completions find room: at most as much work is posted as the device's queues hold, and arrivals stay in the
 *     device as long as the event queue has no room.
 *   - Memory does not grow with posted work: receive buffers and staging blocks are a fixed number for all peers.
 *
 * A put's event over RDMA has peer, lane and tag; its region is 0 (unknown), and `bytes` those of the last piece. A
 * device looks at no region if there are no bytes: an empty put is notified whatever it names. */
#pragma once

#include <stddef.h>

#include "dataplane/dataplane.h"
#include "dataplane/register/cache.h"
#include "dataplane/verbs/device.h"

/* How a device for an endpoint of that configuration is opened (cw_verbs_open); `name` as in struct cw_verbs_config. */
struct cw_verbs_config cw_rdma_device_config(const struct cw_endpoint_config *config, const char *name);

/* Gives a device to an endpoint that has neither regions nor peers yet; it is closed with the endpoint, or by a failure
 * here. CW_OK; CW_ERROR_LIMIT, CW_ERROR_MEMORY, CW_ERROR_SYSTEM with a line in `error`. */
int cw_rdma_attach(struct cw_endpoint *endpoint, struct cw_verbs_device *device, char *error, size_t error_bytes);

/* How the queue pair with a peer is. */
enum cw_rdma_state {
    CW_RDMA_NONE = 0,       /* no session, or none that a queue pair may serve */
    CW_RDMA_OFFERED = 1,    /* the peer has not answered yet */
    CW_RDMA_CONNECTED = 2,  /* nothing has come by it yet */
    CW_RDMA_UP = 3,         /* carries operations */
    CW_RDMA_BREAKING = 4,   /* another is to take its place */
    CW_RDMA_BY_PACKETS = 5, /* one side has no device, or gave up */
};

enum cw_rdma_state cw_rdma_state(const struct cw_endpoint *endpoint, uint32_t peer);

/* Breaks the queue pair with a peer, as an error of the device would: for tests. */
void cw_rdma_break(struct cw_endpoint *endpoint, uint32_t peer);

/* Whether the device has failed: packets carry all since. */
bool cw_rdma_has_failed(const struct cw_endpoint *endpoint);

/* Whether the device takes datagrams to multicast groups (cw_mcast_group_config); false without a device. */
bool cw_rdma_has_groups(const struct cw_endpoint *endpoint);
/* Why it does not; "": it does. */
const char *cw_rdma_without_groups(const struct cw_endpoint *endpoint);

/* Registrations that the device keeps for reuse of the memory (register/cache.h); NULL: no device. */
const struct cw_cache_counters *cw_rdma_registrations(const struct cw_endpoint *endpoint);

/* Memory: registered for all peers, per peer in session, and per queue pair in addition (the device's own not
 * counted). */
struct cw_rdma_memory {
    uint64_t receive_bytes;
    uint64_t staging_bytes;
    uint64_t peer_bytes;
    uint64_t pair_bytes;
    uint64_t group_bytes; /* with the first multicast group, for all of them */
};
struct cw_rdma_memory cw_rdma_memory(const struct cw_endpoint *endpoint);
