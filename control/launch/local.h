/* local: the ranks of one host: processes, their PMI-1 server, their standard files. Frames (frame.h) carry its orders,
 * and its reports.
 *
 * Invariants
 *   - When launch_local_end returns, no process that the ranks have started is left: ranks have a process group each,
 *     and this process adopts whoever loses its parent (PR_SET_CHILD_SUBREAPER). Ranks die with it (PR_SET_PDEATHSIG).
 *   - Ranks are not reaped before that: their numbers stay their own.
 *   - What the ranks write is passed on in order; it is not read while the local ranks are held.
 *
 * Order of calls: launch_local_open; launch_local_start; { launch_local_order | launch_local_event | launch_local_turn
 * }*; launch_local_end; launch_local_close. Thread: one at a time, the process's only one. */
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "control/bootstrap/pmi1_server.h"
#include "control/launch/binding.h"
#include "control/launch/events.h"
#include "control/launch/work.h"
#include "control/watch/watch.h"

struct launch_local_config {
    const struct launch_work *work;
    uint32_t host; /* of these ranks */
    struct launch_receiver up;
    int set;                        /* the epoll set that the local ranks' descriptors join */
    int interrupt;                  /* input there ends the start */
    uint64_t deadline_ns;           /* so does this time; UINT64_MAX: none */
    const sigset_t *mask;           /* the ranks' signal mask */
    bool pipe_ignored;              /* so is SIGPIPE, for them */
    bool shares_input;              /* our stdin may be handed to the rank that gets it */
    bool (*still)(void *context);   /* called each second while a program takes its time to start; false: the start is
                                       called off */
    bool (*relieve)(void *context); /* in launch_local_end: passes reports on; false: it cannot */
    void *context;
};

struct launch_member {
    uint32_t rank;
    pid_t process;    /* 0: not started */
    int handle;       /* pidfd; -1 once it has ended. It is not reaped before the end: its number stays its own */
    int pmi;          /* -1: closed */
    int outputs[2];   /* read ends for stdout and stderr; -1: closed */
    int input;        /* write end of its stdin; -1: none */
    bool pmi_blocked; /* lines wait to be sent */
    int32_t told;     /* of LAUNCH_CLIENT */
    bool answered;    /* the last LAUNCH_QUERY */
    bool input_ends;  /* behind `pending` */
    struct launch_bytes pending; /* of its stdin */
    const struct cw_launch_program *program;
};

struct launch_local {
    struct launch_local_config config;
    struct rlimit files_before;
    uint32_t count;
    uint32_t alive;
    struct launch_member *members; /* ranks rise */
    struct launch_binding binding;
    struct cw_pmi1_server *server;
    struct cw_watch *watch; /* NULL: ranks cannot be asked */
    bool abort_told;
    int outputs; /* epoll set of the ranks' pipes, in turn member of the other one but while held */
    bool held;
    uint64_t queried_ns; /* 0: no answer is outstanding */
    bool failed;
};

/* Known state of a rank that does not answer. */
struct launch_silence {
    int32_t is_open; /* it takes part in the watch: between MPI_Init and MPI_Finalize */
    int32_t letter;  /* of /proc: state of its process; 0: it has ended */
};

/* CW_OK; CW_ERROR_SYSTEM; CW_ERROR_MEMORY: out of memory or descriptors. launch_local_close is due in each case. */
int launch_local_open(struct launch_local *local, const struct launch_local_config *config);
/* Starts the ranks; reports LAUNCH_STARTED of each, or LAUNCH_FAIL. True: all run. False: failed, or interrupted. */
bool launch_local_start(struct launch_local *local);
void launch_local_order(struct launch_local *local, const struct launch_frame *order);
/* A descriptor of the local ranks' is ready. */
void launch_local_event(struct launch_local *local, enum launch_source source, uint32_t index);
/* Handles timeouts; returns when it is due again, at the latest. */
uint64_t launch_local_turn(struct launch_local *local, uint64_t now_ns);
/* Kills whoever is left, and reports the rest of their output. */
void launch_local_end(struct launch_local *local);
void launch_local_close(struct launch_local *local);

uint32_t launch_local_index(const struct launch_local *local, const struct launch_member *member);
void launch_local_report(struct launch_local *local, enum launch_frame_type type, uint32_t rank, int32_t value,
                         const void *bytes, size_t count);
/* Reports LAUNCH_FAIL, the first time. */
__attribute__((format(printf, 3, 4))) void launch_local_fail(struct launch_local *local, int code, const char *format,
                                                             ...);

/* ---- local_spawn.c ---- */

/* False: failed, or interrupted. */
bool launch_local_spawn(struct launch_local *local, struct launch_member *member);

/* ---- local_pmi.c ---- */

/* CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_MEMORY. */
int launch_local_pmi_start(struct launch_local *local);
/* The member's socket is ready. */
void launch_local_pmi_receive(struct launch_local *local, struct launch_member *member);
/* LAUNCH_FENCE. */
void launch_local_fence_release(struct launch_local *local, const struct launch_frame *order);

/* ---- local_files.c: the ranks' standard files ---- */

/* The descriptor that a rank gets as its stdin: ours, a pipe's end, which the caller closes when it has started (*own),
 * or /dev/null. -1: failed, see errno. */
int launch_local_input_for(struct launch_local *local, struct launch_member *member, bool *own);
/* LAUNCH_INPUT. */
void launch_local_input(struct launch_local *local, struct launch_member *member, const struct launch_frame *order);
/* It may take more. */
void launch_local_input_turn(struct launch_local *local, struct launch_member *member);
void launch_local_output_add(struct launch_local *local, uint32_t index);
void launch_local_output_read(struct launch_local *local);
void launch_local_output_hold(struct launch_local *local, bool held);
/* All that is left of it. */
void launch_local_output_end(struct launch_local *local);

/* ---- sweep.c ---- */

/* Kills whatever is a child of this process, or becomes one by that, but `spared`; 0: all. */
void launch_sweep(pid_t spared);
