/* Sim hosts: endpoints on the nodes of a simulated star, or of a few switches, for benchmarks and simulations in
 * virtual time. */
#ifndef SIM_HOSTS_H
#define SIM_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/dataplane.h"
#include "dataplane/fabric/port_sim.h"
#include "dataplane/fabric/simulator.h"

struct sim_hosts;

struct sim_host {
    struct sim_hosts *hosts;
    uint32_t node;
    uint32_t lives; /* processes started at this node */
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    uint8_t *memory; /* a region of its own, for anyone to write */
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
    uint64_t up;        /* peers reported as there */
    bool holds_events;  /* takes none while this is set */
    /* Called in every turn of the host after its events were counted; may post. NULL: none. */
    void (*work)(struct sim_host *host, void *context, uint64_t now_ns);
    void *context;
};

struct sim_hosts_config {
    uint32_t count;
    uint64_t seed;
    uint32_t mtu_bytes;
    struct cw_simulator_node_config node;
    struct cw_endpoint_config endpoint;    /* address, key and seed are filled in */
    uint64_t memory_bytes;                 /* of each host's region */
    enum cw_simulator_multicast multicast; /* what a learning switch does */
    bool learning;               /* switches learn addresses and groups from frames, and know nothing before */
    uint32_t switches;           /* hosts in blocks, the others joined to the first; 1 */
    struct cw_link_config trunk; /* between them */
};

struct sim_hosts {
    struct cw_simulator *simulator;
    struct sim_host *list;
    uint32_t count;
    struct sim_hosts_config config;
};

/* One switch, 10 Gb/s (trunks alike), 20 us one way end to end, MTU 1500, tables of a modest size. */
void sim_hosts_config_init(struct sim_hosts_config *config, uint32_t count);

/* CW_OK, or a code of enum cw_status with a line in `error`. */
int sim_hosts_create(struct sim_hosts *hosts, const struct sim_hosts_config *config, char *error, size_t error_bytes);
void sim_hosts_destroy(struct sim_hosts *hosts);

/* The process at a node ends without a word; a new one, with a new region, starts there. CW_OK or as
 * sim_hosts_create. */
void sim_hosts_crash(struct sim_hosts *hosts, uint32_t node);
int sim_hosts_restart(struct sim_hosts *hosts, uint32_t node, char *error, size_t error_bytes);

/* The number that `from` has for `to`. */
uint32_t sim_hosts_peer(struct sim_hosts *hosts, uint32_t from, uint32_t to);

/* Has a host's `work` run now: after it was set, or something outside has changed. */
void sim_host_wake(struct sim_host *host);

#endif
