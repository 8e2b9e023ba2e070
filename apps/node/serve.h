/* serve: the clients of a node, on a socket (control/lease/lease_text.h): each has one lease at most, which ends with
 * its connection (grant.h).
 *
 * Invariants
 *  - A client cannot delay another one: lines are short, the node never waits for answers, and next hops are resolved
 *    elsewhere (hops.h). In each round one line of each user is served, and some new connections; a user whose lines
 *    take more than a part of the thread's time waits.
 *  - No descriptor of a client's gets into this process. Closing may take time if the kernel drops a message, or a
 *    connection that ends: a signal ends that after GUARD_NS (socket(7), SO_LINGER).
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

/* A user's share, from --share. */
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
