/* collectives: the data of collective/ for each communicator. Within the lock of enter.h only. */
#pragma once

#include "collectives/schedule/problem.h"
#include "mpi/state/comm.h"
#include "mpi/transport/multicast.h"

struct mpi_clusters;
struct mpi_early;
struct mpi_exchange;
struct mpi_host;
struct mpi_levels;
struct mpi_plan;
struct mpi_replay;

/* Messages that came before their call, in the order of coming. */
struct mpi_early_list {
    struct mpi_early *first, *last;
};

/* Calls that have ended (exchange/call_log.h). */
enum { MPI_CALL_LOG_LENGTH = 64 };

struct mpi_call_log {
    struct {
        uint32_t number;
        uint32_t run;
        uint32_t kind;            /* mpi_describe_kind */
        bool has_failed;          /* its caller, or the next one, knows that something was wrong: the rest is no news */
    } calls[MPI_CALL_LOG_LENGTH]; /* the last ones */
    uint32_t count;               /* of all */
    char why[200]; /* a rank was in another call than this one; "": none, or those in progress have been notified */
};

struct mpi_collectives {
    uint32_t next_number;
    uint32_t call_count;            /* by whatever way; for users */
    bool knows_apart, is_apart;     /* whether no two ranks are on one host (choice/choice.c) */
    struct mpi_exchange *exchanges; /* in progress */
    struct mpi_exchange *throttles; /* exchanges that later ones wait for, in order */
    struct mpi_early_list early;
    struct mpi_call_log log; /* calls that have ended */
    struct mpi_plan *plans;  /* the last used first */
    uint32_t plan_count;
    struct mpi_replay *replay; /* NULL: no plan was made for it */
    struct mpi_multicast_group multicast_group;
    struct mpi_clusters *clusters;          /* NULL: one, or not asked for yet */
    bool knows_clusters;                    /* it has been asked for */
    struct mpi_multicast_group heads_group; /* of the first ranks of its hosts */
    struct mpi_host *host;                  /* the ranks of this host; NULL: not yet, or never */
    struct mpi_levels *levels;              /* all ranks' hosts, once all have segments; NULL: not yet, or never */
    bool has_no_levels;                     /* there never will be any */
    bool are_levels_over;                   /* a call with levels has failed: later ones go without */
    uint32_t calls_before_levels;
    uint32_t blocking_number; /* of the last blocking call that was one host op */
    /* by class of sizes, 0: not asked yet: whether a call is one host op (host.c); 1 + enum mpi_choice_verdict (make.c)
     */
    uint8_t host_verdicts[2][CW_COLLECTIVE_COUNT][65];
    uint8_t levels_verdicts[2][CW_COLLECTIVE_COUNT][65];
};

/* Made with the first use; NULL: no memory. */
struct mpi_collectives *mpi_collectives_of(struct mpi_comm *comm);
