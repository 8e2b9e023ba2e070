/* run: consecutive full packets of one long put. Their common part is decided, checked, written and accounted for once.
 *
 * Invariants
 *   - A run produces the same packets, records and counters as transmit.c and receive.c do packet by packet.
 *   - Out: a run contains no packet that needs individual treatment. Lost packets, short operations, pacing, shapers,
 *     seals, compression, offloads, a detour, a window that may close and the last packet of a put end a run or prevent
 *     it.
 *   - In: the leader of a run was accepted by the general path and brought data. Its followers arrive in order and
 *     differ from it only in number, timestamp, position and data. Each is checked completely before its data are
 *     stored. A packet with any other difference, or that completes the put, ends the run.
 *
 * Order of calls in: { cw_run_may_lead, cw_run_lead, { cw_run_follow }*, cw_run_account }*
 *
 * Thread: the owner of the endpoint. */
#pragma once

#include "dataplane/put/reassembly.h"
#include "dataplane/state/endpoint.h"

/* Sends at most `count_max` packets of the first long put of a flow that may send. *sent: number of packets sent, 0 if
 * no run is possible. False: the port has no more buffers. */
bool cw_run_send(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t count_max, uint32_t *sent);

/* An incoming run. */
struct cw_run {
    const struct cw_wire_header *leader;
    const struct cw_wire_part *part; /* of the leader */
    struct cw_reassembly *put;
    uint8_t *target;   /* where its first byte goes */
    uint64_t received; /* bytes of it */
    uint32_t checksum; /* CRC-32C of the common start of all frame headers */
    uint32_t echo;     /* the latest timestamp */
    uint32_t count;    /* packets behind the leader */
};

/* Whether a packet with this header can lead a run: it carries one part of a put and nothing else. */
static inline bool cw_run_may_lead(const struct cw_wire_header *header)
{
    const struct cw_wire_part *part = (const struct cw_wire_part *)(header + 1);
    return header->type == CW_WIRE_DATA && header->payload_bytes >= sizeof(*part) + CW_WIRE_KEPT_DATA &&
           part->put.frame.kind == CW_FRAME_PART && header->payload_bytes == sizeof(*part) + part->put.frame.length;
}

/* Whether such a packet, just accepted as the newest one with this number, leads a run. */
bool cw_run_lead(struct cw_run *run, struct cw_endpoint *endpoint, struct cw_flow *flow,
                 const struct cw_wire_header *header, uint64_t number);

/* Accepts the next packet, which is authentic and has the next number. False: it does not belong to the run, and
 * nothing has changed. */
bool cw_run_follow(struct cw_run *run, const struct cw_wire_header *header);

/* Ends the run: updates the flow by all its followers. */
void cw_run_account(const struct cw_run *run, struct cw_endpoint *endpoint, struct cw_flow *flow);
