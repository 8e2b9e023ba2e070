/* info_env: facts about a process's start, for MPI_INFO_ENV and MPI_Info_create_env (MPI 5.0, 11.2.1): the same before,
 * between and after MPI_Init and MPI_Finalize. Unknown facts have no key; before the start there is no thread_level.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi.h"

enum {
    MPI_INFO_ENV_PAIRS = 6,
};

struct mpi_info_env {
    int count;
    struct {
        const char *key;
        char value[MPI_MAX_INFO_VAL]; /* cut where it is longer */
    } pairs[MPI_INFO_ENV_PAIRS];
};

/* With the program's arguments as main was given them; argc 0: as the system has them. */
void mpi_info_env_read(struct mpi_info_env *env, int argc, char *const argv[]);
