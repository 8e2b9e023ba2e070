/* dataplane: a thread of `causeway node` that has the NIC, or one of its queue pairs: frames from it go to the rank
 * that leases their UDP port, frames of ranks go out in turns, as their users' shares say. If there are several
 * threads, each has a block of the UDP ports, and hands over frames for another one's ports (handoff ring.h); the first
 * has the groups of the NIC, and answers for its address. Shares hold among the ranks of a thread.
 *
 *    NIC --> [UDP port, group] --> shared-memory ports --> ranks
 *    ranks --> shared-memory ports --> copy --> [are they its own?] --> shares --> NIC, and ranks of this host
 *
 * Invariants
 *  - A frame of a rank is copied, then checked, then sent: later writes of the rank have no effect. It leaves only if
 *    it has one of the forms of packet.h and says that it comes from this host and one of the rank's UDP ports.
 *  - Whether a rank sends or receives much or nothing, the others get their shares. All that a thread does for a rank
 *    is charged to its user: frames that leave, each copy for a rank of this host, frames that are refused, groups that
 *    change. Frames that a rank has no room for are dropped, and counted.
 *  - Nothing here knows sessions or acknowledgements.
 *
 * Order of calls: node_dataplane_open { node_lease_..., node_hop_want }*
 * node_dataplane_close. Thread: calls from one other thread; the dataplane's own runs until it is closed. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "apps/node/handoff.h"
#include "apps/node/share.h"
#include "dataplane/neighbour/neighbour.h"
#include "dataplane/port/shm_port.h"

enum { NODE_LEASES_MAX = 1024, NODE_SHARES_MAX = 128 };

struct node_counters {
    uint64_t out_frames, out_bytes;
    uint64_t in_frames, in_bytes;
    uint64_t refused; /* of the rank: not from its ports, or of a form that is not allowed */
    uint64_t dropped; /* to the rank, which had no room */
};

/* A user's limit for work of a thread other than moving frames. */
#define NODE_REFUSAL_NS      1000000ull   /* pause of a lease after a frame that is rejected or has no receiver */
#define NODE_GROUP_CHANGE_NS 1000000ull   /* a group that is joined or left costs so much of the user's budget */
#define NODE_GROUP_BURST_NS  128000000ull /* ... which lets so much be owed */
/* Groups of a user: three quarters of a port's room (CW_PORT_ETHDEV_GROUPS_MAX), a part to each thread. */
enum { NODE_USER_GROUPS_MAX = 96 };

struct node_user_group {
    uint8_t mac[6];
    uint32_t leases; /* that are in it */
};

/* A user's part of the NIC. */
struct node_share {
    struct node_turn turn; /* first */
    struct node_budget refusals, group_changes;
    uint32_t group_count;
    struct node_user_group groups[NODE_USER_GROUPS_MAX]; /* of all its leases */
    struct node_round round;                             /* of its leases */
    struct node_turn *turns[NODE_LEASES_MAX];
};

struct node_lease {
    struct node_turn turn; /* first; the weight is 1 */
    struct cw_shm_port *shm_port;
    struct node_share *share;
    struct node_dataplane *dataplane; /* that serves it */
    uint16_t first;
    uint16_t ports;
    int bell; /* an eventfd, which the client has, too */
    /* the dataplane's */
    uint32_t frame_count, frame_at;
    struct cw_shm_port_frame frames[CW_PORT_BURST_MAX];
    uint32_t groups_version;
    uint32_t group_count;
    uint8_t groups[CW_SHM_PORT_GROUPS_MAX][6];
    bool lacks_groups; /* some of its list are not in `groups`: its user, or the port, has too many */
    uint64_t groups_retry_ns;
    struct node_counters counters;
    struct node_counters shown; /* written by node_leases_count */
};

struct node_dataplane_config {
    struct cw_port *nic;          /* the queue pair of this thread */
    struct node_handoff *handoff; /* NULL: it is the only one */
    uint32_t number, count;       /* of how many */
    uint16_t port_first;          /* of all that are leased */
    uint32_t ports_each;          /* of them, to a thread, but to the last */
    uint32_t ports_own;           /* ... to this one */
    struct cw_ip ip;
    uint8_t mac[6];
    struct cw_neighbour_cache
        *neighbours;   /* of an address that no kernel has, the first thread's; NULL: the kernel has it */
    bool answers;      /* no kernel has it */
    uint64_t rate_bps; /* of frames that leave by the NIC; 0: the NIC's rate */
    int core;          /* -1: any */
    bool spins;
};

struct node_dataplane;

/* The thread that serves a UDP port. */
static inline uint32_t node_core_of(const struct node_dataplane_config *config, uint16_t udp_port)
{
    uint32_t number =
        udp_port < config->port_first ? 0 : (uint32_t)(udp_port - config->port_first) / config->ports_each;
    return number < config->count ? number : 0;
}

/* CW_OK; CW_ERROR_MEMORY, CW_ERROR_SYSTEM, CW_ERROR_LIMIT with a line in `error`. */
int node_dataplane_open(const struct node_dataplane_config *config, struct node_dataplane **dataplane, char *error,
                        size_t error_bytes);
void node_dataplane_close(struct node_dataplane *dataplane);

/* Serves a lease from now on; it stays the caller's, and no other thread touches it until it is removed. `share` is one
 * of the caller's that lives as long. CW_OK; CW_ERROR_LIMIT: there are NODE_LEASES_MAX; CW_ERROR_SYSTEM. */
int node_lease_add(struct node_dataplane *dataplane, struct node_lease *lease, struct node_share *share);
void node_lease_remove(struct node_lease *lease);
/* Has the counters of all its leases put where others may read them (lease->shown). */
void node_leases_count(struct node_dataplane *dataplane);
/* One whose memory made no sense, and that is served no more; NULL: there is none. */
struct node_lease *node_lease_broken(struct node_dataplane *dataplane);

/* With `neighbours`: has a next hop looked for, until it is forgotten. True: it is known. */
bool node_hop_want(struct node_dataplane *dataplane, const struct cw_ip *ip, uint8_t mac[6]);
void node_hop_remove(struct node_dataplane *dataplane, const struct cw_ip *ip);

/* Frames without a receiver on this host. */
uint64_t node_dataplane_foreign(struct node_dataplane *dataplane);
