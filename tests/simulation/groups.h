/* Sim groups: members of groups (control/groups/groups.h) on simulated hosts, by default with messages between the
 * endpoints as their links, as between the processes of a job.
 *
 * Order of calls: sim_groups_create; { sim_groups_receive in each turn of the host (sim_host.work) | cw_groups_* }*;
 * sim_groups_destroy, before the hosts' end */
#pragma once

#include "control/groups/groups.h"
#include "tests/simulation/hosts.h"

struct sim_groups_config {
    uint64_t seed;
    uint64_t lag_ns;                 /* of multicast; 0: its default */
    uint32_t filter_budget;          /* 0: the usual one */
    struct cw_mcast_handler handler; /* `message` and `complete` */
    struct cw_groups_links links;    /* without `run`; nothing: messages between the endpoints */
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

/* If messages are the links, the host's events are taken here from now on; its `work` and `context` are the caller's.
 * `member` must stay where it is. */
void sim_groups_create(struct sim_groups *member, struct sim_hosts *hosts, uint32_t rank,
                       const struct sim_groups_config *config);
/* Zeroed: nothing. */
void sim_groups_destroy(struct sim_groups *member);

/* Control messages that take a time of their own, in order per pair of ranks: links for groups whose endpoints carry
 * nothing else. Zeroed: none is under way. */
enum { SIM_LETTER_RANKS = 16, SIM_LETTER_BYTES = 128 };

struct sim_letter {
    struct sim_letter *next;
    uint64_t due_ns;
    uint32_t from, to, bytes;
    uint8_t data[SIM_LETTER_BYTES];
};

struct sim_letters {
    struct sim_letter *first; /* rising by time, stable */
    uint64_t last_ns[SIM_LETTER_RANKS][SIM_LETTER_RANKS];
};

void sim_letter_post(struct sim_letters *letters, uint32_t from, uint32_t to, uint64_t due_ns, const void *data,
                     uint32_t bytes);
/* The next one that is due; false: none is. */
bool sim_letter_pop(struct sim_letters *letters, uint64_t now_ns, struct sim_letter *letter);

/* Takes control messages that have come, and peers that have failed. */
void sim_groups_receive(struct sim_groups *member);
