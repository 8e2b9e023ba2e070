/* Sim hosts: the hosts of a simulator (dataplane/fabric/simulator.h), as tests use them: their events are counted, each
 * has a region, and may have an RDMA device or a NIC with offloads.
 *
 * Order of calls: sim_hosts_config_of, sim_hosts_create; { sim_host_begin | sim_hosts_run | cw_simulator_* | faults |
 * calls of dataplane.h on the endpoints }*; sim_hosts_destroy */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/dataplane.h"
#include "dataplane/fabric/port_sim.h"
#include "dataplane/fabric/verbs_sim.h"

struct sim_hosts;
struct sim_host;

/* Called in every turn of a host after its events were counted; may post. */
typedef void (*sim_work)(struct sim_host *host, void *context, uint64_t now_ns);

/* Turns a host in place of the hosts' own turn, which counts events and calls `work`. Returns the next deadline. */
typedef uint64_t (*sim_turn)(struct sim_host *host, uint64_t now_ns);

struct sim_host {
    struct sim_hosts *hosts;
    uint32_t node;
    uint32_t lives; /* processes started at this node */
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    uint8_t *memory; /* a region of its own, for anyone to write; NULL: the configuration wants none */
    uint64_t memory_bytes;
    uint64_t token;
    uint64_t arrived_puts;
    uint64_t arrived_bytes;
    uint64_t arrived_messages;
    uint64_t got;       /* gets that ended well */
    uint64_t completed; /* operations that asked for a signal */
    uint64_t failed;    /* ... or ended with an error */
    uint64_t down;      /* peers reported as failed, closed or restarted */
    uint64_t down_ns;   /* when that was heard last */
    int down_status;    /* ... and why */
    uint64_t up;        /* peers reported as there */
    bool holds_events;  /* takes none while this is set */
    sim_work work;      /* NULL: none */
    uint64_t again_ns;  /* set by `work`: when it wants the next turn at the latest; 0: whenever there is one */
    void *context;      /* of it */
};

struct sim_hosts_config {
    uint32_t count;
    uint64_t seed;
    uint32_t mtu_bytes;
    struct cw_simulator_node_config node;
    struct cw_simulator_nic nic;           /* of each host, until `prepare` gives it another one */
    struct cw_endpoint_config endpoint;    /* address, key and seed are filled in */
    struct cw_ip ip_first;                 /* of host 0; the others count up in the last 32 bits */
    uint64_t memory_bytes;                 /* of each host's region; 0: none */
    enum cw_simulator_multicast multicast; /* the behaviour of a learning switch */
    bool learning;               /* switches learn addresses and groups from frames, and know nothing before */
    uint32_t switches;           /* hosts in blocks, the others joined to the first; 1 */
    bool is_mesh;                /* ... joined each with each, as clusters are by a wide area */
    struct cw_link_config trunk; /* between them */
    uint32_t packet_count_max;   /* 0: plenty for hosts on a LAN */
    uint64_t turn_ns;            /* virtual time that a turn takes; 0: as cw_simulator_config_init has it */
    void *owner;                 /* for the following, which find it in their host's hosts->config */
    /* Before an endpoint is created: the last word on its configuration. NULL: none. */
    void (*prepare)(struct sim_host *host, struct cw_endpoint_config *endpoint);
    sim_turn turn;                           /* NULL: none */
    const struct cw_verbs_net_config *verbs; /* hosts have an RDMA device next to their port; NULL: none has */
    uint32_t verbs_count;                    /* how many of them do, the first ones; 0: all */
};

struct sim_hosts {
    struct cw_simulator *simulator;
    struct sim_host *list;
    uint32_t count;
    struct cw_verbs_net *verbs; /* NULL: no devices */
    struct sim_hosts_config config;
};

/* One switch, 10 Gb/s (trunks alike), 20 us one way end to end, MTU 1500, tables of a modest size. */
struct sim_hosts_config sim_hosts_config_of(uint32_t count);

/* The address of a host, and the host of an address: of any but the first ones' there is none of this number. */
struct cw_ip sim_hosts_ip(const struct sim_hosts_config *config, uint32_t node);
uint32_t sim_hosts_node(const struct sim_hosts_config *config, const struct cw_ip *ip);

/* CW_OK, or a code of enum cw_status with a line in `error`. */
int sim_hosts_create(struct sim_hosts *hosts, const struct sim_hosts_config *config, char *error, size_t error_bytes);
/* Also after a failure of sim_hosts_create. Zeroed: nothing. */
void sim_hosts_destroy(struct sim_hosts *hosts);

/* The process at a node ends without a goodbye, or with it; a new one, with a new region, starts there. CW_OK or
 * as sim_hosts_create. */
void sim_hosts_crash(struct sim_hosts *hosts, uint32_t node);
void sim_hosts_close(struct sim_hosts *hosts, uint32_t node);
int sim_hosts_restart(struct sim_hosts *hosts, uint32_t node, char *error, size_t error_bytes);

/* The number that `from` has for `to`. */
uint32_t sim_hosts_peer(struct sim_hosts *hosts, uint32_t from, uint32_t to);

/* The numbers that `from` has for the first `count` hosts, 0 for itself and those that have ended; the caller frees
 * them. NULL: no memory. */
uint32_t *sim_hosts_peers(struct sim_hosts *hosts, uint32_t from, uint32_t count);

uint64_t sim_hosts_now(const struct sim_hosts *hosts);

/* So much time passes. */
void sim_hosts_run(struct sim_hosts *hosts, uint64_t duration_ns);

/* From now on a link loses this share of its frames. */
void sim_link_lose(struct cw_link *link, double loss);

/* The work of a host in its turns, from now on. */
void sim_host_begin(struct sim_host *host, sim_work work, void *context);

/* Has a host's `work` run now: after it was set, or something outside has changed. */
void sim_host_wake(struct sim_host *host);
