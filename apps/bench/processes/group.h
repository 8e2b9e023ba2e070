/* Bench group: the two processes of one benchmark, each with a port, an endpoint and a loop of its own, connected.
 *
 * Invariants
 *  - Apart from the network, processes communicate through one shared mapping only: steps that count the processes at
 *    each point, and a result each.
 *  - Where members run is the system's choice, as for any process that has no core to itself, unless they are pinned.
 *  - Nothing waits forever: the group has a time limit, and members and switch end with the process that started them.
 *  - Every failure is one line on stderr: a member reports its own, the first process reports who died or came too
 *    late.
 *
 * Order of calls
 *    first process: bench_fabric_create, bench_group_start, bench_group_finish, { bench_group_result }*,
 *                   bench_group_free, bench_fabric_destroy
 *    each member:   opens everything, connects to the other member, then config.run: bench_member_leave */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apps/bench/processes/fabric.h"
#include "dataplane/dataplane.h"
#include "dataplane/loop/loop.h"

enum { BENCH_MEMBERS = 2 };

enum bench_step {
    BENCH_STEP_PORT,      /* the port is open */
    BENCH_STEP_LINK,      /* ... and connected */
    BENCH_STEP_REFERENCE, /* the work of config.reference is done */
    BENCH_STEP_KNOWN,     /* the other member is a peer */
    BENCH_STEP_CONNECTED, /* ... and connected */
    BENCH_STEP_LEAVE,     /* the result is complete */
    BENCH_STEP_COUNT,
};

struct bench_member;

struct bench_group_config {
    bool doorbell;
    const char *rdma;                  /* a device, with queue pairs for all supported operations; NULL: none */
    const uint64_t *cores;             /* that members run on, one each; NULL: anywhere */
    bool spin;                         /* these cores are used by no other process, so that no process sleeps */
    uint64_t region_bytes;             /* the other may put into it; `reference` may have mapped it, member->region */
    uint64_t result_bytes;             /* of each member, in shared memory, zeroed */
    uint64_t limit_ns;                 /* of everything together */
    const void *settings;              /* the benchmark's own, for members */
    const volatile sig_atomic_t *stop; /* not 0: the members are ended, which is a failure; NULL: never */
    /* Before there are endpoints: the port alone; NULL: nothing. Both return one of enum app_exit and have reported
     * errors. */
    int (*reference)(struct bench_member *member);
    /* With an endpoint and the other member as its peer. */
    int (*run)(struct bench_member *member);
};

struct bench_group_shared;

struct bench_group {
    struct bench_group_config config;
    struct bench_fabric *fabric;
    struct bench_group_shared *shared;
    uint64_t shared_bytes;
    uint64_t limit_ns; /* the end of the time */
    uint32_t running;
    pid_t processes[BENCH_MEMBERS]; /* 0: has ended */
};

/* One process, as it sees itself. Members are named by their index, 0 and 1. */
struct bench_member {
    uint32_t index;
    const struct bench_group *group;
    const void *settings;
    void *result;
    uint32_t marks; /* phases that have ended */
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    struct cw_loop *loop;
    uint8_t *region;
    uint32_t rights; /* to the region; CW_REGION_WRITE */
    uint64_t token;
    uint32_t peer;       /* the endpoint's number for the other member */
    uint64_t peer_token; /* of its region */
    uint8_t peer_mac[6];
};

/* Starts the members. One of enum app_exit; an error has been reported, and no member is left then. */
int bench_group_start(struct bench_group *group, struct bench_fabric *fabric, const struct bench_group_config *config);

/* Waits until all members have ended, which they do after the last step. One of enum app_exit; an error has been
 * reported, and all have been ended then. */
int bench_group_finish(struct bench_group *group);

/* The result of a member; complete after bench_group_finish. Valid until bench_group_free. */
const void *bench_group_result(const struct bench_group *group, uint32_t member);

/* Frees the results, and ends members that an error has left running. */
void bench_group_free(struct bench_group *group);

/* ---- for members ---- */

/* Marks the result as complete, and waits for the other member: none closes while the other still measures. */
void bench_member_leave(struct bench_member *member);

/* Reports "process I: ERROR" and returns the exit code for it. */
int bench_member_fail(const struct bench_member *member, int status, const char *what);
