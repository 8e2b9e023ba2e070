/* Packet: the contents of multicast packets after the header of dataplane/wire/wire.h, byte by byte as in WIRE.md.
 *
 * The header's `flow` is the low half of the group's id, its `tag` is made with the key of (group, author). Types are
 * the range that the endpoint reserves for its extension. Nothing here decides anything; only the tag proves that a
 * packet is authentic. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/wire/wire.h"

enum cw_mcast_type {
    CW_MCAST_DATA = CW_WIRE_EXTENSION_FIRST, /* to the group, or, as a repair, to one member */
    CW_MCAST_STATE,                          /* a sender says how far it is; to the group */
    CW_MCAST_ACK,                            /* to the parent in the tree */
    CW_MCAST_NAK,                            /* to the sender */
    CW_MCAST_FLOOD_PROBE,                    /* to an address that no switch has a report of */
    CW_MCAST_TYPE_END,
};

/* All of them begin with this. */
struct __attribute__((packed)) cw_mcast_prefix {
    uint32_t group_high; /* of the group's id */
    uint16_t author;     /* the member that has written the packet */
    uint16_t sender;     /* the member whose stream it is about */
    uint32_t epoch;      /* of the membership, as the author knows it */
    uint32_t reserved;
};
static_assert(sizeof(struct cw_mcast_prefix) == 16, "fixed");

enum cw_mcast_data_flags {
    CW_MCAST_LONG = 1,    /* it belongs into a registration */
    CW_MCAST_PASS_ON = 2, /* a receiver forwards it to its children in the tree */
    CW_MCAST_PACKED = 4,  /* cw_mcast_chunk follows */
    CW_MCAST_PART = 8,    /* cw_mcast_part follows; never with PACKED */
};

struct __attribute__((packed)) cw_mcast_data {
    struct cw_mcast_prefix prefix;
    uint32_t round_trip; /* of the group, as the sender has measured it, in units of 256 ns */
    uint16_t flags;
    uint16_t reserved;
    uint32_t lane_tag;
    uint32_t place;    /* low half: how many short, or long, messages of this stream were before it */
    uint64_t message;  /* how many messages of this stream were before it */
    uint64_t position; /* of the first byte here in the message */
    uint64_t total;    /* bytes of the message */
};
static_assert(sizeof(struct cw_mcast_data) == 56, "fixed");

/* Then `head_bytes` bytes as they are, and a chunk (WIRE.md, "Chunks") to the end of the packet. */
struct __attribute__((packed)) cw_mcast_chunk {
    uint16_t raw_bytes; /* raw length of the chunk */
    uint16_t head_bytes;
    uint8_t codec;
    uint8_t parameter;
    uint16_t reserved;
};
static_assert(sizeof(struct cw_mcast_chunk) == 8, "fixed");

/* One of the packets that together are the packet of this number, since that is too long for some path. Behind it
 * follow the bytes of the message from `position` on. */
struct __attribute__((packed)) cw_mcast_part {
    uint16_t index;
    uint16_t count; /* 2 .. CW_MCAST_PARTS_MAX */
    uint32_t reserved;
};
static_assert(sizeof(struct cw_mcast_part) == 8, "fixed");

struct __attribute__((packed)) cw_mcast_state {
    struct cw_mcast_prefix prefix;
    uint32_t round_trip;
    uint16_t flags;
    uint16_t reserved;
    uint64_t next; /* every packet below this has been sent */
};
static_assert(sizeof(struct cw_mcast_state) == 32, "fixed");

struct __attribute__((packed)) cw_mcast_ack {
    struct cw_mcast_prefix prefix;
    uint16_t laggard;   /* member of the subtree that has the least */
    uint16_t unreached; /* member of the subtree that packets to the group do not reach; CW_MCAST_ALL_REACHED */
    /* how long a member of the subtree had not polled its port before it got the newest packet, in units of 256 ns */
    uint32_t pause;
    uint64_t received;   /* every member of the subtree has all packets below this */
    uint64_t released;   /* ... number of slots returned */
    uint64_t registered; /* ... number of registrations made */
};
static_assert(sizeof(struct cw_mcast_ack) == 48, "fixed");

struct __attribute__((packed)) cw_mcast_nak {
    struct cw_mcast_prefix prefix;
    uint32_t run_count;
    uint32_t reserved;
    uint64_t from;
    /* cw_wire_run[run_count]: from `from` on, alternating lengths: packets missing, then packets present, and so on */
};
static_assert(sizeof(struct cw_mcast_nak) == 32, "fixed");

enum { CW_MCAST_ROUND_TRIP_SHIFT = 8, CW_MCAST_ALL_REACHED = 0xffff };
