/* Endpoint: the object that one owner turns, as data; private to dataplane/.
 *
 * endpoint/endpoint.c creates and destroys it, endpoint/turn.c turns it; staging/, put/ and flow/ do the work on the
 * parts below; wire/ and port/ do not use it. */
#pragma once

#include "dataplane/base/pool.h"
#include "dataplane/base/random.h"
#include "dataplane/base/wheel.h"
#include "dataplane/dataplane.h"
#include "dataplane/state/compress.h"
#include "dataplane/state/events.h"
#include "dataplane/state/flow.h"
#include "dataplane/state/put.h"
#include "dataplane/state/region.h"
#include "dataplane/wire/sealed.h"
#include "dataplane/wire/tags.h"

struct cw_chunks;
struct cw_extension;
struct cw_rdma;
struct cw_neighbour_cache;
struct cw_seal;

/* The work on a staged packet when it leaves, in addition to its tag. */
struct cw_departure {
    struct cw_seal *seal; /* not NULL: it must be sealed with this one; its header is that of cw_wire_sealed_write */
    bool by_device;       /* it goes to its group as a datagram of the RDMA device */
    uint16_t error;       /* not 0: bits of the UDP checksum to invert */
};

/* The verification of payloads (flow/integrity.h). */
struct cw_integrity {
    bool speaks;           /* the port writes UDP checksums, and no end demands CRCs */
    bool listens;          /* it verifies them correctly so far, and no end demands CRCs */
    bool trusts;           /* its result is used */
    uint8_t proofs;        /* trials in a row that it has detected */
    uint16_t asked;        /* requests for trials, since the last one that it has detected */
    uint32_t link_changes; /* the port's count at the last check */
    uint32_t believed;     /* packets, since the last trial */
    uint64_t proof_ns;     /* when that was */
    uint64_t ask_ns;       /* no request for a trial before this */
};

/* A peer without any traffic needs only this: jobs of thousands of ranks add all peers. */
struct cw_flow_key {
    struct cw_address address; /* as added */
    uint32_t next;             /* of the same bucket: index + 1; 0: the last one */
    uint16_t stream;
};

struct cw_endpoint {
    struct cw_endpoint_config config;
    struct cw_port *port;
    uint64_t now_ns;
    uint64_t incarnation;
    uint32_t busy_ns; /* duration of busy turns, smoothed */
    struct cw_random random;
    struct cw_wire_outer outer; /* headers of its packets */
    uint32_t overhead_bytes;    /* of a frame: Ethernet, IP, UDP and our own header */
    uint32_t payload_bytes_max; /* after these, at this port's MTU */
    uint16_t packet_flags;      /* our way of waiting, in every packet */
    uint8_t setup_key[CW_WIRE_SETUP_KEY_BYTES];
    uint64_t setup_count;   /* nonces drawn for set-up */
    uint64_t seal_serial;   /* seals made */
    bool port_full;         /* the port did not accept all of `staged` */
    bool is_out_of_buffers; /* the port had no buffer for the last packet: send the staged ones */
    bool offloads_out;      /* the port has offloads for outgoing packets */
    bool offloads_in;       /* ... and for received ones */

    /* packets taken from the port and not yet processed */
    struct cw_received fetched[CW_BURST];
    uint32_t fetched_count;
    uint32_t fetched_completions; /* that wait in the state of the RDMA device */
    bool has_fetched;             /* for the next turn, even without a packet */
    uint16_t fetch_skips;         /* turns in which the port was not polled */
    uint8_t fetch_looks;          /* polls in a row without a packet */

    /* packets on their way to the port */
    struct cw_transmit staged[CW_BURST];
    struct cw_departure departures[CW_BURST]; /* one for each of `staged` */
    struct cw_wire_tags tags;                 /* of packets to be signed */
    uint8_t tag_places[CW_BURST];             /* ... and their places in `staged` */
    uint32_t staged_count;
    uint32_t datagram_count;            /* of them, through the RDMA device */
    struct cw_transmit spare[CW_BURST]; /* reserved and unused */
    uint32_t spare_count;

    /* flows */
    struct cw_pool flows;
    struct cw_flow_key *flow_keys; /* [flows.count] */
    uint32_t *flow_buckets;        /* by address: index of a flow + 1; 0: none */
    uint32_t flow_bucket_mask;
    struct cw_pool bandwidths;
    struct cw_pool credit_stores;
    struct cw_pool lates;
    struct cw_shaper shapers[CW_SHAPERS_MAX + 1]; /* the last: CW_SHAPER_LINE */
    struct cw_pool seals;  /* one for each session, and one for a session that replaces another */
    uint32_t reclaim_next; /* where to look for a flow to reclaim */
    struct cw_wheel wheel;
    struct cw_flow *active_first; /* may send, in turn */
    struct cw_flow *active_last;
    struct cw_flow *report_first; /* owe an acknowledgement now or soon */
    uint16_t stream_packets;      /* received packets of all streams, a run as one, modulo 2^16 */
    struct cw_flow *event_first;  /* have events that found no room */
    uint32_t stop_count;          /* flows with an order to stop */

    /* memory lent to flows */
    struct cw_pool sent_chunks;
    struct cw_pool blocks;

    /* operations and arrivals */
    struct cw_regions regions;
    struct cw_pool operations;
    struct cw_lanes lanes;
    struct cw_operation_queue undelivered; /* complete, and no room for the event */
    struct cw_reassemblies reassemblies;
    struct cw_gets gets;
    struct cw_message_pool messages;

    /* offloads of the port */
    struct cw_integrity integrity;
    bool sums_all;     /* the port writes the UDP checksum of every packet: over IPv6 all have one */
    uint64_t empty_ns; /* when the port was empty: later packets have arrived since */
    uint32_t arrival_lies;
    uint32_t false_count; /* of `staged`, with a wrong checksum to be written */

    struct cw_neighbour_cache *neighbours; /* for an address without a kernel; NULL: the kernel has it */
    uint64_t neighbour_changes;            /* changes that flows have applied */
    struct cw_extension *extension;        /* NULL: none */
    struct cw_rdma *rdma;                  /* the RDMA device; NULL: none */
    struct cw_compress *compress;          /* NULL: outgoing data is not compressed */
    struct cw_chunks *chunks;              /* NULL: no chunk has been sent or received yet */
    uint64_t notify_order;                 /* of the next notification that waits for room in the event queue */
    uint64_t event_order;                  /* of the entries of event_first */
    uint64_t rdma_order;                   /* of the first one from a queue pair; UINT64_MAX: none waits */
    struct cw_events events;
    uint64_t counters[CW_COUNTER_COUNT];
};

static inline void cw_count(struct cw_endpoint *endpoint, enum cw_counter counter, uint64_t more)
{
    endpoint->counters[counter] += more;
}

/* The compression state of a flow, of an endpoint that compresses. */
static inline struct cw_compress_flow *cw_compress_of(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    return &endpoint->compress->flows[flow->index];
}

/* Begins the flow of that number; its memory is all zero. */
void cw_flow_begin(const struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t index);

/* The flow of a peer number, or NULL. Flows that are accessed otherwise may not have begun: they are all zero, and so
 * closed. */
static inline struct cw_flow *cw_endpoint_flow(const struct cw_endpoint *endpoint, uint32_t peer)
{
    struct cw_flow *flow = peer < endpoint->flows.fresh ? cw_pool_at(&endpoint->flows, peer) : NULL;
    if (flow != NULL && flow->address.udp_port == 0) {
        cw_flow_begin(endpoint, flow, peer);
    }
    return flow;
}
