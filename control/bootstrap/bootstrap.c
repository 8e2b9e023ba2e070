#include "control/bootstrap/private.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/bootstrap/pmi1_line.h"
#include "control/settings/setting.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

static bool is_set(const char *name)
{
    const char *value = cw_environment(name);
    return value != NULL && value[0] != 0;
}

/* PMI_FD may come from an outer launcher's environment, where its descriptor is not open here. */
static bool pmi_is_open(void)
{
    long descriptor = -1;
    return !is_set("PMI_FD") || !cw_pmi1_number_read(cw_environment("PMI_FD"), 0, INT32_MAX, &descriptor) ||
           fcntl((int)descriptor, F_GETFD) >= 0;
}

static bool has_pmix(void)
{
    return is_set("PMIX_NAMESPACE") && is_set("PMIX_RANK");
}

static uint32_t size_read(const char *name)
{
    long size = 0;
    return is_set(name) && cw_pmi1_number_read(cw_environment(name), 1, INT32_MAX, &size) ? (uint32_t)size : 0;
}

/* PMIx has no variable for it, but Slurm and Open MPI have; 0: neither. One may have started the other. */
static uint32_t size_beside_pmix(void)
{
    bool is_slurm = strncmp(cw_environment("PMIX_NAMESPACE"), "slurm.", 6) == 0;
    return size_read(is_slurm ? "SLURM_STEP_NUM_TASKS" : "OMPI_COMM_WORLD_SIZE");
}

/* PMI goes before PMIx: `causeway run` and Hydra in a job of Slurm's leave the variables of srun. */
static int launcher_open(struct cw_bootstrap *bootstrap)
{
    if ((is_set("PMI_FD") || is_set("PMI_PORT")) && (!has_pmix() || pmi_is_open())) {
        return bootstrap_pmi1_open(bootstrap);
    }
    if (has_pmix()) {
        int status = bootstrap_pmix_open(bootstrap);
        if (status != CW_ERROR_NOT_FOUND || size_beside_pmix() != 1) {
            return status == CW_ERROR_NOT_FOUND ? CW_ERROR_UNSUPPORTED : status;
        }
        *bootstrap = (struct cw_bootstrap){0};
    }
    return bootstrap_none_open(bootstrap);
}

int cw_bootstrap_open(struct cw_bootstrap **bootstrap, char *error, size_t error_bytes)
{
    struct cw_bootstrap *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the connection to the launcher");
    }
    int status = launcher_open(made);
    if (status != CW_OK) {
        cw_error_text(error, error_bytes, status, "%s", made->failure);
        free(made);
        return status;
    }
    assert(made->info.size > 0 && made->info.rank < made->info.size && made->info.value_max > 0);
    *bootstrap = made;
    return CW_OK;
}

struct cw_bootstrap_info cw_bootstrap_info(const struct cw_bootstrap *bootstrap)
{
    return bootstrap->info;
}

struct cw_bootstrap_traffic cw_bootstrap_traffic(const struct cw_bootstrap *bootstrap)
{
    return bootstrap->traffic;
}

uint32_t cw_bootstrap_size_advertised(void)
{
    if (!is_set("PMI_FD") && !is_set("PMI_PORT")) {
        return has_pmix() ? size_beside_pmix() : 1;
    }
    if (has_pmix() && !pmi_is_open()) {
        return size_beside_pmix();
    }
    return is_set("PMI_FD") ? size_read("PMI_SIZE") : 0;
}

int cw_bootstrap_put(struct cw_bootstrap *bootstrap, const char *key, const char *value)
{
    if (!cw_pmi1_text_fits(key, true) || strlen(key) > CW_BOOTSTRAP_KEY_MAX || !cw_pmi1_text_fits(value, true) ||
        strchr(key, ';') != NULL || strchr(value, ';') != NULL) {
        return cw_error_text(bootstrap->failure, sizeof(bootstrap->failure), CW_ERROR_ARGUMENT,
                             "a key or value for the launcher's table is empty, not printable or too long");
    }
    if (strlen(value) > bootstrap->info.value_max) {
        return cw_error_text(bootstrap->failure, sizeof(bootstrap->failure), CW_ERROR_ARGUMENT,
                             "a value of %zu characters: the launcher's table takes %u at most", strlen(value),
                             bootstrap->info.value_max);
    }
    bootstrap->traffic.requests++;
    return bootstrap->client->put(bootstrap, key, value);
}

int cw_bootstrap_get(struct cw_bootstrap *bootstrap, const char *key, char *value, size_t value_bytes)
{
    if (!cw_pmi1_text_fits(key, true) || strlen(key) > CW_BOOTSTRAP_KEY_MAX) {
        return cw_error_text(bootstrap->failure, sizeof(bootstrap->failure), CW_ERROR_NOT_FOUND,
                             "no key of the launcher's table looks like that");
    }
    bootstrap->traffic.requests++;
    return bootstrap->client->get(bootstrap, key, value, value_bytes);
}

int cw_bootstrap_get_each(struct cw_bootstrap *bootstrap, uint32_t count, const struct cw_bootstrap_reader *reader)
{
    char key[CW_BOOTSTRAP_KEY_MAX + 1], value[CW_BOOTSTRAP_VALUE_MAX + 1];
    int status = CW_OK;
    if (bootstrap->client->get_each != NULL) {
        bootstrap->traffic.requests += count;
        return bootstrap->client->get_each(bootstrap, count, reader);
    }
    for (uint32_t i = 0; i < count && status == CW_OK; i++) {
        reader->key(reader->context, i, key);
        status = cw_bootstrap_get(bootstrap, key, value, sizeof(value));
        status = status == CW_OK ? reader->receive(reader->context, i, value) : status;
    }
    return status;
}

int cw_bootstrap_fence(struct cw_bootstrap *bootstrap)
{
    bootstrap->traffic.requests++;
    return bootstrap->client->fence(bootstrap);
}

bool cw_bootstrap_is_cut(const struct cw_bootstrap *bootstrap)
{
    return bootstrap->client->is_cut != NULL && bootstrap->client->is_cut(bootstrap);
}

const char *cw_bootstrap_failure(const struct cw_bootstrap *bootstrap)
{
    return bootstrap->failure;
}

/* Only the low 8 bits of an exit code survive: a failure must not become a success. */
static int exit_code(int code)
{
    return code != 0 && (code & 0xff) == 0 ? 255 : code & 0xff;
}

_Noreturn void cw_bootstrap_abort(struct cw_bootstrap *bootstrap, int code, const char *text)
{
    fflush(stdout); /* before the launcher ends us: the output may contain the reason */
    if (text != NULL && text[0] != 0) {
        fprintf(stderr, "rank %u: %s\n", bootstrap->info.rank, text);
    }
    bootstrap->client->abort(bootstrap, exit_code(code));
    _exit(exit_code(code));
}

void cw_bootstrap_close(struct cw_bootstrap *bootstrap)
{
    if (bootstrap != NULL) {
        bootstrap->client->finish(bootstrap);
        cw_bootstrap_drop(bootstrap);
    }
}

void cw_bootstrap_drop(struct cw_bootstrap *bootstrap)
{
    if (bootstrap != NULL) {
        bootstrap->client->release(bootstrap);
        free(bootstrap);
    }
}
