/* launch: starts the processes of one job, on this machine and others, serves them PMI-1, passes their input and output
 * on, and ends them.
 *
 * Two processes of ours work for a job: the supervisor, which the user has started, and its child, the launcher, which
 * does all the work. Each cleans up the ranks when the other one is killed. Neither has threads. On other hosts an
 * agent (launch/agent.h) does the same for the ranks there.
 *
 * Invariants
 *   - When cw_launch_run returns, no process that the ranks have started is left: ranks have a process group each, and
 *     supervisor and launcher adopt processes that lose their parent (PR_SET_CHILD_SUBREAPER). Ranks die with the
 *     launcher (PR_SET_PDEATHSIG). The same holds on other hosts; a host that cannot be reached ends its ranks itself,
 *     after silence for the failure timeout.
 *   - The job ends when a rank fails: by a signal, by an exit code, on its request, by ending without a PMI goodbye
 *     while others wait for it, or by being stopped by a signal for the failure timeout while others wait for it in
 *     MPI_Init or MPI_Finalize. It also ends when its helper ends, or is stopped for that time. The others get SIGTERM,
 *     and SIGKILL two seconds later.
 *   - No wait lacks a bound without a reason: README.md has all of them.
 *   - Output is passed on by whole lines, byte by byte; lines of two ranks are never mixed. The buffer of each rank is
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

/* Results of cw_launch_run other than the exit codes of ranks and 128 + signal, as in shells. */
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
    char **variables;       /* NAME=VALUE, added to those of this process or replacing them; NULL last; NULL: none */
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
    const char *name; /* "causeway run", the prefix of its own messages */
    const struct cw_launch_program *programs;
    size_t program_count;
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
    int64_t stdin_rank;   /* the rank that gets our standard input; CW_LAUNCH_STDIN_ALL, CW_LAUNCH_STDIN_NONE */
};

/* Whether a name of a list of hosts is this machine: its host name, an address of its own, or localhost. */
bool cw_launch_host_is_here(const char *name);

/* Blocks the signals that end a job in this process, except those that it was started to ignore: so a caller that
 * starts a helper before the job can handle them itself. They stay blocked. `before`: the mask that was, for struct
 * cw_launch_config. */
void cw_launch_hold(sigset_t *handled, sigset_t *before);

/* Runs the job; returns the exit code to end with: 0, or that of the first failure. Prints the reason in one line on
 * stderr. */
int cw_launch_run(const struct cw_launch_config *config);
