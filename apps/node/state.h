/* Shared by dataplane.c, which turns, and forward.c, which moves frames. */
#pragma once

#include "apps/node/dataplane.h"

enum { NODE_REFUSED_MAX = 256 };

struct node_dataplane {
    struct node_dataplane_config config;
    struct node_lease *leases[NODE_LEASES_MAX];
    uint32_t lease_count;
    uint16_t lease_of[65536]; /* by UDP port: number in `leases` + 1; 0: nobody's */
    struct node_turn *share_turns[NODE_SHARES_MAX];
    struct node_round shares; /* that have leases */
    struct node_meter meter;  /* of the NIC */
    uint64_t barred_ns;       /* when the first lease that waits for its user's budget may continue; UINT64_MAX: none
                             * does */
    uint32_t pending_count;   /* frames that the NIC has not taken yet */
    struct cw_transmit pending[CW_PORT_BURST_MAX];
    uint64_t foreign;
    uint32_t refused_count; /* groups of other threads that the NIC rejected, which those threads do not know */
    struct node_refused {
        uint32_t from;
        uint8_t mac[6];
    } refused[NODE_REFUSED_MAX];
    int bells; /* an epoll set of the leases' */
    /* commands of another thread */
    pthread_mutex_t lock;
    pthread_cond_t done;
    _Atomic uint32_t is_called;
    void (*call)(struct node_dataplane *dataplane, void *context);
    void *call_context;
    _Atomic uint32_t stop;
    pthread_t thread;
};

/* forward.c: moves what there is. Returns how many frames it moved. */
uint32_t node_forward(struct node_dataplane *dataplane, uint64_t now_ns);
/* Admits the groups that ranks have joined since, and removes those that all have left. */
void node_groups_renew(struct node_dataplane *dataplane, uint64_t now_ns);
void node_groups_drop(struct node_dataplane *dataplane, struct node_lease *lease);
/* When something that waits may go; UINT64_MAX: nothing waits. */
uint64_t node_forward_deadline(const struct node_dataplane *dataplane, uint64_t now_ns);
