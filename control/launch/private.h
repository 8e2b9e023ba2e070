/* Shared by the files of the launcher.
 *
 * launch.c         checks before anything starts
 * launch/place.c   places ranks on hosts
 * launch/supervisor.c   the supervisor
 * launch/job.c     the launcher: decides about the job in one epoll loop
 * launch/output.c  from the ranks' output to our stdout and stderr; launch/lines.c puts the lines together
 * launch/input.c   from our stdin to ranks that cannot inherit it
 * launch/watch.c   the first failure, and its reason
 * launch/query.c   the waits of all ranks, at the timeout
 * launch/stopped.c ranks that are stopped while others wait for them
 *
 * launch/tree.h    local ranks and links below
 * launch/local.h   the ranks of a host: local_spawn.c one process more, local_files.c their standard files,
 * local_pmi.c
 *                  their PMI-1 server, sweep.c nobody is left, binding.h their processors
 * launch/link.h    to an agent: link_command.c what starts it; frame.h, work.h what goes there
 * launch/agent.h   the other end */
#pragma once

#include <signal.h>

#include "control/launch/launch.h"
#include "control/launch/lines.h"
#include "control/launch/tree.h"

enum {
    LAUNCH_LABEL_BYTES = 16,
    LAUNCH_TEXT_BYTES = 640,
    LAUNCH_READ_BYTES = 65536,
    LAUNCH_SINK_MAX = 1 << 20, /* ranks are not read from while more waits to be written */
    LAUNCH_IDENTITY_BYTES = 128,
};
#define LAUNCH_GRACE_NS 2000000000ull
/* Time that ranks have to report their waits: their control threads poll twice a second, and sleeping ranks wake up ten
 * times. */
#define LAUNCH_QUERY_NS 1500000000ull
/* From the first look to the second: a rank without progress meanwhile is stuck. A frame of the slowest link emulated
 * takes less. */
#define LAUNCH_LOOKS_APART_NS 1000000000ull
/* Time that other hosts have to write their remaining output and to report that no process is left. */
#define LAUNCH_END_NS 5000000000ull
/* This number of messages or packets may be probes among waiting ranks, and their retransmissions. */
#define LAUNCH_QUESTIONS 4

/* Notices of the supervisor to the launcher. */
enum launch_notice_kind {
    LAUNCH_NOTICE_SIGNAL,         /* number: of the signal that it got */
    LAUNCH_NOTICE_HELPER_ENDED,   /* number: the signal that ended it; 0: by itself */
    LAUNCH_NOTICE_HELPER_STOPPED, /* for the failure timeout */
};

struct launch_notice {
    uint8_t kind;
    uint8_t number;
};

/* A rank as the launcher knows it, wherever it runs. */
struct launch_rank {
    int process; /* its number on its host; 0: not started */
    bool is_alive;
    enum cw_pmi1_client_state state;
    bool waits;           /* in the launcher's barrier */
    bool left;            /* ended well, but without a goodbye */
    uint64_t stopped_ns;  /* since when it is seen stopped; 0: it is not */
    int stopped;          /* the process that is: its own, or one that it has started; 0: none */
    bool seen;            /* stopped, in this look */
    uint64_t given_up_ns; /* when it has closed its PMI connection without a goodbye; 0: it has not */
    bool reads_input;     /* that we pass on */
    bool owes_input;      /* it has not taken all of the last */
    uint64_t spoke_ns;    /* when its last output came */
    struct launch_stream streams[2];
    char label[LAUNCH_LABEL_BYTES];
};

struct launch_output {
    bool held;       /* the ranks' output stays where it is, since sinks are full */
    bool closed[2];  /* our stdout or stderr has no reader: output is dropped */
    bool watched[2]; /* in the job's epoll set, since they are full */
    struct launch_sink sinks[2];
    bool joined;        /* both go to the same file: sinks[0] is for both */
    uint64_t prompt_ns; /* when to look for prompts; 0: no output since the last look */
};

struct launch_input {
    bool active;
    bool watched;      /* in the job's epoll set */
    bool always_ready; /* a file: cannot be in one */
    uint32_t owed;     /* ranks that have not taken all of the last */
    char *bytes;
};

struct launch_job {
    const struct cw_launch_config *config;
    struct launch_work work;
    struct launch_tree tree;
    int set; /* epoll */
    int signals;
    int supervisor;
    bool pipe_ignored; /* so was SIGPIPE */
    uint32_t rank_count;
    uint32_t started;
    uint32_t alive;
    struct launch_rank *ranks;
    char (*identities)[LAUNCH_IDENTITY_BYTES]; /* per host: which machine it is, "": not known */
    uint32_t states[4];                        /* ranks by state */
    uint32_t waiting;                          /* ranks in the launcher's barrier */
    struct launch_output output;
    struct launch_input input;
    uint32_t left_count; /* ranks with `left` */
    uint32_t left_first;
    bool given_up;      /* some rank has, or had, a given_up_ns */
    int64_t abort_rank; /* that called for the end; -1: none */
    int abort_code;
    uint64_t deadline_ns;                /* --timeout; UINT64_MAX: none */
    uint64_t queried_ns;                 /* when ranks were queried; 0: not */
    uint64_t query_again_ns;             /* time of the second query; 0: not yet known, or it is done */
    struct launch_answer *answers;       /* per rank, to the last question */
    struct launch_answer *first_answers; /* NULL: they have been asked once at most */
    uint64_t stopped_bound_ns;           /* how long a rank that others wait for may be stopped; 0: forever */
    uint64_t stopped_look_ns; /* time of the next look; UINT64_MAX: no rank waits in MPI_Init or MPI_Finalize */
    bool looking;             /* answers to the last look are due */
    bool orphaned;            /* the supervisor is gone */
    bool ending;
    bool is_over;        /* failures do not count any more */
    uint64_t kill_ns;    /* when SIGKILL follows; UINT64_MAX: it has */
    uint64_t give_up_ns; /* when ranks are no longer waited for that cannot be killed; UINT64_MAX: not yet killed */
    bool hurried;        /* the supervisor wants it over at once */
    int code;
};

/* ---- launch/place.c ---- */

/* Fills `work` from the configuration; *self: the place of this host in it, or UINT32_MAX. CW_OK, CW_ERROR_MEMORY. */
int launch_place(const struct cw_launch_config *config, struct launch_work *work, uint32_t *self);
/* Which machine this is, as processes see it: no two have the same. */
void launch_machine_identity(char *text, size_t bytes);

/* ---- launch/supervisor.c ---- */

/* Passes signals on until the launcher has ended; returns the job's exit code. */
int launch_supervisor_wait(const struct cw_launch_config *config, pid_t launcher, int control, const sigset_t *handled);

/* ---- launch/agent.c ---- */

/* An agent's whole life; returns its exit code. */
int launch_agent_run(int supervisor, const sigset_t *handled, const sigset_t *mask_before);

/* ---- launch/job.c ---- */

/* The launcher's whole life; returns its exit code. */
int launch_job_run(const struct cw_launch_config *config, int supervisor, const sigset_t *handled,
                   const sigset_t *mask_before);

/* ---- launch/end.c ---- */

/* Ends the job with `code`, and says why (NULL: nothing to say), unless it is ending already. */
__attribute__((format(printf, 3, 4))) void launch_fail(struct launch_job *job, int code, const char *format, ...);
/* An order for all hosts. */
void launch_order_all(struct launch_job *job, enum launch_frame_type type, int32_t value);
/* "rank 3 (process 123)", with " on HOST" if there are several. Valid until the next call. */
const char *launch_who(const struct launch_job *job, uint32_t rank);
/* Queues a message for stderr; the loop writes it before it waits. */
__attribute__((format(printf, 2, 3))) void launch_output_print(struct launch_job *job, const char *format, ...);

/* ---- launch/output.c ---- */

void launch_output_open(struct launch_job *job);
void launch_output_add(struct launch_job *job, uint32_t rank);
/* LAUNCH_OUTPUT. */
void launch_output_receive(struct launch_job *job, const struct launch_frame *frame);
/* Writes what can be written without waiting. */
void launch_output_flush(struct launch_job *job);
/* Shows prompts: beginnings of lines that nothing has followed for 50 ms, of ranks that read our stdin. Those of other
 * ranks stay until their lines end. Returns when to call it again; UINT64_MAX: after more output. */
uint64_t launch_output_turn(struct launch_job *job, uint64_t now_ns);
/* At the end: waits until there is room for more. False: the output is dropped. */
bool launch_output_relieve(void *job);
/* All ranks have ended: writes what is left. */
void launch_output_finish(struct launch_job *job);

/* ---- launch/input.c ---- */

/* Whether our stdin may simply be handed to the rank that gets it. */
bool launch_input_is_shared(const struct launch_job *job, uint32_t self);
void launch_input_start(struct launch_job *job, uint32_t self);
/* LAUNCH_TAKEN. */
void launch_input_acknowledge(struct launch_job *job, const struct launch_frame *frame);
/* A rank has ended: it reads no more. */
void launch_input_drop(struct launch_job *job, uint32_t rank);
/* Ranks may have taken what was read. */
void launch_input_turn(struct launch_job *job);
/* There may be more to be read. */
void launch_input_read(struct launch_job *job);

/* ---- launch/watch.c ---- */

/* A rank's process has ended: LAUNCH_ENDED. */
void launch_watch_end(struct launch_job *job, uint32_t rank, int32_t value);
/* After everything that may have changed something. */
void launch_watch_check(struct launch_job *job, uint64_t now_ns);
/* When launch_watch_check is due at the latest; UINT64_MAX: when something happens. */
uint64_t launch_watch_deadline(const struct launch_job *job);

/* ---- launch/stopped.c ---- */

/* Ends the job if a rank is stopped for too long while others wait for it in the launcher's barrier. A program that
 * calls MPI_Init late is waited for. */
void launch_stopped_check(struct launch_job *job, uint64_t now_ns);
/* LAUNCH_STOPPED, LAUNCH_LOOKED. */
void launch_stopped_apply(struct launch_job *job, const struct launch_frame *frame);

/* ---- launch/query.c ---- */

/* Answer of one rank. */
struct launch_answer {
    bool has_come;
    bool is_silence; /* the rank has not answered */
    struct launch_silence silence;
    struct cw_watch_answer said;
};

/* Asks all ranks what they wait for. False: none of them can say, since they are no MPI programs. */
bool launch_query(struct launch_job *job, uint64_t now_ns);
/* LAUNCH_ANSWER. */
void launch_query_receive(struct launch_job *job, const struct launch_frame *frame);
/* Whether all ranks that can have answered twice, or the time for it has passed; sends the second query. */
bool launch_query_is_over(struct launch_job *job, uint64_t now_ns);
/* Reports their answers, and the missing ranks. */
void launch_query_report(struct launch_job *job);
