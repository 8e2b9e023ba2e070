/* What the files of the launcher share.
 *
 * launch.c         what is checked before anything starts
 * launch/front.c   the front
 * launch/job.c     the worker: one epoll loop
 * launch/spawn.c   one process more
 * launch/output.c  from the ranks' pipes to our stdout and stderr; launch/lines.c puts the lines together
 * launch/input.c   from our stdin to the ranks'
 * launch/watch.c   who failed first, and why
 * launch/ask.c     what all ranks wait for, when the time is over
 * launch/stopped.c who is stopped while others wait for it
 * launch/sweep.c   nobody is left */
#pragma once

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "control/bootstrap/pmi1_server.h"
#include "control/launch/launch.h"
#include "control/launch/lines.h"
#include "control/watch/watch.h"

enum {
    LAUNCH_LABEL_BYTES = 16,
    LAUNCH_TEXT_BYTES = 512,
    LAUNCH_READ_BYTES = 65536,
    LAUNCH_SINK_MAX = 1 << 20,     /* ranks are not read from while more waits to be written */
    LAUNCH_DESCRIPTORS_A_RANK = 4, /* PMI, process, stdout, stderr; one more if all get our stdin */
    LAUNCH_DESCRIPTORS_MORE = 64,
};
#define LAUNCH_GRACE_NS 2000000000ull
/* How long the ranks have to say what they wait for: their control threads look twice a second, and those who sleep
 * wake up ten times. */
#define LAUNCH_ASK_NS       1500000000ull
#define LAUNCH_ASK_EVERY_NS 20000000ull /* looks for answers */
/* From the first look to the second: who has moved nothing meanwhile is stuck. A frame of the slowest link emulated
 * takes less. */
#define LAUNCH_LOOKS_APART_NS 1000000000ull
/* So many messages or packets may be questions among waiting ranks, and what is sent again of them. */
#define LAUNCH_QUESTIONS 4

/* What a descriptor in an epoll set is; the rank, if any, goes with it. */
enum launch_source {
    LAUNCH_SIGNAL,
    LAUNCH_FRONT,
    LAUNCH_OUTPUTS, /* the epoll set of all outputs */
    LAUNCH_OUT,
    LAUNCH_ERR,
    LAUNCH_SINK_OUT,
    LAUNCH_SINK_ERR,
    LAUNCH_PMI,
    LAUNCH_PROCESS,
    LAUNCH_INPUT,
    LAUNCH_INPUT_RANK,
};

/* What the front tells the worker. */
enum launch_notice_kind {
    LAUNCH_NOTICE_SIGNAL,         /* number: of the signal that it got */
    LAUNCH_NOTICE_HELPER_ENDED,   /* number: the signal that ended it; 0: by itself */
    LAUNCH_NOTICE_HELPER_STOPPED, /* for the failure timeout */
};

struct launch_notice {
    uint8_t kind;
    uint8_t number;
};

struct launch_rank {
    pid_t process;        /* 0: not started */
    int handle;           /* pidfd; -1 once it has ended. It is not reaped before all have: its number stays its own */
    int pmi;              /* -1: closed */
    int outputs[2];       /* read ends for stdout and stderr; -1: closed */
    int input;            /* write end of its stdin; -1: none */
    bool pmi_blocked;     /* lines wait to be sent */
    bool left;            /* ended well, but without a goodbye */
    uint64_t stopped_ns;  /* since when it is seen stopped; 0: it is not */
    int stopped;          /* the process that is: its own, or one that it has started; 0: none */
    uint64_t given_up_ns; /* when it has closed its PMI connection without a goodbye; 0: it has not */
    size_t input_done;    /* of launch_input's bytes */
    const struct cw_launch_program *program;
    struct launch_stream streams[2];
    char label[LAUNCH_LABEL_BYTES];
};

struct launch_output {
    int set; /* epoll set of the ranks' pipes, in turn member of the job's, but while sinks are full */
    bool paused;
    bool closed[2];  /* nobody reads our stdout, stderr: what comes is thrown away */
    bool watched[2]; /* in the job's epoll set, since they are full */
    struct launch_sink sinks[2];
    bool joined; /* both go to the same file: sinks[0] is for both */
};

struct launch_input {
    bool active;
    bool watched;      /* in the job's epoll set */
    bool always_ready; /* a file: cannot be in one */
    size_t count;      /* bytes that not all ranks have yet */
    char *bytes;
};

struct launch_job {
    const struct cw_launch_config *config;
    int set; /* epoll */
    int signals;
    int front;
    sigset_t mask_before; /* of who called us, for the ranks */
    bool pipe_ignored;    /* so was SIGPIPE */
    struct rlimit files_before;
    uint32_t rank_count;
    uint32_t alive;
    struct launch_rank *ranks;
    struct cw_pmi1_server *server;
    struct launch_output output;
    struct launch_input input;
    uint32_t left_count; /* ranks with `left` */
    uint32_t left_first;
    bool given_up;                         /* some rank has, or had, a given_up_ns */
    uint64_t deadline_ns;                  /* --timeout; UINT64_MAX: none */
    struct cw_watch *watch;                /* NULL: ranks cannot be asked */
    uint64_t asked_ns;                     /* when they were; 0: not */
    uint64_t ask_again_ns;                 /* when they are asked once more; 0: not yet known, or they have been */
    struct cw_watch_answer *first_answers; /* NULL: they have been asked once at most */
    uint64_t stopped_bound_ns;             /* how long a rank that others wait for may be stopped; 0: for ever */
    uint64_t stopped_look_ns; /* when it is looked for them; UINT64_MAX: nobody waits in MPI_Init or MPI_Finalize */
    bool orphaned;            /* the front is gone */
    bool ending;
    uint64_t kill_ns; /* when SIGKILL follows; UINT64_MAX: it has */
    bool hurried;     /* the front wants it over at once */
    int code;
};

/* ---- launch/front.c ---- */

/* Passes signals on until the worker has ended; returns the job's exit code. */
int launch_front_wait(const struct cw_launch_config *config, pid_t worker, int control, const sigset_t *handled);

/* ---- launch/job.c ---- */

/* The worker's whole life; returns its exit code. */
int launch_job_run(const struct cw_launch_config *config, int front, const sigset_t *handled,
                   const sigset_t *mask_before);
/* Adds a descriptor to an epoll set. False: it cannot be waited for, since it is a file. */
bool launch_watch(int set, int descriptor, uint32_t events, enum launch_source source, uint32_t rank);
void launch_unwatch(int set, int descriptor);
/* Ends the job with `code`, and says why (NULL: nothing to say), unless it is ending already. */
__attribute__((format(printf, 3, 4))) void launch_fail(struct launch_job *job, int code, const char *format, ...);
/* A signal for all processes of all ranks. */
void launch_signal_all(struct launch_job *job, int number);

/* ---- launch/spawn.c ---- */

/* False: the job has been failed. */
bool launch_spawn(struct launch_job *job, uint32_t rank);

/* ---- launch/output.c ---- */

void launch_output_open(struct launch_job *job);
void launch_output_add(struct launch_job *job, uint32_t rank);
/* Takes what the ranks have written, as far as it can be kept. */
void launch_output_take(struct launch_job *job);
/* Writes what can be written without waiting. */
void launch_output_flush(struct launch_job *job);
__attribute__((format(printf, 2, 3))) void launch_output_say(struct launch_job *job, const char *format, ...);
/* All ranks have ended: takes and writes what is left. */
void launch_output_finish(struct launch_job *job);

/* ---- launch/input.c ---- */

/* The descriptor that a rank gets as its stdin: ours, a pipe's end which is to be closed when it has started (*own),
 * /dev/null. -1: failed, see errno. */
int launch_input_for(struct launch_job *job, uint32_t rank, bool *own);
void launch_input_start(struct launch_job *job);
/* Ranks may take more of what has been read. */
void launch_input_turn(struct launch_job *job);
/* There may be more to be read. */
void launch_input_take(struct launch_job *job);

/* ---- launch/watch.c ---- */

/* A rank's process has ended. */
void launch_watch_end(struct launch_job *job, uint32_t rank, const siginfo_t *info);
/* Its PMI connection has. */
void launch_watch_hangup(struct launch_job *job, uint32_t rank);
/* After everything that may have changed something. */
void launch_watch_judge(struct launch_job *job, uint64_t now_ns);
/* When launch_watch_judge is due at the latest; UINT64_MAX: when something happens. */
uint64_t launch_watch_deadline(const struct launch_job *job);
/* "0-3, 7" of the ranks that run; cut to fit. */
void launch_watch_running(const struct launch_job *job, char *text, size_t text_bytes);

/* ---- launch/stopped.c ---- */

/* Ends the job if a rank is stopped for too long while others wait for it in the launcher's barrier. A program that
 * calls MPI_Init late is waited for. */
void launch_stopped_judge(struct launch_job *job, uint64_t now_ns);

/* ---- launch/ask.c ---- */

/* Asks all ranks what they wait for. False: none of them can say, since they are no MPI programs. */
bool launch_ask(struct launch_job *job, uint64_t now_ns);
/* Whether all have answered twice that can, or the time for it is over; asks them the second time. */
bool launch_ask_is_over(struct launch_job *job, uint64_t now_ns);
/* Says what they have answered, and who is missing. */
void launch_ask_tell(struct launch_job *job);

/* ---- launch/sweep.c ---- */

/* Kills whatever is a child of this process, or becomes one by that, but `spared`; 0: all. */
void launch_sweep(pid_t spared);
