/* Run options: the command line of `causeway run`, in the manner of the MPI standard's mpiexec: options in front of
 * each program, programs of one job separated by ':'. Arguments after a program are its own. Options of MPICH's and
 * Open MPI's mpiexec are accepted where this launcher supports their meaning, and rejected by name elsewhere. */
#pragma once

#include <stdbool.h>

#include "control/launch/launch.h"

enum { RUN_PROGRAMS_MAX = 64 };

struct run_options {
    struct cw_launch_config launch; /* points into the rest */
    struct cw_launch_program programs[RUN_PROGRAMS_MAX];
    const char *emulate;                    /* "4,memif"; NULL: all ranks are on this host */
    const char *simulate;                   /* "hosts=4,rate=10Gbps"; NULL: real time */
    uint64_t seeds;                         /* repetitions with other seeds; 0: none */
    const char *plan;                       /* a bundle of plans; NULL: none */
    uint32_t per_host;                      /* ranks that each host is to have; 0: nobody says */
    const char *hosts;                      /* of --hosts; NULL: none */
    const char *hostfile;                   /* of --hostfile; NULL: none */
    bool counts_given;                      /* some program has -n */
    const char **exported;                  /* names of variables that were asked for; of `launch` */
    struct cw_launch_allocation allocation; /* of `launch` */
};

/* The output of --help (help.c). */
extern const char run_help[];

/* Reads the command line; the texts stay argv's, in which each ':' that separates programs becomes NULL. True: the
 * caller disposes of *options. False: the command has ended, with *exit_code. */
bool run_options_parse(struct run_options *options, int argc, char **argv, int *exit_code);
void run_options_dispose(struct run_options *options);
