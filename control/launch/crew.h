/* crew: the ranks of one host: processes, their PMI-1 server, their standard files. Frames (frame.h) tell it what to do,
 * and it tells by frames what happens.
 *
 * Invariants
 *   - When launch_crew_end returns, no process that the ranks have started is left: ranks have a process group each,
 *     and this process adopts whoever loses its parent (PR_SET_CHILD_SUBREAPER). Ranks die with it (PR_SET_PDEATHSIG).
 *   - Ranks are not reaped before that: their numbers stay their own.
 *   - What the ranks write is passed on in order; it is not read while the crew is held.
 *
 * Order of calls: launch_crew_open; launch_crew_start; { launch_crew_order | launch_crew_event | launch_crew_turn }*;
 * launch_crew_end; launch_crew_close. Thread: one at a time, the process's only one. */
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

struct launch_crew_config {
    const struct launch_work *work;
    uint32_t host; /* whose ranks they are */
    struct launch_taker up;
    int set;                        /* the epoll set that the crew's descriptors join */
    int interrupt;                  /* what becomes readable ends the start */
    uint64_t deadline_ns;           /* so does this time; UINT64_MAX: none */
    const int *networks;            /* as cw_launch_config has them */
    const sigset_t *mask;           /* the ranks' signal mask */
    bool pipe_ignored;              /* so is SIGPIPE, for them */
    bool shares_input;              /* our stdin may be handed to the rank that gets it */
    bool (*still)(void *context);   /* called each second while a program takes its time to start; false: the start is
                                       called off */
    bool (*relieve)(void *context); /* in launch_crew_end: has what was reported go on; false: it cannot */
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
    bool answered;    /* the last LAUNCH_ASK */
    bool input_ends;  /* behind `pending` */
    struct launch_bytes pending; /* of its stdin */
    const struct cw_launch_program *program;
};

enum { LAUNCH_NODE_PATH_BYTES = 104 /* as long as an address of the kind AF_UNIX */ };

/* The host's dataplane of this job, if it has one. */
struct launch_node {
    char folder[LAUNCH_NODE_PATH_BYTES - 8]; /* its socket lies there; "": none */
    int lock;                                /* on the folder, which others may take away without */
    pid_t process;
    int handle; /* -1: it was not started */
};

struct launch_crew {
    struct launch_crew_config config;
    struct launch_node node;
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
    uint64_t asked_ns; /* 0: nobody owes an answer */
    bool failed;
};

/* What is known of a rank that does not answer. */
struct launch_silence {
    int32_t is_open; /* it takes part in the watch: between MPI_Init and MPI_Finalize */
    int32_t letter;  /* of /proc: state of its process; 0: it has ended */
};

/* CW_OK; CW_ERROR_SYSTEM; CW_ERROR_MEMORY: out of memory or descriptors. launch_crew_close is due in each case. */
int launch_crew_open(struct launch_crew *crew, const struct launch_crew_config *config);
/* Starts the ranks; reports LAUNCH_STARTED of each, or LAUNCH_FAIL. True: all run. False: failed, or interrupted. */
bool launch_crew_start(struct launch_crew *crew);
void launch_crew_order(struct launch_crew *crew, const struct launch_frame *order);
/* A descriptor of the crew's is ready. */
void launch_crew_event(struct launch_crew *crew, enum launch_source source, uint32_t index);
/* What the time brings; when it is due again, at the latest. */
uint64_t launch_crew_turn(struct launch_crew *crew, uint64_t now_ns);
/* Kills whoever is left, and reports the rest of their output. */
void launch_crew_end(struct launch_crew *crew);
void launch_crew_close(struct launch_crew *crew);

/* A member that has this rank; NULL: none. */
struct launch_member *launch_crew_find(const struct launch_crew *crew, uint32_t rank);
uint32_t launch_crew_index(const struct launch_crew *crew, const struct launch_member *member);
void launch_crew_report(struct launch_crew *crew, enum launch_frame_type type, uint32_t rank, int32_t value,
                        const void *bytes, size_t count);
/* Reports LAUNCH_FAIL, the first time. */
__attribute__((format(printf, 3, 4))) void launch_crew_fail(struct launch_crew *crew, int code, const char *format,
                                                            ...);

/* ---- crew_spawn.c ---- */

/* False: failed, or interrupted. */
bool launch_crew_spawn(struct launch_crew *crew, struct launch_member *member);

/* ---- crew_node.c ---- */

/* If CAUSEWAY_NODE names a NIC: starts `causeway node` on it, and has the ranks go by that. False: failed, or
 * interrupted. */
bool launch_crew_node_start(struct launch_crew *crew);
/* It has ended, though nobody has told it to. */
void launch_crew_node_ended(struct launch_crew *crew);
/* Ends it, and takes away what it has left; also where there is none. */
void launch_crew_node_end(struct launch_crew *crew);

/* ---- crew_pmi.c ---- */

/* CW_OK; CW_ERROR_ARGUMENT; CW_ERROR_MEMORY. */
int launch_crew_pmi_start(struct launch_crew *crew);
/* The member's socket is ready. */
void launch_crew_pmi_take(struct launch_crew *crew, struct launch_member *member);
/* LAUNCH_FENCE. */
void launch_crew_fence_release(struct launch_crew *crew, const struct launch_frame *order);

/* ---- crew_files.c: the ranks' standard files ---- */

/* The descriptor that a rank gets as its stdin: ours, a pipe's end which is to be closed when it has started (*own),
 * /dev/null. -1: failed, see errno. */
int launch_crew_input_for(struct launch_crew *crew, struct launch_member *member, bool *own);
/* LAUNCH_INPUT. */
void launch_crew_input(struct launch_crew *crew, struct launch_member *member, const struct launch_frame *order);
/* It may take more. */
void launch_crew_input_turn(struct launch_crew *crew, struct launch_member *member);
void launch_crew_output_add(struct launch_crew *crew, uint32_t index);
void launch_crew_output_take(struct launch_crew *crew);
void launch_crew_output_hold(struct launch_crew *crew, bool held);
/* All that is left of it. */
void launch_crew_output_end(struct launch_crew *crew);

/* ---- sweep.c ---- */

/* Kills whatever is a child of this process, or becomes one by that, but `spared`; 0: all. */
void launch_sweep(pid_t spared);
