/* Switch config: the options of `causeway switch`, port by port.
 *
 * Ports are numbered from 0: first the memif servers, then the other devices in the order they were given. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apps/cli/process.h"
#include "control/topology/topology.h"
#include "dataplane/fabric/link.h"
#include "dataplane/port/doorbell.h"

enum {
    SWITCH_PORTS_MAX = 32,   /* DPDK as Debian builds it (RTE_MAX_ETHPORTS) has no more */
    SWITCH_PATH_BYTES = 108, /* of a Unix socket's address */
    SWITCH_DEVICE_BYTES = 64,
    SWITCH_ARGUMENTS_BYTES = 320,
    SWITCH_NAME_BYTES = 16,
};

struct switch_port_config {
    bool memif;
    char name[SWITCH_NAME_BYTES]; /* "port3" */
    char device[SWITCH_DEVICE_BYTES];
    char arguments[SWITCH_ARGUMENTS_BYTES];
    struct cw_link_config link; /* shapes what leaves towards this port; with a topology its host's */
};

struct switch_config {
    const char *path; /* of the memif socket; NULL: no memif ports */
    char bell_path[SWITCH_PATH_BYTES + 8];
    uint32_t port_count;
    uint64_t memif_count;
    uint64_t mtu_bytes;
    uint64_t seed;
    uint64_t seconds;             /* 0: until a signal comes */
    uint64_t stats_interval_ns;   /* of the file, or else of printed counters; 0: at the end and on SIGUSR1 only */
    struct cw_topology *topology; /* NULL: one network, as the options say */
    const char *stats_path;       /* NULL: none; switch/stats.h */
    const char *pcap_path;        /* likewise */
    const char *pcap_at;
    const char *command; /* not NULL: a command for a running switch, none is started */
    uint64_t owner;      /* its parent, which it ends with; the folder of `path` is its own then; 0: none */
    uint64_t core;       /* APP_CORE_ANY: wherever the system puts it */
    bool dedicated;      /* never sleeps */
    bool json;
    bool snoops;             /* IGMP is listened to */
    bool drops_unregistered; /* multicast without members */
    struct switch_port_config ports[SWITCH_PORTS_MAX];
};

/* Reads the command line, and the topology. False: the command has ended, with *exit_code. The texts stay argv's.
 * switch_config_dispose is due in both cases. */
bool switch_config_parse(struct switch_config *config, int argc, char **argv, int *exit_code);

/* Frees what it holds; a zeroed one is allowed. */
void switch_config_dispose(struct switch_config *config);

/* Takes "rate=1Gbps", "delay=50us", "queue=256KB" or "loss=1%"; `pair` is as before afterwards. NULL, or the accepted
 * form. */
const char *switch_link_setting_parse(struct cw_link_config *link, char *pair);
