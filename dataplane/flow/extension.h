/* Extension: a protocol above that shares an endpoint's port, its turns and its job key (reliable multicast).
 *
 * Purpose
 *   The endpoint checks lengths and version of received packets, and passes packets of the types
 *   CW_WIRE_EXTENSION_FIRST .. CW_WIRE_EXTENSION_LAST to its extension; only these may be addressed to a multicast
 *   group. The extension must check the tag, the checksum, and all contents. Packets of the extension are signed and
 *   leave with the endpoint's own packets.
 *
 * Order of calls
 *   cw_endpoint_invite
 *   { receive, turn, deadline, event: called by the endpoint;
 *     cw_extension_stage, cw_extension_finish | cw_extension_pass_on: by the extension, at any time }*
 *   cw_endpoint_invite(NULL)
 *
 * Owner: the thread that turns the endpoint; `event` runs in the thread that takes events. */
#pragma once

#include "dataplane/dataplane.h"
#include "dataplane/port/port.h"
#include "dataplane/wire/wire.h"

struct cw_extension {
    /* The header of a packet, followed by its payload; valid during the call. */
    void (*receive)(struct cw_extension *extension, const struct cw_wire_header *header, uint64_t now_ns);
    /* In each turn of the endpoint, after packets were received; returns the amount of work. */
    uint32_t (*turn)(struct cw_extension *extension, uint64_t now_ns);
    /* The time of its next turn; UINT64_MAX: none. */
    uint64_t (*deadline)(const struct cw_extension *extension);
    /* An event of the extension (cw_extension_event), when the application takes events: in its thread, which need not
     * be the endpoint's owner. */
    void (*event)(struct cw_extension *extension, const struct cw_event *event);
};

/* Sets the extension; NULL: none. CW_OK; CW_ERROR_BUSY: there is one already. */
int cw_endpoint_invite(struct cw_endpoint *endpoint, struct cw_extension *extension);

/* The extension's fields of a header; the endpoint fills in the others. */
struct cw_extension_header {
    uint8_t type;
    uint16_t flags;
    uint32_t flow;
    uint64_t number; /* the low half travels, the high half is in the tag */
    uint64_t acknowledged;
    uint32_t echo;     /* timestamp of the latest packet of the receiver */
    uint64_t echo_ns;  /* its arrival */
    uint32_t checksum; /* cw_wire_checksum of the payload */
    bool has_echo;
    bool is_repeated; /* it was sent before, and lost */
};

/* Begins a packet; returns the place of its payload, cw_extension_payload_max bytes. NULL: the port has none.
 * cw_extension_finish must follow, before any other call of the endpoint. */
uint8_t *cw_extension_stage(struct cw_endpoint *endpoint);
/* Completes the packet: its receiver, and the key that signs it. */
void cw_extension_finish(struct cw_endpoint *endpoint, const struct cw_wire_receiver *receiver,
                         const struct cw_extension_header *header, uint32_t payload_bytes,
                         const struct cw_wire_key *key);
/* Forwards a received packet unchanged to another receiver. False: the port has no packet. */
bool cw_extension_pass_on(struct cw_endpoint *endpoint, const struct cw_wire_receiver *receiver,
                          const struct cw_wire_header *header);
/* True: a received packet was addressed to a multicast group. */
bool cw_extension_is_to_group(const struct cw_endpoint *endpoint, const struct cw_wire_header *header);
/* Sends a whole frame of the extension, from the Ethernet header on, such as one for switches; `bytes` up to the
 * port's MTU and 14. False: the port has no packet. */
bool cw_extension_frame(struct cw_endpoint *endpoint, const uint8_t *frame, uint32_t bytes);
/* Staged packets leave now, not with the next turn. */
void cw_extension_flush(struct cw_endpoint *endpoint);

/* Puts an event of kind CW_EVENT_EXTENSION among the endpoint's, in order with all others; the extension chooses the
 * meaning of its other fields. False: `waiting_max` events wait to be taken, or the queue is full: the extension keeps
 * the event, requests a turn, and tries again. */
bool cw_extension_event(struct cw_endpoint *endpoint, const struct cw_event *event, uint32_t waiting_max);
/* Sets `region` to 0 in all events of the extension that have this one. No thread may take events meanwhile. */
void cw_extension_event_orphan(struct cw_endpoint *endpoint, uint64_t region);

uint32_t cw_extension_payload_max(const struct cw_endpoint *endpoint);
/* The same of IP packets of this size, if the port's are not smaller. */
uint32_t cw_extension_payload_at(const struct cw_endpoint *endpoint, uint32_t mtu_bytes);
/* Of packets to groups by the device: 0 if it has none. */
uint32_t cw_extension_payload_by_device(const struct cw_endpoint *endpoint);
/* The target round trip of flows whose smallest one is `min_ns`, in nanoseconds: a sender with a higher target on the
 * same links takes all their bandwidth (cw_congestion_target). */
uint64_t cw_extension_round_trip_target(const struct cw_endpoint *endpoint, uint64_t min_ns);
/* Full packets that the port's line carries in the target round trip of a LAN; UINT64_MAX: its rate is not
 * known. */
uint64_t cw_extension_line_packets(const struct cw_endpoint *endpoint);
uint64_t cw_extension_now(const struct cw_endpoint *endpoint);
/* A number from the endpoint's seeded generator. */
uint64_t cw_extension_random(struct cw_endpoint *endpoint);

/* A peer as the receiver of packets, until its next packet; false: no such peer. */
bool cw_extension_peer(const struct cw_endpoint *endpoint, uint32_t peer, struct cw_wire_receiver *receiver);
/* True: there is such a peer. */
bool cw_extension_knows(const struct cw_endpoint *endpoint, uint32_t peer);
/* The carrier of a group's packets. */
enum cw_extension_carrier {
    CW_CARRIER_PORT = 0,
    CW_CARRIER_DEVICE = 1, /* datagrams of the endpoint's RDMA device */
};

/* A multicast group as the receiver; its IPv4 address also names it over IPv6 (cw_wire_group). */
void cw_extension_group(const struct cw_endpoint *endpoint, uint32_t ipv4, enum cw_extension_carrier carrier,
                        struct cw_wire_receiver *receiver);
/* Accepts the packets of such a group, or no longer; as cw_port_join, and CW_ERROR_UNSUPPORTED without such a device.
 * */
int cw_extension_join(struct cw_endpoint *endpoint, uint32_t ipv4, enum cw_extension_carrier carrier);
int cw_extension_leave(struct cw_endpoint *endpoint, uint32_t ipv4, enum cw_extension_carrier carrier);
/* True: packets to the group arrive from now on; a device's network takes a while to report it. */
bool cw_extension_is_joined(const struct cw_endpoint *endpoint, uint32_t ipv4, enum cw_extension_carrier carrier);
/* True: joining also reports to switches, and the extension need not. */
bool cw_extension_reports(const struct cw_endpoint *endpoint, enum cw_extension_carrier carrier);
/* True: the device accepts another packet; for the port, cw_extension_stage returns it. */
bool cw_extension_device_has_room(const struct cw_endpoint *endpoint);

/* The key of packets that `author` sends to the members of group `id`. */
void cw_extension_key(const struct cw_endpoint *endpoint, uint64_t id, uint64_t author, struct cw_wire_key *key);
