/* Sim groups: members of groups (control/groups/groups.h) on simulated hosts, with messages between the endpoints as
 * their links, as between the processes of a job.
 *
 * Order of calls: sim_groups_create; { sim_groups_take in each turn of the host (sim_host.work) | cw_groups_* }*;
 * sim_groups_destroy, before the hosts' end */
#pragma once

#include "control/groups/groups.h"
#include "tests/simulation/hosts.h"

struct sim_groups_config {
    uint64_t seed;
    uint64_t lag_ns;                 /* of multicast; 0: its default */
    struct cw_mcast_handler handler; /* `message` and `complete` */
};

struct sim_groups {
    struct sim_groups_config config;
    struct sim_hosts *hosts;
    uint32_t rank;   /* its host's number, too */
    uint32_t *peers; /* [hosts->count] */
    struct cw_mcast *mcast;
    struct cw_groups *groups;
    uint32_t down; /* ranks that its endpoint has lost */
};

/* The host's events are taken here from now on; its `work` and `context` are the caller's. `member` must stay where it
 * is. CW_OK, or as cw_mcast_create and cw_groups_create, with a line in `error`: destroy it. */
int sim_groups_create(struct sim_groups *member, struct sim_hosts *hosts, uint32_t rank,
                      const struct sim_groups_config *config, char *error, size_t error_bytes);
/* Zeroed: nothing. */
void sim_groups_destroy(struct sim_groups *member);

/* Takes control messages that have come, and peers that have failed. */
void sim_groups_take(struct sim_groups *member);
