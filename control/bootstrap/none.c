/* Without a launcher: a job of one process. Its table is a list. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/bootstrap/private.h"
#include "control/settings/setting.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

struct entry {
    struct entry *next;
    char key[CW_BOOTSTRAP_KEY_MAX + 1];
    char value[CW_BOOTSTRAP_VALUE_MAX + 1];
};

static struct entry *entry_find(const struct cw_bootstrap *bootstrap, const char *key)
{
    struct entry *entry = bootstrap->state;
    while (entry != NULL && strcmp(entry->key, key) != 0) {
        entry = entry->next;
    }
    return entry;
}

static int none_put(struct cw_bootstrap *bootstrap, const char *key, const char *value)
{
    struct entry *entry = entry_find(bootstrap, key);
    if (entry == NULL) {
        entry = calloc(1, sizeof(*entry));
        if (entry == NULL) {
            return cw_error_text(bootstrap->failure, sizeof(bootstrap->failure), CW_ERROR_SYSTEM, "no memory");
        }
        snprintf(entry->key, sizeof(entry->key), "%s", key);
        entry->next = bootstrap->state;
        bootstrap->state = entry;
    }
    snprintf(entry->value, sizeof(entry->value), "%s", value);
    return CW_OK;
}

static int none_get(struct cw_bootstrap *bootstrap, const char *key, char *value, size_t value_bytes)
{
    const struct entry *entry = entry_find(bootstrap, key);
    if (entry == NULL) {
        return cw_error_text(bootstrap->failure, sizeof(bootstrap->failure), CW_ERROR_NOT_FOUND,
                             "%s: no rank has put this key", key);
    }
    if (strlen(entry->value) >= value_bytes) {
        return cw_error_text(bootstrap->failure, sizeof(bootstrap->failure), CW_ERROR_LIMIT,
                             "%s: its %zu characters do not fit", key, strlen(entry->value));
    }
    memcpy(value, entry->value, strlen(entry->value) + 1);
    return CW_OK;
}

static int none_fence(struct cw_bootstrap *bootstrap)
{
    (void)bootstrap;
    return CW_OK;
}

static void none_abort(struct cw_bootstrap *bootstrap, int code)
{
    (void)bootstrap, (void)code;
}

static void none_finish(struct cw_bootstrap *bootstrap)
{
    (void)bootstrap;
}

static void none_release(struct cw_bootstrap *bootstrap)
{
    for (struct entry *entry = bootstrap->state, *next; entry != NULL; entry = next) {
        next = entry->next;
        free(entry);
    }
}

/* Launchers that speak neither PMI nor PMIx name their processes in the environment. SLURM_NTASKS and SLURM_PROCID are
 * no evidence: batch scripts have them, too, and run programs of one process. */
static const struct launcher_mark {
    const char *variable;
    bool is_rank; /* else a number of processes */
    const char *launcher;
    const char *remedy;
} launcher_marks[] = {
    {"OMPI_COMM_WORLD_SIZE", false, "Open MPI's mpirun", ""},
    {"SLURM_STEP_NUM_TASKS", false, "srun", "`srun --mpi=pmi2`, `srun --mpi=pmix`, "},
    {"PMI_SIZE", false, "a launcher without PMI_FD and PMI_PORT", ""},
    {"MV2_COMM_WORLD_SIZE", false, "MVAPICH's mpirun_rsh", ""},
    {"MPIRUN_NPROCS", false, "MVAPICH's mpirun_rsh", ""},
    {"JSM_NAMESPACE_SIZE", false, "jsrun", ""},
    {"PMIX_RANK", true, "a PMIx launcher", ""},
    {"PALS_RANKID", true, "PALS", ""},
};

/* Refuses to be one of several jobs of one process each where one job of all was meant. */
static int marks_check(struct cw_bootstrap *bootstrap)
{
    for (size_t i = 0; i < sizeof(launcher_marks) / sizeof(launcher_marks[0]); i++) {
        const struct launcher_mark *mark = &launcher_marks[i];
        const char *word = cw_environment(mark->variable);
        uint64_t number = word != NULL ? strtoull(word, NULL, 10) : 0;
        char count[24] = "RANKS";
        if (number <= (mark->is_rank ? 0 : 1) || number > UINT32_MAX) {
            continue;
        }
        if (!mark->is_rank) {
            snprintf(count, sizeof(count), "%" PRIu64, number);
        }
        return cw_error_text(bootstrap->failure, sizeof(bootstrap->failure), CW_ERROR_UNSUPPORTED,
                             "%s=%.12s: %s does not connect its processes by PMI or PMIx; start them by %s`causeway "
                             "run -n %s` or `mpiexec.hydra -n %s`, or unset it for a job of one process",
                             mark->variable, word, mark->launcher, mark->remedy, count, count);
    }
    return CW_OK;
}

int bootstrap_none_open(struct cw_bootstrap *bootstrap)
{
    int status = marks_check(bootstrap);
    if (status != CW_OK) {
        return status;
    }
    static const struct bootstrap_client client = {
        .put = none_put,
        .get = none_get,
        .fence = none_fence,
        .abort = none_abort,
        .finish = none_finish,
        .release = none_release,
    };
    bootstrap->client = &client;
    bootstrap->info = (struct cw_bootstrap_info){
        .rank = 0,
        .size = 1,
        .universe_size = 1,
        .app_number = -1,
        .value_max = CW_BOOTSTRAP_VALUE_MAX,
        .job = "alone",
        .launcher = "none",
    };
    return CW_OK;
}
