#include "mpi/collective/choice/choice_contents.h"
#include "control/settings/setting.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/settings.h"
#include "dataplane/status.h"
#include "mpi/collective/choice/choice.h"
#include "mpi/collective/choice/common.h"
#include "mpi/state/process.h"

static struct mpi_common common; /* CAUSEWAY_ALGORITHM and the file's text */
static char place[CW_SETTINGS_PATH_BYTES + 64];
/* Of rank 0 only they count: others get what rank 0 has. */
static char failure[900]; /* of a file that a setting names */
static char warning[900]; /* of a file that may be missing: the job continues without it */

static void file_fail(const struct cw_settings_place *from, const char *reason)
{
    if (from->is_wanted) {
        snprintf(failure, sizeof(failure),
                 "%.300s (%s): %.400s; `causeway plogp -o FILE` makes one, CAUSEWAY_PLOGP=none does without",
                 from->path, from->origin, reason);
    } else {
        snprintf(warning, sizeof(warning), "%.300s (%s): %.400s; built-in figures serve, as with CAUSEWAY_PLOGP=none",
                 from->path, from->origin, reason);
    }
}

/* Whether an unnamed file is valid: it must not end the job. One that is named is decoded later, once all ranks have
 * the same. */
static bool is_sound(const struct cw_settings_place *from, const char *text, size_t text_bytes)
{
    char reason[400];
    struct cw_measured *decoded = NULL;
    if (from->is_wanted || cw_measured_decode(text, text_bytes, &decoded, reason, sizeof(reason)) == CW_OK) {
        cw_measured_destroy(decoded);
        return true;
    }
    file_fail(from, reason);
    return false;
}

/* NULL: there is none, or it is of no use: `failure` or `warning` says so. */
static char *text_read(const struct cw_settings_place *from, size_t *text_bytes)
{
    *text_bytes = 0;
    failure[0] = warning[0] = '\0';
    char *text = from->path[0] == '\0' ? NULL : cw_settings_read(from->path, CW_MEASURED_TEXT_MAX, text_bytes);
    bool is_absent = from->path[0] == '\0' || (!from->is_wanted && (errno == ENOENT || errno == ENOTDIR));
    if (text == NULL && !is_absent) {
        file_fail(from, strerror(errno));
    }
    if (text != NULL && !is_sound(from, text, *text_bytes)) {
        free(text);
        text = NULL;
        *text_bytes = 0;
    }
    return text;
}

int mpi_choice_prepare(uint8_t note[CW_JOB_NOTE_BYTES])
{
    struct cw_settings_place from;
    size_t text_bytes;
    memset(note, 0, CW_JOB_NOTE_BYTES);
    cw_settings_plogp(&from);
    char *text = text_read(&from, &text_bytes);
    int status = mpi_common_make(&common, cw_setting(CW_SETTING_ALGORITHM), text, text_bytes);
    free(text);
    if (text_bytes > 0) {
        snprintf(place, sizeof(place), "%s (%s)", from.path, from.origin);
    }
    if (common.count > 0) {
        crypto_generichash(note, CW_JOB_NOTE_BYTES, (const uint8_t *)common.bytes, common.count, NULL, 0);
    }
    return status;
}

int mpi_contents_finish(const char **words, const char **text, size_t *text_bytes, char *error, size_t error_bytes)
{
    if (mpi_process.rank == 0 && failure[0] != '\0') {
        snprintf(error, error_bytes, "%s", failure);
        return MPI_ERR_NO_SUCH_FILE;
    }
    if (mpi_process.rank == 0 && warning[0] != '\0') {
        fprintf(stderr, "causeway: MPI_Init: %s\n", warning);
    }
    int code = MPI_SUCCESS;
    if (!cw_job_notes_agree(mpi_process.job)) {
        code = mpi_common_bcast(&common);
        if (mpi_process.rank != 0) {
            snprintf(place, sizeof(place), "rank 0's file");
        }
    }
    if (code != MPI_SUCCESS) {
        snprintf(error, error_bytes, "rank 0's parameters of collectives cannot be had");
        return code;
    }
    *words = mpi_common_word(&common);
    *text = mpi_common_text(&common, text_bytes);
    return MPI_SUCCESS;
}

const char *mpi_contents_place(void)
{
    return place;
}

void mpi_contents_clear(void)
{
    mpi_common_free(&common);
    place[0] = '\0';
}
