#include "mpi/init/wan_policy.h"
#include "control/settings/setting.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/job/wan_policy.h"
#include "control/job/wire.h"
#include "control/settings/settings.h"
#include "control/topology/clusters.h"
#include "dataplane/status.h"
#include "mpi/collective/choice/common.h"
#include "mpi/state/process.h"

static struct mpi_common common; /* the words of control/job/wan_choice.h and the file's text */
static char place[CW_SETTINGS_PATH_BYTES + 32];
static char failure[CW_SETTINGS_PATH_BYTES + 200];
static char emulated_name[32];

/* The text of the file, to be freed; NULL: there is none, or it cannot be read: `failure` says so. */
static char *text_read(const char *path, size_t *text_bytes)
{
    *text_bytes = 0;
    failure[0] = '\0';
    if (path == NULL || path[0] == '\0') {
        return NULL;
    }
    snprintf(place, sizeof(place), "CAUSEWAY_TOPOLOGY: %.1000s", path);
    char *text = cw_settings_read(path, CW_TOPOLOGY_FILE_BYTES, text_bytes);
    if (text == NULL || *text_bytes == 0) {
        snprintf(failure, sizeof(failure), "%s: %s", place, text == NULL ? strerror(errno) : "the file is empty");
    }
    return text;
}

static void note_mix(uint8_t note[CW_JOB_NOTE_BYTES])
{
    crypto_generichash_state state;
    const uint8_t mark = failure[0] == '\0';
    crypto_generichash_init(&state, NULL, 0, CW_JOB_NOTE_BYTES);
    crypto_generichash_update(&state, note, CW_JOB_NOTE_BYTES);
    crypto_generichash_update(&state, &mark, sizeof(mark));
    crypto_generichash_update(&state, (const uint8_t *)common.bytes, common.count);
    crypto_generichash_final(&state, note, CW_JOB_NOTE_BYTES);
}

int mpi_wan_policy_prepare(uint8_t note[CW_JOB_NOTE_BYTES])
{
    size_t text_bytes;
    char *text = text_read(cw_setting(CW_SETTING_TOPOLOGY), &text_bytes);
    char words[CW_WAN_WORDS_BYTES];
    cw_wan_words(words);
    int status = mpi_common_make(&common, words, text, text_bytes);
    free(text);
    if (status == CW_OK && (common.count > 0 || failure[0] != '\0')) {
        note_mix(note);
    }
    return status;
}

/* The same verdict at all ranks, if not before. */
static int common_finish(char *error, size_t error_bytes)
{
    int code = MPI_SUCCESS;
    bool is_notified = mpi_process.rank == 0 && failure[0] != '\0';
    if (!is_notified && !cw_job_notes_agree(mpi_process.job)) {
        cw_wan_seal(mpi_process.size, mpi_process.paths); /* also notices that must come first */
        code = mpi_common_bcast(&common);
        if (mpi_process.rank != 0) {
            failure[0] = '\0'; /* of rank 0 only it counts */
            snprintf(place, sizeof(place), "rank 0's topology file");
        }
    }
    if (failure[0] != '\0') {
        snprintf(error, error_bytes, "%s", failure);
        return MPI_ERR_NO_SUCH_FILE;
    }
    if (code != MPI_SUCCESS) {
        snprintf(error, error_bytes, "rank 0's topology file cannot be had");
    }
    return code;
}

/* Emulated hosts of the job; 0: none. */
static uint32_t emulated_hosts(void)
{
    char ignored[200];
    int last = -1;
    (void)cw_wire_host(mpi_process.size - 1, mpi_process.size, &last, ignored, sizeof(ignored));
    return (uint32_t)(last + 1);
}

/* Emulated hosts are numbered, since all are this machine. */
static const char *host_name(void *context, uint32_t rank)
{
    (void)context;
    if (emulated_hosts() == 0) {
        return cw_job_host(mpi_process.job, rank);
    }
    snprintf(emulated_name, sizeof(emulated_name), "host%u",
             cw_clusters_block(rank, mpi_process.size, emulated_hosts()));
    return emulated_name;
}

static int clusters_make(const char *text, size_t text_bytes, char *error, size_t error_bytes)
{
    const struct cw_clusters_request request = {
        .text = text,
        .length = text_bytes,
        .place = place,
        .ranks = mpi_process.size,
        .emulated = emulated_hosts(),
        .host_name = host_name,
    };
    int status = cw_clusters_create(&request, &mpi_process.clusters, error, error_bytes);
    return status == CW_OK ? MPI_SUCCESS : status == CW_ERROR_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_FILE;
}

int mpi_wan_policy_start(char *error, size_t error_bytes)
{
    struct cw_wan_choice choice;
    int code = common_finish(error, error_bytes);
    size_t text_bytes;
    const char *text = mpi_common_text(&common, &text_bytes);
    if (code == MPI_SUCCESS && !cw_wan_parse(mpi_common_word(&common), &choice, error, error_bytes)) {
        return MPI_ERR_ARG;
    }
    if (code == MPI_SUCCESS && text_bytes > 0) {
        code = clusters_make(text, text_bytes, error, error_bytes);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    char why[200] = "";
    int status = cw_wan_set(&choice, mpi_process.clusters, mpi_process.rank, mpi_process.size, mpi_process.paths, why,
                            sizeof(why));
    if (status != CW_OK) {
        const char *advice = status == CW_ERROR_UNSUPPORTED ? "; CAUSEWAY_ENCRYPT=off goes without" : "";
        snprintf(error, error_bytes, "%s: %s%s", why, cw_status_text(status), advice);
        return MPI_ERR_OTHER;
    }
    return MPI_SUCCESS;
}

void mpi_wan_policy_clear(void)
{
    cw_clusters_destroy(mpi_process.clusters);
    mpi_process.clusters = NULL;
    mpi_common_free(&common);
    place[0] = failure[0] = '\0';
}
