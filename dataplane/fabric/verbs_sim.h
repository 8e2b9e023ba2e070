/* Verbs sim: RDMA devices of simulated nodes: verbs/device.h over the simulator, in virtual time.
 *
 * Work requests take their time on the device's line and on the way, reach the peer's memory in order, and are
 * answered; memory is read when the work arrives there, and looked at by keys, bounds and rights. Faults that a real
 * device may have occur, from the seed: pairs that fail before or after their work was carried out, peers that are cut
 * off, receive queues that are empty (the sender retries forever). A stopped process's device continues.
 *
 * Order of calls: cw_verbs_net_create after the simulator; cw_verbs_sim_open for a node, after its port; devices are
 * closed before their port, and all of them before cw_verbs_net_destroy. Owner: the simulator's. */
#pragma once

#include "dataplane/fabric/port_sim.h"
#include "dataplane/verbs/device.h"

struct cw_verbs_net;

struct cw_verbs_net_config {
    uint64_t seed;
    uint64_t rate_bps;    /* of each device's line */
    uint64_t delay_ns;    /* one way */
    uint64_t jitter_ns;   /* up to so much more, within the order of a pair */
    uint64_t retry_ns;    /* work that does not get there is tried again after this */
    uint32_t retry_max;   /* ... so often, before its pair breaks */
    double break_before;  /* share of work requests with which their pair breaks, and which are not carried out */
    double break_after;   /* ... which are, though their sender gets no notice */
    uint64_t join_max_ns; /* joining a group takes up to so long */
    double datagram_loss; /* share of datagrams to groups that a member does not get */
    uint32_t work_max;    /* as struct cw_verbs_info has them */
    uint32_t receive_max;
    uint32_t pieces_max;
    uint32_t inline_max;
    uint64_t message_max;
};

struct cw_verbs_net_counters {
    uint64_t work;      /* requests carried out */
    uint64_t bytes;     /* of them */
    uint64_t packets;   /* that they take at an MTU of 1,024, one for each answer aside */
    uint64_t broken;    /* pairs, by a fault */
    uint64_t refused;   /* work requests, for keys, bounds or rights */
    uint64_t waited;    /* times that a receive queue was empty */
    uint64_t datagrams; /* sent to groups */
    uint64_t dropped;   /* ... for lack of a buffer, at a member */
    uint64_t wrong;     /* work requests with memory of their own that is not registered: never */
};

/* 100 Gb/s, 1 us one way, 7 times 4 ms, no faults, and a device of usual size. */
void cw_verbs_net_config_init(struct cw_verbs_net_config *config);

/* CW_OK, CW_ERROR_MEMORY. */
int cw_verbs_net_create(struct cw_simulator *simulator, const struct cw_verbs_net_config *config,
                        struct cw_verbs_net **net);
void cw_verbs_net_destroy(struct cw_verbs_net *net);

/* Where the memory of a device's user is, if it is another process: functions that copy from and to there, and the
 * device whose line this one shares. */
struct cw_verbs_sim_process {
    void (*copy_from)(void *context, void *to, const void *there, uint64_t bytes);
    void (*copy_to)(void *context, void *there, const void *from, uint64_t bytes);
    void *context;
    uint32_t line; /* number of a node */
};

/* A device of a node, which is turned when something completes. `process` NULL: it is this one, and the line its own.
 * CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY. */
int cw_verbs_sim_open(struct cw_verbs_net *net, uint32_t node, struct cw_port *port,
                      const struct cw_verbs_sim_process *process, struct cw_verbs_device **device);

/* Cuts a node's device off, or heals it; its port continues. */
void cw_verbs_net_cut(struct cw_verbs_net *net, uint32_t node, bool cut);
/* A node's device does no more work, completes nothing and reports that on request, until it is opened again. */
void cw_verbs_net_fail(struct cw_verbs_net *net, uint32_t node);
/* No faults any more; devices that have failed stay so. */
void cw_verbs_net_heal(struct cw_verbs_net *net);

const struct cw_verbs_net_counters *cw_verbs_net_counters(const struct cw_verbs_net *net);
