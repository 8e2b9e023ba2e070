/* Simulate: the network and the virtual clock of `causeway run --simulate`.
 *
 * The simulator is a process of the launcher's. It has a listening socket before any rank starts. Each rank joins with
 * the memory of its port (base/virtual.h, port/shm_port.h). When all have joined, virtual time begins at 0. Each rank
 * is a node of the simulator of dataplane/fabric/, and a turn of that node is the time for which the rank's process
 * runs. So the simulator alone decides who runs next, and the order of events does not depend on the machine.
 *
 *    config.c    the text behind --simulate, which config_complete.c completes and checks
 *    network.c   hosts, switches and links
 *    statistics.c  links over time
 *    devices.c   RDMA devices of the hosts
 *    ranks.c     processes: they join, run, leave, and end
 *    world.c     virtual time, from the first event to the last; the report
 *
 * Invariants
 *  - One rank runs at a time, except ranks that are outside (CW_VIRTUAL_OUTSIDE): virtual time stands still for these.
 *  - With cpu=0 the same program, options and seed give the same packets at the same times: the digest shows it.
 *
 * Thread: one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/topology/topology.h"
#include "dataplane/base/virtual.h"
#include "dataplane/fabric/port_sim.h"
#include "dataplane/fabric/verbs_sim.h"
#include "dataplane/port/shm_port.h"

enum {
    SIMULATE_PATH_BYTES = 4096,
    SIMULATE_ERROR_BYTES = 512,
    SIMULATE_FAULTS_MAX = 64,
};

enum simulate_fault_kind {
    SIMULATE_LINK_DOWN,
    SIMULATE_STOP,
    SIMULATE_KILL,
    SIMULATE_FORGET,
    SIMULATE_RDMA_CUT,
    SIMULATE_RDMA_FAIL,
};

/* A host whose link is down, that is stopped, or whose RDMA device has no connection, from `begin_ns` to `end_ns`; a
 * link of the topology that is down in that time; a host whose processes are killed, or whose RDMA device fails
 * permanently, at `begin_ns`; or all switches, which forget groups at `begin_ns`. */
struct simulate_fault {
    enum simulate_fault_kind kind;
    uint32_t host;
    char link[CW_TOPOLOGY_NAME_BYTES]; /* of the topology, in place of a host; "": none */
    uint64_t begin_ns;
    uint64_t end_ns;
};

/* A host whose computation takes `factor` times as long. */
struct simulate_slow {
    uint32_t host;
    double factor;
};

/* How an offload of a host's NIC works, or each one. */
struct simulate_offload {
    uint32_t host;    /* UINT32_MAX: all */
    uint32_t offload; /* enum cw_port_offload; CW_PORT_OFFLOADS: each one */
    uint32_t state;   /* enum cw_simulator_offload; SIMULATE_OFFLOAD_RANDOM: drawn from the seed */
};
enum { SIMULATE_OFFLOAD_RANDOM = UINT32_MAX, SIMULATE_OFFLOADS_MAX = 64 };

struct simulate_config {
    uint32_t ranks;
    uint32_t hosts;
    char topology[SIMULATE_PATH_BYTES]; /* a file of clusters; "": one switch */
    uint32_t mtu_bytes;
    struct cw_link_config link; /* of each host, either direction; its delay is that from host to host */
    uint64_t buffer_bytes;      /* of the switch, for each port */
    uint64_t shared_bytes;      /* of each switch, for all ports together; 0: no limit but those of the ports */
    enum cw_simulator_multicast multicast;
    uint64_t seed;
    double cpu;                 /* virtual time per CPU time; 0: computation takes none */
    uint64_t call_ns;           /* of each MPI call */
    uint64_t poll_ns;           /* of a call that looks without waiting */
    uint64_t memory_latency_ns; /* between ranks of a host */
    uint64_t memory_rate_bps;   /* of copies between them */
    uint64_t patience_ns;       /* a job in which nothing has moved for so long is stuck; 0: never */
    struct simulate_fault faults[SIMULATE_FAULTS_MAX];
    uint32_t fault_count;
    struct simulate_slow slow[SIMULATE_FAULTS_MAX];
    uint32_t slow_count;
    struct simulate_offload offloads[SIMULATE_OFFLOADS_MAX]; /* later ones count more */
    uint32_t offload_count;
    bool has_rdma;                        /* each host has an RDMA device */
    double rdma_break;                    /* share of its work requests with which a queue pair breaks */
    char network_word[64];                /* an option that a topology file replaces; "": none was given */
    char capture[SIMULATE_PATH_BYTES];    /* a file for all packets; "": none */
    char statistics[SIMULATE_PATH_BYTES]; /* a file for the links over time; "": none */
    uint64_t statistics_interval_ns;
    bool is_random; /* faults are drawn from the seed, by simulate_config_complete */
};

/* ---- config.c, config_complete.c ---- */

/* Parses "hosts=16,rate=100Gbps,...". False: `error` has the wrong option and a list of all options. */
bool simulate_config_parse(const char *text, uint32_t ranks, struct simulate_config *config, char *error,
                           size_t error_bytes);
/* Completes the hosts from the topology, draws faults, and checks all of it, before a rank starts. CW_OK, or errors of
 * cw_topology_load and CW_ERROR_ARGUMENT with a line in `error`. */
int simulate_config_complete(struct simulate_config *config, char *error, size_t error_bytes);

/* The NIC of a host, as its options and the seed have it. */
void simulate_config_nic(const struct simulate_config *config, uint32_t host, struct cw_simulator_nic *nic);
/* The offloads that it has, a bit each. */
uint32_t simulate_config_offloads(const struct simulate_config *config, uint32_t host);

/* ---- network.c ---- */

/* One direction of a link. */
struct simulate_link {
    char name[CW_TOPOLOGY_NAME_BYTES];          /* of a host, or of a link between sites */
    char direction[2 * CW_TOPOLOGY_NAME_BYTES]; /* "up", "down", "delft>leiden" */
    struct cw_link *link;
    uint32_t down_count; /* faults that have it down */
};

struct simulate_network {
    struct cw_simulator *simulator;
    uint32_t switch_count; /* the first bridges; the others are inside hosts */
    struct simulate_link *links;
    uint32_t link_count;
};

/* Builds the network; node n is rank n. CW_OK, CW_ERROR_ARGUMENT (a topology that is not a tree), CW_ERROR_LIMIT,
 * CW_ERROR_MEMORY, with a line in `error`. */
int simulate_network_create(const struct simulate_config *config, struct simulate_network *network, char *error,
                            size_t error_bytes);
void simulate_network_destroy(struct simulate_network *network);

/* ---- ranks.c ---- */

struct simulate_world;
struct simulate_device;

enum simulate_rank_state {
    SIMULATE_RANK_RUNS,    /* its process waits, and has a place in virtual time */
    SIMULATE_RANK_OUTSIDE, /* it waits for the launcher */
    SIMULATE_RANK_ENDED,   /* it has left, or its process has ended */
};

struct simulate_rank {
    struct simulate_world *world;
    uint32_t rank;
    enum simulate_rank_state state;
    int socket; /* readable when the process has ended */
    int process;
    struct cw_virtual_page *page;
    struct cw_shm_port *shm_port;
    struct cw_port *port;           /* of its node */
    struct simulate_device *device; /* NULL: it has none */
    uint32_t groups_version;
    uint32_t group_count;
    uint8_t groups[CW_SHM_PORT_GROUPS_MAX][6];
    bool lacks_packets;                         /* frames wait for packets of the network */
    bool has_run;                               /* its wake-ups and its wishes have not been handled yet */
    bool is_awaited;                            /* it gathers, and is counted in the world's gather_count */
    uint32_t stop_count, down_count, cut_count; /* faults of each kind that last */
    bool is_released;                           /* all have gathered, and it is not outside yet */
    uint32_t doubts;                            /* offloads that its endpoint has put away */
    bool has_arrivals;                          /* frames in its memory that came since it was resumed */
    bool is_woken;
    uint64_t moved;
};

struct simulate_world {
    const struct simulate_config *config;
    struct simulate_network network;
    struct cw_simulator *simulator;         /* the network's */
    struct simulate_statistics *statistics; /* NULL: none are wanted */
    struct cw_verbs_net *verbs;             /* NULL: there are no RDMA devices */
    struct simulate_rank *ranks;
    uint8_t *pages;
    int pages_memory; /* a memfd */
    uint32_t outside_count;
    uint32_t ended_count;
    uint32_t gather_count;
    uint32_t released_count;
    uint64_t resume_count;
    uint64_t lack_count;     /* how often frames found no packet of the network */
    uint64_t overflow_count; /* frames for which a process had no room */
    uint64_t moved_ns;       /* when a rank moved last */
    bool is_stuck;
    uint32_t idle_count; /* looks at the ranks since then */
    int code;            /* enum app_exit */
    uint64_t virtual_end_ns;
    uint64_t told_ns; /* real time of the last line of progress */
    int signals;      /* a signalfd of the signals that end the simulator */
};

/* Accepts all ranks at the listening socket. CW_OK; CW_ERROR_CLOSED: a signal came first; others with a line in
 * `error`. */
int simulate_ranks_accept(struct simulate_world *world, int listener, char *error, size_t error_bytes);
/* Attaches the ranks to their nodes: virtual time may begin. */
void simulate_ranks_start(struct simulate_world *world);
/* Ends the wait of a rank now. */
void simulate_rank_wake(struct simulate_rank *rank);
/* Kills the process of a rank; the launcher ends the job. */
void simulate_rank_kill(struct simulate_rank *rank);
/* Waits until all ranks that are outside have returned, and wakes them in the order of their numbers. False: a signal
 * came. */
bool simulate_ranks_return(struct simulate_world *world);
/* Finds ranks whose processes have ended. */
void simulate_ranks_watch(struct simulate_world *world);
void simulate_ranks_close(struct simulate_world *world);

/* ---- devices.c ---- */

/* Bytes of memory that a rank and the simulator share for a device. */
size_t simulate_device_bytes(void);
/* Makes the devices of all ranks; `memory` is behind world->pages, in the same memfd. CW_OK; CW_ERROR_MEMORY with a
 * line in `error`: the process must end. */
int simulate_devices_create(struct simulate_world *world, uint8_t *memory, char *error, size_t error_bytes);
/* Carries out what the rank has asked of its device. A rank without a device is allowed, here and below. */
void simulate_device_serve(struct simulate_rank *rank);
/* Shows the rank what has completed. Whether something has since simulate_device_seen. */
bool simulate_device_complete(struct simulate_rank *rank);
/* The rank's wait ends: it will look at its completions. */
void simulate_device_seen(struct simulate_rank *rank);
/* The rank's device fails permanently. */
void simulate_device_fail(struct simulate_rank *rank);
/* The rank has ended. */
void simulate_device_end(struct simulate_rank *rank);
void simulate_devices_destroy(struct simulate_world *world);

/* ---- world.c ---- */

/* Whether a signal has come that ends the simulator. */
bool simulate_is_over(const struct simulate_world *world);

/* ---- statistics.c ---- */

/* Writes all links to a file at equal intervals of virtual time (apps/links/rows.h). CW_OK; CW_ERROR_SYSTEM,
 * CW_ERROR_MEMORY with a line in `error`; simulate_statistics_close is due in any case. */
struct simulate_statistics;
int simulate_statistics_open(const struct simulate_config *config, const struct simulate_network *network,
                             struct simulate_statistics **statistics, char *error, size_t error_bytes);
/* Takes all samples up to `time_ns`, before the events of that time happen. */
void simulate_statistics_until(struct simulate_statistics *statistics, uint64_t time_ns);
/* Takes the last sample. False: some rows could not be written; errno. NULL is allowed. */
bool simulate_statistics_close(struct simulate_statistics *statistics, uint64_t end_ns);

/* Runs the simulation until the launcher ends it by SIGTERM; the exit code. `listener` is a listening socket
 * (SOCK_SEQPACKET). */
int simulate_serve(const struct simulate_config *config, int listener);
