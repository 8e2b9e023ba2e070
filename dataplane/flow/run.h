/* run: full packets of one long put that leave, or come, one behind the other. What they have in common is decided,
 * checked, written and accounted for once.
 *
 * Invariants
 *   - The packets, their records and what the flow counts are those that transmit.c and receive.c would have made one by
 *     one: a run takes less time, and changes nothing else.
 *   - Out, whatever a packet could need on its own ends a run, or keeps it from beginning: lost packets, short operations,
 *     pacing, a shaper, seals, compression, what ports do to packets that leave, a window that may close, and the last
 *     packet of a put.
 *   - In, the first packet of a run, which leads it, has been taken as any other. The others are in order behind it, and
 *     differ from it in their number, time, position and data alone; each is checked as a whole before it is stored. What
 *     differs in more, and what completes the put, ends the run.
 *
 * Order of calls in: { cw_run_may_lead, cw_run_lead, { cw_run_follow }*, cw_run_account }*
 *
 * Thread: the owner of the endpoint. */
#pragma once

#include "dataplane/put/reassembly.h"
#include "dataplane/state/endpoint.h"

/* Sends at most `count_max` packets of the first long put of a flow that may send. *sent: how many; 0, if there is no run to
 * send. False: the port has no more buffers. */
bool cw_run_send(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t count_max, uint32_t *sent);

/* A run that comes in. */
struct cw_run {
    const struct cw_wire_header *leader;
    const struct cw_wire_part *part; /* of the leader */
    struct cw_reassembly *put;
    uint8_t *target;   /* where its first byte goes */
    uint64_t received; /* bytes of it */
    uint32_t checksum; /* CRC-32C of what all frame headers begin with */
    uint32_t echo;     /* the latest timestamp */
    uint32_t count;    /* packets behind the leader */
};

/* Whether a packet with this header could: it has a part of a put, and nothing else. */
static inline bool cw_run_may_lead(const struct cw_wire_header *header)
{
    const struct cw_wire_part *part = (const struct cw_wire_part *)(header + 1);
    return header->type == CW_WIRE_DATA && header->payload_bytes >= sizeof(*part) + CW_WIRE_KEPT_DATA &&
           part->put.frame.kind == CW_FRAME_PART && header->payload_bytes == sizeof(*part) + part->put.frame.length;
}

/* Whether such a packet, which is authentic and has just been taken, leads a run. */
bool cw_run_lead(struct cw_run *run, struct cw_endpoint *endpoint, struct cw_flow *flow,
                 const struct cw_wire_header *header, uint64_t number);

/* Takes the next packet, which is authentic and has the next number; false: it does not belong to the run, and nothing
 * was done. */
bool cw_run_follow(struct cw_run *run, const struct cw_wire_header *header);

/* The run has ended. */
void cw_run_account(const struct cw_run *run, struct cw_endpoint *endpoint, struct cw_flow *flow);
