/* RDMA: what the endpoint knows of a device beside its port, as data, and the calls by which put/, flow/ and endpoint/
 * reach dataplane/rdma/, which stands above them.
 *
 * Invariants
 *   - An operation is carried by packets or by the queue pair of its flow, which is decided when it is posted
 *     (cw_operation_open), and not changed.
 *   - An operation in a lane is held back until the one before it has been acknowledged, where the two are carried by
 *     different ways, or has been handed to the queue pair, where both are the queue pair's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/state/put.h"

struct cw_endpoint;
struct cw_flow;
struct cw_region;

struct cw_rdma {
    const struct cw_rdma_ops *ops;
    uint32_t open_count; /* of all flows */
};

/* What a flow's queue pair carries; begins what dataplane/rdma/ keeps of a flow. */
struct cw_rdma_flow {
    bool is_up;                      /* operations may be given to it */
    bool is_short;                   /* operations go by packets, and lack a number */
    uint32_t open_count;             /* operations of the queue pair, and held ones, not retired */
    struct cw_operation *open_first; /* in the order of their posting */
    struct cw_operation *open_last;
};

struct cw_rdma_ops {
    /* Whether an operation of this kind, to this region of the peer, is the queue pair's; `local` is the token of the
     * own region of a get. */
    bool (*takes)(struct cw_rdma *rdma, const struct cw_flow *flow, enum cw_operation_kind kind, uint64_t token,
                  uint64_t local);
    /* An operation is to be carried out, behind all that were queued before. */
    void (*queue)(struct cw_rdma *rdma, struct cw_operation *operation);
    /* Operations of the flow lack numbers: cw_operations_number is to be called again. */
    void (*retry)(struct cw_rdma *rdma, struct cw_flow *flow);
    /* Hands to the device what is queued, as far as it takes it. */
    void (*push)(struct cw_rdma *rdma);
    /* Looks for what has come, and keeps it for `turn`; how much there is. Packets are fetched before. */
    uint32_t (*fetch)(struct cw_rdma *rdma);
    /* What came by queue pairs is taken here; before packets are that were fetched before. */
    uint32_t (*turn)(struct cw_rdma *rdma);
    /* Gives events that found no room before; returns how many. */
    uint32_t (*deliver)(struct cw_rdma *rdma);
    uint64_t (*deadline)(const struct cw_rdma *rdma);
    void (*session_begin)(struct cw_rdma *rdma, struct cw_flow *flow);
    /* The queue pair carries nothing more, in or out; its operations are still open. */
    void (*session_stop)(struct cw_rdma *rdma, struct cw_flow *flow);
    /* ... and they have ended now. */
    void (*session_end)(struct cw_rdma *rdma, struct cw_flow *flow);
    /* A frame of the peer's, `bytes` at `data`. `check` only looks whether it makes sense. False: malformed. */
    bool (*frame)(struct cw_rdma *rdma, struct cw_flow *flow, const void *data, uint32_t bytes, bool check);
    /* Registers memory with the device; *key: the 48 bits of its token that stand for the device's key. False: it stays
     * unknown to the device. */
    bool (*memory_register)(struct cw_rdma *rdma, struct cw_region *region, void *base, uint64_t bytes, uint32_t rights,
                            uint64_t *key);
    /* Whether the 48 bits of a token would stand for a key of the device. */
    bool (*means_key)(const struct cw_rdma *rdma, uint64_t bits);
    /* Whether a get of a session that has ended may still be filling memory that stays registered. */
    bool (*memory_is_busy)(const struct cw_rdma *rdma, const struct cw_region *region);
    void (*memory_unregister)(struct cw_rdma *rdma, struct cw_region *region);
    /* A message slot is free again. */
    void (*slot_released)(struct cw_rdma *rdma, uint32_t slot);
    /* The longest frame that goes to a group as a datagram; 0: the device has no groups. */
    uint32_t (*datagram_bytes)(const struct cw_rdma *rdma);
    /* As cw_port_join. */
    int (*group_join)(struct cw_rdma *rdma, const struct cw_ip *ip);
    int (*group_leave)(struct cw_rdma *rdma, const struct cw_ip *ip);
    bool (*group_is_joined)(struct cw_rdma *rdma, const struct cw_ip *ip);
    /* So many frames find room now. */
    uint32_t (*datagram_room)(const struct cw_rdma *rdma);
    /* Sends a frame to the members of a group. It is copied, and may get lost. */
    void (*datagram_send)(struct cw_rdma *rdma, const struct cw_ip *ip, const void *frame, uint32_t bytes);
    /* What comes from now on ends a sleep. */
    void (*arm)(struct cw_rdma *rdma);
    void (*dispose)(struct cw_rdma *rdma);
};
