/* bootstrap: the one interface to the process's launcher: its rank, the size of the job, and a table to exchange short
 * values.
 *
 * Clients, in the order in which the environment is asked for them:
 *   - PMI_FD, PMI_PORT: PMI-1 (`causeway run`, Hydra's mpiexec, srun --mpi=pmi2). If PMIx variables are set too, a
 *     PMI_FD that is not open comes from an outer launcher and is ignored.
 *   - PMIX_NAMESPACE and PMIX_RANK: PMIx (srun --mpi=pmix, Open MPI's mpirun, PRRTE); its library is loaded only then.
 *   - Without any launcher the process is a job of its own. If the environment shows that an unknown launcher started
 *     several processes, opening fails: each would run alone without notice.
 *
 * Invariants
 *   - What was put before a fence can be got by all ranks behind it.
 *   - Keys and values are printable text without blanks, '=' and ';' (which Slurm cannot keep), at most
 *     CW_BOOTSTRAP_KEY_MAX and CW_BOOTSTRAP_VALUE_MAX characters.
 *   - No call hangs when the launcher dies: it answers CW_ERROR_CLOSED.
 *
 * Order of calls: cw_bootstrap_open { cw_bootstrap_put | cw_bootstrap_fence | cw_bootstrap_get |
 * cw_bootstrap_get_each }* { cw_bootstrap_close | cw_bootstrap_drop | cw_bootstrap_abort }. Thread: one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_BOOTSTRAP_KEY_MAX = 63,
    CW_BOOTSTRAP_VALUE_MAX = 255, /* of one put; launchers may have less, which cw_bootstrap_put reports */
    CW_BOOTSTRAP_JOB_MAX = 255,
};

struct cw_bootstrap;

struct cw_bootstrap_info {
    uint32_t rank;
    uint32_t size;
    uint32_t universe_size; /* processes that there is room for; 0: the launcher does not say */
    int app_number;         /* of an application of several programs; -1: the launcher does not say */
    uint32_t
        value_max; /* characters of a value of cw_bootstrap_put: the launcher's limit, at most CW_BOOTSTRAP_VALUE_MAX */
    char job[CW_BOOTSTRAP_JOB_MAX + 1]; /* the launcher's name of the job, for users */
    const char *launcher;               /* "PMI-1", "PMIx", "none" */
};

/* Cost of the exchange so far: lines or messages to and from a launcher that has a descriptor. */
struct cw_bootstrap_traffic {
    uint64_t requests; /* puts, gets, fences */
    uint64_t bytes;
};

/* CW_OK; CW_ERROR_SYSTEM, CW_ERROR_CLOSED, CW_ERROR_UNSUPPORTED, ... with a line in `error`: a launcher is there and
 * cannot be understood, its library (libpmix) is not there, or it has set OMPI_COMM_WORLD_SIZE, SLURM_STEP_NUM_TASKS,
 * ... for several processes and none of the above. */
int cw_bootstrap_open(struct cw_bootstrap **bootstrap, char *error, size_t error_bytes);
struct cw_bootstrap_info cw_bootstrap_info(const struct cw_bootstrap *bootstrap);
struct cw_bootstrap_traffic cw_bootstrap_traffic(const struct cw_bootstrap *bootstrap);

/* Processes of the job according to the environment, before cw_bootstrap_open and after it; 0: only the launcher
 * knows. */
uint32_t cw_bootstrap_size_advertised(void);

/* CW_OK; CW_ERROR_ARGUMENT: too long or not printable; CW_ERROR_CLOSED; CW_ERROR_SYSTEM. */
int cw_bootstrap_put(struct cw_bootstrap *bootstrap, const char *key, const char *value);
/* CW_OK; CW_ERROR_NOT_FOUND; CW_ERROR_CLOSED; CW_ERROR_SYSTEM; CW_ERROR_LIMIT: the value does not fit. */
int cw_bootstrap_get(struct cw_bootstrap *bootstrap, const char *key, char *value, size_t value_bytes);
/* Many values, which each `key` names and each `receive` gets, in their order. A launcher of ours is asked for several
 * at a time, since a switch to its process and back costs more than a value. `receive` makes no call of this bootstrap;
 * a result of `receive` other than CW_OK ends the values and is returned. CW_OK; CW_ERROR_NOT_FOUND; CW_ERROR_CLOSED;
 * CW_ERROR_SYSTEM. */
struct cw_bootstrap_reader {
    void *context;
    void (*key)(void *context, uint32_t index, char key[CW_BOOTSTRAP_KEY_MAX + 1]);
    int (*receive)(void *context, uint32_t index, const char *value);
};
int cw_bootstrap_get_each(struct cw_bootstrap *bootstrap, uint32_t count, const struct cw_bootstrap_reader *reader);
/* Waits for all ranks. CW_OK; CW_ERROR_CLOSED. */
int cw_bootstrap_fence(struct cw_bootstrap *bootstrap);
/* Whether both processes of the launcher have gone: nothing would end this process then. Any thread. */
bool cw_bootstrap_is_cut(const struct cw_bootstrap *bootstrap);
/* Reason of the last failed call, in one line. */
const char *cw_bootstrap_failure(const struct cw_bootstrap *bootstrap);

/* Has the launcher end all processes of the job with this exit code, and ends this one. */
_Noreturn void cw_bootstrap_abort(struct cw_bootstrap *bootstrap, int code, const char *text);
/* Says goodbye: from now on the launcher takes this process's end for a good one. Frees; NULL is allowed. */
void cw_bootstrap_close(struct cw_bootstrap *bootstrap);
/* The same without a goodbye: for a process that aborts. The launcher then treats its end as a failure. Frees; NULL is
 * allowed. */
void cw_bootstrap_drop(struct cw_bootstrap *bootstrap);
