/* What the files of plan_puts share: plan/puts.c (a rank's turn, the run as a whole), plan/puts_world.c (network,
 * endpoints, transports, executions). Private to them. */
#pragma once

#include "apps/plan/buffers.h"
#include "apps/plan/puts.h"
#include "apps/testbed/hosts.h"
#include "collectives/execute/execute.h"
#include "collectives/execute/transport_puts.h"

enum {
    PLAN_PUTS_LANE = 16,
    PLAN_PUTS_EVENTS = 64, /* taken at once */
    PLAN_PUTS_TRUTHS = 3,  /* different contents, used by the runs in turn */
};

enum plan_puts_state {
    PLAN_PUTS_AWAY, /* has not entered, or waits for all others to be through */
    PLAN_PUTS_RUNNING,
    PLAN_PUTS_DONE,
    PLAN_PUTS_FAILED,
    PLAN_PUTS_CRASHED,
};

struct plan_puts_rank {
    struct plan_puts *world;
    uint32_t rank; /* and its node */
    enum plan_puts_state state;
    uint32_t run;
    uint64_t begin_ns; /* it enters */
    uint64_t probe_ns; /* when it looks after those it waits for */
    uint64_t again_ns; /* when it is polled though nothing has happened: something was refused */
    uint64_t again_delay_ns;
    uint64_t refusals;                    /* as far as seen */
    uint64_t handled_first;               /* together: packets of the first run */
    struct plan_puts_counts counts_first; /* likewise */
    struct cw_endpoint *endpoint;         /* the host's */
    struct cw_puts_transport *transport;
    struct cw_execution *execution;
    struct cw_puts_peer *peers;
    uint32_t peer_count; /* ranks that its schedule names */
    uint64_t tokens[4];  /* of its buffers' regions */
};

struct plan_puts {
    const struct cw_plan *plan;
    const struct plan_puts_options *options;
    struct plan_puts_report *report;
    struct sim_hosts hosts;
    struct plan_puts_rank *ranks;
    struct plan_buffers buffers;
    struct plan_truth truths[PLAN_PUTS_TRUTHS];
    uint32_t truth_count;
    struct cw_random random;
    uint32_t through; /* together: ranks that are, with this run */
    uint64_t run_begin_ns;
    uint64_t wan_frames_first; /* together: of the first run */
    uint64_t wan_bytes_first;
    bool failed;
    char *error;
    size_t error_bytes;
};

/* Notes the first failure; returns -1. */
__attribute__((format(printf, 2, 3))) int plan_puts_fail(struct plan_puts *world, const char *format, ...);

/* ---- plan/puts_report.c ---- */

/* Together: the first run is over, and what counts begins. */
void plan_puts_count_first(struct plan_puts *world);

/* Fills in what the report says of packets, memory and links. */
void plan_puts_summarise(const struct plan_puts *world);

/* ---- plan/puts_world.c ---- */

/* 0, or -1: reported. To be disposed of in either case. */
int plan_puts_world_create(struct plan_puts *world, sim_turn turn);
void plan_puts_world_dispose(struct plan_puts *world);

/* A process ends. */
void plan_puts_crash(struct plan_puts_rank *rank);
