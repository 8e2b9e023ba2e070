/* grant: the resources of each user at the node: leases, ports, connections; and the leases of its clients.
 *
 * Invariants
 *  - A user has at most `user_leases_max` leases and CONNECTIONS more connections, and leaves a quarter of the UDP
 *    ports to others.
 *  - A lease has memory that the client's user owns, and is reported once it is on record.
 *
 * Thread: one, that of serve.h. */
#pragma once

#include <sys/socket.h>

#include "apps/node/lines.h"
#include "apps/node/ports.h"
#include "apps/node/serve.h"
#include "control/lease/lease_text.h"

enum {
    NODE_CLIENTS_MAX = 4 * NODE_LEASES_MAX,
    NODE_PLACES_OWN = 2,    /* users with a place, without --share: root and the node's */
    NODE_CLIENTS_OWN = 256, /* connections that only such users may have */
    NODE_CONNECTIONS = 64,  /* of a user, in addition to those with a lease: they only send queries */
    NODE_ERROR_BYTES = 512,
};

struct node_owner {
    uid_t user;
    uint32_t leases, leases_of[NODE_CORES_MAX];
    uint32_t ports;
    uint32_t connections;
    struct node_share *shares; /* one for each core */
    /* serve.c's */
    struct node_lines lines;    /* about its clients */
    struct node_budget service; /* its part of the thread's time */
    uint32_t turn;              /* the next connection, counted from the first */
    bool is_heard;              /* in this round */
};

struct node_client {
    int socket;
    struct ucred whose;
    struct node_owner *owner;
    struct node_lease *lease; /* NULL: none */
    struct cw_reservation reservation;
    uint32_t rank;
    char job[CW_LEASE_JOB_BYTES];
    /* serve.c's: lines that the socket had no room for yet */
    char *rest;
    size_t rest_at, rest_bytes;
    uint64_t rest_ns; /* when some of them have left last */
};

struct node_grants {
    const struct node_serve_config *config;
    struct node_owner owners[NODE_SHARES_MAX];
    uint32_t owner_count;
    struct node_ports ports;
};

/* The --share setting of a user; NULL: none. */
const struct node_user *node_user_named(const struct node_serve_config *config, uid_t user);

/* Whether a place among the users is kept free for this one. */
bool node_user_has_place(const struct node_serve_config *config, uid_t user);

/* Enters a client's connection, and takes it out. False: the user has enough, or there are too many users. */
bool node_owner_enter(struct node_grants *grants, struct node_client *client);
void node_owner_leave(struct node_client *client);

/* CW_OK: the client has a lease; its bell is for the client, too. Else with a line in `error`. */
int node_lease_begin(struct node_grants *grants, struct node_client *client, const struct cw_lease_request *request,
                     char *error, size_t error_bytes);
/* Without one nothing is done. */
void node_lease_end(struct node_grants *grants, struct node_client *client);
