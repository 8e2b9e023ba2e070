/* allocation: the hosts of a job and how many ranks each has room for, from the texts in which people and batch systems
 * name them.
 *
 *   list      "a:4,b", "node[01-16,20]:8", "me@c", "[fd77::1]:2"     --hosts
 *   file      a host a line: "a", "a:4" (MPICH), "a slots=4 max_slots=8" (Open MPI); '#' begins a comment.
 *             PBS_NODEFILE is one, with a line for each rank
 *   Slurm     SLURM_JOB_NODELIST "node[01-03,7],x" and SLURM_TASKS_PER_NODE "2(x3),1,4"
 *
 * A host without a number has one slot. A host that is named again gets the slots of both; hosts stay in the order in
 * which they first come.
 *
 * Invariants
 *   - Whatever the text, at most CW_LAUNCH_HOSTS_MAX hosts and CW_LAUNCH_SLOTS_MAX slots are made of it.
 *   - A name can be an argument of ssh: letters, digits, '.', '-', '_', one '@', or an IPv6 address; never '-' first.
 *   - Whatever fails leaves the allocation as it was.
 *
 * Errors of all: CW_ERROR_ARGUMENT: the text is invalid; CW_ERROR_LIMIT; CW_ERROR_MEMORY; with a line in `error`: the
 * place (file and line, option or variable), the problem, and the fix. Thread: any; nothing is shared. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_LAUNCH_HOST_NAME_BYTES = 256,
    CW_LAUNCH_HOSTS_MAX = 4096,
    CW_LAUNCH_SLOTS_MAX = 1 << 18,      /* of all hosts */
    CW_LAUNCH_HOSTFILE_BYTES = 1 << 24, /* of a file */
};

struct cw_launch_host {
    char name[CW_LAUNCH_HOST_NAME_BYTES];
    uint32_t slots; /* 1 at least */
};

/* {0} is an empty one. */
struct cw_launch_allocation {
    struct cw_launch_host *hosts; /* owned */
    uint32_t count;
    uint32_t slots; /* of all hosts */
};

/* `where` precedes errors: "--hosts". */
int cw_launch_hosts_list(struct cw_launch_allocation *allocation, const char *where, const char *text, char *error,
                         size_t error_bytes);
/* The content of a file, which need not end with a 0. */
int cw_launch_hosts_lines(struct cw_launch_allocation *allocation, const char *where, const char *text, size_t length,
                          char *error, size_t error_bytes);
/* Also CW_ERROR_SYSTEM: the file cannot be read. */
int cw_launch_hosts_file(struct cw_launch_allocation *allocation, const char *path, char *error, size_t error_bytes);
/* `tasks` may be NULL: one slot a node. */
int cw_launch_hosts_slurm(struct cw_launch_allocation *allocation, const char *nodes, const char *tasks, char *error,
                          size_t error_bytes);

/* The allocation of the batch system in this process's environment: Slurm, else PBS. *source is its name for messages;
 * NULL, and no hosts: there is none. Also CW_ERROR_SYSTEM: PBS's file cannot be read. */
int cw_launch_hosts_environment(struct cw_launch_allocation *allocation, const char **source, char *error,
                                size_t error_bytes);

void cw_launch_allocation_dispose(struct cw_launch_allocation *allocation);
