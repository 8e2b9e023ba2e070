#include "mpi/collective/compiled/replay_contents.h"
#include "control/settings/setting.h"

#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/settings.h"
#include "dataplane/status.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/point/internal.h"
#include "mpi/state/process.h"

enum { BUNDLE_FILE_MAX = 1 << 30, FAILURE_BYTES = 512 };

static char *contents;
static size_t contents_bytes;
static char place[CW_SETTINGS_PATH_BYTES];
static char record_path[CW_SETTINGS_PATH_BYTES]; /* "": nothing is recorded */
static char failure[FAILURE_BYTES];              /* of rank 0 only it counts */

/* The value of the environment, short enough to be kept. */
static const char *name_read(enum cw_setting setting, char *to)
{
    const char *value = cw_setting(setting);
    to[0] = '\0';
    if (value == NULL) {
        return NULL;
    }
    if (strlen(value) >= CW_SETTINGS_PATH_BYTES) {
        snprintf(failure, sizeof(failure), "%s: the name is too long", cw_setting_name(setting));
        return NULL;
    }
    strcpy(to, value);
    return to;
}

int mpi_replay_prepare(uint8_t note[CW_JOB_NOTE_BYTES])
{
    crypto_generichash_state state;
    failure[0] = '\0';
    const char *path = name_read(CW_SETTING_PLAN, place);
    (void)name_read(CW_SETTING_RECORD, record_path);
    if (path != NULL) {
        contents = cw_settings_read(path, BUNDLE_FILE_MAX, &contents_bytes);
        if (contents == NULL) {
            snprintf(failure, sizeof(failure), "CAUSEWAY_PLAN: %.300s: %s; `causeway plan compile` makes one", path,
                     strerror(errno));
        }
    }
    if (path == NULL && record_path[0] == '\0') {
        return CW_OK;
    }
    const uint8_t marks[] = {contents != NULL, record_path[0] != '\0'};
    crypto_generichash_init(&state, NULL, 0, CW_JOB_NOTE_BYTES);
    crypto_generichash_update(&state, note, CW_JOB_NOTE_BYTES);
    crypto_generichash_update(&state, marks, sizeof(marks));
    if (contents != NULL) {
        crypto_generichash_update(&state, (const uint8_t *)contents, contents_bytes);
    }
    crypto_generichash_final(&state, note, CW_JOB_NOTE_BYTES);
    return CW_OK;
}

/* Rank 0's contents take the place of all others. */
static int contents_bcast(void)
{
    struct mpi_comm *world = mpi_comm_world;
    struct {
        uint64_t bytes;
        uint64_t has_bundle;
        uint64_t records;
    } told = {contents_bytes, contents != NULL, record_path[0] != '\0'};
    int code = mpi_internal_bcast(world, world->group, MPI_TAG_CREATE_GROUP, &told, sizeof(told));
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (world->rank != 0) {
        free(contents);
        contents = told.has_bundle != 0 ? malloc(told.bytes + 1) : NULL;
        contents_bytes = told.bytes;
        snprintf(place, sizeof(place), "rank 0's plan");
        snprintf(record_path, sizeof(record_path), "%s", told.records != 0 ? "rank 0's file" : "");
        if (told.has_bundle != 0 && contents == NULL) {
            return MPI_ERR_NO_MEM;
        }
    }
    return told.has_bundle == 0 || told.bytes == 0
               ? MPI_SUCCESS
               : mpi_internal_bcast(world, world->group, MPI_TAG_CREATE_GROUP, contents, contents_bytes);
}

int mpi_replay_contents_finish(const void **bytes, size_t *length, char *error, size_t error_bytes)
{
    if (mpi_process.rank == 0 && failure[0] != '\0') {
        snprintf(error, error_bytes, "%s", failure);
        return MPI_ERR_NO_SUCH_FILE;
    }
    int code = cw_job_notes_agree(mpi_process.job) ? MPI_SUCCESS : contents_bcast();
    if (code != MPI_SUCCESS) {
        snprintf(error, error_bytes, "rank 0's plan cannot be had");
        return code;
    }
    *bytes = contents;
    *length = contents_bytes;
    return MPI_SUCCESS;
}

const char *mpi_replay_contents_place(void)
{
    return place;
}

const char *mpi_replay_record_path(void)
{
    return record_path[0] == '\0' ? NULL : record_path;
}

void mpi_replay_contents_clear(void)
{
    free(contents);
    contents = NULL;
    contents_bytes = 0;
    place[0] = record_path[0] = failure[0] = '\0';
}
