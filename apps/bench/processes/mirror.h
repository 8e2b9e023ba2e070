/* Bench mirror: a member of a group of two that runs on another host, as those of this host see it.
 *
 * Either host has the group's shared memory for itself; a process in the member's place tells the other host what its
 * own member has written there (steps, marks, address, result), and writes what it is told. The two talk by the
 * standard files of what the launcher has started: no port is opened for it.
 *
 * Invariants
 *  - What a member writes before a step is there before the step is.
 *  - If a host, the launcher or the connection goes, the group of the other one fails: nobody is left behind.
 *
 * Order of calls: bench_fabric_devices, bench_fabric_hosts, then as in group.h; the group starts it. On the other host:
 * bench_mirror_files before anything is printed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apps/bench/processes/put.h"

/* How the other host takes part. */
struct bench_mirror {
    const char *host;     /* NULL: this process is the other host's, and its files are these */
    const char *launcher; /* "ssh", "srun", or a command (control/launch/remote.h) */
    char *command;        /* that command line */
    int in;
    int out;
};

/* The command line of the other host's side, for `mirror`; undone by bench_mirror_free. False: no memory. */
bool bench_mirror_command(struct bench_mirror *mirror, const struct bench_put_options *options);
void bench_mirror_free(struct bench_mirror *mirror);

/* Takes the standard files of this process, which nobody else reads or writes from now on: what is printed goes to
 * stderr. One of enum app_exit; an error has been reported. */
int bench_mirror_files(struct bench_mirror *mirror);

/* Stands for member `index`, until both members have left. One of enum app_exit; an error has been reported. */
int bench_mirror_run(const struct bench_mirror *mirror, const struct bench_group *group, uint32_t index);
