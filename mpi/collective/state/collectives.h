/* collectives: what collective/ keeps with a communicator. Within the lock of enter.h only. */
#pragma once

#include "collectives/schedule/problem.h"
#include "mpi/state/comm.h"

struct cw_group;
struct mpi_clusters;
struct mpi_early;
struct mpi_exchange;
struct mpi_hierarchy;
struct mpi_host;
struct mpi_plan;
struct mpi_replay;

/* Messages that came before their call, in the order of coming. */
struct mpi_early_list {
    struct mpi_early *first, *last;
};

/* Calls that are over (transport/call_log.h). */
enum { MPI_CALL_LOG_LENGTH = 64 };

struct mpi_call_log {
    struct {
        uint32_t number;
        uint32_t run;
        uint32_t kind;            /* mpi_describe_kind */
        bool has_failed;          /* its caller, or the next one, knows that something was wrong: the rest is no news */
    } calls[MPI_CALL_LOG_LENGTH]; /* the last ones */
    uint32_t count;               /* of all */
    char why[200]; /* a rank was in another call than this one; "": none, or those under way have been told */
};

struct mpi_collectives {
    uint32_t next_number;
    uint32_t call_count;            /* by whatever way; for people */
    bool knows_apart, is_apart;     /* whether no two ranks are on one host (choice/choice.c) */
    struct mpi_exchange *exchanges; /* under way */
    struct mpi_exchange *throttles; /* those that later ones wait for, in order */
    struct mpi_early_list early;
    struct mpi_call_log log; /* calls that are over */
    struct mpi_plan *plans;  /* the last used first */
    uint32_t plan_count;
    struct mpi_replay *replay;        /* NULL: no plan was made for it */
    struct cw_group *multicast_group; /* NULL: not yet, or never (multicast.h) */
    struct mpi_clusters *clusters;    /* NULL: one, or not asked for yet */
    bool knows_clusters;              /* it has been asked for */
    struct mpi_host *host;            /* NULL: not yet, or never */
    uint32_t calls_before_host;       /* blocking ones */
    bool has_no_host;                 /* there never will be one */
    struct mpi_hierarchy *hierarchy;  /* NULL: not yet, or never */
    /* a call under way goes by inner communicators: ends it, since another rank's differs; NULL: none does */
    void (*inner_mismatch)(struct mpi_comm *comm);
    uint32_t calls_before_hierarchy; /* blocking ones */
    bool has_no_hierarchy;           /* there never will be any */
    uint32_t outer; /* of an inner communicator: 1 + mpi_describe_kind of the call that it serves; else 0 */
    uint8_t hierarchy_verdicts[CW_COLLECTIVE_COUNT][65]; /* as host_verdicts */
    uint8_t host_verdicts[2][CW_COLLECTIVE_COUNT]
                         [65]; /* 1 + enum mpi_choice_verdict, by class of sizes; 0: not asked yet */
};

/* Made with the first use; NULL: no memory. */
struct mpi_collectives *mpi_collectives_of(struct mpi_comm *comm);
