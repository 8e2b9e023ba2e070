/* launch: starts the processes of one job, on this machine and others, serves them PMI-1, passes their input and output
 * on, and ends them.
 *
 * Two processes of ours work for a job: the supervisor, which the user has started, and its child, the launcher, which does
 * all the work. Each looks after the ranks when the other one is killed. Neither has threads. On other hosts an agent
 * (launch/agent.h) does the same for the ranks there.
 *
 * Invariants
 *   - When cw_launch_run returns, no process that the ranks have started is left: ranks have a process group each, and
 *     supervisor and launcher adopt processes that lose their parent (PR_SET_CHILD_SUBREAPER). Ranks die with the launcher
 *     (PR_SET_PDEATHSIG). The same holds on other hosts; one that cannot be reached ends its ranks by itself, when it
 *     has heard nothing for the failure timeout.
 *   - The job ends when a rank fails: by a signal, by an exit code, by asking for it, by ending without a PMI goodbye
 *     while others wait for it, or by being stopped by a signal for the failure timeout while others wait for it in
 *     MPI_Init or MPI_Finalize; and when its helper ends, or is stopped for so long. The others get SIGTERM, and
 *     SIGKILL two seconds later.
 *   - No wait lacks a bound without a reason: README.md has all of them.
 *   - Output is passed on by whole lines, byte by byte; lines of two ranks are never mixed. What is held of each is
 *     bounded.
 *
 * Thread: the process's only one. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/launch/allocation.h"

enum {
    CW_LAUNCH_RANKS_MAX = 4096,
    CW_LAUNCH_STDIN_ALL = -1,
    CW_LAUNCH_STDIN_NONE = -2,
};

/* What cw_launch_run returns beside the exit codes of ranks, 128 + signal, as shells do. */
enum cw_launch_exit {
    CW_LAUNCH_EXIT_FAILED = 1,
    CW_LAUNCH_EXIT_USAGE = 2,
    CW_LAUNCH_EXIT_MACHINE = 3,
    CW_LAUNCH_EXIT_TIMEOUT = 124,
    CW_LAUNCH_EXIT_NOT_EXECUTABLE = 126,
    CW_LAUNCH_EXIT_NOT_FOUND = 127,
};

/* One of the programs of a job. All texts stay the caller's. */
struct cw_launch_program {
    uint32_t count;         /* processes */
    char *const *arguments; /* the program first, NULL last */
    const char *directory;  /* to run in; NULL: this one */
    char **variables;       /* NAME=VALUE, beside and instead of those of this process; NULL last; NULL: none */
};

/* A child of the caller's that the ranks need, and that outlives the job: the caller ends it. */
struct cw_launch_helper {
    int process;                    /* 0: none */
    const char *name;               /* "the switch between the emulated hosts" */
    void (*orphaned)(void *caller); /* called in the launcher at its end, if the caller's process was killed */
    void *caller;
};

enum cw_launch_mapping {
    CW_LAUNCH_MAP_CORE, /* fill the slots of one host after the other */
    CW_LAUNCH_MAP_NUMA, /* the same, and go around the NUMA domains of each in turn */
    CW_LAUNCH_MAP_NODE, /* go around the hosts in turn */
};

struct cw_launch_config {
    const char *name; /* "causeway run", in front of what it says itself */
    const struct cw_launch_program *programs;
    size_t program_count;
    const int *networks; /* the network namespace that each rank runs in, a descriptor; NULL: this process's */
    const struct cw_launch_host *hosts; /* that ranks run on; NULL: this machine */
    size_t host_count;
    const char *launcher; /* what starts agents: "ssh", "srun", or a command that gets host and command line */
    enum cw_launch_mapping mapping;
    const char *binding;         /* the word of --bind-to; NULL: none */
    const char *const *exported; /* variables that ranks of other hosts get whatever they speak of; NULL: none */
    bool label;                  /* "[3] " before each line */
    uint64_t timeout_ns;         /* 0: none */
    struct cw_launch_helper helper;
    const sigset_t *mask; /* the ranks' signal mask; NULL: this process's */
    bool guards_launcher; /* a launcher that is stopped for the failure timeout is killed */
    int64_t stdin_rank;   /* who gets our standard input; CW_LAUNCH_STDIN_ALL, CW_LAUNCH_STDIN_NONE */
};

/* Whether a name of a list of hosts is this machine: its host name, an address of its own, or localhost. */
bool cw_launch_host_is_here(const char *name);

/* Keeps the signals that end a job from this process, but those that it was started to ignore: so that whoever starts
 * a helper before the job hears of them in its own way. They stay so. `before`: the mask that was, for struct
 * cw_launch_config. */
void cw_launch_hold(sigset_t *handled, sigset_t *before);

/* Runs the job; returns the exit code to end with: 0, or of what failed first. Says why in one line on stderr. */
int cw_launch_run(const struct cw_launch_config *config);
