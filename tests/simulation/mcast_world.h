/* Mcast world: one group on a simulated network, its members sending to each other, under faults, all from one seed;
 * every byte is checked against what its sender must have written.
 *
 * A member's messages are a function of (seed, member, number of the message): kind, length and bytes. So each other
 * member knows the messages to come, and their order, without any code under test.
 *
 * Order of calls: mcast_world_config_of, mcast_world_create  { mcast_world_run, faults, queries }*
 * mcast_world_destroy */
#pragma once

#include "dataplane/flow/extension.h"
#include "mcast/mcast.h"
#include "tests/simulation/simulation.h"

#define GROUP_IPV4 0xef010203u
#define FLOOD_IPV4 0xef010204u

struct mcast_world_config {
    uint64_t seed;
    uint32_t members;
    uint32_t senders;  /* the number of senders, the first members */
    uint32_t messages; /* of each */
    uint64_t short_max;
    uint64_t long_max; /* 0: no long ones */
    bool is_uniform;   /* all are long, and as long as that */
    bool is_slow;      /* receivers do not look at what has come for a while */
    uint32_t arity;    /* 0: the usual one */
    enum cw_mcast_delivery delivery;
    enum cw_simulator_multicast multicast; /* a learning switch */
    /* switches learn groups from the members' reports; of several, the first hears a querier at member 0's port */
    bool learning;
    const struct cw_verbs_net_config *verbs; /* members have RDMA devices, by which the group's packets go; NULL: not */
    uint32_t switches;                       /* members in blocks; 0: one */
    uint32_t outsiders;                      /* hosts at the end that never open the group */
    enum cw_compression_mode compresses;     /* of the members; some messages are compressible then */
    uint32_t mtu_bytes;                      /* of all ports; 0: the usual one */
    struct cw_simulator_node_config node;
    struct cw_mcast_config mcast;
};

/* A member's state of another one that sends. */
struct mcast_sender {
    uint64_t next;       /* the message that must come next */
    uint64_t registered; /* messages looked at for registrations so far */
    uint8_t *buffer;     /* memory of open registrations, by turns */
};

struct mcast_member {
    struct mcast_world *world;
    struct cw_mcast *mcast;       /* NULL: dead */
    struct cw_mcast_group *group; /* NULL: not in it */
    uint32_t index;
    uint32_t posted;
    uint32_t completed;
    uint32_t heard; /* short messages, and their bytes */
    uint64_t heard_bytes;
    struct mcast_sender *from; /* [members] */
    uint64_t laggards;         /* events */
    uint32_t laggard;          /* the last one's */
    uint32_t unreached;        /* the member reported as not reached by the network; UINT32_MAX: none */
    uint64_t unreached_ns;
    uint64_t *sent_ns; /* [messages]: when posted */
    uint64_t *done_ns; /* [messages]: when complete at its sender */
    uint64_t random;
};

struct mcast_world {
    struct mcast_world_config config;
    struct sim_hosts hosts;
    struct mcast_member *members;
    uint8_t **sources; /* [members * messages]: bytes of each message, while a member needs them */
    bool *live;
    uint32_t epoch;
    uint32_t faulty; /* bytes, orders, repetitions that are wrong */
    char fault[200]; /* the first */
};

/* Messages that were complete when their group had been shut, which must be the first ones of one member. */
extern uint32_t mcast_world_complete_late;

/* One sender of 20 messages, short and long ones, without faults. */
struct mcast_world_config mcast_world_config_of(uint32_t members);
void mcast_world_create(struct mcast_world *world, const struct mcast_world_config *config);
/* Zeroed: nothing. */
void mcast_world_destroy(struct mcast_world *world);

/* Until all expected messages have arrived and completed, or the time has passed: true in the first case. */
bool mcast_world_run(struct mcast_world *world, uint64_t limit_ns);
/* The same; fails the test if it has not, or if a byte was wrong. */
void mcast_world_finish(struct mcast_world *world, uint64_t limit_ns);

/* The process of a member ends without notice. */
void mcast_world_kill(struct mcast_world *world, uint32_t member);
/* All others are notified that it is out, each at a time of its own within `spread_ns`. */
void mcast_world_exclude(struct mcast_world *world, uint32_t member, uint64_t spread_ns);

/* The group's id. */
uint64_t mcast_world_group(const struct mcast_world *world);

/* Sums of all members' counters. */
struct cw_mcast_counters mcast_world_counters(const struct mcast_world *world);

/* Sends a packet that the protocol would not send, to the address of a group. False: the port has no room. */
bool mcast_packet_forge(struct cw_endpoint *from, uint32_t group_ipv4, struct cw_extension_header header,
                        const struct cw_wire_key *key, const void *payload, uint32_t bytes);

/* Sum of a counter of all members' endpoints. */
uint64_t mcast_world_counted(const struct mcast_world *world, enum cw_counter counter);
