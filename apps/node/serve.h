/* serve: the clients of a node, on a socket (control/lease/lease_text.h): each has one lease at most, which ends with its
 * connection (grant.h).
 *
 * Invariants
 *  - A client can make no other one wait: lines are short, answers are never waited for, and what an address's next hop is
 *    is found out elsewhere (hops.h). In each round one line of each user is served, and some new connections; a user
 *    whose lines take more than a part of the thread's time waits.
 *  - No descriptor of a client's gets into this process. What the kernel drops of a message, or of a connection that
 *    ends, may take its time to close: a signal ends that after GUARD_NS (socket(7), SO_LINGER).
 *
 * Thread: one. */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "apps/cli/process.h"
#include "apps/node/dataplane.h"
#include "apps/node/nic.h"

enum { NODE_USERS_MAX = 64 };

/* What a user gets, as --share says. */
struct node_user {
    uid_t user;
    uint32_t weight;
    uint64_t rate_bps; /* 0: as much as there is */
};

struct node_serve_config {
    const char *path; /* of the socket */
    const struct node_nic *nic;
    struct node_dataplane *dataplanes[NODE_CORES_MAX]; /* the first has the NIC's address and groups */
    uint32_t core_count;
    uint16_t port_first, port_last;
    uint32_t user_leases_max;
    struct node_user users[NODE_USERS_MAX];
    uint32_t user_count;
    bool only_named; /* no other users */
};

/* Serves until signals->stop; `before`: the signals that end a wait. APP_EXIT_SUCCESS, or an exit code after reporting
 * the error. */
int node_serve(const struct node_serve_config *config, const struct app_signals *signals, const sigset_t *before);
