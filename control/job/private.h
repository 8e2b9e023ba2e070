/* Shared by the files of job: job/job.c opens and closes it, job/identity.c determines which ranks share memory and
 * cores, job/fence.c waits for all ranks. */
#pragma once

#include "control/job/dedicate.h"
#include "control/job/job.h"
#include "control/job/key.h"
#include "control/job/wire.h"
#include "control/net/device.h"
#include "control/net/neighbour.h"
#include "control/statistics/statistics_page.h"
#include "dataplane/base/process.h"
#include "dataplane/port/error_text.h"

enum { CW_JOB_INTERFACE_BYTES = 32 };

/* Where an error goes. */
struct job_report {
    char *text;
    size_t bytes;
};

#define FAIL(report, status, ...) cw_error_text((report)->text, (report)->bytes, (status), __VA_ARGS__)

struct cw_job {
    struct cw_bootstrap *bootstrap;
    struct cw_bootstrap_info info;
    struct cw_paths *paths;
    struct cw_wire wire; /* zero: none */
    struct cw_job_handler handler;
    struct cw_path_watcher watcher;
    struct cw_groups *groups;
    struct cw_control *control;      /* NULL: not yet */
    struct cw_statistics_page *page; /* for `causeway top` */
    struct cw_statistics_page_figures page_figures;
    uint64_t page_moved; /* cw_job_moved, when they were made */
    bool page_is_fresh;  /* something had moved since those before */
    uint8_t note[CW_JOB_NOTE_BYTES];
    bool notes_differ;
    char (*hosts)[CW_JOB_HOST_BYTES]; /* names, per rank */
    bool has_told_traced;             /* that a rank is waited for, since a debugger holds it */
    uint64_t *machines;               /* which ranks' processors are the same, per rank */
    struct cw_process_cores *cores;   /* of each rank */
    uint32_t crowding;                /* cw_job_crowding */
    uint32_t nodes;                   /* cw_job_nodes */
    struct cw_dedicated dedicated;    /* cores of the dataplane threads; `why` also if fewer are used */
    uint8_t key[CW_JOB_KEY_BYTES];
    bool has_key;
    bool may_have_rdma;                         /* this rank */
    bool all_have_rdma;                         /* on several hosts */
    enum cw_net_transport transport;            /* to other hosts; NONE: there are none, or emulated ones */
    bool has_devices;                           /* of struct cw_wire_request: the same at all ranks */
    struct cw_device device;                    /* of the transport DEVICE */
    uint32_t hop_count;                         /* with another transport than sockets: */
    struct cw_hop *hops;                        /* to each address of another rank */
    char transport_text[4 * CW_NET_TEXT_BYTES]; /* to other hosts, for users; "": none, or between emulated ones */
    uint32_t path_mtu_bytes;            /* the least to the hosts that this rank has asked; 0: it has asked none */
    char narrow[2 * CW_NET_TEXT_BYTES]; /* of a path whose MTU is less than its ends take; "": none is known */
};

/* ---- identity.c ---- */

/* *host: the same for processes that see the same kernel, process numbers and user: each reaches the others' memory
 * through /proc. CAUSEWAY_HOST distinguishes further. *own_machine: the same for processes that share processors.
 * *emulated: the host of an emulator, as cw_wire_host has it. CW_OK, or errors of the system, with a line in the
 * report. */
int job_host_identify(const struct cw_bootstrap_info *info, uint8_t host[16], uint64_t *own_machine, int *emulated,
                      const struct job_report *report);

/* Finds out, with all cards there, how many ranks share a core where most do. CW_OK, CW_ERROR_MEMORY. */
int job_crowding_find(struct cw_job *job, const struct job_report *report);

/* Finds the core of the dataplane thread, and keeps the program off it; before there are other threads. `are_all_here`:
 * all ranks are on this machine, which the cards will say; else they are there. CW_OK; CW_ERROR_ARGUMENT. */
int job_dedicate(struct cw_job *job, bool are_all_here, const struct job_report *report);

/* ---- card.c ---- */

/* A rank's own description. */
struct job_card {
    struct cw_path_card path;
    struct cw_net_offer offer;
    bool may_seal;
    bool may_have_rdma;
    bool has_rdma;
};

/* Publishes this rank's card; behind a fence all cards are there. CW_OK, or errors of cw_bootstrap_put. */
int job_card_put(struct cw_job *job, const struct cw_net_offer *offer, const struct job_report *report);
/* Of all ranks, into cards, job->hosts, job->machines and job->cores. CW_OK; CW_ERROR_UNSUPPORTED: one has another
 * version; CW_ERROR_ARGUMENT: another key, or no sense; CW_ERROR_MEMORY; what cw_bootstrap_get_each says. */
int job_cards_get(struct cw_job *job, struct job_card *cards, const struct job_report *report);
/* The same of where endpoints are; into the paths' cards. */
int job_place_put(struct cw_job *job, const struct cw_paths_config *config, const struct job_report *report);
int job_places_get(struct cw_job *job, struct job_card *cards, const struct job_report *report);

/* Publishes the least path MTU, if this rank is the first of its host and knows one; the least of all published values
 * behind a fence is that of packets to all (cw_mcast_mtu). CW_OK, or as the ones above. */
int job_mtu_put(struct cw_job *job, const struct job_card *cards, const struct job_report *report);
int job_mtu_agree(struct cw_job *job, const struct job_card *cards, const struct job_report *report);

/* ---- statistics.c ---- */

/* Errors as cw_statistics_page_open. */
int job_statistics_open(struct cw_job *job, const struct job_report *report);

/* ---- fence.c ---- */

/* As cw_job_fence, before events are accepted: other ranks may be further, and their messages must wait. */
int job_fence_early(struct cw_job *job);

/* ---- transport.c ---- */

/* Chooses the address and the transport of this rank to other hosts, by the rule that all ranks apply, and completes
 * the request of the wire. `interface` is kept until the wire is open. CW_OK, or errors of cw_net_transport_choose,
 * CW_ERROR_NOT_FOUND, CW_ERROR_MEMORY, with a line in `error`. */
int job_transport_choose(struct cw_job *job, const struct job_card *cards, struct cw_net_address *own,
                         char interface[CW_JOB_INTERFACE_BYTES], struct cw_wire_request *request, char *error,
                         size_t error_bytes);
/* Sets job->transport_text, once the wire is open. */
void job_transport_describe(struct cw_job *job, const struct cw_wire_request *request);
/* With another transport than sockets: finds the next hop to each rank, and writes its MAC address into the cards.
 * job_reach reports hops that are not found. CW_OK, or errors of the node or the device, with a line in `error`. */
int job_hops_find(struct cw_job *job, const struct cw_wire_request *request, struct job_card *cards, char *error,
                  size_t error_bytes);
/* The hop to a rank that has none; NULL: it has one. */
const struct cw_hop *job_hop_missing(const struct cw_job *job, const struct cw_path_card *card);

/* ---- nic.c ---- */

/* Whether CAUSEWAY_TRANSPORT names a device for this rank. */
bool job_nic_is_named(void);
/* Offers the device's address, if it is known before the device is open. CW_OK; CW_ERROR_ARGUMENT, CW_ERROR_SYSTEM. */
int job_nic_offer(struct cw_job *job, struct cw_net_offer *offer, const struct job_report *report);
/* As job_transport_choose, for a rank whose offer is a device. */
int job_nic_choose(struct cw_job *job, const struct job_card *cards, struct cw_net_address *own,
                   struct cw_wire_request *request, char *error, size_t error_bytes);
/* As job_hops_find, for such a rank. */
int job_nic_hops(struct cw_job *job, struct job_card *cards, char *error, size_t error_bytes);

/* ---- node.c ---- */

/* Whether CAUSEWAY_TRANSPORT names the host's dataplane, and its socket; "": the usual one. */
bool job_node_is_named(const char **socket);
/* Offers its address. CW_OK, or errors as cw_lease_hello. */
int job_node_offer(struct cw_net_offer *offer, const struct job_report *report);
/* How many there are on this machine. */
uint32_t job_nodes_count(const struct cw_job *job, const struct job_card *cards);
/* Finds the MAC addresses of job->hops. CW_OK, CW_ERROR_MEMORY, or errors as cw_lease_hops. */
int job_node_hops(struct cw_job *job, char *error, size_t error_bytes);

/* ---- reach.c ---- */

/* Whether no rank before shares its host. */
bool job_is_first(const struct job_card *cards, uint32_t rank);

/* Finds out whether the hosts reach each other, within `bound_ns` or some seconds; 0: does not. All ranks have opened
 * their ports, and job->paths has all cards. CW_OK; CW_ERROR_TIMEOUT, with a line in `error` that names who is not
 * reached and why; CW_ERROR_MEMORY. */
int job_reach(struct cw_job *job, const struct job_card *cards, uint64_t bound_ns, char *error, size_t error_bytes);
