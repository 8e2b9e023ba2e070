/* Bench mcast: a broadcast, scatter or all-gather by a group's multicasts beside the unicast algorithms, on simulated
 * hosts. mcast.c: options, lines; group.c: the group; scatterv.c: groups for one-to-few;
 * unicast.c: plans over puts; beside.c: unicast traffic of others meanwhile.
 *
 * By multicast (Karwande, Yuan and Lowenthal 2003, section 4): a scatter is one message of all blocks, of which each
 * member takes its own; an all-gather is a broadcast by each member, one after the other. One-to-few:
 * bench_mcast_scatterv. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apps/cli/report.h"
#include "collectives/schedule/plan.h"

enum { BENCH_MCAST_RUNS_MAX = 10000, BENCH_MCAST_NAME_BYTES = 48 };

/* One line's question. All begin together; a run is over when the last receiver has what it must get and all senders
 * may use their memory again. */
struct bench_mcast_case {
    enum cw_collective collective; /* CW_BCAST, CW_SCATTER, CW_ALLGATHER */
    bool at_once;                  /* an all-gather by multicast whose members do not wait for their turn */
    uint32_t members;              /* the root among them */
    uint32_t to;                   /* a scatter to so many of the members; 0: to all */
    uint64_t bytes;                /* of the message, or of each member's block */
    double loss;                   /* of frames on each host's way in */
    uint64_t runs;
    uint64_t rate_bps;
    uint64_t delay_ns;        /* one way, end to end */
    uint32_t switches;        /* members in blocks, the other switches joined to the first; 0: 1 */
    uint64_t uplink_rate_bps; /* between them; 0: as the links */
    uint64_t seed;
};

struct bench_mcast_result {
    char name[BENCH_MCAST_NAME_BYTES];
    double median_ns;
    double p999_ns;
    double
        arrived_ns; /* median until the last receiver has it, whatever its sender still waits for; 0: not told apart */
    double packets; /* sent by all hosts, per message */
    double handled; /* sent and received by all hosts, likewise */
    double handled_busiest; /* by the host that has most */
    double root_packets;    /* out of the root's port, per data packet that the message needs */
    double acks_at_root;    /* per message */
    double naks_at_root;    /* likewise */
    double repairs_to_all;  /* likewise */
    double repairs_to_one;  /* likewise */
    /* that a message needs; 0: there is no one root, and nothing of what begins with `root_packets` */
    uint64_t data_packets;
};

/* The hosts that all contenders but the plans have. */
struct sim_hosts_config;
void bench_mcast_hosts(const struct bench_mcast_case *of, struct sim_hosts_config *hosts);

/* A group; arity 0: the usual tree, `members`: everybody reports to the root. 0, or one of enum app_exit: reported. */
int bench_mcast_group(const struct bench_mcast_case *of, uint32_t arity, struct bench_mcast_result *result);

/* Which group a scatter to some of the members takes. */
enum bench_mcast_way {
    BENCH_MCAST_EXPLICIT = 0, /* of the root and those; opened before: the data only, since all know who gets what */
    BENCH_MCAST_STATIC,       /* of all: the counts, and behind them the data, which all get */
    BENCH_MCAST_DYNAMIC, /* the group of all says who; these open one, use it once and close it: over when it is gone */
};
int bench_mcast_scatterv(const struct bench_mcast_case *of, enum bench_mcast_way way,
                         struct bench_mcast_result *result);

/* What goes on beside two hosts that talk by unicast: half of `members`, host 0 its root, are a group, to which the
 * root sends one message after the other. */
enum bench_mcast_beside {
    BENCH_MCAST_BESIDE_NOTHING = 0,
    BENCH_MCAST_BESIDE_SNOOPING, /* by multicast, through a switch that brings it to the group */
    BENCH_MCAST_BESIDE_FLOODING, /* ... to all */
    BENCH_MCAST_BESIDE_UNICAST,  /* by puts to each */
};
struct bench_mcast_beside_result {
    double goodput_bps; /* of the pair's stream of puts */
    double latency_ns;  /* of 8 bytes between the two, without the stream: median of half of round trips */
    double latency_p999_ns;
    double beside_bps; /* what each of the group gets meanwhile */
};
/* Needs 8 members: the pair are the last two of the group, or the last two outside. Errors as above. */
int bench_mcast_beside(const struct bench_mcast_case *of, enum bench_mcast_beside beside, bool is_inside,
                       struct bench_mcast_beside_result *result);
/* All of these, a line each. */
int bench_mcast_beside_run(const struct bench_mcast_case *of, struct app_report *report);

/* The algorithm of the registry by its name, or NULL: the one that the model chooses. One that takes a concurrency
 * sends all at once, unless the model has chosen it. Errors as above; APP_EXIT_SUCCESS and a median of 0: it does not
 * fit. */
int bench_mcast_unicast(const struct bench_mcast_case *of, const char *algorithm, struct bench_mcast_result *result);

/* A plan, on hosts of the same kind; the collective and its length are the plan's own, and result->name the caller's.
 * Errors as above. */
int bench_mcast_plan(const struct bench_mcast_case *of, const struct cw_plan *plan, struct bench_mcast_result *result);

/* On emulated hosts, by MPI. */
struct bench_mcast_wire {
    const char *fabric;     /* what follows "HOSTS," in `causeway run --emulate` */
    const char *collective; /* and the names of its algorithms: */
    const char *multicast;
    const char *const *unicasts; /* the last one NULL */
    uint32_t members;
    const struct app_list *sizes;
    uint64_t runs;
    struct app_report *report;
};

/* Measures and prints all sizes; errors as above. */
int bench_mcast_wire(const struct bench_mcast_wire *of);

/* The rank of receiver i < to of a scatter to some: they are spread over the members, and so over the switches. */
static inline uint32_t bench_mcast_receiver(const struct bench_mcast_case *of, uint32_t i)
{
    return 1 + (uint32_t)((uint64_t)i * (of->members - 1) / of->to);
}

/* Median and 99.9th percentile of `count` times, which are sorted. */
void bench_mcast_times(double *times, uint64_t count, struct bench_mcast_result *result);
