/* RDMA: the endpoint's data of an RDMA device, and the calls of put/, flow/ and endpoint/ to dataplane/rdma/, which is
 * above them.
 *
 * Invariants
 *   - Packets or the queue pair of its flow carry an operation. The choice is made when the operation is posted
 *     (cw_operation_open), and does not change.
 *   - An operation waits for the previous one of its lane. If both use the queue pair, it waits until that one has been
 *     passed to the pair. If one uses packets and the other the pair, it waits until that one has been acknowledged. */
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

/* The operations of a flow's queue pair; the first member of dataplane/rdma/'s state of a flow. */
struct cw_rdma_flow {
    bool is_up;                      /* it accepts operations */
    bool is_short;                   /* operations use packets, and lack a number */
    uint32_t open_count;             /* operations of the queue pair, and held ones, not retired */
    struct cw_operation *open_first; /* in the order of their posting */
    struct cw_operation *open_last;
};

struct cw_rdma_ops {
    /* True: the queue pair carries an operation of this kind, to this region of the peer; `local` is the token of the
     * own region of a get. */
    bool (*accepts)(struct cw_rdma *rdma, const struct cw_flow *flow, enum cw_operation_kind kind, uint64_t token,
                    uint64_t local);
    /* Queues an operation after all earlier ones. */
    void (*queue)(struct cw_rdma *rdma, struct cw_operation *operation);
    /* Operations of the flow lack numbers: cw_operations_number must be called again. */
    void (*retry)(struct cw_rdma *rdma, struct cw_flow *flow);
    /* Passes queued operations to the device, as far as it accepts them. */
    void (*push)(struct cw_rdma *rdma);
    /* Polls completions, and keeps them for `turn`; returns their number. Packets are fetched before. */
    uint32_t (*fetch)(struct cw_rdma *rdma);
    /* Processes data of queue pairs; it runs before the packets that were fetched earlier. */
    uint32_t (*turn)(struct cw_rdma *rdma);
    /* Posts events that found no room before; returns their number. */
    uint32_t (*deliver)(struct cw_rdma *rdma);
    uint64_t (*deadline)(const struct cw_rdma *rdma);
    void (*session_begin)(struct cw_rdma *rdma, struct cw_flow *flow);
    /* The queue pair carries no more data, in or out; its operations are still open. */
    void (*session_stop)(struct cw_rdma *rdma, struct cw_flow *flow);
    /* ... and they have ended now. */
    void (*session_end)(struct cw_rdma *rdma, struct cw_flow *flow);
    /* A frame of the peer, `bytes` at `data`. `check` only validates it. False: malformed. */
    bool (*frame)(struct cw_rdma *rdma, struct cw_flow *flow, const void *data, uint32_t bytes, bool check);
    /* Registers memory with the device; *key: the 48 bits of its token that represent the device's key. False: the
     * device does not know it. */
    bool (*memory_register)(struct cw_rdma *rdma, struct cw_region *region, void *base, uint64_t bytes, uint32_t rights,
                            uint64_t *key);
    /* True: the 48 bits of a token would represent a key of the device. */
    bool (*means_key)(const struct cw_rdma *rdma, uint64_t bits);
    /* True: a get of an ended session may still write to memory that stays registered. */
    bool (*memory_is_busy)(const struct cw_rdma *rdma, const struct cw_region *region);
    void (*memory_unregister)(struct cw_rdma *rdma, struct cw_region *region);
    /* A message slot is free again. */
    void (*slot_released)(struct cw_rdma *rdma, uint32_t slot);
    /* The longest frame of a datagram to a group; 0: the device has no groups. */
    uint32_t (*datagram_bytes)(const struct cw_rdma *rdma);
    /* As cw_port_join. */
    int (*group_join)(struct cw_rdma *rdma, const struct cw_ip *ip);
    int (*group_leave)(struct cw_rdma *rdma, const struct cw_ip *ip);
    bool (*group_is_joined)(struct cw_rdma *rdma, const struct cw_ip *ip);
    /* The number of frames that find room now. */
    uint32_t (*datagram_room)(const struct cw_rdma *rdma);
    /* Sends a frame to the members of a group. It is copied, and may get lost. */
    void (*datagram_send)(struct cw_rdma *rdma, const struct cw_ip *ip, const void *frame, uint32_t bytes);
    /* Completions from now on end a sleep. */
    void (*arm)(struct cw_rdma *rdma);
    void (*dispose)(struct cw_rdma *rdma);
};
